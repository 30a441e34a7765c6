"""Data that is there already, as rows over the base columns of a motion's model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information


def known_rows(base: BaseParameters, information: Information, sigma: Mapping[str, float]) -> Array:
    """Weighted rows of the information over the base columns, matched by name."""
    names = [column.name for column in information.coordinates.columns]
    wanted = [base.columns[i].name for i in base.independent]
    missing = [name for name in names if name not in {column.name for column in base.columns}]
    if missing:
        raise InputError(f"the information tells about {missing[0]}, which the motion's model has not; use its terms")
    blocks = []
    for channel, rows in zip(information.channels, information.standard_rows(), strict=True):
        block = np.zeros((len(rows), base.n))
        for place, name in enumerate(wanted):
            if name in names:
                block[:, place] = rows[:, names.index(name)]
        blocks.append(block / sigma[channel])
    return np.asarray(np.linalg.qr(np.vstack(blocks), mode="r"))


def known_values(base: BaseParameters, information: Information, otherwise: Array) -> Array:
    """(n,) base parameters as the information determines them, `otherwise` where it does not."""
    solved = information.solve()
    known = {
        name: value for name, value, sure in zip(solved.names, solved.values, solved.determined, strict=True) if sure
    }
    return np.array([known.get(name, other) for name, other in zip(base.names, otherwise, strict=True)])
