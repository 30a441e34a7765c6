"""Units of logged channels and their size in SI."""

from __future__ import annotations

import math

from dynident.errors import UnknownNameError

KINDS = {
    "t": "s",
    "q": "rad",
    "dq": "rad/s",
    "ddq": "rad/s²",
    "tau": "N·m",
    "qm": "rad",
    "dqm": "rad/s",
    "taum": "N·m",
    "i": "A",
    "u": "V",
}
_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0, "°": math.pi / 180.0, "rev": 2.0 * math.pi, "turn": 2.0 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
_TORQUE = {"N·m": 1.0, "Nm": 1.0, "N*m": 1.0, "N m": 1.0, "mNm": 1e-3, "kNm": 1e3, "N": 1.0, "kN": 1e3}


def _rates(sizes: dict[str, float], power: int) -> dict[str, float]:
    suffix = {1: ("/s",), 2: ("/s²", "/s2", "/s^2")}[power]
    return {f"{unit}{end}": size for unit, size in sizes.items() for end in suffix}


_POSITION = _ANGLE | _LENGTH
_SPEED = _rates(_POSITION, 1) | {"rpm": 2.0 * math.pi / 60.0}
SIZES = {
    "t": _TIME,
    "q": _POSITION,
    "qm": _POSITION,
    "dq": _SPEED,
    "dqm": _SPEED,
    "ddq": _rates(_POSITION, 2),
    "tau": _TORQUE,
    "taum": _TORQUE,
    "i": {"A": 1.0, "mA": 1e-3},
    "u": {"V": 1.0, "mV": 1e-3},
}


def size_in_si(kind: str, unit: str) -> float:
    """What one `unit` of a kind of channel (q, tau, ...) is in SI.

    Raises:
        UnknownNameError: Listing the units of that kind.
    """
    if not unit:
        return 1.0
    sizes = SIZES[kind]
    if unit not in sizes:
        raise UnknownNameError(f"unit for {kind}", unit, sizes)
    return sizes[unit]
