"""The square-root update: absorb a block of rows into a triangular factor by blocked Householder reflections.

The stacked matrix [R; B] is made triangular again. A reflection j has a one in row j of R and the vector v_j below, so
four of them are applied to all later columns together (compact WY form with a 4 x 4 matrix T): each pass over a column
serves four reflections, which is what lets the arithmetic run near the speed of the processor.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from typing import Any

from dynident.dynamics.jit.machine_code import Code, compile_module
from dynident.dynamics.jit.vector_ir import FAST, INT, POINTER, Emitter, integer, number

PANEL = 4  # reflections applied together
_VERSION = "householder 1"


def emit_absorb(emitter: Emitter) -> None:
    """`absorb(R, ldr, B, ldb, rows, p)`: [R; B] -> R, destroying B.

    R: (p, p) upper triangular, row-major with rows `ldr` apart. B: p columns `ldb` apart, each `rows` long and padded
    with zeros to whole vectors.
    """
    R, ldr, B, ldb, rows, p = emitter.function("absorb", [POINTER, INT, POINTER, INT, INT, INT])
    work = _Absorb(emitter, R, ldr, B, ldb, rows, p)
    b = emitter.builder
    panels = b.and_(p, integer(~(PANEL - 1)))
    emitter.each(integer(0), panels, PANEL, lambda j: work.panel(j, PANEL))
    emitter.each(panels, p, 1, lambda j: work.panel(j, 1))
    b.ret_void()


class _Absorb:
    """Emits the parts of `absorb`."""

    def __init__(self, emitter: Emitter, R: Any, ldr: Any, B: Any, ldb: Any, rows: Any, p: Any) -> None:
        self.e, self.R, self.ldr, self.B, self.ldb, self.rows, self.p = emitter, R, ldr, B, ldb, rows, p
        self.group = 4 if emitter.width == 8 else 2  # columns per pass: as many sums as there are registers for

    def panel(self, j: Any, size: int) -> None:
        """Reflections j .. j + size - 1 and their effect on all later columns."""
        b = self.e.builder
        places = [b.add(j, integer(i)) for i in range(size)]
        columns = [b.mul(place, self.ldb) for place in places]
        taus = [self._reflect(i, places, columns) for i in range(size)]
        T = self._triangle(columns, taus)
        first = b.add(j, integer(size))
        count = b.sub(self.p, first)
        grouped = b.add(first, b.and_(count, integer(~(self.group - 1))))
        self.e.each(first, grouped, self.group, lambda c: self._apply(places, columns, T, c, self.group))
        self.e.each(grouped, self.p, 1, lambda c: self._apply(places, columns, T, c, 1))

    def _sums(self, pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Dot products of pairs of columns (given by offset) in one pass."""
        e, b = self.e, self.e.builder

        def body(k: Any, sums: list[Any]) -> Sequence[Any]:
            loaded: dict[int, Any] = {}

            def column(offset: Any) -> Any:
                if id(offset) not in loaded:
                    loaded[id(offset)] = e.vload(self.B, b.add(offset, k))
                return loaded[id(offset)]

            return [e.fma(column(x), column(y), s) for (x, y), s in zip(pairs, sums, strict=True)]

        zeros = [e.constant(0.0)] * len(pairs)
        return [e.total(s) for s in e.loop(integer(0), self.rows, e.width, zeros, body)]

    def _reflect(self, i: int, places: list[Any], columns: list[Any]) -> Any:
        """Reflection i of a panel: its vector, its effect on the panel's later columns, its factor tau."""
        e, b = self.e, self.e.builder
        later = columns[i + 1 :]
        square, *dots = self._sums([(columns[i], column) for column in (columns[i], *later)])
        row = b.mul(places[i], self.ldr)
        diagonal = b.add(row, places[i])
        alpha = e.load(self.R, diagonal)
        norm = e.intrinsic("sqrt", e.fma(alpha, alpha, square))
        beta = b.select(b.fcmp_ordered(">=", alpha, number(0.0)), b.fneg(norm), norm)
        nothing = b.fcmp_ordered("==", square, number(0.0))
        tau = b.select(nothing, number(0.0), b.fdiv(b.fsub(beta, alpha), beta))
        scale = b.select(nothing, number(0.0), b.fdiv(number(1.0), b.fsub(alpha, beta)))
        e.store(b.select(nothing, alpha, beta), self.R, diagonal)
        weights = []
        for place, dot in zip(places[i + 1 :], dots, strict=True):
            above = e.load(self.R, b.add(row, place))
            weight = b.fmul(tau, e.fma(scale, dot, above))
            e.store(b.fsub(above, weight), self.R, b.add(row, place))
            weights.append(e.splat(b.fneg(weight)))
        scales = e.splat(scale)

        def body(k: Any) -> None:
            v = b.fmul(e.vload(self.B, b.add(columns[i], k)), scales, flags=FAST)
            e.vstore(v, self.B, b.add(columns[i], k))
            for column, weight in zip(later, weights, strict=True):
                here = b.add(column, k)
                e.vstore(e.fma(v, weight, e.vload(self.B, here)), self.B, here)

        e.each(integer(0), self.rows, e.width, body)
        return tau

    def _triangle(self, columns: list[Any], taus: list[Any]) -> list[list[Any]]:
        """T of the product of the panel's reflections, I - V T V'."""
        e, b = self.e, self.e.builder
        size = len(columns)
        T: list[list[Any]] = [[None] * size for _ in range(size)]
        pairs = [(i, j) for j in range(size) for i in range(j)]
        dots = dict(zip(pairs, self._sums([(columns[i], columns[j]) for i, j in pairs]), strict=True)) if pairs else {}
        for j in range(size):
            T[j][j] = taus[j]
            for i in range(j):
                total = b.fmul(T[i][i], dots[i, j])
                for k in range(i + 1, j):
                    total = e.fma(T[i][k], dots[k, j], total)
                T[i][j] = b.fneg(b.fmul(taus[j], total))
        return T

    def _apply(self, places: list[Any], columns: list[Any], T: list[list[Any]], c: Any, group: int) -> None:
        """The panel's reflections on columns c .. c + group - 1."""
        e, b = self.e, self.e.builder
        names = [b.add(c, integer(g)) for g in range(group)]
        offsets = [b.mul(name, self.ldb) for name in names]
        sums = self._sums([(v, offset) for offset in offsets for v in columns])
        weights: list[list[Any]] = []
        for g, name in enumerate(names):
            rows = [b.add(b.mul(place, self.ldr), name) for place in places]
            above = [e.load(self.R, row) for row in rows]
            y = [b.fadd(a, s) for a, s in zip(above, sums[g * len(places) :], strict=False)]
            own = []
            for r in range(len(places)):
                weight = b.fmul(T[0][r], y[0])
                for k in range(1, r + 1):
                    weight = e.fma(T[k][r], y[k], weight)
                e.store(b.fsub(above[r], weight), self.R, rows[r])
                own.append(e.splat(b.fneg(weight)))
            weights.append(own)

        def body(k: Any) -> None:
            vectors = [e.vload(self.B, b.add(column, k)) for column in columns]
            for offset, own in zip(offsets, weights, strict=True):
                here = b.add(offset, k)
                value = e.vload(self.B, here)
                for v, weight in zip(vectors, own, strict=True):
                    value = e.fma(v, weight, value)
                e.vstore(value, self.B, here)

        e.each(integer(0), self.rows, e.width, body)


_lock = threading.Lock()
_code: list[Code] = []


def runtime() -> Code:
    """The compiled update, made once for all robots and never let go: other code calls it by its address."""
    with _lock:
        if not _code:
            _code.append(compile_module(_VERSION, emit_absorb))
        return _code[0]


@functools.cache
def absorb_function() -> Any:
    """`absorb` as a function of addresses and sizes."""
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    return runtime().function("absorb", [pointer, whole, pointer, whole, whole, whole])
