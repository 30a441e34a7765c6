"""Rows as blocks: what is usable of them, cut into segments, mapped to fewer parameters or around given values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynident.arrays import frozen
from dynident.dynamics.terms import Column
from dynident.errors import InputError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.row_source import GivenRows, MappedRows, accumulate_source

N = 60
TRUTH = np.array([2.0, -1.0, 0.5])


def coordinates(names=("a", "b", "c")):
    columns = tuple(Column(name, "", name, "", "given", "given column") for name in names)
    return Regrouping(columns, tuple(range(len(names))), frozen(np.eye(len(names))))


@pytest.fixture
def rows():
    """Two outputs, the second of which does not depend on the first parameter; every fifth row is zero."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(N, 2, 3))
    W[:, 1, 0] = 0.0
    W[::5] = 0.0
    return GivenRows(W, W @ TRUTH, coordinates(), block=16, segment=25)


class TestBlocks:
    def test_shapes(self, rows):
        for block in rows.blocks():
            n = len(block.time)
            assert block.columns == ((0, 1, 2), (1, 2))
            assert [own.shape for own in block.columns_first] == [(4, n), (3, n)]
            assert block.usable.shape == (n, 2)

    def test_rows_of_zeros_are_not_usable(self, rows):
        usable = np.concatenate([block.usable for block in rows.blocks()])
        np.testing.assert_array_equal(usable, np.repeat((np.arange(N) % 5 > 0)[:, None], 2, axis=1))

    def test_usable_rows_are_a_copy(self, rows):
        block = next(rows.blocks())
        own = block.usable_columns_first(1)
        assert own.shape == (3, np.count_nonzero(block.usable[:, 1]))
        own[:] = np.nan  # as a factor does that absorbs them
        assert np.isfinite(block.columns_first[1]).all()

    def test_residual(self, rows):
        for block in rows.blocks():
            for output in range(2):
                np.testing.assert_allclose(block.residual(output, TRUTH), 0.0, atol=1e-14)

    def test_segments_follow_their_numbers(self, rows):
        block = next(rows.blocks())
        numbers = np.array([4] * 3 + [2] * 7 + [5] * 6)
        parts = list(block.segments(numbers))
        assert [part.segment for part in parts] == [4, 2, 5]
        np.testing.assert_array_equal(np.concatenate([part.time for part in parts]), block.time)
        for output in range(2):
            joined = np.hstack([part.columns_first[output] for part in parts])
            np.testing.assert_array_equal(joined, block.columns_first[output])
        assert all(np.shares_memory(part.columns_first[0], block.columns_first[0]) for part in parts)


class TestAccumulation:
    def test_segments_and_rows(self, rows):
        found = accumulate_source(rows)
        assert [segment.label for segment in found.segments] == ["data"] * 3
        assert found.n_rows == 2 * N * 4 / 5
        np.testing.assert_allclose(found.solve().values, TRUTH, rtol=1e-12)

    def test_unusable_rows_do_not_count(self, rows):
        class Spoilt(GivenRows):
            """Rows far off that are not usable."""

            def blocks(self):
                for block in super().blocks():
                    block.columns_first[0][-1, ::2] += 100.0
                    block.usable[::2, 0] = False
                    yield block

        spoilt = Spoilt(rows.W, rows.tau, coordinates(), block=16, segment=25)
        np.testing.assert_allclose(accumulate_source(spoilt).solve().values, TRUTH, rtol=1e-12)

    def test_no_usable_row(self, rows):
        silent = replace(rows, W=np.zeros_like(rows.W), tau=np.zeros_like(rows.tau))
        with pytest.raises(InputError, match="no row for training"):
            accumulate_source(silent)


class TestMappedRows:
    def test_selection_is_that_of_the_factors(self, rows):
        mapped, factors = (
            accumulate_source(MappedRows(rows, ("c", "b"))),
            accumulate_source(rows).restrict(["b", "c"]),
        )
        assert mapped.coordinates.names == factors.coordinates.names == ("b", "c")
        np.testing.assert_allclose(mapped.solve().values, factors.solve().values, rtol=1e-12)
        np.testing.assert_allclose(mapped.solve().std, factors.solve().std, rtol=1e-10)

    def test_origin_is_that_of_the_factors(self, rows):
        origin = np.array([1.0, 1.0, 1.0])
        mapped = accumulate_source(MappedRows(rows, origin=origin))
        np.testing.assert_allclose(mapped.solve().values, TRUTH - origin, rtol=1e-12)
        np.testing.assert_allclose(mapped.solve().values, accumulate_source(rows).around(origin).solve().values)

    def test_both(self, rows):
        """What is not selected stays at the origin."""
        origin = np.array([TRUTH[0], 0.0, 3.0])
        mapped = MappedRows(rows, ("b", "c"), origin)
        for block in mapped.blocks():
            assert block.columns == ((0, 1), (0, 1))
            for output in range(2):
                np.testing.assert_allclose(block.residual(output, (TRUTH - origin)[1:]), 0.0, atol=1e-13)
