"""A URDF as users write them, values to export, and states to compare torque at."""

from __future__ import annotations

import numpy as np

from dynident.robot.parameters import LINK_SYMBOLS, from_classical

ARM = """<?xml version="1.0" encoding="utf-8"?>
<!-- Kept by hand: do not lose this -->
<robot name="odd arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <material name="gray"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="world"/>
  <link name='upper'>
    <!-- from the data sheet -->
    <visual><geometry><mesh filename="meshes/upper.stl"/></geometry></visual>
    <inertial>
      <origin rpy="0.3 -1.1 2.5" xyz="0.02 -0.01 0.1"/>  <!-- odd on purpose -->
      <mass value='4.2'/>
      <inertia ixx="0.05" ixy="0.001" ixz="0" iyy="0.045" iyz="-0.002" izz="0.012"/>
    </inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <origin xyz="0 0 0.3" rpy="0 0 0.4"/><parent link="world"/><child link="upper"/>
    <axis xyz="0 0 1"/>
    <dynamics friction="0.5" damping="0.2"/> <!-- guessed -->
  </joint>
  <link name="fore"><inertial><mass value="1.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.021"/>
  </inertial></link>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="fore"/><origin xyz="0.1 0 0.25" rpy="1.2 1.5707963267948966 -0.3"/>
    <axis xyz="0.6 0 0.8"/>
    <limit lower="-2" upper="2.5" effort="60" velocity="3"/>
  </joint>
  <link name="flange"/>
  <joint name="slide" type="prismatic">
    <parent link="fore"/><child link="flange"/><origin xyz="0 0.2 0"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.3" effort="200" velocity="0.5"/><dynamics damping="30"/>
  </joint>
  <link name="tool"><inertial><origin xyz="0 0 0.05" rpy="0 0.5 0"/><mass value="0.8"/>
    <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.001"/></inertial></link>
  <joint name="fix" type="fixed"><parent link="fore"/><child link="tool"/>
    <origin xyz="0 0.1 0.1" rpy="0.1 0.2 0.3"/></joint>
  <transmission name="t"><type>simple</type><joint name="elbow"/>
    <actuator name="m"><mechanicalReduction>80</mechanicalReduction></actuator></transmission>
  <gazebo reference="upper"><selfCollide>true</selfCollide></gazebo>
</robot>
"""


def body(number, mass, center, inertia=(0.02, 0.015, 0.01)):
    """Standard values of a link by name."""
    chi = from_classical(mass, center, np.diag(inertia))
    return {f"{symbol}{number}": float(x) for symbol, x in zip(LINK_SYMBOLS, chi, strict=True)}


def other_values(robot, seed=1):
    """Values other than the robot's own, bodies all of them."""
    rng = np.random.default_rng(seed)
    values = {}
    for joint in robot.joints:
        values |= body(joint.number, rng.uniform(3, 6), rng.uniform(-0.1, 0.1, 3), rng.uniform(0.02, 0.03, 3))
    for element in robot.elements:
        values |= {name: float(rng.uniform(0.1, 2.0)) for name in element.names.values()}
    return values


def states(robot, n=15, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, n, len(robot.joint_names))) * np.array([2.0, 3.0, 10.0])[:, None, None]


def assert_close(ours, theirs, tolerance=1e-9):
    assert np.linalg.norm(theirs) > 1e-3
    assert np.linalg.norm(ours - theirs) <= tolerance * np.linalg.norm(theirs)
