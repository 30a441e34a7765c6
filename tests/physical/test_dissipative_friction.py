"""Friction as a whole: what takes energy passes, what feeds it does not, whatever the sign of single coefficients."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.physical.cones import from_triangle
from dynident.physical.dissipative_friction import dissipation, meeting_lines, steady_power

SR400 = {"Fv5": 0.2, "Fv6": 0.034, "Fvm6": 0.15, "Fc5": 5.0, "Fc6": -0.4, "Fcm6": 4.0}


def lowest(robot, values, terms="Fv,Fc"):
    """The smallest number that must not be negative, over all conditions."""
    resolved = resolve_terms(terms)
    columns = all_columns(robot, resolved)
    chi = np.array([values.get(column.name, 0.0) for column in columns])
    found = []
    for condition in dissipation(robot, columns, resolved):
        numbers = condition.rows @ chi[condition.columns]
        if condition.kind == "semidefinite":
            numbers = np.linalg.eigvalsh(from_triangle(numbers))
        found.append(numbers.min())
    return min(found)


def worst_power(robot, values, seed=0):
    """Least power that viscous or dry friction takes over many motions, by the equations of motion themselves."""
    rng = np.random.default_rng(seed)
    n = len(robot.joint_names)
    dq = rng.normal(size=(6000, n)) * (rng.random((6000, n)) < 0.3)  # often only few joints move
    still = np.zeros_like(dq)
    torques = [di.joint_torque(robot, di.inverse_dynamics(robot, still, dq, still, x, values)) for x in ("Fv", "Fc")]
    return min(float(np.sum(tau * dq, axis=1).min()) for tau in torques)


def test_the_paper_s_coupled_friction_takes_energy_though_signs_differ():
    robot = di.load_robot("sr400")
    assert lowest(robot, SR400) >= 0.0
    assert worst_power(robot, SR400) >= -1e-12


@pytest.mark.parametrize(
    ("changed", "size"),
    [({"Fv5": 0.02}, 1e-3), ({"Fc5": -4.1}, 1e-3), ({"Fc6": 4.5}, 1e-3), ({"Fv2": -1.0}, 0.5)],
)
def test_what_feeds_energy_is_seen_by_both(changed, size):
    robot = di.load_robot("sr400")
    values = {**SR400, **changed}
    assert lowest(robot, values) < -size
    assert worst_power(robot, values) < 0.0


def test_dry_conditions_are_exact_on_random_coefficients():
    """The finite list of conditions and dense sampling of motions give the same verdict."""
    robot, rng = di.load_robot("tx40"), np.random.default_rng(3)
    verdicts = []
    for _ in range(40):
        values = {name: 1.0 for name in robot.parameter_names if name.startswith(("Fv", "Fc"))}
        values.update(zip(("Fc5", "Fc6", "Fcm6"), rng.normal(size=3), strict=True))
        power = worst_power(robot, values)
        if abs(lowest(robot, values)) > 0.05:  # sampling cannot decide what is nearly zero
            verdicts.append((lowest(robot, values) >= 0.0, power >= 0.0))
    assert len(verdicts) > 20
    assert {True, False} == {printed for printed, _ in verdicts}
    assert all(printed == sampled for printed, sampled in verdicts)


def test_lines_where_planes_meet():
    lines = meeting_lines(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]))
    found = {tuple(np.round(np.abs(line), 6)) for line in lines}
    assert found == {(1.0, 0.0), (0.0, 1.0), (0.707107, 0.707107)}
    assert len(meeting_lines(np.eye(3))) == 3


def test_a_falling_curve_may_be_negative_only_where_coulomb_makes_up_for_it():
    robot = di.load_robot("pendulum-1")
    terms = "Fc(0.02),stribeck(0.2)"
    assert lowest(robot, {"Fc1": 1.0, "stribeck0.2_1": -0.9}, terms) > 0.0
    assert lowest(robot, {"Fc1": 1.0, "stribeck0.2_1": -1.5}, terms) < 0.0
    assert lowest(robot, {"Fc1": -0.1, "stribeck0.2_1": 1.0}, terms) < 0.0  # feeds energy at high velocity


def test_friction_that_winds_up_takes_energy_over_any_amplitude():
    robot = di.load_robot("pendulum-1")
    terms = "Fc,stop(0.001,0.003)"
    assert lowest(robot, {"Fc1": 0.0, "stop1_1": 1.0, "stop3_1": -0.9}, terms) >= 0.0
    assert lowest(robot, {"Fc1": 0.0, "stop1_1": 1.0, "stop3_1": -1.1}, terms) < 0.0  # over large amplitudes
    assert lowest(robot, {"Fc1": 0.0, "stop1_1": -0.1, "stop3_1": 1.0}, terms) < 0.0  # over small ones


def test_directions_share_and_load():
    robot = di.load_robot("pendulum-1")
    assert lowest(robot, {"Fc1": 1.0, "asymmetric_1": 0.9}, "Fc,asymmetric") > 0.0
    assert lowest(robot, {"Fc1": 1.0, "asymmetric_1": -1.1}, "Fc,asymmetric") < 0.0
    assert lowest(robot, {"Fc1": 1.0, "load_1": -0.1}, "Fc,load") < 0.0


@pytest.mark.parametrize("law", FRICTION_LAWS.values(), ids=FRICTION_LAWS)
def test_every_law_that_is_friction_must_take_energy(law):
    robot = di.load_robot("pendulum-2")
    terms = resolve_terms(f"rigid,Fv,Fc,{law.name}" + (f"({law.example})" if law.examples else ""))
    columns = all_columns(robot, terms)
    bound = {columns[i].term for condition in dissipation(robot, columns, terms) for i in condition.columns}
    assert (law.name in bound) == law.is_friction


def test_friction_per_load_may_differ_with_the_load_by_at_most_itself():
    """What brakes against any load: load friction on both sides of the difference between driving and being driven."""
    robot, terms = di.load_robot("puma560"), "Fv,Fc,load,driving"
    for difference in (-0.09, 0.09):
        assert lowest(robot, {"load_2": 0.1, "driving_2": difference}, terms) >= 0.0
    for difference in (-0.2, 0.2):
        assert lowest(robot, {"load_2": 0.1, "driving_2": difference}, terms) < -0.09


@pytest.mark.parametrize("joint", [1, 2, 3])
def test_the_bound_of_the_velocity_is_in_the_unit_of_the_joint(joint):
    """Fv v - c v^2 takes energy up to v = Fv / c, in m/s on a slide and in rad/s elsewhere."""
    robot = di.load_robot("cylindrical")
    terms = resolve_terms("Fv,quadratic")
    columns = all_columns(robot, terms)
    quadratic = next(column.name for column in columns if column.term == "quadratic" and column.place == str(joint))
    fastest = 0.5

    def least(c):
        chi = np.array([{f"Fv{joint}": 1.0, quadratic: c}.get(column.name, 0.0) for column in columns])
        conditions = steady_power(robot, columns, terms, {str(joint): fastest})
        return min(float((one.rows @ chi[one.columns]).min()) for one in conditions)

    assert least(-0.98 / fastest) > 0.0
    assert least(-1.02 / fastest) < 0.0
