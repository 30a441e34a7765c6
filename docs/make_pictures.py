"""Draws the pictures of the documentation from the real commands: `.venv/bin/python docs/make_pictures.py`.

The picture of the report is taken in headless Chromium; without one it stays as it is.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import dynident as di
from dynident.report.excitation_design import motion_html
from dynident.report.fit import report_html
from dynident.report.plot_data import ReportData, identify_with_plots
from dynident.report.terminal.fit import print_estimate
from dynident.report.terminal.inspection import inspect_base

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the browser lives with the tests

from tests.report import browser

# rich's own template fetches a font from the network; a picture should not.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def draw(title: str, name: str, show: Callable[[Console], None], lines: int | None = None) -> None:
    """Write what a command shows as docs/NAME.svg, the first lines of it if a number is given."""
    page = Console(width=84, highlight=False, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    show(page)
    text = page.file.getvalue().splitlines()[:lines]  # type: ignore[attr-defined]
    console = Console(record=True, width=84, highlight=False, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(text)))
    picture = console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=SVG, unique_id="page")
    (HERE / f"{name}.svg").write_text(picture)


# Colors of the report's light theme; the first rule makes the picture readable on a dark page too.
MOTION_STYLE = """
.paper { fill: #ffffff; } text { font: 24px system-ui, "Liberation Sans", sans-serif; fill: #57616c; }
.head { font-weight: bold; fill: #1b2026; } .end { text-anchor: end; } .mid { text-anchor: middle; }
path { fill: none; stroke-linejoin: round; stroke-linecap: round; } .grid { stroke: #d4dae0; stroke-width: 1.5; }
.zero { stroke: #57616c; stroke-width: 1.5; } .predicted { stroke: #00508c; stroke-width: 2.2; }
.limit, .ground { stroke: #b34700; stroke-width: 2.5; stroke-dasharray: 12 9; }
.box { stroke: #b34700; stroke-width: 2.5; }
.shadow { stroke: #a9b4bf; stroke-width: 7; opacity: 0.4; } .link { stroke: #1b2026; stroke-width: 9; }
.dot { fill: #00508c; }
"""


def draw_motion() -> None:
    """Write docs/excite.svg: a motion in space and two of its joints, as the page of `excite --report` shows them."""
    robot = di.load_robot("ur10e")
    box = [[0.4, 0.3, -0.1], [0.9, 0.8, 0.3]]
    motion = di.optimize_excitation(robot, acceleration=8.0, floor=-0.1, clearance=0.02, boxes=[box])
    page = motion_html(motion, robot).replace("&nbsp;", "&#160;")  # which XML knows without HTML
    parts = []
    for x, key, title in (
        (0, "v0", "ur10e: way of the tool"),
        (1000, "j1", "shoulder_lift"),
        (2000, "j3", "wrist_1"),
    ):
        found = re.search(rf'<svg viewBox="([^"]*)"[^>]*aria-labelledby="{key}t {key}d">(.*?)</svg>', page, re.S)
        assert found is not None
        width, height = found[1].split()[2:]
        frame = f'<svg x="{x}" y="50" width="{width}" height="{height}" viewBox="{found[1]}">{found[2]}</svg>'
        parts.append(f'<text x="{x + 20}" y="34" class="head">{title}</text>{frame}')
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2980 1030">'
    whole = f'{head}<style>{MOTION_STYLE}</style><rect class="paper" width="2980" height="1030"/>{"".join(parts)}</svg>'
    (HERE / "excite.svg").write_text(whole + "\n")


# Verdict, robot and two joints of the motion that was held out, side by side; nothing else of the page is touched.
REPORT_STYLE = """
body, header, main { max-width: none !important; margin: 0 !important; padding: 0 !important; }
body { padding: 20px 26px !important; } .frame { display: block !important; max-width: none !important; }
nav, footer, .soft, p, button, select, label, summary { display: none !important; } header h1 { margin: 0 0 14px; }
main { display: grid; grid-template-columns: 620px 1fr; grid-template-rows: auto 1fr; gap: 14px 34px; }
main > section { display: none; border-top: 0; padding: 0; margin: 0 !important; }
#verdict, #robot, #torque, #verdict p { display: block !important; }
#verdict { padding: 4px 18px 14px; } #verdict h2 { font-size: 1.35rem; }
#torque { grid-column: 2; grid-row: 1 / 3; } #robot svg { width: 100%; }
#robot figcaption, #torque details > details { display: none; }
#torque figure:nth-child(n + 3) { display: none; } #torque .panels { grid-template-columns: 1fr; gap: 0; }
#torque h3 { margin: 8px 0; } #torque .legend { margin: 8px 0; }
"""


def draw_report(fit: di.Fit, plots: ReportData) -> None:
    """Write docs/report.png: parts of the report of the demo, as a browser shows them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(report_html(fit, plots), encoding="utf-8")
        with browser.Page(path, width=1320, height=940) as page:
            page.run("document.querySelector('#robot details').open = true")
            page.run(f"document.querySelector('style').append(`{REPORT_STYLE}`)")
            page.picture(HERE / "report.png")


def main() -> None:
    """Write docs/inspect.svg, docs/identify.svg, docs/excite.svg and docs/report.png."""
    draw_motion()
    base = di.base_parameters(di.load_robot("sr400"), "rigid,Ia,Fv,Fc")
    draw("dynident inspect sr400 --terms rigid,Ia,Fv,Fc", "inspect", inspect_base(base).print)
    demo = HERE.parent / "examples" / "demo"
    robot = di.load_robot(demo / "arm.yaml")
    roles = {"fourier_1": "train", "fourier_2": "train", "wandering": "validation"}
    logs = [di.read_log(demo / f"{name}.csv.gz", robot, role=role, label=name) for name, role in roles.items()]
    fit, plots = identify_with_plots(robot, logs)
    title = "dynident identify arm.yaml fourier_?.csv.gz --validation wandering.csv.gz -o fit"
    draw(title, "identify", lambda console: print_estimate(fit, console, table=False, folder="fit"), lines=40)
    if browser.find():
        draw_report(fit, plots)


if __name__ == "__main__":
    main()
