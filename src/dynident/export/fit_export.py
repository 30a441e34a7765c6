"""`export_fit`: an identified model as files that other tools accept, each read back before it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dynident.display import brief
from dynident.drives.identification import DriveEstimate
from dynident.dynamics.terms.term import Term
from dynident.errors import InputError
from dynident.estimate.equivalent_friction import friction_summary, plain_elements
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION
from dynident.export.c_export import CExport, export_c
from dynident.export.drake import export_drake
from dynident.export.identified import IdentifiedModel, model_of_drives, model_of_fit
from dynident.export.mjcf import export_mjcf
from dynident.export.options import ExportOptions
from dynident.export.overlay import export_yaml
from dynident.export.simulator_configs import TIMESTEP, export_isaaclab, export_mjlab
from dynident.export.training_torque import missing_torque
from dynident.export.urdf import export_urdf
from dynident.export.usd import export_usd
from dynident.export.verification import Exported
from dynident.files import check_target
from dynident.logs.read import read_log
from dynident.options import keywords
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters

FORMATS = ("urdf", "mjcf", "yaml", "c", "isaaclab", "mjlab", "usd", "drake")
_WITH_BODIES = tuple(form for form in FORMATS if form != "c")
_KEEPING = ("urdf", "mjcf", "usd", "drake")  # formats that keep the user's own file
_WITH_GAINS = ("mjcf", "isaaclab", "mjlab", "usd")
_CONFIGS = ("isaaclab", "mjlab")
_BELONGS_TO = {
    "prior": _WITH_BODIES,
    "mass": _WITH_BODIES,
    "total_mass": _WITH_BODIES,
    "bounds": _WITH_BODIES,
    "source": _KEEPING,
    "from_scratch": ("urdf", "mjcf", "drake"),
    "limits": ("urdf", "drake"),
    "actuators": _CONFIGS,
    "timestep": _CONFIGS,
    "gains": _WITH_GAINS,
    "kp": _WITH_GAINS,
    "kd": _WITH_GAINS,
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
def export_fit(fit: Fit | DriveEstimate, options: ExportOptions) -> FitExport:
    """Write an identified model, a fit or drives, in the formats given, each with physically consistent links.

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
        flags = ", ".join(f"--{form} {'DIR' if form == 'c' else 'F'}" for form in FORMATS)
        raise InputError(f"export needs at least one of {flags}")
    for name, forms in _BELONGS_TO.items():
        if getattr(options, name, None) and not set(forms) & set(wanted):
            flags = " or ".join(f"--{form}" for form in forms)
            raise InputError(f"--{name.replace('_', '-')} has no meaning without {flags}; add one or leave it out")
    keeping = [form for form in _KEEPING if form in wanted]
    if options.source is not None and len(keeping) > 1:
        flags = " and ".join(f"--{form}" for form in keeping)
        raise InputError(f"--source is the file that one format keeps; export {flags} one after the other")


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


def export_bodies(result: Fit | DriveEstimate, options: ExportOptions) -> PhysicalParameters | None:
    """Physically consistent parameters of the links; None where only C is wanted, which has the fit's own.

    Drives stand on links as they are in the robot file, or were estimated: there is nothing to settle.
    """
    if isinstance(result, DriveEstimate):
        for name in ("prior", "mass", "total_mass", "bounds", "c", "number", "name", "selftest"):
            if getattr(options, name, None):
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"{flag} needs a fit of identify; a result of drives has the links of its robot file")
        return None
    if wanted_formats(options) == ["c"]:
        return None
    return physical_fit(result, prior=options.prior, bounds=options.bounds)


def exported_files(
    result: Fit | DriveEstimate, bodies: PhysicalParameters | None, options: ExportOptions
) -> Iterator[Exported | CExport]:
    """Write the files one by one; each is there as soon as it comes out."""
    model = _model(result, bodies, options)
    for form in wanted_formats(options):
        if form == "c":
            assert isinstance(result, Fit)
            log = None if options.selftest is None else read_log(options.selftest, result.robot)
            number = options.number or "double"
            yield export_c(result, Path(str(options.c)), number=number, name=options.name, selftest=log)
            continue
        assert model is not None
        made = _write(form, model, options)
        whole = form in ("urdf", "mjcf") and model.fit is not None  # of the others, torque is not compared
        missing = missing_torque(model.fit, model.values, made.held) if whole and model.fit is not None else None
        yield replace(made, lost=(*made.lost, *model.notes), missing=missing)


def _model(
    result: Fit | DriveEstimate, bodies: PhysicalParameters | None, options: ExportOptions
) -> IdentifiedModel | None:
    """What files are written from; None where only C is wanted."""
    if isinstance(result, DriveEstimate):
        return model_of_drives(result, options.gains)
    if bodies is None:
        return None
    return model_of_fit(result, bodies, plain_friction(result, bodies.values), options.gains)


def _write(form: str, model: IdentifiedModel, options: ExportOptions) -> Exported:
    """A file of a format that knows plain friction only."""
    path, note = str(getattr(options, form)), "; ".join([model.note, *model.notes])
    if form == "yaml":  # the value set is what a simulator of plain friction needs; all terms are base parameters
        return export_yaml(
            model.robot, model.values, path, estimate=model.fit, deviations=_standard(model.std, model), note=note
        )
    if form in _CONFIGS:
        config = export_isaaclab if form == "isaaclab" else export_mjlab
        return config(model, path, actuators=options.actuators, timestep=options.timestep or TIMESTEP)
    if form == "usd":
        return export_usd(model, path, source=options.source)
    source = None if options.source is None else Path(options.source)
    robot, values, scratch, terms = model.robot, model.values, options.from_scratch, model.terms
    if form == "mjcf":
        control = model.control
        return export_mjcf(
            robot, values, path, source=source, from_scratch=scratch, terms=terms, note=note, control=control
        )
    writer = export_urdf if form == "urdf" else export_drake
    limits = options.limits
    return writer(robot, values, path, source=source, from_scratch=scratch, limits=limits, terms=terms, note=note)


def _standard(std: Mapping[str, float], model: IdentifiedModel) -> dict[str, float]:
    """Standard deviations of values that the file has; the bias and the delay are none of them."""
    return {name: own for name, own in std.items() if name in model.values}


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
