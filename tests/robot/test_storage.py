from __future__ import annotations

import copy
import dataclasses
import json
import math
from functools import cache

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st

import dynident as di
from dynident.identifiability.lengths import recognize
from dynident.robot.model import Limits
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from dynident.schema import parse_yaml
from tests.robots import random_urdf

OVERLAY = """
base: panda
name: mine
fixed: {XY2: 0.001, Fo7: 0}
gear_ratios: {joint1: -100, joint6: 81.5}
joint_offsets: {joint2: 0.1}
drive_gains: [10, 10, {value: 5, tolerance: 0.1}, 4, 8, 8, -3.3]
torque_source: motor
coupling: {qm6: q5 + q6/3}
elements: [{label: m5, velocity: qm5, torque: qm6 - 2*qm5, carries: [Fc, Fv]}]
tool: {joint: joint7, position: [0, 0, 0.107], rpy: [0.3, 0.2, 0.1]}
base_parameters: {paper: {ZZR1: 1e-05}}
"""
# A mimic joint, a sliding one that carries no motor element of its own, branches, and texts that YAML must quote.
GRIPPER = """
<robot name="1e-05">
  <link name="no"/> <link name="null"/> <link name="a: b"/> <link name="ü"/> <spare/>
  <joint name="2020-01-01" type="revolute"><parent link="no"/><child link="null"/><axis xyz="0 1 0"/>
    <origin xyz="0.1 1e-17 -3e-9" rpy="0.1 0.2 0.3"/><limit lower="-1" upper="1e-05" effort="3" velocity="1"/></joint>
  <joint name="on" type="prismatic"><parent link="null"/><child link="a: b"/><axis xyz="-1 0 0"/></joint>
  <joint name="~" type="prismatic"><parent link="null"/><child link="ü"/><axis xyz="1 0 0"/>
    <mimic joint="on" multiplier="-0.5" offset="0.01"/></joint>
</robot>
"""


def through_yaml(data):
    return parse_yaml(yaml_text(data), "result.yaml")


def through_safe_yaml(data):
    return yaml.safe_load(yaml.safe_dump(data, default_flow_style=None, sort_keys=False, width=120))


def through_json(data):
    return json.loads(json.dumps(data))


TEXTS = (through_yaml, through_safe_yaml, through_json)


