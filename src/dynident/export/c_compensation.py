r"""Gravity and friction compensation as a small library in C99, with a Python module and a self-test.

`hold` is what the model needs at rest: gravity, springs and offsets. `drag` adds a share of the friction, so that a
hand that moves the arm feels less of it, under rules that make it safe whatever the velocity signal does:

.. math:: c_j = s_j\, w(|v_j|)\, \phi\, (f_j(q, \dot q) - f_j(q, 0)), \qquad
    s_j = \min(0.9,\ 1 - 2 \sigma(f_j) / |f_j|)

- w is zero below the rest velocity and one above twice that: joints at rest get no friction torque, and none chatters;
- phi \le 1 keeps the power of all c below that of the friction: what is left of the friction takes energy;
- |c_j| grows at most at a rate and falls at once: a velocity that is late by less cannot drive a limit cycle;
- |c_j| is at most the friction at the largest velocity of the training data, and all torque within the robot's limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident._version import __version__
from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import regressor
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import along_terms, state_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION, WINDING_RADII
from dynident.estimate.prediction import motion_at_stamps
from dynident.export.c_files import MARK, CCode
from dynident.export.c_functions import literal
from dynident.export.c_model import CModel, Exportable
from dynident.export.c_templates import HEADER, MAKEFILE, PYTHON, SELFTEST, SOURCE
from dynident.identifiability.states import random_states
from dynident.logs.log import LogSource, row_torques
from dynident.robot.model import Robot
from dynident.signals.observations import SignalOptions, observe

API = 1  # changes when a function of the header does
MOST_SHARE = 0.9  # of the friction: it changes by a tenth as a gear warms up
RISE_TIME = 0.05  # [s] until a joint has all of its friction torque: velocities of slow buses are that late
_STD = 2.0  # standard deviations that friction may be less than identified
_N_STATES = 400
_N_TESTED = 200  # states of a self-test
_UNLIMITED = 3.0e38  # stands for a joint without limit, in single precision too
_FALLBACK_VELOCITY = 1.0  # [rad/s or m/s] up to which friction is compensated where nothing else is known


@dataclass(frozen=True, eq=False)
class CompensationLimits:
    """What bounds the compensation, (n_joints,) each, in the order of the torque.

    Attributes:
        share: Of the friction that is compensated.
        rest_velocity: Below which a joint gets no friction torque [rad/s or m/s].
        drag: Largest friction torque [N·m or N].
        torque: Largest torque; infinite where the robot has no limit.
    """

    share: Array
    rest_velocity: Array
    drag: Array
    torque: Array


def compensation_limits(given: Exportable, model: CModel) -> CompensationLimits:
    """The limits of an export, from the uncertainty of its friction and the velocities that it was identified at."""
    robot, n = model.robot, len(model.robot.moving)
    fit = given if isinstance(given, Fit) else None
    rest = np.full(n, (SignalOptions() if fit is None else fit.signals).rest_velocity)
    fastest = np.maximum(_largest_velocities(fit, robot), 2.0 * rest)
    q, spread, _ = random_states(robot, _N_STATES, seed=3)
    rng = np.random.default_rng(4)
    dq = np.sign(spread) * rng.uniform(rest, fastest, q.shape)
    columns, W = _friction_columns(model, q, dq)
    friction = W @ model.beta[columns]
    share = np.full(n, MOST_SHARE)
    size = np.sqrt(np.mean(friction**2, axis=0))
    if fit is not None:
        own = np.where(np.isfinite(fit.covariance), fit.covariance, 0.0)[np.ix_(columns, columns)]
        variance = np.einsum("sjk,kl,sjl->sj", W, own, W)
        std = np.sqrt(np.mean(np.maximum(variance, 0.0), axis=0))
        lacking = np.isinf(fit.std[columns]) & (np.abs(W).max(0) > 0.0)
        share = np.minimum(share, 1.0 - _STD * std / np.maximum(size, 1e-300))
        share[lacking.any(1)] = 0.0
    share = np.where(size > 0.0, np.clip(share, 0.0, MOST_SHARE), 0.0)
    return CompensationLimits(*(frozen(x) for x in (share, rest, np.abs(friction).max(0), robot.effort_limits)))


def _largest_velocities(fit: Fit | None, robot: Robot) -> Array:
    """(n_joints,) of the training data, else of the robot's limits [rad/s or m/s]."""
    limits = np.array([joint.limits.velocity or _FALLBACK_VELOCITY for joint in robot.moving_joints])
    limits = np.where(np.isfinite(limits), limits, _FALLBACK_VELOCITY)
    if fit is None or fit.friction_view is None:
        return limits
    seen = np.nanmax(np.abs(fit.friction_view.points[0]), axis=-1)
    return np.asarray(np.where(np.isfinite(seen) & (seen > 0.0), seen, limits))


