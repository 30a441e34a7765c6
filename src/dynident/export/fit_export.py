"""`export_fit`: an identified model as files that other tools accept, each read back before it counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynident.display import brief
from dynident.dynamics.terms.term import Term
from dynident.errors import InputError
from dynident.estimate.equivalent_friction import friction_summary, plain_elements
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION
from dynident.export.c_export import CExport, export_c
from dynident.export.mjcf import export_mjcf
from dynident.export.options import ExportOptions
from dynident.export.overlay import export_yaml
from dynident.export.training_torque import missing_torque
from dynident.export.urdf import export_urdf
from dynident.export.verification import Exported
from dynident.files import check_target
from dynident.logs.read import read_log
from dynident.options import keywords
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters

FORMATS = ("urdf", "mjcf", "yaml", "c")
_WITH_BODIES = ("urdf", "mjcf", "yaml")
_BELONGS_TO = {
    "prior": _WITH_BODIES,
    "mass": _WITH_BODIES,
    "total_mass": _WITH_BODIES,
    "bounds": _WITH_BODIES,
    "source": ("urdf", "mjcf"),
    "from_scratch": ("urdf", "mjcf"),
    "limits": ("urdf",),
    "number": ("c",),
    "name": ("c",),
    "selftest": ("c",),
}
_PLAIN_TERMS = ("Fv", "Fc")


@brief
@dataclass(frozen=True)
class FitExport:
    """What was written.

    Attributes:
        files: In the order of `FORMATS`.
        bodies: Physically consistent parameters in them; None where no format needs any.
    """

    files: tuple[Exported | CExport, ...]
    bodies: PhysicalParameters | None


@keywords(ExportOptions)
def export_fit(fit: Fit, options: ExportOptions) -> FitExport:
    """Write an identified model as URDF, MJCF, YAML and C, whichever are given, each with physically consistent links.

    Raises:
        InputError: When no file is given, an option belongs to a format that is not, or a folder is not there.
        ExportError: When a file that was read back does not agree with the model; those before it are there.
    """
    check_export(options)
    check_targets(options)
    bodies = export_bodies(fit, options)
    return FitExport(tuple(exported_files(fit, bodies, options)), bodies)


def wanted_formats(options: ExportOptions) -> list[str]:
    """Formats that are to be written."""
    return [form for form in FORMATS if getattr(options, form) is not None]


def check_export(options: ExportOptions) -> None:
    """Refuse an option that no format asked for would look at: it was meant to do something."""
    wanted = wanted_formats(options)
    if not wanted:
        raise InputError("export needs at least one of --urdf F, --mjcf F, --yaml F, --c DIR")
    for name, forms in _BELONGS_TO.items():
        if getattr(options, name, None) and not set(forms) & set(wanted):
            flags = " or ".join(f"--{form}" for form in forms)
            raise InputError(f"--{name.replace('_', '-')} has no meaning without {flags}; add one or leave it out")
    if options.source is not None and {"urdf", "mjcf"} <= set(wanted):
        raise InputError("--source is the file that one format keeps; export --urdf and --mjcf one after the other")


def check_targets(options: ExportOptions, fit: Path | None = None) -> None:
    """Refuse targets that cannot all be written, before the first of them is.

    Args:
        options: Which.
        fit: File of the fit that is exported.

    Raises:
        InputError: When a folder is not there, two formats have the same file, or the fit itself would be lost.
    """
    taken = {} if fit is None else {fit.resolve(): "the fit that is exported"}
    for form in (one for one in wanted_formats(options) if one != "c"):
        path = getattr(options, form)
        check_target(path)
        place = Path(path).resolve()
        if place in taken:
            raise InputError(f"--{form} {path}: is {taken[place]}; give it another name")
        taken[place] = f"also the file of --{form}"


def export_bodies(fit: Fit, options: ExportOptions) -> PhysicalParameters | None:
    """Physically consistent parameters of the links; None where only C is wanted, which has the fit's own."""
    if wanted_formats(options) == ["c"]:
        return None
    return physical_fit(fit, prior=options.prior, bounds=options.bounds)


def exported_files(fit: Fit, bodies: PhysicalParameters | None, options: ExportOptions) -> Iterator[Exported | CExport]:
    """Write the files one by one; each is there as soon as it comes out."""
    for form in wanted_formats(options):
        if form == "c":
            log = None if options.selftest is None else read_log(options.selftest, fit.robot)
            number = options.number or "double"
            yield export_c(fit, Path(str(options.c)), number=number, name=options.name, selftest=log)
            continue
        assert bodies is not None
        values, terms, notes = plain_friction(fit, bodies.values)
        note = "; ".join([_note(fit, bodies), *notes])
        made = _write(form, fit, bodies, options, values, {"terms": terms, "note": note})
        missing = missing_torque(fit, values, made.held) if form != "yaml" else None  # YAML has the base parameters
        yield replace(made, lost=(*made.lost, *notes), missing=missing)


def _write(
    form: str,
    fit: Fit,
    bodies: PhysicalParameters,
    options: ExportOptions,
    values: Mapping[str, float],
    how: dict[str, Any],
) -> Exported:
    """A file of a format that knows plain friction only."""
    path = str(getattr(options, form))
    if form == "yaml":  # the value set is what a simulator of plain friction needs; all terms are base parameters
        known = {
            name: float(std)
            for name, std in zip(bodies.values, bodies.chi_std, strict=True)
            if math.isfinite(std) and values.get(name) == bodies.values[name]
        }
        return export_yaml(fit.robot, values, path, estimate=fit, deviations=known, note=how["note"])
    writers: dict[str, Callable[..., Exported]] = {"urdf": export_urdf, "mjcf": export_mjcf}
    limits = {"limits": options.limits} if form == "urdf" else {}
    return writers[form](
        fit.robot, values, path, source=options.source, from_scratch=options.from_scratch, **limits, **how
    )


def _note(fit: Fit, bodies: PhysicalParameters) -> str:
    """For the top of a file: what the numbers are, and what settled those that the data leaves open."""
    words = f"identified by dynident {fit.version}; {bodies.prior_sentence}"
    if fit.undetermined:
        words += f"; the data leaves open {', '.join(fit.undetermined)}"
    return words


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
