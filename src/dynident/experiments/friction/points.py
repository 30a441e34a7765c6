"""Friction at one velocity: the torque of a steady stretch without what gravity does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import resolve_terms
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION as FRICTION_TERMS
from dynident.estimate.prediction import TorqueModel
from dynident.experiments.bench import Samples
from dynident.experiments.options import Gravity
from dynident.experiments.thresholds import FRICTION
from dynident.robot.model import Robot

BLOCKS = 8  # parts of a stretch whose means tell the scatter
FEWEST_SAMPLES = 5  # in each of them
_LOCAL = 0.02  # [s] over which the velocity of the moment is looked at
_COUNTS = 10.0  # steps of the encoder that a joint moves meanwhile, at least
_SMOOTH = 0.1  # [s] over which velocity and acceleration are reported from positions


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples at a velocity that is meant to be constant.

    Attributes:
        run: Name of the run or log.
        time: (m,) [s].
        q: (m, n) positions of the joints under test [rad or m].
        tau: (m, n) torque at their actuated coordinates [N·m or N], without gravity where that is known.
        rigid: (2, m, n, p) torque of the links per unit of their parameters, from every other sample of the positions
            and from those between; None where it is known and in none of `tau`.
        dq: (m, n) velocities of the joints; None where only their mean is looked at.
    """

    run: str
    time: Array
    q: Array
    tau: Array
    rigid: Array | None = None
    dq: Array | None = None

    @property
    def velocity(self) -> Array:
        """(n,) slope of the positions: velocities that sensors tell are biased on many machines."""
        t = self.time - self.time.mean()
        return np.asarray(t @ self.q / (t @ t))

    def block_means(self, blocks: Sequence[Samples | Mask]) -> tuple[Array, Array | None, Array | None]:
        """Means over some blocks of samples: torque (k, n), torque of the links (2, k, n, p), velocities (k, n)."""
        tau = np.array([self.tau[block].mean(axis=0) for block in blocks])
        rigid = None if self.rigid is None else np.stack([self.rigid[:, b].mean(axis=1) for b in blocks], axis=1)
        return tau, rigid, None if self.dq is None else np.array([self.dq[block].mean(axis=0) for block in blocks])


@record
class Point:
    """Friction at one velocity.

    Attributes:
        run: Name of the run or log.
        velocity: (n,) joint velocities [rad/s or m/s].
        blocks: (k, n) friction at the actuated coordinates in parts of the stretch, or on repeated passes [N·m or N].
        odd: Whether it is half the difference of both directions: then friction at the opposite velocity is the
            opposite, and an offset has canceled with gravity.
        seconds: Time that was measured.
        rigid: (2, k, n, p) torque of the links in each part per unit of their parameters; None for none.
        dq: (k, n) velocities of the joints in each part; None where only their mean is known.
        doubt: (n, r) torque of the links that may be left in the mean, in r independent directions of unit variance.
        level: (n,) RMS torque that was measured, gravity included; zero where it is not known.
    """

    run: str
    velocity: Array
    blocks: Array
    odd: bool
    seconds: float
    rigid: Array | None = None
    dq: Array | None = None
    doubt: Array | None = None
    level: Array | None = None

    def without(self, chi: Array, root: Array) -> Point:
        """The same without the torque of the links.

        Args:
            chi: (p,) their parameters.
            root: (p, r) root of the covariance of these.
        """
        if self.rigid is None:
            return self
        rigid = self.rigid.mean(axis=0)
        return replace(self, blocks=self.blocks - rigid @ chi, rigid=None, doubt=rigid.mean(axis=0) @ root)

    @property
    def torque(self) -> Array:
        """(n,) mean friction."""
        return np.asarray(self.blocks.mean(axis=0))

    @property
    def scatter(self) -> Array:
        """(n,) standard deviation of the parts."""
        return np.asarray(self.blocks.std(axis=0, ddof=1))

    @property
    def std(self) -> Array:
        """(n,) standard deviation of the mean."""
        return np.asarray(self.scatter / np.sqrt(len(self.blocks)))

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "run": self.run,
            "velocity": self.velocity.tolist(),
            "friction": self.torque.tolist(),
            "scatter": self.scatter.tolist(),
            "std": self.std.tolist(),
            "both_ways": self.odd,
            "seconds": self.seconds,
        }


def derivatives(time: Array, q: Array) -> tuple[Array, Array]:
    """Velocities and accelerations of positions (m, n) at even times, smoothed over a tenth of a second."""
    kernel, step = _kernel(time)
    first, second = np.gradient(kernel, step), np.diff(kernel, 2, prepend=0.0, append=0.0) / step**2
    return _convolve(q, first), _convolve(q, second)


