"""Rows that parameters are estimated from: away from reversals, or as near to them as too little data asks.

A row within 1.32 periods of the band of a reversal is wrong by what filters make of dry friction there. Where too few
rows lie further away, those a step nearer are used too: wrong by a little, they still beat having none.
"""

from __future__ import annotations

from dataclasses import replace

from dynident.errors import InputError
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.signals.rows import PARAMETERS, ObservedRows

# [periods of the band] Distances from reversals, tried in turn. The last one leaves out little more than rest itself.
NEARER = (PARAMETERS.nearest, 0.5, 0.1)
_ROWS_PER_COLUMN = 2.0  # of a channel, with fewer of which nearer rows are used too


def choose_rows(rows: ObservedRows, n_unknowns: int) -> tuple[ObservedRows, Information]:
    """The rows of some logs for parameters, and what they say.

    Args:
        rows: The logs; which of their rows are used is decided here.
        n_unknowns: How many parameters they are to tell.

    Raises:
        InputError: When there is no row at all.
    """
    for nearest in NEARER:
        rows = replace(rows, rule=replace(PARAMETERS, nearest=nearest))
        try:
            found = accumulate_source(rows)
        except InputError:  # no row, or no stretch that is long enough
            if nearest == NEARER[-1]:
                raise
            continue
        if not too_few_rows(found, n_unknowns):
            break
    return rows, found


def too_few_rows(information: Information, n_unknowns: int) -> bool:
    """Whether rows are too few for the unknowns, in all or in a channel that has some."""
    if information.n_rows < ENOUGH.min_equations_away * n_unknowns:
        return True
    return any(
        0.0 < factor.n_rows < _ROWS_PER_COLUMN * min(len(factor.columns), n_unknowns)
        for factor in information.channel_factors()
    )
