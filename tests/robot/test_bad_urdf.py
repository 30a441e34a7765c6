from __future__ import annotations

import math
import os
import random
import re
import xml.etree.ElementTree as ET
from copy import deepcopy

import pytest
from hypothesis import given, settings, strategies as st

import dynident as di
from dynident import limits
from dynident.robot.load import robot_from_urdf

ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0" rpy="0 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="fore"/>
  <link name="finger"/>
  <link name="tool"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.4"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="2" velocity="3" effort="50"/>
    <dynamics damping="0.7" friction="0.2"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/></joint>
  <joint name="grip" type="revolute"><parent link="fore"/><child link="finger"/><axis xyz="1 0 0"/>
    <mimic joint="elbow" multiplier="2" offset="0.1"/></joint>
  <joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/></joint>
  <transmission name="gear"><joint name="shoulder"/><actuator name="m">
    <mechanicalReduction>-100</mechanicalReduction></actuator></transmission>
</robot>
"""


def refusal(tmp_path, text, name="arm.urdf"):
    """The one-line message with which a file is refused."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(di.RobotFileError) as caught:
        di.load_robot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 1000 + len(str(path))
    return message.removeprefix(f"{path}: ")


def changed(old, new, text=ARM):
    assert text.count(old) >= 1, f"'{old}' is not in the text"
    return text.replace(old, new, 1)


def test_the_text_that_is_changed_below_is_fine():
    robot = robot_from_urdf(ARM)
    assert robot.joint_names == ("shoulder", "elbow")
    assert robot.warnings == ()


