"""Jumps of positions by whole turns are taken back, wherever blocks end; other jumps are not."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.signals.wraps import Unwrapper, unwrap_blocks
from tests.signals.made import make_log

TURN = 2.0 * np.pi


@pytest.mark.parametrize("seed", range(20))
def test_wrapped_positions_come_back(seed):
    """A random walk with a rest in it, where noise jumps to and fro across the border of the turn."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(0.05 * rng.normal(size=(3, 400)), axis=1)
    x[:, 100:160] = x[:, 100:101] + 1e-4 * rng.normal(size=(3, 60))
    border = x[:, 100:101] if seed % 2 else rng.uniform(0.0, TURN)
    unwrapper = Unwrapper(3)
    pieces = np.split((x - border) % TURN, np.sort(rng.integers(0, 400, 5)), axis=1)
    off = np.hstack([unwrapper.add(piece) for piece in pieces]) - x
    np.testing.assert_allclose(off - off[:, :1], 0.0, atol=1e-9)


def test_fast_motion_in_undeclared_degrees_is_left_alone():
    x = np.degrees(np.sin(np.arange(3000) / 50.0 * 4.0))[None]  # up to 4.6 from sample to sample
    assert np.abs(np.diff(x)).max() > 0.7 * TURN
    assert Unwrapper(1).add(x) is x


def test_a_jump_that_is_no_turn_and_a_number_that_is_missing():
    x = np.zeros((2, 10))
    x[0, 5:], x[1, 5] = 4.0, np.nan
    np.testing.assert_array_equal(Unwrapper(2).add(x), x)


def test_blocks_of_a_log_come_without_jumps():
    x = np.cumsum(np.full(300, 0.1))
    robot = di.load_robot("pendulum-1")
    log = make_log(robot, np.arange(300) / 100.0, (x % TURN)[:, None], x[:, None])
    counts: dict[str, int] = {}
    blocks = list(unwrap_blocks(log.blocks(), counts))
    found = np.concatenate([block.channels["q1"] for block in blocks])
    np.testing.assert_allclose(found, x, atol=1e-9)
    assert counts == {"q1": int(x[-1] // TURN)}
    np.testing.assert_array_equal(np.concatenate([block.channels["tau1"] for block in blocks]), x)
    untouched = list(unwrap_blocks([make_log(robot, np.arange(9) / 100.0, x[:9, None], x[:9, None])], {}))
    np.testing.assert_array_equal(untouched[0].channels["q1"], x[:9])
