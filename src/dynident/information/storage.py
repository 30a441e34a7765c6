"""Information on disk: one .npz of three arrays, among them a JSON schema; never pickle, put in place in one step."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.terms import Column
from dynident.errors import DynidentError
from dynident.files import write_bytes
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import Factor
from dynident.information.information import Information, Segment
from dynident.limits import RefusedError
from dynident.readers import reader, reason_of
from dynident.schema import quote
from dynident.sealed import read_sealed, sealed_archive

_FORMAT = "dynident information 2"
_KIND = "dynident information"  # what the seal calls it
_SEPARATE = "dynident information 1"  # an array for each factor, whose making and reading takes most of the time


class InformationFileError(DynidentError):
    """A file that does not hold an information factor."""


def save(information: Information, path: str | Path) -> None:
    """Write the information; an existing file stays as it is until the new one is complete."""
    coordinates = information.coordinates
    schema: dict[str, Any] = {
        "format": _FORMAT,
        "columns": [vars(column) for column in coordinates.columns],
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
    triangles = [factor.R[_upper(len(factor.R))] for segment in information.segments for factor in segment.factors]
    text = np.frombuffer(json.dumps(schema).encode(), dtype=np.uint8)
    packed = np.concatenate([np.zeros(0), *triangles])
    write_bytes(path, sealed_archive(_KIND, {"schema": text, "K": coordinates.K, "R": packed}))


@reader("information", InformationFileError)
def load_information(path: str | Path) -> Information:
    """Read what `Information.save` wrote.

    Raises:
        InformationFileError: Naming the file and what is wrong with it.
    """
    try:
        stored = read_sealed(path, _KIND)
        schema = json.loads(bytes(stored["schema"]).decode())
        if schema.get("format") not in (_FORMAT, _SEPARATE):
            raise InformationFileError(f"{path}: format is {quote(schema.get('format'))}; expected '{_FORMAT}'")
        if schema["format"] == _SEPARATE:
            lines = [(s, c) for s, own in enumerate(schema["segments"]) for c in range(len(own["columns"]))]
            packed = np.concatenate([np.zeros(0), *(stored[f"R{s}_{c}"] for s, c in lines)])
        else:
            packed = stored["R"]
        return _rebuild(schema, stored["K"], packed)
    except FileNotFoundError:
        raise InformationFileError(f"{path}: no such file") from None
    except (DynidentError, RefusedError):
        raise
    except Exception as error:  # a damaged file can make any part of it fail
        raise InformationFileError(
            f"{path}: is damaged, or not a file of dynident ({reason_of(error)}); accumulate the data again"
        ) from error


def _rebuild(schema: dict[str, Any], relation: Array, packed: Array) -> Information:
    """The information of a schema, K and the triangles of all factors, line by line, one behind the other."""
    columns = tuple(Column(**column) for column in schema["columns"])
    K = frozen(relation)
    independent = tuple(schema["independent"])
    if K.shape != (len(independent), len(columns)):
        raise ValueError("K does not fit the columns")
    if len(schema["definitions"]) != len(columns):
        raise ValueError("the definitions do not fit the columns")
    if not np.isfinite(packed).all():
        raise ValueError("a factor is not finite")
    segments, end = [], 0
    for record in schema["segments"]:
        if len(record["columns"]) != len(schema["channels"]):
            raise ValueError("a segment does not fit the channels")
        factors = []
        for own, n_rows in zip(record["columns"], record["n_rows"], strict=True):
            if not all(0 <= column < len(independent) for column in own):
                raise ValueError("a factor names a column that does not exist")
            if (len(own) + 1) * (len(own) + 2) // 2 > len(packed) - end:  # before so much is allocated
                raise ValueError("the factors do not fit the columns")
            R = np.zeros((len(own) + 1, len(own) + 1))
            places = _upper(len(R))
            begin, end = end, end + len(places[0])
            R[places] = packed[begin:end]
            factors.append(Factor(tuple(own), R, n_rows))
        span = None if "span" not in record else (float(record["span"][0]), float(record["span"][1]))
        segments.append(Segment(record["label"], tuple(factors), span))
    if end != len(packed):
        raise ValueError("the factors do not fit the columns")
    return Information(
        Regrouping(columns, independent, K),
        tuple(schema["definitions"]),
        tuple(schema["channels"]),
        tuple(segments),
    )


@functools.lru_cache(maxsize=16)
def _upper(n: int) -> tuple[Any, ...]:
    """Rows and columns of an upper triangle, line by line."""
    return np.triu_indices(n)
