"""Terms that follow a motion: every column against its formula, or against Pinocchio's torque."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm, elements_with_friction, motion_of
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.dynamics.terms.term import MotionSamples
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import METERS_PER_RADIAN
from tests.robots import tree_model

N = 60


def samples_of(robot, seed=3, jerk=True):
    n = len(robot.joint_names)
    q, dq, ddq, dddq = np.random.default_rng(seed).normal(size=(4, n, N)).transpose(0, 2, 1)
    dq[:5] = 0.0  # at rest for a while
    return MotionSamples(q, dq, ddq, dddq if jerk else np.zeros((N, 0)), restart=True)


def columns(robot, samples, key, reference=None):
    """Each column's torque at the rows, (n_joints, n_samples) by name."""
    (term,) = resolve_terms(key)
    values = TermCourse(robot, [term], reference).columns_first(samples)
    found = {column.name: np.zeros((len(robot.joint_names), N)) for column in term.columns(robot)}
    for (row, column), line in zip(term.places(robot), values, strict=True):
        found[list(found)[column]][row] += line
    return found


def links(robot):
    return np.array([robot.value_set().get(c.name, 0.0) for c in resolve_terms("rigid")[0].columns(robot)])


def units(robot, key):
    return {column.name: column.unit for column in resolve_terms(key)[0].columns(robot)}


@pytest.fixture(scope="module")
def puma():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def cylindrical():
    """Joint 1 turns, joints 2 and 3 slide."""
    return di.load_robot("cylindrical")


def sign(v):
    return np.tanh(v / 0.02)


# Key -> symbol of the parameter; law of position q, velocity v, jerk j, load w and the motion u that counts as a radian
# (1 rad, 0.1 m on a slide); units of the parameter when turning and sliding.
LAWS = {
    "stribeck(0.2)": ("stribeck0.2", lambda q, v, j, w, u: sign(v / u) * np.exp(-((v / u / 0.2) ** 2)), "N·m", "N"),
    "stribeck(0.5)": ("stribeck0.5", lambda q, v, j, w, u: sign(v / u) * np.exp(-((v / u / 0.5) ** 2)), "N·m", "N"),
    "sign(0.2)": ("sign0.2", lambda q, v, j, w, u: np.tanh(v / u / 0.2), "N·m", "N"),
    "load": ("load", lambda q, v, j, w, u: np.abs(w) * sign(v / u), "1", "1"),
    "loadv": ("loadv", lambda q, v, j, w, u: np.abs(w) * v, "s/rad", "s/m"),
    "loadstribeck(0.2)": (
        "loadstribeck0.2",
        lambda q, v, j, w, u: np.abs(w) * sign(v / u) * np.exp(-((v / u / 0.2) ** 2)),
        "1",
        "1",
    ),
    "driving": ("driving", lambda q, v, j, w, u: w * np.abs(sign(v / u)), "1", "1"),
    "asymmetric": ("asymmetric", lambda q, v, j, w, u: np.abs(sign(v / u)), "N·m", "N"),
    "quadratic": ("quadratic", lambda q, v, j, w, u: v * np.abs(v), "N·m·s²/rad²", "N·s²/m²"),
    "cubic": ("cubic", lambda q, v, j, w, u: v**3, "N·m·s³/rad³", "N·s³/m³"),
    "harmonics(2)": ("harmonics2c", lambda q, v, j, w, u: np.cos(2.0 * q / u), "N·m", "N"),
    "ripple(30.65)": ("ripple30.65s", lambda q, v, j, w, u: np.sin(30.65 * q / u), "N·m", "N"),
    "stiffness": ("stiffness", lambda q, v, j, w, u: q, "N·m/rad", "N/m"),
    "jerk": ("jerk", lambda q, v, j, w, u: j, "kg·m²·s", "kg·s"),
}
WITH_SCALE = [law.name for law in FRICTION_LAWS.values() if law.scale != "none"]
WITHOUT_SCALE = [law.name for law in FRICTION_LAWS.values() if law.scale == "none"]


def test_every_law_has_a_formula_here():
    memoryless = {law.name for law in FRICTION_LAWS.values() if not law.remembers}  # stops are followed below
    assert {key.partition("(")[0] for key in LAWS} == memoryless


@pytest.mark.parametrize("key", LAWS)
def test_law_on_a_joint_that_turns(puma, key):
    symbol, law, unit, _ = LAWS[key]
    samples = samples_of(puma)
    load = di.inverse_dynamics(puma, samples.q, samples.dq, samples.ddq, "rigid", links(puma)).T
    found = columns(puma, samples, key, LinearizationPoint(puma, links(puma)))
    for i in range(6):
        torque = found[f"{symbol}_{i + 1}"]
        expected = law(samples.q[:, i], samples.dq[:, i], samples.dddq[:, i], load[i], 1.0)
        np.testing.assert_allclose(torque[i], expected, atol=1e-9 * np.abs(expected).max())
        assert not np.delete(torque, i, axis=0).any()
        assert units(puma, key)[f"{symbol}_{i + 1}"] == unit


