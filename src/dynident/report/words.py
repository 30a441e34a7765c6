"""Numbers and names as a reader meets them; what is not a number is said in words, never printed as nan or inf."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN = "not known"
_MOST = 9.995  # shares above are too large for their digits to matter
_LEAST = 1e-5  # the same below


def number(value: float | None, digits: int = 5, *, zeros: bool = False) -> str:
    """A number with so many significant digits; with `zeros`, those at its end are kept, for columns of a table."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value != 0.0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}" if zeros else f"{value:.{digits}g}"
    rounded = float(f"{value:.{digits - 1}e}")  # 9.99 becomes 10.0, which has fewer decimals
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    text = f"{rounded:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text and not zeros else text


def quantity(value: float, unit: str) -> str:
    """A number of three digits with its unit."""
    shown = number(value, 3, zeros=True)
    return shown if shown == UNKNOWN else f"{shown} {unit}"


def percent(share: float | None) -> str:
    """A share in percent with three digits: 0.0357 is 3.57 %."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if abs(share) >= _MOST:
        return "> 999 %" if share > 0.0 else "< -999 %"
    if 0.0 < abs(share) < _LEAST:
        return "< 0.001 %"
    return f"{number(100.0 * share, 3, zeros=True)} %"


def span(shares: Sequence[float]) -> str:
    """Smallest to largest share in percent: 3.51 to 3.71 %."""
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def whole(count: float) -> str:
    """A count with its thousands apart."""
    return f"{round(count):,}".replace(",", " ")


def counted(n: int, noun: str) -> str:
    """A number of things: 1 log, 2 logs."""
    return f"{n} {noun}" + ("" if n == 1 else "s")


def printable(text: object) -> str:
    """Text from a file or an argument with its control characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def option(value: Any) -> str:
    """The value of an option."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {option(own)}" for key, own in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(option(own) for own in value) or "none"
    return UNKNOWN if value is None else str(value)


def sentence(text: str) -> str:
    """A remark with a capital and a full stop, whatever it starts or ends with."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