def _friction_columns(model: CModel, q: Array, dq: Array) -> tuple[list[int], Array]:
    """Places of the base parameters of friction, and what their columns have in steady sliding beyond rest."""
    base = model.base
    chosen = [k for k, index in enumerate(base.independent) if base.columns[index].term in FRICTION]
    radii = [x for term in model.terms if isinstance(term, FrictionTerm) and term.law.remembers for x in term.scales]
    # Every state comes right behind one that lies so far back that springs are wound up on the way.
    way = np.sign(dq) * WINDING_RADII * max(radii, default=0.0)
    before_and_at = np.stack([q - way, q], axis=1).reshape(-1, q.shape[1])
    moving = np.stack([dq, dq], axis=1).reshape(before_and_at.shape)
    return chosen, _columns(model, before_and_at, moving)[1::2][:, :, chosen]


def _columns(model: CModel, q: Array, dq: Array) -> Array:
    """(n_samples, n_joints, n_base) regressor of a stretch of motion without acceleration."""
    base, still = model.base, np.zeros_like(q)
    of_state, along = state_terms(base.terms), along_terms(base.terms)
    parts = [regressor(model.robot, q, dq, still, of_state)] if of_state else []
    if along:
        reference = None if model.reference is None else LinearizationPoint(model.robot, model.reference)
        own = np.zeros((len(q), len(model.robot.moving), sum(len(term.columns(model.robot)) for term in along)))
        lines = TermCourse(model.robot, along, reference).columns_first(
            MotionSamples(q, dq, still, still, restart=True)
        )
        for (row, column), line in zip(all_places(model.robot, along), lines, strict=True):
            own[:, row, column] += line
        parts.append(own)
    return np.concatenate(parts, axis=2)[:, :, list(base.independent)]


@dataclass(frozen=True, eq=False)
class TestMotion:
    """States that a self-test goes through, one after the other, (n_samples, n_joints) each.

    Attributes:
        source: Where they come from, in words.
        time: (n_samples,) stamps [s].
        q, dq, ddq: The motion.
        torque: Torque of the model at them, at the actuated coordinates.
        rest: The same at rest.
        measured: Measured torque; None without a log.
    """

    __test__ = False  # for pytest

    source: str
    time: Array
    q: Array
    dq: Array
    ddq: Array
    torque: Array
    rest: Array
    measured: Array | None = None


def random_motion(model: CModel) -> TestMotion:
    """States all over, for a self-test without a log; one every 10 ms."""
    q, dq, ddq = random_states(model.robot, _N_TESTED, seed=5)
    time = np.asarray(np.arange(len(q)) * 0.01, dtype=np.float64)
    return _with_torque(model, "random states", time, q, dq, ddq, None)


