"""Several experiments: steps with carried standard deviations against formulas, locked robots against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError
from tests.signals.made import Fourier, exact_log, stamps

TERMS = "rigid,Ia,Fv,Fc(0.02)"


def rows(names, values, n, seed, noise=0.2, present=None):
    """Rows over all columns; those without effect are zero."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, 1, len(names)))
    for i, name in enumerate(names):
        if present is not None and name not in present:
            W[:, :, i] = 0.0
    return W, W @ values + noise * rng.normal(size=(n, 1))


@pytest.fixture(scope="module")
def pair():
    names, values = ["a", "b", "c"], np.array([1.0, -2.0, 3.0])
    first = rows(names, values, 60, 1, present="ab")
    second = rows(names, values, 40, 2, present="bc")
    information = [di.information.accumulate_rows(*first, names), di.information.accumulate_rows(*second, names)]
    return first, second, [di.estimate.StageData(name, one) for name, one in zip("xy", information, strict=True)]


def test_steps_are_least_squares_with_what_is_known_moved_over(pair):
    (W1, y1), (W2, y2), experiments = pair
    found = di.estimate.solve_in_steps(experiments)
    ab = np.linalg.lstsq(W1[:, 0, :2], y1[:, 0], rcond=None)[0]
    c = np.linalg.lstsq(W2[:, 0, 2:], y2[:, 0] - W2[:, 0, 1] * ab[1], rcond=None)[0]
    np.testing.assert_allclose(found.values, [*ab, *c], rtol=1e-10)
    assert found.stages[0].names == ("a", "b")
    assert (found.stages[1].names, found.stages[1].known) == (("c",), ("b",))


def test_deviations_are_carried_along(pair):
    (W1, y1), (W2, y2), experiments = pair
    found = di.estimate.solve_in_steps(experiments)
    first = np.linalg.inv(W1[:, 0, :2].T @ W1[:, 0, :2])
    first *= np.sum((y1[:, 0] - W1[:, 0, :2] @ found.values[:2]) ** 2) / (60 - 2)
    own = 1.0 / np.sum(W2[:, 0, 2] ** 2)
    rest = y2[:, 0] - W2[:, 0, 1:] @ found.values[1:]
    J = np.array([0.0, -own * W2[:, 0, 2] @ W2[:, 0, 1]])
    variance = own * np.sum(rest**2) / (40 - 1) + J @ first @ J
    np.testing.assert_allclose(found.covariance[:2, :2], first, rtol=1e-9)
    assert found.covariance[2, 2] == pytest.approx(variance, rel=1e-9)
    np.testing.assert_allclose(found.covariance[2, :2], J @ first, rtol=1e-9)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


def test_together_is_one_least_squares(pair):
    (W1, y1), (W2, y2), experiments = pair
    found = di.estimate.solve_together(experiments, di.estimators.OrdinaryLeastSquares())
    all_rows = np.linalg.lstsq(np.vstack([W1[:, 0], W2[:, 0]]), np.concatenate([y1[:, 0], y2[:, 0]]), rcond=None)[0]
    np.testing.assert_allclose(found.values, all_rows, rtol=1e-10)
    assert [step.label for step in found.stages] == ["x", "y", "all together"]
    assert [step.rank for step in found.stages] == [2, 2, 3]


def test_inflation_of_experiments_counts(pair):
    experiments = [di.estimate.StageData(one.name, one.information, np.array([4.0])) for one in pair[2]]
    for solve in (di.estimate.solve_in_steps, di.estimate.solve_together):
        np.testing.assert_allclose(solve(experiments).std, 2.0 * solve(pair[2]).std, rtol=1e-6)


def test_what_was_eliminated_is_known_as_zero():
    names, values = ["a", "b", "c"], np.array([1.0, 0.001, 3.0])
    first = di.information.accumulate_rows(*rows(names, values, 60, 1, present="ab"), names)
    second = di.information.accumulate_rows(*rows(names, values, 40, 2, present="bc"), names)
    found = di.estimate.solve_in_steps(
        [di.estimate.StageData("x", first), di.estimate.StageData("y", second)], essential=0.15
    )
    assert found.essential == ("a", "c")
    assert found["b"] == 0.0
    assert found.stages[1].known == ("b",)
    assert [one["name"] for one in found.stages[0].as_dict()["eliminated"]] == ["b"]
    alone = di.estimators.WeightedLeastSquares().fit(second.restrict(["c"]))
    assert found["c"] == pytest.approx(alone.values_[0])
    assert found.std[2] > alone.std_[0]  # b may be off from zero, and c with it


def test_a_step_that_leaves_a_parameter_open_does_not_settle_it():
    names, values = ["a", "b", "c"], np.array([1.0, -2.0, 3.0])
    W, y = rows(names, values, 60, 1, noise=0.0, present="ab")
    W[:, :, 1] = W[:, :, 0]
    y = W @ values
    second = di.information.accumulate_rows(*rows(names, values, 40, 2, noise=0.0, present="bc"), names)
    found = di.estimate.solve_in_steps(
        [di.estimate.StageData("x", di.information.accumulate_rows(W, y, names)), di.estimate.StageData("y", second)]
    )
    assert found.stages[1].names == ("b", "c")
    np.testing.assert_allclose(found.values[1:], [-2.0, 3.0], atol=1e-9)
    assert found.undetermined == ("a",)


