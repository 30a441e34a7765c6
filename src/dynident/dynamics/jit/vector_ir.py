"""A thin layer over llvmlite for kernels that work on explicit vectors of samples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

DOUBLE, INT, VOID, POINTER = ir.DoubleType(), ir.IntType(64), ir.VoidType(), ir.PointerType()
FAST = ("contract", "nsz")  # fuse multiply and add; ignore the sign of zero; never reorder
_SUM = ("contract", "nsz", "reassoc")
Body = Callable[[Any, list[Any]], Sequence[Any]]


@functools.cache
def cpu() -> tuple[str, str]:
    """Name and features of this machine's processor."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def lanes() -> int:
    """Doubles in the widest vector this processor computes on."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2


class Emitter:
    """Builds one module of functions over doubles, 64-bit integers and pointers."""

    def __init__(self) -> None:
        self.module = ir.Module("dynident")
        self.width = lanes()
        self.vector = ir.VectorType(DOUBLE, self.width)
        self.builder = ir.IRBuilder()

    def function(self, name: str, arguments: Sequence[ir.Type], result: ir.Type = VOID) -> list[Any]:
        """Start a function and return its arguments; pointers are promised not to overlap."""
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        for argument in function.args:
            if argument.type == POINTER:
                argument.add_attribute("noalias")
        self.builder.position_at_end(function.append_basic_block("start"))
        return list(function.args)

    def loop(self, start: Any, stop: Any, step: int, carried: Sequence[Any], body: Body) -> list[Any]:
        """for k in range(start, stop, step), with values carried from turn to turn; returns the last ones."""
        b = self.builder
        before = b.block
        inside, after = b.append_basic_block("loop"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), inside, after)
        b.position_at_end(inside)
        k = b.phi(INT)
        k.add_incoming(start, before)
        values = []
        for value in carried:
            phi = b.phi(value.type)
            phi.add_incoming(value, before)
            values.append(phi)
        results = body(k, values)
        following = b.add(k, integer(step))
        end = b.block
        k.add_incoming(following, end)
        for phi, result in zip(values, results, strict=True):
            phi.add_incoming(result, end)
        b.cbranch(b.icmp_signed("<", following, stop), inside, after)
        b.position_at_end(after)
        finals = []
        for value, result in zip(carried, results, strict=True):
            phi = b.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(result, end)
            finals.append(phi)
        return finals

    def each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """A loop that carries nothing."""

        def run(k: Any, _: list[Any]) -> Sequence[Any]:
            body(k)
            return ()

        self.loop(start, stop, step, (), run)

    # Memory: addresses are a pointer and an offset in doubles.

    def at(self, pointer: Any, offset: Any) -> Any:
        """Pointer to a double."""
        return self.builder.gep(pointer, [offset], source_etype=DOUBLE)

    def load(self, pointer: Any, offset: Any) -> Any:
        """One double."""
        return self.builder.load(self.at(pointer, offset), typ=DOUBLE)

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        """Write one double."""
        self.builder.store(value, self.at(pointer, offset))

    def load_integer(self, pointer: Any, index: Any) -> Any:
        """One integer."""
        return self.builder.load(self.builder.gep(pointer, [index], source_etype=INT), typ=INT)

    def load_pointer(self, pointer: Any, index: Any) -> Any:
        """One pointer."""
        return self.builder.load(self.builder.gep(pointer, [index], source_etype=POINTER), typ=POINTER)

    def vload(self, pointer: Any, offset: Any) -> Any:
        """A vector of doubles."""
        return self.builder.load(self.at(pointer, offset), typ=self.vector, align=8)

    def vstore(self, value: Any, pointer: Any, offset: Any) -> None:
        """Write a vector of doubles."""
        self.builder.store(value, self.at(pointer, offset), align=8)

    def copy(self, target: Any, source: Any, count: Any) -> None:
        """Copy `count` doubles."""
        name = "llvm.memcpy.p0.p0.i64"
        known = self.module.globals.get(name)
        if known is None:
            known = ir.Function(self.module, ir.FunctionType(VOID, [POINTER, POINTER, INT, ir.IntType(1)]), name)
        size = self.builder.mul(count, integer(8))
        self.builder.call(known, [target, source, size, ir.Constant(ir.IntType(1), 0)])

    # Arithmetic.

    def constant(self, value: float) -> Any:
        """A vector with one number everywhere."""
        return ir.Constant(self.vector, [ir.Constant(DOUBLE, value)] * self.width)

    def splat(self, value: Any) -> Any:
        """A vector with one computed number everywhere."""
        b = self.builder
        first = b.insert_element(ir.Constant(self.vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return b.shuffle_vector(first, ir.Constant(self.vector, ir.Undefined), mask)

    def call(self, name: str, *arguments: Any, result: ir.Type | None = None, flags: Sequence[str] = ()) -> Any:
        """Call an intrinsic of the compiler."""
        kind = arguments[0].type if result is None else result
        known = self.module.globals.get(name)
        if known is None:
            known = ir.Function(self.module, ir.FunctionType(kind, [a.type for a in arguments]), name)
        return self.builder.call(known, arguments, fastmath=flags)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c with one rounding, on doubles or vectors."""
        return self.call(f"llvm.fma.{self._suffix(a)}", a, b, c)

    def intrinsic(self, name: str, a: Any) -> Any:
        """An intrinsic of one argument: sqrt, rint, floor, fabs."""
        return self.call(f"llvm.{name}.{self._suffix(a)}", a)

    def total(self, vector: Any) -> Any:
        """Sum of a vector's lanes."""
        name = f"llvm.vector.reduce.fadd.v{self.width}f64"
        return self.call(name, ir.Constant(DOUBLE, 0.0), vector, result=DOUBLE, flags=_SUM)

    def _suffix(self, value: Any) -> str:
        return "f64" if value.type == DOUBLE else f"v{self.width}f64"


def integer(value: int) -> Any:
    """A 64-bit constant."""
    return ir.Constant(INT, value)


def number(value: float) -> Any:
    """A double constant."""
    return ir.Constant(DOUBLE, value)
