"""Checkpoints: everything an on-line identification remembers, as plain numbers in one npz file."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dynident.deprecated import current_names
from dynident.dynamics.terms import stored_terms
from dynident.errors import DynidentError, InputError
from dynident.files import check_target, write_bytes
from dynident.identifiability.base import base_parameters
from dynident.limits import RefusedError
from dynident.online.options import OnlineOptions
from dynident.online.prior import Prior
from dynident.online.rows import SeriesStructure
from dynident.options import from_mapping
from dynident.readers import reader, reason_of
from dynident.robot.model import Robot
from dynident.sealed import read_sealed, sealed_archive

if TYPE_CHECKING:
    from dynident.online.identifier import OnlineIdentifier

FORMAT = "dynident on-line checkpoint 3"
_KIND = "dynident on-line checkpoint"  # what the seal calls it
T = TypeVar("T", bound="OnlineIdentifier")
_KNOWN = ("beta", "covariance", "determined", "sigma")  # arrays of a prior


def save(identifier: OnlineIdentifier, path: str | Path) -> None:
    """Write a checkpoint; an older one stays until the new one is complete."""
    write_bytes(path, checkpoint_bytes(identifier))


def checkpoint_bytes(identifier: OnlineIdentifier) -> bytes:
    """What a checkpoint holds."""
    known = identifier.known
    head: dict[str, Any] = {
        "format": FORMAT,
        "robot": identifier.robot.fingerprint,
        "terms": [term.key_on(known.base.robot) for term in known.base.terms],
        "payload": identifier.payload,
        "options": identifier.options.as_dict(),
        "heard": list(identifier.heard),
        "prior": known.words,
        "notes": list(known.notes),
        "structure": identifier.structure.name,
    }
    arrays: dict[str, Any] = {
        **{f"known.{name}": getattr(known, name) for name in _KNOWN},
        "known.inflation": np.array(known.inflation),
        "known.weights_given": np.array(known.weights_given),
        **({} if known.reference is None else {"known.reference": known.reference}),
        **identifier.memory_arrays(),
    }
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    return sealed_archive(_KIND, {"head": text, **arrays})


@reader("checkpoint", InputError, argument="path")
def load(cls: type[T], path: str | Path, robot: Robot, structure: SeriesStructure | None) -> T:
    """Continue from a checkpoint.

    Raises:
        InputError: When the file is no checkpoint, is damaged, or belongs to another robot.
    """
    head, arrays = _read(path)
    if head["robot"] != robot.fingerprint:
        raise InputError(f"{path}: the checkpoint belongs to another robot than {robot.name}; give its own")
    try:
        return _continue_from(cls, path, robot, structure, head, arrays)
    except KeyError as missing:
        raise InputError(f"{path}: the checkpoint lacks {missing}; start without it") from None
    except DynidentError:
        raise
    except Exception as error:  # an array that does not fit can make any part of it fail
        words = f"the checkpoint does not fit together ({reason_of(error)}); start without it"
        raise InputError(f"{path}: {words}") from error


def _continue_from(
    cls: type[T],
    path: str | Path,
    robot: Robot,
    structure: SeriesStructure | None,
    head: dict[str, Any],
    arrays: dict[str, Any],
) -> T:
    terms = stored_terms(robot, head["terms"])
    base = base_parameters(robot, terms)
    if arrays["known.beta"].shape != (base.n,):
        raise InputError(f"{path}: the checkpoint has {len(arrays['known.beta'])} base parameters, the robot {base.n}")
    known = Prior(
        base,
        **{name: arrays[f"known.{name}"] for name in _KNOWN},
        words=head["prior"],
        reference=arrays.get("known.reference"),
        notes=tuple(head["notes"]),
        inflation=float(arrays.get("known.inflation", 1.0)),  # checkpoints of earlier versions have none
        weights_given=bool(arrays.get("known.weights_given", False)),
    )
    own, given = head["structure"], (structure or SeriesStructure()).name
    if own != given:  # the torque would quietly come from elsewhere
        raise InputError(f"{path}: the checkpoint has the {own} structure, not the {given} one; give its own structure")
    identifier = cls.__new__(cls)
    options = from_mapping(OnlineOptions, current_names(head["options"]))
    identifier._start(robot, known, head["payload"], structure, options, tuple(head["heard"]))
    identifier.restore_memory(arrays)
    for name, array in identifier.memory_arrays().items():  # a scalar would have filled any shape
        if name in arrays and np.shape(arrays[name]) != np.shape(array):
            raise ValueError(f"{name} has shape {np.shape(arrays[name])} instead of {np.shape(array)}")
    return identifier


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        arrays = read_sealed(path, _KIND)
        head = json.loads(bytes(arrays.pop("head")))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such checkpoint") from None
    except RefusedError:
        raise
    except Exception as error:  # a damaged file can make any part of it fail
        raise InputError(
            f"{path}: is no checkpoint of an on-line identification, or damaged ({reason_of(error)}); start without it"
        ) from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InputError(f"{path}: is no '{FORMAT}'; start without it")
    return head, arrays


# ----------------------------------------------------------------------------------------------------------------------
# Checkpoints of a stream: written beside it, so that no sample has to wait for a disk.


class Checkpoints:
    """Saves an estimator every few seconds: packed between two samples, written to disk on a thread of its own.

    Args:
        identifier: The estimator; it goes on changing.
        path: File to write; an older one stays until the new one is complete.
        every: Real time between checkpoints [s].

    Raises:
        InputError: If there can be no such file.
    """

    def __init__(self, identifier: OnlineIdentifier, path: str | PathLike[str], every: float = 5.0) -> None:
        check_target(str(path))
        self._identifier, self._path, self._every = identifier, path, every
        self._next = time.monotonic() + every
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None

    def when_due(self) -> None:
        """Begin a checkpoint if it is time and the last one is done.

        Raises:
            DynidentError, OSError: If the last one could not be written.
        """
        if time.monotonic() < self._next or (self._writing is not None and not self._writing.done()):
            return
        self._wait()
        self._next = time.monotonic() + self._every
        self._writing = self._pool.submit(write_bytes, str(self._path), self._identifier.checkpoint())

    def finish(self) -> None:
        """Write the last one, and wait for it."""
        try:
            self._wait()
            write_bytes(str(self._path), self._identifier.checkpoint())
        finally:
            self._pool.shutdown()

    def _wait(self) -> None:
        """Until the last one is written; raises why it could not be."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()
