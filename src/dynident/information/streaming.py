"""The streaming kernel: samples in, triangular factors out, nothing in between ever leaves the cache.

Per block of samples: inputs are gathered into rows, the robot's program fills one slab per output channel with just the
columns that channel feels, the torque becomes the last column, and each slab is absorbed into the channel's factor.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
from llvmlite import ir

from dynident.checks import Array
from dynident.dynamics.jit import compiled
from dynident.dynamics.llvm_backend import VERSION, aligned, emit_program, gather, shorter, strided_copy
from dynident.dynamics.program import Program
from dynident.dynamics.vector_ir import INT, POINTER, VOID, Emitter, integer, number
from dynident.information.householder import runtime
from dynident.information.layout import Layout

BLOCK = 192  # samples: the slabs of a 6-joint arm fit the second-level cache
ROW = BLOCK + 8  # whole cache lines, and no power of two, which would crowd the cache
_VERSION = "stream 2"


_ARGUMENTS = (
    *("given", "strides", "n_inputs", "taus", "tau_strides", "weights", "weight_strides", "weighted", "n_samples"),
    *("scratch", "slab", "widths", "n_channels", "factors", "bad"),
)
_NUMBERS = {"n_inputs", "weighted", "n_samples", "n_channels"}


def _emit_stream(emitter: Emitter) -> None:
    """`stream`: gather, fill, check, weigh and absorb block after block; stops at a block with a bad number."""
    kinds = [INT if name in _NUMBERS else POINTER for name in _ARGUMENTS]
    a = dict(zip(_ARGUMENTS, emitter.function("stream", kinds), strict=True))
    b, e = emitter.builder, emitter
    fill = e.module.globals["fill"]
    absorb = ir.Function(e.module, ir.FunctionType(VOID, [POINTER, INT, POINTER, INT, INT, INT]), "dynident_absorb")
    row, slab, width = integer(ROW), a["slab"], integer(e.width)

    def finite(rows: Any, n_rows: Any, padded: Any, total: Any) -> Any:
        """Adds 0 x of every number: stays zero unless one is infinite or not a number."""

        def one(i: Any, sums: list[Any]) -> list[Any]:
            start = b.mul(i, row)

            def add(k: Any, inner: list[Any]) -> list[Any]:
                return [e.fma(e.vload(rows, b.add(start, k)), e.constant(0.0), inner[0])]

            return e.loop(integer(0), padded, e.width, sums, add)

        return e.loop(integer(0), n_rows, 1, [total], one)[0]

    def channels(body: Any) -> None:
        """body(channel, first slab column, width, factor offset) for every channel."""

        def one(channel: Any, carried: list[Any]) -> list[Any]:
            first, offset = carried
            own = e.load_integer(a["widths"], channel)
            body(channel, first, own, offset)
            return [b.add(first, own), b.add(offset, b.mul(own, own))]

        e.loop(integer(0), a["n_channels"], 1, [integer(0), integer(0)], one)

    def turn(start: Any) -> None:
        count = shorter(e, a["n_samples"], start, BLOCK)
        padded = b.and_(b.add(count, b.sub(width, integer(1))), b.sub(integer(0), width))
        gather(e, a["given"], a["strides"], a["n_inputs"], start, count, a["scratch"], row)
        b.call(fill, [a["scratch"], slab, count])

        def torque(channel: Any, first: Any, own: Any, offset: Any) -> None:
            target = b.mul(b.sub(b.add(first, own), integer(1)), row)
            strided_copy(e, a["taus"], a["tau_strides"], channel, start, count, slab, target)

            def silence(column: Any) -> None:
                at = b.mul(b.add(first, column), row)
                e.each(count, padded, 1, lambda k: e.store(number(0.0), slab, b.add(at, k)))

            e.each(integer(0), own, 1, silence)

        channels(torque)
        with b.if_then(b.icmp_signed("!=", a["weighted"], integer(0))):
            weigh(start, count, padded)
        total = finite(a["scratch"], a["n_inputs"], padded, e.constant(0.0))

        def last_columns(channel: Any, carried: list[Any]) -> list[Any]:
            first, acc = carried
            own = e.load_integer(a["widths"], channel)
            last = b.mul(b.sub(b.add(first, own), integer(1)), row)
            acc = finite(e.at(slab, last), integer(1), padded, acc)
            return [b.add(first, own), acc]

        total = e.loop(integer(0), a["n_channels"], 1, [integer(0), total], last_columns)[1]
        wrong = b.fcmp_unordered("!=", e.total(total), number(0.0))
        with b.if_else(wrong) as (then, otherwise):
            with then:
                b.store(start, a["bad"])
                b.ret_void()
            with otherwise:
                channels(
                    lambda channel, first, own, offset: b.call(
                        absorb, [e.at(a["factors"], offset), own, e.at(slab, b.mul(first, row)), row, padded, own]
                    )
                )

    def weigh(start: Any, count: Any, padded: Any) -> None:
        spare = b.mul(a["n_inputs"], row)

        def one(channel: Any, first: Any, own: Any, offset: Any) -> None:
            strided_copy(e, a["weights"], a["weight_strides"], channel, start, count, a["scratch"], spare)

            def column(i: Any) -> None:
                at = b.mul(b.add(first, i), row)

                def multiply(k: Any) -> None:
                    w = e.vload(a["scratch"], b.add(spare, k))
                    e.vstore(b.fmul(w, e.vload(slab, b.add(at, k))), slab, b.add(at, k))

                e.each(integer(0), padded, e.width, multiply)

            e.each(integer(0), own, 1, column)

        channels(one)

    e.each(integer(0), a["n_samples"], BLOCK, turn)
    b.ret_void()


class Stream:
    """The compiled accumulator of a program (see `accumulate`)."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.layout, self.n_inputs = layout, len(program.inputs)
        self._own = threading.local()

        def emit(emitter: Emitter) -> None:
            emit_program(emitter, program, layout.slots, ROW)
            _emit_stream(emitter)

        self._absorb_code = runtime()  # kept alive: the stream calls into it
        symbols = {"dynident_absorb": self._absorb_code.address("absorb")}
        self._code = compiled(
            f"{_VERSION} {VERSION} {BLOCK} {layout.slots} {layout.widths} {program.fingerprint}", emit, symbols
        )
        kinds = [ctypes.c_int64 if name in _NUMBERS else ctypes.c_void_p for name in _ARGUMENTS]
        self._stream = self._code.function("stream", kinds)
        self._widths = np.array(layout.widths, dtype=np.int64)

    def _workspace(self) -> tuple[Array, Array]:
        """Scratch for the inputs (and one row of weights) and the slabs, kept for each thread."""
        if not hasattr(self._own, "rows"):
            self._own.rows = aligned((self.n_inputs + 1) * ROW), aligned(int(self._widths.sum()) * ROW)
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