@pytest.mark.parametrize("key", LAWS)
def test_law_on_a_joint_that_slides(cylindrical, key):
    """Numbers of a law are radians; a joint that slides goes 0.1 m for each."""
    symbol, law, _, unit = LAWS[key]
    samples = samples_of(cylindrical)
    number = next(i for i, i_joint in enumerate(cylindrical.moving) if _slides(cylindrical, i_joint))
    label = str(cylindrical.joints[cylindrical.active[cylindrical.moving[number]]].number)
    load = di.inverse_dynamics(cylindrical, samples.q, samples.dq, samples.ddq, "rigid", links(cylindrical)).T
    torque = columns(cylindrical, samples, key, LinearizationPoint(cylindrical, links(cylindrical)))[
        f"{symbol}_{label}"
    ][number]
    q, dq, dddq = (x[:, number] for x in (samples.q, samples.dq, samples.dddq))
    expected = law(q, dq, dddq, load[number], METERS_PER_RADIAN)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())
    assert units(cylindrical, key)[f"{symbol}_{label}"] == unit


def _slides(robot, active):
    return robot.joints[robot.active[active]].kind == "prismatic"


def test_stop_on_a_joint_that_slides(cylindrical):
    samples = samples_of(cylindrical)
    number = next(i for i, i_joint in enumerate(cylindrical.moving) if _slides(cylindrical, i_joint))
    label = str(cylindrical.joints[cylindrical.active[cylindrical.moving[number]]].number)
    found = columns(cylindrical, samples, "stop(3)")[f"stop3000_{label}"][number]
    wound, expected = 0.0, [0.0]
    for step in np.diff(samples.q[:, number]):
        wound = np.clip(wound + step, -0.3, 0.3)  # three radians are 0.3 m
        expected.append(wound / 0.3)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert units(cylindrical, "stop(3)")[f"stop3000_{label}"] == "N"


def test_names_units_and_words(puma):
    described = {c.name: c for c in di.columns(puma, "rigid,stop(0.0003,0.003),harmonics(1,2),tilt,zero")}
    assert [c.unit for name, c in described.items() if name.startswith("stop")] == ["N·m"] * 12
    assert described["stop0.3_1"].meaning.startswith("friction that winds up over 0.3 mrad of")
    assert described["harmonics2s_4"].term == "harmonics"
    assert (described["tilt_x"].unit, described["tilt_y"].unit) == ("rad", "rad")
    assert described["tiltcos_1"].unit == "N·m"  # joint 1 is upright
    assert described["zero_2"].unit == "rad"
    assert "zero_1" not in described  # a turn about gravity changes nothing


def test_keys_come_back():
    for key in ("stop(0.0003,0.003)@1|m6", "stribeck(0.2)", "load@2", "tilt", "zero@2|3", "ripple(30.65)@4", "jerk"):
        assert resolve_terms(key)[0].key == key
    assert [t.key for t in resolve_terms("rigid,stop(0.0003,0.003)@1|2,load")] == [
        "rigid",
        "stop(0.0003,0.003)@1|2",
        "load",
    ]


def test_elements(puma):
    names = [column.name for column in resolve_terms("stop(0.001)@2|5")[0].columns(puma)]
    assert names == ["stop1_2", "stop1_5"]
    with pytest.raises(UnknownNameError, match=r"unknown element of term load '9' \(valid: 1, 2, 3, 4, 5, 6\)"):
        resolve_terms("load@9")[0].columns(puma)
    locked = puma.lock(q2=0.0)
    assert [c.name for c in resolve_terms("load")[0].columns(locked)] == [f"load_{i}" for i in (1, 3, 4, 5, 6)]