REFUSED = {
    # numbers
    "mass nan": ('value="2"', 'value="nan"', ["link 'upper'", "<mass value='nan'>", "expected a finite number"]),
    "mass inf": ('value="2"', 'value="inf"', ["link 'upper'", "<mass value='inf'>", "expected a finite number"]),
    "mass overflow": ('value="2"', 'value="1e999"', ["link 'upper'", "<mass> value", "inf", "finite number"]),
    "mass negative": ('value="2"', 'value="-2"', ["link 'upper'", "mass is -2", "expected zero or more"]),
    "mass huge": ('value="2"', 'value="2e9"', ["link 'upper'", "<mass> value", "beyond 1e+06", "check the unit"]),
    "mass empty": ('value="2"', 'value=""', ["link 'upper'", "<mass value=''>", "expected a finite number"]),
    "mass text": ('value="2"', 'value="two"', ["link 'upper'", "'two'", "expected a finite number"]),
    "mass with unit": ('value="2"', 'value="2 kg"', ["link 'upper'", "'2 kg'", "expected a finite number"]),
    "python number": ('value="2"', 'value="1_0"', ["link 'upper'", "'1_0'", "expected a finite number"]),
    "other digits": ('value="2"', 'value="２"', ["link 'upper'", "expected a finite number"]),
    "xacro left over": ('value="2"', 'value="${m}"', ["link 'upper'", "'${m}'", "expected a finite number"]),
    "mass without value": (' value="2"', ' val="2"', ["link 'upper'", "<mass> has no attribute 'value'"]),
    "no mass": ('<mass value="2"/>', "", ["link 'upper'", "needs both <mass> and <inertia>"]),
    "inertia nan": ('iyy="0.1"', 'iyy="nan"', ["link 'upper'", "<inertia iyy='nan'>", "finite number"]),
    "inertia entry missing": (' izz="0.1"', "", ["link 'upper'", "<inertia> has no attribute 'izz'"]),
    "origin of two": ('xyz="0.1 0 0"', 'xyz="0.1 0"', ["link 'upper'", "'0.1 0'", "expected three finite numbers"]),
    "origin nan": ('xyz="0 0 0.4"', 'xyz="0 0 nan"', ["joint 'shoulder'", "'0 0 nan'", "three finite numbers"]),
    "origin huge": ('xyz="0 0 0.4"', 'xyz="0 0 4e7"', ["joint 'shoulder'", "<origin> xyz[3]", "check the unit"]),
    "origin as quaternion": (
        'xyz="0 0 0.4"',
        'quat_xyzw="0 0 0 1"',
        ["joint 'shoulder'", "<origin> has 'quat_xyzw'", "expected xyz and rpy"],
    ),
    # joints
    "axis zero": ('xyz="0 0 1"', 'xyz="0 0 0"', ["joint 'shoulder'", "axis is zero", "such as '0 0 1'"]),
    "axis nan": ('xyz="0 0 1"', 'xyz="nan 0 0"', ["joint 'shoulder'", "<axis", "three finite numbers"]),
    "axis without xyz": ('<axis xyz="0 0 1"/>', "<axis/>", ["joint 'shoulder'", "<axis> has no attribute 'xyz'"]),
    "limit nan": ('lower="-1"', 'lower="nan"', ["joint 'shoulder'", "<limit lower='nan'>", "finite number"]),
    "limits crossed": ('upper="2"', 'upper="-3"', ["joint 'shoulder'", "lower -1 is above upper -3", "swap"]),
    "limit effort": ('effort="50"', 'effort="-1"', ["joint 'shoulder'", "effort is -1", "expected zero or more"]),
    "damping negative": ('damping="0.7"', 'damping="-1"', ["joint 'shoulder'", "damping is -1", "zero or more"]),
    "type unknown": ('type="prismatic"', 'type="screw"', ["joint 'elbow'", "'screw'", "revolute, continuous"]),
    "floating beyond the base": (
        'type="prismatic"',
        'type="floating"',
        ["joint 'elbow'", "floating", "beyond the base"],
    ),
    "type missing": (' type="prismatic"', "", ["joint 'elbow'", "type is empty", "revolute, continuous"]),
    "parent missing": ('<parent link="upper"/>', "", ["joint 'elbow'", "needs <parent link='...'/>"]),
    "child empty": ('<child link="fore"/>', '<child link=""/>', ["joint 'elbow'", "needs <child link='...'/>"]),
    "parent unknown": (
        '<parent link="upper"/>',
        '<parent link="uper"/>',
        ["joint 'elbow'", "parent link 'uper' does not exist", "did you mean 'upper'?"],
    ),
    "mimic unknown": ('joint="elbow"', 'joint="elbo"', ["joint 'grip'", "'elbo'", "did you mean 'elbow'?"]),
    "mimic of a fixed joint": ('joint="elbow"', 'joint="flange"', ["joint 'grip'", "'flange'", "not a moving joint"]),
    "mimic of itself": ('joint="elbow"', 'joint="grip"', ["passive joints", "grip", "circle", "use active joints"]),
    "mimic without joint": ('mimic joint="elbow"', "mimic", ["joint 'grip'", "<mimic> needs the attribute 'joint'"]),
    "mimic nan": ('multiplier="2"', 'multiplier="nan"', ["joint 'grip'", "<mimic multiplier='nan'>", "finite"]),
    # names
    "joint without name": ('<joint name="elbow"', "<joint", ["<joint>", "has no name", "name='...'"]),
    "link without name": ('<link name="fore"/>', '<link name=""/>', ["<link>", "has no name", "name='...'"]),
    "robot without name": ('<robot name="arm">', "<robot>", ["<robot>", "has no name", "name='...'"]),
    "name of two lines": ('joint name="elbow"', 'joint name="el&#10;bow"', ["<joint> name", r"'el\nbow'", "printable"]),
    "endless name": ('joint name="elbow"', f'joint name="{"x" * 5000}"', ["<joint> name", "1 to 100", "printable"]),
    "joint twice": ('joint name="elbow"', 'joint name="shoulder"', ["joint 'shoulder'", "defined twice", "rename"]),
    "link twice": ('<link name="fore"/>', '<link name="upper"/>', ["link 'upper'", "defined twice", "rename"]),
    # structure
    "two parents": (
        '<child link="tool"/>',
        '<child link="upper"/>',
        ["link 'upper'", "'shoulder' and 'flange'", "modified-DH YAML"],
    ),
    "two roots": (
        '<link name="base"/>',
        '<link name="base"/><link name="world"/>',
        ["<robot>", "2 root links (base, world)", "connect them with joints"],
    ),
    "everything in a cycle": (
        '<parent link="base"/><child link="upper"/>',
        '<parent link="fore"/><child link="upper"/>',
        ["joint 'shoulder', 'elbow'", "cycle", "starts at one base link"],
    ),
    "a joint on its own child": (
        '<parent link="upper"/><child link="fore"/>',
        '<parent link="fore"/><child link="fore"/>',
        ["joint 'elbow'", "cycle", "starts at one base link"],
    ),
    # transmissions
    "reduction text": (
        ">-100<",
        ">many<",
        ["transmission 'gear'", "mechanicalReduction is 'many'", "expected a finite"],
    ),
    "reduction zero": (">-100<", ">0<", ["transmission 'gear'", "mechanicalReduction is '0'", "other than 0"]),
    "reduction nan": (">-100<", ">nan<", ["transmission 'gear'", "mechanicalReduction is 'nan'", "expected a finite"]),
    "reduction huge": (">-100<", ">1e300<", ["transmission 'gear'", "mechanicalReduction", "beyond 1e+06"]),
}


