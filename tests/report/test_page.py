from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import dynident as di
from dynident.estimate.torque_errors import TorqueErrors, Trace
from dynident.pipeline.identification import identify
from dynident.report.charts import torque_plot
from dynident.report.fit import report_html
from dynident.report.fit.residuals import _power_density
from dynident.report.fit.trust import assess_fit, trust_counts, trust_of
from dynident.report.html import source
from dynident.report.plot_data import ReportData, identify_with_plots
from dynident.report.terminal.fit import print_estimate, print_validation
from dynident.validation import validate

RATE = 200.0
HOSTILE = '<script>alert("x")</script>&\x00.csv'
NOT_A_NUMBER = re.compile(r"\b(nan|NaN|inf|Infinity|None)\b")


def make_log(robot, seed, *, seconds=12.0, label="", role="train"):
    """Harmonics with random phases, torque of the robot's own values with noise."""
    rng = np.random.default_rng(seed)
    n = len(robot.joint_names)
    t = np.arange(0.0, seconds, 1 / RATE)
    w = 2 * np.pi * 0.25 * np.arange(1, 4)
    size, phase = rng.uniform(0.2, 0.5, (3, n)), rng.uniform(0.0, 6.28, (3, n))
    angle = t[:, None, None] * w[:, None] + phase
    q = (size * np.sin(angle)).sum(1)
    dq = (size * w[:, None] * np.cos(angle)).sum(1)
    ddq = -(size * w[:, None] ** 2 * np.sin(angle)).sum(1)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    tau += 0.01 * np.abs(tau).max(0) * rng.normal(size=tau.shape)
    channels = {f"q{i + 1}": q[:, i] for i in range(n)} | {f"tau{i + 1}": tau[:, i] for i in range(n)}
    return di.Log(f"log{seed}.csv", f"{seed:064x}", t, channels, role=role, label=label)


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


@pytest.fixture(scope="module")
def made(robot):
    return identify_with_plots(
        robot,
        [
            make_log(robot, 1, label=HOSTILE),
            make_log(robot, 2),
            make_log(robot, 3, label="unseen", role="validation"),
        ],
    )


@pytest.fixture(scope="module")
def estimate(made):
    return made[0]


@pytest.fixture(scope="module")
def plots(made):
    return made[1]


@pytest.fixture(scope="module")
def page(estimate, plots):
    return report_html(estimate, plots, command='dynident identify "a & b.yaml"')


