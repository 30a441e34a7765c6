"""`export_fleet`: model files of every robot of a fleet in one go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.estimate.storage import load_fit
from dynident.export.fit_export import export_fit
from dynident.fleet.store import FleetStore

_ENDINGS = {"urdf": ".urdf", "mjcf": ".xml", "yaml": ".yaml", "c": ""}


def export_fleet(
    store: str | Path | FleetStore, folder: str | Path, formats: Sequence[str], robots: Sequence[str] = ()
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Write the model of each robot, checked as `export` does, to FOLDER/SERIAL.urdf, ..; C code to FOLDER/SERIAL.

    Args:
        store: The store that `run_fleet` has filled.
        folder: Where to; made if it is not there.
        formats: Some of urdf, mjcf, yaml and c.
        robots: Serial numbers; empty for all.

    Returns:
        Files that were written, by robot; and the robots whose model cannot be, with the reason.
    """
    own = store if isinstance(store, FleetStore) else FleetStore.open(store)
    for name in formats:
        if name not in _ENDINGS:
            raise UnknownNameError("format", name, tuple(_ENDINGS))
    if not formats:
        raise InputError(f"which formats? Give some of {', '.join(_ENDINGS)}")
    known = sorted({row["robot"] for row in own.answers("robots")})
    for serial in robots:
        if serial not in known:
            raise UnknownNameError("robot", serial, known)
    if not known:
        raise InputError(f"{own.folder}: has no robot with parameters; `dynident fleet run` identifies them")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be made ({error.strerror}); choose another folder") from None
    written: dict[str, list[str]] = {}
    failed: dict[str, str] = {}
    for serial in robots or known:
        files: dict[str, Any] = {name: str(target / f"{serial}{_ENDINGS[name]}") for name in formats}
        try:
            export_fit(load_fit(own.folder / "robots" / serial), **files)
        except DynidentError as error:  # one robot that cannot be written does not stop the others
            failed[serial] = str(error)
        else:
            written[serial] = list(files.values())
    return written, failed
