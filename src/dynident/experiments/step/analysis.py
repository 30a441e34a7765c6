"""From recorded steps to inertia, friction and combinations, with a word about everything that is doubtful."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.experiments.options import StepOptions
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.step.balance import torque_balance
from dynident.experiments.step.integrals import Description
from dynident.experiments.step.poses import (
    best_rows,
    candidate_poses,
    directions,
    feels_gravity,
    inertia_base,
    inertia_rows,
    inertial_terms,
    obstacle,
    random_poses,
)
from dynident.experiments.step.records import StepRecord, configurations
from dynident.experiments.step.response import differing, fit_response, joint_numbers
from dynident.experiments.step.result import (
    Configuration,
    MotorFriction,
    StepResult,
    gather_estimates,
    solve_inertias,
)
from dynident.experiments.thresholds import STEP
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.payload.quantities import PayloadAdvice, PayloadNumber, null_space, payload_numbers
from dynident.plant.drives import Motors
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS, in_frame


def analyze_steps(
    robot: Robot, motors: Motors, records: Sequence[StepRecord], options: StepOptions | None = None
) -> StepResult:
    """Inertia, friction and combinations from recorded steps.

    Args:
        robot: The robot.
        motors: Torque constant and resistance are used; inductance and back-EMF are reported.
        records: Steps of any motors at any poses.
        options: How they are fitted: `terms`, `way`, `emf_known`, `values`, `weight_std`. With `repeat` the robot's
            combinations are not solved for: one that carries something has others.

    Raises:
        ExperimentError: When a record determines nothing.
    """
    how = options or StepOptions()
    terms, values = how.terms, how.values
    if not records:
        raise InputError("a step test needs at least one recorded step")
    own = motors.for_joints(robot.joint_names)
    resolution = _resolution(robot, records)
    found = []
    for group in configurations(robot, records):
        motor, gain = group[0].motor, float(own.gain[group[0].motor])
        reason = obstacle(robot, motor) or no_constants(robot, motor, terms)
        if reason:
            raise ExperimentError(reason)
        enough = len(group) > 1 and differing([one.voltage for one in group])
        if enough and terms is None:
            names = [_what(robot, one) for one in group]
            known = Description(robot, own, motor, group[0].pose, values, how.weight_std, resolution)
            config = torque_balance(known, group, names)
        else:
            config = _by_constants(robot, group, gain, float(own.lag[motor]), terms, combined=enough)
        _check_signs(robot, config, gain)
        found.append(config)
    emf = own.braking if how.emf_known else None
    tested = sorted({one.motor for one in found}, reverse=True)
    friction = [_friction(found, motor, emf, float(own.lag[motor])) for motor in tested]
    complete = [one for one in friction if one is not None]
    warnings = _record_warnings(robot, found, terms)
    warnings += _friction_warnings(robot, complete, tested)
    combinations, measured = None, [one for one in found if one.numbers is not None]
    if how.repeat is None and measured:
        base = inertia_base(robot, sorted({one.motor for one in measured}), inertial_terms(robot, values))
        combinations, *disagreement = solve_inertias(base, measured, how.way)
        warnings += _combination_warnings(combinations, *disagreement)
    return StepResult(
        robot,
        gather_estimates(robot, found, complete, combinations),
        true={},
        notes=(),
        warnings=tuple(warnings),
        motors=motors,
        configurations=tuple(found),
        friction=tuple(complete),
        combinations=combinations,
        terms=terms,
    )


def _what(robot: Robot, record: StepRecord) -> str:
    return f"joint {robot.joint_names[record.motor]}, {record.voltage:.4g} V ({record.label})"


def _resolution(robot: Robot, records: Sequence[StepRecord]) -> Array:
    """(n_moving,) of the encoders: the smallest step of each joint in the records in which it was driven."""
    found = np.full(len(robot.moving), np.nan)
    for record in records:
        jumps = np.abs(np.diff(record.joints(robot), axis=0))
        for joint in np.flatnonzero(np.abs(directions(robot)[record.motor]) > 0.0):
            least = float(np.min(jumps[:, joint][jumps[:, joint] > 1e-12], initial=np.inf))
            found[joint] = np.fmin(found[joint], least)
    return np.where(np.isnan(found), np.max(found[np.isfinite(found)], initial=0.0), found)


def _by_constants(
    robot: Robot, group: Sequence[StepRecord], gain: float, lag: float, terms: int | None, *, combined: bool
) -> Configuration:
    """The paper's way: A and U of each step, then what they have in common."""
    fits = tuple(
        fit_response(one.time, one.position, one.step, lag=lag, terms=terms, what=_what(robot, one)) for one in group
    )
    numbers, misfit = joint_numbers(gain, [one.voltage for one in group], fits) if combined else (None, 0.0)
    return Configuration(group[0].motor, group[0].pose, numbers, tuple(group), fits, misfit=misfit)


