"""Papers are reproduced item by item; pages of the docs have what the command prints; the room takes public names."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

import dynident as di
from dynident.cli.command_line import main, verb_parser
from dynident.papers import PAPERS, load_paper, reproduce_paper

ROOT = Path(__file__).parents[2]
# Parts that take a moment, of every paper; the whole papers are in the long suite.
QUICK = {
    "khosla-kanade": ("equations-18-23", "table-2", "identifiable", "equations-24-26", "table-3", "differentiator"),
    "gautier": ("figure-1", "table-1", "filters", "table-3"),
    "jamisola": ("equation-23", "equation-24", "equation-25", "sensitivity"),
    "kim": ("identifiable", "appendix"),
    "abhishek": ("table-2", "equation-1", "table-3", "table-4-expressions", "table-4"),
}
PARTS = [(name, key) for name, keys in QUICK.items() for key in keys]


@pytest.fixture(scope="module")
def pages():
    """The script that writes the output of the command on the pages of the docs."""
    spec = importlib.util.spec_from_file_location("paper_pages", ROOT / "docs" / "paper_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "key"), PARTS)
def test_a_quick_part_works_and_stands_on_the_page(name, key, pages):
    section, said = pages.printed([name, "--only", key]).rsplit("\n", 1)
    assert said.endswith("all reproduced.")
    assert section.strip() in pages.path_of(name).read_text(), f"run python docs/paper_pages.py {name}"


@pytest.mark.full
@pytest.mark.parametrize("name", [*PAPERS, "all"])
def test_the_whole_paper_works_and_stands_on_the_page(name, pages):
    output = pages.printed([name])
    assert output.endswith("all reproduced.")
    assert pages.with_output(name, output) == pages.path_of(name).read_text(), f"run python docs/paper_pages.py {name}"


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_of_the_paper_is_there(name):
    """Numbered tables and figures without a gap, each made again or with the reason why there is nothing to make."""
    roman = {one: k for k, one in enumerate(("I", "II", "III", "IV", "V", "VI"), 1)}
    for kind, last in zip(("Table", "Figure"), LAST[name], strict=True):
        found: set[int] = set()
        for part in load_paper(name).parts:
            assert part.make is not None or part.why
            for numbers in re.findall(rf"{kind}s? ((?:[\dIV]+(?:, | and | to )?)+)", part.title):
                ends = [int(roman.get(x, x)) for x in re.findall(r"[IV]+|\d+", numbers)]
                found |= set(range(ends[0], ends[1] + 1)) if " to " in numbers else set(ends)
        assert found == set(range(1, last + 1)), kind


LAST = {"khosla-kanade": (6, 3), "gautier": (4, 3), "jamisola": (6, 4), "kim": (1, 6), "abhishek": (5, 7)}


def test_what_an_item_says():
    from dynident.papers.records import Item, equation_item

    assert Item("x", 1.0, 1.05, within=0.1).works
    assert not Item("x", 1.0, 1.05, 1.2, within=0.1).works  # the corrected value counts
    assert not Item("x", float("nan"), 1.0, within=1e9).works
    assert not Item("x", "falls", "swings").works
    assert Item("x", "falls", "swings", "falls").works
    with pytest.raises(ValueError, match="nothing to compare"):
        Item("x", 1.0)
    wrong = equation_item("y", 1e-12, 0.5, "misprint")
    assert (wrong.works, wrong.corrected, wrong.reason) == (True, 0.0, "misprint")
    assert not equation_item("y", 0.5, 0.5, "misprint").works
    assert not equation_item("y", 0.5, 0.0, "").works


def test_a_wrong_product_is_seen(monkeypatch):
    """Tables are computed when asked for: another robot or another rule does not go unseen."""
    from dynident.papers.gautier import paper

    monkeypatch.setattr(paper, "LOAD", di.payload.Payload.from_standard({**paper.printed.TABLE_3, "M": 10.0}))
    (part,) = reproduce_paper("gautier", ["table-3"]).parts
    assert part.state == "DIFFERS"


def test_json_page_and_exit_code(tmp_path, capsys, monkeypatch):
    target = tmp_path / "page.html"
    assert main(["papers", "khosla-kanade", "--only", "table-3", "equations-24-26", "-o", str(target), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (paper,) = answer["papers"]
    assert answer["works"]
    assert [part["key"] for part in paper["parts"]] == ["equations-24-26", "table-3"]
    items = {item["name"]: item for item in paper["parts"][1]["items"]}
    assert items["YY3"]["printed"] == 0.1999
    assert items["YY3"]["here"] == pytest.approx(0.2, abs=1e-8)
    page = target.read_text()
    assert "Table 3: arm of three joints" in page
    assert "<svg" in page  # the arm
    from dynident.papers.khosla_kanade import printed

    monkeypatch.setitem(printed.COMBINATIONS, "YY3", 0.3)
    assert main(["papers", "khosla-kanade", "--only", "table-3", "-o", str(target), "--quiet"]) == 1
    assert "DIFFERS" in target.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which paper? Give one of khosla-kanade"),
        (("kimm",), "unknown paper 'kimm'; did you mean 'kim'?"),
        (("kim", "--only", "table-9"), "unknown part of kim 'table-9'"),
        (("all", "--only", "table-1"), "--only is about one paper"),
        (("kim", "--list", "-o", "x.html"), "--list computes nothing"),
        (("kim", "-o", "folder"), "give it a name that ends in .html"),
        (("kim", "--quiet"), "--quiet leaves nothing to do"),
    ],
)
def test_refusals(words, said, capsys):
    assert main(["papers", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_the_list_names_every_part(capsys):
    assert main(["papers", "--list", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [paper["paper"] for paper in answer["papers"]] == list(PAPERS)
    assert all(
        part["state"] in ("not run", "nothing to compute") for paper in answer["papers"] for part in paper["parts"]
    )
    assert main(["papers", "kim", "--list"]) == 0
    assert "figure-4" in capsys.readouterr().out


def test_commands_that_parts_name_are_commands(pages):
    named = set()
    for name in PAPERS:
        for line in re.findall(r"^By (.*(?:\n(?!\n).*)*)", pages.path_of(name).read_text(), re.MULTILINE):
            calls = " ".join(line.split()).split("; ")
            named |= {call for call in calls if call.startswith("dynident ")}
    assert len(named) > 10
    for command in named:
        _, verb, *words = shlex.split(command)
        verb_parser(verb).parse_args(words)


def test_the_room_takes_public_names_only():
    """So that it shows the product, and is no second one. What the check by combinations of factors needs is listed."""
    listed = {"torque_law", "Quantity", "Reading", "text_table", "counted_periods", "NaturalControl", "upright_pose"}
    listed |= {"ParameterGroup", "SwingModel", "swing_model", "equations_about", "information_of", "AHEAD"}
    offenders = []
    for path in sorted((ROOT / "src" / "dynident" / "papers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("dynident."):
                continue
            room = node.module.split(".")[1]
            if room in ("papers", "report", "arrays", "errors", "options", "_version", "cli"):
                continue
            public = {*getattr(importlib.import_module(node.module), "__all__", ()), *di.__all__}
            public |= set(getattr(importlib.import_module(f"dynident.{room}"), "__all__", ()))
            names = {alias.name for alias in node.names} - public
            offenders += [
                f"{path.name}: {name}" for name in names if path.parent.name != "jamisola" or name not in listed
            ]
    assert not offenders
