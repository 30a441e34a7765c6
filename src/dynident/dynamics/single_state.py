"""The torque of one state at a time, for controllers: the recorded equations as plain Python over floats.

A batch kernel spends most of its time on getting started; a controller asks for one state a few hundred times a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.kernels import Recording
from dynident.dynamics.program import UNARY, Op, Program
from dynident.dynamics.terms import TermsLike, resolve_terms
from dynident.errors import InputError
from dynident.robot.model import Robot

TorqueLaw = Callable[..., tuple[float, ...]]
_SIGNS = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
_NAMES = {Op.NEG: "-", Op.SIN: "sin", Op.COS: "cos", Op.TANH: "tanh", Op.ABS: "abs", Op.EXP: "exp", Op.SIGN: "sign"}


def torque_law(robot: Robot, terms: TermsLike, weight: Array, motion: Array) -> TorqueLaw:
    """The torque ``M(q) ddq + c(q, dq) + g(q)`` whose weight and whose inertia may have parameters of their own.

    Args:
        robot: The robot; its loops must not be closed numerically.
        terms: Terms of the model.
        weight: (n_columns,) parameters of g.
        motion: (n_columns,) parameters of M and c.

    Returns:
        A function of q1.., dq1.., ddq1.., one number each, that gives the torques at the actuated coordinates.
    """
    if robot.closure is not None:
        raise InputError(f"robot {robot.name}: its loops are closed numerically; one state at a time is not offered")
    resolved = resolve_terms(terms)
    recording = Recording(robot, resolved, ("q", "dq", "ddq"))
    still = Recording(robot, resolved, ("q",))
    still.recorder, still.given = recording.recorder, {"q": recording.given["q"]}
    zero = (0.0, 0.0, 0.0)
    moved = eq.inverse_dynamics(recording.state(weightless=True), resolved, motion.tolist(), zero, zero)
    held = eq.inverse_dynamics(still.state(), resolved, weight.tolist(), zero, zero)
    program = recording.recorder.finish([a + b for a, b in zip(moved, held, strict=True)])
    return _compiled(program)


def _compiled(program: Program) -> TorqueLaw:
    import math

    # One line per instruction: names and signs are ours, numbers are written by repr, so nothing foreign is run.
    lines = [f"    v{i} = {_text(program, *instruction)}" for i, instruction in enumerate(program.instructions)]
    result = "".join(f"v{node}, " for node in program.outputs)
    source = f"def law({', '.join(program.inputs)}):\n" + "\n".join(lines) + f"\n    return ({result})\n"
    names: dict[str, Any] = {name: getattr(math, name) for name in ("sin", "cos", "tanh", "exp", "copysign")}
    names["sign"] = lambda x: math.copysign(1.0, x) if x else 0.0
    exec(compile(source, "<torque law>", "exec"), names)
    law: TorqueLaw = names["law"]
    return law


def _text(program: Program, op: Op, a: int, b: int) -> str:
    if op == Op.INPUT:
        return program.inputs[a]
    if op == Op.CONST:
        return repr(float(program.constants[a]))
    if op in UNARY:
        return f"{_NAMES[op]}(v{a})"
    return f"v{a} {_SIGNS[op]} v{b}"
