"""A log-log picture of time and memory against samples, as plain SVG."""

from __future__ import annotations

import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 420, 260, 64, 44, 34


def scaling_plot(results: list[tuple[int, float, float]]) -> str:
    """Two panels from (samples, seconds, megabytes)."""
    samples = [n for n, _, _ in results]
    panels = [
        _panel(0, "time [s]", samples, [t for _, t, _ in results], "#0072b2"),
        _panel(
            WIDTH + 20, "memory above the idle process [MB]", samples, [max(m, 0.1) for _, _, m in results], "#d55e00"
        ),
    ]
    size = f'width="{2 * WIDTH + 20}" height="{HEIGHT}" viewBox="0 0 {2 * WIDTH + 20} {HEIGHT}"'
    style = "text{font:12px sans-serif;fill:#444}line{stroke:#ddd}polyline{fill:none;stroke-width:2}"
    body = "".join(panels)
    back = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>{back}{body}</svg>\n'


def _panel(left: int, title: str, x: list[int], y: list[float], color: str) -> str:
    x0, x1 = math.floor(math.log10(min(x))), math.ceil(math.log10(max(x)))
    y0, y1 = math.floor(math.log10(min(y))), math.ceil(math.log10(max(y)))
    y1 = max(y1, y0 + 1)

    def px(value: float) -> float:
        return left + LEFT + (math.log10(value) - x0) / (x1 - x0) * (WIDTH - LEFT - 16)

    def py(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP)

    parts = [f'<text x="{left + LEFT}" y="20" style="font-weight:bold">{title}</text>']
    for power in range(y0, y1 + 1):
        at = py(10.0**power)
        parts.append(f'<line x1="{px(10.0**x0)}" x2="{px(10.0**x1)}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text x="{left + LEFT - 8}" y="{at + 4}" text-anchor="end">{10.0**power:g}</text>')
    for power in range(x0, x1 + 1):
        at = px(10.0**power)
        parts.append(f'<line x1="{at}" x2="{at}" y1="{py(10.0**y0)}" y2="{py(10.0**y1)}"/>')
        parts.append(f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">1e{power}</text>')
    parts.append(f'<text x="{left + WIDTH / 2 + 20}" y="{HEIGHT - 6}" text-anchor="middle">samples</text>')
    points = " ".join(f"{px(a):.1f},{py(b):.1f}" for a, b in zip(x, y, strict=True))
    parts.append(f'<polyline points="{points}" stroke="{color}"/>')
    parts += [f'<circle cx="{px(a):.1f}" cy="{py(b):.1f}" r="3.5" fill="{color}"/>' for a, b in zip(x, y, strict=True)]
    return "".join(parts)
