"""Inputs and situations that are easy to get wrong."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading

import numpy as np
import pytest

import dynident as di
from tests.information.test_accumulation import data

ARM = "cmu-dd-arm-3"


def test_first_use_from_several_threads_at_once():
    """In a process of its own, so that nothing is compiled yet."""
    code = (
        "import threading, numpy as np, dynident as di\n"
        "def work(name):\n"
        "    robot = di.load_robot(name)\n"
        "    x = np.random.default_rng(0).normal(size=(4, 300, len(robot.joint_names)))\n"
        "    for _ in range(3):\n"
        "        di.accumulate(robot, *x).solve()\n"
        "threads = [threading.Thread(target=work, args=(f'pendulum-{i}',)) for i in (1, 2, 3, 1)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print('done')"
    )
    for cache in ("", None):
        environment = None if cache is None else {"DYNIDENT_CACHE": cache, "PATH": "/usr/bin"}
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
        )
        assert answer.stdout.strip() == "done", answer.stderr


def test_bad_sample_is_counted_from_the_beginning():
    robot = di.load_robot(ARM)
    samples = [x.copy() for x in data(robot, 40_000)]
    samples[3][39_000, 1] = np.nan
    message = "tau is nan at sample 39000, channel joint2"
    with pytest.raises(di.InputError, match=message):
        di.accumulate(robot, *samples)
    declared = dataclasses.replace(robot, fixed={"ZZ3": 0.01})
    with pytest.raises(di.InputError, match=message):
        di.accumulate(declared, *samples)
    with pytest.raises(di.InputError, match=message):
        di.information.accumulate_blocks(declared, [[x[:25_000] for x in samples], [x[25_000:] for x in samples]])
    with pytest.raises(di.InputError, match=message):
        di.accumulate(robot, *samples, segment=1000, extra={"ripple": np.ones((40_000, 3))})


def test_packed_records_and_odd_addresses(monkeypatch):
    robot = di.load_robot(ARM)
    samples = data(robot, 300)
    records = np.zeros(300, dtype=[("flag", "u1"), *((name, "f8", 3) for name in ("q", "dq", "ddq", "tau"))])
    for name, x in zip(("q", "dq", "ddq", "tau"), samples, strict=True):
        records[name] = x
    packed = [records[name] for name in ("q", "dq", "ddq", "tau")]
    assert packed[0].strides[0] % 8
    assert packed[0].ctypes.data % 8
    reference = di.accumulate(robot, *samples).solve().values
    np.testing.assert_array_equal(di.accumulate(robot, *packed).solve().values, reference)
    monkeypatch.setenv("DYNIDENT_BACKEND", "llvm")
    expected = di.regressor(robot, *samples[:3])
    np.testing.assert_array_equal(di.regressor(robot, *packed[:3]), expected)
    backwards = di.regressor(robot, *(x[::-1] for x in packed[:3]))
    np.testing.assert_array_equal(backwards, expected[::-1])


def test_overflow_is_an_error_and_not_a_factor():
    robot = di.load_robot(ARM)
    q, dq, ddq, tau = (x.copy() for x in data(robot, 50))
    dq[7, 0] = 1e200
    for extra in (None, {"ripple": np.ones((50, 3))}):
        with pytest.raises(di.InputError, match="equations overflow"):
            di.accumulate(robot, q, dq, ddq, tau, extra=extra)


@pytest.mark.parametrize("size", [1e160, 1e-170])
def test_rows_whose_squares_are_lost_are_refused(size):
    W = np.random.default_rng(0).normal(size=(40, 1, 3))
    with pytest.raises(di.InputError, match="W has numbers beyond 1e\\+140"):
        di.information.accumulate_rows(W * size, W[:, :, 0], "abc")


def test_rows_without_weight_are_no_data():
    robot = di.load_robot(ARM)
    q, dq, ddq, tau = data(robot, 400)
    mask = np.arange(400) % 4 == 0
    masked = di.accumulate(robot, q, dq, ddq, tau, weights=mask.astype(float)).solve()
    alone = di.accumulate(robot, q[mask], dq[mask], ddq[mask], tau[mask]).solve()
    np.testing.assert_allclose(masked.values, alone.values, atol=1e-9)
    np.testing.assert_allclose(masked.std, alone.std, rtol=1e-9)
    assert masked.n_rows == 300
    info = di.accumulate(robot, q, dq, ddq, tau)
    silent = info.weighted({"joint2": 0.0}).solve(weighting="equal")
    without = info.outputs(["joint1", "joint3"]).solve(weighting="equal")
    np.testing.assert_allclose(silent.std, without.std, rtol=1e-9)
    base = di.base_parameters(robot)
    W, zero = base.regressor(q, dq, ddq), mask[:, None]
    rows = di.information.accumulate_rows(W * zero[:, :, None], tau * zero, base, channels=robot.joint_names).solve()
    np.testing.assert_allclose(rows.std, alone.std, rtol=1e-9)


def test_degrees_of_freedom_belong_to_the_channel_that_determines():
    """Few rows, one precise channel: the standard deviations must still be right."""
    rng = np.random.default_rng(1)
    scores, ratios = [], []
    for _ in range(150):
        W = rng.normal(size=(40, 2, 20))
        truth = rng.normal(size=20)
        y = W @ truth + rng.normal(size=(40, 2)) * [0.01, 1.0]
        solution = di.information.accumulate_rows(W, y, [f"b{i}" for i in range(20)]).solve()
        scores.append((solution.values - truth) / solution.std)
        ratios.append(solution.sigma / [0.01, 1.0])
    np.testing.assert_allclose(np.mean(np.square(ratios), axis=0), [1.0, 1.0], atol=0.1)
    assert np.std(scores) < 1.15


def test_channels_of_very_different_size():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(500, 3, 4)) * np.array([1e6, 1.0, 1e-6])[:, None]
    truth = rng.normal(size=4)
    sigma = np.array([1e6, 1.0, 1e-6]) * 1e-8
    y = W @ truth + rng.normal(size=(500, 3)) * sigma
    np.testing.assert_allclose(di.information.accumulate_rows(W, y, "abcd").solve().sigma, sigma, rtol=0.1)


def test_an_iterator_may_reuse_its_buffers():
    robot = di.load_robot(ARM)
    samples = data(robot, 4000)
    buffers = [np.empty((100, 3)) for _ in range(4)]

    def blocks():
        for start in range(0, 4000, 100):
            for buffer, x in zip(buffers, samples, strict=True):
                buffer[:] = x[start : start + 100]
            yield buffers

    info = di.information.accumulate_blocks(robot, blocks(), threads=2)
    np.testing.assert_allclose(info.solve().values, di.accumulate(robot, *samples).solve().values, atol=1e-10)


def test_solving_in_several_threads_gives_the_library_its_threads_back():
    from threadpoolctl import threadpool_info

    def count():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    robot = di.load_robot(ARM)
    info = di.accumulate(robot, *data(robot, 200))
    before = count()
    workers = [threading.Thread(target=lambda: [info.solve() for _ in range(20)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert count() == before


@pytest.mark.parametrize("name", ["puma560", "sr400", "tx40", "minnesota"])
def test_numpy_accumulates_the_same_factors(name, monkeypatch):
    robot = di.load_robot(name)
    samples = data(robot, 700)
    weights = np.random.default_rng(0).uniform(0, 1, 700)
    compiled = di.accumulate(robot, *samples, weights=weights)
    extra = {"ripple": np.sin(9 * samples[0])}
    beside = di.accumulate(robot, *samples, extra=extra)
    monkeypatch.setenv("DYNIDENT_BACKEND", "numpy")
    plain = di.accumulate(robot, *samples, weights=weights)
    for ours, theirs in zip(plain.channel_factors(), compiled.channel_factors(), strict=True):
        assert ours.columns == theirs.columns
        gram = theirs.R.T @ theirs.R
        np.testing.assert_allclose(ours.R.T @ ours.R, gram, atol=1e-12 * np.abs(gram).max())
    np.testing.assert_allclose(
        di.accumulate(robot, *samples, extra=extra).solve().values, beside.solve().values, atol=1e-8
    )


def test_without_llvmlite_numpy_takes_over_and_says_so(tmp_path):
    code = (
        "import sys\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'llvmlite' else find(name, *a)\n"
        "sys.modules['llvmlite'] = None\n"
        "import numpy as np, dynident as di\n"
        "robot = di.load_robot('pendulum-2')\n"
        "x = np.random.default_rng(0).normal(size=(4, 30_000, 2))\n"
        "info = di.accumulate(robot, *x)\n"
        f"info.save({str(tmp_path / 'a.npz')!r})\n"
        f"print(di.load_information({str(tmp_path / 'a.npz')!r}).solve().rank, di.regressor(robot, *x[:3]).shape)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert answer.stdout.strip() == "13 (30000, 2, 28)", answer.stderr
    assert "llvmlite is not installed" in answer.stderr


def test_conflicting_known_values_do_not_merge():
    robot = di.load_robot(ARM)
    samples = data(robot, 50)
    light, heavy = (dataclasses.replace(robot, fixed={"ZZ3": value}) for value in (0.01, 5.0))
    for a, b in ((light, heavy), (light, robot)):
        with pytest.raises(di.information.MergeError, match="column ZZ3 means different things"):
            _ = di.accumulate(a, *samples) + di.accumulate(b, *samples)
    with pytest.raises(di.InputError, match="ZZ3 is fixed in the robot file already"):
        di.accumulate(light, *samples).known({"ZZ3": 9.0})


def test_a_dead_torque_channel_is_mentioned():
    robot = di.load_robot(ARM)
    q, dq, ddq, tau = (x.copy() for x in data(robot, 100))
    tau[:, 2] = 0.0
    assert "channel joint3 has no torque" in di.accumulate(robot, q, dq, ddq, tau).solve().solve.warnings[0]


def test_progress_is_reported_with_given_columns_too():
    robot = di.load_robot(ARM)
    seen = []
    di.accumulate(
        robot,
        *data(robot, 250),
        segment=100,
        extra={"ripple": np.ones((250, 3))},
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(100, 250), (200, 250), (250, 250)]


def test_sum_and_repr():
    robot = di.load_robot(ARM)
    parts = [di.accumulate(robot, *data(robot, 50, seed)) for seed in range(3)]
    assert sum(parts).n_rows == 450
    assert len(repr(sum(parts))) < 200


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r, s: di.accumulate(r, *s).solve()["nope"], "unknown base parameter 'nope'.*valid: ZZR1"),
        (lambda r, s: di.accumulate(r, *s).known({"M3": float("nan")}), "known value of M3 is nan"),
        (lambda r, s: di.accumulate(r, *s).known({"M3": "x"}), "known value of M3 is 'x'"),
        (lambda r, s: di.accumulate(r, *s).weighted([np.inf] * 3), "one weight, finite"),
        (lambda r, s: di.accumulate(r, *s).select([9]), "not all among 0 .. 0"),
        (lambda r, s: di.accumulate(r, *s).solve(rank_tolerance=2.0), "rank_tolerance is 2.0"),
        (lambda r, s: di.accumulate(r, *s).solve(rank_tolerance=float("nan")), "rank_tolerance is nan"),
        (lambda r, s: di.accumulate(r, *s, threads=-1, segment=5), "threads is -1"),
        (lambda r, s: di.accumulate(r, *s, weights="abc"), "weights must be an array of numbers"),
        (lambda r, s: di.accumulate(r, np.ma.masked_less(s[0], 0), *s[1:]), "q is a masked array"),
        (lambda r, s: di.information.accumulate_blocks(r, [s[:3]]), "four arrays"),
        (
            lambda r, s: di.information.accumulate_rows(np.ones((4, 1, 2)), np.ones((4, 1)), ["a", "a"]),
            "column 'a' is named twice",
        ),
        (
            lambda r, s: di.information.accumulate_rows(np.ones((4, 2, 1)), np.ones((4, 2)), "a", channels="xx"),
            "channel 'x' is named twice",
        ),
        (
            lambda r, s: di.information.accumulate_rows(np.ones((4, 1, 1)), np.ones((4, 1)), "a", definitions=[]),
            "0 definitions do not fit 1",
        ),
        (lambda r, s: di.accumulate(r, *s).save("no/such/folder/a.npz"), "the folder no/such/folder does not exist"),
    ],
)
def test_wrong_use_is_named(call, words):
    robot = di.load_robot(ARM)
    with pytest.raises(di.DynidentError, match=words):
        call(robot, list(data(robot, 20)))
