"""Torque that is stamped late or early: all of it, or that of single joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.check.finding import Finding, percent
from dynident.check.sample import DELAYS, Sample
from dynident.check.trial import Trial

_IN_MOTION = 0.2  # of a joint's effective speed: in slow motion, what friction does passes for delay
_USUAL = 0.02  # [s] that identification looks for on its own, and that friction can feign in one joint
_TOLD = 0.06  # share by which a delay beyond that must lower what is left of all torque to be told
_WORTH = 0.2  # the same to be sure, and for a single joint


def delay_findings(trial: Trial, samples: Sequence[Sample]) -> list[Finding]:
    """The delay of all torques, and joints whose torque comes at another time than that of the others."""
    left, together = (np.maximum(x, 1e-300) for x in trial.left_late(samples, _IN_MOTION))
    none, common = int(np.argmin(np.abs(DELAYS))), int(np.argmin(together))
    gain = 1.0 - float(together[common] / together[none])
    found = []
    if common in (0, len(DELAYS) - 1) and gain > _TOLD:
        words = f"torque fits its motion best more than {1e3 * DELAYS[-1]:.0f} ms apart, which no log should have"
        return [Finding("delay", "warn", f"{words}; check the stamps, and that torque and motion belong together")]
    if abs(DELAYS[common]) > _USUAL + 1e-9 and gain > _TOLD:
        side = "after" if DELAYS[common] > 0.0 else "before"
        words = f"torque is stamped about {1e3 * abs(DELAYS[common]):.0f} ms {side} its motion"
        remedy = f"mend the stamps, or identify with --delay={DELAYS[common]:.3g}"
        effect = f"with it, {percent(gain)} less of the torque is left unexplained"
        found.append(Finding("delay", "stop" if gain > _WORTH else "warn", f"{words}; {effect}: {remedy}"))
    else:
        common = none
    for joint, own in zip(trial.robot.joint_names, left, strict=True):
        best = int(np.argmin(own))
        gain, apart = 1.0 - float(own[best] / own[common]), float(DELAYS[best] - DELAYS[common])  # in its own equations
        if abs(apart) > _USUAL + 1e-9 and gain > _WORTH and 0 < best < len(DELAYS) - 1:
            side = "later" if apart > 0.0 else "earlier"
            words = f"torque of joint {joint} comes about {1e3 * abs(apart):.0f} ms {side} than that of the others"
            effect = f"mending that takes {percent(gain)} of what is left of it: mend the stamps of its columns"
            found.append(Finding("delay", "stop" if gain > 2.0 * _WORTH else "warn", f"{words}; {effect}"))
    usual = f"no torque is more than {1e3 * _USUAL:.0f} ms late or early; smaller delays are found in identification"
    return found or [Finding("delay", "ok", usual)]
