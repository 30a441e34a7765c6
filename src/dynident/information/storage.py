"""Information on disk: one .npz of arrays and a JSON schema, never pickle, put in place in one step."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import frozen
from dynident.dynamics.terms import Column
from dynident.errors import DynidentError
from dynident.files import write_whole
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import Factor
from dynident.information.information import Information, Segment

_FORMAT = "dynident information 1"
_DAMAGE = (KeyError, ValueError, TypeError, IndexError, AttributeError, OSError, EOFError, zipfile.BadZipFile)


class InformationFileError(DynidentError):
    """A file that does not hold an information factor."""


def save(information: Information, path: str | Path) -> None:
    """Write the information; an existing file stays as it is until the new one is complete."""
    coordinates = information.coordinates
    schema: dict[str, Any] = {
        "format": _FORMAT,
        "columns": [asdict(column) for column in coordinates.columns],
        "definitions": list(information.definitions),
        "independent": list(coordinates.independent),
        "channels": list(information.channels),
        "segments": [
            {
                "label": segment.label,
                **({} if segment.span is None else {"span": list(segment.span)}),
                "columns": [list(factor.columns) for factor in segment.factors],
                "n_rows": [factor.n_rows for factor in segment.factors],
            }
            for segment in information.segments
        ],
    }
    arrays = {"K": coordinates.K}
    for s, segment in enumerate(information.segments):
        for c, factor in enumerate(segment.factors):
            arrays[f"R{s}_{c}"] = factor.R[np.triu_indices(len(factor.R))]
    text = np.frombuffer(json.dumps(schema).encode(), dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, schema=text, **arrays))  # type: ignore[arg-type]


def load_information(path: str | Path) -> Information:
    """Read what `Information.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            schema = json.loads(bytes(stored["schema"]).decode())
            if schema.get("format") != _FORMAT:
                raise InformationFileError(f"{path}: format is {schema.get('format')!r}; expected '{_FORMAT}'")
            arrays = {name: stored[name] for name in stored.files if name != "schema"}
            return _rebuild(schema, arrays)
    except FileNotFoundError:
        raise InformationFileError(f"{path}: no such file") from None
    except _DAMAGE as error:
        raise InformationFileError(
            f"{path}: is not a file that dynident saved, or it is damaged ({error}); accumulate the data again"
        ) from None


def _rebuild(schema: dict[str, Any], arrays: dict[str, Any]) -> Information:
    columns = tuple(Column(**column) for column in schema["columns"])
    K = frozen(arrays["K"])
    independent = tuple(schema["independent"])
    if K.shape != (len(independent), len(columns)):
        raise ValueError("K does not fit the columns")
    if len(schema["definitions"]) != len(columns):
        raise ValueError("the definitions do not fit the columns")
    segments = []
    for s, record in enumerate(schema["segments"]):
        if len(record["columns"]) != len(schema["channels"]):
            raise ValueError("a segment does not fit the channels")
        factors = []
        for c, (own, n_rows) in enumerate(zip(record["columns"], record["n_rows"], strict=True)):
            if not all(0 <= column < len(independent) for column in own):
                raise ValueError("a factor names a column that does not exist")
            R = np.zeros((len(own) + 1, len(own) + 1))
            R[np.triu_indices(len(R))] = arrays[f"R{s}_{c}"]
            if not np.isfinite(R).all():
                raise ValueError("a factor is not finite")
            factors.append(Factor(tuple(own), R, n_rows))
        span = None if "span" not in record else (float(record["span"][0]), float(record["span"][1]))
        segments.append(Segment(record["label"], tuple(factors), span))
    return Information(
        Regrouping(columns, independent, K),
        tuple(schema["definitions"]),
        tuple(schema["channels"]),
        tuple(segments),
    )
