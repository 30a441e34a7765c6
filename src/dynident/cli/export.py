"""`dynident export`: an identified model as files that other tools accept, each proved by reading it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import print_answer
from dynident.cli.drives import PdGains, given_gains
from dynident.errors import DynidentError, InputError
from dynident.export.options import ExportOptions
from dynident.options import REQUIRED, Answer, Quiet, option

if TYPE_CHECKING:
    from dynident.export.c_export import CExport
    from dynident.export.verification import Exported
    from dynident.physical.bounds import Bound
    from dynident.physical.result import PhysicalParameters


@dataclass(frozen=True, kw_only=True)
class ExportArguments(ExportOptions, PdGains, Quiet, Answer):
    """`dynident export` on the command line."""

    fit: str = option(
        REQUIRED,
        "fit.yaml, drives.yaml, or the folder that identify or drives wrote",
        positional=True,
        metavar="FIT",
    )
    mass: tuple[str, ...] = option(
        (),
        "bound on the mass of a link; may be repeated",
        unit="kg",
        repeated=True,
        metavar="LINK=LEAST:MOST",
        written="intervals",
    )
    total_mass: str | None = option(
        None, "bound on all links together", unit="kg", metavar="LEAST:MOST", written="interval"
    )


def run_export(options: ExportArguments) -> int:
    """`dynident export`."""
    written: list[Exported | CExport] = []
    bodies: list[PhysicalParameters] = []
    try:
        export_into(options, written, bodies)
    except DynidentError as error:  # a later format was refused: those before it are there
        if written and options.json:
            error.answer = export_answer(written, bodies)
        elif written and not options.quiet:
            print_exported(written, bodies)
        raise
    return print_answer(options, lambda: export_answer(written, bodies), lambda: print_exported(written, bodies))


def export_into(options: ExportArguments, written: list[Exported | CExport], bodies: list[PhysicalParameters]) -> None:
    """Write the files that the options ask for.

    Args:
        options: Of `dynident export`.
        written: Takes each file as soon as it is there.
        bodies: Takes the bodies behind them, where a format needs those.
    """
    from dynident.export.fit_export import check_export, check_targets, export_bodies, exported_files

    check_export(options)
    options = replace(options, bounds=parse_bounds(options.mass, options.total_mass))
    result, path = load_result(options.fit)
    options = replace(options, gains=given_gains(result.robot, options))
    check_targets(options, path)
    found = export_bodies(result, options)
    bodies += [] if found is None else [found]
    for one in exported_files(result, found, options):
        written.append(one)


def load_result(path: str) -> tuple[Any, Path]:
    """What identify or drives wrote, and its file."""
    from dynident.drives.storage import drives_path, is_drives, load_drives
    from dynident.estimate.storage import fit_path, load_fit

    if is_drives(path):
        return load_drives(path), drives_path(path)
    return load_fit(path), fit_path(path)


def print_exported(written: Sequence[Exported | CExport], bodies: Sequence[PhysicalParameters]) -> None:
    """The bodies, and what was written."""
    from dynident.export.verification import Exported
    from dynident.report.text import print_prose

    for found in bodies:
        print(found.table())
        print()
        for words in found.sentences():
            print_prose(words)
        print()
    for one in written:
        if isinstance(one, Exported):
            print_prose(one.summary())
        else:
            _print_c(one)


def export_answer(written: Sequence[Exported | CExport], bodies: Sequence[PhysicalParameters]) -> dict[str, Any]:
    """The answer of `export --json`."""
    return {
        "files": [_file(one) for one in written],
        "physical": bodies[0].as_dict() if bodies else None,
        "warnings": [str(one) for found in bodies for one in found.contradictions],
    }


def _file(one: Exported | CExport) -> dict[str, Any]:
    from dynident.export.verification import Exported

    if isinstance(one, Exported):
        return {
            "form": one.form,
            "path": str(one.path),
            "agreement": {
                "reader": one.agreement.reader,
                "relative": one.agreement.relative,
                "lost": one.agreement.lost,
            },
            "lost": list(one.lost),
            "warnings": list(one.warnings),
            "usage": list(one.usage),
            "missing": None if one.missing is None else {"share": one.missing.share, "parts": dict(one.missing.parts)},
        }
    worst = None if one.agreement is None else one.agreement.worst
    agreement = {"reader": "C compiler", "relative": worst, "lost": 0.0}
    counts = {name: vars(count) for name, count in one.counts.items()}
    return {
        "form": "C",
        "path": str(one.folder),
        "files": [str(path) for path in one.files],
        "agreement": agreement,
        "lost": [],
        "warnings": list(one.notes[1:]),
        "operations": counts,
    }


def _print_c(one: CExport) -> None:
    """Files, operations of each function, and what was found by compiling them."""
    from dynident.report.text import print_prose

    print_prose(f"C ({one.number}) written to {', '.join(str(path) for path in one.files)}")
    for line in one.table().splitlines():
        if "  " in line.strip():  # a row of the table, not a sentence
            print(f"  {line}")
        else:
            print_prose(f"  {line}")


def parse_bounds(masses: Sequence[str], total: str | None) -> list[Bound]:
    """Bounds from `3=1.5:4` (link or its number) and `10:33.5` [kg]; either side may be left out."""
    from dynident.cli.inputs import parse_interval
    from dynident.physical.bounds import MassBound, TotalMassBound

    bounds: list[Bound] = []
    expected = "expected LEAST:MOST in kg, such as 1.5:4, 1.5: or :4"
    for text in masses:
        link, equals, interval = text.rpartition("=")
        if not equals or not link:
            raise InputError(f"--mass {text}: expected LINK=LEAST:MOST in kg, such as 3=1.5:4 or forearm=:5")
        bounds.append(MassBound(link.strip(), *parse_interval(interval, f"--mass {text}: {expected}")))
    if total is not None:
        bounds.append(TotalMassBound(*parse_interval(total, f"--total-mass {total}: {expected}")))
    return bounds
