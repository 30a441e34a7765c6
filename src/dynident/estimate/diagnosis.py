"""`Finding` and `Checkup`: what a look at logs brought to light, item by item; a fit keeps that of its own logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dynident.errors import DynidentError

Verdict = Literal["ok", "warn", "stop"]
_ORDER: tuple[Verdict, ...] = ("ok", "warn", "stop")


@dataclass(frozen=True)
class Finding:
    """One item of a check-up.

    Attributes:
        name: What was looked at, such as "sampling" or "units".
        verdict: "ok"; "warn" if the result may suffer; "stop" if it would be wrong.
        message: What was seen, why it matters and what to do, in one line.
        fix: Keys of an overlay YAML that put it right, such as {"columns": {"q1": {"column": "q1", "unit": "deg"}}}.
        log: Label of the log it is about; empty for all logs together.
    """

    name: str
    verdict: Verdict
    message: str
    fix: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        found: dict[str, Any] = {"name": self.name, "verdict": self.verdict, "message": self.message}
        if self.log:
            found["log"] = self.log
        if self.fix:
            found["fix"] = dict(self.fix)
        return found


class CheckError(DynidentError):
    """Logs that are not fit to learn from.

    Attributes:
        checkup: What was found.
    """

    def __init__(self, message: str, checkup: Checkup) -> None:
        super().__init__(message)
        self.checkup = checkup


@dataclass(frozen=True)
class Checkup:
    """All items of a look at logs.

    Attributes:
        findings: In the order in which a reader wants them.
        logs: Labels of the logs.
    """

    findings: tuple[Finding, ...]
    logs: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all verdicts."""
        return max((one.verdict for one in self.findings), key=_ORDER.index, default="ok")

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """The items with this verdict."""
        return tuple(one for one in self.findings if one.verdict == verdict)

    @property
    def fix(self) -> Mapping[str, Any]:
        """All fixes as the keys of one overlay; what is wrong in some of the logs only is no part of it."""
        merged: dict[str, Any] = {}
        for one in self.findings:
            if one.log and any(self._lacks(one, log) for log in self.logs):
                continue
            for key, value in one.fix.items():
                merged[key] = {**merged.get(key, {}), **value} if isinstance(value, Mapping) else value
        return merged

    def _lacks(self, one: Finding, log: str) -> bool:
        """Whether a log does without the fix of an item."""
        return not any(other.log == log and other.fix == one.fix for other in self.findings)

    def refusal(self) -> CheckError:
        """The error for logs that stop here."""
        worst, *others = self.of("stop")
        more = f" (and {len(others)} more)" if others else ""
        where = f"{worst.log}: " if worst.log else ""
        remedy = (
            "dynident check shows all and writes an overlay that mends what can be; --check=tell goes on regardless"
        )
        return CheckError(f"the logs are not fit to learn from: {where}{worst.message}{more}; {remedy}", self)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: verdict, items, and the overlay that puts right what can be."""
        found: dict[str, Any] = {"verdict": self.verdict, "items": [one.as_dict() for one in self.findings]}
        return {**found, "fix": dict(self.fix)} if self.fix else found

    @staticmethod
    def from_dict(data: Mapping[str, Any], logs: Sequence[str]) -> Checkup:
        """The record of `as_dict`, which stands beside the labels of the logs."""
        found = Checkup(tuple(Finding(**one) for one in data["items"]), tuple(logs))
        if any(one.verdict not in _ORDER for one in found.findings):
            raise ValueError("a verdict of the check is none of ok, warn, stop")
        return found
