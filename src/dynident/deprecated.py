"""Option names and values of before 0.5, which 0.5 still reads with a warning: the one table of them, gone in 0.6.

Keywords, flags and keys of run files all come from the option records, so one entry covers the three. What fits and
checkpoints of earlier versions call these options (`STORED`) stays readable beyond 0.6.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RENAMED_OPTIONS: Mapping[str, Mapping[str, str]] = {  # record -> old name -> new name
    "CheckOptions": {"rest_speed": "rest_velocity"},
    "ExcitationOptions": {"rest_speed": "rest_velocity"},
    "ExportOptions": {"fresh": "from_scratch"},
    "FrictionOptions": {"speeds": "velocities"},
    "GravityOptions": {"speed": "sweep_velocity"},
    "IdentifyOptions": {"rest_speed": "rest_velocity", "speed": "velocity_source"},
    "InitArguments": {"fresh": "overwrite"},
    "InspectArguments": {"nearest": "nearest_physical"},
    "LiveArguments": {"noise": "relative_noise", "speed": "replay_pace"},
    "LiveOptions": {"speed": "pace"},
    "OnlineOptions": {"rest_speed": "rest_velocity", "speed": "velocity_source"},
    "SimulateOptions": {"noise": "relative_noise"},
}
RENAMED_VALUES: Mapping[str, Mapping[str, str]] = {"check": {"tell": "warn"}}  # option -> old value -> new value
STORED = {"rest_speed": "rest_velocity", "speed": "velocity_source"}  # of filters, in fits and checkpoints
_GONE = "removed in 0.6"


def renamed_options(cls: type) -> dict[str, str]:
    """Old name -> new name of the options of a record, those that it inherits included."""
    found: dict[str, str] = {}
    for record in reversed(cls.__mro__):
        found |= RENAMED_OPTIONS.get(record.__name__, {})
    return found


def warn_deprecated(message: str) -> None:
    """The warning of a Python caller."""
    warnings.warn(message, DeprecationWarning, stacklevel=4)


def current_options(cls: type, given: Mapping[str, Any], warn: Callable[[str], None]) -> dict[str, Any]:
    """Options under the names and values of today.

    Args:
        cls: Their record.
        given: Options by name, old ones among them.
        warn: Called with a sentence for each old one.
    """
    renamed, found = renamed_options(cls), {}
    for name, value in given.items():
        new = renamed.get(name, name)
        if new != name:
            warn(f"{name} is now {new}; {_GONE}")
        if isinstance(value, str) and value in RENAMED_VALUES.get(new, {}):
            value, old = RENAMED_VALUES[new][value], value
            warn(f"{new} '{old}' is now '{value}'; {_GONE}")
        found[new] = value
    return found


def current_words(cls: type, words: Sequence[str], flags: Mapping[str, str], warn: Callable[[str], None]) -> list[str]:
    """The words of a command line with the flags of today.

    Args:
        cls: The record of the verb.
        words: As they were given.
        flags: Flag of each option by name.
        warn: Called with a sentence for each old flag.
    """
    renamed = {f"--{old.replace('_', '-')}": flags[new] for old, new in renamed_options(cls).items() if new in flags}
    found = []
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in renamed:
            warn(f"{flag} is now {renamed[flag]}; {_GONE}")
            word = f"{renamed[flag]}{equals}{value}"
        found.append(word)
    return found


def current_names(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored filter options under the names of today."""
    return {STORED.get(name, name): value for name, value in stored.items()}
