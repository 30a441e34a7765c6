from __future__ import annotations

import contextlib

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.plant import mujoco_xml
from tests.robots import random_urdf

ARM = """
<mujoco model="mini">
  <compiler angle="degree" meshdir="assets" autolimits="true" eulerseq="zyx"/>
  <option gravity="0 0.5 -9.7"/>
  <default>
    <default class="arm">
      <joint armature="0.1" damping="1" axis="0 0 1" range="-160 160"/>
      <general biastype="affine" forcerange="-87 87"/>
      <default class="finger"><joint axis="0 1 0" type="slide" range="0 0.04"/></default>
      <default class="visual"><geom type="mesh" contype="0" conaffinity="0"/></default>
    </default>
  </default>
  <asset>
    <texture name="gone" type="2d" file="gone.png"/><material name="white" texture="gone"/><mesh file="gone.obj"/>
  </asset>
  <worldbody>
    <light pos="0 0 2"/><site name="s1"/><site name="s2" pos="1 0 0"/><geom type="plane" size="1 1 1"/>
    <body name="base" childclass="arm"><geom mesh="gone" material="white" class="visual"/>
      <body name="upper" pos="0 0 0.3" euler="10 20 30">
        <inertial mass="5" pos="0.1 0 -0.05" fullinertia="0.07 0.08 0.05 0.001 0.002 0.003"/>
        <joint name="shoulder" frictionloss="0.3" ref="20"/><joint name="swing" axis="0 1 1" pos="0.1 0 0.2"/>
        <geom mesh="gone" class="visual"/>
        <body name="fore" quat="1 -1 0 0">
          <joint name="elbow"/><geom type="capsule" size="0.05 0.2" pos="0 0 0.2"/>
          <body name="hand" pos="0 0 0.4" axisangle="0 0 1 45">
            <inertial mass="0.7" pos="-0.01 0 0.03" quat="1 1 0 0" diaginertia="0.001 0.0025 0.0017"/>
            <body name="left" pos="0 0 0.06">
              <inertial mass="0.015" pos="0 0 0" diaginertia="2e-6 2e-6 7e-7"/><joint name="f1" class="finger"/>
            </body>
            <body name="right" pos="0 0 0.06" quat="0 0 0 1">
              <inertial mass="0.015" pos="0 0 0" diaginertia="2e-6 2e-6 7e-7"/>
              <joint name="f2" class="finger" ref="0.01"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="split"><joint joint="f1" coef="0.5"/><joint joint="f2" coef="0.5"/></fixed></tendon>
  <equality><joint joint1="f1" joint2="f2" polycoef="0.02 0.8 0 0 0"/></equality>
  <actuator>
    <general class="arm" name="a1" joint="shoulder" gear="50"/><general name="grip" tendon="split"/>
  </actuator>
  <sensor><jointpos joint="elbow"/></sensor>
  <keyframe><key name="home" qpos="0 0 0 0 0"/></keyframe>
</mujoco>
"""
SHAPES = (
    '<mesh file="gone.obj"/>',
    '<texture name="gone" type="2d" file="gone.png"/><material name="white" texture="gone"/>',
    '<geom mesh="gone" class="visual"/>',
    '<geom mesh="gone" material="white" class="visual"/>',
)


def written(tmp_path, text=ARM, name="arm.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def changed(old, new):
    assert old in ARM
    return ARM.replace(old, new, 1)


def test_what_is_in_the_file(tmp_path):
    robot = di.load_robot(written(tmp_path))
    assert robot.name == "mini"
    assert robot.joint_names == ("shoulder", "swing", "elbow", "f2")
    assert [joint.link for joint in robot.joints] == ["upper after shoulder", "upper", "fore", "left", "right"]
    assert [joint.kind for joint in robot.joints] == ["revolute"] * 3 + ["prismatic"] * 2
    assert robot.gravity.tolist() == [0.0, 0.5, -9.7]
    assert robot.joints[2].limits.upper == pytest.approx(np.radians(160))
    assert robot.joints[0].limits.effort == 50 * 87
    assert robot.drive.gear_ratios.tolist() == [50.0, 1.0, 1.0, 1.0]
    # f1 - 0 = 0.02 + 0.8 (f2 - 0.01)
    assert robot.follow[3] == pytest.approx([0, 0, 0, 0.8])
    assert robot.follow_offset[3] == pytest.approx(0.02 - 0.8 * 0.01)
    values = robot.value_set()
    assert (values["Ia1"], values["Fv1"], values["Fc1"], values["Iap4"], values["Fvp4"]) == (0.1, 1.0, 0.3, 0.1, 1.0)
    assert values["M3"] == pytest.approx(0.7 + 1000.0 * np.pi * 0.05**2 * (0.4 + 4.0 / 3.0 * 0.05))  # capsule and hand
    assert robot.warnings == ("actuator 'grip': does not turn one joint with a motor of its own; not used",)


def test_its_dynamics_are_mujocos_own(tmp_path):
    """Against MuJoCo's model of the very same file: the tree's torques, brought to the moving joints by hand."""
    robot = di.load_robot(written(tmp_path))
    text = ARM
    for part in SHAPES:
        assert part in text
        text = text.replace(part, "")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 10, 4))
    theirs = []
    for a, b, c in zip(q, dq, ddq, strict=True):
        data.qpos[:] = [*a[:3], 0.02 + 0.8 * (a[3] - 0.01), a[3]]
        data.qvel[:] = [*b[:3], 0.8 * b[3], b[3]]
        data.qacc[:] = [*c[:3], 0.8 * c[3], c[3]]
        mujoco.mj_inverse(model, data)
        tau = data.qfrc_inverse
        theirs.append([*tau[:3], 0.8 * tau[3] + tau[4]])
    assert di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia,Fv") == pytest.approx(
        np.array(theirs), rel=1e-10, abs=1e-11
    )


