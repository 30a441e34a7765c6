"""Exact derivatives of recorded programs: the reverse pass, recorded as a program of its own.

Going through a program backwards gives the derivative of any weighted sum of its outputs with respect to all inputs
for about three times the cost of the program itself, however many inputs and outputs there are.
"""

from __future__ import annotations

from dynident.dynamics.jit.program import LEAVES, Op, Program, Recorder
from dynident.robot.algebra import Number, add, mul, sub


def adjoint(program: Program) -> Program:
    """The program of the derivative of ``sum_k bar_k output_k``.

    Its inputs are those of `program` followed by bar0, bar1, ... (one per output); its outputs are the derivatives with
    respect to each input of `program`, in their order. The sign function counts as constant, at its jump too.
    """
    bars = [f"bar{k}" for k in range(len(program.outputs))]
    recorder = Recorder([*program.inputs, *bars])
    values = _replay(program, recorder)
    slopes: list[Number] = [0.0] * len(values)
    for bar, node in zip(bars, program.outputs, strict=True):
        slopes[node] = add(slopes[node], recorder.input(bar))
    result: list[Number] = [0.0] * len(program.inputs)
    for node in range(len(values) - 1, -1, -1):
        op, a, b = program.instructions[node]
        slope = slopes[node]
        if op == Op.INPUT:
            result[a] = add(result[a], slope)
        if op in LEAVES or (isinstance(slope, float) and slope == 0.0):
            continue
        for operand, share in _shares(op, values, node, a, b, slope, recorder):
            slopes[operand] = add(slopes[operand], share)
    return recorder.finish(result)


def _replay(program: Program, recorder: Recorder) -> list[Number]:
    """The program's nodes as values of another recorder; constants stay plain numbers."""
    values: list[Number] = []
    for op, a, b in program.instructions:
        match op:
            case Op.INPUT:
                values.append(recorder.input(program.inputs[a]))
            case Op.CONST:
                values.append(program.constants[a])
            case Op.ADD:
                values.append(values[a] + values[b])
            case Op.SUB:
                values.append(values[a] - values[b])
            case Op.MUL:
                values.append(values[a] * values[b])
            case Op.DIV:
                values.append(values[a] / values[b])
            case Op.NEG:
                values.append(-values[a])
            case _:
                values.append(getattr(recorder, op.name.lower())(values[a]))
    return values


def _shares(
    op: Op, values: list[Number], node: int, a: int, b: int, slope: Number, recorder: Recorder
) -> list[tuple[int, Number]]:
    """What a node passes on to its operands: (operand, slope times partial derivative)."""
    match op:
        case Op.ADD:
            return [(a, slope), (b, slope)]
        case Op.SUB:
            return [(a, slope), (b, -slope)]
        case Op.MUL:
            return [(a, mul(slope, values[b])), (b, mul(slope, values[a]))]
        case Op.DIV:
            share = slope / values[b]
            return [(a, share), (b, -mul(share, values[node]))]
        case Op.NEG:
            return [(a, -slope)]
        case Op.SIN:
            return [(a, mul(slope, recorder.cos(values[a])))]
        case Op.COS:
            return [(a, -mul(slope, recorder.sin(values[a])))]
        case Op.TANH:
            return [(a, mul(slope, sub(1.0, mul(values[node], values[node]))))]
        case Op.EXP:
            return [(a, mul(slope, values[node]))]
        case Op.LOG:
            return [(a, slope / values[a])]
        case Op.ABS:
            return [(a, mul(slope, recorder.sign(values[a])))]
        case Op.SIGN:
            return []
        case _:
            raise NotImplementedError(f"the derivative of {op.name} is not known")
