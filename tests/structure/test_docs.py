"""Every Python block of the documentation runs, every command in it exits 0, and no number in it is stale."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.dynamics.terms import ALONG_TERM_NAMES
from dynident.options import option_fields
from dynident.pipeline.options import IdentifyOptions

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
TUTORIAL = ROOT / "docs" / "tutorial-inspect.md"
HOW_TO = ROOT / "docs" / "how-to"
SHOWN = re.compile(r"^dynident ([a-z]+)", re.MULTILINE)
COMMAND = re.compile(r"dynident [a-z]+ (?!\d+$)")  # not the first line of a file, as in "dynident motion 1"
# What stands for something of the reader's own (ROBOT, LOG.., [--json], own.py), or waits for another program to send.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\.\.|\[|\bown\.py\b|\budp://")
# More than ten seconds, or made again on another page that runs it.
LONG = {("docs/how-to/repeat-and-compare.md", "dynident run run.yaml")}


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_python_blocks_run(path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.fixture(scope="module")
def demo_fit(tmp_path_factory):
    """The folder `fit` of the how-to pages: a quick identification of the demo."""
    folder = tmp_path_factory.mktemp("demo") / "fit"
    demo = ROOT / "examples" / "demo"
    words = ["identify", str(demo / "arm.yaml"), str(demo / "fourier_1.csv.gz"), "--friction", "basic", "--quiet"]
    assert main([*words, "-o", str(folder)]) == 0
    return folder


def commands(path: Path) -> list[str]:
    """Command lines of all blocks but Python's, without prompts."""
    found = re.findall(r"^```([a-z]*)\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    text = "".join(block.replace("\\\n", " ") for language, block in found if language != "python")
    return [line for line in (line.removeprefix("$ ") for line in text.splitlines()) if COMMAND.match(line)]


def run_commands(path, tmp_path, monkeypatch, request, *, long):
    """Run the commands of a page in a folder of its own; those that take long only when asked."""
    from tests.robots import random_urdf

    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "arm.urdf").write_text(random_urdf(1))
    for block in blocks(TUTORIAL, "yaml"):
        (tmp_path / "arm.yaml").write_text(block)
    lines = [line for line in commands(path) if not PLACEHOLDER.search(line)]
    if path.parent == HOW_TO and any(re.search(r" fit( |$)", line) for line in lines):
        (tmp_path / "fit").symlink_to(request.getfixturevalue("demo_fit"))
    for line in lines:
        if long or (shown(path), line) not in LONG:
            assert main(shlex.split(line, comments=True)[1:]) == 0, line


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_commands_run(path, capsys, tmp_path, monkeypatch, request):
    run_commands(path, tmp_path, monkeypatch, request, long=False)


@pytest.mark.full
@pytest.mark.parametrize("path", sorted({page for page, _ in LONG}))
def test_long_commands_run(path, capsys, tmp_path, monkeypatch, request):
    assert {line for page, line in LONG if page == path} <= set(commands(ROOT / path))
    run_commands(ROOT / path, tmp_path, monkeypatch, request, long=True)


def test_commands_with_placeholders_name_options_that_exist(capsys):
    texts: dict[str, str] = {}
    for path in PAGES:
        for line in filter(PLACEHOLDER.search, commands(path)):
            verb = line.split()[1]
            if verb not in texts:
                with pytest.raises(SystemExit) as end:
                    main([verb, "--help"])
                assert end.value.code == 0, line
                texts[verb] = capsys.readouterr().out
            for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line):
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", texts[verb]), f"{shown(path)}: {option} in {line}"


def test_links_lead_somewhere():
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_citation_and_changelog_are_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    newest = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    date = re.findall(r"^date-released: (.*)$", citation, re.MULTILINE)[0]
    assert f"\nversion: {di.__version__}\n" in citation
    assert newest == f"{di.__version__} ({date})"


