"""`IdentifiedModel`: what files for simulators are written from, be it a fit of `identify` or a result of `drives`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array, record
from dynident.drives.identification import DriveEstimate
from dynident.drives.linear import drive_elements
from dynident.drives.replay import DriveValues
from dynident.dynamics.terms.term import Term
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.export.values import on_joints, with_all_joints_free
from dynident.physical.result import PhysicalParameters
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_limits


@record
class PositionControl:
    """Position controllers of the moving joints: kp (target(t - delay) - q - bias) - kd dq.

    Attributes:
        kp: (n_joints,) position gains [N·m/rad or N/m].
        kd: (n_joints,) velocity gains [N·m·s/rad or N·s/m].
        bias: (n_joints,) what is added to logged positions to get those that the controller sees [rad or m].
        delay: By which commands reach the joints late [s].
    """

    kp: Array
    kd: Array
    bias: Array
    delay: float = 0.0


@record
class IdentifiedModel:
    """Identified values of a robot on their way into files.

    Attributes:
        robot: The robot.
        values: Values by parameter name: standard ones, and those of `terms`.
        note: For the top of files: where the numbers come from.
        terms: Terms that the values belong to; None for rigid, Ia, Fv, Fc, Fo.
        std: Standard deviations of values that the data determines, by name.
        control: Position controllers; None where no gains are known.
        notes: What was done to the values, in words.
        fit: The fit behind it; None where the drives alone were identified.
    """

    robot: Robot
    values: Mapping[str, float]
    note: str
    terms: tuple[Term, ...] | None = None
    std: Mapping[str, float] = field(default_factory=dict)
    control: PositionControl | None = None
    notes: tuple[str, ...] = ()
    fit: Fit | None = None


def model_of_drives(found: DriveEstimate, gains: tuple[Array, Array] | None = None) -> IdentifiedModel:
    """A result of `drives`: links as the robot file has them (or as they were estimated), and identified drives.

    Args:
        found: The drives.
        gains: (n_joints,) position and velocity gains of the simulated controller; default those of the logs, times
            the factors that were estimated. Drives identified from measured torque have none.
    """
    kp, kd = true_gains(found.kp, found.kd, found.drives) if gains is None else gains
    spread = zip(found.names, found.std.tolist(), strict=True)
    error = f"{1e3 * found.after.total:.3g} against {1e3 * found.before.total:.3g} mrad or mm"
    where = "on held-out logs" if found.held_out else "on the logs they were identified on"
    return IdentifiedModel(
        found.robot,
        found.drives.parameters,
        f"drives identified by dynident {__version__}; replay error {error} before, {where}",
        std={name: std for name, std in spread if math.isfinite(std)},
        control=PositionControl(kp, kd, found.drives.bias, found.delay) if np.any(kp) else None,
    )


def true_gains(kp: Array, kd: Array, drives: DriveValues) -> tuple[Array, Array]:
    """(n_joints,) gains that controllers have: those given, times the factors of the drives where these have some."""
    factors = getattr(drives, "gains", None)
    return (kp, kd) if factors is None else (kp * factors, kd * factors)


def model_of_fit(
    fit: Fit,
    bodies: PhysicalParameters,
    plain: tuple[Mapping[str, float], tuple[Term, ...], tuple[str, ...]],
    gains: tuple[Array, Array] | None = None,
) -> IdentifiedModel:
    """A fit of `identify` with physically consistent links and plain friction.

    Args:
        fit: The fit.
        bodies: Physically consistent parameters.
        plain: Values, terms and notes of friction that formats can hold, see `plain_friction`.
        gains: (n_joints,) position and velocity gains of the simulated controller; default those of the robot file.
    """
    values, terms, notes = plain
    known = {
        name: float(std)
        for name, std in zip(bodies.values, bodies.chi_std, strict=True)
        if math.isfinite(std) and values.get(name) == bodies.values[name]
    }
    control = control_of(fit.robot, values, gains)
    return IdentifiedModel(fit.robot, values, _origin(fit, bodies), terms, known, control, notes, fit)


def _origin(fit: Fit, bodies: PhysicalParameters) -> str:
    """For the top of a file: what the numbers are, and what settled those that the data leaves open."""
    words = f"identified by dynident {fit.version}; {bodies.prior_sentence}"
    if fit.undetermined:
        words += f"; the data leaves open {', '.join(fit.undetermined)}"
    return words


def control_of(robot: Robot, values: Mapping[str, float], gains: tuple[Array, Array] | None) -> PositionControl | None:
    """Controllers of a fit; a torque offset Fo is what a controller does whose position is off by Fo / kp."""
    moving = list(robot.moving)
    if gains is None:
        if robot.drive.kp is None or robot.drive.kd is None:
            return None
        gains = robot.drive.kp[moving], robot.drive.kd[moving]
    kp, kd = gains
    bias = np.zeros(len(moving))
    plain = robot.closure is None and np.array_equal(robot.coupling, np.eye(len(robot.active)))
    if plain:
        offsets = np.array([values.get(drive.element.names["Fo"], 0.0) for drive in drive_elements(robot)])
        bias = np.divide(offsets, kp, out=np.zeros(len(moving)), where=np.asarray(kp) > 0.0)
    return PositionControl(kp, kd, bias)


# ----------------------------------------------------------------------------------------------------------------------
# Joint by joint: what configuration files of simulators hold.


@record
class JointActuator:
    """A joint with its drive and controller, as simulators describe them.

    Attributes:
        name: Of the joint.
        prismatic: Whether it slides.
        armature: Rotor inertia at the joint [kg·m² or kg].
        damping: Viscous friction of the joint, without the controller's kd [N·m·s/rad or N·s/m].
        frictionloss: Coulomb friction [N·m or N].
        kp: Position gain; None where no gains are known.
        kd: Velocity gain.
        bias: What is added to logged positions to get those that the controller sees [rad or m].
        effort: Largest torque or force; None where none is known.
        velocity: Largest velocity; None where none is known.
        gear_ratio: Turns of the motor for one of the joint.
    """

    name: str
    prismatic: bool
    armature: float
    damping: float
    frictionloss: float
    kp: float | None
    kd: float | None
    bias: float
    effort: float | None
    velocity: float | None
    gear_ratio: float


def joint_actuators(model: IdentifiedModel, form: str) -> tuple[tuple[JointActuator, ...], tuple[str, ...]]:
    """The moving joints of a model, and in words what stands beside single joints."""
    robot = with_all_joints_free(model.robot)
    standard = {name: model.values[name] for name in robot.parameter_names if name in model.values}
    holding = on_joints(robot, {**standard, **robot.fixed}, form, rotors=True)
    limits, ratios = believed_limits(model.robot), model.robot.drive.gear_ratios
    found = []
    for k, (place, joint) in enumerate(zip(model.robot.moving, model.robot.moving_joints, strict=True)):
        control = model.control
        found.append(
            JointActuator(
                joint.name,
                joint.kind == "prismatic",
                float(holding.inertia[place]),
                float(holding.viscous[place]),
                float(holding.coulomb[place]),
                None if control is None else float(control.kp[k]),
                None if control is None else float(control.kd[k]),
                0.0 if control is None else float(control.bias[k]),
                limits[k].effort,
                limits[k].velocity,
                float(abs(ratios[place])),
            )
        )
    held = any(one.bias for one in found)
    lost = tuple(words for words in holding.lost if not (held and words.startswith("torque offset")))
    return tuple(found), lost


def need_control(model: IdentifiedModel, form: str) -> PositionControl:
    """The controllers of a model.

    Raises:
        InputError: When no gains are known.
    """
    if model.control is None:
        raise InputError(
            f"{form} needs the gains of position controllers, and robot {model.robot.name} has none; give --kp and "
            "--kd, or pd_gains: {kp: .., kd: ..} in its overlay"
        )
    return model.control


def steps_of_delay(delay: float, timestep: float) -> int:
    """Physics steps nearest to a delay [s]."""
    return round(delay / timestep)
