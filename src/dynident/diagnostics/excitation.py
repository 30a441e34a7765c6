"""Whether the motion of logs determines the parameters: how many equations, of which rank, and from which motion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.trial import Trial, TrialFit, TrialSamples
from dynident.errors import InputError, SingularError
from dynident.estimate.records import Diagnostic, percent
from dynident.identifiability.base import base_parameters
from dynident.identifiability.excitation_quality import excitation, fourier_basis
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.robot.placeholders import believed_limits
from dynident.signals.observations import Observations
from dynident.signals.rows import filter_time, row_step

_HARMONICS, _TRIES, _N_SAMPLES = 5, 24, 200  # of the motion that is proposed
_INSIDE = 0.9  # share of limits that a proposed motion uses
_MOST_NAMES = 12  # of parameters, in a message


def diagnose_excitation(trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit) -> list[Diagnostic]:
    """The diagnostics of the motion: rank, condition, one-way motion, joints that move alike."""
    condition, rank, undetermined = _rank_of(trial, samples, fit)
    high = condition >= ENOUGH.max_condition or rank < trial.base.n
    one_way, alike = _diagnose_directions(trial, samples), _diagnose_independence(trial, samples, high)
    poor = "warn" in (one_way.severity, alike.severity)
    return [
        _diagnose_rank(trial, rank, undetermined),
        _diagnose_condition(trial, samples, fit, condition, poor),
        one_way,
        alike,
    ]


def diagnose_equations(
    trial: Trial, observations: Sequence[Observations], samples: Sequence[TrialSamples], fit: TrialFit
) -> tuple[Diagnostic, float]:
    """Whether there are enough equations for the parameters that the motion shows, and how many there are for each."""
    count = 0.0
    for log, own in zip(observations, samples, strict=True):
        lost, raster = filter_time(log), log.survey.grid.rate
        seconds = sum(max(0.0, stretch / raster - lost) for stretch in log.survey.stretches)
        count += seconds * raster / log.step / row_step(log) * float(own.moving.mean(0).sum())
    shown = _shown_parameters(trial, samples, fit)
    each = count / max(shown, 1)
    words = f"{count:.0f} equations in motion for {shown} parameters, {each:.0f} for each"
    if each < ENOUGH.min_equations:
        names = ", ".join(log.log.label for log in observations)
        remedy = f"at least {ENOUGH.min_equations} per parameter are needed: use longer logs or fewer terms"
        return Diagnostic("equations", "stop", f"{names}: gives {words}; {remedy}"), each
    if each < ENOUGH.recommended_equations:
        return Diagnostic(
            "equations", "warn", f"{words}; {ENOUGH.recommended_equations} are the rule: use longer logs"
        ), each
    return Diagnostic("equations", "ok", words), each


def _shown_parameters(trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit) -> int:
    """How many parameters the joints that move could determine, however long they moved: held ones show few."""
    moves = np.asarray(np.concatenate([one.moving for one in samples]).any(0))
    if moves.all() or not moves.any() or trial.robot.closure is not None:  # loops close along few random positions
        return trial.base.n
    random = np.random.default_rng(0)
    q, dq, ddq = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq", "ddq"))
    lowest, highest = q.min(0), q.max(0)
    size = (_N_SAMPLES, len(moves))
    motion = (
        np.where(moves, random.uniform(lowest, highest, size), q.mean(0)),
        *(np.where(moves, random.normal(size=size) * np.sqrt(np.mean(x**2, axis=0)), 0.0) for x in (dq, ddq)),
    )
    return max(_rank_of(trial, [_as_samples(np.stack(motion), samples[0].rest_velocity)], fit)[1], 1)


def _as_samples(motion: Array, rest_velocity: float) -> TrialSamples:
    """Samples of a motion without torque, (3, n_samples, n_joints): positions, velocities and accelerations."""
    return TrialSamples(
        q=motion[0],
        dq=motion[1],
        ddq=motion[2],
        tau=np.zeros_like(motion[0]),
        late=np.zeros((0, *motion[0].shape)),
        around=np.zeros((2, *motion.shape)),
        rest_velocity=rest_velocity,
    )


@on_one_thread
def _rank_of(trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit) -> tuple[float, int, tuple[str, ...]]:
    """Condition of the determined directions with columns scaled to one, rank, parameters that are not determined."""
    rows = trial.weighted_rows(trial.rows_as_logged(samples), fit)
    sizes = np.linalg.norm(rows, axis=0)
    _, singular, Vt = np.linalg.svd(rows / np.maximum(sizes, 1e-300), full_matrices=False)
    rank = int(np.count_nonzero(singular > ENOUGH.noisy_rank * singular[0]))
    loose = (Vt[rank:] ** 2).sum(0) > 1e-6
    condition = float(singular[0] / singular[rank - 1]) if rank else np.inf
    return condition, rank, tuple(name for name, is_loose in zip(trial.base.names, loose, strict=True) if is_loose)


def _diagnose_rank(trial: Trial, rank: int, undetermined: tuple[str, ...]) -> Diagnostic:
    if rank == trial.base.n:
        return Diagnostic("rank", "ok", f"the motion determines all {trial.base.n} parameters")
    names = ", ".join(undetermined[:_MOST_NAMES]) + (" .." if len(undetermined) > _MOST_NAMES else "")
    words = f"the motion determines {rank} of {trial.base.n} parameters; left open: {names}"
    return Diagnostic("rank", "warn", f"{words}; move all joints, fast and slow, or leave out their terms")


def _diagnose_condition(
    trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit, condition: float, poor: bool
) -> Diagnostic:
    """Condition of the equations and, where that is high or the motion poor, that of a better motion beside it."""
    words = f"the condition of the equations is {condition:.3g}"
    high = condition >= ENOUGH.max_condition
    if not high and not poor:
        return Diagnostic("condition", "ok", words)
    proposed = proposed_motion(trial, samples, fit)
    links = base_parameters(trial.robot, "rigid")
    own = excitation(links, *(np.concatenate([getattr(one, key) for one in samples]) for key in ("q", "dq", "ddq")))
    words += f" (of the links alone and unscaled {own.raw_condition:.3g})"
    words += f", where below {ENOUGH.max_condition:g} is wanted"
    if trial.base.is_faint:
        return Diagnostic("condition", "warn" if high else "ok", f"{words}: {trial.base.warnings[0]}")
    if proposed is not None and proposed[0] < 0.7 * condition:
        better, raw = proposed[0], excitation(links, *proposed[1]).raw_condition
        words += f"; {_HARMONICS} harmonics within the limits reach about {better:.3g} ({raw:.3g})"
    return Diagnostic("condition", "warn" if high else "ok", f"{words}: dynident excite designs such a motion")


@on_one_thread
def proposed_motion(trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit) -> tuple[float, Array] | None:
    """The best of some random Fourier motions within the robot's limits or, without, the ranges of the logs.

    Returns:
        Its condition, and (3, n_samples, n_joints): positions, velocities and accelerations. None where loops could be
        closed along no motion that was tried.
    """
    middle, half, velocity = _room(trial, samples)
    random = np.random.default_rng(0)
    basis = fourier_basis(np.linspace(0.0, 1.0, _N_SAMPLES, endpoint=False), _HARMONICS, 1.0)
    found: list[tuple[float, Array]] = []
    for _ in range(_TRIES):
        weights = random.standard_normal((len(middle), basis[0].shape[1]))
        course = [part @ weights.T for part in basis]
        scale = half / np.maximum(np.abs(course[0]).max(0), 1e-12)
        course = [scale * part for part in course]
        hurry = float(np.min(velocity / np.maximum(np.abs(course[1]).max(0), 1e-12)))  # most periods per second
        hurry *= float(random.uniform(0.2, 1.0))
        motion = np.stack([course[0] + middle, hurry * course[1], hurry**2 * course[2]])
        made = _as_samples(motion, samples[0].rest_velocity)
        try:
            found.append((_rank_of(trial, [made], fit)[0], motion))
        except (InputError, SingularError):
            if trial.robot.closure is None:
                raise
    return min(found, key=lambda one: one[0], default=None)


def _room(trial: Trial, samples: Sequence[TrialSamples]) -> tuple[Array, Array, Array]:
    """Where joints may move, (n_joints,) each: middle, half of the range, largest velocity."""
    q, dq = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq"))
    lowest, highest, velocity = q.min(0), q.max(0), np.abs(dq).max(0)
    for i, limits in enumerate(believed_limits(trial.robot)):
        if limits.lower is not None and limits.upper is not None and limits.velocity is not None:
            lowest[i], highest[i], velocity[i] = limits.lower, limits.upper, limits.velocity
    return 0.5 * (lowest + highest), _INSIDE * 0.5 * (highest - lowest), _INSIDE * velocity


def _diagnose_directions(trial: Trial, samples: Sequence[TrialSamples]) -> Diagnostic:
    dq = np.concatenate([one.dq for one in samples])
    moving = np.concatenate([one.moving for one in samples])
    forward = ((dq > 0.0) & moving).sum(0) / np.maximum(moving.sum(0), 1)
    moves = [bool(own.any()) for own in moving.T]
    joints = [
        f"{name} ({percent(share)} forward)"
        for name, share, at_all in zip(trial.robot.joint_names, forward, moves, strict=True)
        if at_all and min(share, 1.0 - share) < THRESHOLDS.one_way_share
    ]
    if not joints:
        return Diagnostic("directions", "ok", "every joint that moves does so both ways")
    words = f"joints that turn one way only: {', '.join(joints)}"
    why = "dry friction and offset cannot be distinguished there"
    return Diagnostic("directions", "warn", f"{words}; {why}: let them come back as fast")


def _diagnose_independence(trial: Trial, samples: Sequence[TrialSamples], high: bool) -> Diagnostic:
    """Joints that move alike: a fault where the equations suffer from it, `high` condition or a rank that lacks.

    Joints whose motion is the same but for noise were given the same motion.
    """
    dq = np.concatenate([one.dq for one in samples])
    size = np.linalg.norm(dq, axis=0)
    pairs, same = [], False
    for a, b in itertools.combinations(range(len(size)), 2):
        alike = abs(dq[:, a] @ dq[:, b]) / max(size[a] * size[b], 1e-300)
        if alike > THRESHOLDS.alike_correlation:
            pairs.append(f"{trial.robot.joint_names[a]} and {trial.robot.joint_names[b]}")
            same = same or alike > THRESHOLDS.same_motion_correlation
    if not pairs:
        return Diagnostic("independence", "ok", "no two joints move alike")
    shown = "; ".join(pairs[:6]) + (" .." if len(pairs) > 6 else "")
    if not (high or same):
        return Diagnostic("independence", "ok", f"{shown} move alike, and the equations do not suffer from it")
    remedy = "give each joint its own frequencies (dynident excite)"
    return Diagnostic("independence", "warn", f"joints that move alike all the time: {shown}; {remedy}")