@pytest.mark.parametrize(("old", "new", "fragments"), REFUSED.values(), ids=REFUSED)
def test_refused_with_element_and_remedy(tmp_path, old, new, fragments):
    message = refusal(tmp_path, changed(old, new))
    for fragment in fragments:
        assert fragment in message


def test_a_cycle_apart_from_the_base_is_named_without_its_bystanders(tmp_path):
    extra = "".join(f'<link name="{name}"/>' for name in "abc") + "".join(
        f'<joint name="{a}{b}" type="revolute"><parent link="{a}"/><child link="{b}"/></joint>'
        for a, b in ("ab", "ba", "bc")
    )
    message = refusal(tmp_path, changed("</robot>", f"{extra}</robot>"))
    assert "cycle" in message
    assert "'ab'" in message
    assert "'ba'" in message
    assert "'bc'" not in message


WHOLE_FILES = {
    "empty": ("", ["not well-formed XML", "line 1"]),
    "cut off": (ARM[:200], ["not well-formed XML", "line"]),
    "binary": (b"\x00\xff\xfe\x80", ["not UTF-8 text", "give a URDF or YAML file"]),
    "utf-16": (ARM.encode("utf-16"), ["not UTF-8 text", "give a URDF or YAML file"]),
    "unknown encoding": (f'<?xml version="1.0" encoding="klingon"?>{ARM}', ["not well-formed XML", "klingon"]),
    "wrong encoding": (f'<?xml version="1.0" encoding="utf-16"?>{ARM}', ["not well-formed XML", "encoding"]),
    "yaml inside": ("name: arm\n", ["not well-formed XML"]),
    "another root": ("<sdf/>", ["<sdf>", "is SDF (Gazebo)", "give the URDF"]),
    "endless root": (f"<{'x' * 5000}/>", ["root element must be <robot>"]),
    "mjcf": ("<mujoco><worldbody/></mujoco>", ["is MJCF", "give a URDF"]),
    "xacro": (changed("</robot>", '<xacro xmlns="xacro:x"/></robot>'), ["xacro", "expand them"]),
    "no links": ('<robot name="x"/>', ["<robot>", "has no <link>", "needs links and joints"]),
    "nothing moves": ('<robot name="x"><link name="a"/></robot>', ["joints", "none of them moves", "must be revolute"]),
    "undefined entity": (changed('value="2"', 'value="&m;"'), ["not well-formed XML", "undefined entity"]),
}


@pytest.mark.parametrize(("text", "fragments"), WHOLE_FILES.values(), ids=WHOLE_FILES)
def test_files_that_are_no_urdf(tmp_path, text, fragments):
    message = refusal(tmp_path, text)
    for fragment in fragments:
        assert fragment in message


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize(
    "head",
    [
        f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE robot [<!ENTITY % x SYSTEM "http://localhost:1/x.dtd"> %x;]>',
        '<!DOCTYPE robot SYSTEM "http://localhost:1/robot.dtd">',
        "<!DOCTYPE robot>",
    ],
    ids=["billion laughs", "external entity", "parameter entity", "external DTD", "bare DTD"],
)
def test_entity_tricks_are_refused_before_anything_unfolds(tmp_path, head):
    secret = "&l11;" if "l11" in head else "&x;"
    message = refusal(tmp_path, head + changed('name="arm"', f'name="{secret}"'))
    assert message == "declares a DTD or entities, which a URDF never needs; remove them"
    assert "root:" not in message


def chain(n, kind="revolute", size=""):
    links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>{size}</joint>'
        for i in range(n)
    )
    return f'<robot name="chain">{links}{joints}</robot>'


