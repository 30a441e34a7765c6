"""Runs a program on batches as machine code: vectors of samples, block by block in cache."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from dynident.arrays import Array, whole_strides
from dynident.dynamics.jit.machine_code import compile_module
from dynident.dynamics.jit.program import Op, Program
from dynident.dynamics.jit.vector_ir import FAST, INT, POINTER, Emitter, integer

BLOCK = 128  # samples: inputs and outputs of a block stay in the cache
ROW = BLOCK + 8  # whole cache lines, and no power of two, which would crowd the cache
VERSION = "fill 2"  # change with the code below: part of every cache key

# Sine and cosine on [-pi/4, pi/4], polynomials in r^2 (the classical minimax coefficients of fdlibm).
_SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
_HALF_PI, _HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
# tanh x = x + x^3 P(x^2)/Q(x^2) below 0.625 (Cephes).
_TANH_P = (-1.61468768441708447952e3, -9.92877231001918586564e1, -9.64399179425052238628e-1)
_TANH_Q = (4.84406305325125486048e3, 2.23548839060100448583e3, 1.12811678491632931402e2, 1.0)
_LN2, _LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
# log((1 + s) / (1 - s)) = 2 s + s R(s^2) for mantissas between sqrt(1/2) and sqrt(2) (fdlibm).
_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def emit_program(emitter: Emitter, program: Program, slots: Sequence[int], row: int) -> None:
    """`fill(inputs, outputs, count)`: evaluates a program on `count` samples, rounded up to whole vectors.

    Input i is the row of samples at i * row, output i goes to the row at slots[i] * row; rows have room for the
    rounding. All of that is known here, so an address is one register and a constant.
    """
    inputs, outputs, count = emitter.function("fill", [POINTER, POINTER, INT])
    b = emitter.builder
    targets: dict[int, list[int]] = {}
    for slot, node in zip(slots, program.outputs, strict=True):
        targets.setdefault(node, []).append(slot)

    def body(k: Any) -> None:
        here, there = emitter.at(inputs, k), emitter.at(outputs, k)
        values: list[Any] = []
        turned: dict[int, tuple[Any, Any]] = {}
        for node, instruction in enumerate(program.instructions):
            if instruction[0] == Op.INPUT:
                values.append(emitter.vload(here, integer(instruction[1] * row)))
            else:
                values.append(_instruction(emitter, program, values, turned, instruction))
            for slot in targets.get(node, ()):
                emitter.vstore(values[node], there, integer(slot * row))

    emitter.each(integer(0), count, emitter.width, body)
    b.ret_void()


def _instruction(
    emitter: Emitter,
    program: Program,
    values: list[Any],
    turned: dict[int, tuple[Any, Any]],
    instruction: tuple[Op, int, int],
) -> Any:
    """The vector of one node."""
    op, x, y = instruction
    b = emitter.builder
    match op:
        case Op.CONST:
            return emitter.constant(program.constants[x])
        case Op.ADD:
            return b.fadd(values[x], values[y], flags=FAST)
        case Op.SUB:
            return b.fsub(values[x], values[y], flags=FAST)
        case Op.MUL:
            return b.fmul(values[x], values[y], flags=FAST)
        case Op.DIV:
            return b.fdiv(values[x], values[y], flags=FAST)
        case Op.NEG:
            return b.fneg(values[x], flags=FAST)
        case Op.SIN | Op.COS:
            if x not in turned:
                turned[x] = _sine_and_cosine(emitter, values[x])
            return turned[x][op == Op.COS]
        case Op.SIGN:
            return _sign(emitter, values[x])
        case Op.TANH:
            return _tanh(emitter, values[x])
        case Op.ABS:
            return emitter.intrinsic("fabs", values[x])
        case Op.EXP:
            return _exp(emitter, values[x])
        case Op.LOG:
            return _log(emitter, values[x])
        case _:
            raise NotImplementedError(f"{op.name} has no vector form")


def _polynomial(emitter: Emitter, x: Any, coefficients: Sequence[float]) -> Any:
    """Horner's rule, lowest coefficient first."""
    result = emitter.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = emitter.fma(result, x, emitter.constant(coefficient))
    return result


