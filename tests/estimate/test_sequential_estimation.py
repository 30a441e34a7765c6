from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.estimate import StageExperiment, sequential, sequential_online
from tests.robots import PinocchioOracle, random_urdf
from tests.signals.made import Fourier, make_log, pinocchio_torque, stamps

N = 150
SHORT = (9, 11)  # seeds of chains with few joints: every lock is a robot to compile


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("cmu-dd-arm-3")


def states(robot, seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, n, len(robot.joint_names))) * np.array([2.0, 2.0, 5.0])[:, None, None]


def sample(robot, seed=0, values=None, terms="rigid", n=N):
    """q, dq, ddq, tau of random states."""
    q, dq, ddq = states(robot, seed, n)
    return q, dq, ddq, di.inverse_dynamics(robot, q, dq, ddq, terms, values)


def assert_values(found, truth, tolerance=1e-8):
    assert np.abs(found - truth).max() <= tolerance * max(1.0, np.abs(truth).max())


class TestOnline:
    @pytest.mark.parametrize("seed", range(5))
    def test_chains_and_trees_of_pinocchio(self, seed):
        text = random_urdf(seed, tree=seed % 2 == 0)
        robot = di.robot.robot_from_urdf(text)
        q, dq, ddq = states(robot, seed)
        tau = PinocchioOracle(text, robot.joint_names).torque(q, dq, ddq)
        found = sequential_online(robot, (q, dq, ddq, tau), "rigid")
        assert not found.undetermined
        assert found.rank == found.base.n
        assert [stage.outputs for stage in found.stages] == [(name,) for name in reversed(robot.joint_names)]
        assert_values(found.beta, found.base.base_values())

    @pytest.mark.parametrize(("name", "terms"), [("sr400", "rigid,Ia,Fv,Fc"), ("puma560", None)])
    def test_couplings_loops_and_friction(self, name, terms):
        robot = di.load_robot(name)
        found = sequential_online(robot, sample(robot, terms=terms, n=400), terms)
        assert not found.undetermined
        assert_values(found.beta, found.base.base_values(), 1e-7)

    def test_arrays_information_and_standard_columns_give_the_same(self, robot):
        data = sample(robot)
        first = sequential_online(robot, data, "rigid")
        for columns in ("base", "standard"):
            other = sequential_online(robot, di.accumulate(robot, *data, "rigid", columns=columns), "rigid")
            np.testing.assert_allclose(other.beta, first.beta, atol=1e-9)

    def test_the_last_joint_knows_nothing_and_the_first_everything(self, robot):
        q, dq, ddq, tau = sample(robot)
        tau = tau + np.random.default_rng(1).normal(size=tau.shape)
        tip, _, root = sequential_online(robot, (q, dq, ddq, tau), "rigid").stages
        np.testing.assert_allclose(tip.std, tip.own_std)
        assert (root.std > 1.05 * root.own_std).all()
        assert root.names == ("ZZR1",)

    def test_a_log(self):
        robot = di.load_robot("pendulum-2")
        t = stamps(20.0, 200.0)
        q, dq, ddq = Fourier.random(2, 1)(t)
        log = make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq, "rigid"), dq=dq)
        signals = di.SignalOptions(velocity_source="measured", differentiator="five-point")
        found = sequential_online(robot, log, "rigid", signals=signals)
        assert not found.undetermined
        assert_values(found.beta, found.base.base_values(), 2e-4)

    def test_prediction(self, robot):
        q, dq, ddq, tau = sample(robot)
        found = sequential_online(robot, (q, dq, ddq, tau), "rigid")
        np.testing.assert_allclose(found.model.torque(q, dq, ddq), tau, atol=1e-8)


def locked_experiment(robot, locked, seed, noise=0.0, **more):
    held = robot.lock(**locked)
    q, dq, ddq, tau = sample(held, seed)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    return StageExperiment((q, dq, ddq, tau), locked, **more)


