"""Draws the pictures of the documentation from the real commands: `.venv/bin/python docs/make_pictures.py`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import dynident as di
from dynident.report.identification import print_estimate
from dynident.report.inspection import inspection

HERE = Path(__file__).parent

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


def main() -> None:
    """Write docs/inspect.svg and docs/identify.svg."""
    base = di.base_parameters(di.load_robot("sr400"), "rigid,Ia,Fv,Fc")
    draw("dynident inspect sr400 --terms rigid,Ia,Fv,Fc", "inspect", inspection(base).print)
    demo = HERE.parent / "examples" / "demo"
    robot = di.load_robot(demo / "arm.yaml")
    roles = {"fourier_1": "train", "fourier_2": "train", "wandering": "validation"}
    logs = [di.read_log(demo / f"{name}.csv.gz", robot, role=role, label=name) for name, role in roles.items()]
    fit = di.identify(robot, logs)
    title = "dynident identify arm.yaml fourier_1.csv.gz fourier_2.csv.gz --validation wandering.csv.gz -o fit"
    draw(title, "identify", lambda console: print_estimate(fit, console), lines=40)


if __name__ == "__main__":
    main()