def test_commits_that_contributing_names_are_there():
    """Where the repository is at hand: a recipe that cannot be read is none."""
    git = shutil.which("git")
    named = re.findall(r"`([0-9a-f]{7})`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) >= 4
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no repository here")
    if (
        subprocess.run([git, "-C", ROOT, "rev-parse", "--is-shallow-repository"], capture_output=True).stdout
        != b"false\n"
    ):
        pytest.skip("a shallow clone has no history")
    for commit in named:
        subprocess.run([git, "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], check=True)


def test_every_verb_is_shown_by_a_command_that_runs(capsys):
    used = {verb for path in PAGES for block in blocks(path, "sh") for verb in SHOWN.findall(block)}
    assert main(["--help"]) == 0
    verbs = set(re.findall(r"^    ([a-z]+) ", capsys.readouterr().out, re.MULTILINE))
    assert len(verbs) >= 9
    assert verbs <= used, f"no page shows {sorted(verbs - used)}"


def test_every_how_to_is_listed_and_short():
    listed = (HOW_TO / "index.md").read_text()
    pages = [path for path in HOW_TO.glob("*.md") if path.stem != "index"]
    assert len(pages) >= 14
    for path in pages:
        assert f"]({path.name})" in listed
        assert f"\n{path.stem}\n" in listed
        assert "**When**" in path.read_text()
        assert len(path.read_text().splitlines()) <= 45, f"{path.name} is more than half a page"


def test_every_public_name_is_in_the_api_reference(tmp_path):
    module = loaded_script("api_pages")
    (tmp_path / "removed.rst").write_text("a room that is no more")
    module.write_pages(tmp_path)
    text = {path.stem: path.read_text() for path in tmp_path.glob("*.rst")}
    assert "removed" not in text
    found = [name for page in text.values() for name in re.findall(r"^\.\. auto[a-z]+:: (\w+)$", page, re.MULTILINE)]
    assert set(di.__all__) - {"__version__"} <= set(found)
    assert len(found) > 150  # the names of the rooms are there as well
    assert set(re.findall(r"^   ([a-z]+)$", text.pop("index"), re.MULTILINE)) == set(text)


def loaded_script(name: str):
    """A script of the docs as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_of_options_and_laws_are_those_of_their_declarations():
    for path, text in loaded_script("option_tables").pages().items():
        assert path.read_text() == text, f"{path.name}: run python docs/option_tables.py"


# Pages with tables of a verb's options -> the verb; the words beside a flag are the page's own.
TABLES = {"gravity": "gravity", "plant": "simulate", "motion": "excite", "step": "step", "export": "export"}


@pytest.mark.parametrize("page", TABLES)
def test_flags_in_tables_are_those_of_the_verb(page):
    from dynident.cli.command_line import verb_parser

    known = verb_parser(TABLES[page])._option_string_actions
    rows = re.findall(r"^\| (`--.*?) \|", (ROOT / "docs" / "reference" / f"{page}.md").read_text(), re.MULTILINE)
    named = {flag for row in rows for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", row)}
    assert named <= set(known)


def test_the_program_on_the_page_is_the_one_that_is_compiled():
    (shown,) = blocks(ROOT / "docs" / "tutorial-export.md", "c")
    assert shown == (ROOT / "examples" / "export" / "main.c").read_text()


def section(page: str, heading: str) -> str:
    """What stands under a heading of a reference page."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_tutorials_numbers(inspect):
    assert inspect("kr5", "--locked", "q1=0,q4=0,q6=0")["counts"]["base"] == 9
    assert inspect("kr5", "--locked", "q1=0,q4=0.5,q6=0")["counts"]["base"] == 13


def test_the_readmes_picture_shows_the_current_page():
    picture = (ROOT / "docs" / "inspect.svg").read_text()
    assert "56" in picture
    assert "http" not in picture.replace("http://www.w3.org", "")


def test_friction_terms_are_in_the_help_and_in_the_reference():
    assert option_fields(IdentifyOptions)["friction"].metadata["names"] == ALONG_TERM_NAMES
    listed = re.findall(r"^\| `(\w+)(?:\(\w+, \.\.\))?` \|", section("friction", "Terms"), re.MULTILINE)
    assert tuple(listed) == ALONG_TERM_NAMES