class TestOffline:
    @pytest.mark.parametrize("seed", SHORT)
    def test_joints_below_locked(self, seed):
        """Each stage tells true combinations; a last one with all joints moving takes them apart."""
        robot = di.robot.robot_from_urdf(random_urdf(seed, tree=False))
        rng = np.random.default_rng(seed)
        names = robot.position_names
        experiments = [
            locked_experiment(robot, {name: float(rng.normal()) for name in names[:k]}, k)
            for k in reversed(range(1, len(names)))
        ]
        experiments.append(StageExperiment(sample(robot, 77)))
        found = sequential(robot, experiments, "rigid")
        truth = dict(zip(found.names, found.base.base_values(), strict=True))
        for stage in found.stages:
            for name, value in zip(stage.names, stage.values, strict=True):
                assert value == pytest.approx(combined(name, truth), abs=1e-4 * max(1, abs(value)))
        assert not found.undetermined
        assert_values(found.beta, found.base.base_values(), 1e-7)

    def test_what_no_stage_determines_keeps_its_nominal_value(self, robot):
        experiment = locked_experiment(robot, {"q1": 0.3, "joint2": 0.2}, 0)
        found = sequential(robot, experiment, "rigid", nominal="table3")
        nominal = found.base.base_values("table3")
        assert set(found.stages[0].names) == {"YY3", "MX3", "MZ3"}
        for i, name in enumerate(found.names):
            if name in found.undetermined:
                assert found.beta[i] == nominal[i]
                assert found.std[i] == np.inf
        assert found["YY3"] == pytest.approx(found.base.base_values()[found.names.index("YY3")], abs=1e-9)
        assert sequential(robot, experiment, "rigid")["XY3"] == 0.0

    def test_a_combination_is_written_out_and_stands_on_its_first_parameter(self, robot):
        found = sequential(robot, locked_experiment(robot, {"q1": 0.3, "q3": 0.0}, 0), "rigid")
        assert found.stages[0].names == ("YYR2 + 0.8 MXR2 + 0.8 MX3",)
        assert found["YYR2"] == pytest.approx(found.stages[0]["YYR2 + 0.8 MXR2 + 0.8 MX3"])
        assert found["MXR2"] == 0.0
        assert {"YYR2", "MXR2"} <= set(found.undetermined)
        assert "joint2 (combined)" in found.table()

    def test_a_stage_that_adds_nothing_says_so(self, robot):
        first = locked_experiment(robot, {"q1": 0.3, "q2": 0.2}, 0)
        again = locked_experiment(robot, {"q1": -0.3, "q2": 0.9}, 1, noise=0.1)
        _, second = sequential(robot, [first, again], "rigid").stages
        assert (second.rank, second.names) == (0, ())
        assert second.note.startswith("adds nothing: the torque of joint3 depends only on what is known already")
        assert second.sigma[0] == pytest.approx(0.1, rel=0.3)

    def test_a_torque_that_feels_nothing_says_so(self, robot):
        still = np.zeros((20, 3))
        (stage,) = sequential(robot, StageExperiment((still,) * 4, outputs="joint1"), "rigid").stages
        assert "depends on no parameter in this motion" in stage.note
        assert "move the joints more variedly" in stage.note

    def test_locked_joints_leave_open_what_the_note_names(self, robot):
        (stage,) = sequential(robot, locked_experiment(robot, {"q1": 0.0, "q2": 0.0}, 0), "rigid").stages
        assert stage.rank == 3
        assert set(stage.left_open) == {"XXR3", "XY3", "XZ3", "YZ3"}
        assert "of the 7 that this torque depends on" in stage.note
        assert "q1, q2 locked; let them move" in stage.note


def combined(text: str, values: dict[str, float]) -> float:
    """Value of a combination in words."""
    total, sign, factor = 0.0, 1.0, 1.0
    for word in text.split():
        if word in "+-":
            sign = -1.0 if word == "-" else 1.0
        elif word in values:
            total, sign, factor = total + sign * factor * values[word], 1.0, 1.0
        else:
            factor = float(word)
    return total


