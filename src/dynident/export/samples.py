"""`write_samples`: sampled models as files, a table of parameters, and ranges as events of Isaac Lab and mjlab."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array
from dynident.drives.coverage import Coverage
from dynident.drives.linear import drive_elements
from dynident.drives.sampling import SampledModels
from dynident.errors import InputError
from dynident.export.events import write_events
from dynident.export.identified import IdentifiedModel, PositionControl, control_of, true_gains
from dynident.export.mjcf import MjcfWriter, export_mjcf
from dynident.export.simulator_configs import TIMESTEP
from dynident.export.source_files import edited_file
from dynident.export.urdf import export_urdf, urdf_text
from dynident.export.verification import Exported, ExportError
from dynident.files import write_bytes, write_text
from dynident.robot.load import load_robot
from dynident.robot.mjcf import compiled_mjcf
from dynident.robot.storage import yaml_text

FORMS = ("mjcf", "urdf", "none")
_NAME = re.compile(r"model_\d+\.(xml|urdf)")
LEVEL = 0.9


@dataclass(frozen=True)
class WrittenSamples:
    """What was written.

    Attributes:
        folder: Where.
        files: The files that are not models.
        models: How many models were written.
        first: The proof of the first of them; None without models.
    """

    folder: Path
    files: tuple[Path, ...]
    models: int
    first: Exported | None


def write_samples(
    models: SampledModels,
    folder: str | Path,
    *,
    form: str = "mjcf",
    level: float = LEVEL,
    timestep: float = TIMESTEP,
    coverage: Coverage | None = None,
    from_scratch: bool = False,
) -> WrittenSamples:
    """Write samples into a folder.

    `samples.npz` has names, units, center and values (n, p); `ranges.yaml` the central interval of each parameter;
    `events_isaaclab.py` and `events_mjlab.py` the same as events; `models/model_0000.xml`, .. one file for each
    sample, the first of which is proved as exports are, and all of which are read back.

    Args:
        models: The samples.
        folder: Where to; it is made where it is not there.
        form: "mjcf", "urdf", or "none" for no models.
        level: Share of the samples in the ranges.
        timestep: Physics step of Isaac Lab and mjlab, in which they count delays [s].
        coverage: How often reality lies within the band of the samples, to be stated in `ranges.yaml`.
        from_scratch: Make new files, even where that of the robot could be kept and edited.

    Raises:
        InputError: When the folder cannot be written, or has models of somebody else.
        ExportError: When a model cannot be read back.
    """
    if form not in FORMS:
        raise InputError(f"form is {form!r}; expected one of {', '.join(FORMS)}")
    if not timestep > 0.0:
        raise InputError(f"timestep is {timestep:g} s; expected the physics step, such as {TIMESTEP:g}")
    ranges = models.ranges(level)
    out = Path(folder)
    place = _prepare_folder(out)
    files = [out / "samples.npz", out / "ranges.yaml"]
    write_bytes(files[0], _table(models))
    write_text(files[1], _ranges_text(models, ranges, level, coverage))
    files += write_events(models, ranges, out, level, timestep)
    first = None if form == "none" else _write_models(models, place, form, from_scratch)
    return WrittenSamples(out, tuple(files), 0 if form == "none" else len(models), first)


def _prepare_folder(out: Path) -> Path:
    """The folder of models, without those of an earlier run."""
    place = out / "models"
    try:
        place.mkdir(parents=True, exist_ok=True)
        names = [path.name for path in place.iterdir()]
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); choose another folder") from None
    foreign = [name for name in names if not _NAME.fullmatch(name)]
    if foreign:
        raise InputError(f"{place}: has {foreign[0]}, which dynident did not write; choose another folder")
    for name in names:
        (place / name).unlink()
    return place


def _table(models: SampledModels) -> bytes:
    """The parameters of all samples as a NumPy archive."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        names=np.array(models.names),
        units=np.array(models.units),
        center=models.center,
        values=models.values,
        seed=models.seed,
    )
    return buffer.getvalue()


def _ranges_text(models: SampledModels, ranges: Array, level: float, coverage: Coverage | None) -> str:
    """The intervals of all parameters that vary, with how they were found."""
    std = models.values.std(axis=0)
    rows = zip(models.names, models.units, models.center.tolist(), std.tolist(), ranges.tolist(), strict=True)
    data: dict[str, Any] = {
        "robot": models.robot.name,
        "samples": len(models),
        "seed": models.seed,
        "level": level,
        "notes": list(models.notes),
        "coverage": None if coverage is None else {**coverage.to_dict(), "errors": None},
        "parameters": {
            name: {"unit": unit, "center": center, "std": spread, "low": low, "high": high}
            for name, unit, center, spread, (low, high) in rows
            if spread > 0.0
        },
    }
    if data["coverage"] is not None:
        del data["coverage"]["errors"]
    head = [
        f"# Samples of {models.robot.name}, drawn with dynident {__version__}.",
        f"# low and high hold {100.0 * level:.3g} % of the samples of a parameter. Numbers drawn one by one from these",
        "# intervals are further apart than the samples, whose covariance is that of the data.",
    ]
    return "\n".join([*head, yaml_text(data)])


