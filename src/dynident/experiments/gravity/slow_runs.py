"""`SlowRun`: a slow run of one joint, averaged over both ways at equal angles so that friction drops out."""

from __future__ import annotations

import functools

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.experiments.bench import Samples, unbroken_stretches
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.thresholds import GRAVITY

MOST_PLACES, FEWEST_PLACES = 60, 8  # angles at which both ways are compared
_PER_PLACE = 4  # samples of each way that a place should have
_SMOOTH = 0.25  # [s] over which velocity is reported from positions, at least
_OSCILLATION = 5.0  # parts of the range, gone at full velocity, over which an oscillation's acceleration is reported
_STEADY = 1e-6  # share of v²/range below which an acceleration is rounding


@record
class SlowRun:
    """Samples of one joint that goes both ways while the others are held: at constant velocity, or in oscillation.

    Averages over both ways at one place are linear in what they average, so model columns that are averaged in the same
    way fit exactly: no error comes from angles that differ within a place.

    Attributes:
        label: Name of the run.
        joint: Place in the robot's moving joints.
        q: (n_samples, n_moving) [rad or m], samples in motion only.
        tau: (n_samples,) torque at the swept joint [N·m or N].
        velocity: (n_samples,) of the swept joint [rad/s or m/s].
        acceleration: (n_samples,) of the swept joint.
        ahead: (n_samples,) whether it goes towards larger angles.
        place: (n_samples,) which place a sample belongs to.
        velocities: Mean velocity ahead and back.
        sticking: Share of the time between the ends at which it stood still.
        oscillates: Whether its velocity changes all the time; else it cruises.
    """

    label: str
    joint: int
    q: Array
    tau: Array
    velocity: Array
    acceleration: Array
    ahead: Mask
    place: Samples
    velocities: tuple[float, float]
    sticking: float
    oscillates: bool = False

    @functools.cached_property
    def n_places(self) -> int:
        """Number of places."""
        return int(self.place.max()) + 1

    @property
    def angle(self) -> Array:
        """(n_samples,) position of the swept joint [rad or m]."""
        return np.asarray(self.q[:, self.joint])

    @property
    def angles(self) -> Array:
        """(n_places,) its mean at each place."""
        return self.half_sum(self.angle)

    @property
    def pose(self) -> Array:
        """(n_moving,) median positions."""
        return np.asarray(np.median(self.q, axis=0))

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest position of the swept joint."""
        return float(self.angle.min()), float(self.angle.max())

    @property
    def accelerates(self) -> bool:
        """Whether its acceleration is more than rounding."""
        low, high = self.range
        return bool(np.abs(self.acceleration).max() > _STEADY * max(self.velocities) ** 2 / (high - low))

    @property
    def weights(self) -> Array:
        """(n_places,) samples that an average over both ways is worth."""
        ahead, back = (np.bincount(self.place[way], minlength=self.n_places) for way in (self.ahead, ~self.ahead))
        return np.asarray(4.0 / (1.0 / ahead + 1.0 / back))

    def half_sum(self, values: Array) -> Array:
        """What both ways have in common at each place: weight and offset. (n_samples, ..) to (n_places, ..)."""
        return 0.5 * (self.mean(values, ahead=True) + self.mean(values, ahead=False))

    def half_difference(self, values: Array) -> Array:
        """What changes sign with the way at each place: friction. (n_samples, ..) to (n_places, ..)."""
        return 0.5 * (self.mean(values, ahead=True) - self.mean(values, ahead=False))

    def mean(self, values: Array, *, ahead: bool) -> Array:
        """Means at each place over one way, (n_samples, ..) to (n_places, ..)."""
        way = self.ahead if ahead else ~self.ahead
        total = np.zeros((self.n_places, *values.shape[1:]))
        np.add.at(total, self.place[way], values[way])
        count = np.bincount(self.place[way], minlength=self.n_places)
        return np.asarray(total / count.reshape(-1, *(1,) * (values.ndim - 1)))


def slow_run(
    label: str, names: tuple[str, ...], joint: int, time: Array, q: Array, tau: Array, radian: Array | None = None
) -> SlowRun:
    """The part of a recording in which a joint cruises both ways, or all of its oscillation but the turns.

    An oscillation has the same velocity both ways at equal angles, so that friction drops out at any of them.

    Args:
        label: Name of the run.
        names: Names of the moving joints.
        joint: The swept one's place among them.
        time: (n_samples,) [s].
        q: (n_samples, n_moving) positions.
        tau: (n_samples, n_moving) torque at the joints.
        radian: (n_moving,) what counts as a radian of each joint, see `Robot.radians`; default 1 rad.

    Raises:
        ExperimentError: When the joint did not move, moved one way only or stuck most of the time.
    """
    name = names[joint]
    dq, ddq = velocities(time, q)
    radian = np.ones(q.shape[1]) if radian is None else radian
    alone = swept_alone(q / radian, dq / radian, joint)
    own = np.abs(dq[:, joint])
    cruise = float(np.percentile(own[alone], 90.0)) if alone.any() else 0.0
    if cruise < GRAVITY.least_velocity * radian[joint] or np.ptp(q[alone, joint]) < 1e-3 * radian[joint]:
        raise ExperimentError(
            f"{label}: joint {name} does not move by itself while the others are held; if friction holds it, sweep "
            "faster (--sweep-velocity) or with a stiffer controller"
        )
    sticking = _sticking(q[alone, joint], own[alone], cruise)
    if sticking > 0.5:
        raise ExperimentError(
            f"{label}: joint {name} stands still {100.0 * sticking:.0f} % of the way (it sticks and slips), and at "
            "rest friction is whatever holds the arm; sweep faster (--sweep-velocity) or with a stiffer controller"
        )
    width = _SMOOTH
    cruising = _cruising(alone, own, np.abs(ddq[:, joint]), cruise)
    if cruising is None:
        keep = alone & (own > GRAVITY.turning_velocity_share * cruise)
        width = max(_SMOOTH, float(np.ptp(q[keep, joint])) / cruise / _OSCILLATION)
        ddq = _derivatives(time, q, width, 4)[1]
    else:
        keep = _without_settling(time, cruising)
    keep &= _inside(time, 0.5 * width)
    ahead = dq[:, joint] > 0.0
    place, used = _places(f"{label}: joint {name}", q[:, joint], keep, ahead)
    rates = tuple(float(own[used & way].mean()) for way in (ahead, ~ahead))
    return SlowRun(
        label=label,
        joint=joint,
        q=q[used],
        tau=tau[used, joint],
        velocity=dq[used, joint],
        acceleration=ddq[used, joint],
        ahead=ahead[used],
        place=place[used],
        velocities=(rates[0], rates[1]),
        sticking=sticking,
        oscillates=cruising is None,
    )


def velocities(time: Array, q: Array) -> tuple[Array, Array]:
    """Velocities and accelerations, by parabolas over a quarter of a second, (n_samples, n_moving) each."""
    return _derivatives(time, q, _SMOOTH, 2)


def _derivatives(time: Array, q: Array, seconds: float, degree: int) -> tuple[Array, Array]:
    """Velocities and accelerations by polynomials over a stretch of time, (n_samples, n_moving) each."""
    from scipy.signal import savgol_filter

    step = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1] + 0.5 * step, step)
    window = max(2 * degree + 1, 2 * round(0.5 * seconds / step) + 1)
    if len(even) < window:
        raise ExperimentError(
            f"a run of {time[-1] - time[0]:.3g} s is too short to determine velocities; record a slow sweep"
        )
    grid = np.column_stack([np.interp(even, time, one) for one in q.T])
    found = [savgol_filter(grid, window, degree, deriv=order, delta=step, axis=0) for order in (1, 2)]
    dq, ddq = (np.column_stack([np.interp(time, even, one) for one in each.T]) for each in found)
    return dq, ddq


def _inside(time: Array, margin: float) -> Mask:
    """(n_samples,) whether derivatives are whole: neither end of the recording nor missing samples are near."""
    step = np.diff(time)
    gaps = np.flatnonzero(step > GRAVITY.gap_sample_times * np.median(step))
    edges = np.unique(np.concatenate([time[[0, -1]], time[gaps], time[gaps + 1]]))
    after = np.clip(np.searchsorted(edges, time), 1, len(edges) - 1)
    return np.asarray(np.minimum(np.abs(time - edges[after - 1]), np.abs(edges[after] - time)) >= margin)


def moves(dq: Array) -> Mask:
    """(n_samples,) where a joint moves, by its velocities [rad/s, or radians' worth of a slide's]."""
    highest = float(np.percentile(np.abs(dq), 99.0))
    return np.asarray(np.abs(dq) > max(GRAVITY.moving_velocity_share * highest, GRAVITY.least_velocity))


def swept_alone(q: Array, dq: Array, joint: int) -> Mask:
    """(n_samples,) where no other joint moves and all of them are where they usually are then; in radians' worth."""
    others = [i for i in range(q.shape[1]) if i != joint]
    if not others:
        return np.ones(len(q), dtype=bool)
    limit = np.maximum(GRAVITY.held_velocity_share * np.abs(dq[:, joint]), GRAVITY.held_velocity)
    still: Mask = np.abs(dq[:, others]).max(axis=1) < limit
    moving = still & moves(dq[:, joint])
    if not moving.any():
        return still
    usual = np.median(q[moving][:, others], axis=0)
    off: Array = np.abs(q[:, others] - usual).max(axis=1)
    return still & (off < GRAVITY.held_distance)


