"""Exported C code, compiled and called from Python; and a model with every friction term there is."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np

from dynident.dynamics.terms import TermsLike, all_columns, resolve_terms
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.estimate.prediction import TorqueModel
from dynident.export import CExport
from dynident.export.c_export import find_compiler
from dynident.robot.model import Robot

STRICT = ("-std=c99", "-O0", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wdouble-promotion", "-Werror")
_LAWS = [f"{law.name}({law.example})" if law.examples else law.name for law in FRICTION_LAWS.values()]
EVERYTHING = ",".join(["rigid,Ia,Fv,Fc(0.02),Fo", *_LAWS, "tilt,zero"])
SIZES = {"load": 0.05, "loadv": 0.05, "zero": 0.01, "tilt": 0.02, "jerk": 1e-3}


class CLibrary:
    """A shared library of an export; functions take and give NumPy arrays."""

    def __init__(self, export: CExport) -> None:
        self.export, self.kind = export, np.float64 if export.number == "double" else np.float32
        target = export.folder / f"{export.name}.so"
        compiler = find_compiler()
        assert compiler is not None
        command = [*compiler, *STRICT, "-shared", "-fPIC", "-o", str(target), str(export.files[1]), "-lm"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        self._library = ctypes.CDLL(str(target))

    def values(self, variant: str, size: int) -> np.ndarray:
        """The exported parameters."""
        real = ctypes.c_double if self.kind is np.float64 else ctypes.c_float
        return np.array((real * size).in_dll(self._library, f"{self.export.name}_{variant}"), dtype=self.kind)

    def memory(self) -> ctypes.Array:
        """Room for a memory, which has begun."""
        room = ctypes.create_string_buffer(4096)
        self.call("init", room)
        return room

    def call(self, function: str, *given: object, size: int | None = None) -> np.ndarray | None:
        """What a function writes into an array of some size."""
        arrays = [np.ascontiguousarray(x, dtype=self.kind) if isinstance(x, np.ndarray | list) else x for x in given]
        if size is not None:
            arrays.append(np.full(size, np.nan, dtype=self.kind))
        pointers = [x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else x for x in arrays]
        getattr(self._library, f"{self.export.name}_{function}")(*pointers)
        return arrays[-1] if size is not None else None


def with_everything(robot: Robot, terms: TermsLike = EVERYTHING, seed: int = 3) -> TorqueModel:
    """A robot with its own links and made-up friction of every kind."""
    resolved, rng, own = resolve_terms(terms), np.random.default_rng(seed), robot.value_set()
    columns = all_columns(robot, resolved)
    drawn = [rng.normal() * SIZES.get(column.term, 0.3) for column in columns]
    chi = [own.get(c.name, 0.0 if c.term == "rigid" else x) for c, x in zip(columns, drawn, strict=True)]
    return TorqueModel(robot, resolved, np.array(chi), robot.link_parameters().ravel())
