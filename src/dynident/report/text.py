"""Numbers and names for readers; what is not a number is put in words, never printed as nan or inf."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array

if TYPE_CHECKING:  # a page of few words loads none of this
    from dynident.estimate.records import CrossValidation
    from dynident.estimate.torque_errors import TorqueErrors
    from dynident.robot.model import Robot

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


def plural(n: int, noun: str) -> str:
    """A number of things: 1 log, 2 logs."""
    return f"{n} {noun}" + ("" if n == 1 else "s")


def printable(text: object) -> str:
    """Text from a file or an argument with its control characters spelled out."""
    given = str(text)
    return given if given.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in given)


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


# ----------------------------------------------------------------------------------------------------------------------
# Sentences on a terminal, wrapped to its width.


def print_prose(text: str, width: int | None = None) -> None:
    """Print lines, each wrapped between words; what is indented hangs two further in. Long paths stay whole.

    Args:
        text: Lines.
        width: Of the terminal; default that of the page.
    """
    from dynident.report.terminal import page_console

    room = page_console().width if width is None else width
    for line in text.split("\n"):
        lead = line[: len(line) - len(line.lstrip())]
        hanging = f"{lead}  " if lead else ""
        parts = textwrap.wrap(
            printable(line.strip()),
            room,
            initial_indent=lead,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        print("\n".join(parts))


# ----------------------------------------------------------------------------------------------------------------------
# Errors as they are shown; NaN, shown as not known, where there are no samples or no torque to compare with.

_FLAT = 1e-12  # share of a joint's torque below which its variation is rounding


def relative(errors: TorqueErrors) -> float:
    """||tau - tau_hat|| / ||tau|| over all joints."""
    return errors.relative if float(errors.torque_square.sum()) > 0.0 else float("nan")


def per_joint(errors: TorqueErrors) -> Array:
    """The same for each joint, (n_joints,)."""
    return np.where((errors.count > 0.0) & (errors.torque_square > 0.0), errors.per_joint, np.nan)


def explained_variation(errors: TorqueErrors) -> Array:
    """Share of each joint's torque variation that is explained, (n_joints,)."""
    variation = errors.torque_square - errors.torque**2 / np.maximum(errors.count, 1.0)
    return np.where((errors.count > 0.0) & (variation > _FLAT * errors.torque_square), errors.fit, np.nan)


def rmse(errors: TorqueErrors) -> Array:
    """Root mean square error of each joint, (n_joints,) [N·m or N]."""
    return np.where(errors.count > 0.0, errors.rmse, np.nan)


def mean_fold_errors(crossed: CrossValidation) -> Array:
    """Mean error of each joint over the folds of a cross-validation, (n_joints,)."""
    shares = crossed.errors
    known = shares > 0.0  # in a fold in which a joint has no rows, its error is exactly zero
    return np.where(known.any(0), np.where(known, shares, 0.0).sum(0) / np.maximum(known.sum(0), 1), np.nan)


def torque_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each moving joint's torque."""
    return tuple(joint.torque_unit for joint in robot.moving_joints)


def position_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each moving joint's position."""
    return tuple("m" if unit == "N" else "rad" for unit in torque_units(robot))
