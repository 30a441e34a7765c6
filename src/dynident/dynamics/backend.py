"""Which back end runs: machine code by LLVM, or NumPy."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings

from dynident.errors import InputError

CHOICES = ("auto", "numpy", "llvm")


def chosen_backend() -> str:
    """ "auto", "numpy" or "llvm": DYNIDENT_BACKEND, and numpy with a warning where llvmlite is not installed."""
    chosen = os.environ.get("DYNIDENT_BACKEND", "auto")
    if chosen not in CHOICES:
        raise InputError(f"DYNIDENT_BACKEND is '{chosen}'; expected {', '.join(CHOICES)}")
    if chosen != "numpy" and not _has_llvm():
        if chosen == "llvm":
            raise InputError("DYNIDENT_BACKEND is 'llvm', but llvmlite is not installed: pip install llvmlite")
        return "numpy"
    return chosen


@functools.cache
def _has_llvm() -> bool:
    if importlib.util.find_spec("llvmlite") is not None:
        return True
    warnings.warn(
        "llvmlite is not installed: equations and factors are computed with NumPy, many times slower "
        "(pip install llvmlite)",
        RuntimeWarning,
        stacklevel=3,
    )
    return False
