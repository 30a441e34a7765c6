"""Torque that is stamped late or early: all of it, or that of single joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask, on_one_thread
from dynident.diagnostics.trial import DELAYS, FEW, Left, Sample, Trial
from dynident.estimate.records import Finding, percent

_IN_MOTION = 0.2  # of a joint's effective speed: in slow motion, what friction does passes for delay
_USUAL = 0.02  # [s] that identification looks for on its own, and that friction can feign in one joint
_TOLD = 0.06  # share by which a delay beyond that must lower what is left of all torque to be told
_WORTH = 0.2  # the same to be sure, and for a single joint in its own equations
_APART = 0.025  # [s] that single joints of sound logs are apart in the equations of all
_TOGETHER = 0.3  # of a joint's share of what is left of all torque, by which that must grow
_MATTERS = 0.02  # share of its torque that a joint must keep: exact data would tell of less
_SWEEPS = 2  # over the joints, each with the delays found for the others


def delay_findings(trial: Trial, samples: Sequence[Sample]) -> list[Finding]:
    """The delay of all torques, and joints whose torque comes at another time than that of the others."""
    own, products = trial.left_late(samples, _IN_MOTION)
    own = np.maximum(own, 1e-300)
    together = np.sqrt(np.maximum(np.einsum("idjd->d", products), 1e-300))
    none, common = int(np.argmin(np.abs(DELAYS))), int(np.argmin(together))
    gain = 1.0 - float(together[common] / together[none])
    found = []
    shares = own[:, none] / np.maximum(_sizes(samples), 1e-300)  # of its torque that each joint keeps
    if common in (0, len(DELAYS) - 1) and gain > _TOLD:
        words = f"torque fits its motion best more than {1e3 * DELAYS[-1]:.0f} ms apart, which no log should have"
        return [Finding("delay", "warn", f"{words}; check the stamps, and that torque and motion belong together")]
    if abs(DELAYS[common]) > _USUAL + 1e-9 and gain > _TOLD and shares.max() > _MATTERS:
        side = "after" if DELAYS[common] > 0.0 else "before"
        words = f"torque is stamped about {1e3 * abs(DELAYS[common]):.0f} ms {side} its motion"
        remedy = f"mend the stamps, or identify with --delay={DELAYS[common]:.3g}"
        effect = f"with it, {percent(gain)} less of the torque is left unexplained"
        found.append(Finding("delay", "stop" if gain > _WORTH else "warn", f"{words}; {effect}: {remedy}"))
    else:
        common = none
    moves = np.sum([one.faster(_IN_MOTION).sum(0) for one in samples], axis=0) >= FEW
    found += _single(trial, moves, moves & (shares > _MATTERS), own, products, common)
    fine = f"no torque is more than {1e3 * _USUAL:.0f} ms late or early; smaller delays are found in identification"
    return found or [Finding("delay", "ok", fine)]


def _single(trial: Trial, moves: Mask, judged: Mask, own: Array, products: Array, common: int) -> Iterator[Finding]:
    """Joints whose torque comes at another time than that of the others.

    Args:
        trial: The robot's equations.
        moves: (n_joints,) joints that move, which are the others.
        judged: (n_joints,) joints of which enough is left unexplained to say anything.
        own: What is left of each joint in its own equations.
        products: What is left in the equations of all.
        common: Place of the others' delay in `DELAYS`.
    """
    if np.count_nonzero(moves) < 2:
        return  # there are no others
    each = _each(products, np.full(len(own), common))
    usual = int(np.median(each[moves]))
    for j in np.flatnonzero(judged):
        best = int(np.argmin(own[j]))
        gain, apart = 1.0 - float(own[j, best] / own[j, common]), float(DELAYS[best] - DELAYS[common])
        told = abs(apart) > _USUAL + 1e-9 and gain > _WORTH and 0 < best < len(DELAYS) - 1
        shared = float(DELAYS[each[j]] - DELAYS[usual])
        worse = _worse(products, each, int(j), usual)
        if abs(shared) > _APART + 1e-9 and worse > _TOGETHER:
            told, gain = True, max(gain, 1.0 - 1.0 / math.sqrt(1.0 + worse))
        if told:
            # Slow motion that friction or a sensor follows late gives two answers, a delay one.
            agree = abs(float(DELAYS[best] - DELAYS[each[j]])) < _USUAL + 1e-9
            # What other joints say of shared parameters leaves a delay less room.
            apart = shared if abs(shared) > _USUAL + 1e-9 else apart
            side = "later" if apart > 0.0 else "earlier"
            name = trial.robot.joint_names[j]
            words = f"torque of joint {name} comes about {1e3 * abs(apart):.0f} ms {side} than that of the others"
            effect = f"mending that takes {percent(gain)} of what is left of it: mend the stamps of its columns"
            yield Finding("delay", "stop" if agree and gain > 2.0 * _WORTH else "warn", f"{words}; {effect}")


def _sizes(samples: Sequence[Sample]) -> Array:
    """(n_joints,) size of the torque in motion."""
    squares = [np.sum((one.tau * one.faster(_IN_MOTION)) ** 2, axis=0) for one in samples]
    return np.asarray(np.sqrt(np.sum(squares, axis=0)))


def _each(products: Array, start: NDArray[np.int_]) -> NDArray[np.int_]:
    """The delay of each joint that leaves least together, found joint by joint, (n_joints,) places in `DELAYS`."""
    each = start.copy()
    for _ in range(_SWEEPS):
        for j in range(len(each)):
            each[j] = int(np.argmin([_left(products, _with(each, j, d)) for d in range(len(DELAYS))]))
    return each


def _worse(products: Array, each: NDArray[np.int_], joint: int, usual: int) -> float:
    """What is left if a joint is as late as the others, less what is left else, over a joint's share of it."""
    least = _left(products, each)
    return (_left(products, _with(each, joint, usual)) - least) / max(least / len(each), 1e-300)


