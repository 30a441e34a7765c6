"""Time delay between torque and position, of all joints or single ones; bias by noise of the positions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, on_one_thread
from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.diagnostics.trial import DELAYS, MIN_SAMPLES, Trial, TrialFit, TrialSamples
from dynident.estimate.delay import LARGEST_DELAY
from dynident.estimate.records import Diagnostic, Severity, percent
from dynident.signals.bandwidth import BandChoice

_SWEEPS = 2  # over the joints, each with the delays found for the others


def diagnose_delay(trial: Trial, samples: Sequence[TrialSamples]) -> list[Diagnostic]:
    """The delay of all torques, and joints whose torque comes at another time than that of the others."""
    residuals, products = trial.delayed_residuals(samples, THRESHOLDS.delay_velocity_share)
    residuals = np.maximum(residuals, 1e-300)
    together = np.sqrt(np.maximum(np.einsum("idjd->d", products), 1e-300))
    none, common = int(np.argmin(np.abs(DELAYS))), int(np.argmin(together))
    gain = 1.0 - float(together[common] / together[none])
    found = []
    norms = np.maximum(_torque_norms(samples), 1e-300)
    shares = residuals[:, none] / norms  # of its torque that each joint keeps
    large, usual = shares > THRESHOLDS.min_residual_share, THRESHOLDS.usual_delay_s
    if _stands_alone(together, none):  # the torque of a switch looks like itself some time later
        common, gain = none, 0.0
    if common in (0, len(DELAYS) - 1) and gain > THRESHOLDS.delay_gain_warn:
        words = f"torque fits its motion best more than {1e3 * DELAYS[-1]:.0f} ms apart, which no log should have"
        return [Diagnostic("delay", "warn", f"{words}; check the stamps, and that torque and motion belong together")]
    parts = _delays_of_parts(trial, samples)
    if abs(DELAYS[common]) > usual + 1e-9 and gain > THRESHOLDS.delay_gain_warn and large.any():
        side = "after" if DELAYS[common] > 0.0 else "before"
        late = f"{1e3 * abs(DELAYS[common]):.0f} ms {side} its motion"
        effect = f"with it, {percent(gain)} less of the torque is left unexplained"
        # Friction that sticks is late as well, but by another time at every joint and in every motion.
        alike = np.abs(DELAYS[residuals.argmin(1)] - DELAYS[common]) < usual + 1e-9
        share = float(together[common] / together[none]) * shares.max()
        if np.ptp(parts[0]) < usual + 1e-9 and alike.sum() > 1 and share < THRESHOLDS.poor_residual_share:
            remedy = f"correct the stamps, or identify with --delay={DELAYS[common]:.3g}"
            beyond = abs(DELAYS[common]) > LARGEST_DELAY + 1e-9  # what identification undoes refuses no log
            severity: Severity = "stop" if beyond and gain > THRESHOLDS.delay_gain_stop else "warn"
            found.append(Diagnostic("delay", severity, f"torque is stamped about {late}; {effect}: {remedy}"))
        else:
            found.append(Diagnostic("delay", "warn", f"torque looks as if it came {late} ({effect}), {_LIKE_A_DELAY}"))
    else:
        common = none
    n_moving = np.sum([own.faster(THRESHOLDS.delay_velocity_share).sum(0) for own in samples], axis=0)
    moves = n_moving >= MIN_SAMPLES
    found += _diagnose_joints(trial, moves, moves & large, residuals, products, common, np.ptp(parts[1], axis=0), norms)
    fine = f"no torque is more than {1e3 * usual:.0f} ms late or early; smaller delays are found in identification"
    return found or [Diagnostic("delay", "ok", fine)]


def _diagnose_joints(
    trial: Trial,
    moves: Mask,
    evaluated: Mask,
    own: Array,
    products: Array,
    common: int,
    spread: Array,
    norms: Array,
) -> Iterator[Diagnostic]:
    """Joints whose torque comes at another time than that of the others.

    Args:
        trial: The robot's equations.
        moves: (n_joints,) joints that move, which are the others.
        evaluated: (n_joints,) joints with a residual that says something.
        own: Residuals of each joint in its own equations.
        products: Products of the residuals in the equations of all.
        common: Place of the others' delay in `DELAYS`.
        spread: (n_joints,) between the delays of each joint in parts of the logs [s].
        norms: (n_joints,) size of the torque in motion.
    """
    if np.count_nonzero(moves) < 2:
        return  # there are no others
    limit = THRESHOLDS.usual_delay_s
    each = _best_delays(products, np.full(len(own), common))
    alone = np.array([_stands_alone(residuals, common) for residuals in own])
    each[alone] = common
    usual = int(np.median(each[moves]))
    for j in np.flatnonzero(evaluated):
        best = int(np.argmin(own[j]))
        if alone[j]:
            continue
        gain, apart = 1.0 - float(own[j, best] / own[j, common]), float(DELAYS[best] - DELAYS[common])
        late = abs(apart) > limit + 1e-9 and gain > THRESHOLDS.delay_gain_stop and 0 < best < len(DELAYS) - 1
        shared = float(DELAYS[each[j]] - DELAYS[usual])
        worse = _loss_at_usual(products, each, int(j), usual)
        if abs(shared) > THRESHOLDS.joint_delay_s + 1e-9 and worse > THRESHOLDS.joint_delay_gain:
            late, gain = True, max(gain, 1.0 - 1.0 / math.sqrt(1.0 + worse))
        if late:
            # Slow motion that friction or a sensor follows late gives two answers, a delay one.
            agree = abs(float(DELAYS[best] - DELAYS[each[j]])) < limit + 1e-9
            # What other joints say of shared parameters leaves a delay less room.
            apart = shared if abs(shared) > limit + 1e-9 else apart
            side = "later" if apart > 0.0 else "earlier"
            name = trial.robot.joint_names[j]
            late_by = f"about {1e3 * abs(apart):.0f} ms {side} than that of the others"
            effect = f"correcting that takes {percent(gain)} of what is left of it"
            ends = {best, int(each[j])} & {0, len(DELAYS) - 1}  # what wants to be ever later is no delay
            poor = own[j, best] > THRESHOLDS.named_residual_share * norms[j]
            if not agree or ends or poor or spread[j] > limit + 1e-9:
                yield Diagnostic("delay", "warn", f"torque of joint {name} comes {late_by} ({effect}), {_LIKE_A_DELAY}")
                continue
            severity: Severity = "stop" if gain > 2.0 * THRESHOLDS.delay_gain_stop else "warn"
            words = f"torque of joint {name} comes {late_by}; {effect}: correct the stamps of its columns"
            yield Diagnostic("delay", severity, words)


_LIKE_A_DELAY = (
    "but not everywhere by as much: joints that stick, play or soft gears look like a delay; "
    "compare the held-out error with --delay and without"
)


def _stands_alone(residuals: Array, place: int) -> bool:
    """Whether residuals have a minimum near a delay, with a ridge on the way to any lower one.

    A torque that is late has one minimum, where it is undone. Torque of a motion that repeats itself, or that a switch
    makes, has several, and the one that needs no delay is the likelier.
    """
    near = np.flatnonzero(np.abs(DELAYS - DELAYS[place]) < THRESHOLDS.usual_delay_s + 1e-9)
    here, best = int(near[np.argmin(residuals[near])]), int(np.argmin(residuals))
    between = residuals[min(here, best) : max(here, best) + 1]
    return bool(best not in near and between.max() > THRESHOLDS.delay_ridge * residuals[here])


def _delays_of_parts(trial: Trial, samples: Sequence[TrialSamples]) -> tuple[Array, Array]:
    """The best delay in each part of the logs: of all torques (n_parts,), and of each joint (n_parts, n_joints) [s]."""
    every, own = [], []
    for part in zip(*(one.folds() for one in samples), strict=True):
        residuals, products = trial.delayed_residuals(part, THRESHOLDS.delay_velocity_share)
        every.append(DELAYS[int(np.argmin(np.einsum("idjd->d", products)))])
        own.append(DELAYS[residuals.argmin(1)])
    return np.array(every), np.array(own)


def _torque_norms(samples: Sequence[TrialSamples]) -> Array:
    """(n_joints,) size of the torque in motion."""
    squares = [np.sum((one.tau * one.faster(THRESHOLDS.delay_velocity_share)) ** 2, axis=0) for one in samples]
    return np.asarray(np.sqrt(np.sum(squares, axis=0)))


def _best_delays(products: Array, start: NDArray[np.int_]) -> NDArray[np.int_]:
    """The delay of each joint with the least residual together, joint by joint, (n_joints,) places in `DELAYS`."""
    each = start.copy()
    for _ in range(_SWEEPS):
        for j in range(len(each)):
            each[j] = int(np.argmin([_residual_square(products, _with(each, j, d)) for d in range(len(DELAYS))]))
    return each


def _loss_at_usual(products: Array, each: NDArray[np.int_], joint: int, usual: int) -> float:
    """Residual if a joint is as late as the others, less what it is otherwise, over a joint's share of it."""
    least = _residual_square(products, each)
    return (_residual_square(products, _with(each, joint, usual)) - least) / max(least / len(each), 1e-300)