def _cruising(alone: Mask, velocity: Array, push: Array, cruise: float) -> Mask | None:
    """(n_samples,) where the joint is at its cruising velocity, without ramps; None for one that oscillates."""
    middle = float(np.median(velocity[alone & (velocity > (1.0 - GRAVITY.wide_velocity_share) * cruise)]))
    off = np.abs(velocity - middle)
    even, wide = (
        alone & (off < share * middle) for share in (GRAVITY.even_velocity_share, GRAVITY.wide_velocity_share)
    )
    if np.count_nonzero(even) < GRAVITY.cruising_share * np.count_nonzero(wide):
        return None
    calm = even & (push < GRAVITY.calm_acceleration)
    return calm if np.count_nonzero(calm) > 0.5 * np.count_nonzero(even) else even


def _without_settling(time: Array, keep: Mask) -> Mask:
    """The same without the beginning of each stretch, unless hardly anything would be left of it."""
    found = keep.copy()
    for stretch in unbroken_stretches(keep):
        own = time[stretch]
        if own[-1] - own[0] > 4.0 * GRAVITY.settling_s:
            found[stretch] = own - own[0] >= GRAVITY.settling_s
    return found


def _sticking(q: Array, velocity: Array, cruise: float) -> float:
    """Share of the samples away from both ends at which the joint hardly moves, from its first motion to its last."""
    margin = GRAVITY.end_share * np.ptp(q)
    inside = (q > q.min() + margin) & (q < q.max() - margin)
    moving = np.flatnonzero(velocity > 0.5 * cruise)
    inside[: moving[0]] = inside[moving[-1] :] = False
    return float(np.mean(velocity[inside] < GRAVITY.sticking_velocity_share * cruise)) if inside.any() else 1.0


def _places(what: str, q: Array, keep: Mask, ahead: Mask) -> tuple[Samples, Mask]:
    """The place of every sample, and which samples are used: those at places that both ways have seen."""
    ways = [keep & ahead, keep & ~ahead]
    if not all(way.any() for way in ways):
        raise ExperimentError(f"{what} moves one way only; friction drops out of a run there and back, so record both")
    low, high = max(q[way].min() for way in ways), min(q[way].max() for way in ways)
    counts = [int(np.count_nonzero(way & (q >= low) & (q <= high))) for way in ways]
    n = min(MOST_PLACES, min(counts) // _PER_PLACE)
    if n < FEWEST_PLACES or high <= low:
        raise ExperimentError(
            f"{what} has {min(counts)} samples at angles that it cruises over both ways, expected at least "
            f"{FEWEST_PLACES * _PER_PLACE}; record a wider, slower or more finely sampled sweep"
        )
    place = np.clip(((q - low) / (high - low) * n).astype(np.intp), 0, n - 1)
    used = keep & (q >= low) & (q <= high)
    seen = np.ones(n, dtype=bool)
    for way in ways:
        seen &= np.bincount(place[used & way], minlength=n) > 0
    used &= seen[place]
    return (np.cumsum(seen) - 1)[place], used