class TestAbsurdSizes:
    def test_more_moving_joints_than_anybody_builds(self, tmp_path):
        assert len(robot_from_urdf(chain(150)).joint_names) == 150
        message = refusal(tmp_path, chain(1001))
        assert "joints: 1001 of them move, more than the 1000" in message

    def test_thousands_of_fixed_parts(self, tmp_path):
        message = refusal(tmp_path, chain(10001, "fixed"))
        assert "<link>" in message
        assert "more than the 10000" in message

    def test_deep_nesting_is_harmless(self, tmp_path):
        depth = 50_000
        nested = "<a>" * depth + "</a>" * depth
        assert refusal(tmp_path, f'<robot name="x">{nested}</robot>') == "is nested more than 1200 levels deep"

    def test_a_huge_file_is_not_even_read(self, tmp_path, monkeypatch):
        path = tmp_path / "huge.urdf"
        with path.open("wb") as file:
            file.truncate(limits.LIMITS.robot_bytes + 1)
        monkeypatch.setattr("pathlib.Path.read_bytes", lambda *_, **__: pytest.fail("the file was read"))
        with pytest.raises(di.RobotFileError, match=r"huge.urdf: has 8000001 bytes, more than the 8000000"):
            di.load_robot(path)

    def test_an_endless_number_and_an_endless_list(self, tmp_path):
        assert "finite number" in refusal(tmp_path, changed('value="2"', f'value="{"9" * 100_000}"'))
        assert "three finite numbers" in refusal(tmp_path, changed('xyz="0 0 0.4"', f'xyz="{"0 " * 100_000}"'))

    def test_a_chain_of_large_multipliers(self, tmp_path):
        text = chain(3)
        for i in (1, 2):
            mimic = f'<mimic joint="j{i - 1}" multiplier="1e5"/>'
            text = changed(f'<child link="l{i + 1}"/>', f'<child link="l{i + 1}"/>{mimic}', text)
        message = refusal(tmp_path, text)
        assert "passive joint 'j2'" in message
        assert "more than 1e+06 times" in message