def _residual_square(products: Array, each: NDArray[np.int_]) -> float:
    joints = np.arange(len(each))
    return float(products[joints[:, None], each[:, None], joints, each].sum())


def _with(each: NDArray[np.int_], joint: int, delay: int) -> NDArray[np.int_]:
    other = each.copy()
    other[joint] = delay
    return other


# ----------------------------------------------------------------------------------------------------------------------
# Whether noise of the positions biases the estimate, as it does where a controller feeds it back into the torque.
#
# Least squares takes its columns for exact. Two other estimates do so less: columns of samples a little earlier and
# later have the same motion in them and another noise, and serve as instruments; and half the bandwidth lets less noise
# through. If both move the prediction, and in the same direction, the columns' noise is in the estimate.


@on_one_thread
def diagnose_bias(
    trial: Trial,
    samples: Sequence[TrialSamples],
    slower: Sequence[TrialSamples],
    fit: TrialFit,
    choices: Sequence[BandChoice] = (),
) -> Diagnostic:
    """Compare least squares with instrumental variables and with half the bandwidth.

    Args:
        trial: The robot's equations.
        samples: Samples of the logs.
        slower: The same with half the bandwidth.
        fit: Of the equations to them.
        choices: The bandwidths of the logs, and what they could be without noise.
    """
    (WW, ZW, ZZ, Wt, Zt), torque = _products(trial, samples, fit)
    (low_WW, _, _, low_Wt, _), _ = _products(trial, slower, fit)
    kept = _independent_parameters(WW, low_WW)
    WW, ZW, ZZ, low_WW = (M[np.ix_(kept, kept)] for M in (WW, ZW, ZZ, low_WW))
    plain = np.linalg.solve(WW, Wt[kept])
    moved = np.linalg.solve(ZW, Zt[kept]) - plain
    slowed = np.linalg.solve(low_WW, low_Wt[kept]) - plain
    spread = np.linalg.solve(ZW, np.linalg.solve(ZW, ZZ).T) - np.linalg.inv(WW)  # of unit white noise
    sizes = [float(np.sqrt(max(x @ WW @ x, 1e-300))) for x in (moved, slowed)]
    chance = float(np.sqrt(max(np.sum(WW * spread), 0.0) / torque))
    instruments, half_band = (size / float(np.sqrt(torque)) for size in sizes)  # shares of the torque
    cosine = float(moved @ WW @ slowed) / (sizes[0] * sizes[1])
    clear = instruments > max(THRESHOLDS.bias_share, THRESHOLDS.bias_chance_factor * chance)
    alike = cosine > THRESHOLDS.bias_cosine and half_band > THRESHOLDS.bias_half_band_share * instruments
    drowned = min(instruments, half_band) > THRESHOLDS.certain_bias_share  # so noisy that even the instruments drown
    words = f"columns with another noise move the predicted torque by {percent(instruments)}"
    if not (drowned or (clear and alike)):
        narrow = [one for one in choices if one.band < THRESHOLDS.noise_band_share * one.without_noise]
        if narrow:
            worst = min(narrow, key=lambda one: one.band / one.without_noise)
            used = f"up to {worst.band:.2g} Hz are used of the {worst.without_noise:.2g} Hz that the motion could use"
            above = "above, noise of the positions biases the estimate"
            return Diagnostic("bias", "warn", f"{used}: {above}; give less noisy positions or faster motion")
        return Diagnostic("bias", "ok", f"{words}, half the band by {percent(half_band)}: no sign of noise in them")
    words += f" (chance: {percent(chance)}), half the band by {percent(half_band)} in the same direction"
    remedy = "give a lower --band, less noisy positions or faster motion"
    return Diagnostic("bias", "warn", f"{words}: noise of the positions biases the estimate; {remedy}")


