"""Draws docs/architecture.svg from the tables of docs/architecture.md: `python docs/architecture_picture.py`."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
BANDS = {  # heading of a band: its rooms, in the order of the page
    "the machine": ("robot", "dynamics", "identifiability", "symbolic"),
    "data": ("logs", "signals", "information"),
    "estimation": ("estimate", "physical", "payload", "diagnostics", "validation", "pipeline"),
    "new data": ("motion", "plant", "experiments", "online", "drives"),
    "results": ("export", "report", "papers", "fleet", "cli"),
}
STYLE = """
text { font: 15px system-ui, "Liberation Sans", sans-serif; fill: #1b2026; text-anchor: middle; }
.soft { fill: #57616c; font-size: 13px; } .head { text-anchor: start; fill: #57616c; font-weight: bold; }
.paper { fill: #ffffff; } .room { fill: #e8f0f7; stroke: #00508c; stroke-width: 1.2; }
.record { fill: #fdf3ea; stroke: #b34700; stroke-width: 1.2; } path { fill: none; stroke: #57616c; stroke-width: 1.5; }
"""


def rows(heading: str) -> list[list[str]]:
    """Cells of the table under a heading of the page."""
    section = (HERE / "architecture.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def box(x: float, y: float, width: float, text: str, kind: str, below: str = "") -> str:
    """A box with a word in it, and a smaller one under that."""
    height, middle = (50, 21) if below else (38, 24)
    parts = [f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>']
    parts.append(f'<text x="{x + width / 2}" y="{y + middle}">{text}</text>')
    if below:
        parts.append(f'<text class="soft" x="{x + width / 2}" y="{y + 40}">{below}</text>')
    return "".join(parts)


def main() -> None:
    """Rooms band by band (a room imports from those before it), and under them the records that a sample passes."""
    assert [room for rooms in BANDS.values() for room in rooms] == [room for room, _ in rows("Rooms")]
    parts = []
    for k, (band, rooms) in enumerate(BANDS.items()):
        y = 20 + 56 * k
        parts.append(f'<text class="head" x="20" y="{y + 24}">{band}</text>')
        parts += [box(140 + 140 * i, y, 128, room, "room") for i, room in enumerate(rooms)]
    top = 20 + 56 * len(BANDS) + 34
    parts.append(
        f'<text class="head" x="20" y="{top - 6}">the way of a sample: each record, and the room that makes it</text>'
    )
    for k, (name, room, _) in enumerate(rows("The way of a sample")):
        x, y = 20 + 196 * (k % 5), top + 10 + 84 * (k // 5)
        parts.append(box(x, y, 160, name, "record", room))
        if k % 5:
            parts.append(f'<path d="M {x - 34} {y + 25} h 30 m -6 -5 l 6 5 l -6 5"/>')
        elif k:
            parts.append(f'<path d="M {20 + 196 * 4 + 80} {y - 34} v 14 H {x + 80} v 16 m -5 -6 l 5 6 l 5 -6"/>')
    height = top + 10 + 84 * 2
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" role="img">'
    paper = f'<rect class="paper" width="1000" height="{height}"/>'
    (HERE / "architecture.svg").write_text(f"{head}<style>{STYLE}</style>{paper}{''.join(parts)}</svg>\n")


if __name__ == "__main__":
    main()
