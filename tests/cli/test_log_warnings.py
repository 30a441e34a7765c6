"""What reading has to say about a log reaches every answer, once."""

from __future__ import annotations

import json
import warnings

import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.report.fit import report_html
from tests.logs.test_bag import START, cdr, write_mcap
from tests.report.test_page import RATE, make_log


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


@pytest.fixture(scope="module")
def bags(robot, tmp_path_factory):
    """Two recordings in folders of their own: joints on two topics, the second file cut off."""
    paths = []
    for seed in (1, 2):
        path = tmp_path_factory.mktemp("recordings") / "run.mcap"
        log, messages = make_log(robot, seed), []
        for k in range(len(log)):
            stamp = START + round(k * 1e9 / RATE)
            for name, i in zip(robot.joint_names, (1, 2), strict=True):
                values = [[log.channels[f"{kind}{i}"][k]] for kind in ("q", "tau")]
                messages.append((f"/{name}", stamp, cdr(stamp, [name], values[0], [], values[1])))
        write_mcap(path, messages)
        paths.append(path)
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[: 2 * len(content) // 3])
    return paths


def count(text, words):
    return " ".join(text.split()).count(words)


@pytest.fixture(scope="module")
def fitted(bags, tmp_path_factory):
    """The command that identifies from both, and its folder."""
    out = tmp_path_factory.mktemp("out")
    return ["identify", "pendulum-2", *map(str, bags), "--friction", "basic", "-o", str(out)], out


def test_python_users_are_warned_and_the_estimate_says_it(bags, robot):
    with pytest.warns(di.logs.LogWarning) as said:
        logs = [di.open_log(path, robot) for path in bags]
    assert len(said) == 3  # two merges, and the cut
    assert {one.filename for one in said} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = di.identify(robot, logs, friction="basic")
        evaluated = di.validate(fit, logs)
    assert [*fit.warnings[:3]] == [str(one.message) for one in said]
    assert evaluated.warnings == fit.warnings[:3]
    assert evaluated.as_dict()["warnings"] == list(fit.warnings[:3])
    page = report_html(fit)
    for bag in bags:
        assert page.count(f"{bag}: merged") == 1


def test_every_answer_of_the_command_line_says_it_once(bags, fitted, tmp_path, capfd):
    command, out = fitted
    assert main([*command, "--json"]) == 0
    answer, quiet = capfd.readouterr()
    said = json.loads(answer)["warnings"]
    assert sum("is cut off or damaged after " in one for one in said) == 1
    assert sum("merged joint1 (topic /joint1) with joint2 (topic /joint2)" in one for one in said) == 2
    assert "LogWarning" not in quiet
    assert main(command) == 0
    assert count(capfd.readouterr().out, "is cut off or damaged") == 1
    for verb in (
        ["validate", str(out), *map(str, bags)],
        ["predict", str(out), str(bags[1]), "-o", f"{tmp_path}/t.csv"],
    ):
        assert main([*verb, "--json"]) == 0
        assert sum("is cut off or damaged" in one for one in json.loads(capfd.readouterr().out)["warnings"]) == 1
        assert main(verb) == 0
        printed = capfd.readouterr()
        assert count(printed.out, "Warning: ") >= 2
        assert count(printed.out, "is cut off or damaged") == 1
        assert not printed.err


def test_tables_name_logs_briefly_and_unmistakably(bags, fitted, capfd):
    command, out = fitted
    assert main([*command, "--quiet"]) == 0
    assert main(["validate", str(out), *map(str, bags)]) == 0
    table = capfd.readouterr().out.partition("Log by log")[2].partition("Warning")[0]
    page = (out / "report.html").read_text().replace("<wbr>", "")
    for bag in bags:
        short = f"{bag.parent.name}/run.mcap"
        assert short in table
        assert str(bag.parent.parent) not in table
        assert f'<span title="{bag}">{short}</span>' in page
        assert f"in {bag}" not in page  # nor in the titles of the plots