def _products(
    trial: Trial, samples: Sequence[TrialSamples], fit: TrialFit
) -> tuple[tuple[Array, Array, Array, Array, Array], float]:
    """Products of columns W, instruments Z and torque t, each row over the residual of its joint.

    Returns:
        W'W, Z'W, Z'Z, W't, Z't; and t't.
    """
    n, torque = trial.base.n, 0.0
    WW, ZW, ZZ, Wt, Zt = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for part in samples:
        own = trial.columns_first(part.q, part.dq, part.ddq)
        before, after = (trial.columns_first(*motion) for motion in part.around)
        for joint, columns in enumerate(trial.columns):
            keep, size = part.moving[:, joint], fit.residual_rms[joint]
            W, Z = own[joint][:, keep] / size, 0.5 * (before[joint] + after[joint])[:, keep] / size
            t, place = part.tau[keep, joint] / size, np.ix_(columns, columns)
            WW[place] += W @ W.T
            ZW[place] += Z @ W.T
            ZZ[place] += Z @ Z.T
            Wt[columns] += W @ t
            Zt[columns] += Z @ t
            torque += float(t @ t)
    return (WW, ZW, ZZ, Wt, Zt), max(torque, 1e-300)


def _independent_parameters(*products: Array) -> Array:
    """Parameters whose columns are independent of those before them in all products."""
    kept: list[int] = []
    scaled = []
    for WW in products:
        scale = np.sqrt(np.maximum(np.diag(WW), 1e-300))
        scaled.append(WW / np.outer(scale, scale))
    for i in np.flatnonzero(np.min([np.diag(WW) for WW in products], axis=0) > 0.0):
        more = [*kept, int(i)]
        if all(np.linalg.eigvalsh(one[np.ix_(more, more)])[0] > 1e-9 for one in scaled):
            kept = more
    return np.array(kept, dtype=int)
