"""Forgetting and the floor under standard deviations, against the matrices they stand for."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.information.factor import absorb
from dynident.online.history import StretchRows, make_room, raise_to_floor


def stretch(rows, tau):
    """A stretch of rows (n, k)."""
    part = StretchRows(rows.shape[1])
    absorb(part.R, np.array(np.column_stack([rows, tau]).T, order="C"))
    part.rows, part.instants, part.start, part.stop = float(len(rows)), len(rows), 0.0, 1.0
    return part


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def information(part):
    return part.R[:-1, :-1].T @ part.R[:-1, :-1]


def test_exponential_forgetting_is_a_factor(rng):
    old = stretch(rng.normal(size=(50, 4)), rng.normal(size=50))
    before = information(old)
    make_room(old, stretch(rng.normal(size=(5, 4)), np.ones(5)), "exponential", np.exp(-1.0 / 2.0))
    np.testing.assert_allclose(information(old), np.exp(-0.5) * before, rtol=1e-12)
    assert old.rows == pytest.approx(50 * np.exp(-0.5))


class TestDirectional:
    def test_nothing_leaves_where_nothing_comes(self, rng):
        """New rows see the first two unknowns alone; of the others everything is kept, and no value moves."""
        truth = np.array([1.0, -2.0, 3.0, 0.5])
        rows = rng.normal(size=(80, 4))
        old = stretch(rows, rows @ truth)
        fresh = np.zeros((30, 4))
        fresh[:, :2] = rng.normal(size=(30, 2))
        before = np.linalg.inv(information(old))
        for _ in range(500):
            new = stretch(fresh, fresh @ truth)
            make_room(old, new, "directional", np.exp(-0.5 / 1.0))
            old.add(new)
        after = np.linalg.inv(information(old))
        assert (np.diag(after)[2:] <= np.diag(before)[2:] * (1.0 + 1e-9)).all()
        np.testing.assert_allclose(np.linalg.solve(old.R[:4, :4], old.R[:4, 4]), truth, rtol=1e-8)

    def test_no_direction_loses_more_than_it_gains(self, rng):
        old = stretch(rng.normal(size=(80, 5)), np.ones(80))
        for _ in range(20):
            before = information(old)
            new = stretch(rng.normal(size=(3, 5)) * rng.uniform(0.0, 0.3, 5), np.ones(3))
            make_room(old, new, "directional", np.exp(-2.0 / 1.0))
            old.add(new)
            assert np.linalg.eigvalsh(information(old) - before).min() > -1e-9 * np.linalg.norm(before)

    def test_with_rich_motion_it_is_exponential_forgetting(self, rng):
        parts = [stretch(rng.normal(size=(400, 3)), np.ones(400)) for _ in range(300)]
        found = []
        for kind in ("directional", "exponential"):
            old = parts[0].copy()
            for new in parts[1:]:
                make_room(old, new, kind, np.exp(-1.0 / 10.0))
                old.add(new)
            found.append(information(old))
        ratio = np.linalg.eigvals(np.linalg.solve(found[1], found[0])).real
        assert 1.0 < ratio.min() < ratio.max() < 1.3  # it keeps a little more: no gain is ever more than made up for

    def test_it_follows_a_change(self, rng):
        old = StretchRows(3)
        for i in range(200):
            rows = rng.normal(size=(20, 3))
            new = stretch(rows, rows @ (np.ones(3) if i < 100 else np.array([1.0, 2.0, 1.0])))
            make_room(old, new, "directional", np.exp(-1.0 / 10.0))
            old.add(new)
        np.testing.assert_allclose(np.linalg.solve(old.R[:3, :3], old.R[:3, 3]), [1.0, 2.0, 1.0], atol=1e-2)


def test_the_floor_adds_variance_and_moves_no_value(rng):
    rows = rng.normal(size=(500, 4))
    part = stretch(rows, rows @ np.arange(4.0))
    P = np.linalg.inv(information(part))
    floor = np.array([0.0, 0.2, 0.0, 1e-9])
    assert raise_to_floor(part, floor, 0.25) == 1
    wanted = P + np.diag([0.0, 0.2**2 / 0.25 - P[1, 1], 0.0, 0.0])
    np.testing.assert_allclose(np.linalg.inv(information(part)), wanted, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.solve(part.R[:4, :4], part.R[:4, 4]), np.arange(4.0), atol=1e-10)


def test_a_kind_that_does_not_exist():
    with pytest.raises(di.InputError, match="unknown choice 'exponental'; did you mean 'exponential'"):
        di.online.OnlineOptions(forgetting="exponental")
    with pytest.raises(di.InputError, match="memory is 0"):
        di.online.OnlineOptions(forgetting="exponential", memory=0.0)