def no_constants(robot: Robot, motor: int, terms: int | None) -> str:
    """Why the paper's series does not hold for a joint; empty when it does, or is not used."""
    if terms is None or not feels_gravity(robot, motor):
        return ""
    return (
        f"gravity acts on joint {robot.joint_names[motor]}, so that no step has constant A and U unless its masses are "
        "exact; leave the series out (--taylor), or test joints with an upright axis only (--joints)"
    )


def _undetermined_text(robot: Robot, config: Configuration) -> str:
    """What to change where steps do not determine the inertia of a configuration."""
    pose = ", ".join(f"{name}={x:.3g}" for name, x in zip(robot.position_names, config.pose, strict=True))
    volts = ", ".join(f"{record.voltage:.3g}" for record in config.records)
    return (
        f"joint {robot.joint_names[config.motor]} at {pose}: {volts} V do not determine its inertia "
        f"({config.inertia:.3g} with a standard deviation of {config.inertia_std:.2g}); apply voltages that differ "
        "more (--volts), or lock the others elsewhere (--pose)"
    )


def _check_signs(robot: Robot, config: Configuration, gain: float) -> None:
    for record, fit in zip(config.records, config.responses, strict=True):
        if fit.travel * gain * record.voltage <= 0.0 and not feels_gravity(robot, config.motor):
            raise ExperimentError(
                f"{_what(robot, record)}: moved against its voltage; check the sign of the torque constant"
            )
    if config.numbers is not None and config.inertia < -STEP.disagreement_std * config.inertia_std:
        raise ExperimentError(
            f"joint {robot.joint_names[config.motor]} ({', '.join(one.label for one in config.records)}): inertia "
            f"comes out as {config.inertia:.3g}; more voltage accelerated it less: check the recorded voltages and "
            "the sign of the torque constant"
        )


def _friction(found: Sequence[Configuration], motor: int, emf: Array | None, lag: float) -> MotorFriction | None:
    """Damping and Coulomb friction of a motor, averaged over its configurations."""
    own = [one for one in found if one.motor == motor and one.numbers is not None]
    if not own:
        return None
    numbers = [one.numbers for one in own if one.numbers is not None]
    values, std = np.array([one.values for one in numbers]), np.array([one.std for one in numbers])
    described = np.array([one.described for one in own])
    damping, coulomb, offset = (_mean(values[:, k], std[:, k], described[:, k]) for k in (1, 2, 3))
    record = min(fit.duration for one in own for fit in one.responses)
    return MotorFriction(
        motor,
        damping,
        None if emf is None else float(emf[motor]),
        coulomb,
        offset if (std[:, 3] > 0.0).any() else None,
        lag,
        record,
        float(np.sign(own[0].responses[0].travel)),
        float(described[:, 2].max()),
    )


def _mean(values: Array, std: Array, common: Array) -> tuple[float, float]:
    """Weighted mean and its standard deviation, which is no less than the scatter says.

    Args:
        values: (n,).
        std: (n,).
        common: (n,) part of it that is the same error in all of them, so that no mean makes it smaller.
    """
    weight = 1.0 / np.maximum(std, 1e-15 + 1e-9 * np.abs(values)) ** 2
    weight = weight / weight.sum()
    mean = float(weight @ values)
    alone = np.maximum(std**2 - common**2, 0.0)
    own = float(np.sqrt(weight**2 @ alone + (weight @ common) ** 2))
    if len(values) < 2:
        return mean, own
    scatter = float(np.sqrt(weight @ (values - mean) ** 2 / (len(values) - 1)))
    return mean, max(own, scatter)