def plain(value):
    """A field as nested tuples that are equal only if every bit is."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes(), value.flags.writeable
    if dataclasses.is_dataclass(value):
        return type(value), {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return type(value), [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return type(value), repr(value)


def assert_same(found, robot):
    for field in dataclasses.fields(robot):
        if field.name != "geometry":
            assert plain(getattr(found, field.name)) == plain(getattr(robot, field.name)), field.name
    assert found.geometry == robot.geometry  # cells such as 0 are stored as 0.0
    for name in ("fingerprint", "joint_names", "position_names", "motor_names", "parameter_names"):
        assert getattr(found, name) == getattr(robot, name)


def stored(robot, text=through_yaml):
    return robot_from_data(text(robot_to_data(robot)), "result.yaml")


@cache
def bundled(name):
    return di.load_robot(name)


def overlaid(tmp_path, text=OVERLAY):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return di.load_robot(path)


class TestRoundTrip:
    @pytest.mark.parametrize("text", [through_yaml, through_json])
    @pytest.mark.parametrize("name", di.bundled_names())
    def test_of_every_bundled_robot(self, name, text):
        assert_same(stored(bundled(name), text), bundled(name))

    @pytest.mark.parametrize("name", di.bundled_names())
    def test_the_equations_are_the_same_to_the_last_bit(self, name):
        robot, found = bundled(name), stored(bundled(name))
        q, dq, ddq = np.random.default_rng(3).uniform(-2.0, 2.0, (3, 50, len(robot.joint_names)))
        expected = di.inverse_dynamics(robot, q, dq, ddq)
        assert np.abs(expected).max() > 0.0
        assert di.inverse_dynamics(found, q, dq, ddq).tobytes() == expected.tobytes()

    @pytest.mark.parametrize("name", di.bundled_names())
    def test_base_parameters_keep_their_names_and_their_lengths(self, name):
        robot, found = bundled(name), stored(bundled(name))
        expected, base = di.base_parameters(robot), di.base_parameters(found)
        assert base.names == expected.names
        assert dict(base.texts) == dict(expected.texts)
        assert any(length in text for length in robot.lengths for text in base.texts.values()) == bool(expected.texts)

    @pytest.mark.parametrize("text", [through_yaml, through_json])
    @pytest.mark.parametrize("seed", range(8))
    def test_of_random_trees(self, seed, text):
        robot = di.robot.robot_from_urdf(random_urdf(seed))
        assert_same(stored(robot, text), robot)

    @pytest.mark.parametrize("text", TEXTS)
    def test_of_a_locked_robot(self, text):
        robot = bundled("sr400").lock(q4=1e-05, joint7=-0.0)
        found = stored(robot, text)
        assert_same(found, robot)
        assert found.locked == {robot.active.index(3): 1e-05, robot.active.index(6): -0.0}
        assert_same(found.lock(q5=0.25), robot.lock(q5=0.25))

    @pytest.mark.parametrize("text", TEXTS)
    def test_of_an_overlay(self, tmp_path, text):
        robot = overlaid(tmp_path)
        found = stored(robot, text)
        assert_same(found, robot)
        np.testing.assert_array_equal(found.drive.gains, [10, 10, 5, 4, 8, 8, -3.3])
        np.testing.assert_array_equal(found.drive.gain_tolerances, [0, 0, 0.1, 0, 0, 0, 0])
        assert found.drive.gear_ratios[0] == -100.0
        assert found.drive.source == "motor"
        assert found.coupling[5, 4] != 0.0
        assert found.fixed == {"XY2": 0.001, "Fo7": 0.0}
        assert found.zero[1] == 0.1
        assert any(list(element.names) == ["Fc", "Fv"] for element in found.elements)
        assert found.source == str(tmp_path / "mine.yaml")

    @pytest.mark.parametrize("text", TEXTS)
    def test_of_mimic_joints_branches_and_awkward_texts(self, text):
        robot = di.robot.robot_from_urdf(GRIPPER, source="~/Löwe & Söhne: no/\x07.urdf")
        assert robot.warnings
        assert len(robot.active) < len(robot.joints)
        found = stored(robot, text)
        assert_same(found, robot)
        assert found.tool is None

    def test_of_negative_zeros(self):
        robot = dataclasses.replace(bundled("panda"), zero=[-0.0] * 7, coupling=np.where(np.eye(7), 1.0, -0.0))
        element = dataclasses.replace(robot.elements[0], torque=[1.0, *[-0.0] * 6])
        robot = dataclasses.replace(robot, elements=(element, *robot.elements[1:]))
        for text in TEXTS:
            assert_same(stored(robot, text), robot)

    def test_of_new_values_under_any_numeric_type(self):
        names = np.array(["ZZ1", "M7"])
        robot = bundled("panda").with_values("mine", dict(zip(names, np.float32([0.1, 3]), strict=True)))
        found = stored(robot)
        assert found.default_values == "mine"
        assert found.values["mine"] == {"ZZ1": float(np.float32(0.1)), "M7": 3.0}

    def test_sorted_keys_change_nothing_that_counts(self):
        data = yaml.safe_load(yaml.safe_dump(robot_to_data(bundled("sr400")), sort_keys=True))
        found = robot_from_data(data, "sorted")
        assert found.fingerprint == bundled("sr400").fingerprint
        assert found.parameter_names == bundled("sr400").parameter_names

    def test_whole_numbers_may_lose_their_point(self):
        def shorten(value):
            if isinstance(value, dict):
                return {key: shorten(item) for key, item in value.items()}
            if isinstance(value, list):
                return [shorten(item) for item in value]
            whole = isinstance(value, float) and value.is_integer() and math.copysign(1.0, value or 1.0) > 0
            return int(value) if whole and repr(value) != "-0.0" else value

        robot = bundled("panda")
        assert_same(robot_from_data(shorten(robot_to_data(robot)), "short"), robot)

    def test_a_geometry_of_another_class_is_the_only_loss(self):
        class Foreign:
            def frames(self, lengths):
                return bundled("puma560").geometry.frames(lengths)

        robot = dataclasses.replace(bundled("puma560"), geometry=Foreign())
        found = stored(robot)
        assert found.geometry is None
        assert_same(dataclasses.replace(found, geometry=robot.geometry), robot)
        terms = di.base_parameters(found)
        assert recognize(found, terms.terms, terms.independent, terms.K) == {}


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=5), st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_yaml_text_keeps_every_bit(data):
    found = yaml.safe_load(yaml_text(data))
    assert list(map(repr, found.items())) == list(map(repr, data.items()))


def test_yaml_text_writes_repeated_values_out():
    shared = [1e-05]
    assert yaml_text({"a": shared, "b": shared}) == "a: [1.0e-05]\nb: [1.0e-05]\n"


def test_people_can_read_it():
    text = yaml.safe_dump(robot_to_data(bundled("panda")), default_flow_style=None, sort_keys=False, width=120)
    assert len(text.splitlines()) < 120
    arms = [robot for seed in range(15) if len((robot := di.robot.robot_from_urdf(random_urdf(seed))).joints) == 7]
    assert len(arms) > 2
    assert max(len(yaml_text(robot_to_data(robot)).splitlines()) for robot in arms) < 160  # some have named frames


def test_only_plain_types():
    def check(value):
        assert type(value) in (dict, list, str, int, float, bool, type(None))
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            check(item)
        assert not isinstance(value, dict) or all(type(key) is str for key in value)

    for name in di.bundled_names():
        check(robot_to_data(bundled(name)))


class TestRobotsThatCannotBeStored:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"gravity": [0.0, math.nan, 0.0]}, r"gravity\[2\]: is nan; expected a finite number"),
            ({"lengths": {"d2": math.inf}}, "lengths d2: is inf"),
            ({"values": {"mine": {"ZZ1": "much"}}, "default_values": "mine"}, "values mine ZZ1: is 'much'"),
            ({"values": {"a\nb": {}}, "default_values": "a\nb"}, "expected a name"),
            ({"locked": {0: 1}}, "fingerprint would change"),  # 1 and 1.0 have different fingerprints
        ],
    )
    def test_are_refused_before_a_file_is_written(self, changes, words):
        robot = dataclasses.replace(bundled("puma560"), **changes)
        with pytest.raises(di.RobotFileError, match=f"puma560: .*{words}.*; repair the robot"):
            robot_to_data(robot)

    def test_a_limit_that_is_not_finite(self):
        joint = dataclasses.replace(bundled("pendulum-1").joints[0], limits=Limits(effort=math.inf))
        with pytest.raises(di.RobotFileError, match=r"joints\[1\] limits effort: is inf; .*repair the robot"):
            robot_to_data(dataclasses.replace(bundled("pendulum-1"), joints=(joint,)))


# --- damaged records --------------------------------------------------------------------------------------------------


def places(value, path=()):
    """The path of every key and entry of a record."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def holder(data, path):
    for key in path[:-1]:
        data = data[key]
    return data


