"""`dynident export`: an identified model as files that other tools accept, each proved by reading it back."""

from __future__ import annotations

import functools
import json
import math
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynident.dynamics.terms.term import Term
from dynident.errors import InputError
from dynident.estimate.equivalent_friction import friction_summary, plain_elements
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION
from dynident.estimate.storage import fit_path, load_fit
from dynident.export.c_export import CExport, export_c
from dynident.export.mjcf import export_mjcf
from dynident.export.overlay import export_yaml
from dynident.export.urdf import export_urdf
from dynident.export.verification import Exported
from dynident.files import check_target
from dynident.physical.bounds import Bound, MassBound, TotalMassBound
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters
from dynident.report.text import print_prose

_PLAIN_TERMS = ("Fv", "Fc")
_FORMS = ("urdf", "mjcf", "yaml", "c")
_WITH_BODIES = ("urdf", "mjcf", "yaml")
_BELONGS = {
    "prior": _WITH_BODIES,
    "mass": _WITH_BODIES,
    "total_mass": _WITH_BODIES,
    "source": ("urdf", "mjcf"),
    "fresh": ("urdf", "mjcf"),
    "limits": ("urdf",),
    "number": ("c",),
    "name": ("c",),
}


def run_export(options: Namespace) -> int:
    """`dynident export`."""
    written: list[Exported | CExport] = []
    bodies: list[PhysicalParameters] = []
    try:
        export_into(options, written, bodies)
    finally:  # also when a later format was refused: those before it are there
        if written and options.json:
            print(json.dumps(export_answer(written, bodies), allow_nan=False))
        elif written and not options.quiet:
            print_exported(written, bodies)
    return 0


def export_into(options: Namespace, written: list[Exported | CExport], bodies: list[PhysicalParameters]) -> None:
    """Write the files that the options ask for.

    Args:
        options: Of `dynident export`.
        written: Takes each file as soon as it is there.
        bodies: Takes the bodies behind them, where a format needs those.
    """
    wanted = [form for form in _FORMS if getattr(options, form) is not None]
    if not wanted:
        raise InputError("export needs at least one of --urdf F, --mjcf F, --yaml F, --c DIR")
    check_options(options, wanted)
    bounds = parsed_bounds(options.mass, options.total_mass)
    fit = load_fit(options.fit)
    check_targets(options, wanted)
    if wanted != ["c"]:
        bodies.append(physical_fit(fit, prior=options.prior, bounds=bounds))
    for form in wanted:
        written.append(_WRITERS[form](fit, bodies[0] if bodies else None, options))


def check_options(options: Namespace, wanted: Sequence[str]) -> None:
    """Refuse an option that no format asked for would look at: it was meant to do something."""
    for name, forms in _BELONGS.items():
        if getattr(options, name) and not set(forms) & set(wanted):
            flags = " or ".join(f"--{form}" for form in forms)
            raise InputError(f"--{name.replace('_', '-')} has no meaning without {flags}; add one or leave it out")
    if options.source is not None and {"urdf", "mjcf"} <= set(wanted):
        raise InputError("--source is the file that one format keeps; export --urdf and --mjcf one after the other")


def check_targets(options: Namespace, wanted: Sequence[str]) -> None:
    """Refuse targets that cannot all be written, before the first of them is.

    Raises:
        InputError: When a folder is not there, two formats have the same file, or the fit itself would be lost.
    """
    taken = {fit_path(options.fit).resolve(): "the fit that is exported"}
    for form in (one for one in wanted if one != "c"):
        path = getattr(options, form)
        check_target(path)
        place = Path(path).resolve()
        if place in taken:
            raise InputError(f"--{form} {path}: is {taken[place]}; give it another name")
        taken[place] = f"also the file of --{form}"


def print_exported(written: Sequence[Exported | CExport], bodies: Sequence[PhysicalParameters]) -> None:
    """The bodies, and what was written."""
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
    print_prose(f"C ({one.number}) written to {', '.join(str(path) for path in one.files)}")
    for line in one.table().splitlines():
        if "  " in line.strip():  # a row of the table, not a sentence
            print(f"  {line}")
        else:
            print_prose(f"  {line}")


def _note(fit: Fit, bodies: PhysicalParameters) -> str:
    """For the top of a file: what the numbers are, and what settled those that the data leaves open."""
    words = f"identified by dynident {fit.version}; {bodies.prior_sentence}"
    if fit.undetermined:
        words += f"; the data leaves open {', '.join(fit.undetermined)}"
    return words


def _urdf(fit: Fit, bodies: PhysicalParameters | None, options: Namespace) -> Exported:
    return _plain(functools.partial(export_urdf, limits=options.limits), options.urdf, fit, bodies, options)


