"""`dynident inspect --nearest-physical`: values that papers print, made feasible."""

from __future__ import annotations

import json

import pytest

import dynident as di
from dynident.cli.command_line import main

PAPERS = {  # robot, values: distance to anything physically consistent, and the link that causes most of it
    "Khosla & Kanade, Table 3": ("cmu-dd-arm-3", "table3", 0.377, "link 3"),
    "Abhishek et al., Table 4": ("kr5-planar", "table4", 0.946, "link 2"),
}


@pytest.mark.parametrize(("robot", "values", "distance", "link"), PAPERS.values(), ids=PAPERS)
def test_values_of_papers(robot, values, distance, link, inspect):
    answer = inspect(robot, "--values", values, "--nearest-physical")
    assert not answer["feasible"]
    assert answer["distance"] == pytest.approx(distance, abs=2e-3)
    assert max(answer["strains"], key=answer["strains"].get) == link
    check = di.physical.distance_to_physical(di.load_robot(robot), answer["nearest"])
    assert check.physical
    assert len(check.margins) == 3


def test_the_page(capsys):
    assert main(["inspect", "cmu-dd-arm-3", "--values", "table3", "--nearest-physical"]) == 0
    page = " ".join(capsys.readouterr().out.split())  # wherever its lines end
    assert "belong to no robot. The nearest physically consistent values are 0.377 away" in page
    assert "Caused by link 3 100 %" in page
    assert "Moved most: M3 +5.7" in page


def test_values_that_are_physical(capsys):
    assert main(["inspect", "pendulum-2", "--nearest-physical"]) == 0
    assert "are physically consistent; the nearest" in capsys.readouterr().out
    assert main(["inspect", "pendulum-2", "--nearest-physical", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"]


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        ("kr5-planar --values tabel4", "unknown parameter set 'tabel4'; did you mean 'table4'?"),
        ("pendulum-2 --symbolic", "--nearest-physical has no meaning with --symbolic"),
        ("pendulum-2 --tolerance 1e-6", "--nearest-physical has no meaning with --tolerance"),
    ],
)
def test_bad_input(words, fragment, capsys):
    assert main(["inspect", *words.split(), "--nearest-physical"]) == 2
    printed = capsys.readouterr()
    assert fragment in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