class Balance(HTMLParser):
    """Checks that every element is closed in its turn, and gathers ids, references and visible text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            self.ids += [value] if name == "id" else []
            self.links += value.split() if name == "aria-labelledby" else []
            self.links += [value[1:]] if name == "href" and value.startswith("#") else []
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words).replace("\xa0", " ")


def test_the_page_is_well_formed(page):
    found = Balance(page)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.links) <= set(found.ids)
    assert [tag for tag, _ in found.tags].count("h1") == 1
    heads = [attributes for tag, attributes in found.tags if tag == "th"]
    assert heads
    assert all(head["scope"] in ("col", "row") for head in heads)
    tables = [tag for tag, _ in found.tags if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)


def test_every_plot_has_title_and_description(page, estimate, plots):
    drawn = page.split("<svg")[1:]
    over_time = [plot for plot in drawn if ">Torque of " in plot]
    assert len(over_time) == len(plots.traces) * len(estimate.robot.joint_names)
    assert all("<title" in plot and "<desc" in plot and plot.count("<path") > 3 for plot in drawn)


def test_the_page_shows_everything(page, estimate):
    text = Balance(page).text
    for name in (*estimate.robot.joint_names, *estimate.names, *estimate.base.expressions, "unseen", "log2.csv"):
        assert name in text
    for note in (*estimate.notes, *estimate.warnings):
        assert note[1:] in text
    assert 'dynident identify "a & b.yaml"' in text
    assert estimate.version in text
    assert estimate.covariance_kind in text
    assert f"{2:064x}" in page  # the whole hash, on pointing at it
    assert "five-point" in text.lower()


def test_names_from_files_are_text(page, estimate, plots):
    assert HOSTILE in plots.traces
    assert "<script" not in without_scripts(page)
    assert page.count("<script") == 2
    assert "\x00" not in page
    assert '<script>alert("x")</script>&\\x00.csv' in Balance(page).text
    hostile = report_html(replace(estimate, notes=("<b>bold</b>",), warnings=('"><img src=x>',)), command="<i>")
    assert "<img" not in hostile
    assert "<b>bold" not in hostile
    assert {"<b>bold</b>.", '"><img src=x>.', "<i>"} <= set(Balance(hostile).words)
    assert "\udc80" not in report_html(replace(estimate, warnings=("undecodable \udc80",)))


def without_scripts(page):
    """The page without its own script and the data of that."""
    own = f"<script>{source()}</script>"
    assert own in page
    return re.sub(r'<script type="application/json" id="traces">[^<]*</script>', "", page.replace(own, ""))


def test_the_page_needs_nothing_else(page):
    assert not re.search(r"https?://|url\(|@import|<link|<img|src=|fetch|XMLHttp|import\(|WebSocket|eval", page)
    assert "<script" not in without_scripts(page)


def test_only_the_script_of_the_page_may_run(page):
    digest = base64.b64encode(hashlib.sha256(source().encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert html.unescape(policy).split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
    ]


def test_the_data_of_the_plots_is_that_of_the_traces(page, estimate, plots):
    data = json.loads(re.search(r'id="traces">([^<]*)</script>', page)[1])
    assert data["joints"] == list(estimate.robot.joint_names)
    labels = sorted(plots.traces, key=lambda label: label not in estimate.validation)
    for label, log in zip(labels, data["logs"], strict=True):
        trace = plots.traces[label]
        time = log["start"] + np.frombuffer(base64.b64decode(log["t"]), "<f4")
        every = len(trace.time) // len(time)
        np.testing.assert_allclose(time, (trace.time - trace.time[0])[::every], atol=1e-4)
        for j, joint in enumerate(log["joints"]):
            for key, values in (("m", trace.measured), ("p", trace.predicted)):
                seen_text = joint["middle"] + joint["step"] * np.frombuffer(base64.b64decode(joint[key]), "<i2")
                np.testing.assert_allclose(seen_text, values[::every, j], atol=joint["step"])


def test_no_number_is_left_unsaid(page, estimate):
    lost = np.arange(len(estimate.names)) % 3 > 0
    empty = TorqueErrors.of(estimate.robot.joint_names, estimate.band)
    worst = estimate.replace(
        determined=lost,
        beta=np.where(lost, 0.0, estimate.beta),
        white_std=np.full(len(lost), np.inf),
        condition=np.inf,
        sigma=np.full(2, np.nan),
        nominal=empty,
        train=empty,
        validation={"empty": empty},
    )
    plots = ReportData({"empty": Trace([0.0, 1.0], np.full((2, 2), np.nan), np.full((2, 2), np.nan))})
    for shown in (page, report_html(worst, plots), report_html(worst)):
        assert not NOT_A_NUMBER.search(without_scripts(shown))
    assert Balance(report_html(worst)).text.count("not known") > 20
    for width in (80, 200):
        text = "\n".join(printed(print_estimate, worst, width))
        assert not NOT_A_NUMBER.search(text)
        assert "not known torque error" in text


def test_a_page_of_many_logs_stays_small():
    arm = di.load_robot("panda")
    found = identify(arm, make_log(arm, 1, seconds=8.0))
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 60.0, 1500)
    for n in (10, 30):
        traces = {f"log {i}": Trace(t, *rng.normal(size=(2, 1500, 7))) for i in range(n)}
        shown = report_html(found, ReportData(traces))
        assert 300_000 < len(shown.encode()) < 3_500_000
        assert shown.count(">Torque of ") == 7 * min(n, 24)
        assert shown.count("<details") >= min(n, 24) - 4  # the plots of the logs after the fourth are folded
        assert ("6 more logs not shown" in shown) == (n == 30)


def test_a_line_is_broken_at_a_gap_and_keeps_its_peaks():
    t = np.concatenate([np.linspace(0, 1, 500), np.linspace(5, 6, 500)])
    measured = np.zeros((1000, 1))
    measured[333] = 7.0
    plot = torque_plot(Trace(t, measured, 0 * measured), 0, half=0.0, name="j", unit="N", key="k", bins=20)
    line = re.search(r'<path d="(M[^"]*)" class="measured"', plot)[1]
    assert line.count("M") == 2
    steps = [int(y) for y in re.findall(r"-?\d+ ?(-?\d+)", line.split("M")[1].split("l")[1])]
    assert min(steps) < -200  # up to the peak
    assert len(steps) < 60
    assert "between 0 and 7&nbsp;N" in plot


def test_the_verdict_rests_on_the_best_there_is(estimate):
    held_out = assess_fit(estimate)
    crossed = assess_fit(estimate.replace(validation={}))
    trained = assess_fit(estimate.replace(validation={}, cross_validation=None))
    found = [one.verdict.basis for one in (held_out, crossed, trained)]
    assert found == [
        "held-out data",
        "cross-validation",
        "training data",
    ]
    assert held_out.verdict.error == pytest.approx(estimate.validation["unseen"].relative)
    assert crossed.verdict.error == pytest.approx(estimate.cross_validation.mean)
    assert trained.verdict.error == pytest.approx(estimate.train.relative)
    assert not held_out.caveats
    assert "training error only" in trained.verdict.reasons[0]
    assert "held-out logs" in held_out.headline
    pages = [
        Balance(report_html(estimate.replace(**without))).text
        for without in ({}, {"validation": {}, "cross_validation": None})
    ]
    assert "training error only" not in pages[0]
    assert "training error only" in pages[1]
    assert held_out.headline in pages[0]
    assert trained.headline in pages[1]


def test_the_verdict_says_when_other_data_are_predicted_worse(estimate):
    own = estimate.validation["unseen"]
    worse = replace(own, error_square=own.error_square * 25.0)
    assert "times the training error" in assess_fit(estimate.replace(validation={"unseen": worse})).caveats[0]
    nominal = replace(estimate.train, error_square=estimate.train.error_square * 4.0)
    verdict = assess_fit(estimate.replace(validation={"unseen": worse}, nominal=nominal)).verdict
    assert "may be the better choice" in verdict.reasons[-1]
    nominal = replace(estimate.train, error_square=estimate.train.error_square / 4.0)
    assert "robot file fit the training data better" in assess_fit(estimate.replace(nominal=nominal)).verdict.reasons[0]


def test_parameters_are_marked_by_trust(estimate):
    row = {"determined": True, "relative_std": 0.01}
    shares = {0.01: "good", 0.05: "fair", 0.149: "fair", 0.15: "weak", None: "weak"}
    assert {share: trust_of(row | {"relative_std": share}) for share in shares} == shares
    assert trust_of(row | {"determined": False}) == "not determined"
    lost = np.arange(len(estimate.names)) != 2
    changed = estimate.replace(determined=lost)
    assert trust_counts(changed)["not determined"] == 1
    assert "1 cannot be determined" in assess_fit(changed).sentences[-1]
    (row,) = re.findall(r'<tr><th scope="row">.*</b>not determined.*</tr>', report_html(changed))
    assert f">{estimate.names[2]}<" in row
    assert "not known" in row
    (line,) = [line for line in printed(print_estimate, changed, 80) if "not determined" in line]
    assert estimate.names[2] in line
    assert "not known" in line


def test_sections_come_in_order_and_only_the_first_are_open(page):
    found = re.findall(r'<section id="(\w+)">\s*<details( open="")?>', page)
    assert [name for name, _ in found][:3] == ["torque", "errors", "parameters"]
    open_ones = {name for name, is_open in found if is_open}
    assert open_ones == {"torque", "errors", "parameters"}
    assert {"friction", "residuals", "check", "robot", "data", "options"} <= {name for name, _ in found}


def test_the_parameter_table_can_be_downloaded(page, estimate):
    (data,) = re.findall(r'href="data:text/csv;base64,([^"]*)" download="parameters.csv"', page)
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(data).decode())))
    assert [row["parameter"] for row in rows] == list(estimate.names)
    np.testing.assert_array_equal([float(row["value"]) for row in rows], estimate.beta)
    np.testing.assert_allclose([float(row["std"]) for row in rows], estimate.std)
    described = estimate.base.base_values()
    for row, own, index in zip(rows, described, estimate.base.independent, strict=True):
        if estimate.base.columns[index].term == "rigid":
            assert float(row["robot_file"]) == own


def test_the_spectrum_of_the_residual_is_that_of_white_noise_and_keeps_its_power():
    rng, step = np.random.default_rng(0), 0.01
    time = step * np.arange(20000)
    values = 0.3 * rng.normal(size=len(time))
    time = np.where(np.arange(len(time)) > 9000, time + 5.0, time)  # a gap
    frequencies, decibel = _power_density([(time, values)])
    density = 10.0 ** (decibel / 10.0)
    assert np.trapezoid(density, frequencies) == pytest.approx(0.09, rel=0.03)
    assert np.std(decibel) < 1.0
    assert _power_density([(time[:20], values[:20])]) is None


def printed(show, what, width):
    console = Console(width=width, record=True, file=io.StringIO())
    show(what, console)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_the_terminal_page_fits(estimate, width):
    lines = printed(print_estimate, estimate, width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for name in (*estimate.names, *estimate.robot.joint_names):
        assert name in text
    assert all(sentence in text for sentence in assess_fit(estimate).sentences)
    assert all(note[1:] in text for note in estimate.notes)
    assert ("stands for" in text) == (width > 110)


def test_the_terminal_page_of_a_validation(robot, estimate):
    logs = [make_log(robot, 4, label="[red]fresh[/red]"), make_log(robot, 2, label="old \x1b[31m")]
    found = validate(estimate, logs)
    for width in (80, 200):
        lines = printed(print_validation, found, width)
        assert max(map(len, lines)) <= width
        text = " ".join(" ".join(lines).split())
        assert "\x1b" not in text
        assert "[red]fresh[/red]" in text
        assert "old \\x1b[31m also served for training" in text
        (shown,) = re.findall(r"([\d.]+) % torque error on 2 logs", text)
        assert float(shown) == pytest.approx(100 * found.relative_error, rel=5e-3)
        for name, share, rmse in zip(found.joints, found.per_joint, found.rmse, strict=True):
            (line,) = [line for line in lines if line.strip().startswith(name)]
            error, _, within = re.findall(r"([\d.]+) %", line)
            assert float(error) == pytest.approx(100 * share, rel=5e-3)
            assert float(line.split()[5]) == pytest.approx(rmse, rel=5e-3)
            assert 80 < float(within) <= 100
    alone = printed(print_validation, validate(estimate, logs[0]), 80)
    assert "prove nothing" not in " ".join(alone)
    assert "Log by log" not in " ".join(alone)


def test_without_plot_data_the_page_says_so_and_shows_the_rest(estimate):
    shown = Balance(report_html(estimate)).text
    assert "report.npz" in shown
    assert "no torque to show" in shown
    assert "Residual tests" not in shown
    assert "Raw and filtered derivatives" not in shown
    assert "Base parameters" in shown


def test_labels_of_a_chart_differ_and_do_not_overlap():
    from dynident.report.charts import Curve, chart

    days, narrow = np.array([0.0, 1.0, 2.0]), np.array([1.07178, 1.07201, 1.07189])
    drawn = str(
        chart("friction", [Curve("log", days, narrow, "dots")], x_unit="days from 2026-03-01", y_unit="", key="f")
    )
    labels = re.findall(r'<text x="(\d+)" y="(\d+)" class="(end|mid)"[^>]*>([^<]*)<', drawn)
    levels = [text for _, _, anchor, text in labels if anchor == "end"]
    assert len(levels) == len(set(levels)) > 1
    places = sorted((int(x), text) for x, _, anchor, text in labels if anchor == "mid")
    (last, words) = places[-1]
    assert words == "2.0 days from 2026-03-01"
    assert all(x < last - 9 * len("days from 2026-03-01") for x, _ in places[:-1])
