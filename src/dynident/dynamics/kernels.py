"""Programs of a robot, recorded once, made runnable by a replaceable back end, and kept for the next call."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from typing import Any, Protocol

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.closure import closing_outputs
from dynident.dynamics.jit.numpy_kernel import NumpyKernel, chosen_backend
from dynident.dynamics.jit.program import UNARY, Op, Program, Recorder, Value
from dynident.dynamics.state import State, make_state
from dynident.dynamics.terms import Term, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError
from dynident.robot.algebra import ZERO, Number, Vector, mul, total
from dynident.robot.model import Robot

Index = tuple[int, ...]  # place of an output in the result array
_KEPT = 64  # programs kept in memory
WORTH_COMPILING = 20_000  # samples: NumPy needs about as long for them as compiling does


class BatchKernel(Protocol):
    """A program that runs on batches."""

    program: Program

    def __call__(self, inputs: Sequence[Array], out: Array, rows: Sequence[int] | None = None) -> None:
        """Fill rows of `out` (n_rows, n_samples) from one array per input, (n_samples,) or a scalar."""
        ...


class Recording:
    """A robot's inputs as recorded values, and the outputs the equations made of them."""

    def __init__(self, robot: Robot, terms: Sequence[Term], inputs: Sequence[str]) -> None:
        n, p = len(robot.moving), len(all_columns(robot, terms))
        sizes = {"q": n, "dq": n, "ddq": n, "tau": n, "force": 3, "moment": 3, "chi": p}
        if robot.closure is not None:
            inputs, sizes["s"] = with_solved(inputs), len(robot.closure.solved)
        self.names = [f"{kind}{i}" for kind in inputs for i in range(sizes[kind])]
        self.recorder = Recorder(self.names)
        self.given = {kind: [self.recorder.input(f"{kind}{i}") for i in range(sizes[kind])] for kind in inputs}
        self.robot, self.terms, self.n = robot, terms, n

    def state(self, weightless: bool = False, constant_velocities: bool = False) -> State:
        """The robot in the recorded state; what is not an input is zero."""
        still: list[Number] = [0.0] * self.n
        return make_state(
            self.robot,
            self.recorder,
            self.given["q"],
            self.given.get("dq", still),
            still if constant_velocities else self.given.get("ddq", still),
            solved=self.given.get("s"),
            weightless=weightless,
        )


def _regressor(recording: Recording) -> dict[Index, Number]:
    entries = eq.regressor_entries(recording.state(), recording.terms)
    return {(row, column): number for (row, column), number in entries.items()}


def _kinetic(recording: Recording) -> dict[Index, Number]:
    entries = eq.energy_entries(recording.state(), recording.terms, "kinetic")
    return {(column,): number for column, number in entries.items()}


def _potential(recording: Recording) -> dict[Index, Number]:
    entries = eq.energy_entries(recording.state(), recording.terms, "potential")
    return {(column,): number for column, number in entries.items()}


def _torque(recording: Recording, weightless: bool = False) -> dict[Index, Number]:
    given = recording.given

    def wrench_part(key: str) -> Vector:
        x, y, z = given.get(key, ZERO)
        return x, y, z

    state = recording.state(weightless)
    torques = eq.inverse_dynamics(state, recording.terms, given["chi"], wrench_part("force"), wrench_part("moment"))
    return {(row,): torque for row, torque in enumerate(torques)}


def _coriolis(recording: Recording) -> dict[Index, Number]:
    return _torque(recording, weightless=True)


def _mass(recording: Recording) -> dict[Index, Number]:
    matrix = eq.mass_entries(recording.state(), recording.terms, recording.given["chi"])
    return {(i, j): number for i, row in enumerate(matrix) for j, number in enumerate(row)}


def _forward(recording: Recording) -> dict[Index, Number]:
    """ddq from M ddq = T' (tau - bias), torques brought from the rows to the joints."""
    given = recording.given
    bias = [value for _, value in sorted(_torque(recording).items())]
    free = [tau - b for tau, b in zip(given["tau"], bias, strict=True)]
    coupling = recording.robot.coupling[list(recording.robot.moving)][:, list(recording.robot.moving)]
    right = [total(*(mul(float(coupling[i, j]), free[i]) for i in range(recording.n))) for j in range(recording.n)]
    matrix = eq.mass_entries(recording.state(), recording.terms, given["chi"])
    return {(i,): number for i, number in enumerate(eq.solve_positive(matrix, right))}


def _closing(recording: Recording) -> dict[Index, Number]:
    """What a Newton step on the loops needs, one part after the other (see `closing_outputs`)."""
    parts = closing_outputs(recording.robot, recording.recorder, recording.given["q"], recording.given["s"])
    residual, step, pivots, jacobian = parts
    outputs = [*residual, *step, *pivots, *(number for row in jacobian for number in row)]
    return {(i,): number for i, number in enumerate(outputs)}


def _tree_motion(recording: Recording) -> dict[Index, Number]:
    """Position, velocity, acceleration of each tree joint, acceleration at constant velocities, and row of G."""
    state = recording.state()
    still = recording.state(constant_velocities=True)
    outputs: dict[Index, Number] = {}
    for i, (position, joint, other) in enumerate(zip(state.positions, state.joints, still.joints, strict=True)):
        row = (position, joint.velocity, joint.acceleration, other.acceleration, *state.follow[i])
        outputs.update({(i, k): number for k, number in enumerate(row)})
    return outputs


