from __future__ import annotations

import json

import pytest

from dynident.cli.command_line import main


@pytest.mark.parametrize(("form", "words"), [("text", "M[1, 1] ="), ("latex", r"\begin{align*}"), ("python", "def ")])
def test_three_forms(form, words, capsys):
    assert main(["inspect", "pendulum-2", "--symbolic", form]) == 0
    captured = capsys.readouterr()
    assert words in captured.out
    assert captured.err == ""
    assert "ZZR1" in captured.out or r"\mathit{ZZ}_{R1}" in captured.out


def test_text_is_the_default_form_and_json_wraps_it(capsys):
    assert main(["inspect", "pendulum-2", "--terms", "rigid,Ia", "--symbolic"]) == 0
    text = capsys.readouterr().out
    assert main(["inspect", "pendulum-2", "--terms", "rigid,Ia", "--symbolic", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["source"] == text
    assert answer["base"] == ["ZZR1", "MXR1", "MY1", "ZZ2", "MX2", "MY2", "Ia2"]


def test_python_uses_the_chosen_values(capsys):
    assert main(["inspect", "cmu-dd-arm-3", "--symbolic", "python", "--values", "table3"]) == 0
    names: dict = {}
    exec(capsys.readouterr().out, names)
    assert names["PARAMETERS"]["ZZR1"] == pytest.approx(9.625)


def test_bad_input(capsys):
    assert main(["inspect", "pendulum-2", "--symbolic", "--tolerance", "1e-3"]) == 2
    assert "--tolerance has no meaning with --symbolic" in capsys.readouterr().err
    assert main(["inspect", "pendulum-2", "--symbolic", "word"]) == 2
    assert "--symbolic: unknown choice 'word'" in capsys.readouterr().err


def test_locked_joints_say_that_numbers_are_rounded(capsys):
    assert main(["inspect", "kr5-planar", "--locked", "q2=0.5", "--symbolic"]) == 0
    captured = capsys.readouterr()
    assert "rounded numbers" in captured.err
    assert "M[1, 3]" in captured.out
