"""Whether noise of the positions biases the estimate, as it does where a controller feeds it back into the torque.

Least squares takes its columns for exact. Two other estimates do so less: columns of moments a little earlier and later
have the same motion in them and another noise, and serve as instruments; and half the band lets less noise through. If
both move the prediction, and in the same direction, the columns' noise is in the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.check.finding import Finding, percent
from dynident.check.sample import Sample
from dynident.check.trial import Left, Trial

_TOLD = 0.02  # share of the torque by which instruments must move the prediction
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
        clear = self.instruments > max(_TOLD, _CHANCE * self.chance)
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
