"""MJCF files in MuJoCo, without the checks of the exporter."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError
from dynident.export import mjcf as mjcf_file
from dynident.export.mjcf import export_mjcf
from dynident.export.verification import ExportError
from dynident.robot.parameters import LINK_SYMBOLS
from tests.export.made import ARM as URDF, assert_close, body, other_values, states
from tests.loops import FIVE_BAR, FOUR_BAR, load
from tests.robot.test_files_as_they_come import CONNECT, FOUR_BAR as FILE_WITH_LOOP
from tests.robot.test_mjcf import ARM, SHAPES

NO_SHAPES = ARM
for _shape in SHAPES:
    NO_SHAPES = NO_SHAPES.replace(_shape, "")


def mujoco_torque(path, robot):
    """States, and MuJoCo's torque at the moving joints with dry friction far from standstill."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    q, dq, ddq = states(robot)
    if robot.closure is not None:
        q = robot.closure.reference[list(robot.moving)] + 0.1 * np.tanh(q)
    dq = np.sign(dq) * (1.0 + np.abs(dq))
    tree = di.dynamics.tree_motion(robot, q, dq, ddq)
    torques = []
    for k in range(len(q)):
        for j, joint in enumerate(robot.joints):
            d = int(model.joint(joint.name).dofadr[0])
            data.qpos[d], data.qvel[d], data.qacc[d] = tree.q[k, j], tree.dq[k, j], tree.ddq[k, j]
        mujoco.mj_inverse(model, data)
        own = [float(data.qfrc_inverse[int(model.joint(joint.name).dofadr[0])]) for joint in robot.joints]
        torques.append(tree.G[k].T @ own)
    return (q, dq, ddq), np.array(torques)


def agrees_with_mujoco(path, robot, values):
    state, torque = mujoco_torque(path, robot)
    assert_close(di.joint_torque(robot, di.inverse_dynamics(robot, *state, values=values)), torque)


REPLICATED = """<mujoco><worldbody><replicate count="2" offset="0.5 0 0"><body name="b"><joint name="j" axis="0 1 0"/>
<inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.01"/></body></replicate></worldbody></mujoco>"""


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "arm.xml").write_text(NO_SHAPES)
    return di.load_robot(tmp_path / "arm.xml")


@pytest.mark.parametrize("name", ["ur10e", "panda", "tx40", "sr400", "cylindrical"])
def test_a_made_file_agrees_with_mujoco(name, tmp_path):
    robot = di.load_robot(name)
    done = export_mjcf(robot, robot.value_set(), tmp_path / "new.xml")
    assert done.agreement.reader == "MuJoCo"
    assert done.agreement.relative < 1e-11
    held = {k: v for k, v in robot.value_set().items() if not k.startswith("Fo") and (name, k) != ("sr400", "Fv6")}
    agrees_with_mujoco(done.path, robot, held)
    assert any("coupling" in words for words in done.lost) == (name in ("tx40", "sr400"))


@pytest.mark.parametrize("text", [FOUR_BAR, FIVE_BAR])
def test_loops_closed_numerically(text, tmp_path):
    robot = load(text, tmp_path)
    done = export_mjcf(robot, robot.value_set(), tmp_path / "new.xml")
    agrees_with_mujoco(done.path, robot, robot.value_set())
    assert "<equality>" in done.path.read_text()


def test_a_kept_file_holds_what_loops_move(tmp_path):
    """Rotors and dampers of joints that a loop moves, as the class of a gripper gives them; negative ones are lost."""
    path = tmp_path / "four-bar.xml"
    path.write_text(FILE_WITH_LOOP.replace("EQUALITY", CONNECT))
    robot = di.load_robot(path)
    passive = sorted(
        name
        for element in robot.elements
        if element.solved.any()
        for symbol, name in element.names.items()
        if symbol in ("Ia", "Fv")
    )
    assert len(passive) == 4
    values = {**robot.value_set(), **dict.fromkeys(passive, 0.03), passive[0]: 0.007}
    done = export_mjcf(robot, values, tmp_path / "new.xml")
    assert done.lost == ()
    agrees_with_mujoco(done.path, robot, values)
    rotor = next(name for name in passive if name.startswith("Ia"))
    lost = export_mjcf(robot, {**values, rotor: -0.01}, tmp_path / "lost.xml")
    assert lost.lost == (f"rotor inertia {rotor}: is negative, which the kept MJCF does not allow",)
    agrees_with_mujoco(lost.path, robot, {**values, rotor: 0.0})


