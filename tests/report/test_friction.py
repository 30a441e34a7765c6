from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import dynident as di
from dynident.estimate.candidates import GROUPS
from dynident.estimate.records import GroupEvidence, TermSelection
from dynident.report.fit import report_html
from dynident.report.fit.friction import determined_words, friction_section, group_words
from dynident.report.html import render
from dynident.report.terminal.fit import print_estimate
from tests.estimate.test_friction_view import friction_log
from tests.report.test_page import NOT_A_NUMBER, Balance

CHOICE = {
    "terms": ["stop(0.001)", "load"],
    "side": "motor",
    "reason": "friction weighed by leaving out 3 parts of the data in turn (basic 3.0 %, rich 2.0 %, averaged 1.5 %)",
    "groups": [
        {"group": "stop(0.001)", "scale": 0.123, "determined": 1.9, "n_columns": 2},
        {"group": "load", "scale": 0.03, "determined": 0.8, "n_columns": 2},
        {"group": "stribeck(0.2)", "scale": 1e-4, "determined": 0.0, "n_columns": 2},
        {"group": "an early version's", "gain": 0.3, "deviation": 0.02, "verdict": "added"},
    ],
    "folds": ["a", "b", "c"],
    "errors": {"basic": 0.03, "rich": 0.02, "averaged": 0.015},
}


@pytest.fixture(scope="module")
def estimate():
    robot = di.load_robot("pendulum-2")
    logs = [friction_log(robot, 1), friction_log(robot, 2, factor=1.3)]
    return replace(
        di.identify(robot, logs, friction="stop(0.001),load", delay=0.0), selection=TermSelection.from_dict(CHOICE)
    )


@pytest.fixture(scope="module")
def section(estimate):
    return render(friction_section(estimate))


def printed(estimate, width=80):
    console = Console(file=io.StringIO(), width=width)
    print_estimate(estimate, console)
    return console.file.getvalue()


def test_the_section_is_well_formed_and_says_it_all(estimate, section):
    found = Balance(section)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.links) <= set(found.ids)
    text = found.text
    assert not NOT_A_NUMBER.search(text)
    for words in (
        "Friction weighed by",
        "1.9 of 2",
        "0.0 of 2",
        "hysteresis over 1 mrad",
        "Drift between logs",
    ):
        assert words in text
    for name in estimate.robot.joint_names:
        assert text.count(name) > 5
    assert "trade against each other" in text
    equivalents = di.estimate.friction_summary(estimate).joints
    assert f"{equivalents[0].viscous:.4g}" in text


def test_plots_of_every_joint(estimate, section):
    titles = re.findall(r"<title[^>]*>([^<]*)</title>", section)
    for name in estimate.robot.joint_names:
        assert f"Friction of {name} against velocity" in titles
        assert f"Friction of {name} at reversals" in titles
    dots = max(re.findall(r'<path d="([^"]*)" class="dots">', section), key=len)
    assert 100 < dots.count("h0") <= 400


def test_logs_that_disagree_are_named(section):
    text = Balance(section).text
    assert "Logs disagree" in text
    assert re.search(r"friction differs between logs by more than noise, from \d+ % of the model's \(log1\)", text)


def test_load_is_plotted_where_it_is_seen(estimate):
    view = estimate.friction_view
    place = view.groups.index("load")
    share = np.array(view.share)
    for size, shown in ((0.0, False), (0.1 * view.torque[0], True)):
        share[place] = [size, 0.0]
        text = render(friction_section(replace(estimate, friction_view=replace(view, share=share))))
        assert ("Friction of joint1 against load" in text) is shown
        assert "Friction of joint2 against load" not in text


def test_without_a_view_and_without_friction(estimate):
    old = render(friction_section(replace(estimate, friction_view=None)))
    assert "holds no friction data to show" in old
    assert "1.9 of 2" in Balance(old).text
    assert friction_section(replace(estimate, friction_view=None, selection=None)) is None
    page = report_html(replace(estimate, friction_view=None, selection=None))
    assert "#friction" not in page
    assert 'href="#friction"' in report_html(estimate)


def test_terms_as_given_have_no_evidence(estimate):
    shown = {"groups": [], "folds": [], "errors": None, "reason": "friction terms as given"}
    given = TermSelection.from_dict({**CHOICE, **shown})
    text = Balance(render(friction_section(replace(estimate, selection=given)))).text
    assert "Friction terms as given." in text
    assert "Determined" not in text
    shown = printed(replace(estimate, selection=given))
    assert "Terms: stop(0.001), load." in shown


def test_the_terminal_page_fits_eighty_columns(estimate):
    shown = printed(estimate)
    assert max(map(len, shown.splitlines())) <= 80
    table = [line.split() for line in shown.splitlines()]
    assert ["stop(0.001)", "12.3", "%", "1.9", "of", "2", "hysteresis", "over", "1", "mrad"] in table
    assert "(basic 3.0 %, rich 2.0 %, averaged 1.5 %)." in " ".join(shown.split())
    assert "differs between logs" in " ".join(shown.split())
    noted = replace(estimate, notes=(*estimate.notes, CHOICE["reason"]))
    assert printed(noted).count("Friction weighed by") == 1


def test_what_is_no_friction_has_a_share_but_no_error_without(estimate):
    """It trades against the links, which are not fitted again."""
    view = estimate.friction_view
    renamed = replace(view, groups=tuple("tilt" if group == "load" else group for group in view.groups))
    section = render(friction_section(replace(estimate, friction_view=renamed)))
    row = next(row for row in section.split("<tr>") if '<th scope="row">tilt' in row)
    assert "base not upright" in row
    assert row.count("&nbsp;%") == 1
    assert '<th scope="row">tilt' not in section.split("the other friction scaled again")[1]


def test_words():
    assert all("{" not in group_words(group.key) and group_words(group.key) != group.key for group in GROUPS)
    assert group_words("harmonics(1,2)") == "1 and 2 waves per turn of the joint"
    assert group_words("stop(0.0003)") == "hysteresis over 0.3 mrad"
    assert determined_words(GroupEvidence("load", 0.01, 1.96, 2)) == "2.0 of 2"


def test_sliding_joints_have_their_units_and_a_standing_one_no_plot():
    robot = di.load_robot("cylindrical")
    log = friction_log(robot, 1)
    still = {name: np.full_like(x, x[0]) if name == robot.position_names[0] else x for name, x in log.channels.items()}
    found = di.identify(robot, replace(log, channels=still), friction="basic", delay=0.0)
    section = render(friction_section(found))
    text = Balance(section).text
    assert not NOT_A_NUMBER.search(text)
    for words in ("[N] over velocity [m/s]", "[N] over displacement since the reversal [mm]", "N·s/m, N", "not known"):
        assert words in text
    first, second, _ = robot.joint_names
    assert f"Friction of {second} against velocity" in section
    assert f"Friction of {first} against velocity" not in section
