"""The streaming kernel: samples in, triangular factors out, nothing in between ever leaves the cache.

Per block of samples: inputs are gathered into rows, the robot's program fills one slab per output channel with just the
columns that channel feels, the torque becomes the last column, and each slab is absorbed into the channel's factor.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from dynident.arrays import Array
from dynident.dynamics.jit.llvm_kernel import VERSION, aligned_array, emit_program, gather, shorter, strided_copy
from dynident.dynamics.jit.machine_code import compile_module
from dynident.dynamics.jit.program import Program
from dynident.dynamics.jit.vector_ir import INT, POINTER, VOID, Emitter, integer, number
from dynident.information.householder import runtime

BLOCK = 192  # samples: the slabs of a 6-joint arm fit the second-level cache
ROW = BLOCK + 8  # whole cache lines, and no power of two, which would crowd the cache
_VERSION = "stream 2"


_ARGUMENTS = (
    *("given", "strides", "n_inputs", "taus", "tau_strides", "weights", "weight_strides", "weighted", "n_samples"),
    *("scratch", "slab", "widths", "n_channels", "factors", "bad"),
)
_NUMBERS = {"n_inputs", "weighted", "n_samples", "n_channels"}


class _StreamEmitter:
    """Emits `stream`: gather, fill, weigh, check and absorb block after block; stops at a block with a bad number."""

    def __init__(self, emitter: Emitter) -> None:
        kinds = [INT if name in _NUMBERS else POINTER for name in _ARGUMENTS]
        self.e, self.b = emitter, emitter.builder
        self.a = dict(zip(_ARGUMENTS, emitter.function("stream", kinds), strict=True))
        self.row = integer(ROW)
        absorbs = ir.FunctionType(VOID, [POINTER, INT, POINTER, INT, INT, INT])
        self.absorb = ir.Function(emitter.module, absorbs, "dynident_absorb")

    def emit(self) -> None:
        """The whole function."""
        self.e.each(integer(0), self.a["n_samples"], BLOCK, self._turn)
        self.b.ret_void()

    def _turn(self, start: Any) -> None:
        """One block."""
        e, b, a = self.e, self.b, self.a
        count = shorter(e, a["n_samples"], start, BLOCK)
        width = integer(e.width)
        padded = b.and_(b.add(count, b.sub(width, integer(1))), b.sub(integer(0), width))
        gather(e, a["given"], a["strides"], a["n_inputs"], start, count, a["scratch"], self.row)
        b.call(e.module.globals["fill"], [a["scratch"], a["slab"], count])
        self._channels(lambda channel, first, own, _: self._torque(channel, first, own, start, count, padded))
        with b.if_then(b.icmp_signed("!=", a["weighted"], integer(0))):
            self._channels(lambda channel, first, own, _: self._weigh(channel, first, own, start, count, padded))
        with b.if_else(self._is_bad(padded)) as (then, otherwise):
            with then:
                b.store(start, a["bad"])
                b.ret_void()
            with otherwise:
                self._channels(lambda _, first, own, offset: self._absorb(first, own, offset, padded))

    def _channels(self, body: Callable[[Any, Any, Any, Any], None]) -> None:
        """body(channel, first slab column, width, factor offset) for every channel."""
        e, b = self.e, self.b

        def one(channel: Any, carried: list[Any]) -> list[Any]:
            first, offset = carried
            own = e.load_integer(self.a["widths"], channel)
            body(channel, first, own, offset)
            return [b.add(first, own), b.add(offset, b.mul(own, own))]

        e.loop(integer(0), self.a["n_channels"], 1, [integer(0), integer(0)], one)

    def _last(self, first: Any, own: Any) -> Any:
        """Offset of a channel's torque, the last column of its slab."""
        return self.b.mul(self.b.sub(self.b.add(first, own), integer(1)), self.row)

    def _torque(self, channel: Any, first: Any, own: Any, start: Any, count: Any, padded: Any) -> None:
        """Put the torque beside the columns, and zeros where a short block has no samples."""
        e, b, slab = self.e, self.b, self.a["slab"]
        target = self._last(first, own)
        strided_copy(e, self.a["taus"], self.a["tau_strides"], channel, start, count, slab, target)

        def silence(column: Any) -> None:
            at = b.mul(b.add(first, column), self.row)
            e.each(count, padded, 1, lambda k: e.store(number(0.0), slab, b.add(at, k)))

        e.each(integer(0), own, 1, silence)

    def _weigh(self, channel: Any, first: Any, own: Any, start: Any, count: Any, padded: Any) -> None:
        """Multiply a channel's rows by the roots of their weights, which pass through a spare row of scratch."""
        e, b, a = self.e, self.b, self.a
        spare = b.mul(a["n_inputs"], self.row)
        strided_copy(e, a["weights"], a["weight_strides"], channel, start, count, a["scratch"], spare)

        def column(i: Any) -> None:
            at = b.mul(b.add(first, i), self.row)

            def multiply(k: Any) -> None:
                w = e.vload(a["scratch"], b.add(spare, k))
                e.vstore(b.fmul(w, e.vload(a["slab"], b.add(at, k))), a["slab"], b.add(at, k))

            e.each(integer(0), padded, e.width, multiply)

        e.each(integer(0), own, 1, column)

    def _is_bad(self, padded: Any) -> Any:
        """Whether an input or a torque is infinite or not a number."""
        e, b, a = self.e, self.b, self.a
        total = self._zero_times(a["scratch"], a["n_inputs"], padded, e.constant(0.0))

        def one(channel: Any, carried: list[Any]) -> list[Any]:
            first, so_far = carried
            own = e.load_integer(a["widths"], channel)
            torque = e.at(a["slab"], self._last(first, own))
            return [b.add(first, own), self._zero_times(torque, integer(1), padded, so_far)]

        total = e.loop(integer(0), a["n_channels"], 1, [integer(0), total], one)[1]
        return b.fcmp_unordered("!=", e.total(total), number(0.0))

    def _zero_times(self, rows: Any, n_rows: Any, padded: Any, total: Any) -> Any:
        """total + 0 x for every number x: stays zero unless one is bad."""
        e, b = self.e, self.b

        def one(i: Any, sums: list[Any]) -> list[Any]:
            start = b.mul(i, self.row)

            def add(k: Any, inner: list[Any]) -> list[Any]:
                return [e.fma(e.vload(rows, b.add(start, k)), e.constant(0.0), inner[0])]

            return e.loop(integer(0), padded, e.width, sums, add)

        return e.loop(integer(0), n_rows, 1, [total], one)[0]

    def _absorb(self, first: Any, own: Any, offset: Any, padded: Any) -> None:
        """A channel's slab into its factor."""
        slab = self.e.at(self.a["slab"], self.b.mul(first, self.row))
        self.b.call(self.absorb, [self.e.at(self.a["factors"], offset), own, slab, self.row, padded, own])


