"""Which frame of a URDF is the tool, and how another is chosen."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di

HANDS = """<robot name="arm"><link name="base"/><link name="fore"/><link name="flange"/><link name="{tool}"/>
<joint name="j" type="revolute"><parent link="base"/><child link="fore"/><axis xyz="0 0 1"/></joint>
<joint name="f" type="fixed"><parent link="fore"/><child link="flange"/><origin xyz="0.3 0 0"/></joint>
<joint name="t" type="fixed"><parent link="flange"/><child link="{tool}"/><origin xyz="0 0 0.1" rpy="0 0 1.570796"/>
</joint></robot>"""


@pytest.mark.parametrize(
    ("tool", "name", "place"),
    [("tool0", "tool0", (0.3, 0, 0.1)), ("ur_tool0", "ur_tool0", (0.3, 0, 0.1)), ("pen", "flange", (0.3, 0, 0))],
)
def test_tool_frames_are_known_by_their_names(tool, name, place, tmp_path):
    (tmp_path / "arm.urdf").write_text(HANDS.format(tool=tool))
    robot = di.load_robot(tmp_path / "arm.urdf")
    assert robot.tool_name == name
    np.testing.assert_allclose(robot.tool[1].translation, place)
    assert robot.tool_words == f"{name}, fixed to link 1 (fore)"
    assert set(robot.frames) == {"flange", tool}
    (tmp_path / "over.yaml").write_text(f"base: arm.urdf\ntool: {tool}\n")
    over = di.load_robot(tmp_path / "over.yaml")
    np.testing.assert_allclose(over.tool[1].translation, (0.3, 0, 0.1))
    assert over.with_tool("fore").tool_words == "the frame of link 1 (fore)"
    np.testing.assert_allclose(over.with_tool("0.1,0,0,0,0,0").tool[1].translation, (0.1, 0, 0))
    (tmp_path / "over.yaml").write_text("base: arm.urdf\ntool: flanges\n")
    with pytest.raises(di.RobotFileError, match=r"tool: 'flanges' is no frame or link of the robot; did you mean"):
        di.load_robot(tmp_path / "over.yaml")
