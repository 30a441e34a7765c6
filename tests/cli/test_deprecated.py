"""Names and values of options before 0.5: read, with one line that names the new one."""

from __future__ import annotations

import importlib

import pytest

import dynident as di
from dynident.cli.arguments import parsed_options
from dynident.cli.command_line import VERBS, options_of, verb_parser
from dynident.cli.run_file import read_run_file
from dynident.deprecated import RENAMED_OPTIONS, RENAMED_VALUES, renamed_options
from dynident.options import from_mapping, option_fields
from dynident.pipeline.options import IdentifyOptions
from tests.cli.fits import ARM, FIRST

CASES = {  # verb and words -> new option, its value
    "identify a.urdf x.csv -o out --rest-speed 0.02": ("rest_velocity", 0.02, "--rest-speed is now --rest-velocity"),
    "identify a.urdf x.csv -o out --speed=measured": (
        "velocity_source",
        "measured",
        "--speed is now --velocity-source",
    ),
    "identify a.urdf x.csv -o out --check tell": ("check", "warn", "check 'tell' is now 'warn'"),
    "gravity kr5-planar --speed 0.4": ("sweep_velocity", 0.4, "--speed is now --sweep-velocity"),
    "friction sr400 --speeds 0.1,0.5": ("velocities", "0.1,0.5", "--speeds is now --velocities"),
    "live x.csv --robot a.urdf --speed 4": ("replay_pace", "4", "--speed is now --pace"),
    "live plant:m.yaml --robot a.urdf --noise 0.02": ("relative_noise", 0.02, "--noise is now --relative-noise"),
    "simulate a.urdf m.yaml -o log.csv --noise 0.02": ("relative_noise", 0.02, "--noise is now --relative-noise"),
    "inspect ur10e --nearest": ("nearest_physical", True, "--nearest is now --nearest-physical"),
    "init a.urdf logs --fresh": ("overwrite", True, "--fresh is now --overwrite"),
    "export fit --urdf a.urdf --fresh": ("from_scratch", True, "--fresh is now --from-scratch"),
}


@pytest.mark.parametrize("line", CASES)
def test_an_old_flag_is_read_and_the_new_one_named(line, capsys):
    name, value, warning = CASES[line]
    verb, *words = line.split()
    given = parsed_options(verb_parser(verb), options_of(verb), words)
    assert getattr(given, name) == value
    printed = capsys.readouterr()
    assert printed.err == f"Warning: {warning}; removed in 0.6\n"
    assert printed.out == ""


@pytest.mark.parametrize("verb", VERBS)
def test_old_flags_are_in_no_help(verb):
    flags = verb_parser(verb)._option_string_actions
    old = {f"--{name.replace('_', '-')}" for name in renamed_options(options_of(verb))}
    assert not old & set(flags)


def test_old_keywords_warn():
    with pytest.warns(DeprecationWarning, match="rest_speed is now rest_velocity; removed in 0.6"):
        options = from_mapping(IdentifyOptions, {"rest_speed": 0.02})
    assert options.rest_velocity == 0.02
    with pytest.warns(DeprecationWarning, match="speed is now velocity_source"):
        assert di.online.OnlineIdentifier(di.load_robot("pendulum-1"), speed="position") is not None
    with pytest.warns(DeprecationWarning, match="check 'tell' is now 'warn'"):
        assert from_mapping(IdentifyOptions, {"check": "tell"}).check == "warn"


def test_a_run_file_of_before_is_read(tmp_path, capsys):
    path = tmp_path / "run.yaml"
    path.write_text(
        f"robot: {ARM}\ntraining: [{FIRST}]\noutput: out\n"
        "identify: {rest_speed: 0.02, speed: measured, check: tell}\nexport: {urdf: a.urdf, fresh: true}\n"
    )
    found = read_run_file(path)
    assert (found.identify.rest_velocity, found.identify.velocity_source) == (0.02, "measured")
    assert found.identify.check == "warn"
    assert found.export.from_scratch
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith(f"Warning: {path}: ") and line.endswith("; removed in 0.6") for line in lines)


def test_the_table_names_options_that_exist():
    verbs = {record.__name__: record for verb in VERBS for record in options_of(verb).__mro__}
    online = importlib.import_module("dynident.online.options").OnlineOptions
    records = verbs | {"OnlineOptions": online}
    for record, renamed in RENAMED_OPTIONS.items():
        assert set(renamed.values()) <= set(option_fields(records[record]))
        assert not set(renamed) & set(option_fields(records[record]))
    for name, values in RENAMED_VALUES.items():
        choices = option_fields(IdentifyOptions)[name].metadata["choices"]
        assert set(values.values()) <= set(choices)
        assert not set(values) & set(choices)