def _record_warnings(robot: Robot, found: Sequence[Configuration], terms: int | None) -> list[str]:
    warnings = []
    bad = {"left": [], "late": []}  # type: dict[str, list[str]]
    for config in found:
        for record, fit in zip(config.records, config.responses, strict=True):
            if fit.rms > STEP.residual_ratio * fit.noise and fit.rms > 1e-6 * abs(fit.travel):
                bad["left"].append(f"{record.label} ({fit.rms / max(fit.noise, 1e-15):.0f} times the noise)")
            if abs(fit.onset - record.step) > STEP.late_share * fit.duration:
                bad["late"].append(f"{record.label} ({1e3 * (fit.onset - record.step):.0f} ms)")
        if config.numbers is None:
            continue
        if not config.inertia > STEP.disagreement_std * config.inertia_std:
            warnings.append(_undetermined_text(robot, config))
        if (
            not config.curves
            and config.misfit > STEP.disagreement_std
            and config.inertia_std > STEP.disagreement_share * config.inertia
        ):
            name = robot.joint_names[config.motor]
            warnings.append(
                f"joint {name}: its voltages do not agree on one damping ({config.misfit:.0f} standard "
                "deviations); friction is not viscous and Coulomb alone, and the standard deviations were widened"
            )
    if bad["left"]:
        cause = (
            f"the series is cut after {terms} terms; take more, or the exact solution"
            if terms is not None
            else "another joint that gives way, a slow current, or friction that is not viscous and Coulomb"
        )
        warnings.append(f"the positions are not those of one inertia and friction in {_some(bad['left'])}: {cause}")
    if bad["late"]:
        warnings.append(
            f"the motion did not begin with the voltage in {_some(bad['late'])}: static friction or a slow current; it "
            "was fitted from its own onset"
        )
    return warnings


def _some(items: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def _friction_warnings(robot: Robot, friction: Sequence[MotorFriction], tested: Sequence[int]) -> list[str]:
    warnings = []
    known = {one.motor for one in friction}
    alone = [robot.joint_names[motor] for motor in tested if motor not in known]
    if alone:
        warnings.append(
            f"joint {', '.join(alone)}: one voltage determines A = B/Me and U = (K V - Tc)/Me only; inertia, damping "
            "and friction are three unknowns and need a second voltage"
        )
    for one in friction:
        if feels_gravity(robot, one.motor) and one.described > STEP.described_share * one.coulomb[1]:
            warnings.append(
                f"joint {robot.joint_names[one.motor]}: steps of one sign do not separate Coulomb friction from "
                f"weight; its standard deviation, {one.coulomb[1]:.2g}, is that of the described weight: apply "
                "voltages of both signs (--volts=0.8,0.5,-0.8), or say how well masses are known (--weight-std)"
            )
        name, (damping, std) = robot.joint_names[one.motor], one.damping
        if std > STEP.damping_share * abs(damping):
            none = ", if there is any" if abs(damping) < 2.0 * std else ""
            warnings.append(
                f"joint {name}: the record is too short to determine damping{none}: {damping:.3g} with a standard "
                f"deviation of {std:.2g} from {one.record:.2g} s; record longer (what damping does grows with the "
                "cube of the time) or with finer encoders"
            )
        if one.lag > STEP.lag_share * one.record:
            warnings.append(
                f"joint {name}: L/R is {1e3 * one.lag:.3g} ms, {100.0 * one.lag / one.record:.0f} % of the record; the "
                "current is not constant for that long, record longer"
            )
        if one.coulomb[0] < -3.0 * one.coulomb[1]:
            warnings.append(
                f"joint {name}: Coulomb friction comes out negative, {one.coulomb[0]:.3g}; check the torque gain, or "
                "whether gravity helps the motion"
            )
    return warnings


def _combination_warnings(combinations: ParameterEstimate, left: Array, shares: Array) -> list[str]:
    """What is not determined, badly determined, or does not agree; of each inertia the residual in standard deviations
    and as a share."""
    warnings = []
    undetermined, n = combinations.undetermined, len(combinations.names)
    if undetermined:
        warnings.append(
            f"{len(undetermined)} of {n} combinations are not determined by these poses ({_some(undetermined, 6)}); "
            "test more joints or lock the others at more places"
        )
    if combinations.condition > STEP.condition:
        warnings.append(
            f"the poses determine some combinations badly (condition {combinations.condition:.0f}); their standard "
            "deviations are large: test more joints, or give more poses"
        )
    if ((np.abs(left) > STEP.disagreement_std) & (shares > STEP.disagreement_share)).any():
        worst = float(shares.max())
        warnings.append(
            f"the inertias of different poses do not agree with one set of parameters (up to {100.0 * worst:.2g} %); "
            "lengths, zero positions or a joint that gives way may be wrong"
        )
    return warnings


def carries_no_weight(robot: Robot, motor: int, values: str | None) -> bool:
    """Whether a motor carries no weight: gravity cannot act on it.

    Raises:
        ExperimentError: When gravity acts on it and nothing is known of the masses.
    """
    if not feels_gravity(robot, motor):
        return True
    known = robot.value_set(values)
    if not any(known.get(f"M{joint.number}", 0.0) for joint in robot.joints):
        raise ExperimentError(
            f"gravity acts on joint {robot.joint_names[motor]} of {robot.name}, and no masses are known to carry its "
            "weight: a step would not have constant A and U. Give the robot masses (parameters:, or URDF <inertial>), "
            "turn the axis upright, or balance the arm"
        )
    return False


# ----------------------------------------------------------------------------------------------------------------------
# What the tool carries, from effective inertias with and without it.

_RANK = 1e-7  # share of the largest singular value that counts


def payload_rows(robot: Robot, poses: ArrayLike, motor: int) -> Array:
    """Inertia that a body on the tool adds, over its standard parameters in the tool frame, (n_poses, 10)."""
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
        )
    link, frame = robot.tool
    n = len(LINK_SYMBOLS)
    own = inertia_rows(robot, poses, motor, ("rigid",))[:, n * link : n * (link + 1)]
    return np.asarray(own @ in_frame(np.eye(n), frame.rotation, frame.translation).T)


