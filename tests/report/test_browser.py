"""The demo's report in a real browser, off line: it opens without a complaint and everything on it can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynident as di
from dynident.report.fit import report_html
from dynident.report.plot_data import identify_with_plots
from tests.report import browser

DEMO = Path(__file__).parents[2] / "examples" / "demo"

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium here (set DYNIDENT_BROWSER to one)")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    robot = di.load_robot(DEMO / "arm.yaml")
    logs = [di.read_log(DEMO / f"fourier_{i}.csv.gz", robot) for i in (1, 2)]
    logs.append(di.read_log(DEMO / "wandering.csv.gz", robot, role="validation"))
    path = tmp_path_factory.mktemp("demo") / "report.html"
    path.write_text(report_html(*identify_with_plots(robot, logs, friction="basic")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(report):
    with browser.Page(report) as opened:
        assert opened.run("document.querySelectorAll('section > details:not([open])').length") > 5
        assert opened.run("document.documentElement.scrollHeight") < 9000  # folded, a person can scroll it
        opened.run("[...document.querySelectorAll('nav button')].find(b => b.textContent === 'open all').click()")
        assert opened.run("document.querySelectorAll('section > details:not([open])').length") == 0
        yield opened
        assert opened.complaints == []
        assert opened.fetched == [report.as_uri()]


def test_it_opens_without_a_complaint(page, report):
    assert "torque error on held-out logs" in page.run("document.querySelector('#verdict h2').textContent")
    assert page.complaints == []
    assert page.fetched == [report.as_uri()]
    assert report.stat().st_size < 6_000_000


def test_the_robot_turns_by_mouse_and_by_keys(page):
    elbow = "document.querySelector('figure.robot path.link:last-of-type').getAttribute('d')"
    before = page.run(elbow)
    left, top, width, height = page.box("figure.robot svg")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (middle[0] + 80, middle[1] + 20))
    turned = page.run(elbow)
    assert turned != before
    page.run("document.querySelector('figure.robot svg').focus()")
    page.press("ArrowLeft")
    assert page.run(elbow) != turned
    page.run("document.querySelector('figure.robot button').click()")  # from an angle, as at first
    numbers = [
        [float(x) for x in text.replace("M", "").replace("L", " ").split()] for text in (before, page.run(elbow))
    ]
    assert numbers[1] == pytest.approx(numbers[0], abs=0.6)  # the page has whole places, the script tenths


def test_bodies_keep_their_outline_when_the_script_draws_them(page):
    ellipses = "[...document.querySelectorAll('figure.robot ellipse')]"
    outlines = f"{ellipses}.map(e => ['rx', 'ry'].map(name => +e.getAttribute(name)))"
    page.run("document.querySelector('figure.robot button').click()")
    drawn = page.run(outlines)
    assert len(drawn) == 6
    with browser.Page(page.fetched[0].removeprefix("file://")) as fresh:
        fresh.run("document.querySelector('nav a[href=\"#robot\"]').click()")  # a link opens its section
        assert fresh.run("document.querySelector('#robot > details').open")
        for one, other in zip(drawn, fresh.run(outlines), strict=True):
            assert one == pytest.approx(other, abs=0.2)


def test_dragging_across_a_plot_zooms_all_joints_of_the_log(page):
    labels = (
        "[...document.querySelectorAll('figure[data-log=\"0\"] > svg')].map("
        "s => [...s.querySelectorAll('text.mid')].map(t => t.textContent).join(' '))"
    )
    before = page.run(labels)
    left, top, width, height = page.box('figure[data-log="0"][data-joint="1"] svg')
    y = top + height / 3
    page.drag((left + 0.4 * width, y), (left + 0.6 * width, y))
    zoomed = page.run(labels)
    assert len(set(zoomed)) == 1  # every joint shows the same stretch
    assert all(a != b for a, b in zip(before, zoomed, strict=True))
    said = page.run("document.querySelector('#torque .tools span').textContent")
    start, stop = (float(x) for x in said.removesuffix(" s").split(" to "))
    assert 1.0 < stop - start < 8.0
    assert page.run("document.querySelectorAll('figure[data-log=\"0\"] path.predicted').length") == 6
    page.run("[...document.querySelectorAll('#torque .tools button')].find(b => b.textContent === 'whole').click()")
    assert "drag across" in page.run("document.querySelector('#torque .tools span').textContent")


def test_one_joint_can_be_shown_alone(page):
    shown = "[...document.querySelectorAll('#torque figure')].filter(f => !f.hidden).map(f => f.dataset.joint)"
    everything = page.run(shown)
    page.run(
        "(() => { const s = document.querySelector('#torque select'); s.value = '2';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert set(page.run(shown)) == {"2"}
    page.run(
        "(() => { const s = document.querySelector('#torque select'); s.value = '';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert page.run(shown) == everything


def test_the_parameter_table_sorts_by_value_and_by_name(page):
    rows = "[...document.querySelectorAll('#parameters table:not(.map) tbody tr')]"
    heads = "[...document.querySelectorAll('#parameters table:not(.map) thead th')]"
    page.run(f"{heads}.find(h => h.textContent === 'Value').querySelector('button').click()")
    values = page.run(f"{rows}.map(r => parseFloat(r.cells[2].textContent))")
    assert values == sorted(values)
    assert len(values) > 30
    page.run(f"{heads}.find(h => h.textContent === 'Value').querySelector('button').click()")
    assert page.run(f"{rows}.map(r => parseFloat(r.cells[2].textContent))") == sorted(values, reverse=True)
    assert page.run(f"{heads}.find(h => h.textContent === 'Value').getAttribute('aria-sort')") == "descending"
    page.run(f"{heads}[0].querySelector('button').click()")
    names = page.run(f"{rows}.map(r => r.cells[0].textContent)")
    assert names[0].startswith("Fc")


def test_a_mark_of_trust_says_what_it_stands_for_when_it_is_reached(page):
    printed = page.run("""(() => {
        const mark = document.querySelector(".map .cell span");
        const words = () => getComputedStyle(mark, "::after").content;
        const before = words();
        mark.focus();
        return [before, words(), mark.title];
    })()""")
    assert printed[0] == "none"
    assert printed[1] == f'"{printed[2]}"'


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1400, True)])
def test_it_fits_phone_and_dark_screens(report, width, dark):
    with browser.Page(report, width=width, dark=dark) as page:
        assert page.run("document.documentElement.scrollWidth") <= width
        paper = page.run("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(20, 24, 28)") == dark
        assert page.complaints == []