# ----------------------------------------------------------------------------------------------------------------------
# Models: one file for each sample.


def _write_models(models: SampledModels, place: Path, form: str, from_scratch: bool) -> Exported:
    """Write and read back every model; the first one is proved as an export is."""
    ending = "xml" if form == "mjcf" else "urdf"
    width = max(4, len(str(len(models) - 1)))
    paths = [place / f"model_{k:0{width}d}.{ending}" for k in range(len(models))]
    text, first = _writer(models, paths[0], form, from_scratch)
    for k, path in enumerate(paths[1:], 1):
        write_bytes(path, text(k))
        try:
            read = _read_mjcf(path) if form == "mjcf" else _read_urdf(path)
        except Exception as error:
            path.unlink(missing_ok=True)
            raise ExportError(f"{path}: cannot be read back: {' '.join(str(error).split())}") from None
        _compare(models, k, path, *read)
    return first


def sample_model(models: SampledModels, sample: int | None) -> IdentifiedModel:
    """A sample, or the center, as what files are written from."""
    found = models.mapping(sample)
    drives = models.drives(sample) if "delay" in found else None
    own = found if drives is None else drives.parameters
    values = {**models.robot.value_set(), **{n: x for n, x in own.items() if n in models.robot.parameter_names}}
    what = "the values that samples are drawn around" if sample is None else f"sample {sample} of {len(models)}"
    gains = None if models.kp is None or models.kd is None or not models.kp.any() else (models.kp, models.kd)
    control = control_of(models.robot, values, gains)
    if control is not None and drives is not None:
        control = PositionControl(*true_gains(control.kp, control.kd, drives), drives.bias, drives.delay)
    return IdentifiedModel(models.robot, values, f"{what}, seed {models.seed}", control=control)


def _writer(
    models: SampledModels, path: Path, form: str, from_scratch: bool
) -> tuple[Callable[[int], bytes], Exported]:
    """What makes the text of a sample, and the proof of the first."""
    one, robot = sample_model(models, 0), models.robot
    kept = edited_file(robot, "mujoco" if form == "mjcf" else "robot", None, from_scratch)
    if form == "urdf":
        first = export_urdf(robot, one.values, path, from_scratch=from_scratch, note=one.note)

        def urdf(sample: int) -> bytes:
            own = sample_model(models, sample)
            return urdf_text(robot, own.values, path, kept, note=own.note).content

        return urdf, first
    first = export_mjcf(robot, one.values, path, from_scratch=from_scratch, note=one.note, control=one.control)
    writer = MjcfWriter(robot, path, kept)

    def mjcf(sample: int) -> bytes:
        own = sample_model(models, sample)
        return writer.text(own.values, note=own.note, control=own.control).content

    return mjcf, first


def _read_mjcf(path: Path) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Damping and armature of each joint in a file, by its name, as MuJoCo reads it."""
    model = compiled_mjcf(path)
    names = [model.joint(j).name for j in range(model.njnt)]
    dofs = [int(model.joint(j).dofadr[0]) for j in range(model.njnt)]
    damping, armature = model.dof_damping[dofs].tolist(), model.dof_armature[dofs].tolist()
    return dict(zip(names, damping, strict=True)), dict(zip(names, armature, strict=True))


def _read_urdf(path: Path) -> tuple[Mapping[str, float], None]:
    """Damping of each joint in a file, by its name, as dynident reads it; a URDF has no armature."""
    robot = load_robot(path)
    values = robot.value_set()
    return {joint.name: values.get(f"Fv{joint.number}", 0.0) for joint in robot.joints}, None


def _compare(
    models: SampledModels,
    sample: int,
    path: Path,
    damping: Mapping[str, float],
    armature: Mapping[str, float] | None,
) -> None:
    """Refuse a file whose joints have other numbers than the sample."""
    own = models.mapping(sample)
    try:
        drives = drive_elements(models.robot)
    except InputError:  # motors that turn with several joints, whose numbers are not those of joints
        return
    for drive in drives:
        pairs = [(damping, "Fv"), *([(armature, "Ia")] if armature is not None else [])]
        for numbers, symbol in pairs:
            name = drive.name(symbol)
            if name in own and abs(numbers.get(drive.joint, np.nan) - own[name]) > _SAME * abs(own[name]):
                path.unlink(missing_ok=True)
                raise ExportError(f"{path}: {name} is not read back as the {own[name]:.6g} of sample {sample}")


_SAME = 1e-9
