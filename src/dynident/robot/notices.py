"""What a reader noticed in a robot file and did not use: one line per kind, with the count and the names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dynident.robot.physicality import Violation, sentences

_MOST_NAMES = 8  # that are all listed
_PLURALS = {"is": "are", "has": "have", "does": "do", "holds": "hold", "body": "bodies", "equality": "equalities"}


class Notices:
    """Notices as they are found, in the order in which their kinds came up."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, where: str, problem: str) -> None:
        """Note a problem of an element.

        Args:
            where: Kind and name, such as `joint 'elbow'`, or an element without a name, such as `<option>`.
            problem: What it is, from the verb on; the same words for the same kind of problem.
        """
        kind, quoted, name = where.partition(" '")
        names = self._names.setdefault((kind, problem), [])
        if quoted and name.removesuffix("'") not in names:
            names.append(name.removesuffix("'"))

    def lines(self) -> list[str]:
        """One sentence per kind of problem."""
        found = [_sentence(kind, names, problem) for (kind, problem), names in self._names.items()]
        return [*found, *sentences(self.violations)]


def _sentence(kind: str, names: Sequence[str], problem: str) -> str:
    if len(names) <= 1:
        return f"{kind}{''.join(f' {name!r}' for name in names)}: {problem}"
    first, _, rest = problem.partition(" ")
    several = _PLURALS.get(kind, f"{kind}s")
    return f"{len(names)} {several} ({list_names(names)}): {_PLURALS.get(first, first)} {rest}"


def list_names(names: Iterable[str], most: int = _MOST_NAMES, noun: str = "") -> str:
    """All of up to `most` names, else one fewer and how many more."""
    every = list(names)
    if len(every) <= most:
        return ", ".join(every)
    more = f"{len(every) - most + 1} more {noun}".rstrip()
    return f"{', '.join(every[: most - 1])} and {more}"
