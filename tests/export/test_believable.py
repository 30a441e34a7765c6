"""What a designer expects of exported files: shapes, motors that move the joints, the tool, and rotors in Pinocchio."""

from __future__ import annotations

import struct

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.export.mjcf import export_mjcf
from dynident.export.shapes import mesh_file
from dynident.export.training_torque import missing_torque
from dynident.export.urdf import armature_lines, export_urdf
from dynident.robot.parameters import LINK_SYMBOLS
from tests.cli.test_export_verb import log_of
from tests.export.made import assert_close, states

LINK = (
    '<inertial><origin xyz="0.1 0 0.02"/><mass value="2"/>'
    '<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>'
)
ARM = f"""<robot name="shown">
  <link name="base"><visual><geometry><box size="0.2 0.4 0.6"/></geometry></visual></link>
  <link name="upper">{LINK}
    <visual><origin xyz="0.15 0 0" rpy="0 1.5707963 0"/><geometry><cylinder radius="0.04" length="0.3"/></geometry>
      <material name="m"><color rgba="1 0 0 1"/></material></visual>
    <collision><geometry><mesh filename="package://shown/meshes/part.stl" scale="0.001 0.001 0.001"/></geometry>
    </collision>
  </link>
  <link name="lower">{LINK}
    <visual><geometry><mesh filename="meshes/nice.dae"/></geometry></visual>
    <visual><geometry><mesh filename="meshes/gone.stl"/></geometry></visual>
    <visual><geometry><mesh filename="meshes/text.stl"/></geometry></visual>
  </link>
  <link name="cup"><visual><geometry><sphere radius="0.05"/></geometry></visual></link>
  <link name="tool0"/>
  <joint name="z_shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="100"/><dynamics damping="0.3" friction="0.2"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0.3 0 0"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="c" type="fixed"><parent link="lower"/><child link="cup"/><origin xyz="0 0 0.2"/></joint>
  <joint name="t" type="fixed"><parent link="lower"/><child link="tool0"/><origin xyz="0.2 0 0" rpy="0 0 0.5"/></joint>
</robot>
"""


def _stl():
    """A binary STL of a tetrahedron."""
    corners = np.array([[0, 0, 0], [100, 0, 0], [0, 100, 0], [0, 0, 100]], dtype=np.float32)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces)
    return b"\0" * 80 + struct.pack("<I", len(faces)) + body


@pytest.fixture
def arm(tmp_path):
    folder = tmp_path / "shown" / "urdf"
    (tmp_path / "shown" / "meshes").mkdir(parents=True)
    (folder / "meshes").mkdir(parents=True)
    (tmp_path / "shown" / "meshes" / "part.stl").write_bytes(_stl())
    (folder / "meshes" / "nice.dae").write_text("<COLLADA/>")
    (folder / "meshes" / "text.stl").write_text("solid words\nendsolid\n")
    (folder / "arm.urdf").write_text(ARM)
    return di.load_robot(folder / "arm.urdf")


def _values(robot, **more):
    return {**robot.value_set(), "Ia1": 0.4, "Ia2": 0.15, **more}