class TestDeviations:
    """Errors of repeated noisy experiments fill the stated covariance."""

    sigma = np.array([0.5, 0.5, 4.0])  # the tip's torque is the worst: what it tells spoils later stages
    draws = 40

    def misfits(self, robot, find):
        """e' C^-1 e of every draw, and the results."""
        results = [find(np.random.default_rng(seed)) for seed in range(self.draws)]
        truth = results[0].base.base_values()
        return np.array([(r.beta - truth) @ np.linalg.solve(r.covariance, r.beta - truth) for r in results]), results

    def assert_fills(self, misfits, n):
        # Chi square: mean n, variance 2 n; residual standard deviations from some hundred rows add a few per cent.
        assert misfits.mean() == pytest.approx(n, abs=4.0 * np.sqrt(2.0 * n / len(misfits)) + 0.03 * n)

    def test_online(self, robot):
        q, dq, ddq, tau = sample(robot, n=300)

        def find(rng):
            return sequential_online(robot, (q, dq, ddq, tau + self.sigma * rng.normal(size=tau.shape)), "rigid")

        misfits, results = self.misfits(robot, find)
        self.assert_fills(misfits, 11)
        second = [result.stages[1] for result in results]
        assert second[0].names[0] == "YYR2"
        spread = np.std([stage.values[0] for stage in second])
        assert spread == pytest.approx(np.mean([stage.std[0] for stage in second]), rel=0.25)
        assert spread > 2.0 * np.mean([stage.own_std[0] for stage in second])

    def test_the_joint_estimate_is_better_and_agrees(self, robot):
        q, dq, ddq, tau = sample(robot, n=300)
        tau = tau + self.sigma * np.random.default_rng(5).normal(size=tau.shape)
        information = di.accumulate(robot, q, dq, ddq, tau, "rigid")
        apart, joint = sequential_online(robot, information, "rigid"), information.solve()
        gain = apart.covariance - joint.covariance
        scale = np.sqrt(np.diag(apart.covariance))
        assert np.linalg.eigvalsh(gain / np.outer(scale, scale)).min() > -0.03
        # For the best estimate, cov(other - best) = cov(other) - cov(best).
        assert (np.abs(apart.beta - joint.values) < 4.0 * np.sqrt(np.diag(gain)) + 1e-6).all()
        assert (apart.std > 1.5 * joint.std).any()

    def test_combinations_that_are_taken_apart_later(self, robot):
        held = robot.lock(q1=0.3, q3=0.4)
        first, last = sample(held, 1), sample(robot, 2, n=300)

        def find(rng):
            noisy = [(*d[:3], d[3] + s * rng.normal(size=d[3].shape)) for d, s in ((first, 2.0), (last, self.sigma))]
            rest = [StageExperiment(noisy[1], outputs=name) for name in ("q3", "q2", "q1")]
            return sequential(robot, [StageExperiment(noisy[0], {"q1": 0.3, "q3": 0.4}), *rest], "rigid")

        misfits, results = self.misfits(robot, find)
        assert "+" in results[0].stages[0].names[0]
        assert [stage.rank for stage in results[0].stages] == [1, 7, 2, 1]
        self.assert_fills(misfits, 11)

    @pytest.mark.parametrize("estimator", ["ordinary", "total", di.estimators.RidgeLeastSquares(1e-8)])
    def test_other_methods_carry_deviations_alike(self, robot, estimator):
        q, dq, ddq, tau = sample(robot, n=300)
        tau = tau + self.sigma / 50.0 * np.random.default_rng(5).normal(size=tau.shape)
        plain = sequential_online(robot, (q, dq, ddq, tau), "rigid")
        other = sequential_online(robot, (q, dq, ddq, tau), "rigid", estimator=estimator)
        np.testing.assert_allclose(other.std, plain.std, rtol=0.25)
        assert (np.abs(other.beta - plain.beta) < 1.5 * plain.std).all()


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda r: sequential(r.lock(q1=0), [], "rigid"), "takes the free robot"),
            (lambda r: sequential(r, [], "rigid"), "there is no experiment"),
            (lambda r: sequential(r, [sample(r)], "rigid"), "experiment 0 is tuple; expected a StageExperiment"),
            (
                lambda r: sequential(r, StageExperiment(sample(r)[:3], label="tip"), "rigid"),
                "tip: expected four arrays",
            ),
            (lambda r: sequential(r, StageExperiment(3, label="tip"), "rigid"), "tip: is int; expected"),
            (lambda r: sequential_online(r, sample(r), "rigid", estimator="robust"), "RobustLeastSquares cannot serve"),
            (lambda r: sequential_online(r, sample(r), "rigid", estimator="best"), "unknown estimator 'best'"),
            (lambda r: sequential(r, StageExperiment(sample(r), outputs="q9"), "rigid"), "unknown output 'q9'"),
            (lambda r: sequential_online(r, sample(r), "rigid", nominal="none"), "unknown parameter set 'none'"),
        ],
    )
    def test_messages(self, robot, make, message):
        with pytest.raises(di.DynidentError, match=message):
            make(robot)

    def test_data_of_another_robot(self, robot):
        other = di.load_robot("cylindrical")
        information = di.accumulate(other, *sample(other), "rigid")
        with pytest.raises(di.information.MergeError, match="column XX1 is not that of the robot"):
            sequential(robot, StageExperiment(information), "rigid")

    def test_data_with_other_fixed_values(self, robot):
        known = dataclasses.replace(robot, fixed={"XY3": 0.0})
        information = di.accumulate(known, *sample(known), "rigid")
        with pytest.raises(di.information.MergeError, match="column XY3 is not that"):
            sequential_online(robot, information, "rigid")
        assert "XY3" not in sequential_online(known, information, "rigid").names

    def test_names_that_are_not_there(self, robot):
        found = sequential_online(robot, sample(robot), "rigid")
        with pytest.raises(di.UnknownNameError, match="base parameter 'XX9'"):
            found["XX9"]
        with pytest.raises(di.UnknownNameError, match="parameter of stage joint3"):
            found.stages[0]["XX9"]
        for key in (True, 0, None, found.determined):  # no names, and no TypeError
            with pytest.raises(di.UnknownNameError, match="unknown base parameter"):
                found[key]


def test_table_and_repr():
    robot = di.load_robot("puma560")
    data = sample(robot, terms=None, n=300)
    found = sequential_online(robot, data, nominal=robot.value_set())
    lines = found.table().splitlines()
    assert len(lines) == 1 + found.base.n
    assert lines[0].split()[:6] == ["parameter", "stage", "nominal", "correction", "value", "std"]
    assert "nominal" not in sequential_online(robot, data).table()
    assert repr(found) == f"StagedEstimate({found.base.n} of {found.base.n} base parameters in 6 stages)"
    assert np.abs(found.correction).max() < 1e-8
    assert pinocchio_torque(robot, *data[:3], smoothing=1e-9) == pytest.approx(data[3], abs=1e-8)


class TestWrongData:
    def test_a_log_is_no_experiment(self):
        log = di.Log("run", "", np.arange(3.0), {"q1": np.zeros(3)})
        with pytest.raises(di.InputError, match=r"experiments is Log; expected StageExperiments.*sequential_online"):
            sequential(di.load_robot("pendulum-2"), log)
