"""Axes of a machine that the robot has no joint for: its equations hold while they are at rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynident.logs.columns import Understood
from dynident.logs.log import HELD, LogError
from dynident.logs.stream import LogFile


def moving_axes(log: LogFile, axes: Sequence[Understood]) -> Iterator[str]:
    """What to say of axes that were left out and move, within the window of the log.

    Args:
        log: The log, whose first column is time.
        axes: Columns of positions that were left out.

    Yields:
        A sentence for each axis that is more than `HELD` from where it was first.
    """
    if not axes:
        return
    first, farthest = np.full(len(axes), np.nan), np.zeros(len(axes))
    try:
        for block in replace(log, columns=(log.columns[0], *axes), kept=None).rows():
            inside = (block[0] >= _or(log.start, -np.inf)) & (block[0] <= _or(log.stop, np.inf))
            values = block[1:, inside]
            for k, own in enumerate(values):
                known = own[np.isfinite(own)]
                first[k] = known[0] if np.isnan(first[k]) and len(known) else first[k]
                farthest[k] = max(farthest[k], float(np.abs(known - first[k]).max(initial=0.0)))
    except LogError as error:  # a column may be left out because it cannot be read
        yield f"{error}; whether the axes that are left out are at rest is not known"
        return
    for axis, far in zip(axes, farthest, strict=True):
        if far > HELD:
            name = log.table.headers[axis.place].strip()
            yield (
                f"{log.source}: column '{name}' is left out, but moves by {far:.3g} rad or m: the equations of a robot "
                "without this joint hold only while it is at rest; choose a time window in which it rests, or a robot "
                "that has the joint"
            )


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
