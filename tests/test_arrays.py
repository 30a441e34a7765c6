"""`record`: frozen, compared by identity, arrays and mappings read-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field

import numpy as np
import pytest

from dynident.arrays import Array, Mask, record


@record
class Sample:
    values: Array
    known: Mask
    units: Mapping[str, str] = field(default_factory=dict)
    extra: Array | None = None

    def __post_init__(self) -> None:
        assert not self.values.flags.writeable  # checks see what is stored


@record
class Longer(Sample):
    more: Array | None = None


def test_what_a_caller_changes_later_does_not_reach_the_record():
    values, units = np.arange(3.0), {"a": "kg"}
    sample = Longer(values, [1, 0, 1], units, more=[1, 2])
    values[0], units["a"] = 9.0, "m"
    assert sample.values[0] == 0.0
    assert sample.units == {"a": "kg"}
    assert sample.extra is None
    assert sample.known.dtype == bool
    assert sample.more.dtype == np.float64


def test_nothing_can_be_changed():
    sample = Sample(np.zeros(2), np.ones(2, dtype=bool))
    with pytest.raises(FrozenInstanceError):
        sample.values = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        sample.values[0] = 1.0
    with pytest.raises(TypeError, match="immutable"):
        sample.units["a"] = "kg"


def test_what_is_read_only_is_not_copied():
    sample = Sample(np.zeros(2), np.ones(2, dtype=bool))
    again = Sample(sample.values, sample.known, sample.units)
    assert again.values is sample.values
    assert again != sample  # identity: arrays have no truth value
