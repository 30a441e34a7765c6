"""What a motion promises, in words that the terminal and the page share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.motion.excitation import ExcitingMotion
from dynident.report.text import plural
from dynident.report.thresholds import THRESHOLDS

_MOST_NAMES = 6


def forecast_sentence(motion: ExcitingMotion) -> str:
    """How many parameters can be expected, such as `38 of 58 parameters can be expected with a relative ..`."""
    good = int(np.sum(motion.relative_std < THRESHOLDS.fair_relative_std))
    limit = f"{100.0 * THRESHOLDS.fair_relative_std:.0f} %"
    return f"{good} of {len(motion.names)} parameters can be expected with a relative standard deviation below {limit}"


def assumption_sentences(motion: ExcitingMotion) -> list[str]:
    """What that rests on: the log that was assumed, and parameters whose value nobody has stated."""
    what = "energy" if motion.asked.model == "energy" else "torque"
    found = [f"Assumed: a log at {motion.rate:g} Hz with {what} noise {motion.noise_words} (--noise, --rate)."]
    unknown = [name for name, value in zip(motion.names, motion.values, strict=True) if np.isnan(value)]
    if unknown:
        names = ", ".join(unknown[:_MOST_NAMES]) + (" .." if len(unknown) > _MOST_NAMES else "")
        count = plural(len(unknown), "parameter")
        found.append(f"No value is known of {count} ({names}): standard deviations are in their units.")
    return found


def widest_first(motion: ExcitingMotion) -> NDArray[np.intp]:
    """Places of the parameters, the largest relative standard deviation first, those without a value at the end."""
    shares = motion.relative_std
    unknown, sizes = np.isnan(shares), motion.std / motion.sizes
    return np.lexsort((-np.where(unknown, sizes, shares), unknown))
