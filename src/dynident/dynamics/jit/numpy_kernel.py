"""Runs a program on batches with NumPy: block by block, so that the intermediate values stay in cache."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.jit.program import LEAVES, UNARY, Op, Program
from dynident.errors import InputError

_UFUNC: dict[Op, Callable[..., Any]] = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.DIV: np.divide,
    Op.NEG: np.negative,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.SIGN: np.sign,
    Op.TANH: np.tanh,
    Op.ABS: np.absolute,
    Op.EXP: np.exp,
    Op.LOG: np.log,
}
BLOCK = 512  # samples: a few hundred live values of 4 KiB fit a second-level cache


class NumpyKernel:
    """A program ready to run (see `BatchKernel`).

    Every value lives in a numbered slot: first the inputs, then the constants, the output rows and the buffers.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._constants = [np.array(value) for value in program.constants]
        first_output = len(program.inputs) + len(self._constants)
        slots, self._n_buffers = _slots(program, first_output)
        self._steps: list[tuple[Callable[..., Any], int, int, int]] = []
        for node, (op, a, b) in enumerate(program.instructions):
            if op not in LEAVES:
                self._steps.append((_UFUNC[op], slots[a], -1 if op in UNARY else slots[b], slots[node]))
        for row, node in enumerate(program.outputs):
            if slots[node] != first_output + row:  # an input, a constant, or a value that two outputs share
                self._steps.append((np.positive, slots[node], -1, first_output + row))

    def __call__(self, inputs: Sequence[Array], out: Array, rows: Sequence[int] | None = None) -> None:
        """Evaluate the program.

        Args:
            inputs: One array per program input: (n_samples,) or a scalar, which holds for all samples.
            out: (n_rows, n_samples), written.
            rows: Row of each output; default 0, 1, 2, ...
        """
        n_samples = out.shape[1]
        targets = [out[row] for row in (range(len(out)) if rows is None else rows)]
        buffers = np.empty((self._n_buffers, min(BLOCK, n_samples)))
        with np.errstate(divide="ignore", invalid="ignore"):  # callers check the result and name the sample
            for start in range(0, n_samples, BLOCK):
                stop = min(start + BLOCK, n_samples)
                given = [x if np.ndim(x) == 0 else np.ascontiguousarray(x[start:stop]) for x in inputs]
                outputs = [target[start:stop] for target in targets]
                self._block([*given, *self._constants, *outputs, *buffers[:, : stop - start]])

    def _block(self, slots: list[Any]) -> None:
        for function, a, b, into in self._steps:
            if b < 0:
                function(slots[a], slots[into])
            else:
                function(slots[a], slots[b], slots[into])


def _slots(program: Program, first_output: int) -> tuple[list[int], int]:
    """The slot of every node (values alive at the same time never share one) and the number of buffers."""
    instructions = program.instructions
    first_buffer = first_output + len(program.outputs)
    output_row: dict[int, int] = {}
    for row, node in enumerate(program.outputs):
        output_row.setdefault(node, row)
    last_use = list(range(len(instructions)))
    for node, (op, a, b) in enumerate(instructions):
        if op not in LEAVES:
            last_use[a] = node
            if op not in UNARY:
                last_use[b] = node
    ends: dict[int, list[int]] = {}
    for node, end in enumerate(last_use):
        ends.setdefault(end, []).append(node)
    slots: list[int] = []
    free: list[int] = []
    n_buffers = 0
    for node, (op, a, _) in enumerate(instructions):
        if op == Op.INPUT:
            slots.append(a)
        elif op == Op.CONST:
            slots.append(len(program.inputs) + a)
        elif node in output_row:
            slots.append(first_output + output_row[node])
        elif free:
            slots.append(free.pop())
        else:
            slots.append(first_buffer + n_buffers)
            n_buffers += 1
        free.extend(slots[done] for done in ends.get(node, ()) if slots[done] >= first_buffer)
    return slots, n_buffers


# ----------------------------------------------------------------------------------------------------------------------
# Which back end runs: machine code by LLVM, or NumPy.

CHOICES = ("auto", "numpy", "llvm")


_steady: ContextVar[bool] = ContextVar("_steady", default=False)


@contextlib.contextmanager
def one_backend() -> Iterator[None]:
    """Within it short batches are compiled too, so that rounding does not depend on how many samples came before."""
    token = _steady.set(True)
    try:
        yield
    finally:
        _steady.reset(token)


def chosen_backend() -> str:
    """ "auto", "numpy" or "llvm": DYNIDENT_BACKEND, and numpy with a warning where llvmlite is not installed."""
    chosen = os.environ.get("DYNIDENT_BACKEND", "auto")
    if chosen not in CHOICES:
        raise InputError(f"DYNIDENT_BACKEND is '{chosen}'; expected {', '.join(CHOICES)}")
    if chosen != "numpy" and not _has_llvm():
        if chosen == "llvm":
            raise InputError("DYNIDENT_BACKEND is 'llvm', but llvmlite is not installed: pip install llvmlite")
        return "numpy"
    return "llvm" if chosen == "auto" and _steady.get() else chosen


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
