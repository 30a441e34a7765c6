"""`export_isaaclab` and `export_mjlab`: identified drives as actuator configuration in Python.

Neither project is needed to write the files: they are read back as a syntax tree and compared with the fields that
`isaaclab` 2.3.2 and `mjlab` 1.6.0 have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynident.errors import InputError
from dynident.export.identified import (
    IdentifiedModel,
    JointActuator,
    joint_actuators,
    need_control,
    steps_of_delay,
)
from dynident.export.python_config import (
    OPTIONAL,
    REQUIRED,
    Call,
    Keyword,
    Schema,
    checked_by_schema,
    write_python,
)
from dynident.export.source_files import check_export_target
from dynident.export.verification import Exported

TIMESTEP = 0.005  # [s] physics step of velocity tasks in Isaac Lab and mjlab, in which they count delays
ACTUATORS = ("implicit", "delayed", "dc_motor")

_JOINT = {key: Keyword("numbers", OPTIONAL) for key in ("armature", "friction", "dynamic_friction", "viscous_friction")}
_LIMITS = {
    key: Keyword("numbers", OPTIONAL)
    for key in ("effort_limit", "velocity_limit", "effort_limit_sim", "velocity_limit_sim")
}
_ISAACLAB_BASE = {
    "joint_names_expr": Keyword("names", REQUIRED),
    "stiffness": Keyword("numbers", REQUIRED),
    "damping": Keyword("numbers", REQUIRED),
    **_JOINT,
    **_LIMITS,
}
ISAACLAB: Schema = {
    "ImplicitActuatorCfg": _ISAACLAB_BASE,
    "DelayedPDActuatorCfg": {**_ISAACLAB_BASE, "min_delay": Keyword("count"), "max_delay": Keyword("count")},
    "DCMotorCfg": {**_ISAACLAB_BASE, "saturation_effort": Keyword("number", REQUIRED)},
}
_MJLAB_BASE = {
    "target_names_expr": Keyword("names", REQUIRED),
    "stiffness": Keyword("number", REQUIRED),
    "damping": Keyword("number", REQUIRED),
    "effort_limit": Keyword("number"),
    "armature": Keyword("number"),
    "frictionloss": Keyword("number"),
    "viscous_damping": Keyword("number"),
    "velocity_limit": Keyword("number"),
    "delay_min_lag": Keyword("count"),
    "delay_max_lag": Keyword("count"),
}
MJLAB: Schema = {
    "BuiltinPositionActuatorCfg": {key: own for key, own in _MJLAB_BASE.items() if key != "velocity_limit"},
    "DcMotorActuatorCfg": {
        **_MJLAB_BASE,
        "saturation_effort": Keyword("number", REQUIRED),
        "velocity_limit": Keyword("number", REQUIRED),
    },
}
_ISAACLAB_CLASSES = {"implicit": "ImplicitActuatorCfg", "delayed": "DelayedPDActuatorCfg", "dc_motor": "DCMotorCfg"}
_MJLAB_CLASSES = {
    "implicit": "BuiltinPositionActuatorCfg",
    "delayed": "BuiltinPositionActuatorCfg",
    "dc_motor": "DcMotorActuatorCfg",
}
_PROJECTS = {"Isaac Lab": "Isaac Lab 2.3.2", "mjlab": "mjlab 1.6.0"}
_ISAACLAB_HEAD = """stiffness and damping are the gains of the controller alone. friction and dynamic_friction are
Coulomb friction, viscous_friction is viscous friction: efforts, as Isaac Sim 5 takes them. Isaac Sim before 5 has no
viscous friction of joints and takes friction as a coefficient: add viscous_friction to damping there, and leave
friction out."""
_MJLAB_HEAD = """stiffness and damping are the gains of the controller alone. frictionloss is Coulomb friction,
viscous_damping viscous friction of the joint."""


def export_isaaclab(
    model: IdentifiedModel, path: str | Path, *, actuators: str | None = None, timestep: float = TIMESTEP
) -> Exported:
    """Write actuator configuration for Isaac Lab, `ArticulationCfg(actuators=ACTUATORS)`.

    Args:
        model: The identified model, with gains.
        path: Where to, ending in .py.
        actuators: "implicit", "delayed" or "dc_motor"; default delayed where commands come late by half a step or more.
        timestep: Physics step of the simulation, in which delays are counted [s].

    Raises:
        InputError: Without gains, without a limit that a DC motor needs, or when the target cannot be written.
    """
    target, kind, joints, lost = _prepare(model, path, "Isaac Lab", actuators, timestep)
    groups: dict[Any, list[JointActuator]] = {}
    for joint in joints:  # of a DC motor, saturation_effort is one number
        groups.setdefault(_key(joint) if kind == "dc_motor" else None, []).append(joint)
    made: dict[str, Call] = {}
    for number, group in enumerate(groups.values(), 1):
        made["identified" if len(groups) == 1 else f"identified_{number}"] = _isaaclab_group(
            model, kind, group, timestep
        )
    imports = (f"from isaaclab.actuators import {_ISAACLAB_CLASSES[kind]}",)
    return _write_config(
        model, target, "Isaac Lab", _ISAACLAB_HEAD, imports, made, ISAACLAB, kind, joints, lost, timestep
    )


def export_mjlab(
    model: IdentifiedModel, path: str | Path, *, actuators: str | None = None, timestep: float = TIMESTEP
) -> Exported:
    """Write actuator configuration for mjlab, `EntityArticulationInfoCfg(actuators=ACTUATORS)`.

    Args, Raises: As of `export_isaaclab`.
    """
    target, kind, joints, lost = _prepare(model, path, "mjlab", actuators, timestep)
    made = tuple(_mjlab_actuator(model, kind, joint, timestep) for joint in joints)
    imports = (f"from mjlab.actuator import {_MJLAB_CLASSES[kind]}",)
    return _write_config(model, target, "mjlab", _MJLAB_HEAD, imports, made, MJLAB, kind, joints, lost, timestep)


def _prepare(
    model: IdentifiedModel, path: str | Path, form: str, actuators: str | None, timestep: float
) -> tuple[Path, str, tuple[JointActuator, ...], tuple[str, ...]]:
    """The target, the kind of actuators, the joints, and what no joint holds; refuses what cannot be written."""
    target = check_export_target(path, (".py",), model.robot)
    control = need_control(model, form)
    if not timestep > 0.0:
        raise InputError(
            f"timestep is {timestep:g} s; expected the physics step of the simulation, such as {TIMESTEP:g}"
        )
    kind = actuators or ("delayed" if steps_of_delay(control.delay, timestep) else "implicit")
    if kind not in ACTUATORS:
        raise InputError(f"actuators is {kind!r}; expected one of {', '.join(ACTUATORS)}")
    joints, lost = joint_actuators(model, form)
    if kind == "dc_motor":
        for joint in joints:
            gone = [word for word in ("effort", "velocity") if not getattr(joint, word)]
            if gone:
                raise InputError(
                    f"joint {joint.name}: its largest {' and '.join(gone)} is not known, which a DC motor needs for "
                    "its line from stall torque to no-load velocity; add limits to the robot's overlay"
                )
    return target, kind, joints, lost


def _key(joint: JointActuator) -> Any:
    return joint.effort


def _isaaclab_group(model: IdentifiedModel, kind: str, joints: Sequence[JointActuator], timestep: float) -> Call:
    def by_joint(word: str) -> dict[str, float]:
        return {re.escape(one.name): float(getattr(one, word)) for one in joints if getattr(one, word) is not None}

    arguments: dict[str, Any] = {
        "joint_names_expr": [re.escape(one.name) for one in joints],
        "stiffness": by_joint("kp"),
        "damping": by_joint("kd"),
        "armature": by_joint("armature"),
        "friction": by_joint("frictionloss"),
        "dynamic_friction": by_joint("frictionloss"),
        "viscous_friction": by_joint("damping"),
    }
    efforts, velocities = by_joint("effort"), by_joint("velocity")
    if efforts:
        arguments["effort_limit_sim" if kind == "implicit" else "effort_limit"] = efforts
    if kind == "dc_motor":
        arguments |= {"velocity_limit": velocities, "saturation_effort": float(joints[0].effort or 0.0)}
    if kind == "delayed":
        steps = _steps(model, timestep)
        arguments |= {"min_delay": steps, "max_delay": steps}
    return Call(_ISAACLAB_CLASSES[kind], arguments)


def _mjlab_actuator(model: IdentifiedModel, kind: str, joint: JointActuator, timestep: float) -> Call:
    arguments: dict[str, Any] = {
        "target_names_expr": (re.escape(joint.name),),
        "stiffness": joint.kp,
        "damping": joint.kd,
        "armature": joint.armature,
        "frictionloss": joint.frictionloss,
        "viscous_damping": joint.damping,
    }
    if joint.effort:
        arguments["effort_limit"] = float(joint.effort)
    if kind == "dc_motor":
        arguments |= {"saturation_effort": float(joint.effort or 0.0), "velocity_limit": float(joint.velocity or 0.0)}
    if kind != "implicit" and _steps(model, timestep):
        arguments |= {"delay_min_lag": _steps(model, timestep), "delay_max_lag": _steps(model, timestep)}
    return Call(_MJLAB_CLASSES[kind], arguments)


def _steps(model: IdentifiedModel, timestep: float) -> int:
    return 0 if model.control is None else steps_of_delay(model.control.delay, timestep)


def _write_config(
    model: IdentifiedModel,
    target: Path,
    form: str,
    words: str,
    imports: tuple[str, ...],
    actuators: Any,
    schema: Schema,
    kind: str,
    joints: Sequence[JointActuator],
    lost: tuple[str, ...],
    timestep: float,
) -> Exported:
    """Write the file: actuators, and beside them what their classes do not hold."""
    delay = 0.0 if model.control is None else model.control.delay
    held = kind == "delayed" or (kind == "dc_motor" and form == "mjlab")
    rest = delay - timestep * _steps(model, timestep) * held
    assigned: dict[str, Any] = {"ACTUATORS": actuators, "DELAY": float(delay)}
    if held:
        assigned["TIMESTEP"] = float(timestep)
    biases: Mapping[str, float] = {one.name: one.bias for one in joints}
    if any(biases.values()):
        assigned["JOINT_POSITION_BIAS"] = biases
        words += (
            "\nJOINT_POSITION_BIAS is added to logged positions to get those that the controller sees: subtract it "
            "from the\nsimulated positions that a policy observes, not from its commands."
        )
    if not held and delay > 0.0:
        lost = (*lost, f"delay of commands, {1e3 * delay:.3g} ms: actuators of the kind {kind} have none")
    elif abs(rest) > _SHOWN_REST * timestep:
        counted = f"counted as {1e3 * (delay - rest):.3g} ms, in steps of {1e3 * timestep:g} ms"
        lost = (*lost, f"delay of commands of {1e3 * delay:.3g} ms: {counted}")
    lines = [f"{form} actuators of {model.robot.name}: {model.note}.", "", words]
    lines += [f"Not in this file: {one}." for one in lost]
    write_python(target, "\n".join(lines), imports, assigned, schema)
    usage = (f"its fields are those of {_PROJECTS[form]}; the project itself was not loaded",)
    return Exported(target, form, checked_by_schema(assigned, _PROJECTS[form]), lost, usage=usage)


_SHOWN_REST = 0.05  # of a step, by which a counted delay may be off without a remark
