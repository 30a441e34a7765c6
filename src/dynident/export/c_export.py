"""Export to C: dependency-free C99 that computes what the library computes, written once it has proved that."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from dynident.errors import InputError, UnknownNameError
from dynident.export.c_check import CAgreement, CExportError, compared, find_compiler
from dynident.export.c_files import MARK, CCode, counts_table
from dynident.export.c_functions import c_functions, mass_is_known
from dynident.export.c_model import Exportable, c_model
from dynident.export.c_writing import CNumber, Counts
from dynident.files import write_text

_UNCHECKED = "Not compared with the library: no C compiler was found."


@dataclass(frozen=True, eq=False)
class CExport:
    """C code that was written.

    Attributes:
        folder: Where.
        name: Prefix of all names in C.
        number: "double" or "float".
        files: Header and source.
        counts: Operations of each function; names that end in "_standard" are the variants for standard parameters.
        agreement: With the library; None where there is no compiler.
        notes: What a user should know, in words.
    """

    folder: Path
    name: str
    number: CNumber
    files: tuple[Path, ...]
    counts: Mapping[str, Counts]
    agreement: CAgreement | None
    notes: tuple[str, ...]

    def table(self) -> str:
        """Operations of all functions, and how the code was checked."""
        return "\n".join([*counts_table(self.counts), *self.notes])


def export_c(given: Exportable, folder: str | Path, *, number: CNumber = "double", name: str | None = None) -> CExport:
    """Write the dynamics of a robot as C99: a header and a source file that need nothing but the maths library.

    The code is compiled and compared with the library on random states first, and written only if it agrees to 1e-12
    (float: 1e-5) of the size of each output. Without a compiler it is written, and says that it was not compared.

    Args:
        given: An estimate, a model with values, or a robot with its own values.
        folder: Where to; made if it does not exist.
        number: Precision.
        name: Prefix of all names in C, and name of the files; default the robot's name.

    Raises:
        InputError: For what C cannot express, an unusable name, or a file that the export did not write.
        CExportError: When the code disagrees with the library; nothing is written.
    """
    if number not in get_args(CNumber):
        raise UnknownNameError("C number type", str(number), get_args(CNumber))
    model = c_model(given)
    prefix = _identifier(model.robot.name) if name is None else _checked(name)
    files = tuple(Path(folder) / f"{prefix}.{suffix}" for suffix in ("h", "c"))
    _check_folder(Path(folder), files)
    code = CCode(prefix, number, model, c_functions(model))
    source, compiler = code.source(), find_compiler()
    agreement = None if compiler is None else compared(code, code.header(""), source, compiler)
    if agreement is not None and not agreement.passed:
        raise CExportError(f"C code of {model.robot.name} is wrong and was not written. {agreement.words()}")
    verdict = _UNCHECKED if agreement is None else agreement.words()
    notes = [verdict, *model.remarks]
    if not mass_is_known(model.robot):
        notes.append("No mass matrix: the motor of a locked joint also drives a moving one.")
    _put(files, (code.header(verdict), source))
    return CExport(Path(folder), prefix, number, files, code.counts, agreement, tuple(notes))


def _put(files: tuple[Path, ...], texts: tuple[str, ...]) -> None:
    """Both files or none: written aside, then put in place, which needs no room on the disk."""
    folder = files[0].parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export") as aside:
            for path, text in zip(files, texts, strict=True):
                write_text(Path(aside) / path.name, text)
            for path in files:
                os.replace(Path(aside) / path.name, path)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None


def _identifier(name: str) -> str:
    """A robot's name as a name in C."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return plain if re.match(r"[a-z]", plain) else f"robot_{plain}".rstrip("_")


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII):
        raise InputError(f"name '{name}' cannot begin names in C; expected a letter, then letters, digits, underscores")
    return name


def _check_folder(folder: Path, files: tuple[Path, ...]) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    for path in files:
        if path.exists() and not (path.is_file() and MARK in path.read_text(errors="replace")[:200]):
            raise InputError(f"{path}: exists and was not written by this export; choose another name or folder")
