"""What the training data decides before anything is estimated: the delay of the torque, the velocity source.

A choice is evaluated by the total residual torque of a plain fit. Joints that carry weight and inertia decide it then,
while in small ones the lag of friction passes for delay. About reversals it does so in all of them: a controller turns
its torque round before dry friction lets go, by milliseconds, so the delay is evaluated where joints are well in
motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, frozen, on_one_thread
from dynident.display import brief
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.factor import absorb
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.logs.log import joint_velocities
from dynident.signals.observations import Observations
from dynident.signals.rows import effective_velocity, row_blocks_above

LARGEST_DELAY = 0.06  # [s]: polled buses and filters of drives reach 30 to 50 ms
_FIRST_DELAYS = 0.02  # [s] that are tried at once; larger ones only where the best of these is the largest
_LARGEST_PHASE = 0.125  # periods of the typical frequency: near a quarter, velocity delayed passes for acceleration
_STEPS, _FINE_STEPS = 17, 9  # delays tried at once, and those about the best of them
_DELAY_BAND = 4.0 / 3.0  # times the band of the rows: milliseconds show in the faster part of the motion
_IN_MOTION = (0.2, 0.05)  # of a joint's effective velocity, above which its rows count; both must agree
AGREEING_DELAYS = 4e-3  # [s] by which delays that agree may differ
_SURE_SHARE = 1.0 / 3.0  # of the smaller of the two, by which they may differ
_MOST_ROWS = 3000  # rows used of each log: minutes of motion, enough to tell milliseconds
_WORTH = 5e-4  # share by which a delay must lower the residual to be believed
_KEPT_INERTIA = 0.5  # share of it that a late torque leaves at least: to undo that makes inertias larger, M + Fv d
_STATES = 50  # at which inertias are looked at
_UNLIKELY = 10.83  # chi-square of one degree of freedom that chance exceeds once in a thousand
_MEASURED_WORTH = 0.3  # share by which measured velocities must lower it: predictions have to do without them


@brief
@dataclass(frozen=True)
class DelayChoice:
    """Time by which torque is stamped late against position.

    Attributes:
        delay: Delay to use [s]; zero when the data prefers none clearly.
        gain: Share by which it lowers the residual.
        tried: (n,) delays tried [s].
        residual: (n,) residual torque of each, as a share of that without delay.
        reason: Why the delay is what it is, in words.
    """

    delay: float
    gain: float
    tried: Array
    residual: Array
    reason: str


@dataclass(frozen=True)
class VelocitySourceChoice:
    """Whether velocities come from differentiated positions or from the log.

    Attributes:
        velocity_source: "position" or "measured".
        ratio: Residual torque with measured velocities over that with differentiated positions; None without measured
            ones.
        reason: In words.
    """

    velocity_source: str
    ratio: float | None
    reason: str


def choose_delay(observations: Sequence[Observations], base: BaseParameters) -> DelayChoice:
    """The delay that training data prefers.

    The torque is filtered for all delays at once beside one regressor, so trying many costs little more than one. What
    friction does in slow motion passes for delay, so rows of fast motion give it; it is believed if those of slower
    motion say much the same, and if it lowers the residual in the band of the rows too.
    """
    wider = [one.with_options(band=_DELAY_BAND * one.band) for one in observations]
    fast, slower = _prefer_delays(wider, base)

    def choice(delay: float, reason: str) -> DelayChoice:
        return DelayChoice(delay, fast.gain, frozen(fast.tried), frozen(fast.residual), reason)

    if fast.at_the_end:
        return choice(
            0.0, f"the best delay lies beyond {1e3 * np.abs(fast.tried).max():.0f} ms; check the stamps, none is used"
        )
    if max(fast.gain, slower.gain) < fast.worth:
        return choice(0.0, f"no delay lowers the residual by more than {100 * fast.worth:.2g} %; none is used")
    # What friction adds differs between them; a delay several times that is there all the same.
    least = min(abs(fast.delay), abs(slower.delay))
    if abs(fast.delay - slower.delay) > max(AGREEING_DELAYS, _SURE_SHARE * least):
        both = f"{1e3 * fast.delay:.1f} and {1e3 * slower.delay:.1f} ms"
        return choice(0.0, f"fast and slow motion disagree about the delay ({both}); none is used")
    own = _in_the_band(observations, base, fast.delay)
    if own == 0.0 or abs(own - fast.delay) > max(AGREEING_DELAYS, _SURE_SHARE * min(abs(own), abs(fast.delay))):
        return choice(0.0, f"{1e3 * fast.delay:.1f} ms of delay suit noise beyond the band only; none is used")
    if taken := _takes_inertia(observations, base, fast.delay):
        return choice(
            0.0, f"{1e3 * fast.delay:.1f} ms of delay stand for the inertia of joint {taken}, so none is used"
        )
    side = "after" if fast.delay > 0.0 else "before"
    shown = f"torque is stamped {1e3 * abs(fast.delay):.1f} ms {side} its motion"
    return choice(fast.delay, f"{shown}, which lowers the residual by {100 * fast.gain:.1f} %")


def largest_delay(observations: Sequence[Observations]) -> float:
    """The largest delay that may be believed of some logs [s]: fast motion leaves less room."""
    typical = max(one.survey.typical for one in observations)
    return max(min(LARGEST_DELAY, _LARGEST_PHASE / max(typical, 1e-9)), _FIRST_DELAYS)


def _in_the_band(observations: Sequence[Observations], base: BaseParameters, delay: float) -> float:
    """The delay that rows in their own band prefer, near one that faster motion prefers [s]; zero if it is worse there.

    Noise of positions makes accelerations noisy, most of all beyond the band, and a delay that stands for some of the
    inertia makes that noise count less: the wider the band, the larger. A delay of the stamps is the same in any band.
    Where friction is far larger than inertia little else speaks against it.
    """
    tried = delay * np.linspace(0.0, 2.0, _STEPS)
    residual = residual_torque(observations, base, tried.tolist(), _IN_MOTION[0])[0]
    if residual[_STEPS // 2] >= residual[0]:
        return 0.0
    order = np.argsort(tried)
    return _lowest(tried[order], residual[order])[0]


def _takes_inertia(observations: Sequence[Observations], base: BaseParameters, delay: float) -> str:
    """The first joint whose inertia shows without a delay and is taken by it; empty where there is none.

    Where viscous friction or back-EMF carries the torque, Fv dq + M ddq is nearly Fv dq(t + M / Fv): a delay of -M / Fv
    stands for the inertia, and no stamps are that early. A late torque hides some of the inertia, M - Fv d, so that
    undoing it makes inertias larger; one that makes them smaller stands for what friction lacks. An inertia shows where
    its torque is larger than what the fit leaves unexplained.
    """
    robot, n = base.robot, base.n
    [(total, rows)] = _totals(observations, base, [0.0, delay], (_IN_MOTION[0],))
    size = np.maximum(np.linalg.norm(total[:, :n], axis=0), 1e-300)
    blocks = [block for one in observations for block in one.motion((0.0,))]
    q, ddq = np.concatenate([own.q for own in blocks]), np.concatenate([own.ddq for own in blocks])
    acceleration, q = np.sqrt((ddq**2).mean(0)), q[:: max(1, len(q) // _STATES)]
    inertias = np.zeros((2, q.shape[1]))
    for k in range(2):
        values = np.linalg.lstsq(total[:, :n] / size, total[:, n + k], rcond=INFORMATION.noisy_rank)[0] / size
        model = TorqueModel(robot, base.terms, base.standard_values(values, "regrouped zero"))
        resting = model.torque(q, 0.0 * q, 0.0 * q)
        for j, unit in enumerate(np.eye(q.shape[1])):
            moved = model.torque(q, 0.0 * q, np.broadcast_to(unit, q.shape))
            inertias[k, j] = (moved - resting)[:, j].mean()
    without, with_it = inertias
    shows = without * acceleration > np.linalg.norm(total[n:, n]) / np.sqrt(max(rows, 1))
    taken = shows & (with_it <= (_KEPT_INERTIA * without if delay > 0.0 else 0.0))
    return robot.joint_names[int(np.argmax(taken))] if taken.any() else ""


@dataclass(frozen=True)
class _PreferredDelay:
    """Residuals over delays, and their lowest point."""

    tried: Array
    residual: Array
    delay: float
    gain: float
    worth: float
    at_the_end: bool


def _prefer_delays(observations: Sequence[Observations], base: BaseParameters) -> list[_PreferredDelay]:
    """The delays that fast and that slower motion prefer."""
    tried, largest = np.linspace(-_FIRST_DELAYS, _FIRST_DELAYS, _STEPS), largest_delay(observations)
    residuals = residual_torques(observations, base, tried.tolist(), _IN_MOTION)
    curves = np.array([values / max(float(values[_STEPS // 2]), 1e-300) for values, _ in residuals])
    step = tried[1] - tried[0]
    while (best := int(np.argmin(curves[0]))) in (0, len(tried) - 1) and abs(tried[best]) + step < largest + 1e-9:
        # On from that end, beside no delay: filters of larger delays have fewer rows.
        count = min(int((largest - abs(tried[best])) / step + 1e-6), _STEPS // 2)
        more = tried[best] + np.sign(tried[best]) * step * np.arange(1, count + 1)
        further = residual_torques(observations, base, [0.0, *more.tolist()], _IN_MOTION)
        order = np.argsort(np.append(tried, more))
        beyond = [values[1:] / max(float(values[0]), 1e-300) for values, _ in further]
        tried, curves = np.append(tried, more)[order], np.hstack([curves, beyond])[:, order]
    found = []
    for values, (_, rows) in zip(curves, residuals, strict=True):
        worth = max(_WORTH, 0.5 * _UNLIKELY * THRESHOLDS.correlated_rows / rows)  # by which chance may lower it
        best = int(np.argmin(values))
        at_the_end = best in (0, len(tried) - 1)
        delay, gain = (float(tried[best]), 0.0) if at_the_end else _lowest(tried, values)
        found.append(_PreferredDelay(tried, values, delay, gain, worth, at_the_end))
    return _refine_delays(observations, base, found)


def _refine_delays(
    observations: Sequence[Observations], base: BaseParameters, found: Sequence[_PreferredDelay]
) -> list[_PreferredDelay]:
    """Finer steps about the delays that lower the residual.

    Where friction is stiff, delay and inertia are much alike, and the curve is no parabola over wide steps.
    """
    nears = [
        one.delay + np.linspace(-0.5, 0.5, _FINE_STEPS) * (one.tried[1] - one.tried[0])
        for one in found
        if one.gain > one.worth
    ]
    if not nears:
        return list(found)
    tried = [0.0, *(float(x) for near in nears for x in near)]
    residuals = residual_torques(observations, base, tried, _IN_MOTION)
    result, first = [], 1
    for one, (values, _) in zip(found, residuals, strict=True):
        if one.gain > one.worth:
            own = slice(first, first + _FINE_STEPS)
            delay, gain = _lowest(np.array(tried[own]), values[own] / max(float(values[0]), 1e-300))
            one, first = replace(one, delay=delay, gain=gain), own.stop
        result.append(one)
    return result


def _lowest(delays: Array, residual: Array) -> tuple[float, float]:
    """The delay of the least residual, by a parabola through the three lowest points, and its gain."""
    best = int(np.clip(np.argmin(residual), 1, len(delays) - 2))
    left, here, right = residual[best - 1 : best + 2] ** 2  # the variance is a parabola in the delay
    bend = left - 2.0 * here + right
    vertex = float(np.clip(0.5 * (left - right) / bend, -1.0, 1.0)) if bend > 0.0 else 0.0
    square = here + 0.5 * vertex * (right - left) + 0.5 * vertex**2 * bend
    return float(delays[best] + vertex * (delays[1] - delays[0])), 1.0 - float(np.sqrt(max(square, 0.0)))


def choose_velocity_source(
    observations: Sequence[Observations], base: BaseParameters, delay: float
) -> VelocitySourceChoice:
    """Measured velocities against differentiated positions (Gautier et al. 1995 found their tachometers worse)."""
    if any(joint_velocities(next(iter(one.log.blocks())), one.robot) is None for one in observations):
        return VelocitySourceChoice(
            "position", None, "not every log has measured velocities; positions are differentiated"
        )
    derived, measured = (
        float(residual_torque([one.with_options(velocity_source=source) for one in observations], base, [delay])[0][0])
        for source in ("position", "measured")
    )
    ratio = measured / max(derived, 1e-300)
    if ratio < 1.0 - _MEASURED_WORTH:
        better = f"measured velocities leave {100 * (1.0 - ratio):.1f} % less residual than differentiated positions"
        return VelocitySourceChoice("measured", ratio, f"{better} and are used")
    change = f"{100 * abs(1.0 - ratio):.1f} % {'less' if ratio < 1.0 else 'more'}"
    reason = f"positions are differentiated; measured velocities would leave {change} residual"
    return VelocitySourceChoice("position", ratio, reason)


def residual_torque(
    observations: Sequence[Observations], base: BaseParameters, delays: Sequence[float], motion: float = 0.0
) -> tuple[Array, int]:
    """`residual_torques` for one share of the motion."""
    return residual_torques(observations, base, delays, (motion,))[0]


@on_one_thread
def residual_torques(
    observations: Sequence[Observations], base: BaseParameters, delays: Sequence[float], motions: Sequence[float]
) -> list[tuple[Array, int]]:
    """Norm of the torque that a fit leaves unexplained, all joints together, for each delay, and the rows behind it.

    Args:
        observations: The logs, of which the first rows are used.
        base: Base parameters to fit.
        delays: Delays of the torque to undo [s].
        motions: Shares of a joint's effective velocity above which its rows count; a result for each.
    """
    n = base.n
    # Below the columns' own triangle stands what they do not explain.
    return [
        (np.asarray(np.linalg.norm(total[n:, n:], axis=0)), max(count, 1))
        for total, count in _totals(observations, base, delays, motions)
    ]


def _totals(
    observations: Sequence[Observations], base: BaseParameters, delays: Sequence[float], motions: Sequence[float]
) -> list[tuple[Array, int]]:
    """For each share of the motion: the triangle of [columns, torque for each delay], and the rows behind it."""
    regressor = BaseRegressor.of(base.robot, base.terms)
    n, n_delays = regressor.coordinates.n, len(delays)
    totals, rows = [np.zeros((n + n_delays, n + n_delays)) for _ in motions], [0] * len(motions)
    for one in observations:
        for k, (factors, count) in enumerate(_factors(one, regressor, delays, motions)):
            rows[k] += count
            for factor, own in zip(factors, regressor.columns, strict=True):
                wide = np.zeros((n + n_delays, len(factor)))
                wide[[*own, *range(n, n + n_delays)]] = factor.T
                absorb(totals[k], wide)
    return list(zip(totals, rows, strict=True))


def _factors(
    one: Observations, regressor: BaseRegressor, delays: Sequence[float], motions: Sequence[float]
) -> list[tuple[list[Array], int]]:
    """For each share of the motion: the triangles of [columns, torque for each delay] by output, and their rows."""
    n = len(one.robot.joint_names)
    effective = effective_velocity(one, np.eye(n), delays) if any(motions) else np.zeros(n)
    slowest = np.array([np.maximum(one.options.rest_velocity, share * effective) for share in motions])
    factors = [[np.zeros((len(own) + len(delays),) * 2) for own in regressor.columns] for _ in motions]
    times, rows = np.zeros(len(motions), dtype=int), np.zeros(len(motions), dtype=int)
    for block, above in row_blocks_above(one, regressor, slowest, delays):
        for k, usable in enumerate(above):
            if times[k] > _MOST_ROWS:
                continue
            for output, factor in enumerate(factors[k]):
                if usable[:, output].any():
                    absorb(factor, block.columns_first[output][:, usable[:, output]].copy(order="C"))
            rows[k] += int(usable.sum())
            times[k] += int(usable.any(1).sum())
        if (times > _MOST_ROWS).all():
            break
    return [(own, int(count)) for own, count in zip(factors, rows, strict=True)]
