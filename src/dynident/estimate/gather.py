"""Observations as information: rows of joints in motion, in segments long enough to be independent."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.information.rows import accumulate_rows
from dynident.signals.observe import Observations, Rows

SEGMENT_SECONDS = 4.0  # residuals of filtered data are correlated; over this time hardly


def gather(observations: Iterable[Observations], base: BaseParameters) -> Information:
    """What the observations say about the base parameters.

    A joint at rest is held by friction that no column describes, so its rows are left out, and so are the ends of
    stretches, where the filters continue the signal by guess.
    """
    result: Information | None = None
    for one in observations:
        for rows in one.rows(base):
            for part in _segments(rows):
                used = rows.usable[part]
                if not used.any():
                    continue
                piece = accumulate_rows(
                    rows.W[part] * used[:, :, None],
                    rows.tau[part] * used,
                    base,
                    channels=base.robot.joint_names,
                    label=one.label,
                )
                result = piece if result is None else result + piece
    if result is None:
        raise InputError("no joint is in motion for long enough in these logs; rest alone teaches nothing")
    return result


def _segments(rows: Rows) -> list[slice]:
    """Slices of about SEGMENT_SECONDS, the last one not shorter than half of that."""
    step = float(np.median(np.diff(rows.time))) if len(rows.time) > 1 else 1.0
    length = max(1, round(SEGMENT_SECONDS / step))
    count = max(1, round(len(rows.time) / length))
    edges = np.linspace(0, len(rows.time), count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]