@pytest.mark.parametrize("name", di.bundled_names())
def test_a_robot_written_and_read_is_the_same(name, tmp_path):
    robot = di.load_robot(name)
    back = di.load_robot(written(tmp_path, mujoco_xml(robot)))
    order = [back.joint_names.index(joint) for joint in robot.joint_names]
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 10, len(order))) * np.array([2.0, 3.0, 10.0])[:, None, None]
    theirs = di.inverse_dynamics(back, *(x[:, np.argsort(order)] for x in (q, dq, ddq)), "rigid,Ia,Fv,Fc")[:, order]
    ours = di.joint_torque(robot, di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia,Fv,Fc"))
    assert np.abs(theirs - ours).max() < 1e-12 * np.abs(ours).max()
    assert back.warnings == ()
    if len(robot.active) == len(robot.joints):  # same links, same numbers: parameters keep their names and values
        links = [n for n in robot.parameter_names if not n.startswith(("Ia", "F"))]
        mine, read = robot.value_set(), back.value_set()
        assert [read[n] for n in links] == pytest.approx([mine.get(n, 0.0) for n in links], rel=1e-9, abs=1e-12)


def test_a_random_tree_written_and_read_is_the_same(tmp_path):
    robot = di.robot.robot_from_urdf(random_urdf(8, tree=True))
    back = di.load_robot(written(tmp_path, mujoco_xml(robot)))
    assert back.joint_names == robot.joint_names
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 10, len(robot.joint_names)))
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid")
    assert di.inverse_dynamics(back, q, dq, ddq, "rigid") == pytest.approx(ours, rel=1e-10, abs=1e-10)


def test_include_and_overlay(tmp_path):
    body = ARM.split("<worldbody>")[1].split("</worldbody>")[0]
    written(tmp_path, f"<mujoco><worldbody>{body}</worldbody></mujoco>", "body.xml")
    main = ARM.replace(f"<worldbody>{body}</worldbody>", '<include file="body.xml"/>')
    written(tmp_path, main, "main.xml")
    (tmp_path / "over.yaml").write_text("base: main.xml\nname: over\nlimits: {elbow: {velocity: 2}}\n")
    robot = di.load_robot(tmp_path / "over.yaml")
    assert robot.name == "over"
    assert robot.joints[2].limits.velocity == 2.0
    assert robot.value_set() == di.load_robot(written(tmp_path)).value_set()


def test_what_acts_on_nothing_is_reported(tmp_path):
    text = changed('polycoef="0.02 0.8 0 0 0"/>', 'active="false"/>')
    text = text.replace('<fixed name="split">', '<fixed name="split" range="0 1">')
    text = text.replace("</actuator>", '<motor joint="elbow"/><motor joint="elbow" gear="3"/></actuator>')
    robot = di.load_robot(written(tmp_path, text))
    assert len(robot.joint_names) == 5
    assert [warning.split(":")[0] for warning in robot.warnings] == [
        "equality '1'",
        "tendon 'split'",
        "actuator 'grip'",
        "joint 'elbow'",
    ]