def test_a_made_file_is_read_by_our_reader(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    robot = di.load_robot(tmp_path / "arm.urdf")
    values = {k: v for k, v in other_values(robot).items() if not k.startswith("Fo")}
    done = export_mjcf(robot, values, tmp_path / "new.xml", note="prior: CAD")
    again = di.load_robot(done.path)
    q, dq, ddq = states(robot)
    assert_close(di.inverse_dynamics(again, q, dq, ddq), di.inverse_dynamics(robot, q, dq, ddq, values=values))
    assert "prior: CAD" in done.path.read_text().split("-->")[0]


def test_own_values_change_nothing_but_the_comment(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)  # its meshes are not there
    robot = di.load_robot(tmp_path / "arm.xml")
    done = export_mjcf(robot, robot.value_set(), tmp_path / "b.xml")
    assert re.sub(r"<!-- dynident:.*?-->\n", "", done.path.read_text(), flags=re.DOTALL) == ARM


def test_the_users_file_is_kept(arm, tmp_path):
    values = {**arm.value_set()}
    rng = np.random.default_rng(0)
    for joint in arm.joints[1:]:
        values |= body(joint.number, 4.0 + rng.random(), rng.uniform(-0.05, 0.05, 3), (0.06, 0.05, 0.04))
    values |= {n: float(rng.uniform(0.1, 1)) for e in arm.elements for n in e.names.values() if not n.startswith("Fo")}
    done = export_mjcf(arm, values, tmp_path / "b.xml")
    agrees_with_mujoco(done.path, arm, values)
    assert done.lost == ()
    edited = re.compile(r'<!-- dynident.*?-->\n|\s*<inertial .*?/>| (armature|damping|frictionloss)="[^"]*"', re.DOTALL)
    default = '<joint armature="0.1" damping="1" axis="0 0 1"'
    assert default in done.path.read_text()
    assert edited.sub("", done.path.read_text()) == edited.sub("", NO_SHAPES)


def test_a_body_without_joint_keeps_its_own_or_gives_it_up(arm, tmp_path):
    hand = '<inertial mass="0.7" pos="-0.01 0 0.03" quat="1 1 0 0" diaginertia="0.001 0.0025 0.0017"/>'
    heavy = {**arm.value_set(), **body(3, 9.0, (0, 0, 0.2), (0.3, 0.3, 0.3))}
    done = export_mjcf(arm, heavy, tmp_path / "b.xml")
    assert hand in done.path.read_text()
    agrees_with_mujoco(done.path, arm, heavy)
    light = {**arm.value_set(), **body(3, 0.5, (0, 0, 0.2), (0.01, 0.01, 0.01))}
    done = export_mjcf(arm, light, tmp_path / "b.xml")
    assert hand not in done.path.read_text()
    assert "link 3 (fore): holds the masses of hand as well" in done.warnings[0]
    agrees_with_mujoco(done.path, arm, light)


def test_a_link_that_is_only_a_joint_in_the_file(arm, tmp_path):
    assert arm.fixed["M1"] == 0.0
    arm = dataclasses.replace(arm, fixed={})  # a robot that was given such a mass all the same
    values = {**arm.value_set(), **body(1, 1.0, (0, 0, 0))}
    with pytest.raises(ExportError, match=r"link 1 .*: is only a joint in the file"):
        export_mjcf(arm, values, tmp_path / "b.xml")
    done = export_mjcf(arm, values, tmp_path / "b.xml", from_scratch=True)
    agrees_with_mujoco(done.path, arm, values)


@pytest.mark.parametrize("inner", ["deep.xml", "parts/deep.xml"])  # seen from the part, or from the main file
def test_included_files_are_kept_in_their_places(inner, arm, tmp_path):
    low, high = NO_SHAPES.index("<worldbody>"), NO_SHAPES.rindex("</worldbody>") + len("</worldbody>")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/deep.xml").write_text(f"<mujocoinclude><!-- kept -->{NO_SHAPES[low:high]}</mujocoinclude>")
    (tmp_path / "parts/part.xml").write_text(f'<mujoco><include file="{inner}"/></mujoco>')
    (tmp_path / "whole.xml").write_text(NO_SHAPES[:low] + '<include file="parts/part.xml"/>' + NO_SHAPES[high:])
    robot = di.load_robot(tmp_path / "whole.xml")
    values = {**robot.value_set(), **body(robot.joints[-1].number, 0.9, (0.01, 0.0, 0.02))}
    done = export_mjcf(robot, values, tmp_path / "b.xml")
    assert "<!-- kept -->" in done.path.read_text()
    assert "include" not in done.path.read_text()
    agrees_with_mujoco(done.path, robot, values)


def test_bodies_that_a_file_makes_are_refused_with_a_remedy(tmp_path):
    (tmp_path / "whole.xml").write_text(REPLICATED)
    robot = di.load_robot(tmp_path / "whole.xml")
    with pytest.raises(ExportError, match=r"has <replicate>.*save it as one plain file"):
        export_mjcf(robot, robot.value_set(), tmp_path / "b.xml")


@pytest.mark.filterwarnings("ignore:compiler attribute 'settotalmass'")
@pytest.mark.parametrize("setting", ['inertiafromgeom="true"', 'settotalmass="9"'])
def test_settings_that_change_inertias_are_refused(setting, tmp_path):
    (tmp_path / "arm.xml").write_text(NO_SHAPES.replace("<compiler ", f"<compiler {setting} "))
    robot = di.load_robot(tmp_path / "arm.xml")
    with pytest.raises(ExportError, match=setting.partition("=")[0]):
        export_mjcf(robot, robot.value_set(), tmp_path / "b.xml")


def test_a_tendons_numbers_stay_with_it(tmp_path):
    coupled = di.load_robot("tx40")
    export_mjcf(coupled, coupled.value_set(), tmp_path / "user.xml")
    robot = di.load_robot(tmp_path / "user.xml")
    values = {k: v for k, v in other_values(robot).items() if not k.startswith("Fo")}
    done = export_mjcf(robot, values, tmp_path / "b.xml")
    assert done.lost == ()
    assert di.load_robot(done.path).value_set()["Fvelement_m6"] == values["Fvelement_m6"]
    agrees_with_mujoco(done.path, robot, values)


def test_what_is_lost_is_listed(tmp_path):
    robot = di.load_robot("sr400")
    done = export_mjcf(robot, {**robot.value_set(), "Fo1": 1.0}, tmp_path / "b.xml")
    words = "\n".join(done.lost)
    for part in ("torque offset Fo1", "Fv6: drives the motion", "coupling", "drive gains"):
        assert part in words
    assert 0.0 < done.agreement.lost < 0.01


def test_the_reference_shows_what_happens(tmp_path):
    robot = di.load_robot("tx40")
    done = export_mjcf(robot, robot.value_set(), tmp_path / "tx40.xml")
    page = (Path(__file__).parents[2] / "docs" / "reference" / "export-files.md").read_text()
    shown = [
        line.strip().removeprefix("not in the file: ") for line in page.splitlines() if "  not in the file:" in line
    ]
    assert tuple(shown) == done.lost
    assert f"{100.0 * done.agreement.lost:.3g} % of the torque" in page


def test_bodies_that_cannot_exist_are_refused_by_name(arm, tmp_path):
    values = {f"{s}2": x for s, x in zip(LINK_SYMBOLS, (1, 0, 0, 1, 0, 5, 0, 0, 0, 2.0), strict=True)}
    with pytest.raises(ExportError, match=r"link 2 \(upper\): triangle inequality.*physically consistent fit"):
        export_mjcf(arm, values, tmp_path / "b.xml")


def test_bad_targets_and_failed_proofs(arm, tmp_path, monkeypatch):
    for name, words in (("arm.xml", "was read from"), ("b.mjcf", "must end in .xml"), ("x/b.xml", "does not exist")):
        with pytest.raises(InputError, match=words):
            export_mjcf(arm, arm.value_set(), tmp_path / name)
    real = mjcf_file.mujoco_torque
    monkeypatch.setattr(mjcf_file, "mujoco_torque", lambda *given: real(*given) + 1e-3)
    with pytest.raises(ExportError, match="was not written, because its torque differs"):
        export_mjcf(arm, arm.value_set(), tmp_path / "b.xml")
    assert [p.name for p in tmp_path.iterdir()] == ["arm.xml"]
