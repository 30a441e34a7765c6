"""A known payload as a test of logs and model: what it must change in the parameters, and what it does change.

The robot is identified once more from the loaded runs, as it was identified without the payload (Gautier, Khalil,
Restrepo 1995, Tables 3 and 4). Friction that is not the same in both sessions shows as friction that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynident.arrays import finite_or_none, record
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.logs.log import LogSource, as_logs
from dynident.payload.body import Payload, known_numbers
from dynident.payload.identification import PayloadEstimate
from dynident.payload.known_payload import PayloadComparison, PayloadRow, compare_numbers, compare_payload
from dynident.pipeline.identification import identify


@record
class KnownPayloadCheck:
    """A known payload against what loaded runs say.

    Attributes:
        numbers: The identified numbers of the payload against the known ones; empty where none were identified.
        parameters: Base parameters without and with the payload; None unless all of the payload is known.
        notes: What a reader should know.
    """

    numbers: tuple[PayloadRow, ...]
    parameters: PayloadComparison | None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        keys = ("name", "unit", "known", "found", "std", "deviations", "agreement")
        each = (one.as_dict() for one in self.numbers)
        return {
            "numbers": [dict(zip(keys, _number_cells(one), strict=True)) for one in each],
            "parameters": None if self.parameters is None else [row.as_dict() for row in self.parameters.rows],
            "agreeing": None if self.parameters is None else finite_or_none(self.parameters.agreeing),
            "notes": list(self.notes),
        }


def _number_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("name", "unit", "predicted", "loaded", "loaded_std", "deviations", "agreement"))


def check_known_payload(
    fit: Fit,
    loaded: Fit | LogSource | Sequence[LogSource],
    known: str | float | Sequence[float],
    estimate: PayloadEstimate | None = None,
) -> KnownPayloadCheck:
    """Test a fit and loaded runs with a payload that is known.

    Args:
        fit: The robot, identified without the payload.
        loaded: Runs with the payload, from which the robot is identified again with the same terms; or such a fit.
        known: In the tool frame of the fit: mass; mass and center; or these and XX, XY, XZ, YY, YZ, ZZ about it.
        estimate: The payload as identified, to compare number by number.

    Raises:
        InputError: When there is nothing to compare, or the payload is not physically consistent.
    """
    values = known_numbers(known)
    numbers = () if estimate is None else compare_numbers(estimate, values)
    if len(values) < 10:
        if estimate is None:
            raise InputError("two fits are compared with all ten numbers of the payload: mass, center and inertia")
        words = "with its center and inertia too, base parameters without and with the payload are compared"
        return KnownPayloadCheck(numbers, None, (words,))
    payload = Payload(values[0], values[1:4], values[4:])
    other = loaded if isinstance(loaded, Fit) else _identify_alike(fit, loaded)
    notes = []
    if any("drive gains" in one.covariance_kind for one in (fit, other)):
        notes.append(
            "both identifications have the gains' tolerance, which counts twice here: differences look smaller"
        )
    return KnownPayloadCheck(numbers, compare_payload(fit, other, payload), tuple(notes))


def _identify_alike(fit: Fit, loaded: LogSource | Sequence[LogSource]) -> Fit:
    """The robot from loaded runs, with the terms that it was identified with."""
    given = {} if fit.provenance is None else fit.provenance.options
    terms = fit.base.terms if "terms" in given else None
    return identify(fit.robot, as_logs(loaded), terms=terms, friction="basic")
