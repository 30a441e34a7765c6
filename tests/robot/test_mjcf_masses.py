"""Masses that MuJoCo works out from shapes, against MuJoCo's model of the whole file; joints that carry no body."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import dynident as di

MESH = "v 0 0 0\nv 0.2 0 0\nv 0 0.3 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
ARM = """
<mujoco model="weighed">
  <compiler {compiler}/>
  <default><default class="light"><geom density="300"/></default></default>
  <asset><mesh name="part" file="part.obj"/><mesh name="skin" file="skin.obj"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="stand"><geom type="box" size="0.3 0.3 0.4"/><geom type="mesh" mesh="skin"/>
      <body name="upper" pos="0 0 0.5">
        <joint name="shoulder" axis="0 1 0" damping="0.4" armature="0.02"/>
        <inertial mass="3" pos="0 0 0.1" diaginertia="0.02 0.03 0.01"/>
        <geom type="mesh" mesh="skin" group="2"/><geom type="capsule" size="0.04 0.1"/>
        <body name="flange" pos="0 0 0.3">
          <geom class="light" size="0.05" pos="0.02 0 0"/>
          <body name="camera" pos="0.1 0 0"><site name="eye"/></body>
          <body name="fore" pos="0 0 0.05" euler="20 10 0">
            <joint name="elbow" axis="1 0 0"/>
            <geom type="mesh" mesh="{mesh}" group="1"/><geom type="mesh" mesh="skin" group="3" mass="0"/>
            <geom class="light" type="cylinder" size="0.03 0.2" pos="0.1 0 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
COMPILERS = {
    "as it is": "",
    "total": 'settotalmass="0.65"',
    "total without what is fused": 'settotalmass="0.65" fusestatic="true"',
    "fused": 'fusestatic="true"',
    "always": 'inertiafromgeom="true"',
    "always and total": 'inertiafromgeom="true" settotalmass="4"',
    "some groups": 'inertiagrouprange="0 1"',
    "bounds": 'boundmass="0.2" boundinertia="0.01"',
    "bounds and fused": 'boundmass="0.2" boundinertia="0.01" fusestatic="true"',
    "balanced": 'balanceinertia="true"',
    "all of it": 'inertiafromgeom="true" settotalmass="2" boundmass="0.3" inertiagrouprange="0 2" fusestatic="true"',
    "no visuals": 'discardvisual="true" settotalmass="2"',
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo itself writes a file of its warnings where it runs."""
    monkeypatch.chdir(tmp_path)


def written(folder, text):
    for name in ("part", "skin"):
        (folder / f"{name}.obj").write_text(MESH)
    path = folder / "arm.xml"
    path.write_text(text)
    return path


def states(n, seed=0):
    return np.random.default_rng(seed).normal(size=(3, 12, n)) * np.array([1.5, 2.0, 5.0])[:, None, None]


def torque_of(path, q, dq, ddq):
    """MuJoCo's inverse dynamics of the file as it stands, without dry friction."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    result = []
    for state in zip(q, dq, ddq, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = state
        mujoco.mj_inverse(model, data)
        result.append(np.array(data.qfrc_inverse))
    return np.array(result)


def check_torque(robot, wanted, motion):
    ours = di.inverse_dynamics(robot, *motion, "rigid,Ia,Fv")
    np.testing.assert_allclose(ours, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("mesh", ["part", "skin"])
@pytest.mark.parametrize("case", COMPILERS)
def test_links_weigh_what_the_whole_file_says(case, mesh, tmp_path):
    path = written(tmp_path, ARM.format(compiler=COMPILERS[case], mesh=mesh))
    motion = states(2)
    wanted = torque_of(path, *motion)
    check_torque(di.load_robot(path), wanted, motion)
    # Where a mesh is gone the answer is the same, or none.
    (tmp_path / "skin.obj").unlink()
    if mesh == "skin" or any(word in COMPILERS[case] for word in ("settotalmass", 'inertiafromgeom="true"')):
        with pytest.raises(di.RobotFileError, match=r"skin\.obj"):
            di.load_robot(path)
    else:
        check_torque(di.load_robot(path), wanted, motion)


@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        ('settotalmass="3"', "settotalmass weighs the shapes of every body"),
        ('inertiafromgeom="true"', 'set it to "auto"'),
        ("", "body 'fore' has no <inertial>, so that the mesh gives its inertia: put the file there"),
    ],
)
def test_a_missing_mesh_that_has_weight(compiler, words, tmp_path):
    path = written(tmp_path, ARM.format(compiler=compiler, mesh="skin"))
    (tmp_path / "skin.obj").unlink()
    with pytest.raises(di.RobotFileError, match=words):
        di.load_robot(path)


@pytest.mark.filterwarnings("error")
def test_what_mujoco_warns_of_is_in_the_robots_warnings(tmp_path):
    path = written(tmp_path, ARM.format(compiler='settotalmass="3"', mesh="part"))
    robot = di.load_robot(path)
    if hasattr(mujoco.MjModel, "actuator_armature"):  # versions in which settotalmass is deprecated
        assert any("settotalmass" in warning for warning in robot.warnings)


def test_an_attached_file_keeps_its_own_rules(tmp_path):
    written(tmp_path, ARM.format(compiler='inertiafromgeom="true"', mesh="part")).rename(tmp_path / "child.xml")
    path = tmp_path / "main.xml"
    path.write_text(
        '<mujoco><asset><model name="child" file="child.xml"/></asset><worldbody><body name="cart"><joint name="x" '
        'type="slide"/><geom size="0.1"/><attach model="child" body="stand" prefix="c_"/></body></worldbody></mujoco>'
    )
    motion = states(3)
    check_torque(di.load_robot(path), torque_of(path, *motion), motion)


def test_shapes_that_tendons_wrap_stay(tmp_path):
    tendon = '<tendon><spatial><site site="eye"/><geom geom="roll"/><site site="far"/></spatial></tendon></mujoco>'
    text = ARM.format(compiler="", mesh="part").replace("</mujoco>", tendon)
    text = text.replace('type="capsule" size', 'name="roll" type="capsule" size').replace("capsule", "cylinder", 1)
    path = written(tmp_path, text.replace("<worldbody>", '<worldbody><site name="far" pos="1 0 0"/>'))
    motion = states(2)
    check_torque(di.load_robot(path), torque_of(path, *motion), motion)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="this MuJoCo has none on actuators")