def refusal(data):
    with pytest.raises(di.RobotFileError) as caught:
        robot_from_data(data, "result.yaml")
    message = str(caught.value)
    assert message.startswith("result.yaml: ")
    assert message.endswith("take an intact copy, or store the robot again")
    assert len(message) < 1200
    return message.removeprefix("result.yaml: ")


@cache
def records():
    """Two records in which every key is in use, and the paths of all their entries."""
    arm, gripper = bundled("sr400").lock(q4=0.5), di.robot.robot_from_urdf(GRIPPER)
    drive = dataclasses.replace(arm.drive, gear_ratios=np.arange(1.0, 7.0))
    arm = dataclasses.replace(arm, drive=drive, zero=np.arange(6.0), fixed={"XY2": 0.0})
    seal = dataclasses.replace(gripper.elements[0], label="seal", names={"Fv": "oil", "Fc": "rub"})
    robots = [arm, dataclasses.replace(gripper, elements=(*gripper.elements, seal))]
    return [(data, list(places(data))) for data in map(robot_to_data, robots)]


class TestDamage:
    @pytest.mark.parametrize(
        ("path", "value", "words"),
        [
            (("format",), "dynident robot 2", "format: is 'dynident robot 2'; expected dynident robot 1"),
            (("name",), 5, "name: is 5; expected a name"),
            (("source",), None, "source: is empty; expected a text"),
            (("gravity",), [0.0, 1.0], "gravity: is [0.0, 1.0]; expected a list of 3 numbers"),
            (("gravity", 1), math.nan, "gravity[2]: is nan; expected a finite number"),
            (("gravity", 1), "pi/2", "gravity[2]: is 'pi/2'; expected a finite number"),
            (("gravity", 1), True, "gravity[2]: is True; expected a finite number"),
            (("gravity", 1), 10**400, "gravity[2]: is 10000"),
            (("joints",), [], "joints: none of them moves"),
            (("joints", 1, "number"), 1, "joints[2]: is 'joint2', number 1; expected a name and number of its own"),
            (
                ("joints", 1, "name"),
                "joint1",
                "joints[2]: is 'joint1', number 2; expected a name and number of its own",
            ),
            (("joints", 0, "number"), 0, "joints[1]: is 'joint1', number 0; expected a name and number of its own"),
            (("joints", 1, "parent"), 2, "joints[2] parent: is 2; expected 0, 1"),
            (("joints", 1, "kind"), "helical", "joints[2] kind: is 'helical'; expected revolute, prismatic"),
            (("joints", 1, "before", 2), [0.0] * 3, "joints[2] before row 3: is [0.0, 0.0, 0.0]; expected a list of 4"),
            (("joints", 1, "before"), [[0.0] * 4] * 2, "joints[2] before: is "),
            (("joints", 0, "limits", "lower"), "low", "joints[1] limits lower: is 'low'; expected a finite number"),
            (("joints", 0, "limits", "jerk"), 1.0, "joints[1] limits: unknown key 'jerk'"),
            (("active",), [1, 1], "active: is [1, 1]; expected at least one joint, and each once"),
            (("active", 0), 99, "active: is 99; expected 1, 2"),
            (("coupling",), [[1.0]], "coupling: is [[1.0]]; expected a list of 6 entries"),
            (("drive", "gains"), [1.0], "drive gains: is [1.0]; expected a list of 6 numbers"),
            (("drive", "source"), "guess", "drive source: is 'guess'; expected motor, sensor"),
            (("elements", 0, "velocity"), {"m3": 1.0}, "elements[1] velocity: unknown key 'm3'"),
            (("elements", 0, "names"), ["Fv1", "Fv2"], "elements[1]: carries Fv, Fv; expected each symbol once"),
            (("elements", 0, "names"), ["Xv1"], "elements[1] carries: is 'Xv'; expected Ia, Fv, Fc, Fo"),
            (("values", "plant", "QQ1"), 1.0, "values plant: unknown key 'QQ1'"),
            (("default_values",), "other", "default_values: is 'other'; expected plant"),
            (("locked",), {f"q{i}": 0.0 for i in (1, 2, 4, 5, 6, 7)}, "locked: names every joint"),
            (("tool", "link"), 12, "tool link: is 12; expected 1, 2"),
            (("geometry", "rows", 1, "d"), "d2 +", "geometry rows[2] d: 'd2 +' is not an arithmetic expression"),
            (("geometry", "rows", 1, "alpha"), "d2", "geometry rows: cannot be worked out"),
            (("geometry", "rows", 1, "antecedent"), 2, "geometry rows[2] antecedent: is 2; expected 0, 1, 3"),
            (("geometry", "rows", 9, "sigma"), 0, "geometry rows: give 9 joints; expected 8"),
            (("warnings",), "text", "warnings: is 'text'; expected a list"),
            (("color",), "red", "unknown key 'color'"),
            (("checksum",), "0" * 16, "checksum: does not fit"),
            (("gravity", 2), -9.8, "checksum: does not fit; a key was changed"),
        ],
    )
    def test_is_named(self, path, value, words):
        data = copy.deepcopy(records()[0][0])
        holder(data, path)[path[-1]] = value
        assert words in refusal(data)

    @pytest.mark.parametrize("key", ["name", "gravity", "joints", "elements", "values", "default_values", "checksum"])
    def test_a_missing_key_is_named(self, key):
        data = copy.deepcopy(records()[0][0])
        del data[key]
        assert refusal(data).startswith(f"{key}: is missing; expected format, name, ")

    @pytest.mark.parametrize("data", [None, 3, "text", [], {}, {"name": "arm", "joints": []}, {1: 2}])
    def test_a_foreign_record_is_reported(self, data):
        assert "expected a mapping" in refusal(data) or "format: is empty; expected dynident robot 1" in refusal(data)

    def test_every_key_is_needed(self):
        for data, paths in records():
            for path in paths:
                if path[0] == "values" and len(path) > 2 and path[-1] not in ("XX1", "Fc7"):
                    continue  # a hundred values that are read alike
                if path[0] == "joints" and len(path) == 5 and path[-1] > 0:
                    continue  # and the numbers in a row of a frame
                damaged = copy.deepcopy(data)
                del holder(damaged, path)[path[-1]]
                refusal(damaged)

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_never_passes_and_never_surprises(self, choose):
        data, paths = choose.draw(st.sampled_from(records()))
        path = choose.draw(st.sampled_from(paths))
        damaged = copy.deepcopy(data)
        within, key = holder(damaged, path), path[-1]
        scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
        lists = st.lists(scalar, max_size=4) | st.lists(st.lists(scalar, max_size=4), max_size=4)
        mappings = st.dictionaries(st.text(max_size=5) | st.integers(), scalar, max_size=3)
        # Values from elsewhere in the record have the right type more often, and get further.
        own = st.sampled_from(paths).map(lambda other: copy.deepcopy(holder(data, other)[other[-1]]))
        within[key] = choose.draw(scalar | lists | mappings | own)
        if choose.draw(st.booleans()):
            other = choose.draw(scalar)
            if isinstance(within, dict):
                within[choose.draw(st.text(max_size=5) | st.integers())] = other
            else:
                within.append(other)
        if json.dumps(damaged) == json.dumps(data):
            return
        try:
            found = robot_from_data(damaged, "result.yaml")
        except di.RobotFileError:
            refusal(damaged)
        else:  # another way to write the same robot, such as 1 for 1.0 or a default written out
            assert robot_to_data(found) == data