def _sine_and_cosine(emitter: Emitter, x: Any) -> tuple[Any, Any]:
    """Both at once: reduce by multiples of pi/2, evaluate two polynomials, sort by quadrant."""
    b, const = emitter.builder, emitter.constant
    turns = emitter.intrinsic("rint", b.fmul(x, const(2.0 / math.pi)))
    r = emitter.fma(turns, const(-_HALF_PI), x)
    r = emitter.fma(turns, const(-_HALF_PI_REST), r)
    r2 = b.fmul(r, r)
    sine = emitter.fma(b.fmul(r, r2), _polynomial(emitter, r2, _SINE), r)
    cosine = emitter.fma(b.fmul(r2, r2), _polynomial(emitter, r2, _COSINE), emitter.fma(r2, const(-0.5), const(1.0)))
    quarter = emitter.intrinsic("floor", b.fmul(turns, const(0.25)))
    quadrant = emitter.fma(quarter, const(-4.0), turns)  # 0, 1, 2 or 3
    odd = b.or_(b.fcmp_ordered("==", quadrant, const(1.0)), b.fcmp_ordered("==", quadrant, const(3.0)))
    first, second = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
    lower = b.fcmp_ordered(">", quadrant, const(1.5))
    left = b.and_(b.fcmp_ordered(">", quadrant, const(0.5)), b.fcmp_ordered("<", quadrant, const(2.5)))
    return b.select(lower, b.fneg(first), first), b.select(left, b.fneg(second), second)


def _sign(emitter: Emitter, x: Any) -> Any:
    b, const = emitter.builder, emitter.constant
    zero, one = const(0.0), const(1.0)
    positive = b.select(b.fcmp_ordered(">", x, zero), one, zero)
    return b.fsub(positive, b.select(b.fcmp_ordered("<", x, zero), one, zero))


def _tanh(emitter: Emitter, x: Any) -> Any:
    """A rational function near zero, 1 - 2 / (e^2|x| + 1) elsewhere."""
    b, const = emitter.builder, emitter.constant
    size = emitter.intrinsic("fabs", x)
    square = b.fmul(x, x)
    ratio = b.fdiv(_polynomial(emitter, square, _TANH_P), _polynomial(emitter, square, _TANH_Q))
    near = emitter.fma(b.fmul(x, square), ratio, x)
    doubled = b.fmul(b.select(b.fcmp_ordered("<", size, const(20.0)), size, const(20.0)), const(2.0))
    far = b.fsub(const(1.0), b.fdiv(const(2.0), b.fadd(_exponential(emitter, doubled), const(1.0))))
    far = b.select(b.fcmp_ordered("<", x, const(0.0)), b.fneg(far), far)
    return b.select(b.fcmp_ordered("<", size, const(0.625)), near, far)


def _exponential(emitter: Emitter, x: Any) -> Any:
    """e^x for 0 <= x <= 40: 2^n times a Taylor sum on [-ln2/2, ln2/2]."""
    b, const = emitter.builder, emitter.constant
    n = emitter.intrinsic("rint", b.fmul(x, const(1.0 / _LN2)))
    r = emitter.fma(n, const(-_LN2_REST), emitter.fma(n, const(-_LN2), x))
    taylor = _polynomial(emitter, r, [1.0 / math.factorial(k) for k in range(15)])
    whole = ir.VectorType(INT, emitter.width)
    bits = b.shl(
        b.add(b.fptosi(n, whole), ir.Constant(whole, [1023] * emitter.width)),
        ir.Constant(whole, [52] * emitter.width),
    )
    return b.fmul(taylor, b.bitcast(bits, emitter.vector))


def _exp(emitter: Emitter, x: Any) -> Any:
    """e^x for any x: the square of e^(x/2), whose power of two always fits."""
    b, const = emitter.builder, emitter.constant
    half = b.fmul(x, const(0.5))
    half = b.select(b.fcmp_ordered("<", half, const(400.0)), half, const(400.0))
    half = b.select(b.fcmp_ordered(">", half, const(-400.0)), half, const(-400.0))
    root = _exponential(emitter, half)
    return b.select(b.fcmp_unordered("uno", x, x), x, b.fmul(root, root))