ELBOW = '<joint name="elbow"/>'
WRONG = {
    "free joint": (
        '<joint name="elbow"/>',
        '<joint name="elbow" type="ball"/>',
        ["joint 'elbow'", "ball", "three hinges"],
    ),
    "fluid": ('gravity="0 0.5 -9.7"', 'density="1.2"', ["<option>", "fluid"]),
    "curved relation": ("0.02 0.8 0 0 0", "0 1 2 0 0", ["equality '1'", "is curved", "polycoef '0 1 2 0 0'"]),
    "contradiction": (
        "<equality>",
        '<equality><joint joint1="f1" joint2="f2" polycoef="0.1 0.8 0 0 0"/>',
        ["equality '2'", "contradicts"],
    ),
    "loop that cannot move": (
        "<equality>",
        '<equality><weld body1="left" body2="base"/>',
        ["equality '1'", "fewer motions free than there are actuators: ", "take those actuators away"],
    ),
    "spatial tendon": (
        "<fixed",
        '<spatial name="cord" stiffness="3"><site site="s1"/><site site="s2"/></spatial><fixed',
        ["tendon 'cord'", "spatial tendon", "stiffness"],
    ),
    "slack spring": (
        'name="split"',
        'name="split" stiffness="3" springlength="0 0.1"',
        ["tendon 'split'", "slack between 0 and 0.1"],
    ),
    "missing mesh": (
        '<inertial mass="5" pos="0.1 0 -0.05" fullinertia="0.07 0.08 0.05 0.001 0.002 0.003"/>',
        "",
        ["cannot compile", "gone.obj", "body 'upper' has no <inertial>", "put the file there"],
    ),
    "misspelt": ("<inertial", "<inertal", ["MuJoCo cannot read it", "inertal"]),
    "no joint": (ARM.split("<worldbody>")[1].split("</worldbody>")[0], "", ["cannot"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_held_is_refused_by_name(case, tmp_path):
    old, new, words = WRONG[case]
    with pytest.raises(di.RobotFileError) as raised:
        di.load_robot(written(tmp_path, changed(old, new)))
    message = str(raised.value)
    assert all(word in message for word in ["arm.xml", *words]), message
    assert "\n" not in message


def test_a_free_body_alone_is_no_robot(tmp_path):
    text = '<mujoco><worldbody><body name="cart"><freejoint name="root"/><geom size="0.1"/></body></worldbody></mujoco>'
    with pytest.raises(di.RobotFileError, match=r"only the free joint of 'cart' moves, and a free base is held"):
        di.load_robot(written(tmp_path, text))


@pytest.mark.parametrize(("flag", "gone", "kept"), [("damper", "Fv", "Fc"), ("frictionloss", "Fc", "Fv")])
def test_what_the_flags_disable_is_not_used(flag, gone, kept, tmp_path):
    joint = '<joint name="hinge" damping="2" frictionloss="3"/><geom size="0.1" pos="1 0 0"/>'
    text = f'<mujoco><option><flag {flag}="disable"/></option><worldbody><body>{joint}</body></worldbody></mujoco>'
    robot = di.load_robot(written(tmp_path, text))
    assert robot.value_set()[f"{gone}1"] == 0.0
    assert robot.value_set()[f"{kept}1"] > 0.0
    assert any("disabled in the file" in warning for warning in robot.warnings)


def test_without_mujoco(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(di.RobotFileError, match="needs MuJoCo: pip install mujoco"):
        di.load_robot(written(tmp_path))


PENDULUM = """<mujoco><worldbody><body name="a" pos="0 0 {pos}" quat="1 0 0 {quat}">
<joint name="j" axis="0 1 0" damping="{damping}" armature="{armature}" frictionloss="{frictionloss}" ref="{ref}"/>
<inertial mass="{mass}" pos="{center} 0 0" diaginertia="0.1 0.1 {inertia}"/></body></worldbody></mujoco>"""
PLAIN = {"mass": "1", "inertia": "0.1"}


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e300"])
@pytest.mark.parametrize(
    "name", ["pos", "quat", "damping", "armature", "frictionloss", "ref", "mass", "center", "inertia"]
)
def test_numbers_that_are_none_make_no_robot(tmp_path, name, number):
    """MuJoCo takes them; a robot with them would be wrong without a word."""
    given = {key: PLAIN.get(key, "0") for key in ("pos", "quat", "damping", "armature", "frictionloss", "ref")}
    path = tmp_path / "arm.xml"
    path.write_text(PENDULUM.format(**{**given, **PLAIN, "center": "0.1", name: number}))
    with contextlib.suppress(di.RobotFileError):
        robot = di.load_robot(path)
        largest = max(abs(x) for values in robot.values.values() for x in values.values())
        assert largest < 1e7, robot.values  # 1e300 as a part of a quaternion is a rotation
        tau = di.inverse_dynamics(robot, np.array([[0.3]]), np.array([[1.0]]), np.array([[1.0]]))
        assert number == "1e300"
        assert np.isfinite(tau).all()
        assert name in ("quat", "ref")  # rotations
