"""What is known before a motion is chosen: the information of an identification, from the folder it wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dynident.arrays import frozen
from dynident.dynamics.terms import along_terms
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.storage import load_fit
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information
from dynident.information.storage import load_information
from dynident.robot.model import Robot
from dynident.signals.rows import DELAY


def known_options(path: str | Path, robot: Robot) -> dict[str, Any]:
    """Options of `excite` that make a motion complement data that is there already.

    Args:
        path: Folder that `identify` wrote (or its fit.yaml), or a file of information (.npz).
        robot: The robot of the motion.

    Returns:
        The `information`; of a folder also the `rate` of its rows and the `inflation` of their residuals.

    Raises:
        InputError: When the folder holds no factors of a log, or they belong to another robot.
    """
    place = Path(path)
    if place.is_file() and place.suffix == ".npz":
        return {"information": load_information(place)}
    fit = load_fit(place)
    if fit.robot.joint_names != robot.joint_names:
        own, other = ", ".join(robot.joint_names), ", ".join(fit.robot.joint_names)
        raise InputError(f"{path}: was identified with the joints {other}; this robot moves {own}")
    folder = place if place.is_dir() else place.parent
    found: dict[str, Information] = {}
    exact: set[str] = set()  # logs whose rows away from reversals have been found
    for file in sorted((folder / "factors").glob("*.npz"), key=lambda file: file.stat().st_mtime):
        part = load_information(file)
        if not set(fit.names) <= set(part.names):
            continue  # a pass on the way to the fit
        of_parameters = DELAY in part.names
        for label in {segment.label for segment in part.segments}:
            if of_parameters or label not in exact:  # of several passes the last one counts, none twice
                found[label] = _of_fit(part, fit)
            exact |= {label} if of_parameters else set()
    missing = [record.label for record in fit.data if record.label not in found]
    if missing:
        raise InputError(f"{path}: has no factors of {missing[0]}; run identify again with -o {folder}")
    parts = [found[record.label] for record in fit.data]
    whole = sum(parts[1:], start=parts[0])
    along = {column.name for term in along_terms(fit.base.terms) for column in term.columns(fit.robot)}
    seconds = sum(record.duration for record in fit.data)
    inflation = {name: float(x) for name, x in zip(whole.channels, fit.inflation, strict=True)}
    return {
        "information": _of_state(whole, along),
        "rate": whole.n_rows / (len(whole.channels) * seconds),
        "inflation": {name: inflation[name] for name in robot.joint_names},
    }


def _of_fit(part: Information, fit: Fit) -> Information:
    """The factors of a pass, which may have had more terms, over the parameters of the fit."""
    meaning = dict(zip((column.name for column in part.coordinates.columns), part.definitions, strict=True))
    places = [part.names.index(name) for name in fit.names]
    return part.reordered(places, fit.base, tuple(meaning[column.name] for column in fit.base.columns))


def _of_state(whole: Information, along: set[str]) -> Information:
    """What the data says about parameters of the state, whatever friction that follows the motion may be."""
    if not along:
        return whole
    clear, old = whole.marginal(name for name in whole.names if name not in along), whole.coordinates
    kept = [j for j, column in enumerate(old.columns) if column.name not in along]
    place = {j: new for new, j in enumerate(kept)}
    coordinates = Regrouping(
        tuple(old.columns[j] for j in kept),
        tuple(place[j] for j in clear.coordinates.independent),
        frozen(clear.coordinates.K[:, kept]),
    )
    return replace(clear, coordinates=coordinates, definitions=tuple(whole.definitions[j] for j in kept))