def test_elements_that_turn_with_two_joints():
    robot = di.load_robot("tx40")
    moves = {e.label: motion_of(robot, e) for e in elements_with_friction(robot)}
    np.testing.assert_array_equal(moves["m6"], [0, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(moves["6"], [0, 0, 0, 0, 0, 1])


class TestReference:
    """Load, tilt and zeros against Pinocchio."""

    def torque(self, robot, samples, *, gravity=None, shift=0.0):
        model = tree_model(robot)
        model.gravity.linear = np.array(robot.gravity if gravity is None else gravity)
        data, q = model.createData(), samples.q + shift
        states = zip(q, samples.dq, samples.ddq, strict=True)
        return np.array([pin.rnea(model, data, *state) for state in states]).T

    def test_load(self, puma):
        samples = samples_of(puma)
        found = columns(puma, samples, "load", LinearizationPoint(puma, links(puma)))
        load = self.torque(puma, samples)
        for i in range(6):
            np.testing.assert_allclose(found[f"load_{i + 1}"][i], np.abs(load[i]) * sign(samples.dq[:, i]), atol=1e-9)

    def test_tilt(self, puma):
        """The difference that a small turn of gravity makes."""
        samples, step = samples_of(puma), 1e-6
        found = columns(puma, samples, "tilt", LinearizationPoint(puma, links(puma)))
        for i, name in enumerate(("tilt_x", "tilt_y")):
            axis = np.eye(3)[i] * step
            ahead, behind = (pin.exp3(s * axis) @ puma.gravity for s in (1.0, -1.0))
            change = self.torque(puma, samples, gravity=ahead) - self.torque(puma, samples, gravity=behind)
            np.testing.assert_allclose(found[name], change / (2.0 * step), atol=1e-6 * np.abs(found[name]).max())
            assert np.abs(found[name]).max() > 1.0
        np.testing.assert_allclose(found["tiltcos_1"][0], np.cos(samples.q[:, 0]))
        np.testing.assert_allclose(found["tiltsin_1"][0], np.sin(samples.q[:, 0]))

    def test_zero(self, puma):
        samples, step = samples_of(puma), 1e-6
        found = columns(puma, samples, "zero", LinearizationPoint(puma, links(puma)))
        assert list(found) == [f"zero_{i}" for i in range(2, 7)]
        for i in range(1, 6):
            shift = np.eye(6)[i] * step
            change = self.torque(puma, samples, shift=shift) - self.torque(puma, samples, shift=-shift)
            size = np.abs(found["zero_2"]).max()
            np.testing.assert_allclose(found[f"zero_{i + 1}"], change / (2.0 * step), atol=1e-6 * size)

    def test_zero_of_a_tree_moved_as_a_whole(self, cylindrical, puma):
        """A first joint along gravity or one that slides has no zero that matters."""
        for robot, label in ((puma, "1"), (cylindrical, "1")):
            with pytest.raises(InputError, match="no torque depends on the position of joint 1"):
                resolve_terms(f"zero@{label}")[0].columns(robot)
        pendulum = di.load_robot("pendulum-2")
        assert [c.name for c in resolve_terms("zero")[0].columns(pendulum)] == ["zero_1", "zero_2"]

    def test_zero_of_a_joint_that_turns_about_gravity_alone(self, tmp_path):
        """No position has an effect: no column, and rows of the right length."""
        text = "name: door\nconvention: modified-dh\njoints: [{name: hinge}]\n"
        (tmp_path / "door.yaml").write_text(text)
        upright = di.load_robot(tmp_path / "door.yaml")
        (term,) = resolve_terms("zero")
        assert term.columns(upright) == ()
        samples = samples_of(upright)
        assert TermCourse(upright, [term], LinearizationPoint(upright, np.zeros(10))).columns_first(samples).shape == (
            0,
            N,
        )

    def test_without_a_reference(self, puma):
        terms = [FrictionTerm(law.name, *law.examples) for law in FRICTION_LAWS.values() if law.needs_load]
        for term in [*terms, *resolve_terms("tilt,zero")]:
            with pytest.raises(InputError, match=f"{re.escape(term.key)} needs the torque of the links as a reference"):
                TermCourse(puma, [term])

    def test_tilt_without_gravity(self):
        import dataclasses

        floating = dataclasses.replace(di.load_robot("pendulum-2"), gravity=np.zeros(3))
        with pytest.raises(InputError, match="no gravity that could be tilted; leave it out"):
            di.base_parameters(floating, "rigid,tilt")


class TestBadNumbers:
    @pytest.mark.parametrize("number", ["0", "-0.001", "nan", "inf", "-inf"])
    @pytest.mark.parametrize("name", WITH_SCALE)
    def test_scale_that_cannot_be(self, name, number):
        with pytest.raises(InputError, match=rf"of term {name} is {number}; expected a positive number"):
            resolve_terms(f"{name}({number})")

    @pytest.mark.parametrize("name", WITH_SCALE)
    def test_scale_that_is_missing(self, name):
        with pytest.raises(InputError, match=rf"term {name} needs .*, as in {name}\("):
            resolve_terms(name)

    @pytest.mark.parametrize("name", [*WITHOUT_SCALE, "zero"])
    def test_scale_that_is_too_many(self, name):
        with pytest.raises(InputError, match=rf"term {name} takes no number; got {name}\(2\)"):
            resolve_terms(f"{name}(2)")

    def test_given_twice(self):
        with pytest.raises(InputError, match="term stop is given twice"):
            resolve_terms("stop(0.001),stop(0.002)")
        with pytest.raises(InputError, match=r"term stop\(0.001,0.001\) has a number twice"):
            resolve_terms("stop(0.001,0.001)")

    def test_tilt_is_of_no_element(self):
        for key in ("tilt@1", "tilt(0.1)"):
            with pytest.raises(InputError, match="term tilt takes neither numbers nor elements"):
                resolve_terms(key)

    def test_not_to_be_understood(self):
        for key in ("stop(0.001", "stop()", "stop(a)", "stop(1)(2)", "stop@"):
            with pytest.raises(InputError, match="cannot be understood"):
                resolve_terms([key])

    def test_no_value_in_a_single_state(self, puma):
        with pytest.raises(InputError, match="follows a motion in time and has no value in a single state"):
            di.regressor(puma, *np.zeros((3, 1, 6)), "rigid,stop(0.001)")