def _log(emitter: Emitter, x: Any) -> Any:
    """log x = k ln 2 + log m, where m lies between sqrt(1/2) and sqrt(2)."""
    b, const = emitter.builder, emitter.constant
    whole = ir.VectorType(INT, emitter.width)

    def integers(value: int) -> Any:
        return ir.Constant(whole, [value] * emitter.width)

    tiny = b.fcmp_ordered("<", x, const(2.0**-1022))  # subnormal: its leading bit is not where it is looked for
    bits = b.bitcast(b.select(tiny, b.fmul(x, const(2.0**54)), x), whole)
    shifted = b.add(bits, integers(0x3FF0000000000000 - 0x3FE6A09E00000000))  # carries into the exponent from sqrt(1/2)
    k = b.sitofp(b.sub(b.ashr(shifted, integers(52)), integers(1023)), emitter.vector)
    k = b.select(tiny, b.fsub(k, const(54.0)), k)
    mantissa = b.add(b.and_(shifted, integers(0x000FFFFFFFFFFFFF)), integers(0x3FE6A09E00000000))
    f = b.fsub(b.bitcast(mantissa, emitter.vector), const(1.0))
    s = b.fdiv(f, b.fadd(f, const(2.0)))
    s2, half_square = b.fmul(s, s), b.fmul(const(0.5), b.fmul(f, f))
    rest = b.fmul(s2, _polynomial(emitter, s2, _LOG))
    small = emitter.fma(k, const(_LN2_REST), b.fmul(s, b.fadd(half_square, rest)))
    found = emitter.fma(k, const(_LN2), b.fsub(f, b.fsub(half_square, small)))
    found = b.select(b.fcmp_ordered("==", x, const(0.0)), const(-math.inf), found)
    found = b.select(b.fcmp_ordered("==", x, const(math.inf)), x, found)
    return b.select(b.fcmp_ordered(">=", x, const(0.0)), found, const(math.nan))


def strided_copy(
    e: Emitter, given: Any, strides: Any, i: Any, start: Any, count: Any, target: Any, offset: Any
) -> None:
    """Copy samples start .. start + count of strided array i to contiguous doubles."""
    b = e.builder
    source, stride = e.load_pointer(given, i), e.load_integer(strides, i)
    first = b.mul(start, stride)

    def copy(k: Any) -> None:
        e.store(e.load(source, b.add(first, b.mul(k, stride))), target, b.add(offset, k))

    e.each(integer(0), count, 1, copy)


def gather(e: Emitter, given: Any, strides: Any, n_rows: Any, start: Any, count: Any, rows: Any, row: Any) -> None:
    """Copy samples start .. start + count of several strided arrays into contiguous rows of length `row`."""
    e.each(
        integer(0),
        n_rows,
        1,
        lambda i: strided_copy(e, given, strides, i, start, count, rows, e.builder.mul(i, row)),
    )


def shorter(emitter: Emitter, n_samples: Any, start: Any, block: int) -> Any:
    """Samples in the block that begins at `start`."""
    left = emitter.builder.sub(n_samples, start)
    return emitter.builder.select(emitter.builder.icmp_signed("<", left, integer(block)), left, integer(block))


