"""URDF files against Pinocchio, and the user's text against itself."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.errors import InputError, RobotFileError, UnknownNameError
from dynident.export import urdf as urdf_file
from dynident.export.urdf import export_urdf, roll_pitch_yaw
from dynident.export.verification import ExportError
from dynident.robot.parameters import from_pinocchio
from dynident.robot.rotations import rpy_matrix
from tests.export.made import ARM, assert_close, body, other_values, states
from tests.loops import FOUR_BAR, load
from tests.robots import random_urdf

TOOL = re.search(r'<link name="tool"><inertial>(.*?)</inertial>', ARM, re.DOTALL)[1]
EDITED = re.compile(r"<!-- dynident:.*?-->\r?\n|\s*<inertial>.*?</inertial>|\s*<dynamics [^>]*/>", re.DOTALL)


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_bytes(ARM.encode())
    return di.load_robot(path)


def agrees_with_pinocchio(path, robot, values):
    """Rigid torque at the joints, and friction as Pinocchio reads it."""
    model = pin.buildModelFromXML(path.read_text())
    model.gravity.linear = np.array(robot.gravity)
    data, joints = model.createData(), [model.joints[model.getJointId(name)] for name in robot.joint_names]
    order = [joint.idx_v for joint in joints]
    q, dq, ddq = states(robot)
    torques = np.zeros_like(q)
    for k in range(len(q)):
        x, (v, a) = pin.neutral(model), np.zeros((2, model.nv))
        for i, joint in enumerate(joints):  # an endless joint has a point on the circle as its position
            x[joint.idx_q : joint.idx_q + joint.nq] = q[k, i] if joint.nq == 1 else (np.cos(q[k, i]), np.sin(q[k, i]))
        v[order], a[order] = dq[k], ddq[k]
        torques[k] = pin.rnea(model, data, x, v, a)[order]
    assert_close(di.joint_torque(robot, di.inverse_dynamics(robot, q, dq, ddq, "rigid", values)), torques)
    for theirs, symbol in ((model.damping, "Fv"), (model.upperDryFrictionLimit, "Fc")):
        expected = [values.get(f"{symbol}{robot.joints[j].number}", 0.0) for j in robot.active]
        assert np.allclose(np.asarray(theirs)[order], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["ur10e", "panda", "tx40", "puma560", "cylindrical", "kr5-planar"])
def test_a_made_urdf_agrees_with_pinocchio(name, tmp_path):
    robot = di.load_robot(name)
    done = export_urdf(robot, robot.value_set(), tmp_path / "new.urdf")
    assert done.agreement.relative < 1e-12
    agrees_with_pinocchio(done.path, robot, robot.value_set())


FAR_FRAMES = """
name: far frames
convention: dh
joints:
  - {name: a, d: 0.3, a: 0.4, alpha: pi/2}
  - {name: b, theta: 0.3, a: 0.5, alpha: -0.4}
  - {name: c, sigma: 1, theta: 0.2, a: 0.1, alpha: 1}
  - {name: d, d: 0.2, a: -0.3, alpha: 2}
