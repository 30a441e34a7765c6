"""Look-alikes of robot files that people have: free bases, loops in MJCF, settings of simulators, xacro, names."""

from __future__ import annotations

import importlib.util
import json
import sys
import time

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.dynamics.loop_assembly import assembly

BODY = '<inertial mass="{m}" pos="0.05 0.02 0.1" diaginertia="0.01 0.02 0.015"/>'
LEG = f"""
<mujoco model="dog"><compiler angle="radian"/><worldbody>
  <body name="trunk" pos="0 0 0.4" quat="1 0.2 0 0"><freejoint/>{BODY.format(m=5)}
    <body name="hip" pos="0.1 0 0" gravcomp="1"><joint name="hip" axis="0 1 0"/>{BODY.format(m=1)}
      <body name="shank" pos="0 0 -0.2" gravcomp="1"><joint name="knee" axis="1 0 0"/>{BODY.format(m=0.5)}</body>
    </body>
  </body>
</worldbody></mujoco>"""
FOUR_BAR = f"""
<mujoco model="four-bar"><compiler angle="radian"/>
<default><joint axis="0 1 0" armature="0.002" damping="0.05"/></default>
<worldbody>
  <body name="crank"><joint name="crank"/>{BODY.format(m=1)}
    <body name="coupler" pos="0 0 0.2"><joint name="coupler"/>{BODY.format(m=0.7)}</body>
  </body>
  <body name="rocker" pos="0.45 0 0"><joint name="rocker"/>{BODY.format(m=0.8)}</body>
</worldbody>
<equality>EQUALITY</equality>
<actuator><motor joint="crank"/></actuator></mujoco>"""
CONNECT = '<connect name="pin" body1="coupler" body2="rocker" anchor="0.4 0 0.3"/>'
SITES = '<connect name="pin" site1="end" site2="eye"/>'


