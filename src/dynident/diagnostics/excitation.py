"""Whether the motion of logs can tell the parameters: how many equations, of which rank, and from which motion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.diagnostics.trial import Left, Sample, Trial
from dynident.estimate.linearization import RANK_TOLERANCE
from dynident.estimate.records import Finding, Verdict, percent
from dynident.identifiability.base import base_parameters
from dynident.identifiability.excitation_quality import excitation, fourier_basis
from dynident.robot.placeholders import believed_limits
from dynident.signals.observations import Observations
from dynident.signals.rows import filter_time, row_step

ENOUGH = 50  # equations per parameter, as a rule (Gautier et al. 1995)
LEAST = 5  # with fewer, the fit follows the noise
_HIGH = 300.0  # condition: a plain polynomial motion has it, a good one a tenth of it
_ONE_WAY = 0.03  # share of its motion that a joint must make in either direction
_ALIKE = 0.98  # correlation of two joints' motions
_HARMONICS, _TRIES, _MOMENTS = 5, 24, 200  # of the motion that is proposed
_INSIDE = 0.9  # share of limits that a proposed motion uses
_NAMED = 12  # parameters named in a message


def excitation_findings(trial: Trial, samples: Sequence[Sample], left: Left) -> list[Finding]:
    """The items about motion: rank, condition, one-way motion, joints that move alike."""
    seen = _Rank.of(trial, samples, left)
    one_way, alike = _one_way(trial, samples), _alike(trial, samples)
    poor = "warn" in (one_way.verdict, alike.verdict)
    return [_rank(trial, seen), _condition(trial, samples, left, seen, poor), one_way, alike]


def equations_finding(
    trial: Trial, observations: Sequence[Observations], samples: Sequence[Sample]
) -> tuple[Finding, float]:
    """Whether there are enough equations for the parameters, and how many there are for each."""
    count = 0.0
    for one, sample in zip(observations, samples, strict=True):
        lost, raster = filter_time(one), one.survey.grid.rate
        seconds = sum(max(0.0, stretch / raster - lost) for stretch in one.survey.stretches)
        count += seconds * raster / one.step / row_step(one) * float(sample.moving.mean(0).sum())
    each = count / max(trial.base.n, 1)
    words = f"{count:.0f} equations in motion for {trial.base.n} parameters, {each:.0f} for each"
    if each < LEAST:
        names = ", ".join(one.log.label for one in observations)
        remedy = f"at least {LEAST} per parameter are needed: use longer logs or fewer terms"
        return Finding("equations", "stop", f"{names}: gives {words}; {remedy}"), each
    if each < ENOUGH:
        return Finding("equations", "warn", f"{words}; {ENOUGH} are the rule: use longer logs"), each
    return Finding("equations", "ok", words), each


@dataclass(frozen=True, eq=False)
class _Rank:
    """What equations can tell: singular values with columns scaled to one, parameters that are left open."""

    singular: Array
    rank: int
    open_ones: tuple[str, ...]

    @classmethod
    @on_one_thread
    def of(cls, trial: Trial, samples: Sequence[Sample], left: Left) -> _Rank:
        n = len(trial.robot.joint_names)
        one = np.eye(n)
        rows, _ = trial.conditioned([(trial.seen(sample, one, np.zeros(n)), one) for sample in samples], left)
        sizes = np.linalg.norm(rows, axis=0)
        _, singular, Vt = np.linalg.svd(rows / np.maximum(sizes, 1e-300), full_matrices=False)
        rank = int(np.count_nonzero(singular > RANK_TOLERANCE * singular[0]))
        loose = (Vt[rank:] ** 2).sum(0) > 1e-6
        return cls(singular, rank, tuple(name for name, open_ in zip(trial.base.names, loose, strict=True) if open_))

    @property
    def condition(self) -> float:
        """Of the determined directions."""
        return float(self.singular[0] / self.singular[self.rank - 1]) if self.rank else np.inf


def _rank(trial: Trial, seen: _Rank) -> Finding:
    if seen.rank == trial.base.n:
        return Finding("rank", "ok", f"the motion determines all {trial.base.n} parameters")
    names = ", ".join(seen.open_ones[:_NAMED]) + (" .." if len(seen.open_ones) > _NAMED else "")
    words = f"the motion determines {seen.rank} of {trial.base.n} parameters; left open: {names}"
    return Finding("rank", "warn", f"{words}; move all joints, fast and slow, or leave out their terms")


def _condition(trial: Trial, samples: Sequence[Sample], left: Left, seen: _Rank, poor: bool) -> Finding:
    """Condition of the equations and, where that is high or the motion poor, that of a better motion beside it."""
    words = f"the condition of the equations is {seen.condition:.3g}"
    if seen.condition < _HIGH and not poor:
        return Finding("condition", "ok", words)
    better, motion = proposed_motion(trial, samples, left)
    links = base_parameters(trial.robot, "rigid")
    own = np.concatenate([np.stack([one.q, one.dq, one.ddq]) for one in samples], axis=1)
    raw = [excitation(links, *each).raw_condition for each in (own, motion)]
    words += f" (of the links alone and unscaled {raw[0]:.3g}), where below {_HIGH:g} is wanted"
    if better < 0.7 * seen.condition:
        words += f"; {_HARMONICS} harmonics within the limits reach about {better:.3g} ({raw[1]:.3g})"
    verdict: Verdict = "warn" if seen.condition >= _HIGH else "ok"
    return Finding("condition", verdict, f"{words}: dynident excite designs such a motion")


@on_one_thread
def proposed_motion(trial: Trial, samples: Sequence[Sample], left: Left) -> tuple[float, Array]:
    """The best of some random Fourier motions within the robot's limits or, without, the ranges of the logs.

    Returns:
        Its condition, and (3, n_moments, n_joints): positions, speeds and accelerations.
    """
    middle, half, speed = _room(trial, samples)
    random = np.random.default_rng(0)
    basis = fourier_basis(np.linspace(0.0, 1.0, _MOMENTS, endpoint=False), _HARMONICS, 1.0)
    found: list[tuple[float, Array]] = []
    for _ in range(_TRIES):
        weights = random.standard_normal((len(middle), basis[0].shape[1]))
        course = [part @ weights.T for part in basis]
        scale = half / np.maximum(np.abs(course[0]).max(0), 1e-12)
        course = [scale * part for part in course]
        hurry = float(np.min(speed / np.maximum(np.abs(course[1]).max(0), 1e-12)))  # most periods per second
        hurry *= float(random.uniform(0.2, 1.0))
        motion = np.stack([course[0] + middle, hurry * course[1], hurry**2 * course[2]])
        made = Sample(
            q=motion[0],
            dq=motion[1],
            ddq=motion[2],
            tau=np.zeros_like(course[0]),
            late=np.zeros((0, *course[0].shape)),
            around=np.zeros((2, 3, *course[0].shape)),
            rest_speed=samples[0].rest_speed,
        )
        found.append((_Rank.of(trial, [made], left).condition, motion))
    return min(found, key=lambda one: one[0])


def _room(trial: Trial, samples: Sequence[Sample]) -> tuple[Array, Array, Array]:
    """Where joints may move, (n_joints,) each: middle, half of the range, largest speed."""
    q, dq = (np.concatenate([getattr(one, name) for one in samples]) for name in ("q", "dq"))
    lowest, highest, speed = q.min(0), q.max(0), np.abs(dq).max(0)
    for i, limits in enumerate(believed_limits(trial.robot)):
        if limits.lower is not None and limits.upper is not None and limits.velocity is not None:
            lowest[i], highest[i], speed[i] = limits.lower, limits.upper, limits.velocity
    return 0.5 * (lowest + highest), _INSIDE * 0.5 * (highest - lowest), _INSIDE * speed


def _one_way(trial: Trial, samples: Sequence[Sample]) -> Finding:
    dq = np.concatenate([one.dq for one in samples])
    moving = np.concatenate([one.moving for one in samples])
    forward = ((dq > 0.0) & moving).sum(0) / np.maximum(moving.sum(0), 1)
    moves = [bool(own.any()) for own in moving.T]
    joints = [
        f"{name} ({percent(share)} forward)"
        for name, share, at_all in zip(trial.robot.joint_names, forward, moves, strict=True)
        if at_all and min(share, 1.0 - share) < _ONE_WAY
    ]
    if not joints:
        return Finding("directions", "ok", "every joint that moves does so both ways")
    words = f"joints that turn one way only: {', '.join(joints)}"
    why = "dry friction and offset cannot be told apart there"
    return Finding("directions", "warn", f"{words}; {why}: let them come back as fast")


def _alike(trial: Trial, samples: Sequence[Sample]) -> Finding:
    dq = np.concatenate([one.dq for one in samples])
    size = np.linalg.norm(dq, axis=0)
    pairs = []
    for a, b in itertools.combinations(range(len(size)), 2):
        if min(size[a], size[b]) > 0.0 and abs(dq[:, a] @ dq[:, b]) > _ALIKE * size[a] * size[b]:
            pairs.append(f"{trial.robot.joint_names[a]} and {trial.robot.joint_names[b]}")
    if not pairs:
        return Finding("independence", "ok", "no two joints move alike")
    shown = "; ".join(pairs[:6]) + (" .." if len(pairs) > 6 else "")
    remedy = "give each joint its own frequencies (dynident excite)"
    return Finding("independence", "warn", f"joints that move alike all the time: {shown}; {remedy}")
