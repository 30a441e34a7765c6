"""Joints 2, 3 and 5 of the whole KUKA KR5 with the others braked: what they tell, and what it is worth for the arm."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from tests.recovery.kr5 import STEP, fourier, machine_torque
from tests.signals.made import make_log

ROOT = Path(__file__).parents[2]
LOCKED = {"q1": 0.0, "q4": 0.0, "q6": 0.0}
FLAG = ["--locked", "q1=0,q4=0,q6=0"]
TERMS = "rigid,Ia,Fv,Fc"
T = np.arange(0.0, 20.0, STEP)
NOISE = 0.5  # [N·m]


@pytest.fixture(scope="module")
def arm():
    return di.load_robot("kr5")


@pytest.fixture(scope="module")
def part(arm):
    return arm.lock(**LOCKED)


@pytest.fixture(scope="module")
def runs(arm, part):
    """Motion and noisy torque of the sub-chain and of all joints, links by Pinocchio."""
    rng, found = np.random.default_rng(0), {}
    for name, robot, seed in (("part", part, 1), ("arm", arm, 2)):
        motion = fourier(robot, T, seed)
        tau = machine_torque(robot, motion)
        found[name] = motion, tau, tau + NOISE * rng.normal(size=tau.shape)
    return found


@pytest.fixture(scope="module")
def estimates(arm, part, runs, tmp_path_factory):
    """Both identified through logs, and the factors of the logs."""
    store = tmp_path_factory.mktemp("factors")
    found = {}
    for name, robot in (("part", part), ("arm", arm)):
        motion, _, tau = runs[name]
        found[name] = di.identify(robot, make_log(robot, T, motion[0], tau, source=name), terms=TERMS, store=store)
    return found, [di.load_information(path) for path in sorted(store.glob("*.npz"))]


def test_without_noise_every_parameter_is_exact(part, runs):
    motion, tau, _ = runs["part"]
    found = di.accumulate(part, *motion, tau, TERMS).solve()
    base = di.base_parameters(part, TERMS)
    assert base.n == 17
    np.testing.assert_allclose(found.values, base.base_values(), atol=1e-9)


def test_the_log_needs_only_the_joints_that_move(estimates):
    found = estimates[0]["part"]
    assert found.rank == 17
    assert not found.undetermined
    off = (found.beta - found.base.base_values()) / found.std
    assert np.abs(off).max() < 4.0
    assert np.mean(np.abs(off) < 2.0) > 0.8
    assert found.train.relative < 0.005


def test_it_is_a_combination_of_the_whole_arms_parameters(estimates):
    own, whole = estimates[0]["part"], estimates[0]["arm"]
    X = own.base.K[:, list(whole.base.independent)]
    np.testing.assert_allclose(X @ whole.base.K, own.base.K, atol=1e-12)
    texts = dict(zip(own.names, X, strict=True))
    seen = {whole.names[j]: texts["MXR3"][j] for j in np.flatnonzero(texts["MXR3"])}
    assert seen == {"MXR3": 1.0, "MX4": 1.0}
    spread = np.sqrt(np.diag(X @ whole.covariance @ X.T) + own.std**2)
    assert np.abs((own.beta - X @ whole.beta) / spread).max() < 4.0


def test_standard_values_carry_it_over_to_the_arm(arm, part, runs, estimates):
    """The whole arm with these values gives the sub-chain's torque, whatever the rest of its description says."""
    found = estimates[0]["part"]
    heavier = {name: 1.2 * value for name, value in arm.value_set().items()}
    chi = found.base.standard_values(found.beta, prior=heavier)
    names = [column.name for column in found.base.columns]
    known = arm.with_values("identified", dict(zip(names, chi, strict=True)))
    motion, tau, _ = runs["part"]
    wide = [np.zeros((len(T), 6)) for _ in motion]
    for whole, own in zip(wide, motion, strict=True):
        whole[:, [1, 2, 4]] = own
    full = di.inverse_dynamics(known, *wide, TERMS)[:, [1, 2, 4]]
    np.testing.assert_allclose(full, di.inverse_dynamics(part, *motion, TERMS, found.model.chi), atol=1e-8)
    assert np.linalg.norm(full - tau) < 0.003 * np.linalg.norm(tau)
    assert di.identifiability.base_violations(found.base, found.beta) == []


def test_both_runs_together_are_better_than_either(arm, estimates):
    found, factors = estimates
    assert len(factors) == 2
    factors = [one.restrict(name for name in one.names if name != "delay") for one in factors]  # there is none
    both = factors[0] + factors[1]
    whole = di.base_parameters(arm, TERMS)
    assert both.names == whole.names
    assert set(both.channels) == set(arm.joint_names)
    assert both.n_rows == factors[0].n_rows + factors[1].n_rows
    merged = di.estimators.WeightedLeastSquares().fit(both)
    assert merged.rank_ == 52
    alone = (found["arm"].beta - whole.base_values()) / found["arm"].std
    off = (merged.values_ - whole.base_values()) / found["arm"].std
    assert np.abs(off).max() < 4.0
    seen = [whole.names.index(name) for name in found["part"].names if name in whole.names]
    assert len(seen) == 16
    assert np.sqrt(np.mean(off[seen] ** 2)) < 0.8 * np.sqrt(np.mean(alone[seen] ** 2))
    narrower = merged.std_ / found["arm"].white_std
    assert narrower[seen].max() < 0.95
    assert narrower.max() < 1.1
    np.testing.assert_allclose((factors[1] + factors[0]).solve().values, both.solve().values, rtol=1e-6, atol=1e-9)