def written(tmp_path, text, name="robot.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def mujoco_rows(text, robot, q, dq, ddq):
    """MuJoCo's torque of the open tree, brought to the active joints by its own constraint Jacobian."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    tree = robot.follow @ q.T + robot.follow_offset[:, None]
    if robot.closure is not None:
        tree = tree + robot.closure.follow @ assembly(robot).solve(np.ascontiguousarray(q.T), str)
    active, others = list(robot.active), [j for j in range(model.nv) if j not in robot.active]

    def jacobian(position):
        data.qpos[:], data.qvel[:] = position, 0.0
        mujoco.mj_fwdPosition(model, data)
        J = np.zeros((data.ne, model.nv))
        for i in range(data.ne):
            row = np.zeros((1, model.nv))
            if mujoco.mj_isSparse(model):
                at, n = data.efc_J_rowadr[i], data.efc_J_rownnz[i]
                row[0, data.efc_J_colind[at : at + n]] = data.efc_J[at : at + n]
            else:
                row[0] = data.efc_J.reshape(-1, model.nv)[i]
            J[i] = row
        return J, data.efc_pos[: data.ne].copy()

    rows = []
    for position, velocity, acceleration in zip(tree.T, dq, ddq, strict=True):
        J, gap = jacobian(position)
        assert np.abs(gap).max() < 1e-12  # MuJoCo calls the loop closed, too
        G = np.zeros((model.nv, len(active)))
        G[active] = np.eye(len(active))
        G[others] = -np.linalg.lstsq(J[:, others], J[:, active], rcond=1e-9)[0]
        v, step = G @ velocity, 1e-5
        drift = (jacobian(position + step * v)[0] - jacobian(position - step * v)[0]) @ v / (2.0 * step)
        a = G @ acceleration
        a[others] -= np.linalg.lstsq(J[:, others], drift, rcond=1e-9)[0]
        data.qpos[:], data.qvel[:], data.qacc[:] = position, v, a
        flags = model.opt.disableflags
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_inverse(model, data)
        model.opt.disableflags = flags
        rows.append(G.T @ data.qfrc_inverse)
    return np.array(rows)


# --- free bases -------------------------------------------------------------------------------------------------------


def test_a_free_base_is_held_and_said_so(tmp_path):
    robot = di.load_robot(written(tmp_path, LEG))
    assert robot.joint_names == ("hip", "knee")
    base, gravcomp = robot.warnings
    assert base.startswith("the free base 'trunk' is held")
    assert "--fixed-base" in base
    assert gravcomp.startswith("2 bodies (hip, shank): have gravity compensation")
    fixed = LEG.replace("<freejoint/>", "").replace(' gravcomp="1"', "")
    model = mujoco.MjModel.from_xml_string(fixed)
    data = mujoco.MjData(model)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 2))
    data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
    mujoco.mj_inverse(model, data)
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid")
    assert ours == pytest.approx(data.qfrc_inverse[None], rel=1e-12)


def test_the_line_is_silenced(tmp_path, capsys):
    path = written(tmp_path, LEG)
    assert not any("free base" in line for line in di.load_robot(path, fixed_base=True).warnings)
    overlay = written(tmp_path, "base: robot.xml\nfixed_base: true\n", "over.yaml")
    assert not any("free base" in line for line in di.load_robot(overlay).warnings)
    main(["inspect", str(path)])
    assert "free base" in capsys.readouterr().out
    main(["inspect", str(path), "--fixed-base"])
    assert "free base" not in capsys.readouterr().out
    with pytest.raises(di.RobotFileError, match="fixed_base: is False; expected true"):
        di.load_robot(written(tmp_path, "base: robot.xml\nfixed_base: false\n", "over.yaml"))


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_a_urdf_with_a_floating_root(kind):
    links = "".join(
        f"<link name='{name}'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>"
        "</inertial></link>"
        for name in ("trunk", "arm")
    )
    text = (
        f"<robot name='walker'><link name='world'/>{links}"
        f"<joint name='root' type='{kind}'><parent link='world'/><child link='trunk'/><origin xyz='0 0 1'/></joint>"
        "<joint name='q' type='continuous'><parent link='trunk'/><child link='arm'/></joint></robot>"
    )
    robot = di.robot.robot_from_urdf(text)
    assert robot.joint_names == ("q",)
    assert robot.warnings[0].startswith("the free base 'trunk' is held")
    assert robot.joints[0].before.translation.tolist() == [0.0, 0.0, 1.0]


# --- loops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("equality", ["bodies", "sites", "twice", "weld"])
def test_a_loop_of_a_file_is_mujocos_own(equality, tmp_path):
    text = FOUR_BAR.replace("EQUALITY", {"bodies": CONNECT, "sites": SITES, "twice": CONNECT, "weld": ""}[equality])
    if equality == "sites":
        text = text.replace('<joint name="coupler"/>', '<joint name="coupler"/><site name="end" pos="0.4 0 0.1"/>')
        text = text.replace('<joint name="rocker"/>', '<joint name="rocker"/><site name="eye" pos="-0.05 0 0.3"/>')
    if equality == "twice":  # two points on the axis of one hinge
        again = CONNECT.replace('name="pin"', 'name="pin2"').replace("0.4 0 0.3", "0.4 0.1 0.3")
        text = text.replace("</equality>", f"{again}</equality>")
    if equality == "weld":  # the same with a body between, held as a whole
        text = text.replace(
            '<joint name="coupler"/>',
            f'<joint name="coupler"/><body name="pin" pos="0.4 0 0.1"><joint name="pin"/>{BODY.format(m=0.1)}</body>',
        )
        text = text.replace("</equality>", '<weld body1="pin" body2="rocker"/></equality>')
    robot = di.load_robot(written(tmp_path, text))
    assert robot.joint_names == ("crank",)
    assert robot.closure is not None
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.uniform(-0.3, 0.3, (6, 1)), rng.normal(size=(6, 1)), rng.normal(size=(6, 1))
    wanted = mujoco_rows(text, robot, q, dq, ddq)
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia,Fv")
    assert np.abs(ours - wanted).max() < 1e-8 * np.abs(wanted).max()  # the drift is a difference
    # The mass matrix has the rotors of the joints that the loop moves.
    still = np.zeros_like(q)
    push = di.inverse_dynamics(robot, q, still, still + 1.0, "rigid,Ia") - di.inverse_dynamics(
        robot, q, still, still, "rigid,Ia"
    )
    assert di.mass_matrix(robot, q)[:, 0, 0] == pytest.approx(push[:, 0], rel=1e-10)


def test_a_body_that_users_move_closes_no_loop(tmp_path):
    text = LEG.replace("<freejoint/>", "").replace("</worldbody>", '<body name="goal" mocap="true"/></worldbody>')
    text = text.replace("</mujoco>", '<equality><weld body1="goal" body2="shank"/></equality></mujoco>')
    robot = di.load_robot(written(tmp_path, text))
    assert robot.closure is None
    assert any("mocap" in line for line in robot.warnings)


def test_followers_of_followers(tmp_path):
    parts = "".join(
        f'<body name="s{i}" pos="0 0 0.1"><joint name="s{i}" type="slide" armature="0.1" damping="{i}" stiffness="2"/>'
        f"{BODY.format(m=i)}"
        for i in (1, 2, 3)
    )
    equalities = '<joint joint1="s2" joint2="s1"/><joint joint1="s3" joint2="s2" polycoef="0 0.5 0 0 0"/>'
    sums = '<fixed name="all" damping="4"><joint joint="s1" coef="1"/><joint joint="s3" coef="2"/></fixed>'
    tendon = f"<tendon>{sums}</tendon>"
    body = f"<mujoco><worldbody>{parts}{'</body>' * 3}</worldbody><equality>{equalities}</equality>{tendon}</mujoco>"
    robot = di.load_robot(written(tmp_path, body))
    q, dq, ddq = np.random.default_rng(2).normal(size=(3, 5, 1))
    wanted = mujoco_rows(body, robot, q, dq, ddq)
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia,Fv,spring")
    assert ours == pytest.approx(wanted, rel=1e-9)


# --- what a simulator has and a robot has not -------------------------------------------------------------------------


def test_many_muscles_are_refused_at_once(tmp_path):
    sites = "".join(f'<site name="w{i}" pos="{0.01 * i} 0 0"/>' for i in range(700))
    ends = "".join(f'<site name="e{i}" pos="0 0 0.1"/>' for i in range(700))
    cords = "".join(
        f'<spatial name="t{i}"><site site="w{i}"/><geom geom="roll"/><site site="e{i}"/></spatial>' for i in range(700)
    )
    muscles = "".join(f'<muscle tendon="t{i}"/>' for i in range(700))
    text = (
        f'<mujoco><worldbody><geom name="roll" type="sphere" size="0.02"/>{sites}<body name="arm"><joint name="j"/>'
        f'<geom size="0.1"/>{ends}</body></worldbody><tendon>{cords}</tendon><actuator>{muscles}</actuator></mujoco>'
    )
    path = written(tmp_path, text)
    began = time.process_time()
    with pytest.raises(di.RobotFileError, match=r"tendon 't0': is a spatial tendon around geom 'roll' that pulls"):
        di.load_robot(path)
    assert time.process_time() - began < 2.0


def test_an_idle_spatial_tendon_and_its_geom(tmp_path):
    tendon = (
        '<tendon><spatial name="cord"><site site="a"/><geom geom="roll"/><site site="b"/></spatial></tendon></mujoco>'
    )
    text = LEG.replace("</mujoco>", tendon).replace(
        "<worldbody>", '<worldbody><geom name="roll" size="0.1"/><site name="a"/><site name="b"/>'
    )
    robot = di.load_robot(written(tmp_path, text), fixed_base=True)
    assert "tendon 'cord': has no effect: a spatial tendon that nothing pulls" in robot.warnings


# --- other sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [("robot.sdf", "SDF"), ("robot.srdf", "groups of joints"), ("robot.usd", "USD"), ("robot.stl", "a mesh")],
)
def test_other_formats_are_refused_with_what_to_give_instead(name, words, tmp_path):
    with pytest.raises(di.RobotFileError, match=rf"{words}.*give"):
        di.load_robot(written(tmp_path, "<x/>", name))


def test_a_folder_names_its_files(tmp_path):
    written(tmp_path, LEG, "dog.xml")
    with pytest.raises(di.RobotFileError, match=r"is a folder; give one of its files: dog\.xml"):
        di.load_robot(tmp_path)


def test_a_package_path(tmp_path, monkeypatch):
    folder = tmp_path / "share" / "dogs" / "urdf"
    folder.mkdir(parents=True)
    written(folder, LEG)
    with pytest.raises(di.RobotFileError, match=r"package 'dogs' is in no folder .*ROS_PACKAGE_PATH"):
        di.load_robot("package://dogs/urdf/robot.xml")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "share"))
    assert di.load_robot("package://dogs/urdf/robot.xml").name == "dog"
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert di.load_robot("package://dogs/urdf/robot.xml").name == "dog"


XACRO = """
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="1"/><xacro:include filename="$(find parts)/macro.xacro"/>
  <link name="base"/><xacro:rod mass="$(arg mass)"/>
</robot>"""
MACRO = """
<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="rod" params="mass">
  <link name="rod"><inertial><mass value="${2*mass}"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link><joint name="q" type="continuous"><parent link="base"/><child link="rod"/></joint>
</xacro:macro></robot>"""


@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="xacro is not installed")
@pytest.mark.parametrize("name", ["arm.urdf.xacro", "arm.urdf"])
def test_xacro_is_expanded(name, tmp_path):
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts", MACRO, "macro.xacro")
    path = written(tmp_path, XACRO, name)
    assert di.load_robot(path).value_set()["M1"] == 2.0
    assert di.load_robot(path, xacro_args={"mass": "3"}).value_set()["M1"] == 6.0
    assert main(["inspect", str(path), "--xacro-arg", "mass:=4", "--json"]) == 0
    with pytest.raises(di.RobotFileError, match=r"xacro cannot expand it: .*--xacro-arg name:=value"):
        di.load_robot(written(tmp_path, XACRO.replace("arg mass", "arg mas"), name))


@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="xacro is not installed")
@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<link name='${1 / 0}'/>", "division by zero"),
        ("<xacro:nothing/>", "unknown macro name"),
        ("<xacro:property value='1'/>", "missing attribute 'name'"),
        ("<xacro:macro name='again'><xacro:again/></xacro:macro><xacro:again/>", "nested too deeply"),
        ("<link name='$(find nowhere)'/>", "package 'nowhere' is in no folder"),
        ("<link", "not well-formed"),
        ("<xacro:include filename='latin.xacro'/>", "utf-8"),
    ],
    ids=["expression", "macro", "attribute", "recursion", "package", "markup", "encoding"],
)
def test_what_xacro_cannot_expand(inside, words, tmp_path):
    (tmp_path / "latin.xacro").write_bytes("<robot name='é'/>".encode("latin-1"))
    robot = f"<robot name='arm' xmlns:xacro='http://www.ros.org/wiki/xacro'>{inside}</robot>"
    path = written(tmp_path, robot, "arm.xacro")
    with pytest.raises(di.RobotFileError, match=f"xacro cannot expand it: .*{words}"):
        di.load_robot(path)


@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="xacro is not installed")
@pytest.mark.parametrize("raised", [ImportError("no ament"), KeyError("nowhere"), ValueError("no such name")])
def test_package_that_ros_does_not_know_either(raised, tmp_path, monkeypatch):
    def find(name):
        raise raised

    monkeypatch.setattr("xacro.substitution_args._eval_find", find)
    path = written(tmp_path, XACRO, "arm.xacro")
    with pytest.raises(di.RobotFileError, match="package 'parts' is in no folder around"):
        di.load_robot(path)


def test_without_xacro(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(di.RobotFileError, match="pip install xacro"):
        di.load_robot(written(tmp_path, XACRO, "arm.xacro"))


def test_arguments_without_a_xacro_file(tmp_path, capsys):
    path = str(written(tmp_path, LEG))
    assert main(["inspect", path, "--xacro-arg", "mass:=4"]) == 2
    assert "is no xacro file" in capsys.readouterr().err
    assert main(["inspect", path, "--xacro-arg", "mass=4"]) == 2
    assert "expected NAME:=VALUE" in capsys.readouterr().err


def test_names_of_robot_descriptions(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(di.RobotFileError, match="pip install robot_descriptions"):
        di.load_robot("dog_description")
    monkeypatch.delitem(sys.modules, "robot_descriptions")
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    written(package, "", "__init__.py")
    written(package, f"MJCF_PATH = {str(written(tmp_path, LEG))!r}\nprint('Cloning')\n", "dog_description.py")
    written(package, "raise OSError('no network')\n", "cat_description.py")
    written(package, "from git.exc import GitError\nraise GitError('no clone')\n", "bird_description.py")
    written(package, "raise ZeroDivisionError\n", "fish_description.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert di.load_robot("dog_description").name == "dog"
    with pytest.raises(di.RobotFileError, match=r"no copy of it in its cache .* could not fetch one \(no network\)"):
        di.load_robot("cat_description")
    monkeypatch.setitem(sys.modules, "git", None)
    with pytest.raises(di.RobotFileError, match=r"could not fetch one \(.*git"):
        di.load_robot("bird_description")
    (tmp_path / "git").mkdir()
    written(tmp_path / "git", "", "__init__.py")
    written(tmp_path / "git", "class GitError(Exception): pass\n", "exc.py")
    monkeypatch.delitem(sys.modules, "git")
    importlib.invalidate_caches()
    with pytest.raises(di.RobotFileError, match=r"could not fetch one \(no clone\)"):
        di.load_robot("bird_description")
    with pytest.raises(di.RobotFileError, match="ZeroDivisionError") as raised:  # no matter of networks
        di.load_robot("fish_description")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(di.RobotFileError, match=r"is no name of robot_descriptions; did you mean 'cat_description'"):
        di.load_robot("cart_description")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("git", "robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_motion_is_searched_through_loops(tmp_path, capsys):
    path = written(tmp_path, FOUR_BAR.replace("EQUALITY", CONNECT))
    quick = ["--starts", "1", "--kicks", "0", "--max-velocity", "1", "--position-range", "0.4", "--json"]
    assert main(["excite", str(path), "-o", str(tmp_path / "m.yaml"), *quick]) == 0
    assert "closing of the loops pin" in json.loads(capsys.readouterr().out)["closest"]["loops"]
