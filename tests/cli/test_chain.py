"""`excite`, `simulate`, `identify`, `validate` by command, on URDFs that are written here."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main

QUARTER = 1.5707963267948966  # [rad]


def link(name: str, mass: float, com: str, inertia: tuple[float, float, float]) -> str:
    xx, yy, zz = inertia
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial></link>\n'
    )


def joint(name: str, parent: str, child: str, origin: str, more: str = "", kind: str = "revolute") -> str:
    xyz, _, rpy = origin.partition(";")
    place = f'<origin xyz="{xyz}" rpy="{rpy or "0 0 0"}"/>'
    text = f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
    return f"{text}{place}{more}</joint>\n"


def moves(axis: str, limits: tuple[float, float, float, float], friction: tuple[float, float]) -> str:
    low, high, velocity, effort = limits
    return (
        f'<axis xyz="{axis}"/><limit lower="{low}" upper="{high}" velocity="{velocity}" effort="{effort}"/>'
        f'<dynamics damping="{friction[0]}" friction="{friction[1]}"/>'
    )


def six_joints() -> str:
    """A six-joint arm with a tool that is fixed to its flange."""
    links = [
        link("l1", 6.0, "0 -0.02 0.06", (0.03, 0.03, 0.02)),
        link("l2", 8.0, "0.2 0 0.05", (0.02, 0.15, 0.15)),
        link("l3", 4.0, "0.15 0 0.03", (0.01, 0.06, 0.06)),
        link("l4", 2.0, "0 0.01 -0.05", (0.006, 0.006, 0.003)),
        link("l5", 1.5, "0 -0.03 0.01", (0.003, 0.002, 0.003)),
        link("l6", 0.4, "0 0 0.01", (0.0004, 0.0004, 0.0004)),
        link("tool", 1.0, "0.01 0 0.06", (0.002, 0.002, 0.001)),
    ]
    joints = [
        joint("j1", "base", "l1", "0 0 0.16", moves("0 0 1", (-2.9, 2.9, 2.4, 180), (8, 6))),
        joint("j2", "l1", "l2", f"0 0 0.12;-{QUARTER} 0 0", moves("0 0 1", (-2.6, 0.6, 2.2, 180), (9, 7))),
        joint("j3", "l2", "l3", "0.42 0 0", moves("0 0 1", (-0.4, 2.6, 2.6, 110), (5, 4))),
        joint("j4", "l3", "l4", f"0.08 0 0;-{QUARTER} 0 0", moves("0 0 1", (-2.9, 2.9, 3.5, 40), (1.2, 1.1))),
        joint("j5", "l4", "l5", f"0 0 -0.3;{QUARTER} 0 0", moves("0 0 1", (-2, 2, 3.5, 40), (1, 1.2))),
        joint("j6", "l5", "l6", f"0 -0.09 0;{QUARTER} 0 0", moves("0 0 1", (-3, 3, 4.5, 25), (0.6, 0.7))),
        joint("mount", "l6", "tool", "0 0 0.03", kind="fixed"),
    ]
    return f'<robot name="six"><link name="base"/>\n{"".join(links + joints)}</robot>'


def slider_with_gripper() -> str:
    """A sliding base, two links, and a gripper whose second finger follows the first."""
    links = [
        link("cart", 8.0, "0 0 0.1", (0.1, 0.1, 0.1)),
        link("upper", 5.0, "0.2 0 0.01", (0.02, 0.1, 0.1)),
        link("fore", 3.0, "0.15 0 0.01", (0.01, 0.05, 0.05)),
        link("left", 0.5, "0 0.02 0.03", (0.0004, 0.0004, 0.0004)),
        link("right", 0.5, "0 -0.02 0.03", (0.0004, 0.0004, 0.0004)),
    ]
    finger = moves("0 1 0", (0.0, 0.1, 0.5, 60), (8, 2))
    follows = '<mimic joint="finger"/>'
    joints = [
        joint("x", "rail", "cart", "0 0 1", moves("1 0 0", (-1, 1, 1, 400), (30, 15)), "prismatic"),
        joint("shoulder", "cart", "upper", "0 0 0.2", moves("0 1 0", (-2, 2, 2, 150), (2, 3))),
        joint("elbow", "upper", "fore", "0.4 0 0", moves("0 1 0", (-2, 2, 2, 80), (1, 2))),
        joint("finger", "fore", "left", "0.3 0.02 0", finger, "prismatic"),
        joint("finger2", "fore", "right", "0.3 -0.02 0", finger.replace("0 1 0", "0 -1 0") + follows, "prismatic"),
    ]
    return f'<robot name="slider"><link name="rail"/>\n{"".join(links + joints)}</robot>'


@pytest.fixture(params=[six_joints, slider_with_gripper], ids=lambda make: make.__name__)
def urdf(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(request.param())
    return "arm.urdf"


def test_from_a_urdf_to_a_validated_model(urdf, capsys):
    def run(*words: str) -> dict:
        assert main([*words, "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return json.loads(captured.out)

    quick = ("--starts", "1", "--kicks", "0", "--duration", "5")
    planned = run("excite", urdf, "-o", "train.yaml", *quick)
    run("excite", urdf, "-o", "validation.yaml", *quick, "--harmonics", "3", "--seed", "3")
    assert min(planned["slack"].values()) >= 0.0
    for name in ("train", "validation"):
        done = run("simulate", urdf, f"{name}.yaml", "-o", f"{name}.csv", "--rate", "250")
        assert done["warnings"] == []
        assert max(done["tracking"]) < 0.02
    found = run("identify", urdf, "train.csv", "-o", "fit", "--terms", "rigid,Ia,Fv,Fc(0.02),Fo")
    assert found["undetermined"] == []
    assert found["train"]["relative_error"] < 0.01
    evaluated = run("validate", "fit", "validation.csv")
    assert evaluated["relative_error"] < 0.03
    # The machine is what its file says, so that is what must be found.
    robot = di.load_robot(urdf)
    truth = di.base_parameters(robot, "rigid,Ia,Fv,Fc,Fo").base_values()
    values, deviations = (np.array([row[key] for row in found["parameters"]]) for key in ("value", "std"))
    error = np.abs(values - truth) / deviations
    assert np.mean(error < 2.0) > 0.7
    assert error.max() < 8.0


def test_the_pages_for_people(tmp_path, monkeypatch, capsys):
    """What the commands say without --json."""
    monkeypatch.chdir(tmp_path)
    urdf = "arm.urdf"
    (tmp_path / urdf).write_text(slider_with_gripper())
    assert main(["excite", urdf, "-o", "m.yaml", "--starts", "1", "--kicks", "0", "--duration", "4"]) == 0
    page = capsys.readouterr().out
    assert "at rest at both ends" in page
    assert "of its value" in page
    assert "before" not in page  # nothing was extended
    assert main(["simulate", urdf, "m.yaml", "-o", "m.csv"]) == 0
    page = capsys.readouterr().out
    assert "2000 samples at 500 Hz" in page
    assert "rad or m (joint" not in page  # a joint has one unit
