"""`dynident friction`: friction at constant velocities, on a machine or from logs."""

from __future__ import annotations

import dataclasses
import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.errors import InputError
from dynident.run.experiment import bench, machine, tell, true_values
from dynident.run.shared import check_positive, logs_of, parse_positions, robot_of

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.experiments.velocity import VelocityFriction
    from dynident.robot import Robot

_RATE = 500.0  # [Hz] of the simulated machine
_COUNTS = 131072.0  # per turn of its encoders
_TIMES = ("cruise", "ramp", "settle")
_ON_A_MACHINE = (
    *("speeds", "range", "at", "bandwidth", "plant", "values", "rate", "noise", "encoder", "breakaway", "effects"),
    *("payload", "seed", *_TIMES),
)


def run_velocity(options: Namespace) -> int:
    """`dynident friction`.

    Args:
        options: See `friction_arguments`.
    """
    robot, fit = robot_of(options), _fit(options)
    joints = None if options.joints is None else [name.strip() for name in options.joints.split(",") if name.strip()]
    how: dict[str, Any] = {"gravity": options.gravity, "fit": fit, "friction": options.friction}
    if fit is not None and options.gravity != "cancel":
        raise InputError("--fit tells gravity; leave --gravity out")
    found = _from_logs(options, robot, joints, how) if options.logs else _on_machine(options, robot, joints, how)
    return tell(options, found.as_dict(), lambda: _text(found), lambda: _page(found, options))


def _fit(options: Namespace) -> Fit | None:
    from dynident.estimate.storage import load_fit

    return None if options.fit is None else load_fit(options.fit)


def _from_logs(options: Namespace, robot: Robot, joints: list[str] | None, how: dict[str, Any]) -> VelocityFriction:
    from dynident.experiments.velocity import velocity_friction_from_logs

    for name in _ON_A_MACHINE:
        if getattr(options, name) not in (None, ""):
            raise InputError(f"--{name} is for runs on a machine; leave it out with --from")
    logs = logs_of(options.logs, robot, options, "validation")
    return velocity_friction_from_logs(robot, logs, joints, **how)


def _on_machine(options: Namespace, robot: Robot, joints: list[str] | None, how: dict[str, Any]) -> VelocityFriction:
    from dynident.experiments.velocity import velocity_friction
    from dynident.experiments.velocity.plan import Timing

    for name in ("columns", "window"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for logs; give some with --from")
    at = parse_positions(options.at, "--at")
    if options.plant is not None:
        _check_pose(robot, joints, at)
    check_positive(options.bandwidth, "--bandwidth")
    times = {name: getattr(options, name) for name in _TIMES if getattr(options, name) is not None}
    how |= {"speeds": parse_speeds(options.speeds), "ranges": parse_ranges(options.range)}
    how |= {"at": at, "timing": Timing(**times)}
    how |= {} if options.bandwidth is None else {"bandwidth": options.bandwidth}
    with bench(options, machine(options, robot, rate=_RATE, encoder=_COUNTS)) as made:
        found = velocity_friction(made, joints, **how)
    return dataclasses.replace(found, true=_truth(options, robot) if options.plant is None else {})


def _check_pose(robot: Robot, joints: list[str] | None, at: Mapping[str, float]) -> None:
    """On a machine of the user's own every joint that is held must be told where: nobody else knows what is around."""
    from dynident.experiments.velocity.groups import joint_groups

    groups = joint_groups(robot, joints)
    alone = set(groups[0].places) if len(groups) == 1 else set()
    named = list(zip(robot.position_names, robot.joint_names, strict=True))
    missing = [v for i, (v, j) in enumerate(named) if i not in alone and v not in at and j not in at]
    if missing:
        raise InputError(
            f"--plant: say where {', '.join(missing)} are held with --at; poses for simulated machines know nothing of "
            "what stands around yours"
        )


def _truth(options: Namespace, robot: Robot) -> Mapping[str, float]:
    """What the simulated machine has: at constant velocity friction that winds up counts as Coulomb's."""
    from dynident.plant.effects import read_effects
    from dynident.run.simulate import parse_effects

    found = {**dict.fromkeys(robot.parameter_names, 0.0), **robot.value_set(true_values(options, robot))}
    dry = {element.label: element.names["Fc"] for element in robot.elements if "Fc" in element.names}
    for effect in read_effects(robot, None if options.effects is None else parse_effects(options.effects)):
        name = dry.get(effect.label, effect.name) if effect.law == "stop" else effect.name
        found[name] = found.get(name, 0.0) + effect.value
    return found


def parse_speeds(text: str | None) -> list[float] | dict[str, list[float]] | None:
    """Speeds from ``0.1,0.5,1`` for every joint, or ``q5=1:2:3,q6=0.8:2.4``."""
    if text is None:
        return None
    example = "expected numbers such as 0.1,0.5,1, or by joint q5=1:2:3,q6=0.8:2.4"
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if parts and not any("=" in part for part in parts):
            return [float(part) for part in parts]
        found: dict[str, list[float]] = {}
        for part in parts:
            name, _, numbers = part.partition("=")
            found[name.strip()] = [float(one) for one in numbers.split(":")]
    except ValueError:
        raise InputError(f"--speeds {text}: {example}") from None
    if not found:
        raise InputError(f"--speeds {text}: {example}")
    return found


def parse_ranges(text: str | None) -> dict[str, tuple[float, float]] | None:
    """Ranges from ``q5=-1:1,q6=0:2``."""
    if text is None:
        return None
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, ends = part.partition("=")
        try:
            low, high = (float(one) for one in ends.split(":"))
        except ValueError:
            raise InputError(f"--range {part}: expected joint=lower:upper, such as q5=-1:1") from None
        found[name.strip()] = (low, high)
    return found


def _text(found: VelocityFriction) -> str:
    points = sum(len(fit.points) for fit in found.fits)
    lines = [f"Friction of {found.robot} from {points} points at constant velocity, gravity {found.gravity}", ""]
    lines += [found.table(), ""]
    for fit in found.fits:
        for k, name in enumerate(fit.group.outputs):
            chance = "" if fit.misfit.chance is None else f", chance of that {fit.misfit.chance:.2g}"
            lines.append(
                f"{name}: residual {fit.misfit.rms[k]:.3g}, scatter of a point {fit.misfit.scatter[k]:.3g}, friction "
                f"{fit.misfit.friction[k]:.3g} (RMS){chance}"
            )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)


def _page(found: VelocityFriction, options: Namespace) -> str:
    from dynident.report.velocity import velocity_html

    return velocity_html(found, command=_command(options))


def _command(options: Namespace) -> str:
    """The command that does it again."""
    words = ["dynident", "friction", options.robot]
    words += ["--from", *options.logs] if options.logs else []
    names = ("joints", "range", "fit", "friction", "columns", "window", "locked", *_ON_A_MACHINE)
    for name in dict.fromkeys(names):
        value = getattr(options, name)
        if value not in (None, ""):
            words.append(f"--{name}={value}")
    if options.gravity != "cancel":
        words.append(f"--gravity={options.gravity}")
    return shlex.join([*words, "-o", str(Path(options.output or "OUT"))])
