"""A base that leans: its columns stand where the torque of the links changes."""

from __future__ import annotations

import dynident as di
from dynident.dynamics.terms.linearized import Tilt

LINK = '<link name="{0}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" \
iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="j{0}" type="continuous"><parent link="base"/>\
<child link="{0}"/><axis xyz="0 0 1"/></joint>'


def test_two_upright_joints_have_weights_of_their_own():
    text = f'<robot name="two"><link name="base"/>{LINK.format("a")}{LINK.format("b")}</robot>'
    robot = di.robot.robot_from_urdf(text)
    term = Tilt()
    names = [column.name for column in term.columns(robot)]
    assert names == ["tilt_x", "tilt_y", "tiltcos_1", "tiltsin_1", "tiltcos_2", "tiltsin_2"]
    places = term.places(robot)
    assert sorted(places) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 4), (1, 5)]