def motion_of_log(given: Exportable, model: CModel, log: LogSource) -> TestMotion:
    """A stretch from the middle of a log, with the filtered motion and the torque that was measured.

    Raises:
        LogError: Where the log does not fit the robot or has no torque.
    """
    signals = given.signals if isinstance(given, Fit) else SignalOptions()
    observations = observe(log, model.robot, signals)
    middle = observations.survey.start + 0.5 * observations.survey.duration
    found: list[tuple[Array, ...]] = []
    for block, (stamps, pieces) in zip(log.blocks(), motion_at_stamps(observations, model.terms), strict=False):
        piece = pieces[int(np.argmax([len(one) for one in pieces]))]
        first = sum(len(one) for one in pieces[: pieces.index(piece)])
        own = slice(first, first + len(piece))
        found = [(stamps[own], piece.q, piece.dq, piece.ddq, row_torques(block, model.robot)[own])]
        if stamps[-1] >= middle:
            break
    time, q, dq, ddq, measured = found[0]
    begin = int(np.clip(np.searchsorted(time, middle) - _N_TESTED // 2, 0, max(0, len(time) - _N_TESTED)))
    own = slice(begin, begin + _N_TESTED)
    return _with_torque(model, log.label, time[own], q[own], dq[own], ddq[own], measured[own])


def _with_torque(
    model: CModel, source: str, time: Array, q: Array, dq: Array, ddq: Array, measured: Array | None
) -> TestMotion:
    """What the library makes of a motion, without jerk."""
    own = model.torque_model("standard")
    still = np.zeros_like(q)
    torque = own.start().torque(MotionSamples(q, dq, ddq, still, restart=True))
    # Springs that remember start again at every state at rest.
    none = still[:1]
    rest = np.concatenate([own.start().torque(MotionSamples(one[None], none, none, none, restart=True)) for one in q])
    return TestMotion(source, time - time[0], q, dq, ddq, torque, rest, measured)


@dataclass(frozen=True, eq=False)
class Compensation:
    """The files beside the dynamics.

    Attributes:
        code: The dynamics.
        limits: What bounds compensation.
        motion: What the self-test goes through.
    """

    code: CCode
    limits: CompensationLimits
    motion: TestMotion

    def files(self) -> dict[str, str]:
        """Texts by file name."""
        name = self.code.name
        return {
            f"{name}_compensation.h": self.header(),
            f"{name}_compensation.c": self.source(),
            f"{name}_selftest.c": self.selftest(),
            f"{name}_compensation.py": self.python(),
            f"{name}.mk": self.makefile(),
        }

    @property
    def _words(self) -> dict[str, str]:
        """What the templates have."""
        code, model = self.code, self.code.model
        robot = model.robot
        motion = ["q", "dq", "zero", *(["zero"] if model.needs_jerk else [])]
        memory = ["&memory"] if model.springs else []
        zero, one = literal(0.0, code.number), literal(1.0, code.number)
        given = ", ".join([*motion, *memory, f"{code.name}_base"])
        names = ", ".join(f'"{joint}"' for joint in robot.joint_names)
        return {
            "mark": f"{MARK} {__version__}",
            "name": code.name,
            "NAME": code.name.upper(),
            "real": code.number,
            "ctype": "c_double" if code.number == "double" else "c_float",
            "f": "" if code.number == "double" else "f",
            "N": code.macro("N_JOINTS"),
            "n": str(len(robot.moving)),
            "api": str(API),
            "robot": robot.name,
            "joints": names,
            "zero": zero,
            "one": one,
            "moving": given,
            "resting": given.replace("dq", "zero", 1),
            "full": given,
            "memory": f"    {code.name}_memory memory;\n" if model.springs else "",
            "begin": f"    {code.name}_init(&memory);\n" if model.springs else "",
            "wind": self._wind(),
            "velocities": self._velocities(),
            "share": self._numbers(self.limits.share),
            "rest_velocity": self._numbers(self.limits.rest_velocity),
            "drag_limit": self._numbers(self.limits.drag),
            "torque_limit": self._numbers(np.minimum(self.limits.torque, _UNLIMITED)),
            "rise": literal(RISE_TIME, code.number),
        }

    def _numbers(self, values: Array) -> str:
        return ", ".join(literal(float(x), self.code.number) for x in values)

    def _velocities(self) -> str:
        """Velocities of the rows that torque stands in."""
        lines = []
        for row, shares in enumerate(self.code.model.robot.moving_coupling):
            parts = [
                f"dq[{j}]" if x == 1.0 else f"({literal(float(x), self.code.number)}) * dq[{j}]"
                for j, x in enumerate(shares)
                if x
            ]
            lines.append(f"    v[{row}] = {' + '.join(parts)};")
        return "\n".join(lines)

    def _wind(self) -> str:
        """Springs of friction with memory as steady sliding leaves them: no torque that builds up at rest."""
        number, lines = self.code.number, []
        for k, (direction, slip) in enumerate(self.code.model.springs):
            parts = " + ".join(f"({literal(x, number)}) * dq[{j}]" for j, x in enumerate(direction) if x)
            sizes = " + ".join(
                f"({literal(abs(x), number)}) * {self.code.name}_rest_velocity[{j}]"
                for j, x in enumerate(direction)
                if x
            )
            share = f"within(({parts}) / ({sizes}), {literal(1.0, number)})"
            lines.append(f"    memory.spring[{k}] = {literal(slip, number)} * {share};")
        return "".join(f"{line}\n" for line in lines)

    def _fill(self, template: str) -> str:
        for key, text in self._words.items():
            template = template.replace(f"@{key}@", text)
        return template

    def header(self) -> str:
        """The .h file: the same functions for every robot."""
        return self._fill(HEADER)

    def source(self) -> str:
        """The .c file."""
        return self._fill(SOURCE)

    def python(self) -> str:
        """The Python module."""
        return self._fill(PYTHON)

    def makefile(self) -> str:
        """How all is built and tested."""
        return self._fill(MAKEFILE)

    def selftest(self) -> str:
        """A program that runs the library on the states of a motion."""
        motion, number = self.motion, self.code.number
        rest = np.clip(motion.rest, -self.limits.torque, self.limits.torque)
        tables = {"q": motion.q, "dq": motion.dq, "ddq": motion.ddq, "torque": motion.torque, "rest": rest}
        if motion.measured is not None:
            tables["measured"] = motion.measured
        lines = [f"#define N_SAMPLES {len(motion.q)}"]
        lines.append(f"static const {number} stamps[N_SAMPLES] = {{{self._numbers(motion.time)}}};")
        for name, values in tables.items():
            lines.append(f"static const {number} {name}_of[N_SAMPLES][{self.code.macro('N_JOINTS')}] = {{")
            lines += [f"    {{{self._numbers(row)}}}," for row in values]
            lines.append("};")
        jerk = ", zero" if self.code.model.needs_jerk else ""
        memory = ", &memory" if self.code.model.springs else ""
        # Torque of this size counts as one where deviations are shares.
        own = {
            "tables": "\n".join(lines),
            "source": motion.source,
            "dynamics": f"q, dq, ddq{jerk}{memory}, {self.code.name}_base, tau",
            "update": f"        {self.code.name}_update(&memory, q);\n" if self.code.model.springs else "",
            "limit": "1e-9" if number == "double" else "1e-4",
            "has_measured": str(int(motion.measured is not None)),
            "measured": "measured_of" if motion.measured is not None else "torque_of",
        }
        template = SELFTEST
        for key, text in own.items():
            template = template.replace(f"@{key}@", text)
        return self._fill(template)