@pytest.mark.parametrize("own", ['armature="0.01"', 'damping="0.1"'])
def test_inertia_and_damping_of_an_actuator_are_not_lost(own, tmp_path):
    actuator = f'<actuator><motor name="drive" joint="elbow" gear="3" {own}/></actuator></mujoco>'
    path = written(tmp_path, ARM.format(compiler="", mesh="part").replace("</mujoco>", actuator))
    motion = states(2)
    check_torque(di.load_robot(path), torque_of(path, *motion), motion)


# --- several joints on one body ---------------------------------------------------------------------------------------

BODY = '<inertial mass="{mass}" pos="0.05 0.02 0.1" fullinertia="0.4 0.5 0.3 0.01 0.02 0.03"/>'
BASE = f"""
<mujoco><worldbody><body name="base">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="turn"/>
  {BODY.format(mass=40)}
</body></worldbody></mujoco>
"""
FOOT = f"""
<mujoco><worldbody><body name="shank">
  <joint name="knee" axis="0 1 0"/>{BODY.format(mass=4)}
  <body name="foot" pos="0 0 -0.4"><joint name="pitch" axis="0 1 0"/><joint name="roll" axis="1 0 0" pos="0 0 -0.05"/>
    {BODY.format(mass=1.2)}
    <body name="toe" pos="0.15 0 -0.05"><joint name="toe" axis="0 1 0"/>{BODY.format(mass=0.2)}</body>
  </body>
</body></worldbody></mujoco>
"""
# Axes that cross: no distance between them carries the mass of the foot into a moment of the link in between.
ANKLE = FOOT.replace(' pos="0 0 -0.05"/>\n', "/>\n")
GRIPPER = f"""
<mujoco><worldbody><body name="hand"><joint name="wrist"/>{BODY.format(mass=1)}
  <body name="left" pos="0 0.05 0.1"><joint name="open" type="slide" axis="0 1 0"/><joint name="close" axis="1 0 0"/>
    {BODY.format(mass=0.1)}</body>
  <body name="right" pos="0 -0.05 0.1"><joint name="open2" type="slide" axis="0 -1 0"/>
    <joint name="close2" axis="-1 0 0"/>{BODY.format(mass=0.1)}</body>
</body></worldbody>
<equality><joint joint1="open2" joint2="open"/><joint joint1="close2" joint2="close"/></equality></mujoco>
"""