class Stream:
    """The compiled accumulator of a program (see `accumulate`).

    Args:
        program: The entries of the regressor.
        columns: For each output the columns it depends on.
        slots: For each entry its line among all, where the torque follows the columns of each output.
    """

    def __init__(self, program: Program, columns: Sequence[tuple[int, ...]], slots: tuple[int, ...]) -> None:
        self.n_inputs = len(program.inputs)
        widths = [len(own) + 1 for own in columns]
        self._own = threading.local()

        def emit(emitter: Emitter) -> None:
            emit_program(emitter, program, slots, ROW)
            _StreamEmitter(emitter).emit()

        self._absorb_code = runtime()  # kept alive: the stream calls into it
        symbols = {"dynident_absorb": self._absorb_code.address("absorb")}
        self._code = compile_module(
            f"{_VERSION} {VERSION} {BLOCK} {slots} {widths} {program.fingerprint}", emit, symbols
        )
        kinds = [ctypes.c_int64 if name in _NUMBERS else ctypes.c_void_p for name in _ARGUMENTS]
        self._stream = self._code.function("stream", kinds)
        self._widths = np.array(widths, dtype=np.int64)

    def _workspace(self) -> tuple[Array, Array]:
        """Scratch for the inputs (and one row of weights) and the slabs, kept for each thread."""
        if not hasattr(self._own, "rows"):
            self._own.rows = aligned_array((self.n_inputs + 1) * ROW), aligned_array(int(self._widths.sum()) * ROW)
        rows: tuple[Array, Array] = self._own.rows
        return rows

    def absorb(
        self,
        inputs: list[Array],
        taus: list[Array],
        weights: list[Array] | None,
        factors: Array,
    ) -> bool:
        """Absorb samples into the factors.

        Args:
            inputs: One (n_samples,) array per program input, any stride.
            taus: One (n_samples,) array per channel.
            weights: Square roots of the rows' weights, one (n_samples,) array per channel, or None.
            factors: Updated in place.

        Returns:
            False if a number was not finite; the factors are then not to be used.
        """
        scratch, slab = self._workspace()
        bad = np.full(1, -1, dtype=np.int64)
        columns = [_addresses(arrays) for arrays in (inputs, taus, taus if weights is None else weights)]
        (given, strides), (torque, torque_strides), (weight, weight_strides) = columns
        arguments = {
            "given": given.ctypes.data,
            "strides": strides.ctypes.data,
            "n_inputs": len(inputs),
            "taus": torque.ctypes.data,
            "tau_strides": torque_strides.ctypes.data,
            "weights": weight.ctypes.data,
            "weight_strides": weight_strides.ctypes.data,
            "weighted": int(weights is not None),
            "n_samples": len(taus[0]),
            "scratch": scratch.ctypes.data,
            "slab": slab.ctypes.data,
            "widths": self._widths.ctypes.data,
            "n_channels": len(taus),
            "factors": factors.ctypes.data,
            "bad": bad.ctypes.data,
        }
        self._stream(*(arguments[name] for name in _ARGUMENTS))
        if int(bad[0]) >= 0:
            del self._own.rows  # bad numbers may linger where the next short block only pads
            return False
        return True


def _addresses(arrays: list[Array]) -> tuple[Any, Any]:
    """Pointers and strides (in doubles) of one-dimensional arrays."""
    pointers = np.array([x.ctypes.data for x in arrays], dtype=np.int64)
    return pointers, np.array([x.strides[0] // 8 for x in arrays], dtype=np.int64)