def _mjcf(fit: Fit, bodies: PhysicalParameters | None, options: Namespace) -> Exported:
    return _plain(export_mjcf, options.mjcf, fit, bodies, options)


def _plain(
    writer: Callable[..., Exported],
    path: str,
    fit: Fit,
    bodies: PhysicalParameters | None,
    options: Namespace,
) -> Exported:
    """A file of a format that knows plain friction only."""
    assert bodies is not None
    values, terms, told = plain_friction(fit, bodies.values)
    note = "; ".join([_note(fit, bodies), *told])
    made = writer(fit.robot, values, path, source=options.source, fresh=options.fresh, terms=terms, note=note)
    return replace(made, lost=(*made.lost, *told))


def plain_friction(
    fit: Fit, values: Mapping[str, float]
) -> tuple[Mapping[str, float], tuple[Term, ...], tuple[str, ...]]:
    """Values for formats that know viscous and Coulomb friction only.

    Where a fit has more friction terms than those, its joints' Fv and Fc alone are not their friction: overlapping
    terms trade against each other. The plain friction nearest to all of them takes their place.

    Returns:
        Values, the terms they belong to, and what was done, in words.
    """
    terms = fit.base.terms
    further = [term for term in terms if term.name in FRICTION and term.name not in _PLAIN_TERMS]
    names = [name.removeprefix("q") for name in fit.robot.position_names]
    labels = [element.label for element in fit.robot.elements]
    known = all(f"Fv{label}" in values and f"Fc{label}" in values for label in labels)
    if not further or not known or fit.friction_view is None:
        return values, terms, ()
    found = dict(values)
    if len(labels) == len(names):
        worst = 0.0
        for name, one in zip(names, friction_summary(fit).joints, strict=True):
            if one.viscous is not None and one.coulomb is not None and one.lost is not None:
                viscous, coulomb = max(one.viscous, 0.0), max(one.coulomb, 0.0)
                found |= {f"Fv{name}": viscous, f"Fc{name}": coulomb, f"Fo{name}": one.offset}
                worst = max(worst, one.lost)
    else:
        plain, worst = plain_elements(fit)
        found |= plain
    gone = {column.name for term in further for column in term.columns(fit.robot)}
    keys = ", ".join(term.key for term in further)
    words = f"friction terms {keys}: damping and dry friction in the file stand for all of them together, within"
    kept = {name: x for name, x in found.items() if name not in gone}
    return kept, tuple(term for term in terms if term not in further), (f"{words} {100.0 * worst:.2g} % of their RMS",)


def _yaml(fit: Fit, bodies: PhysicalParameters | None, options: Namespace) -> Exported:
    """The value set is what a simulator of plain friction needs; all terms stand among the base parameters."""
    assert bodies is not None
    values, _, told = plain_friction(fit, bodies.values)
    known = {
        name: float(std)
        for name, std in zip(bodies.values, bodies.chi_std, strict=True)
        if math.isfinite(std) and values.get(name) == bodies.values[name]
    }
    note = "; ".join([_note(fit, bodies), *told])
    made = export_yaml(fit.robot, values, options.yaml, estimate=fit, deviations=known, note=note)
    return replace(made, lost=(*made.lost, *told))


def _c(fit: Fit, bodies: PhysicalParameters | None, options: Namespace) -> CExport:
    return export_c(fit, options.c, number=options.number or "double", name=options.name)


_WRITERS: dict[str, Callable[[Fit, PhysicalParameters | None, Namespace], Exported | CExport]] = {
    "urdf": _urdf,
    "mjcf": _mjcf,
    "yaml": _yaml,
    "c": _c,
}


def parsed_bounds(masses: Sequence[str], total: str | None) -> list[Bound]:
    """Bounds from `3=1.5:4` (link or its number) and `10:33.5` [kg]; either side may be left out."""
    bounds: list[Bound] = []
    for text in masses:
        link, equals, interval = text.rpartition("=")
        if not equals or not link:
            raise InputError(f"--mass {text}: expected LINK=LEAST:MOST in kg, such as 3=1.5:4 or forearm=:5")
        bounds.append(MassBound(link.strip(), *_interval(interval, f"--mass {text}")))
    if total is not None:
        bounds.append(TotalMassBound(*_interval(total, f"--total-mass {total}")))
    return bounds


def _interval(text: str, option: str) -> tuple[float | None, float | None]:
    first, colon, last = text.partition(":")
    try:
        least, most = (float(part) if part.strip() else None for part in (first, last))
    except ValueError:
        colon = ""
    if not colon:
        raise InputError(f"{option}: expected LEAST:MOST in kg, such as 1.5:4, 1.5: or :4")
    return least, most
