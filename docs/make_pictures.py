"""Draws the picture of the README from the real command: `.venv/bin/python docs/make_pictures.py`."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

import dynident as di
from dynident.report.inspection import inspection

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


def main() -> None:
    """Write docs/inspect.svg."""
    console = Console(record=True, width=84, highlight=False, file=io.StringIO(), force_terminal=True)
    inspection(di.base_parameters(di.load_robot("sr400"), "rigid,Ia,Fv,Fc")).print(console)
    target = Path(__file__).parent / "inspect.svg"
    title = "dynident inspect sr400 --terms rigid,Ia,Fv,Fc"
    target.write_text(console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=SVG, unique_id="page"))


if __name__ == "__main__":
    main()