def _left(products: Array, each: NDArray[np.int_]) -> float:
    joints = np.arange(len(each))
    return float(products[joints[:, None], each[:, None], joints, each].sum())


def _with(each: NDArray[np.int_], joint: int, delay: int) -> NDArray[np.int_]:
    other = each.copy()
    other[joint] = delay
    return other


# ----------------------------------------------------------------------------------------------------------------------
# Whether noise of the positions biases the estimate, as it does where a controller feeds it back into the torque.
#
# Least squares takes its columns for exact. Two other estimates do so less: columns of moments a little earlier and
# later
# have the same motion in them and another noise, and serve as instruments; and half the band lets less noise through.
# If
# both move the prediction, and in the same direction, the columns' noise is in the estimate.

_BIAS_FINDING_TOLD = 0.02  # share of the torque by which instruments must move the prediction
_CHANCE = 3.0  # times what chance alone does
_ALIKE = 0.5  # cosine between the two changes
_PLAIN = 0.1  # share of the torque that nothing but noise moves in both
_BOTH = 0.2  # of what instruments change, that half the band must change


@dataclass(frozen=True)
class BiasEvidence:
    """How other estimates move the predicted torque, as shares of the torque.

    Attributes:
        instruments: By instrumental variables.
        chance: What white noise of the torque would make of that.
        half_band: By half the band.
        cosine: Between the two changes.
    """

    instruments: float
    chance: float
    half_band: float
    cosine: float

    @property
    def biased(self) -> bool:
        """Whether noise of the positions is in the estimate."""
        if min(self.instruments, self.half_band) > _PLAIN:  # so noisy that even the instruments drown
            return True
        clear = self.instruments > max(_BIAS_FINDING_TOLD, _CHANCE * self.chance)
        return clear and self.cosine > _ALIKE and self.half_band > _BOTH * self.instruments


def bias_finding(trial: Trial, samples: Sequence[Sample], slower: Sequence[Sample], left: Left) -> Finding:
    """Compare least squares with instrumental variables and with half the band.

    Args:
        trial: The robot's equations.
        samples: Moments of the logs.
        slower: The same with half the band.
        left: What a fit leaves of them.
    """
    seen = bias_evidence(trial, samples, slower, left)
    words = f"columns with another noise move the predicted torque by {percent(seen.instruments)}"
    if not seen.biased:
        return Finding("bias", "ok", f"{words}, half the band by {percent(seen.half_band)}: no sign of noise in them")
    words += f" (chance: {percent(seen.chance)}), half the band by {percent(seen.half_band)} in the same direction"
    remedy = "give a lower --band, less noisy positions or faster motion"
    return Finding("bias", "warn", f"{words}: noise of the positions biases the estimate; {remedy}")


@on_one_thread
def bias_evidence(trial: Trial, samples: Sequence[Sample], slower: Sequence[Sample], left: Left) -> BiasEvidence:
    """How much instruments and half the band move the prediction; arguments as in `bias_finding`."""
    whole, low = _Moments.of(trial, samples, left), _Moments.of(trial, slower, left)
    kept = _told_apart(whole.WW, low.WW)
    WW, ZW, ZZ = (M[np.ix_(kept, kept)] for M in (whole.WW, whole.ZW, whole.ZZ))
    plain = np.linalg.solve(WW, whole.Wt[kept])
    moved = np.linalg.solve(ZW, whole.Zt[kept]) - plain
    slowed = np.linalg.solve(low.WW[np.ix_(kept, kept)], low.Wt[kept]) - plain
    spread = np.linalg.solve(ZW, np.linalg.solve(ZW, ZZ).T) - np.linalg.inv(WW)  # of unit white noise
    sizes = [float(np.sqrt(max(x @ WW @ x, 1e-300))) for x in (moved, slowed)]
    chance = float(np.sqrt(max(np.sum(WW * spread), 0.0) / whole.torque))
    shares = [size / float(np.sqrt(whole.torque)) for size in sizes]
    return BiasEvidence(shares[0], chance, shares[1], float(moved @ WW @ slowed) / (sizes[0] * sizes[1]))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Products of columns W, instruments Z and torque t, each row over what is left of its joint."""

    WW: Array
    ZW: Array
    ZZ: Array
    Wt: Array
    Zt: Array
    torque: float

    @classmethod
    def of(cls, trial: Trial, samples: Sequence[Sample], left: Left) -> _Moments:
        n, torque = trial.base.n, 0.0
        WW, ZW, ZZ, Wt, Zt = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for sample in samples:
            own = trial.columns_first(sample.q, sample.dq, sample.ddq)
            before, after = (trial.columns_first(*motion) for motion in sample.around)
            for joint, felt in enumerate(trial.felt):
                keep, size = sample.moving[:, joint], left.deviations[joint]
                W, Z = own[joint][:, keep] / size, 0.5 * (before[joint] + after[joint])[:, keep] / size
                t, place = sample.tau[keep, joint] / size, np.ix_(felt, felt)
                WW[place] += W @ W.T
                ZW[place] += Z @ W.T
                ZZ[place] += Z @ Z.T
                Wt[felt] += W @ t
                Zt[felt] += Z @ t
                torque += float(t @ t)
        return cls(WW, ZW, ZZ, Wt, Zt, max(torque, 1e-300))


def _told_apart(*products: Array) -> Array:
    """Parameters that all products tell apart from those before them."""
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