Maker = Callable[[Recording], dict[Index, Number]]
_KINDS: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "regressor": (_regressor, ("q", "dq", "ddq")),
    "kinetic": (_kinetic, ("q", "dq")),
    "potential": (_potential, ("q",)),
    "inverse dynamics": (_torque, ("q", "dq", "ddq", "chi")),
    "inverse dynamics with tool": (_torque, ("q", "dq", "ddq", "force", "moment", "chi")),
    "gravity": (_torque, ("q", "chi")),
    "coriolis": (_coriolis, ("q", "dq", "chi")),
    "mass matrix": (_mass, ("q", "chi")),
    "forward dynamics": (_forward, ("q", "dq", "tau", "chi")),
    "tree motion": (_tree_motion, ("q", "dq", "ddq")),
}
CLOSING = "closing"  # only robots with numerically closed loops have this one


def record(
    robot: Robot, kind: str, terms: Sequence[Term], wanted: Container[Index] | None = None
) -> tuple[Program, tuple[Index, ...]]:
    """The program of one of the robot's functions and the place of each of its outputs.

    Args:
        robot: The robot.
        kind: Which function.
        terms: Terms of the model.
        wanted: Places to compute; what only others need is left out of the program. Default: all that are not zero.
    """
    make, inputs = (_closing, ("q",)) if kind == CLOSING else _KINDS[kind]
    recording = Recording(robot, terms, inputs)
    outputs = make(recording)
    kept = {
        place: x
        for place, x in outputs.items()
        if (isinstance(x, Value) or x != 0.0) and (wanted is None or place in wanted)
    }
    return recording.recorder.finish(list(kept.values())), tuple(kept)


def inputs_of(kind: str) -> tuple[str, ...]:
    """The inputs a kind of program takes, in order; see `with_solved` for robots with numerically closed loops."""
    return _KINDS[kind][1]


def with_solved(inputs: Sequence[str]) -> tuple[str, ...]:
    """Inputs with the positions of the joints that loops are solved for, behind all else that varies: chi is last."""
    return (*(name for name in inputs if name != "chi"), "s", *(name for name in inputs if name == "chi"))


class _Prepared:
    """A recorded program and the kernels made of it so far."""

    def __init__(self, program: Program, places: tuple[Index, ...]) -> None:
        self.program, self.places = program, places
        self._compiled: BatchKernel | None = None
        self._seen = 0

    @functools.cached_property
    def _plain(self) -> BatchKernel:
        return NumpyKernel(self.program)

    def kernel(self, n_samples: int) -> BatchKernel:
        """The kernel for a batch of this size."""
        chosen = chosen_backend()
        self._seen += n_samples
        if chosen == "numpy" or (chosen == "auto" and self._compiled is None and self._seen < WORTH_COMPILING):
            return self._plain
        if self._compiled is None:
            from dynident.dynamics.jit.llvm_kernel import LlvmKernel  # LLVM is loaded only when something is compiled

            self._compiled = LlvmKernel(self.program)
        return self._compiled


_cache: OrderedDict[tuple[str, ...], _Prepared] = OrderedDict()
_lock = threading.RLock()


def kernel(robot: Robot, kind: str, terms: Sequence[Term], n_samples: int = 0) -> tuple[BatchKernel, tuple[Index, ...]]:
    """The kernel of one of the robot's functions and the place of each of its outputs.

    Compiling takes a few tenths of a second the first time, so short batches run on NumPy until the compiled kernel
    exists, which it does once that many samples have come. DYNIDENT_BACKEND=numpy or llvm makes one back end serve all.
    """
    key = (robot.fingerprint, kind, *(term.key for term in terms))
    with _lock:
        prepared = _cache.pop(key, None) or _Prepared(*record(robot, kind, terms))
        _cache[key] = prepared
        if len(_cache) > _KEPT:
            _cache.popitem(last=False)
        return prepared.kernel(n_samples), prepared.places


# ----------------------------------------------------------------------------------------------------------------------
# The torque of one state at a time, for controllers: the recorded equations as plain Python over floats.
#
# A batch kernel spends most of its time on getting started; a controller asks for one state a few hundred times a
# second.

TorqueLaw = Callable[..., tuple[float, ...]]
_SIGNS = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
_NAMES = {op: "-" if op == Op.NEG else op.name.lower() for op in UNARY}


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
    resolved = resolve_terms(terms, robot)
    recording = Recording(robot, resolved, ("q", "dq", "ddq"))
    still = Recording(robot, resolved, ("q",))
    still.recorder, still.given = recording.recorder, {"q": recording.given["q"]}
    zero = (0.0, 0.0, 0.0)
    moved = eq.inverse_dynamics(recording.state(weightless=True), resolved, motion.tolist(), zero, zero)
    held = eq.inverse_dynamics(still.state(), resolved, weight.tolist(), zero, zero)
    program = recording.recorder.finish([a + b for a, b in zip(moved, held, strict=True)])
    return _compile_law(program)


def _compile_law(program: Program) -> TorqueLaw:
    import math

    # One line per instruction: names and signs are ours, numbers are written by repr, so nothing foreign is run.
    lines = [f"    v{i} = {_text(program, *instruction)}" for i, instruction in enumerate(program.instructions)]
    result = "".join(f"v{node}, " for node in program.outputs)
    source = f"def law({', '.join(program.inputs)}):\n" + "\n".join(lines) + f"\n    return ({result})\n"
    names: dict[str, Any] = {name: getattr(math, name) for name in ("sin", "cos", "tanh", "exp", "log")}
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