"""


def test_links_whose_frame_is_away_from_the_axis(tmp_path):
    (tmp_path / "far.yaml").write_text(FAR_FRAMES)
    robot = di.load_robot(tmp_path / "far.yaml")
    values = other_values(robot)
    agrees_with_pinocchio(export_urdf(robot, values, tmp_path / "b.urdf").path, robot, values)


@pytest.mark.parametrize("name", ["ur10e", "panda"])
def test_the_chain_from_a_users_urdf_to_the_identified_one(name, tmp_path):
    bundled = di.load_robot(name)
    export_urdf(bundled, bundled.value_set(), tmp_path / "user.urdf")
    robot = di.load_robot(tmp_path / "user.urdf")
    values = other_values(robot)
    done = export_urdf(robot, values, tmp_path / "identified.urdf")
    agrees_with_pinocchio(done.path, robot, values)
    again = di.load_robot(done.path).value_set()
    for n in range(1, len(robot.joints) + 1):
        assert again[f"M{n}"] == pytest.approx(values[f"M{n}"], rel=1e-14)
        assert again[f"Fc{n}"] == values[f"Fc{n}"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fresh", [False, True])
def test_random_trees(seed, fresh, tmp_path):
    (tmp_path / "a.urdf").write_text(random_urdf(seed))
    robot = di.load_robot(tmp_path / "a.urdf")
    values = other_values(robot, seed)
    done = export_urdf(robot, values, tmp_path / "b.urdf", from_scratch=fresh)
    agrees_with_pinocchio(done.path, robot, values)


def test_own_values_change_nothing_but_the_comment(arm, tmp_path):
    done = export_urdf(arm, arm.value_set(), tmp_path / "b.urdf")
    text = done.path.read_text()
    assert re.sub(r"<!-- dynident:.*?-->\n", "", text, flags=re.DOTALL) == ARM
    assert done.lost == ()
    assert done.agreement.lost == 0.0


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_only_inertials_and_friction_change(ends, tmp_path):
    source = ARM.replace("\n", ends).encode()
    (tmp_path / "arm.urdf").write_bytes(source)
    robot = di.load_robot(tmp_path / "arm.urdf")
    values = other_values(robot)
    done = export_urdf(robot, values, tmp_path / "b.urdf", note="prior: CAD -- 2019")
    new = done.path.read_bytes()
    assert new != source
    assert b"\n" not in new.replace(b"\r\n", b"") or ends == "\n"
    before, after = (EDITED.sub("", x.decode()) for x in (source, new))
    opened = f'<link name="flange">{ends}  </link>'  # it had no inertial and closed itself
    assert after.replace(opened, '<link name="flange"/>') == before
    assert b"prior: CAD - - 2019" in new
    for kept in (b"do not lose this", b"from the data sheet", b"odd on purpose", b'rpy="0.3 -1.1 2.5"', b"guessed"):
        assert kept in new
    agrees_with_pinocchio(done.path, robot, values)


def test_an_export_of_an_export_has_one_comment(arm, tmp_path):
    export_urdf(arm, other_values(arm), tmp_path / "b.urdf")
    again = export_urdf(di.load_robot(tmp_path / "b.urdf"), other_values(arm, 2), tmp_path / "c.urdf")
    assert again.path.read_text().count("<!-- dynident:") == 1


def test_a_fixed_child_keeps_its_inertial_and_the_parent_gets_the_rest(arm, tmp_path):
    values = {**arm.value_set(), **body(2, 5.0, (0.0, 0.05, 0.05), (0.1, 0.1, 0.1))}
    done = export_urdf(arm, values, tmp_path / "b.urdf")
    tool = ARM[ARM.index('<link name="tool">') : ARM.index('<joint name="fix"')]
    assert tool in done.path.read_text()
    assert done.warnings == ()
    fore = re.search(r'<link name="fore">.*?<mass value="(.*?)"', done.path.read_text(), re.DOTALL)
    assert float(fore[1]) == pytest.approx(5.0 - 0.8)
    agrees_with_pinocchio(done.path, arm, values)


def test_all_goes_to_the_parent_when_the_rest_is_no_body(arm, tmp_path):
    values = {**arm.value_set(), **body(2, 0.5, (0.0, 0.1, 0.1))}
    twice = ARM.replace('<link name="tool">', '<link name="tool"><inertial><mass value="9"/>\n').replace(
        '<mass value="9"/>\n', TOOL + "</inertial>\n    "
    )
    (tmp_path / "arm.urdf").write_text(twice)  # a second inertial, which no reader uses
    done = export_urdf(arm, values, tmp_path / "b.urdf")
    assert any("link 2 (fore)" in words and "tool" in words for words in done.warnings)
    tool = re.search(r'<link name="tool">(.*?)</link>', done.path.read_text(), re.DOTALL)
    assert "inertial" not in tool[1]
    agrees_with_pinocchio(done.path, arm, values)
    whole = from_pinocchio(pin.buildModelFromXML(done.path.read_text()).inertias[2].toDynamicParameters())
    assert whole[9] == pytest.approx(0.5)


def test_what_is_lost_is_listed_and_stands_on_top(tmp_path):
    robot = di.load_robot("tx40")
    values = {**robot.value_set(), "Fv1": -1.0}
    done = export_urdf(robot, values, tmp_path / "b.urdf", terms="rigid,Ia,Fv,Fc(0.02),Fo")
    words = "\n".join(done.lost)
    for part in ("Ia1", "Fvm6", "Fo1", "Fv1", "coupling", "gear ratios", "zeros", "smoothing of Coulomb friction"):
        assert part in words
    head = done.path.read_text().split("-->")[0]
    assert all(part in head for part in done.lost)
    q, dq, ddq = states(robot)
    again = di.load_robot(done.path)
    held = {k: v for k, v in values.items() if k[:2] not in ("Ia", "Fo") and k not in ("Fvm6", "Fcm6", "Fv1")}
    assert_close(
        di.inverse_dynamics(again, q, dq, ddq),
        di.joint_torque(robot, di.inverse_dynamics(robot, q, dq, ddq, values=held)),
    )
    assert 0.05 < done.agreement.lost < 0.6
    assert "not in the file: rotor inertia" in done.summary()


def test_friction_with_memory_is_listed(arm, tmp_path):
    terms = "rigid,Fv,Fc,stop(0.001)"
    name = di.columns(arm, terms)[-1].name
    done = export_urdf(arm, {**arm.value_set(), name: 2.0}, tmp_path / "b.urdf", terms=terms)
    assert done.lost == (f"further friction {name}",)


def test_sr400_is_refused_with_the_reason(tmp_path):
    robot = di.load_robot("sr400")
    with pytest.raises(ExportError, match=r"joint3 follows q2 and q7 together.*a URDF is a tree.*MJCF, YAML or C"):
        export_urdf(robot, robot.value_set(), tmp_path / "b.urdf")
    assert not list(tmp_path.iterdir())


def test_loops_closed_numerically_are_refused(tmp_path):
    robot = load(FOUR_BAR, tmp_path)
    with pytest.raises(ExportError, match=r"its loops .* are closed, and a URDF is a tree"):
        export_urdf(robot, robot.value_set(), tmp_path / "b.urdf")


def test_a_mimic_joint_stays_one(tmp_path):
    text = ARM.replace(
        '<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="elbow" multiplier="-0.1" offset="0.02"/>'
    )
    (tmp_path / "arm.urdf").write_text(text)
    robot = di.load_robot(tmp_path / "arm.urdf")
    assert robot.joint_names == ("shoulder", "elbow")
    for fresh in (False, True):
        done = export_urdf(robot, other_values(robot), tmp_path / "b.urdf", from_scratch=fresh)
        again = di.load_robot(done.path)
        assert np.array_equal(again.follow, robot.follow)
        assert done.agreement.relative < 1e-12


def test_a_joint_that_only_an_overlay_lets_follow(arm, tmp_path):
    element = "{label: 3, velocity: 0.1*q2, carries: [Fv, Fc]}"
    (tmp_path / "over.yaml").write_text(f"base: arm.urdf\npassive: {{slide: 0.1*q2}}\nelements: [{element}]\n")
    robot = di.load_robot(tmp_path / "over.yaml")
    with pytest.raises(ExportError, match=r"passive joints move otherwise .*a <mimic> in URDF.*from_scratch"):
        export_urdf(robot, robot.value_set(), tmp_path / "b.urdf")
    done = export_urdf(robot, robot.value_set(), tmp_path / "b.urdf", from_scratch=True)
    again = di.load_robot(done.path)
    assert np.array_equal(again.follow, robot.follow)
    assert again.value_set()["Fv2"] == pytest.approx(0.01 * 30.0)  # the slide's, seen at the elbow


def test_an_overlays_urdf_is_found_and_its_limits_written(arm, tmp_path):
    (tmp_path / "over.yaml").write_text(
        "base: arm.urdf\ngravity: [0, 0, -3.7]\nlimits: {elbow: {velocity: 2.5}, shoulder: {effort: 40}}\n"
    )
    robot = di.load_robot(tmp_path / "over.yaml")
    done = export_urdf(robot, robot.value_set(), tmp_path / "b.urdf", limits=True)
    assert "do not lose this" in done.path.read_text()
    assert [words for words in done.lost if words.startswith("gravity (0 0 -3.7)")]
    again = di.load_robot(done.path)
    assert again.joints[1].limits.velocity == 2.5
    assert again.joints[1].limits.upper == 2.5
    assert again.joints[0].limits.effort == 40.0
    for name in ("over.yaml", "arm.urdf"):
        with pytest.raises(InputError, match=r"read from|must end in"):
            export_urdf(robot, robot.value_set(), tmp_path / name)


def test_held_joints_move_in_the_file(arm, tmp_path):
    done = export_urdf(arm.lock(q1=0.3), arm.value_set(), tmp_path / "b.urdf")
    assert di.load_robot(done.path).joint_names == arm.joint_names
    assert done.lost == ("joints that were held (shoulder at 0.3): they move in the file",)


def test_bad_targets(arm, tmp_path):
    values = arm.value_set()
    for target, words in (
        (tmp_path / "arm.urdf", "is the file the robot was read from"),
        (tmp_path / "none" / "b.urdf", "does not exist; create it first"),
        (tmp_path / "b.txt", "must end in .urdf or .xml"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InputError, match=words):
            export_urdf(arm, values, target)
    (tmp_path / "link.urdf").symlink_to(tmp_path / "arm.urdf")
    with pytest.raises(InputError, match="is the file the robot was read from"):
        export_urdf(arm, values, tmp_path / "link.urdf")
    assert (tmp_path / "arm.urdf").read_text() == ARM


def test_an_export_that_fails_its_proof_is_not_written(arm, tmp_path, monkeypatch):
    target = tmp_path / "b.urdf"
    target.write_text("old")
    real = urdf_file.own_torque
    monkeypatch.setattr(urdf_file, "own_torque", lambda *given: real(*given) * (1.0 + 1e-8))
    with pytest.raises(ExportError, match="its torque differs by 1e-08"):
        export_urdf(arm, arm.value_set(), target)
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm.urdf", "b.urdf"]


def test_bad_values(arm, tmp_path):
    target = tmp_path / "b.urdf"
    with pytest.raises(UnknownNameError, match="did you mean 'ZZ1'"):
        export_urdf(arm, {"ZZ1x": 1.0}, target)
    with pytest.raises(InputError, match="M1 is nan"):
        export_urdf(arm, {"M1": np.nan}, target)
    with pytest.raises(ExportError, match=r"link 1 \(upper\): mass is 0 kg.*physically consistent fit"):
        export_urdf(arm, {"ZZ1": 1.0}, target)
    assert not target.exists()


def test_another_or_missing_source(arm, tmp_path):
    values = arm.value_set()
    (tmp_path / "other.urdf").write_text(ARM.replace('xyz="0.1 0 0.25"', 'xyz="0.1 0 0.26"'))
    with pytest.raises(ExportError, match="joint 'elbow' is not the robot's"):
        export_urdf(arm, values, tmp_path / "b.urdf", source=tmp_path / "other.urdf")
    (tmp_path / "other.urdf").write_text(ARM.replace("<gazebo", "<xacro:if value='1'/><gazebo"))
    with pytest.raises(RobotFileError, match="xacro"):
        export_urdf(arm, values, tmp_path / "b.urdf", source=tmp_path / "other.urdf")
    (tmp_path / "arm.urdf").unlink()
    with pytest.raises(InputError, match="is not there; give the file to keep as source"):
        export_urdf(arm, values, tmp_path / "b.urdf")
    assert export_urdf(arm, values, tmp_path / "b.urdf", from_scratch=True).agreement.relative < 1e-12


def test_meshes_named_from_another_folder_are_mentioned(arm, tmp_path):
    (tmp_path / "out").mkdir()
    done = export_urdf(arm, arm.value_set(), tmp_path / "out" / "b.urdf")
    assert any("meshes/upper.stl" in words for words in done.warnings)


def test_roll_pitch_yaw_gives_the_matrix_back():
    rng = np.random.default_rng(0)
    for pitch in (0.0, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-8, np.pi / 2 + 3e-12, 1.0):
        for roll, yaw in rng.uniform(-np.pi, np.pi, (20, 2)):
            matrix = rpy_matrix(roll, pitch, yaw)
            assert np.abs(rpy_matrix(*roll_pitch_yaw(matrix)) - matrix).max() < 3e-15