def motion_between(time: Array, q: Array, inside: Mask, first: int) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations inside a window, (m, n) each, from every other sample of the positions.

    Args:
        time: (m_all,) even times [s].
        q: (m_all, n) positions.
        inside: (m_all,) the window.
        first: 0 or 1: the first sample that is used.
    """
    own = slice(first, None, 2)
    signals = (smooth(time[own], q[own]), *derivatives(time[own], q[own]))
    found = [
        np.stack([np.interp(time[inside], time[own], x) for x in own_signals.T], axis=1) for own_signals in signals
    ]
    return found[0], found[1], found[2]


def smooth(time: Array, x: Array) -> Array:
    """Signals (m, n) at even times, smoothed as `derivatives` smooths: what belongs together stays together."""
    return _convolve(x, _kernel(time)[0])


def _kernel(time: Array) -> tuple[Array, float]:
    """Weights of the smoothing, and the time between samples [s]."""
    step = (time[-1] - time[0]) / (len(time) - 1)
    kernel = np.hanning(2 * max(1, round(0.5 * _SMOOTH / step)) + 3)  # odd, so that nothing is late
    return np.pad(kernel, 1) / kernel.sum(), float(step)


def _convolve(x: Array, kernel: Array) -> Array:
    padded = np.pad(x, ((len(kernel), len(kernel)), (0, 0)), mode="edge")
    return np.stack([np.convolve(own, kernel, mode="same") for own in padded.T], axis=1)[len(kernel) : -len(kernel)]


def settling(time: Array, dq: Array) -> tuple[float, bool]:
    """When velocities (m, n) have settled, and whether they have at all.

    A velocity has settled when it stays as near to its last value as it is in the last third, or within two per cent.
    What it changes there counts as ripple of a steady motion, unless it is much and dies away from third to third.

    Returns:
        Seconds from the first sample; and False where it is still dying away at the end.
    """
    first, middle, last = (dq[k * len(dq) // 3 : (k + 1) * len(dq) // 3] for k in range(3))
    mean, left = last.mean(axis=0), last.std(axis=0)
    near = np.maximum(FRICTION.settled_share * np.abs(mean), FRICTION.ripple_ratio * left)
    off = np.flatnonzero((np.abs(dq - mean) > near).any(axis=1))
    seconds = float(time[min(off[-1] + 1, len(time) - 1)] - time[0]) if len(off) else 0.0
    swings = (left > FRICTION.swing_share * np.abs(mean)) & (left < FRICTION.calming_share * middle.std(axis=0))
    return seconds, not (swings & (middle.std(axis=0) < FRICTION.calming_share * first.std(axis=0))).any()


def unsteady(stretch: Stretch, wanted: Array, names: Sequence[str]) -> str:
    """Why a stretch is not one of constant velocity; empty if it is.

    Args:
        stretch: The samples.
        wanted: (n,) velocities that were asked for.
        names: Of the joints.
    """
    if len(stretch.time) < BLOCKS * FEWEST_SAMPLES:
        return f"has {len(stretch.time)} samples at constant velocity; at least {BLOCKS * FEWEST_SAMPLES} are needed"
    rate = (len(stretch.time) - 1) / (stretch.time[-1] - stretch.time[0])
    for k, (name, mean) in enumerate(zip(names, stretch.velocity, strict=True)):
        if abs(mean) < FRICTION.stuck_share * abs(wanted[k]) or mean * wanted[k] < 0.0:
            return f"{name} does not move: {mean:.2g} instead of {wanted[k]:.3g}"
        q = stretch.q[:, k]
        step = max(round(_LOCAL * rate), int(np.ceil(_COUNTS * _resolution(q) / abs(mean) * rate)), 1)
        step = min(step, len(q) // 4)
        local = (q[step:] - q[:-step]) * rate / step
        apart = np.abs(local / mean - 1.0) > FRICTION.unsteady_share
        if apart.mean() > FRICTION.unsteady_time_share:
            return (
                f"{name} does not keep its velocity: between {local.min():.2g} and {local.max():.2g} instead of "
                f"{mean:.2g} (sticks and slips, or takes longer to settle)"
            )
    return ""


def _resolution(q: Array) -> float:
    """Step of the encoder: the least change between samples that is more than rounding."""
    changes = np.abs(np.diff(q))
    changes = changes[changes > 1e-9]
    return float(changes.min(initial=np.inf)) if len(changes) < len(q) - 1 else 0.0


def one_way(stretch: Stretch) -> Point:
    """Friction of a stretch whose gravity is known or none."""
    seconds = float(stretch.time[-1] - stretch.time[0])
    tau, rigid, dq = stretch.block_means(np.array_split(np.arange(len(stretch.time)), BLOCKS))
    return Point(stretch.run, stretch.velocity, tau, False, seconds, rigid, dq, level=_level(stretch))


def _level(*stretches: Stretch) -> Array:
    """(n,) RMS torque of some stretches."""
    return np.asarray(np.sqrt(np.mean(np.concatenate([one.tau for one in stretches]) ** 2, axis=0)))


def noise_floor(points: Sequence[Point], share: float) -> Array:
    """(n,) noise that is always there: a share of the friction, and rounding of all torque that was measured."""
    size = np.sqrt(np.mean([one.torque**2 for one in points], axis=0))
    level = np.max([np.zeros(len(one.velocity)) if one.level is None else one.level for one in points], axis=0)
    return np.asarray(np.maximum(share * size, FRICTION.rounding_share * level) + 1e-12)


def both_ways(there: Stretch, back: Stretch, fewest: int = FEWEST_SAMPLES) -> Point | None:
    """Half the difference of torque there and back, position by position.

    Gravity, offset and the squares of velocities are the same on both ways and cancel; friction changes its sign. What
    does not cancel, since joints that are held give way and velocities still change, is in the torque of the links.

    Args:
        there: One way.
        back: The other, over the same positions.
        fewest: Samples of each that every part of the positions must have.

    Returns:
        The point at the velocity of the way there; None where the stretches share too few positions.
    """
    line = there.velocity / np.linalg.norm(there.velocity)
    along = [one.q @ line for one in (there, back)]
    low, high = (f(g(x) for x in along) for f, g in ((max, np.min), (min, np.max)))
    if not high > low:
        return None
    edges = np.linspace(low, high, BLOCKS + 1)
    means = []
    for one, x in zip((there, back), along, strict=True):
        place = np.searchsorted(edges, x, side="right") - 1
        blocks = [place == k for k in range(BLOCKS)]
        if min(int(np.count_nonzero(block)) for block in blocks) < fewest:
            return None
        means.append(one.block_means(blocks))
    velocity = 0.5 * (there.velocity - back.velocity)
    seconds = float((high - low) / np.linalg.norm(velocity))
    (tau, *more), (tau_back, *more_back) = means
    pairs = zip(more, more_back, strict=True)
    rigid, dq = (None if a is None or b is None else 0.5 * (a - b) for a, b in pairs)
    velocity = velocity if dq is None else dq.mean(axis=0)
    return Point(there.run, velocity, 0.5 * (tau - tau_back), True, seconds, rigid, dq, level=_level(there, back))


# ----------------------------------------------------------------------------------------------------------------------
# What is no friction in a torque: known from the robot's values or a fit, none at all, or canceled there and back.

Known = Callable[[Array, Array, Array], Array]  # q, dq, ddq (m, n_moving) -> torque at the actuated coordinates
_LINKS = "rigid,Ia"


def known_torque(robot: Robot, gravity: Gravity, fit: Fit | None) -> Known | None:
    """Torque of a motion without friction and offset; None where it cancels between both directions.

    Args:
        robot: The robot.
        gravity: Where it comes from without a fit: "cancel", "model" (the robot's own values) or "none".
        fit: An estimate of the same robot, whose links and rotors are believed.
    """
    if fit is not None:
        if fit.robot.fingerprint != robot.fingerprint:
            raise InputError(
                f"the fit is of another robot ({fit.robot.name}) than the one under test ({robot.name}), or of other "
                "locked joints; identify the same one"
            )
        return without_friction(fit.parameter_model).torque
    if gravity == "cancel":
        return None
    if gravity == "none":
        return lambda q, dq, ddq: np.zeros_like(q)
    chi = parameters(robot, _LINKS)
    if not np.any(chi):
        raise InputError(f"robot {robot.name} has no values of its own to know gravity from; give a fit, or cancel it")
    return TorqueModel(robot, resolve_terms(_LINKS), chi).torque


def without_friction(model: TorqueModel) -> TorqueModel:
    """The model without friction and constant torque."""
    chi: list[float] = []
    terms, first = [], 0
    for term in model.terms:
        count = len(term.columns(model.robot))
        if term.name not in (*FRICTION_TERMS, "Fo"):
            terms.append(term)
            chi += model.chi[first : first + count].tolist()
        first += count
    return TorqueModel(model.robot, tuple(terms), np.array(chi), model.reference)


def words(gravity: Gravity, fit: Fit | None) -> str:
    """Where gravity comes from, for people."""
    if fit is not None:
        return "from the fit"
    return {
        "cancel": "canceled between both directions",
        "model": "from the robot's own values",
        "none": "taken as none",
    }[gravity]