def test_sub_chains_with_another_wrist_add_up(arm, part, runs):
    """Neither pose shows what both show: 17 and 21 parameters make 23."""
    turned = arm.lock(q1=0, q4=0.5, q6=0)
    motion = fourier(turned, T, 3)
    other = di.accumulate(turned, *motion, machine_torque(turned, motion), TERMS)
    first = di.accumulate(part, *runs["part"][0], runs["part"][1], TERMS)
    both = first + other
    assert (first.coordinates.n, other.coordinates.n, both.coordinates.n) == (17, 21, 23)
    found = both.solve()
    assert not found.undetermined
    np.testing.assert_allclose(found.values, both.coordinates.K @ di.parameters(arm, TERMS), atol=1e-8)


def test_stored_factors_know_where_joints_were_locked(arm, tmp_path):
    """The same log read as another pose is another experiment, though its columns have the same names."""
    right, wrong = arm.lock(q1=0, q4=0.5, q6=0), arm.lock(q1=0, q4=0.9, q6=0)
    t = np.arange(0.0, 10.0, STEP)
    motion = fourier(right, t, 1)
    log = make_log(right, t, motion[0], machine_torque(right, motion))
    first = di.identify(right, log, terms=TERMS, delay=0.0, store=tmp_path)
    second = di.identify(wrong, log, terms=TERMS, delay=0.0, store=tmp_path)
    assert first.names == second.names
    np.testing.assert_array_equal(second.beta, di.identify(wrong, log, terms=TERMS, delay=0.0).beta)
    assert len(list(tmp_path.glob("*.npz"))) == 2


class TestLockedJointsInALog:
    def log(self, part, q4):
        motion = fourier(part, T, 1)
        log = make_log(part, T, motion[0], di.inverse_dynamics(part, *motion, TERMS))
        return di.Log(log.source, log.digest, log.time, {**log.channels, "q4": q4})

    def test_held_still_is_fine(self, part):
        tremor = 1e-3 * np.sin(50.0 * T)
        assert di.identify(part, self.log(part, tremor), terms=TERMS).rank == 17

    def test_elsewhere_is_refused(self, part):
        drifting = np.where(T > 15.0, 0.3, 0.0)
        with pytest.raises(di.LogError, match=r"made: column q4 is 0\.3 at 15\.0\d* s, but the joint is locked at 0; "):
            di.identify(part, self.log(part, drifting), terms=TERMS)

    def test_prediction_refuses_it_too(self, part, estimates):
        with pytest.raises(di.LogError, match="lock it where it was held"):
            estimates[0]["part"].predict(self.log(part, T))


class TestBundledLogs:
    """The logs of the example, whose truth its own script knows."""

    @pytest.fixture(scope="class")
    @staticmethod
    def truth(arm):
        path = ROOT / "examples" / "subchain" / "make_logs.py"
        spec = importlib.util.spec_from_file_location("make_subchain_logs", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.true_values(arm)

    def test_command_line(self, part, truth, tmp_path, capsys):
        log, out = str(ROOT / "examples" / "subchain" / "joints_2_3_5.csv.gz"), str(tmp_path / "fit")
        assert main(["identify", "kr5", log, *FLAG, "--terms", TERMS, "-o", out, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["rank"] == 17
        assert answer["undetermined"] == []
        assert answer["train"]["relative_error"] < 0.003 < 0.05 < answer["nominal"]["relative_error"]
        base = di.base_parameters(part, TERMS)
        for name, value in zip(base.names, base.base_values(truth), strict=True):
            row = next(row for row in answer["parameters"] if row["name"] == name)
            assert abs(row["value"] - value) < 4.0 * row["std"], name

        assert main(["predict", out, log, "-o", str(tmp_path / "torque.csv")]) == 0
        assert (tmp_path / "torque.csv").read_text().startswith("t,tau2,tau3,tau5\n")
        assert di.load_fit(out).robot.locked == part.locked

    def test_a_log_in_which_the_locked_joints_move(self, tmp_path, capsys):
        log = str(ROOT / "examples" / "subchain" / "all_joints.csv.gz")
        assert main(["identify", "kr5", log, *FLAG, "-o", str(tmp_path / "fit")]) == 2
        message = capsys.readouterr().err
        assert "all_joints.csv.gz: column q1 is" in message
        assert "but the joint is locked at 0" in message
