"""`identify_drives`: armature, damping, Coulomb friction, bias and delay of joints that follow position commands.

Linear estimates answer for each delay in a moment; which delay, and which of two ways to take rows near reversals, is
decided by what the numbers are for: the replay in a simulator that stays nearest to the measured positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dynident.arrays import Array, finite_or_none, frozen, record
from dynident.drives.doubts import check_commands, doubts_of_estimate, replay_doubts, saturation
from dynident.drives.equivalent import PlainModel, plain_model, replay_rich
from dynident.drives.linear import (
    NONNEGATIVE,
    DriveRows,
    LinearDrives,
    drive_elements,
    gain_name,
    with_gains,
    with_true_gains,
)
from dynident.drives.links import link_values
from dynident.drives.options import DrivesOptions
from dynident.drives.refinement import refine_drives
from dynident.drives.replay import STEP, ClosedLoopReplay, Commands, DriveValues, ReplayErrors, commands_of
from dynident.drives.thresholds import THRESHOLDS
from dynident.errors import DynidentError, InputError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_width import search_widths, settle_widths
from dynident.information.parameter_estimate import ParameterEstimate, text_table
from dynident.logs.log import LogError, LogSource, as_logs, log_warnings, position_gains, torque_kind
from dynident.options import keywords
from dynident.physical.fitting import physical_fit
from dynident.pipeline.identification import identify
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.signals.log_survey import survey_log
from dynident.signals.observations import observe
from dynident.signals.rows import DELAY, PREDICTION

Estimate = Callable[[float], LinearDrives]  # at a delay [s]
_SYMBOLS = {"Ia": "armature", "Fv": "damping", "Fc": "frictionloss", "bias": "bias"}


@record
class DriveEstimate(ParameterEstimate):
    """Drives of joints, for simulators.

    The parameters are Ia, Fv, Fc and the bias of each joint, with measured torque also its offset Fo; then factors of
    the controllers' gains where they were estimated; and last the delay [s]. A parameter at the bound of its sign
    counts as not determined, and so does the bias where torque was measured.

    Attributes:
        robot: The robot with the gains of its controllers; its own values are those of its file.
        kp: (n_joints,) position gains of the first log [N·m/rad or N/m]; zero where torque was measured.
        kd: (n_joints,) velocity gains [N·m·s/rad or N·s/m].
        gain_scale: (n_joints,) factors that the links' torque gives to the gains, or to measured torque.
        gain_scale_std: (n_joints,) their standard deviations; infinite where the links do not show them.
        before: ClosedLoopReplay errors of the robot file's own values.
        after: ClosedLoopReplay errors of these values.
        evaluated: Labels of the logs that errors are of.
        held_out: Whether none of them shaped the values.
        notes: What was decided, in words.
        warnings: What a reader should know.
    """

    robot: Robot = field(kw_only=True)
    kp: Array = field(kw_only=True)
    kd: Array = field(kw_only=True)
    gain_scale: Array = field(kw_only=True)
    gain_scale_std: Array = field(kw_only=True)
    before: ReplayErrors = field(kw_only=True)
    after: ReplayErrors = field(kw_only=True)
    evaluated: tuple[str, ...] = field(kw_only=True)
    held_out: bool = field(kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def delay(self) -> float:
        """Time by which commands reach the joints late [s]."""
        return self["delay"]

    @property
    def drives(self) -> DriveValues:
        """What a replay needs."""
        return values_of(self.robot, dict(zip(self.names, self.values.tolist(), strict=True)), self.delay)

    def table(self) -> str:
        """Joint by joint: armature, damping, Coulomb friction and bias with their standard deviations."""
        std = dict(zip(self.names, self.std, strict=True))
        lines = []
        for drive in drive_elements(self.robot):
            names = [*(drive.name(symbol) for symbol in NONNEGATIVE), f"bias{drive.number}"]
            lines.append((drive.joint, *(_with_std(self[name], std[name]) for name in names)))
        return text_table(("joint", "armature", "damping", "frictionloss", "bias"), lines, ())

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the verb `drives`."""
        std = dict(zip(self.names, self.std.tolist(), strict=True))
        joints = []
        for place, drive in enumerate(drive_elements(self.robot)):
            names = {drive.name(s): _SYMBOLS[s] for s in NONNEGATIVE} | {f"bias{drive.number}": "bias"}
            if drive.name("Fo") in std:
                names |= {drive.name("Fo"): "offset"}
            numbers: dict[str, float | None] = {word: self[name] for name, word in names.items()}
            spread = {word: finite_or_none(std[name]) for name, word in names.items()}
            scale, its_std = float(self.gain_scale[place]), finite_or_none(self.gain_scale_std[place])
            numbers["gain_scale"] = None if its_std is None else scale
            joints.append({"name": drive.joint, **numbers, "std": {**spread, "gain_scale": its_std}})
        return {
            "robot": self.robot.name,
            "joints": joints,
            "delay": self.delay,
            "delay_std": finite_or_none(std["delay"]),
            "replay": {
                "before": self.before.total,
                "after": self.after.total,
                "held_out": self.held_out,
                "logs": list(self.evaluated),
                "joints": {
                    drive.joint: {
                        word: {"rms": float(own.rms[k]), "mad": float(own.mad[k])}
                        for word, own in (("before", self.before), ("after", self.after))
                    }
                    for k, drive in enumerate(drive_elements(self.robot))
                },
            },
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def values_of(robot: Robot, found: Mapping[str, float], delay: float) -> DriveValues:
    """A simulated robot: the values of its file, with drives that were found."""
    drives = drive_elements(robot)
    offsets = {drive.name("Fo") for drive in drives}
    parameters, known = dict(robot.value_set()), set(robot.parameter_names) - offsets
    parameters |= {name: value for name, value in found.items() if name in known}
    bias = np.array([found.get(f"bias{drive.number}", 0.0) for drive in drives])
    gains = offset = None
    if any(gain_name(drive.number) in found for drive in drives):
        gains = np.array([found.get(gain_name(drive.number), 1.0) for drive in drives])
    if offsets & set(found):
        offset = np.array([found.get(drive.name("Fo"), 0.0) for drive in drives])
    return DriveValues(parameters, bias, delay, gains, offset)


@keywords(DrivesOptions)
def identify_drives(robot: Robot | Fit, logs: LogSource | Sequence[LogSource], options: DrivesOptions) -> DriveEstimate:
    """Identify the drives of a robot from position commands, or measured torque, and measured positions.

    Args:
        robot: The robot, whose links are those of its file unless they are to be estimated; or a fit, whose links are
            taken, and whose friction gets the viscous and Coulomb friction that replays nearest.
        logs: Logs with `target1..`, whose gains may differ, or with torque or currents; those whose role is
            "validation" evaluate the result and are not used for fitting.
        options: By name, see `DrivesOptions`.

    Raises:
        LogError, InputError: Naming log, column or option, what was expected and what to do.
    """
    given = as_logs(logs)
    train = [log for log in given if log.role == "train"]
    held_out = [log for log in given if log.role != "train"]
    if not train:
        raise InputError("there is no training log; give at least one that is not for validation")
    progress = options.progress or (lambda *_: None)
    model = None
    if isinstance(robot, Fit):
        if options.links == "estimate":
            raise InputError("links are estimated from logs with a robot; those of a fit are known")
        model = plain_model(robot)
        robot = model.robot
    kp, kd = _gains(train, robot)
    if kp is not None:
        robot = with_gains(robot, kp[0], kd[0])
    drive_elements(robot)
    if kp is not None:
        for log in given:
            check_commands(robot, log)
    _refuse_shared(train, held_out, robot)
    saturated = saturation(robot, train)
    if options.links == "estimate":
        progress("estimating the links", 0, 3)
        robot = _with_estimated_links(robot, train)
    replay = ClosedLoopReplay(robot, _stretches(train, robot, options))
    rows = DriveRows(robot, tuple(observe(log, robot) for log in train), link_values(robot), kp)
    progress("looking for the delay", 0, 3)
    smooth = rows.base(_SMOOTHING)
    scales, free = _gain_scales(rows, smooth, options.delay or 0.0), []
    if options.gains == "estimate":
        free = [drive.number for drive, std in zip(drive_elements(robot), scales[1], strict=True) if np.isfinite(std)]

    def of_all_rows(delay: float) -> LinearDrives:
        return with_true_gains(rows.solve(smooth, PREDICTION, delay, free_links=free)[0], robot)

    delay, spread, tried = options.delay or 0.0, 0.0, "as given"
    if options.delay is None:
        delay, spread, tried = _search_delay(of_all_rows, replay, robot)
    progress("estimating drives", 1, 3)
    away, late = _away_from_reversals(rows, delay, options.delay is None, free)
    near_by = _with_uncertain_delay(of_all_rows, delay, spread)
    candidates = [("all rows", delay, near_by), ("rows away from reversals", late, away)]
    if model is not None:
        candidates.append(("the fit, nearest by torque", delay, _with_own_friction(near_by, robot)))
    errors = replay.errors([values_of(robot, one.mapping(), own + _EARLY) for _, own, one in candidates])
    # Rows near reversals draw parameters aside: they are taken where friction is so unlike Coulomb's that it pays.
    near, far, *by_torque = (one.total for one in errors)
    # Where the controller is too weak for the motion, small errors grow until a replay says nothing about drives.
    motion = np.concatenate([one.positions - one.positions.mean(0) for one in replay.commands])
    telling = near < THRESHOLDS.telling_share * float(np.sqrt(np.mean(motion**2)))
    best = int(not telling or near * THRESHOLDS.worth_of_reversals > far)
    if by_torque and by_torque[0] < errors[best].total:
        best = 2
    way, delay, chosen = candidates[best]
    numbers = _parameters(robot, chosen, (kp, kd), delay)
    notes = [f"delay {1e3 * delay:.3g} ms, {tried}", f"values of {way}", *_conditions(robot, kp)]
    if options.refine:
        progress("refining by simulation", 1, 3)
        numbers, note = _refine(robot, replay, numbers)
        notes.append(note)
    if model is not None:
        progress("replaying the fit", 1, 3)
        notes.append(_what_is_lost(model, replay, numbers, by_torque[0]))
    validation = ClosedLoopReplay(robot, _stretches(held_out, robot, options)) if held_out else replay
    progress("replaying", 2, 3)
    named = dict(zip(numbers[0], numbers[2].tolist(), strict=True))
    before, after = validation.errors([values_of(robot, {}, 0.0), values_of(robot, named, named["delay"])])
    progress("replaying", 3, 3)
    scales = _gain_scales(rows, smooth, delay)
    return DriveEstimate(
        *numbers,
        robot=robot,
        kp=frozen(np.zeros(len(robot.moving)) if kp is None else kp[0]),
        kd=frozen(np.zeros(len(robot.moving)) if kp is None else kd[0]),
        gain_scale=scales[0],
        gain_scale_std=scales[1],
        before=before,
        after=after,
        evaluated=tuple(dict.fromkeys(one.label for one in validation.commands)),
        held_out=bool(held_out),
        notes=tuple(notes),
        warnings=(
            *log_warnings(given),
            *saturated,
            *doubts_of_estimate(rows, smooth, chosen, delay, scales),
            *replay_doubts(rows, chosen, delay, replay, before, after),
        ),
    )


def _with_own_friction(found: LinearDrives, robot: Robot) -> LinearDrives:
    """An estimate with the armature and friction of the robot's own values, which are uncertain as it is."""
    own = robot.value_set()
    kinds = tuple(drive.name(symbol) for drive in drive_elements(robot) for symbol in NONNEGATIVE)
    values = [own.get(name, 0.0) if name in kinds else x for name, x in found.mapping().items()]
    return found.replace(values=np.array(values))


def _what_is_lost(model: PlainModel, replay: ClosedLoopReplay, numbers: tuple[Any, ...], by_torque: float) -> str:
    """What plain friction loses in the replay of the training logs, in words."""
    named = dict(zip(numbers[0], numbers[2].tolist(), strict=True))
    values = values_of(model.robot, named, named["delay"])
    own = replay.errors([values])[0].total
    chosen = (
        f"{1e3 * own:.3g} mrad or mm rms in the replay of the training logs, {1e3 * by_torque:.3g} nearest by torque"
    )
    if not model.further:
        return f"the fit has viscous and Coulomb friction alone, and none of it is lost: {chosen}"
    which = f"viscous and Coulomb friction for {', '.join(model.further)}: {chosen}"
    try:
        courses = replay_rich(model, replay.commands, values)
    except DynidentError as error:
        return f"{which}; the fit itself cannot be replayed ({error})"
    off = np.concatenate([x - one.positions for x, one in zip(courses, replay.commands, strict=True)])
    rich = float(np.sqrt(np.mean(off**2)))
    lost = float(np.sqrt(max(own**2 - rich**2, 0.0)))
    return f"{which}, {1e3 * rich:.3g} with the friction of the fit itself; plain friction loses {1e3 * lost:.3g}"


def _stretches(logs: Sequence[LogSource], robot: Robot, options: DrivesOptions) -> list[Commands]:
    return [stretch for log in logs for stretch in commands_of(log, robot, options.horizon)]


def _gains(logs: Sequence[LogSource], robot: Robot) -> tuple[Array | None, Array]:
    """(n_logs, n_joints) gains of the controllers; no position gains where torque was measured.

    Raises:
        LogError: Where some logs have commands and others torque.
    """
    firsts = [next(iter(log.blocks())) for log in logs]
    by_commands = [torque_kind(first, robot) == "target" for first in firsts]
    if len(set(by_commands)) > 1:
        odd, other = (logs[by_commands.index(kind)] for kind in (True, False))
        raise LogError(
            odd.source,
            f"has position commands and no torque, while {other.source} has measured torque; give logs of one kind",
        )
    if not by_commands[0]:
        return None, np.zeros((len(logs), len(robot.moving)))
    found = [position_gains(first, robot) for first in firsts]
    return np.array([kp for kp, _ in found]), np.array([kd for _, kd in found])


def _conditions(robot: Robot, kp: Array | None) -> list[str]:
    """What was taken for granted, in words."""
    found = list(robot.warnings)  # among them, that a free base is held
    if kp is None:
        found.append("torque as measured; without commands the replay is driven by torque and begins again in between")
    elif (kp != kp[0]).any():
        found.append("the gains of the controllers differ between logs; the replay of each has its own")
    return found


ESTIMATED_LINKS = "estimated links"  # name of the value set
# A simulator's force acts on the half steps about the beginning of its step: commands that change there are early by
# this [s], which an estimate whose delay is found by replay must not have.
_EARLY = 0.5 * STEP
_DELAY_ROUNDS, _SETTLED_DELAY = 4, 2e-5  # of correcting the delay; the correction that does not count [s]
_SMOOTHING = 0.02  # [rad/s] of the Coulomb column on rows near reversals, as in the predictions of `identify`


def _search_delay(estimate: Estimate, replay: ClosedLoopReplay, robot: Robot) -> tuple[float, float, str]:
    """The delay whose estimate replays the training logs best, its standard deviation [s], and how it was found."""
    step = THRESHOLDS.delay_step
    seen: dict[float, float] = {}

    def try_delays(delays: Sequence[float]) -> None:
        fresh = [delay for delay in delays if delay not in seen]
        found = replay.errors([values_of(robot, estimate(delay).mapping(), delay + _EARLY) for delay in fresh])
        seen.update({delay: one.total for delay, one in zip(fresh, found, strict=True)})

    tried = [0.0, step, 2.0 * step]
    try_delays(tried)
    while min(seen, key=lambda delay: seen[delay]) >= tried[-1] - 1e-12 and tried[-1] < THRESHOLDS.largest_delay:
        tried += [tried[-1] + step, tried[-1] + 2.0 * step]
        try_delays(tried)
    for share in (0.5, 0.25, 0.125):
        best = min(seen, key=lambda delay: seen[delay])
        try_delays([max(0.0, round(best - share * step, 6)), round(best + share * step, 6)])
    best = min(seen, key=lambda delay: seen[delay])
    # Replays that are hardly further away do not distinguish delays.
    alike = [delay for delay, error in seen.items() if error < THRESHOLDS.worth_of_reversals * seen[best]]
    spread = max(0.5 * (max(alike) - min(alike)), share * step)
    return best, spread, f"with which the replay is nearest ({len(seen)} tried)"


def _gain_scales(rows: DriveRows, base: Any, delay: float) -> tuple[Array, Array]:
    """(n_joints,) factors of the gains by the links' torque, and standard deviations, infinite where not determined."""
    drives = drive_elements(rows.robot)
    found = rows.solve(base, PREDICTION, delay, free_links=[drive.number for drive in drives])[0]
    own = with_true_gains(found, rows.robot)
    known, spread = own.mapping(), dict(zip(own.names, own.std.tolist(), strict=True))
    names = [gain_name(drive.number) for drive in drives]
    scales = np.array([known.get(name, np.nan) for name in names])
    std = np.array([spread.get(name, np.inf) for name in names])
    std[~(std <= THRESHOLDS.determined_gain)] = np.inf
    std[std == 0.0] = np.inf
    return frozen(np.where(np.isfinite(std), scales, 1.0)), frozen(std)


def _away_from_reversals(
    rows: DriveRows, delay: float, is_free: bool, free_links: Sequence[int]
) -> tuple[LinearDrives, float]:
    """The estimate from rows that no reversal reaches, with widths by the data and the delay that these rows show [s].

    Args:
        rows: The equations.
        delay: With which to begin [s].
        is_free: Whether it may be another one.
        free_links: Numbers of the joints whose gains are estimated.
    """
    for _ in range(_DELAY_ROUNDS):
        gather, base = rows.gather(delay), rows.base(None)
        settled = settle_widths(base, search_widths(rows.observations, base, gather), gather)
        found = rows.solve(settled.base, settled.rule, delay, free_links=free_links)[0]
        late = found.mapping()[DELAY]
        if not is_free or abs(late) < _SETTLED_DELAY or not 0.0 <= delay - late <= THRESHOLDS.largest_delay:
            break
        delay -= late
    # The delay that is found is what was tried less the coefficient, which is nearly zero now; one that is given is
    # certain.
    turn = np.array([float(-is_free if name == DELAY else 1.0) for name in found.names])
    found = found.replace(values=turn * found.values, covariance=turn[:, None] * found.covariance * turn)
    return with_true_gains(found, rows.robot), delay


def _with_estimated_links(robot: Robot, logs: Sequence[LogSource]) -> Robot:
    """The robot with links that the logs show, physically consistent, and all else as its file has it."""
    found = physical_fit(identify(robot, logs, friction="basic", check="off"))
    links = {f"{symbol}{joint.number}" for joint in robot.joints for symbol in LINK_SYMBOLS}
    values = {name: value for name, value in found.robot_values.items() if name in links}
    return robot.with_values(ESTIMATED_LINKS, {**robot.value_set(), **values})


def _with_uncertain_delay(estimate: Estimate, delay: float, spread: float) -> LinearDrives:
    """The estimate at a delay, with what the standard deviation of the delay makes uncertain.

    With J the slope of the values over the delay, and s the standard deviation of the delay, the covariance is that at
    a known delay plus s^2 [J; 1] [J; 1]'. The delay stands last, as what it lacks: zero.
    """
    found = estimate(delay)
    change = np.zeros(len(found.values) + 1)
    if spread > 0.0:
        earlier = max(0.0, delay - spread)
        slope = (estimate(delay + spread).values - estimate(earlier).values) / (delay + spread - earlier)
        change = spread * np.append(slope, 1.0)
    covariance = np.outer(change, change)
    covariance[:-1, :-1] += found.covariance
    return found.replace(names=(*found.names, DELAY), values=np.append(found.values, 0.0), covariance=covariance)


def _refuse_shared(train: Sequence[LogSource], held_out: Sequence[LogSource], robot: Robot) -> None:
    """Refuse samples that count twice, or evaluate what they were fitted to."""
    known = {log.digest for log in train}
    if len(known) == len(train) and not any(log.digest in known for log in held_out):
        return  # no second pass over the logs
    spans = [(log, found.start, found.stop) for log in (*train, *held_out) for found in [survey_log(log, robot)]]
    for place, (log, start, stop) in enumerate(spans):
        for other, begin, end in spans[: min(place, len(train))]:
            if log.digest == other.digest and start < end and begin < stop:
                if place < len(train):
                    raise InputError(f"{log.source}: is given twice; data that counts twice looks too certain")
                raise InputError(
                    f"{log.label}: is a training log too; a validation log must not be used for training; remove it "
                    "from one of the two lists"
                )


def _refine(robot: Robot, replay: ClosedLoopReplay, numbers: tuple[Any, ...]) -> tuple[tuple[Any, ...], str]:
    """Names, units, values, covariance and what is determined after a refinement, and what came of it."""
    names, units, values, covariance, determined = numbers
    place = {
        name: k
        for k, drive in enumerate(drive_elements(robot))
        for name in (*drive.element.names.values(), f"bias{drive.number}", gain_name(drive.number))
    }

    def candidate(x: Array) -> DriveValues:
        return values_of(robot, dict(zip(names, x.tolist(), strict=True)), float(x[-1]))

    least = np.array([-np.inf if name.startswith(("bias", "Fo")) else 0.0 for name in names])
    joints = [place.get(name) for name in names]
    found = refine_drives(robot, replay.commands, values, covariance, joints, least, candidate)
    errors = f"{1e3 * found.after:.3g} against {1e3 * found.before:.3g} mrad or mm on held-out parts"
    if found.after >= found.before:
        return numbers, f"the refinement is not kept: its replay error is {errors}"
    return (names, units, found.values, found.covariance, determined), f"refined by simulation: replay error {errors}"


def _parameters(robot: Robot, found: LinearDrives, gains: tuple[Array | None, Array], delay: float) -> tuple[Any, ...]:
    """Names, units, values, covariance and what is determined, the delay last."""
    names, units = [], []
    drives, (kp, kd) = drive_elements(robot), gains
    for drive in drives:
        turn, torque = ("m", "N") if drive.prismatic else ("rad", "N·m")
        names += [*(drive.name(symbol) for symbol in NONNEGATIVE), f"bias{drive.number}"]
        units += ["kg" if drive.prismatic else "kg·m²", f"{torque}·s/{turn}", torque, turn]
        if kp is None:
            names.append(drive.name("Fo"))
            units.append(torque)
    scaled = [gain_name(drive.number) for drive in drives if gain_name(drive.number) in found.names]
    names, units = [*names, *scaled, DELAY], [*units, *("" for _ in scaled), "s"]
    n = len(names)
    own = [k for k, name in enumerate(names) if name in found.names]
    place = [found.names.index(names[k]) for k in own]
    values, covariance = np.zeros(n), np.zeros((n, n))
    values[own], covariance[np.ix_(own, own)] = found.values[place], found.covariance[np.ix_(place, place)]
    values[-1] = delay
    if kp is not None:
        # A loop that is closed x later than one without delay shows x kp less damping and x kd less inertia, and
        # commands that are x later.
        late_loop = np.zeros(n)
        for drive, position_gain, velocity_gain in zip(drives, kp.mean(0), kd.mean(0), strict=True):
            late_loop[names.index(drive.name("Fv"))] = -position_gain * THRESHOLDS.loop_delay
            late_loop[names.index(drive.name("Ia"))] = -velocity_gain * THRESHOLDS.loop_delay
        late_loop[-1] = THRESHOLDS.loop_delay
        covariance += np.outer(late_loop, late_loop)
    left_out = set(found.at_bound) | {name for name in names[:-1] if name not in found.names}
    determined = np.array([*(name not in left_out for name in names[:-1]), np.isfinite(covariance[-1, -1])])
    covariance[~np.isfinite(covariance)] = 0.0
    return tuple(names), tuple(units), values, covariance, determined


def _with_std(value: float, std: float) -> str:
    return f"{value:.4g} ± {std:.2g}" if np.isfinite(std) else f"{value:.4g}"