def test_a_new_mjcf_has_the_shapes_of_the_urdf(arm, tmp_path):
    (tmp_path / "out").mkdir()
    done = export_mjcf(arm, _values(arm), tmp_path / "out" / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(done.path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    kinds = [
        (mujoco.mjtGeom(model.geom_type[g]).name, model.body(model.geom_bodyid[g]).name) for g in range(model.ngeom)
    ]
    assert sorted(kinds) == sorted(
        [("mjGEOM_BOX", "world"), ("mjGEOM_CYLINDER", "upper"), ("mjGEOM_MESH", "upper"), ("mjGEOM_SPHERE", "lower")]
    )
    box, sphere = (next(g for g, kind in enumerate(kinds) if kind[0] == f"mjGEOM_{x}") for x in ("BOX", "SPHERE"))
    np.testing.assert_allclose(model.geom_size[box], (0.1, 0.2, 0.3))
    np.testing.assert_allclose(data.geom_xpos[sphere], (0.3, 0, 0.2), atol=1e-12)  # where its fixed link is
    mesh = next(g for g, kind in enumerate(kinds) if kind[0] == "mjGEOM_MESH")
    assert model.geom_rbound[mesh] < 0.2  # millimeters were scaled
    words = " ".join(done.lost)
    assert "MuJoCo reads meshes in .stl, .obj, .msh only (meshes/nice.dae)" in words
    assert "the mesh is not there (meshes/gone.stl)" in words
    assert "MuJoCo cannot read the mesh" in words
    np.testing.assert_allclose(model.body("upper").mass, 2.0)  # shapes weigh nothing


def test_meshes_of_packages_are_found(arm, tmp_path):
    path = tmp_path / "shown" / "urdf" / "arm.urdf"
    part = (tmp_path / "shown" / "meshes" / "part.stl").resolve()
    assert mesh_file("package://shown/meshes/part.stl", path) == part
    assert mesh_file("../meshes/part.stl", path).resolve() == part
    assert mesh_file(f"file://{part}", path) == part
    assert mesh_file("package://other/meshes/part.stl", path) is None


def test_motors_move_their_joints_and_the_tool_is_a_site(arm, tmp_path):
    done = export_mjcf(arm, _values(arm), tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(done.path))
    assert [model.actuator(i).name for i in range(model.nu)] == ["motor z_shoulder", "motor elbow"]
    np.testing.assert_allclose(model.actuator_ctrlrange[0], (-100, 100))
    assert not model.actuator_ctrllimited[1]  # no limit is known
    for i in range(model.nu):
        data, model.opt.gravity[:] = mujoco.MjData(model), 0.0
        data.ctrl[i] = 5.0
        mujoco.mj_step(model, data, 100)
        assert data.qvel[model.joint(("z_shoulder", "elbow")[i]).dofadr[0]] > 0.01
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.site("tool").xpos, (0.5, 0, 0), atol=1e-12)
    assert not any("tool frame" in words for words in done.lost)
    again = di.load_robot(done.path)  # whose reader knows the motors
    state = states(arm)
    held = {name: x for name, x in _values(arm).items() if not name.startswith("Fo")}
    assert_close(di.inverse_dynamics(again, *state), di.inverse_dynamics(arm, *state, values=held))


def test_the_armature_line_gives_pinocchio_the_rotors(arm, tmp_path):
    values = _values(arm)
    done = export_urdf(arm, values, tmp_path / "new.urdf", from_scratch=True)
    (line,) = done.usage
    assert "model.armature" in done.path.read_text()
    assert line in done.summary()
    model = pin.buildModelFromUrdf(str(done.path))
    exec(line[line.index("model.armature") :], {"model": model})
    data, (q, dq, ddq) = model.createData(), states(arm)
    place = [model.joints[model.getJointId(name)] for name in arm.joint_names]
    torque = []
    for k in range(len(q)):
        full, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for joint, x, dx, ddx in zip(place, q[k], dq[k], ddq[k], strict=True):
            full[joint.idx_q : joint.idx_q + joint.nq] = [x] if joint.nq == 1 else [np.cos(x), np.sin(x)]
            v[joint.idx_v], a[joint.idx_v] = dx, ddx
        tau = pin.rnea(model, data, full, v, a)
        torque.append([tau[joint.idx_v] for joint in place])
    bodies = {name: x for name, x in values.items() if name.startswith((*LINK_SYMBOLS, "Ia"))}
    assert_close(di.inverse_dynamics(arm, q, dq, ddq, values=bodies), np.array(torque))
    assert armature_lines(arm, {**values, "Ia1": 0.0, "Ia2": 0.0}) == ()


def test_meshes_follow_a_file_into_another_folder(arm, tmp_path):
    (tmp_path / "out").mkdir()
    heavier = {**_values(arm), "M2": 2.5}
    done = export_urdf(arm, heavier, tmp_path / "out" / "arm.urdf")
    text = done.path.read_text()
    assert 'filename="../shown/urdf/meshes/nice.dae"' in text
    assert "package://shown/meshes/part.stl" in text
    assert done.warnings == (f"meshes such as meshes/gone.stl are named relative to {tmp_path}/shown/urdf",)


def test_a_kept_mjcf_gets_motors_and_tool_where_it_has_none(tmp_path):
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0" actuatorfrcrange="-7 7"/>'
        '<inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>'
        '<geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "over.yaml").write_text("base: arm.xml\ntool: {joint: j, position: [0.2, 0, 0]}\n")
    robot = di.load_robot(tmp_path / "over.yaml")
    done = export_mjcf(robot, robot.value_set(), tmp_path / "new.xml")
    model = mujoco.MjModel.from_xml_path(str(done.path))
    assert (model.nu, model.nsite, model.ngeom) == (1, 1, 1)
    np.testing.assert_allclose(model.actuator_ctrlrange[0], (-7, 7))
    np.testing.assert_allclose(model.site("tool").pos, (0.2, 0, 0))
    twice = di.load_robot(done.path)
    assert export_mjcf(twice, twice.value_set(), tmp_path / "twice.xml").path.read_text().count("<motor") == 1


def test_the_torque_that_a_file_lacks_on_the_training_motion(arm):
    """Rotors and offsets that stand in no URDF, against the torque worked out by hand."""
    log = log_of(arm.with_values("truth", _values(arm, Fo1=1.5, Fc2=0.5)))
    fit = di.identify(arm, log, friction="basic")
    found = di.physical_fit(fit)
    held = {name: x for name, x in found.robot_values.items() if not name.startswith(("Ia", "Fo"))}
    missing = missing_torque(fit, found.robot_values, held)
    q, _, ddq, torque = fit.friction_view.states.transpose(0, 2, 1)
    size = np.linalg.norm(torque)
    by_hand = np.linalg.norm(np.array([found["Ia1"], found["Ia2"]]) * ddq) / size
    assert missing.parts["rotor inertia"] == pytest.approx(by_hand, rel=0.05)  # some rows are near reversals
    assert missing.parts["torque offsets"] == pytest.approx(abs(found["Fo1"]) * np.sqrt(len(q)) / size, rel=0.05)
    assert missing.share > 0.9 * max(missing.parts.values())
    assert missing_torque(fit, found.robot_values, found.robot_values).share < 0.05
    assert "RMS" in str(missing)
