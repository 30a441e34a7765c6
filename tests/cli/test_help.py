"""Help by what verbs are about, an example for each, and completion in a shell."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from dynident.cli.arguments import parsed_options
from dynident.cli.command_line import VERBS, help_text, main, options_of, verb_parser
from dynident.cli.completion import SHELLS

GROUPS = ("your robot", "your logs", "use the model", "repeat", "experiments", "live", "many robots", "help")


def test_verbs_stand_in_groups():
    text = help_text()
    heads = [text.index(f"\n{group}:\n") for group in GROUPS]
    assert heads == sorted(heads)
    assert {verb.group for verb in VERBS.values()} == set(GROUPS)
    for name, verb in VERBS.items():
        place = text.index(f"\n    {name} ")
        assert heads[GROUPS.index(verb.group)] < place
        assert place < ([*heads, len(text)][GROUPS.index(verb.group) + 1])


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_is_one_that_it_takes(verb):
    first, *words = shlex.split(VERBS[verb].example)
    assert first == verb
    assert parsed_options(verb_parser(verb), options_of(verb), words)


@pytest.mark.parametrize("verb", ["gravity", "friction", "step", "oscillate"])
def test_options_of_the_simulated_machine_stand_by_themselves(verb):
    text = verb_parser(verb).format_help()
    before, _, after = text.partition("\nthe machine: simulated with MuJoCo, or your own with --plant:\n")
    shown = before.partition("\noptions:\n")[2]
    for flag in ("--plant", "--encoder", "--breakaway", "--effects", "--payload", "--seed"):
        assert f"\n  {flag} " in f"\n{after}"
        assert f"\n  {flag} " not in shown


def test_no_words_and_help_are_the_same(capsys):
    assert main([]) == 0
    first = capsys.readouterr().out
    assert main(["-h"]) == 0
    assert capsys.readouterr().out == first == f"{help_text()}\n"
    assert main(["--version"]) == 0
    assert re.fullmatch(r"dynident \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def completed(*words: str) -> set[str]:
    """What bash proposes for the last of some words."""
    given = " ".join(shlex.quote(word) for word in ("dynident", *words))
    script = subprocess.run(
        [sys.executable, "-m", "dynident", "--print-completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    asked = f"{script}\nCOMP_WORDS=({given}); COMP_CWORD={len(words)}; _dynident; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    answer = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert answer.stderr == ""
    return set(answer.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_verbs_options_and_choices():
    assert completed("i") == {"inspect", "identify", "init"}
    assert completed("identify", "arm.yaml", "--fr") == {"--friction", "--friction-levels", "--fresh"}
    assert completed("step", "arm.yaml", "--solve", "") == {"sequential", "together"}
    assert completed("identify", "arm.yaml", "lo") == set()  # the shell completes files


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_name_every_verb_and_flag(shell, capsys):
    assert main(["--print-completion", shell]) == 0
    script = capsys.readouterr().out
    for verb in VERBS:
        assert verb in script
    assert "max-velocity" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_an_unknown_shell_is_refused(capsys):
    assert main(["--print-completion", "csh"]) == 2
    assert "csh" in capsys.readouterr().err


def test_the_package_can_be_run():
    answer = subprocess.run([sys.executable, "-m", "dynident", "--help"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("usage: dynident VERB")