class TestPaths:
    def test_missing_file(self, tmp_path):
        with pytest.raises(di.RobotFileError, match=r"gone\.urdf: no such file; check the path"):
            di.load_robot(tmp_path / "gone.urdf")

    def test_folder(self, tmp_path):
        (tmp_path / "robot.urdf").mkdir()
        with pytest.raises(di.RobotFileError, match=r"robot\.urdf: is a folder; give a robot file"):
            di.load_robot(tmp_path / "robot.urdf")

    def test_device_without_end(self, tmp_path):
        (tmp_path / "zero.urdf").symlink_to("/dev/zero")
        with pytest.raises(di.RobotFileError, match=r"zero\.urdf: is a device, not a file"):
            di.load_robot(tmp_path / "zero.urdf")

    def test_pipe_that_nobody_writes(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.yaml")
        with pytest.raises(di.RobotFileError, match=r"pipe\.yaml: is a pipe, not a file"):
            di.load_robot(tmp_path / "pipe.yaml")

    def test_link_to_itself(self, tmp_path):
        (tmp_path / "loop.urdf").symlink_to(tmp_path / "loop.urdf")
        with pytest.raises(di.RobotFileError, match=r"loop\.urdf: cannot be read"):
            di.load_robot(tmp_path / "loop.urdf")

    @pytest.mark.parametrize("name", ["a" * 5000 + ".urdf", "null\0.urdf"])
    def test_impossible_names(self, name):
        with pytest.raises(di.RobotFileError, match="cannot be read"):
            di.load_robot(name)

    @pytest.mark.parametrize("name", ["", "puma650", "a" * 5000, "null\0"])
    def test_neither_file_nor_bundled(self, name):
        with pytest.raises(di.RobotFileError, match=r"neither a file nor a bundled robot.*valid: .*puma560"):
            di.load_robot(name)

    def test_other_endings(self, tmp_path):
        (tmp_path / "arm.txt").write_text(ARM)
        with pytest.raises(di.RobotFileError, match=r"arm\.txt: must end in \.urdf, \.xml"):
            di.load_robot(tmp_path / "arm.txt")

    def test_a_urdf_with_a_simulator_section_may_end_in_xml(self, tmp_path):
        path = tmp_path / "arm.xml"
        path.write_text(changed("</robot>", "<mujoco><compiler/></mujoco></robot>"))
        assert di.load_robot(path).warnings == ()


REPORTED = {
    "negative inertia": ('ixx="0.1"', 'ixx="-0.1"', "link 1 (upper): inertia about the center of mass"),
    "triangle inequality": ('izz="0.1"', 'izz="0.3"', "link 1 (upper): triangle inequality"),
    "inertia without mass": ('value="2"', 'value="0"', "link 1 (upper): mass must be positive"),
    "merged link": ('izz="0.01"', 'izz="0.03"', "link tool: triangle inequality"),
    "axis length": ('xyz="0 0 1"', 'xyz="0 0 2"', "joint 'shoulder': axis has length 2"),
    "two masses": ('<mass value="2"/>', '<mass value="2"/><mass value="3"/>', "link 'upper': has 2 <mass> elements"),
    "misspelt element": (
        '<link name="base"/>',
        '<link name="base"/><lnk name="x"/>',
        "robot: has 'lnk', which is not part of",
    ),
    "misspelt inertial": ("<inertial>", "<inertal/><inertial>", "link 'upper': has 'inertal', which is not part"),
    "unknown part of a joint": ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><brake/>', "joint 'shoulder': has 'brake'"),
    "unknown attribute": ('upper="2"', 'upper="2" uper="1"', "joint 'shoulder': <limit> has 'uper'"),
    "degrees": ('rpy="0 0 0"', 'rpy="90 0 0"', "link 'upper': <origin> rpy has more than a turn"),
    "limits that mean nothing": ('type="revolute"', 'type="continuous"', "joint 'shoulder': a continuous joint has no"),
    "friction of a mimic joint": ("<mimic", '<dynamics damping="1"/><mimic', "joint 'grip': has friction, but follows"),
    "transmission of nobody": (
        'joint name="shoulder"/',
        'joint name="sholder"/',
        "joint 'sholder': does not exist, but has a transmission",
    ),
    "two reductions": (
        "</robot>",
        '<transmission name="b"><joint name="shoulder"/><mechanicalReduction>3</mechanicalReduction></transmission>'
        "</robot>",
        "joint 'shoulder': has several reductions, none of which is used",
    ),
}


@pytest.mark.parametrize(("old", "new", "warning"), REPORTED.values(), ids=REPORTED)
def test_suspicious_things_are_reported_not_repaired(old, new, warning):
    robot = robot_from_urdf(changed(old, new))
    assert any(text.startswith(warning) for text in robot.warnings), robot.warnings


def test_nonphysical_numbers_are_kept_as_they_are():
    robot = robot_from_urdf(changed('ixx="0.1"', 'ixx="-0.1"'))
    assert robot.value_set()["XX1"] == pytest.approx(-0.1)


ODD_TEXTS = [
    *("nan", "-1", "0", "", "1e400", "1e-320", "q1", "<", ">", "/>", '"', "'", "&x;", "&#10;", "]]>", "<!--", "\n"),
    *("<link/>", "<joint/>", "fixed", "shoulder", "upper", "1 2 3", "[/x]", "%", "\x00", "é", "9" * 40),
]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_mutated_text_loads_or_is_refused(seed):
    rng = random.Random(seed)
    tokens = re.findall(r"\w+|\s+|[^\w\s]", ARM)
    for _ in range(rng.choice([1, 1, 2, 4])):
        i = rng.randrange(len(tokens))
        step = rng.randrange(4)
        if step == 0:
            del tokens[i : i + rng.choice([1, 2, 10])]
        elif step == 1:
            tokens[i:i] = tokens[i : i + rng.choice([1, 2, 10])]
        else:
            tokens[i] = rng.choice(ODD_TEXTS) if step == 2 else rng.choice(tokens)
    loads_or_is_refused("".join(tokens))


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_mutated_elements_load_or_are_refused(seed):
    rng = random.Random(seed)
    root = ET.fromstring(ARM)
    for _ in range(rng.choice([1, 1, 2, 4])):
        nodes = list(root.iter())
        node = rng.choice(nodes)
        step = rng.randrange(5)
        if step <= 1 and node.attrib:
            node.set(rng.choice(list(node.attrib)), rng.choice(ODD_TEXTS).replace("\x00", ""))
        elif step == 2 and node.attrib:
            del node.attrib[rng.choice(list(node.attrib))]
        elif step == 3 and len(node):
            node.remove(rng.choice(list(node)))
        else:
            node.append(deepcopy(rng.choice(nodes)))
    loads_or_is_refused(ET.tostring(root, encoding="unicode"))


def loads_or_is_refused(text):
    """Any exception but a DynidentError passes through and fails the test."""
    try:
        robot = robot_from_urdf(text, "fuzz.urdf")
    except di.DynidentError as error:
        message = str(error)
    else:
        assert len(robot.joint_names) >= 1
        assert all(math.isfinite(value) for value in robot.value_set().values())
        return
    assert message.startswith("fuzz.urdf: ")
    assert "\n" not in message