def emit_map(emitter: Emitter, n_outputs: int) -> None:
    """`map`: gather a block of inputs into scratch rows, evaluate, copy the results out, go on to the next block.

    Arguments: input pointers, their strides in doubles, number of varying inputs, samples, scratch rows of the inputs
    and of the outputs, outputs, offset of each output's row in them.
    """
    arguments = [POINTER, POINTER, INT, INT, POINTER, POINTER, POINTER, POINTER]
    given, strides, n_inputs, n_samples, inputs, results, outputs, rows = emitter.function("map", arguments)
    b = emitter.builder
    fill = emitter.module.globals["fill"]

    def turn(start: Any) -> None:
        count = shorter(emitter, n_samples, start, BLOCK)
        gather(emitter, given, strides, n_inputs, start, count, inputs, integer(ROW))
        b.call(fill, [inputs, results, count])

        def copy(output: Any) -> None:
            target = b.add(emitter.load_integer(rows, output), start)
            emitter.copy(emitter.at(outputs, target), emitter.at(results, b.mul(output, integer(ROW))), count)

        emitter.each(integer(0), integer(n_outputs), 1, copy)

    emitter.each(integer(0), n_samples, BLOCK, turn)
    b.ret_void()


class LlvmKernel:
    """A program ready to run (see `BatchKernel`)."""

    def __init__(self, program: Program) -> None:
        self.program = program

        n_outputs = len(program.outputs)

        def emit(emitter: Emitter) -> None:
            emit_program(emitter, program, range(n_outputs), ROW)
            emit_map(emitter, n_outputs)

        self._code = compile_module(f"{VERSION} map {BLOCK} {program.fingerprint}", emit)
        pointer, whole = ctypes.c_void_p, ctypes.c_int64
        self._map = self._code.function("map", [pointer, pointer, whole, whole, pointer, pointer, pointer, pointer])

    def __call__(self, inputs: Sequence[Array], out: Array, rows: Sequence[int] | None = None) -> None:
        """Evaluate the program.

        Args:
            inputs: One array per program input: (n_samples,) or a scalar, which holds for all samples.
            out: (n_rows, n_samples), C-contiguous, written.
            rows: Row of each output; default 0, 1, 2, ...
        """
        n_samples, n_outputs = out.shape[1], len(self.program.outputs)
        scratch, results = aligned_array(len(inputs) * ROW), aligned_array(n_outputs * ROW)
        arrays = [whole_strides(np.asarray(x, dtype=np.float64)) for x in inputs]
        varying = [x for x in arrays if x.ndim]
        # Scalars come after everything that varies in a robot's programs, and are written once.
        for i, x in enumerate(arrays[len(varying) :], len(varying)):
            scratch[i * ROW : (i + 1) * ROW] = x
        pointers = np.array([x.ctypes.data for x in varying], dtype=np.int64)
        strides = np.array([x.strides[0] // 8 for x in varying], dtype=np.int64)
        targets = np.asarray(range(n_outputs) if rows is None else rows, dtype=np.int64) * n_samples
        self._map(
            pointers.ctypes.data,
            strides.ctypes.data,
            len(varying),
            n_samples,
            scratch.ctypes.data,
            results.ctypes.data,
            out.ctypes.data,
            targets.ctypes.data,
        )

    def bound(self, inputs: Array, out: Array, places: Sequence[int] | None = None) -> Callable[[], None]:
        """The program tied to two arrays: each call fills `out` from what `inputs` holds by then.

        Args:
            inputs: (n_inputs, n_samples), C-contiguous float64.
            out: (n_outputs, n_samples), C-contiguous float64; of any shape with `places`.
            places: Where in `out` each output's samples begin, in doubles; default one after the other.
        """
        n_samples, n_outputs = inputs.shape[1], len(self.program.outputs)
        scratch, results = aligned_array(len(inputs) * ROW), aligned_array(n_outputs * ROW)
        pointers = inputs.ctypes.data + np.arange(len(inputs), dtype=np.int64) * inputs.strides[0]
        strides, targets = np.ones(len(inputs), dtype=np.int64), np.arange(n_outputs, dtype=np.int64) * n_samples
        if places is not None:
            targets = np.array(places, dtype=np.int64)
        kept = (inputs, out, scratch, results, pointers, strides, targets)  # alive as long as the function is
        a = [x.ctypes.data for x in kept]

        def run() -> None:
            self._map(a[4], a[5], len(kept[0]), n_samples, a[2], a[3], a[1], a[6])

        return run


def aligned_array(size: int) -> Array:
    """Zeros that begin on a cache line."""
    raw = np.zeros(size + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + size]