def rank_of_bodies(path, robot):
    """Rank of MuJoCo's torque over the ten numbers of every body that has a joint: derivatives, by differences."""
    spec = mujoco.MjSpec.from_file(str(path))
    q, dq, ddq = states(len(robot.joint_names), 5)
    q, dq, ddq = np.vstack([q, -0.7 * q[::-1]]), np.vstack([dq, dq[::-1]]), np.vstack([ddq, -ddq])
    columns = []
    for body in spec.bodies[1:]:
        kept = body.mass, np.array(body.ipos), np.array(body.fullinertia)
        for k in range(10):
            body.mass, body.ipos, body.fullinertia = kept
            first = _torque(spec, robot, q, dq, ddq)
            if k == 0:
                body.mass = kept[0] + 0.5
            elif k < 4:
                body.ipos = kept[1] + 0.01 * np.eye(3)[k - 1]
            else:
                body.fullinertia = kept[2] + 0.01 * np.eye(6)[k - 4]
            columns.append(_torque(spec, robot, q, dq, ddq) - first)
        body.mass, body.ipos, body.fullinertia = kept
    W = np.array(columns).T
    size = np.linalg.norm(W, axis=0)
    values = np.linalg.svd(W[:, size > 1e-9] / size[size > 1e-9], compute_uv=False)
    rank = int(np.sum(values > 1e-6 * values[0]))
    assert rank == len(values) or values[rank] < 1e-4 * values[rank - 1]
    return rank


def _torque(spec, robot, q, dq, ddq):
    model = spec.compile()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    rows = []
    for a, b, c in zip(q, dq, ddq, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = robot.follow @ a, robot.follow @ b, robot.follow @ c
        mujoco.mj_inverse(model, data)
        rows.append(robot.follow.T @ data.qfrc_inverse)
    return np.ravel(rows)


@pytest.mark.parametrize(
    ("text", "between"),
    [(BASE, "12"), (FOOT, "2"), (ANKLE, "2"), (GRIPPER, "24")],
    ids=["base", "foot", "ankle", "grip"],
)
def test_a_joint_without_a_body_has_no_parameters(text, between, tmp_path):
    path = written(tmp_path, text)
    robot = di.load_robot(path)
    base = di.base_parameters(robot, "rigid")
    assert base.n == rank_of_bodies(path, robot)
    assert {name[-1] for name in robot.fixed} == set(between)
    assert set(robot.fixed.values()) == {0.0}
    free = {name for relation in base.relations for name in relation}
    assert not free & set(robot.fixed)


def test_physical_parameters_of_a_robot_with_such_joints(tmp_path):
    """Bodies for the links that have one; the joint without keeps its zeros and is not put down to a prior."""
    robot = di.load_robot(written(tmp_path, FOOT))
    assert di.physical.distance_to_physical(robot).physical
    base = di.base_parameters(robot, "rigid")
    beta = dict(zip(base.names, base.base_values(), strict=True))
    near = di.physical.nearest_physical(robot, beta, terms="rigid")
    assert near.feasible
    assert {near.values[name] for name in robot.fixed} == {0.0}
    assert [link.mass > 0.0 for link in near.links] == [True, False, True, True]
    assert "not physically consistent" not in near.prior
    with pytest.raises(di.InputError, match=r"link 2 \(foot after pitch\) is only a joint"):
        di.physical.nearest_physical(robot, beta, terms="rigid", bounds=[di.physical.MassBound(2, 0.1, 1.0)])
