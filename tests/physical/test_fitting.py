"""The physical parameters nearest to a fit: truth recovered, cvxpy as an oracle, contradictions and conflicts named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import dynident as di
from dynident.errors import InfeasibleError, InputError, UnknownNameError
from dynident.physical.cones import ConeProblem, from_triangle, log_determinant, triangle
from dynident.physical.fitting import physical_fit, rows_of
from dynident.physical.inertia import inertia_share, spatial_inertia
from dynident.physical.prior import plausible_bodies
from dynident.physical.result import LinkBody, link_table
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.parameters import LINK_SYMBOLS, from_classical, to_classical
from dynident.robot.physicality import pseudo_inertia, violations
from dynident.validation.residuals import compare
from tests.physical.physical_cases import information


@pytest.fixture(scope="module")
def arm():
    """A three-joint arm, its data and the fit by weighted least squares."""
    robot = di.load_robot("cmu-dd-arm-3")
    data = information(robot, None, terms="rigid", noise=0.005)
    return robot, di.estimators.WeightedLeastSquares().fit(data)


@pytest.fixture(scope="module")
def impossible():
    """Data of Table 3 of Khosla & Kanade, whose third link is not physically consistent."""
    robot = di.load_robot("cmu-dd-arm-3")
    return di.estimators.WeightedLeastSquares().fit(information(robot, "table3", terms="rigid", noise=0.005))


def test_a_physical_truth_is_left_alone(arm):
    _, fitted = arm
    found = physical_fit(fitted, prior="plausible")
    assert found.distance <= 1.05 * THRESHOLDS.prior_shift_std
    assert not found.contradictions
    assert np.abs(found.deviations).max() <= 1.05 * THRESHOLDS.prior_shift_std
    assert all(not violations(chi, "link") for chi in found.link_parameters)
    truth = fitted.information_.coordinates.base_values()
    assert np.abs((found.beta - truth) / fitted.std_).max() < 5.0
    assert found.errors == pytest.approx(found.errors_unconstrained, rel=5e-3)


def test_what_is_open_is_settled_by_the_prior_and_by_nothing_else(arm):
    robot, fitted = arm
    nominal = physical_fit(fitted)
    assert "values 'plant'" in nominal.prior
    assert nominal["M1"] == pytest.approx(robot.value_set()["M1"], rel=0.02)  # no torque tells M1
    own = robot.value_set()
    other = physical_fit(fitted, prior={**own, "XX1": own["XX1"] + 0.3, "YY1": own["YY1"] + 0.3})
    assert other["XX1"] - nominal["XX1"] == pytest.approx(0.3, rel=0.02)
    # Two priors, one data set: what the data determines stays.
    assert np.abs(other.beta - nominal.beta).max() < 2.1 * THRESHOLDS.prior_shift_std * fitted.std_.max()
    assert "M1" in nominal.from_prior
    again = physical_fit(fitted)
    np.testing.assert_array_equal(again.chi, nominal.chi)


def test_deviations_of_standard_parameters_are_those_of_the_base_where_they_are_the_same(arm):
    _, fitted = arm
    found = physical_fit(fitted)
    std = dict(zip(found.values, found.chi_std, strict=True))
    base = dict(zip(fitted.names_, fitted.std_, strict=True))
    assert std["MX3"] == pytest.approx(base["MX3"], rel=1e-2)
    assert std["XX3"] == np.inf


def test_least_distance_agrees_with_cvxpy(impossible):
    rows = rows_of(impossible)
    base = rows.base
    found = physical_fit(impossible, prior="plausible")
    chi = cp.Variable(len(base.columns))
    units = [pseudo_inertia(row) for row in np.eye(10)]
    conditions = []
    for number, body in enumerate(plausible_bodies(base.robot)):
        J = sum(chi[10 * number + k] * units[k] for k in range(10))
        conditions.append(J - THRESHOLDS.floor * pseudo_inertia(body) >> 0)
    residual = rows.R @ base.K @ chi - rows.R @ rows.estimate.values
    problem = cp.Problem(cp.Minimize(cp.norm(residual)), conditions)
    problem.solve(solver="SCS", eps=1e-7, max_iters=20000)
    assert found.distance == pytest.approx(problem.value, rel=1e-2)
    assert found.distance > 50.0


def test_log_determinant_agrees_with_cvxpy():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    C = root @ root.T + np.eye(4)
    problem = ConeProblem()
    y = problem.variables(10)
    logs = log_determinant(problem, "body", [(y, np.eye(10))], np.zeros(10))
    problem.linear.update(dict.fromkeys(logs.tolist(), -1.0))
    problem.linear.update(zip(y.tolist(), triangle(C), strict=True))
    # Without the diagonal entry the minimum would be the inverse of C.
    problem.require("entry", "nonnegative", [(y[:1], -np.eye(1))], np.array([0.05]))
    J = from_triangle(problem.solve()[0][y])
    X = cp.Variable((4, 4), PSD=True)
    cp.Problem(cp.Minimize(cp.trace(C @ X) - cp.log_det(X)), [X[0, 0] <= 0.05]).solve(solver="CLARABEL")
    np.testing.assert_allclose(J, X.value, atol=2e-4)  # what it stops at by default
    assert J[0, 0] == pytest.approx(0.05, abs=1e-6)


def test_infeasible_cones_say_so():
    problem = ConeProblem()
    x = problem.variables(1)
    problem.require("low", "nonnegative", [(x, np.eye(1))], np.array([-1.0]))
    problem.require("high", "nonnegative", [(x, -np.eye(1))], np.array([0.0]))
    with pytest.raises(InfeasibleError, match="contradict"):
        problem.solve()


def test_data_against_physics_names_the_link_and_by_how_much(impossible):
    found = physical_fit(impossible, prior="plausible")
    worst = found.contradictions[0]
    assert worst.condition == "link 3"
    assert worst.share > 0.5
    more = 1.1 * THRESHOLDS.prior_shift_std  # the prior may add to it
    assert worst.distance == pytest.approx(found.distance, abs=more)
    assert worst.without < 0.2 * found.distance
    assert f"link 3 causes {100 * worst.share:.0f} % of the {worst.distance:.1f} standard deviations" in str(worst)
    assert found.links[2].margin < 0.01  # next to no body, but for what the prior may move it
    assert all(not violations(chi, "link") for chi in found.link_parameters)
    assert np.all(found.errors > found.errors_unconstrained)
    # What the conditions cause adds up to the squared distance, but for what the prior was allowed to take.
    assert sum(found.strains.values()) == pytest.approx(found.distance**2, rel=0.01)
    assert any("link 3" in line for line in found.sentences())


def test_negative_friction_and_rotor_inertia_are_contradictions_too():
    robot = di.load_robot("pendulum-2")
    truth = {**robot.value_set(), "Fc1": 0.3, "Fv1": 0.2, "Fc2": -0.5, "Fv2": 0.1, "Ia2": 0.1}
    fitted = di.estimators.WeightedLeastSquares().fit(information(robot, truth, terms="rigid,Ia,Fv,Fc"))
    found = physical_fit(fitted, prior="plausible")
    assert found.contradictions[0].condition == "dry friction of 2"
    assert found["Fc2"] == pytest.approx(0.0, abs=1e-6)
    assert min(found[name] for name in ("Ia1", "Ia2", "Fc2", "Fv1", "Fv2")) >= 0.0


def test_coupled_friction_of_either_sign_survives():
    robot = di.load_robot("sr400")
    values = {**robot.value_set(), "Fv6": -0.034, "Fc6": 0.4}
    values = {**values, "Fv5": 0.2, "Fvm6": 0.15, "Fc5": 5.0, "Fcm6": 4.0}
    flipped = {**values, "Fv6": 0.034, "Fc6": -0.4}
    for truth in (values, flipped):
        found = physical_fit(information(robot, truth, noise=1e-4), prior="plausible")
        assert found["Fv6"] == pytest.approx(truth["Fv6"], abs=0.01)
        assert found["Fc6"] == pytest.approx(truth["Fc6"], abs=0.05)


def test_bounds_hold(arm):
    _, fitted = arm
    bounds = [
        di.physical.MassBound(1, lower=25.0, upper=26.0),
        di.physical.MassBound(2, upper=7.0),
        di.physical.TotalMassBound(upper=36.0),
        di.physical.CenterBox(3, (-0.1, -0.1, 0.0), (0.1, 0.1, 0.02)),
        di.physical.CenterEllipsoid("2", (-0.1, 0.0, 0.0), (0.08, 0.05, 0.05)),
    ]
    found = physical_fit(fitted, bounds=bounds)
    masses = [link.mass for link in found.links]
    assert 25.0 - 1e-5 <= masses[0] <= 26.0 + 1e-5
    assert masses[1] <= 7.0 + 1e-5
    assert sum(masses) <= 36.0 + 1e-4
    assert 0.0 - 1e-6 <= found.links[2].center[2] <= 0.02 + 1e-6
    off = (np.array(found.links[1].center) - [-0.1, 0.0, 0.0]) / [0.08, 0.05, 0.05]
    assert np.linalg.norm(off) <= 1.0 + 1e-5
    assert physical_fit(fitted).links[2].center[2] > 0.02  # the bound has something to do


def test_conflicting_bounds_are_named_and_others_are_not(arm):
    _, fitted = arm
    bounds = [
        di.physical.MassBound(1, lower=20.0),
        di.physical.TotalMassBound(upper=15.0),
        di.physical.MassBound(3, upper=5.0),
    ]
    with pytest.raises(di.physical.ConflictError) as caught:
        physical_fit(fitted, bounds=bounds)
    text = str(caught.value)
    assert "mass of link 1 at least 20 kg" in text
    assert "total mass at most 15 kg" in text
    assert "link 3" not in text
    with pytest.raises(di.physical.ConflictError, match="mass of link 2 at most -1 kg; widen it"):
        physical_fit(fitted, bounds=[di.physical.MassBound(2, upper=-1.0), di.physical.MassBound(3, upper=5.0)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: di.physical.MassBound(1), "bounds nothing"),
        (lambda: di.physical.MassBound(1, 3.0, 2.0), "is empty: from 3 to 2"),
        (lambda: di.physical.CenterBox(1, (0, 0, 0), (0, 0, -1)), "box of link 1 is empty"),
        (lambda: di.physical.CenterEllipsoid(1, (0, 0, 0), (1, 1, 0)), "half axis"),
        (lambda: di.physical.CenterBox(1, (0, 0), (1, 1, 1)), "three finite numbers"),
    ],
)
def test_bounds_that_make_no_sense(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_bad_input_says_what_is_expected(arm):
    robot, fitted = arm
    with pytest.raises(UnknownNameError, match="link 'elbow'"):
        physical_fit(fitted, bounds=[di.physical.MassBound("elbow", upper=1.0)])
    with pytest.raises(UnknownNameError, match=r"prior 'cad'.*plausible"):
        physical_fit(fitted, prior="cad")
    with pytest.raises(UnknownNameError, match="parameter of the prior"):
        physical_fit(fitted, prior={"M9": 1.0})
    with pytest.raises(InputError, match="no fit; expected a Fit"):
        physical_fit(robot)
    with pytest.raises(InputError, match="sequence of MassBound"):
        physical_fit(fitted, bounds=di.physical.MassBound(1, upper=1.0))
    with pytest.raises(InputError, match="floor"):
        physical_fit(fitted, floor=0.0)
    friction = information(robot, None, terms="Fv,Fc")
    with pytest.raises(InputError, match="term rigid and all ten"):
        physical_fit(friction)


def test_a_value_fixed_in_the_robot_file_keeps_it():
    robot = di.load_robot("pendulum-2")
    fixed = dict(zip((f"{s}2" for s in LINK_SYMBOLS), robot.link_parameters()[1], strict=True))
    held = replace(robot, fixed={"M2": fixed["M2"], "XX1": 0.05})
    found = physical_fit(information(held, None), prior="plausible")
    assert found["M2"] == fixed["M2"]
    assert found["XX1"] == 0.05
    assert not violations(found.link_parameters[0], "link")


def test_without_rank_the_prior_settles_more_and_says_so():
    robot = di.load_robot("cmu-dd-arm-3")
    data = information(robot, None, terms="rigid")
    full = physical_fit(data)
    part = physical_fit(data.outputs(["joint3"]))
    assert part.usual < full.usual  # fewer directions that noise can move
    assert part["MX2"] == pytest.approx(robot.value_set()["MX2"], rel=0.05)
    assert part.distance <= 1.05 * part.give


def test_correlated_residuals_make_less_of_a_contradiction(impossible):
    plain = physical_fit(impossible, prior="plausible")
    wide = physical_fit(impossible, prior="plausible", inflation=np.full(3, 9.0))
    assert wide.distance == pytest.approx(plain.distance / 3.0, rel=0.02)
    with pytest.raises(InputError, match="inflation must be 3 numbers"):
        physical_fit(impossible, inflation=np.ones(2))


def test_the_result_predicts_and_prints(arm):
    robot, fitted = arm
    found = physical_fit(fitted)
    q = np.array([[0.3, -0.2, 0.5]])
    torque = found.model.torque(q, q, q)
    W = di.regressor(robot, q, q, q, "rigid")[0]
    np.testing.assert_allclose(torque[0], W @ found.chi, rtol=1e-9)
    again = robot.with_values("identified", found.robot_values)
    np.testing.assert_allclose(again.link_parameters(), found.link_parameters)
    table = found.table().splitlines()
    assert len(table) == 1 + 4 * 3  # each link: its name, CAD, identified, and what the data determines
    assert max(map(len, table)) <= 80
    assert f"{robot.value_set()['M3']:.3f}" in table[-3]
    assert "the data determines XY3, XZ3" in table[-1]
    assert found.as_dict()["links"][2]["described"]["mass"] == pytest.approx(robot.value_set()["M3"])
    assert found.as_dict()["values"]["M3"] == found["M3"]
    assert found.as_dict()["std"]["XX3"] is None
    with pytest.raises(UnknownNameError):
        found["M7"]


def _heavier(robot, factors):
    """Every link with its own factor on all ten numbers: other bodies of the same shape."""
    values = dict(robot.value_set())
    for joint, factor in zip(robot.joints, factors, strict=True):
        values |= {f"{s}{joint.number}": factor * values[f"{s}{joint.number}"] for s in LINK_SYMBOLS}
    return values


@pytest.mark.parametrize("name", ["cmu-dd-arm-3", "puma560", "sr400"])
def test_masses_that_torque_leaves_open_stay_where_they_are_described(name):
    robot = di.load_robot(name)
    rng = np.random.default_rng(1)
    data = information(robot, _heavier(robot, rng.choice([0.85, 1.18], robot.n_links)), noise=0.01)
    found = physical_fit(data)
    for link in found.links:
        if link.described is not None:
            assert link.mass == pytest.approx(link.described.mass, rel=1e-5)
            assert link.mass_from == "CAD"
    assert found.total_mass == pytest.approx(found.described_total_mass, rel=1e-5)
    assert all(not violations(chi, "link") for chi in found.link_parameters if chi.any())
    assert "kept from CAD" in found.mass_sentence
    assert found.distance < found.usual


def test_a_kept_mass_is_a_constraint_and_the_rest_the_least_log_det_distance():
    """A pendulum: torque determines ZZ, MX, MY; cvxpy settles the others with the mass held."""
    robot = di.load_robot("pendulum-1")
    fitted = di.estimators.WeightedLeastSquares().fit(
        information(robot, _heavier(robot, [1.1]), terms="rigid", noise=1e-5)
    )
    found = physical_fit(fitted)
    own = robot.link_parameters()[0]
    assert found["M1"] == pytest.approx(own[9], rel=1e-6)
    chi = cp.Variable(10)
    J = sum(chi[k] * pseudo_inertia(row) for k, row in enumerate(np.eye(10)))
    B = np.linalg.inv(pseudo_inertia(own))
    held = [fitted.information_.coordinates.K @ chi == fitted.values_, chi[9] == own[9]]
    cp.Problem(cp.Minimize(cp.trace(B @ J) - cp.log_det(J)), held).solve(solver="CLARABEL")
    np.testing.assert_allclose(found.chi, chi.value, atol=2e-4 * np.abs(own).max())


def test_a_mass_moves_where_no_body_has_the_described_one():
    robot = di.load_robot("pendulum-1")
    data = information(robot, None, terms="rigid", noise=1e-5)
    own = dict(robot.value_set())
    least = (own["MX1"] ** 2 + own["MY1"] ** 2) / own["ZZ1"]  # no lighter body has these moments
    light = _heavier(robot, [0.5 * least / own["M1"]])
    found = physical_fit(data, prior=light)
    assert least < found["M1"] < 1.1 * least
    assert found.links[0].mass_from == "physical consistency"
    assert "no physically consistent body near the data has the CAD mass of link 1" in found.mass_sentence


def test_what_the_data_knows_less_than_a_body_is_left_to_the_prior():
    """Noise of many times the torque: bodies are those that are described, not what noise made of them."""
    robot = di.load_robot("cmu-dd-arm-3")
    for seed in range(3):
        found = physical_fit(information(robot, None, terms="rigid", noise=100.0, samples=40, seed=seed))
        assert min(link.margin for link in found.links) > 0.5
        for link in found.links:
            np.testing.assert_allclose(link.principal, link.described.principal, rtol=0.5)


def test_a_file_without_masses_or_with_placeholders_says_so():
    robot = di.load_robot("cmu-dd-arm-3")
    data = information(robot, None, terms="rigid")
    ball = dict(zip(LINK_SYMBOLS, (0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1.0), strict=True))
    values = {f"{s}{j}": float(x) for j in (1, 2) for s, x in ball.items()}
    values |= {f"{s}3": robot.value_set()[f"{s}3"] for s in LINK_SYMBOLS}
    balls = replace(robot.with_values("balls", values), default_values="balls")
    found = physical_fit(data, replace(data.coordinates, robot=balls))
    assert "placeholders, for link 1, link 2 (the same ball at the origin of several link frames)" in found.prior
    assert [link.described is None for link in found.links] == [True, True, False]
    assert found.described_total_mass is None
    assert found.links[0].mass_from == "a plausible body"
    empty = physical_fit(data, prior={})
    assert "plausible body" in empty.prior
    assert all(link.described is None for link in empty.links)


@pytest.fixture(scope="module")
def demo():
    folder = Path(__file__).parents[2] / "examples" / "demo"
    robot = di.load_robot(folder / "arm.yaml")
    return robot, di.read_log(folder / "fourier_1.csv.gz", robot)


def test_an_estimate_is_made_physical(demo):
    robot, log = demo
    fit = di.identify(robot, log, friction="basic", band=6.0, delay=0.004, velocity_source="position")
    found = physical_fit(fit)
    assert not found.contradictions
    assert found.distance < found.usual
    assert all(not violations(chi, "link") for chi in found.link_parameters)
    moved = found.beta - fit.beta
    assert found.distance == pytest.approx(np.sqrt(moved @ np.linalg.solve(fit.covariance, moved)), rel=1e-3)
    assert found.channels == ()  # an estimate has no rows to tell the error of each joint


def test_parameters_that_were_eliminated_are_no_knowledge(demo):
    robot, log = demo
    fit = di.identify(robot, log, essential=0.3, band=6.0, delay=0.004, velocity_source="position")
    assert fit.eliminated
    found = physical_fit(fit)
    assert all(not violations(chi, "link") for chi in found.link_parameters)
    assert found.distance < 3.0 * found.usual


def test_what_an_estimate_leaves_open_does_not_change_its_torque(demo):
    """A tilt and the first harmonic of an upright joint are one column: only their sum is known."""
    robot, log = demo
    fit = di.identify(robot, log, friction="tilt,harmonics(1)@1", band=6.0, delay=0.004, velocity_source="position")
    assert {"tiltcos_1", "harmonics1c_1"} <= set(fit.undetermined)
    found = physical_fit(fit)
    seen = compare([fit.model, found.model], fit.observe(log)).errors
    assert seen[1].relative < 1.1 * seen[0].relative
    assert any("leaves open tiltcos_1" in line for line in found.sentences())
    with pytest.raises(InputError, match="an estimate has its own"):
        physical_fit(fit, inflation=np.ones(6))


@pytest.mark.parametrize("name", ["", " (forearm_with_a_long_name)"])
def test_bodies_fit_80_columns_whatever_their_names(name):
    links = [LinkBody(f"link {i}{name}", 12.3, (0.1, -0.2, 0.3), (1e-5, 2e-5, 0.123), 0.5, True) for i in (1, 12)]
    lines = link_table(links).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(f"link 12{name}" in line for line in lines) == 1
    assert sum("12.300" in line for line in lines) == 2


def test_a_mass_gives_way_before_half_of_the_described_inertia_is_gone():
    """A rod 1.3 times as heavy as described: with the CAD mass, ZZ - MX² / M leaves 13 % of its inertia."""
    robot = di.load_robot("pendulum-1")
    described = robot.link_parameters()[0]
    data = information(robot, _heavier(robot, [1.3]), terms="rigid", noise=1e-5)
    found = physical_fit(data)
    assert inertia_share(found.link_parameters[0], described) == pytest.approx(0.5, abs=1e-3)
    assert found.thin_links == ()
    # No lighter body has half of the inertia, and what the data determines is as it was.
    least = (1.3 * described[6]) ** 2 / (1.3 * described[5] - 0.5 * _about_center(described))
    assert found["M1"] == pytest.approx(least, rel=1e-4)
    assert found.distance < found.usual
    assert "keeps 50 % of the CAD inertia about the center of mass" in found.mass_sentence


def test_inertia_about_the_center_is_what_the_cone_says():
    """The matrix whose definiteness keeps it, against the definition, for bodies about the bound."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        body, other = (_random_body(rng) for _ in range(2))
        share, rows = inertia_share(other, body), spatial_inertia(body) @ other
        for factor, sign in ((0.999, 1.0), (1.001, -1.0)):
            matrix = from_triangle(rows) - factor * share * np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
            assert sign * np.linalg.eigvalsh(matrix)[0] > 0.0


def _about_center(chi):
    return float(to_classical(chi)[2][2, 2])


def _random_body(rng):
    points = rng.normal(size=(8, 3)) * rng.uniform(0.05, 0.4, 3)
    spread = np.cov(points.T)
    return from_classical(rng.uniform(0.5, 9.0), rng.normal(size=3), np.trace(spread) * np.eye(3) - spread)
