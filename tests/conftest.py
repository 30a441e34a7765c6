from __future__ import annotations

import json

import pytest

from dynident.cli.command_line import main


@pytest.fixture
def inspect(capsys):
    """`dynident inspect ... --json` as a dictionary."""

    def run(*arguments: str) -> dict:
        assert main(["inspect", *arguments, "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return json.loads(captured.out)

    return run