class TestLockedRobot:
    @pytest.fixture
    def robot(self):
        return di.load_robot("puma560")

    def logs(self, robot, **more):
        motion, t = Fourier.random(len(robot.joint_names), 1), stamps(20.0, 200.0)
        return exact_log(robot, motion, t, terms=TERMS, **more)

    def test_arm_and_wrist_from_logs(self, robot):
        arm = robot.lock(q4=0.3, q5=-0.2, q6=0.1)
        names = robot.joint_names
        signals = di.SignalOptions(band=10.0)
        wrist_first = di.estimate.experiment(
            "wrist", robot, self.logs(robot), TERMS, outputs=names[3:], signals=signals
        )
        arm_then = di.estimate.experiment("arm", arm, [self.logs(arm)], TERMS, signals=signals)
        assert arm_then.information.coordinates.n < wrist_first.information.coordinates.n
        assert arm_then.inflation[0] == pytest.approx(2.0, rel=0.2)
        found = di.estimate.solve_in_steps([wrist_first, arm_then])
        base = di.base_parameters(robot, TERMS)
        assert found.names == base.names
        assert found.undetermined == ()
        truth = base.base_values()
        np.testing.assert_allclose(found.values, truth, atol=0.01 * np.abs(truth).max())
        q, dq, ddq = Fourier.random(6, 5)(stamps(1.0, 100.0))
        ours = found.model.torque(q, dq, ddq)
        theirs = di.inverse_dynamics(robot, q, dq, ddq, TERMS)
        assert np.linalg.norm(ours - theirs) < 0.01 * np.linalg.norm(theirs)

    def test_experiments_of_which_none_sees_all(self, robot):
        """Two different poses of the wrist tell more together than either."""
        poses = [robot.lock(q4=x, q5=y, q6=0.1) for x, y in ((0.3, -0.2), (1.1, 0.9))]
        rng = np.random.default_rng(0)
        q, dq, ddq = rng.normal(size=(3, 300, 3))
        data = [di.accumulate(one, q, dq, ddq, di.inverse_dynamics(one, q, dq, ddq, "rigid"), "rigid") for one in poses]
        single = data[0].coordinates.n
        found = di.estimate.solve_together([di.estimate.StageData(f"pose {i}", one) for i, one in enumerate(data)])
        assert found.coordinates.n > single
        truth = found.coordinates.K @ di.parameters(robot, "rigid")
        np.testing.assert_allclose(found.values, truth, atol=1e-9 * np.abs(truth).max())

    def test_over_refuses_what_the_target_does_not_tell(self, robot):
        q, dq, ddq = np.random.default_rng(0).normal(size=(3, 50, 6))
        whole = di.accumulate(robot, q, dq, ddq, q, "rigid")
        part = di.accumulate(robot.lock(q6=0.2), *(x[:, :5] for x in (q, dq, ddq, q)), "rigid")
        assert part.over(whole).names == whole.names
        with pytest.raises(di.information.MergeError, match="no combination"):
            whole.over(part)

    def test_settled_moves_base_parameters_over(self, robot):
        q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 6))
        whole = di.accumulate(robot, q, dq, ddq, di.inverse_dynamics(robot, q, dq, ddq, "rigid"), "rigid")
        base = di.base_parameters(robot, "rigid")
        truth = dict(zip(base.names, base.base_values(), strict=True))
        rest = whole.settled({"ZZR1": truth["ZZR1"], "ZZ6": truth["ZZ6"]})
        assert rest.coordinates.n == base.n - 2
        np.testing.assert_allclose(rest.solve().values, [truth[name] for name in rest.names], atol=1e-9)
        with pytest.raises(UnknownNameError, match="base parameter"):
            whole.settled({"ZZ1": 1.0})
        with pytest.raises(InputError, match="finite"):
            whole.settled({"ZZR1": float("nan")})


def test_nothing_to_do_is_said(pair):
    with pytest.raises(InputError, match="no experiment"):
        di.estimate.solve_in_steps([])
    with pytest.raises(InputError, match="experiment x has no unknown parameter left"):
        di.estimate.solve_in_steps([pair[2][0], pair[2][0]])
    with pytest.raises(InputError, match="has no log"):
        di.estimate.experiment("empty", di.load_robot("pendulum-2"), [])


def test_the_table_has_a_line_for_each(pair):
    lines = di.estimate.solve_in_steps(pair[2]).stage_table().splitlines()
    assert [line.split()[0] for line in lines] == ["experiment", "x", "y"]


def test_an_order_that_loses_combinations_is_said():
    robot = di.load_robot("sr400")
    rng = np.random.default_rng(0)
    terms = "rigid,Ia,Fv,Fc"
    held = robot.lock(q4=0.3, q5=-0.4, q6=0.2)
    free_motion, held_motion = (rng.normal(size=(3, 1500, len(one.joint_names))) for one in (robot, held))
    wrist, arm = (
        di.accumulate(one, *motion, di.inverse_dynamics(one, *motion, terms) + rng.normal(size=motion[0].shape), terms)
        for one, motion in ((robot, free_motion), (held, held_motion))
    )
    wrist = di.estimate.StageData("wrist", wrist.outputs(["joint4", "joint5", "joint6"]))
    arm = di.estimate.StageData("arm", arm)
    good, bad = di.estimate.solve_in_steps([wrist, arm]), di.estimate.solve_in_steps([arm, wrist], "ordinary")
    assert good.determined.all()
    assert good.warnings == ()
    assert not bad.determined.all()
    assert "ZZR1" in bad.warnings[0]
    assert set(bad.essential) == set(bad.names) - set(bad.undetermined)


def test_what_is_not_an_experiment_is_refused():
    with pytest.raises(di.InputError, match="not an experiment"):
        di.estimate.solve_in_steps(["arm"])
    robot = di.load_robot("pendulum-2")
    motion = np.random.default_rng(0).normal(size=(3, 50, 2))
    info = di.accumulate(robot, *motion, di.inverse_dynamics(robot, *motion))
    with pytest.raises(di.InputError, match="inflation must be 2 numbers"):
        di.estimate.StageData("x", info, np.ones(1))