def payload_poses(robot: Robot, motors: Sequence[int], count: int, seed: int) -> tuple[tuple[int, Array], ...]:
    """(motor, pose) that tell the ten numbers of a payload best."""
    candidates = {motor: candidate_poses(robot, motor, seed + 1) for motor in motors}
    rows = {motor: payload_rows(robot, poses, motor) for motor, poses in candidates.items()}
    present = np.linalg.norm(np.vstack(list(rows.values())), axis=0) > 0.0
    return best_rows({motor: own[:, present] for motor, own in rows.items()}, candidates, count)[0]


def step_payload(
    robot: Robot, loaded: Sequence[Configuration], unloaded: Sequence[Configuration]
) -> tuple[tuple[PayloadNumber, ...], tuple[str, ...], int]:
    """The body on the tool from inertias of the same joints at the same poses with and without it.

    Returns:
        mass; cx, cy, cz; Ixx .. Iyz, withheld where the poses do not determine them; why, as warnings; and the number
        of inertias with and without it.

    Raises:
        InputError: When no pose is in both.
    """
    rows, more, std = [], [], []
    for one in loaded:
        for same in (x for x in unloaded if x.motor == one.motor):
            apart = np.delete(same.pose - one.pose, one.motor)  # the tested joint feels the same anywhere
            if np.abs(apart).max(initial=0.0) <= STEP.same_pose:
                rows.append(payload_rows(robot, one.pose, one.motor)[0])
                more.append(one.inertia - same.inertia)
                std.append(float(np.hypot(one.inertia_std, same.inertia_std)))
                break
    if not rows:
        raise InputError("no joint was tested at the same pose with and without the payload; repeat the unloaded test")
    W, y = np.array(rows) / np.array(std)[:, None], np.array(more) / np.array(std)
    units = np.linalg.norm(W, axis=0)
    units = np.where(units > 1e-12 * units.max(), units, 1.0)
    left, sizes, right = np.linalg.svd(W / units, full_matrices=True)
    rank = int(np.sum(sizes > _RANK * sizes[0]))
    G = right[:rank].T / sizes[:rank]
    standard = (G @ (left[:, :rank].T @ y)) / units
    rest = W @ standard - y
    spread = max(1.0, float(rest @ rest) / max(len(y) - rank, 1) if len(y) > rank else 1.0)
    covariance = spread * (G @ G.T) / np.outer(units, units)
    numbers, warnings = payload_numbers(standard, covariance, right[rank:].T, units, _advice(robot))
    return numbers, warnings, len(y)


def _advice(robot: Robot) -> PayloadAdvice:
    """What steps of all joints at any pose can show of a payload."""
    poses = random_poses(robot, 4 * len(LINK_SYMBOLS), 7)
    rows = np.vstack([payload_rows(robot, poses, motor) for motor in range(len(robot.moving))])
    remedy = "step more joints at more poses, with larger voltages"
    return PayloadAdvice(*null_space(rows), (remedy,) * len(LINK_SYMBOLS))
