from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import dynident as di

ARM = """
<robot name="arm">
  <link name="world"/>
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="fore"><inertial><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="tool"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="mount" type="fixed"><parent link="world"/><child link="base"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 1 0"/><limit effort="10" velocity="2" lower="-1" upper="1"/></joint>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="50" velocity="3"/><dynamics damping="0.7" friction="0.2"/></joint>
  <joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0.2 0 0"/></joint>
  <transmission name="t"><joint name="shoulder"/><actuator name="m"><mechanicalReduction>-100</mechanicalReduction>
  </actuator></transmission>
</robot>
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


class TestUrdf:
    def test_order_limits_and_dynamics(self, arm):
        robot = di.load_robot(arm)
        assert robot.joint_names == ("shoulder", "elbow")  # parents first, whatever the order in the file
        assert robot.motor_names == ("m1", "m2")
        shoulder, elbow = robot.joints
        assert (shoulder.limits.lower, shoulder.limits.upper) == (-1.0, 2.0)
        assert (elbow.limits.lower, elbow.limits.effort) == (None, 10.0)
        assert robot.value_set()["Fv1"] == 0.7
        assert robot.value_set()["Fc1"] == 0.2
        np.testing.assert_array_equal(robot.drive.gear_ratios, [-100.0, 1.0])
        np.testing.assert_array_equal(robot.coupling, np.eye(2))

    def test_fixed_children_are_merged_in_the_parent_frame(self, arm):
        values = di.load_robot(arm).value_set()
        assert values["M2"] == pytest.approx(1.5)
        assert values["MX2"] == pytest.approx(0.5 * 0.2)
        assert values["ZZ2"] == pytest.approx(0.1 + 0.01 + 0.5 * 0.2**2)
        assert values["MX1"] == pytest.approx(0.2)

    def test_records_cannot_be_changed(self, arm):
        robot = di.load_robot(arm)
        with pytest.raises(ValueError, match="read-only"):
            robot.gravity[0] = 1.0
        with pytest.raises(TypeError):
            robot.fixed["ZZ1"] = 0.0
        with pytest.raises(AttributeError):
            robot.name = "other"


class TestOverlay:
    def overlay(self, arm, text):
        path = arm.parent / "overlay.yaml"
        path.write_text(f"base: arm.urdf\n{text}")
        return path

    def test_adds_what_a_urdf_cannot_state(self, arm):
        path = self.overlay(
            arm,
            "torque_source: motor\ndrive_gains: [{value: 10, tolerance: 0.5}, 12]\nfixed: {XY2: 0}\n"
            "limits: {elbow: {lower: -2, upper: 2}}\ncoupling: [[1, 0], [1, 1]]\ngravity: [0, 0, -9.80]\n",
        )
        robot = di.load_robot(path)
        assert robot.drive.source == "motor"
        np.testing.assert_array_equal(robot.drive.gains, [10, 12])
        np.testing.assert_array_equal(robot.drive.gain_tolerances, [0.5, 0])
        assert robot.fixed == {"XY2": 0.0}
        assert robot.joints[1].limits.upper == 2.0
        assert robot.gravity[2] == -9.8
        # Motor 2 turns with both joints, behind the gear of motor 1 nothing changes.
        np.testing.assert_allclose(robot.coupling, [[1, 0], [1, 1]])
        assert [element.label for element in robot.elements] == ["1", "2", "m2"]
        assert dict(robot.elements[2].names) == {"Ia": "Ia2", "Fv": "Fvm2", "Fc": "Fcm2"}

    def test_may_stand_on_a_bundled_robot_and_on_another_overlay(self, tmp_path):
        (tmp_path / "a.yaml").write_text("base: puma560\nname: mine\nfixed: {XY6: 0}\n")
        (tmp_path / "b.yaml").write_text("base: a.yaml\nfixed: {XZ6: 0}\n")
        robot = di.load_robot(tmp_path / "b.yaml")
        assert robot.name == "mine"
        assert set(robot.fixed) == {"XY6", "XZ6"}


class TestTransmissions:
    def load(self, text):
        return di.robot.robot_from_urdf(ARM.replace(ARM[ARM.index("  <transmission") : ARM.index("</robot>")], text))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("<transmission name='t'><joint name='elbow'/></transmission>", "has no <mechanicalReduction>"),
            ("<transmission name='t'><mechanicalReduction>5</mechanicalReduction></transmission>", "has no <joint"),
            ("<ros2_control><param/><mechanical_reduction>5</mechanical_reduction></ros2_control>", "gear_ratios"),
            (
                "<transmission><joint name='flange'/><mechanicalReduction>5</mechanicalReduction></transmission>",
                "'flange': has a reduction but no motor",
            ),
        ],
    )
    def test_what_is_not_used_is_said(self, text, words):
        robot = self.load(text)
        np.testing.assert_array_equal(robot.drive.gear_ratios, [1.0, 1.0])
        assert any(words in warning for warning in robot.warnings)

    def test_reductions_that_differ_are_reported(self):
        two = "".join(f"<mechanicalReduction>{x}</mechanicalReduction>" for x in (5, 6))
        robot = self.load(f"<transmission name='t'><joint name='elbow'/>{two}</transmission>")
        np.testing.assert_array_equal(robot.drive.gear_ratios, [1.0, 1.0])
        assert robot.warnings[-1].startswith("joint 'elbow': has several reductions, none of which is used")

    def test_a_differential_is_reported_by_its_joints(self):
        two = "".join(f"<mechanicalReduction>{x}</mechanicalReduction>" for x in (5, 6, 1, 1))
        joints = "<joint name='elbow'/><joint name='shoulder'/>"
        robot = self.load(f"<transmission name='t'>{joints}{two}</transmission>")
        np.testing.assert_array_equal(robot.drive.gear_ratios, [1.0, 1.0])
        warning = robot.warnings[-1]
        assert warning.startswith("2 joints (elbow, shoulder): are turned by several motors together")
        assert "'coupling' in an overlay" in warning

    def test_macros_anywhere_are_refused(self):
        text = ARM.replace("<robot ", "<robot xmlns:xacro='http://www.ros.org/wiki/xacro' ")
        with pytest.raises(di.RobotFileError, match="expand them with the xacro tool"):
            di.robot.robot_from_urdf(text.replace("<mass", "<xacro:mass_block/><mass", 1))


class TestTools:
    def test_a_chain_has_its_tool_at_the_end_and_a_tree_must_say(self, tmp_path):
        robot = di.load_robot("puma560")
        assert robot.tool[0] == 5
        assert di.load_robot("sr400").joints[di.load_robot("sr400").tool[0]].name == "joint6"
        path = tmp_path / "tree.yaml"
        path.write_text("convention: modified-dh\njoints: [{}, {d: 0.3}, {antecedent: 1, d: 0.2}]\n")
        tree = di.load_robot(path)
        with pytest.raises(di.InputError, match="say in its file which link carries the tool"):
            di.inverse_dynamics(tree, *np.zeros((3, 1, 3)), tool_force=[[1.0, 0.0, 0.0]])

    def test_a_turned_tool_frame(self, tmp_path):
        path = tmp_path / "tool.yaml"
        path.write_text("base: pendulum-2\ntool: {joint: joint2, position: [1, 0, 0], rpy: [0, 0, pi/2]}\n")
        robot = di.load_robot(path)
        rest = np.zeros((3, 1, 2))
        # The tool pushes along its own x, which is the last link's y, at its far end.
        extra = di.inverse_dynamics(robot, *rest, tool_force=[[2.0, 0.0, 0.0]]) - di.inverse_dynamics(robot, *rest)
        np.testing.assert_allclose(extra, [[4.0, 2.0]], atol=1e-12)


class TestElements:
    def overlay(self, tmp_path, text, base="puma560"):
        path = tmp_path / "overlay.yaml"
        path.write_text(f"base: {base}\n{text}")
        return di.load_robot(path)

    def test_a_rotor_cannot_push_elsewhere(self, tmp_path):
        with pytest.raises(di.RobotFileError, match="Ia takes no torque of its own"):
            self.overlay(tmp_path, "elements: [{label: x, velocity: q5, torque: q4, carries: [Ia]}]")

    def test_units_follow_the_joints(self, tmp_path):
        robot = self.overlay(tmp_path, "elements: [{label: cc, velocity: q2 + q3, carries: [Fv]}]", "cylindrical")
        units = {column.name: column.unit for column in di.columns(robot, "Fv")}
        assert units == {"Fv1": "N·m·s/rad", "Fv2": "N·s/m", "Fv3": "N·s/m", "Fvcc": "N·s/m"}


def test_lengths_may_be_used_in_relations(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(
        "convention: modified-dh\nlengths: {k: 0.5, s: 0.2}\njoints: [{}, {d: s}, {d: s, mu: 0}]\n"
        "passive: {q3: s + k*q2}\ncoupling: {qm2: q2 + k*q1}\n"
    )
    robot = di.load_robot(path)
    np.testing.assert_allclose(robot.follow[2], [0.0, 0.5])
    assert robot.follow_offset[2] == 0.2
    np.testing.assert_allclose(robot.coupling, [[1, 0], [0.5, 1]])


def test_robots_can_be_copied_pickled_and_compared():
    robot = di.load_robot("sr400")
    again = pickle.loads(pickle.dumps(robot))
    assert again.fingerprint == robot.fingerprint == copy.deepcopy(robot).fingerprint
    assert robot != again
    assert len({robot, again}) == 2
    with pytest.raises(TypeError, match="immutable record"):
        again.fixed["ZZ1"] = 1.0


class TestTables:
    def test_offsets_may_be_written_with_the_variable(self, tmp_path):
        for i, theta in enumerate(("q1 + pi", "pi", "theta1 + pi", "q + pi")):
            path = tmp_path / f"{i}.yaml"
            path.write_text(f"name: x\nconvention: modified-dh\njoints: [{{theta: {theta}}}]\n")
            np.testing.assert_allclose(di.load_robot(path).joints[0].before.rotation, np.diag([-1, -1, 1]))

    def test_modified_dh_is_khalils_product(self, tmp_path):
        path = tmp_path / "r.yaml"
        path.write_text(
            "convention: modified-dh\nlengths: {L: 0.3}\njoints:\n"
            "  - {gamma: 0.3, b: 0.1, alpha: -0.7, d: L/2, theta: 0.4, r: 2*L - 0.1}\n"
        )
        joint = di.load_robot(path).joints[0]

        def rz(a):
            return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])

        def rx(a):
            return np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])

        R = rz(0.3) @ rx(-0.7) @ rz(0.4)
        p = np.array([0, 0, 0.1]) + rz(0.3) @ (np.array([0.15, 0, 0]) + rx(-0.7) @ np.array([0, 0, 0.5]))
        np.testing.assert_allclose(joint.before.rotation, R, atol=1e-15)
        np.testing.assert_allclose(joint.before.translation, p, atol=1e-15)

    def test_dh_and_modified_dh_of_one_arm_give_one_torque(self, tmp_path):
        """The planar arm in both notations; link frames differ, so the masses sit at other places in them."""
        (tmp_path / "far.yaml").write_text(
            "convention: dh\ngravity: [0, -9.81, 0]\njoints: [{a: 0.5}, {a: 0.4}]\nparameters: {p: {links: "
            "{1: {mass: 2, com: [-0.2, 0, 0], inertia: [0, 0, 0, 1, 0, 1]}, 2: {mass: 1, com: [-0.3, 0, 0]}}}}\n"
        )
        (tmp_path / "near.yaml").write_text(
            "convention: modified-dh\ngravity: [0, -9.81, 0]\njoints: [{}, {d: 0.5}]\nparameters: {p: {links: "
            "{1: {mass: 2, com: [0.3, 0, 0], inertia: [0, 0, 0, 1, 0, 1]}, 2: {mass: 1, com: [0.1, 0, 0]}}}}\n"
        )
        state = np.random.default_rng(0).normal(size=(3, 10, 2))
        torques = [di.inverse_dynamics(di.load_robot(tmp_path / f), *state) for f in ("far.yaml", "near.yaml")]
        np.testing.assert_allclose(*torques, atol=1e-12)

    def test_fixed_frames_are_folded_into_the_joints_they_carry(self, tmp_path):
        path = tmp_path / "r.yaml"
        path.write_text(
            "convention: modified-dh\njoints: [{}, {sigma: 2, d: 0.3}, {antecedent: 2, d: 0.2, sigma: 1}]\n"
        )
        robot = di.load_robot(path)
        assert [joint.number for joint in robot.joints] == [1, 3]
        assert robot.joints[1].kind == "prismatic"
        np.testing.assert_allclose(robot.joints[1].before.translation, [0.5, 0, 0])

    def test_antecedents_may_come_later_in_the_table(self):
        robot = di.load_robot("minnesota")
        assert [joint.number for joint in robot.joints] == [1, 2, 3, 5, 4]
        assert robot.joint_names == ("joint1", "joint2", "joint3")


class TestLocking:
    def test_locked_joint_equals_a_joint_that_stands_still(self):
        robot = di.load_robot("ur10e")
        held = robot.lock(q4=0.7, wrist_3=-0.2)
        assert held.joint_names == ("shoulder_pan", "shoulder_lift", "elbow", "wrist_2")
        rng = np.random.default_rng(0)
        q, dq, ddq = rng.normal(size=(3, 8, 4))
        full = [np.insert(np.insert(x, 3, 0.0, 1), 5, 0.0, 1) for x in (q, dq, ddq)]
        full[0][:, 3], full[0][:, 5] = 0.7, -0.2
        expected = di.inverse_dynamics(robot, *full)[:, [0, 1, 2, 4]]
        np.testing.assert_allclose(di.inverse_dynamics(held, q, dq, ddq), expected, atol=1e-12)
        W = di.regressor(held, q, dq, ddq)
        assert W.shape == (8, 4, 84)
        np.testing.assert_allclose(W @ di.parameters(held), expected, atol=1e-12)

    def test_wrong_names_and_locking_everything_are_errors(self):
        robot = di.load_robot("pendulum-2")
        with pytest.raises(di.UnknownNameError, match="unknown joint to lock 'q3'"):
            robot.lock(q3=0.0)
        with pytest.raises(di.InputError, match="without a moving joint"):
            robot.lock(q1=0.0, q2=0.0)
        for position in (float("nan"), "a"):
            with pytest.raises(di.InputError, match="finite"):
                robot.lock(q1=position)
        with pytest.raises(di.InputError, match="locked twice"):
            robot.lock(q1=0.0, joint1=1.0)


def test_gear_ratio_signs_do_not_turn_the_rows():
    """Rows are torques at the joints' side: a serial robot has the identity, whatever its gears do."""
    robot = di.load_robot("puma560")
    assert (robot.drive.gear_ratios < 0).any()
    np.testing.assert_array_equal(robot.coupling, np.eye(6))
