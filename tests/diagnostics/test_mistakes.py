"""Mistakes made on purpose in simulated logs of a small arm: found, named and corrected; a part of the benchmark."""

from __future__ import annotations

import pytest
from benchmarks.mistake_data import simulated
from benchmarks.mistake_kinds import cases
from benchmarks.mistakes import BEGIN, END, Result, as_page, checked, diagnose, write, written

import dynident as di

SOME = [
    ("all positions in degrees", ""),
    ("positions swapped", "joints 2 and 3"),
    ("torque flipped", "joint 3"),
    ("all torques flipped", ""),
    ("gear ratio 1.5 times", "joint 2"),
    ("torque in N·mm, current in mA", ""),
    ("one torque 40 ms late", "joint 2"),
    ("clock off by 2", ""),
    ("torque clipped", "joint 1"),
    ("torque flipped in one log", "joint 2"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The dataset, its mistakes by kind and place, and the diagnosis of the sound logs."""
    folder = tmp_path_factory.mktemp("sound")
    own = di.load_robot("cmu-dd-arm-3").value_set("plant")
    # Without friction no sign can be distinguished from negative masses.
    rubs = {
        f"{name}{j}": size for j, load in enumerate((4.0, 3.0, 0.6), 1) for name, size in (("Fv", load), ("Fc", load))
    }
    data = simulated("cmu-dd-arm-3", values={**own, **rubs}, others=False)
    robot = data.robot(folder)
    known = {(case.kind, case.where): case for case in cases(data, robot)}
    return data, known, checked(robot, written(data.logs, folder))


def test_sound_logs_are_fine(made):
    _, known, clean = made
    assert clean.of("stop") == ()
    assert not clean.fix
    assert len({kind for kind, _ in known}) > 25


@pytest.mark.parametrize(("kind", "where"), SOME, ids=[f"{kind} {where}".strip() for kind, where in SOME])
def test_a_mistake(made, kind, where):
    data, known, clean = made
    one = diagnose(data, known[kind, where], clean)
    assert one.right, one.said


def test_the_page(tmp_path):
    right = Result("arm", "torque flipped", "joint 1", True, True, True, "stop", True, "sign stop")
    missed = Result("arm", "torque flipped", "joint 2", False, False, False, "", True, "nothing")
    hidden = Result("arm", "axis flipped", "joint 1", False, False, False, "", False, "nothing")
    sound = Result("arm", "none", "", True, False, False, "warn", False, "equations warn")
    page = as_page([right, missed, hidden, sound])
    assert "| torque flipped | 2 | 1 | 1 | 1 | 1 | 0 |" in page
    assert "| axis flipped | 0 | 0 | 0 | 0 | 0 | 1 |" in page
    assert "Sound logs: 1 diagnoses, 0 with a stop. Warnings: `equations` 1." in page
    assert "- torque flipped, not found: arm joint 2" in page
    path = tmp_path / "page.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, path)
    assert path.read_text() == f"before\n{BEGIN}\n\n{page}\n\n{END}\nafter\n"


def test_gravity_of_an_arm_on_a_wall(made, tmp_path):
    """Reported along the right axis, from a file that says that the arm stands."""
    data, known, _ = made
    case = known["gravity sideways", ""]
    found = checked(data.robot(tmp_path, case.keys), written(case.logs, tmp_path))
    (item,) = found.of("stop")
    assert item.name == "gravity"
    assert found.fix["gravity"] == pytest.approx(list(di.load_robot(data.base).gravity))
