"""The control law that lets a machine swing: the model's torque, and a spring that scales with the model's inertia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Mask, frozen, record
from dynident.dynamics.evaluate import energy_regressor, gravity_torque
from dynident.dynamics.kernels import torque_law
from dynident.experiments.bench import Bench, Bounds, Run
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.model import ParameterGroup, PoseEquations, SwingModel, equations_about
from dynident.experiments.oscillation.modes import Modes, fit_modes
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.thresholds import OSCILLATION
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.plant.controllers import Quantity
from dynident.plant.protocol import Reading

# Of the acceleration times the squared sample time: 1/2 gets to the next sample, and 1/12 less makes up for torque that
# goes there in a straight line, which is the mean of neighbors and so too small by that where it is curved.
AHEAD = 1 / 2 - 1 / 12


class NaturalControl:
    r"""Torque of the model and nothing that brakes, eq. (14) and (20).

    .. math:: \tau = \tilde A(q)\,u + \tilde c(q, \dot q) + \tilde g(q), \qquad u = -k_p (q - q_d)

    With kp = 0 it is the open loop of the gravity stage. A torque that acts late feeds energy into the swing (a delay d
    of a spring k is a damper of -k d), so the law is worked out for the state that the machine will have when the
    torque is reached: one sample ahead, with the velocity as measured and the acceleration u.

    Args:
        model: The model.
        weight: (n_columns,) parameters of its gravity.
        motion: (n_columns,) parameters of its inertia, Coriolis and centrifugal torque.
        kp: Proportional gain [1/s²], a number or a matrix (n_moving, n_moving); 0 for the open loop.
        target: (n_moving,) q_d [rad or m]; needed with kp only.
        ahead: Predict the state at the next sample; False for the plain law of the paper.
    """

    quantity: Quantity = "torque"

    def __init__(
        self,
        model: SwingModel,
        weight: Array,
        motion: Array,
        kp: float | Array = 0.0,
        target: ArrayLike | None = None,
        *,
        ahead: bool = True,
    ) -> None:
        self._law = torque_law(model.robot, model.terms, weight, motion)
        self.target = frozen(np.zeros(len(model.robot.moving)) if target is None else target)
        self.model, self.kp, self._ahead, self._step = model, kp, ahead, 0.0

    def start(self, sample_time: float) -> None:
        """Know how far ahead the torque is reached."""
        self._step = sample_time if self._ahead else 0.0

    def command(self, time: float, reading: Reading) -> Array:
        """The torque for the state at the next sample."""
        h, q, dq = self._step, reading.q, reading.dq
        if not np.any(self.kp):
            return np.array(self._law(*(q + h * dq).tolist(), *dq.tolist(), *[0.0] * len(q)))
        push = self._push(q)
        later, velocity = q + h * dq + AHEAD * h * h * push, dq + h * push
        return np.array(self._law(*later.tolist(), *velocity.tolist(), *self._push(later).tolist()))

    def _push(self, q: Array) -> Array:
        """u, the acceleration that is asked for."""
        return np.asarray(-np.dot(self.kp, q - self.target))


# ----------------------------------------------------------------------------------------------------------------------
# Where to swing and how to begin: the top of the model's weight, its modes, starts of a slow mode or of all.

SMALL = np.radians(0.3)  # [rad or m] amplitude at which a sine is straight to 2e-6
_COUNTS = 100  # steps of the encoder that a swing should have
_LARGEST = np.radians(3.0)
_TRIES = 16


class NoTopError(ExperimentError):
    """A robot whose weight does not swing in every joint, wherever it stands."""


def amplitude_for(quantum: float, wished: float | None = None) -> float:
    """Amplitude of a start [rad or m]: small, but many steps of the encoder."""
    if wished is not None:
        return wished
    return float(np.clip(_COUNTS * quantum, SMALL, _LARGEST))


def quantum_of(q: Array) -> float:
    """The step of the encoders as a record shows it [rad or m]; next to nothing for exact positions."""
    moves = np.abs(np.diff(q, axis=0))
    steps = [float(column[column > 1e-12].min(initial=np.inf)) for column in moves.T]
    found = max((step for step in steps if np.isfinite(step)), default=0.0)
    repeated = float(np.mean(moves <= 1e-12))  # exact positions hardly ever repeat
    return found if repeated > 0.02 else 0.0


def upright_pose(model: SwingModel, bounds: Bounds, near: Array | None = None) -> Array:
    """The pose at which the model's weight stands upright in every joint: over-compensated, it swings there.

    Args:
        model: The model.
        bounds: Where the joints may go.
        near: (n_moving,) where to look; default everywhere within the bounds.

    Raises:
        NoTopError: When the weight of a joint has no slope, or no such pose lies within the bounds.
    """
    robot, n = model.robot, len(model.robot.moving)
    lower, upper = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    rng = np.random.default_rng(0)
    middle = np.clip(np.zeros(n), lower, upper)
    starts = [middle, *rng.uniform(lower, upper, (_TRIES, n))] if near is None else [near]
    _check_visible(model, rng.uniform(lower, upper, (_TRIES, n)))
    found = [pose for pose in (_uphill(model, start) for start in starts) if pose is not None]
    inside = [pose for pose in found if np.all((pose > bounds.lower) & (pose < bounds.upper))]
    if not inside:
        remedy = "; lock joints that cannot stand upright (--locked)" if n > 1 else ""
        raise NoTopError(
            f"robot {robot.name}: no pose within its limits at which the weight stands upright in all joints, where "
            f"alone over-compensated gravity swings{remedy}; dynident oscillate --stage inertia finds weights as well"
        )
    height = [float(_height(model, pose)) for pose in inside]
    # Among equally high ones the nearest to the middle: a turn more or less is the same pose.
    best = max(height) - 1e-6 * max(1.0, abs(max(height)))
    return min((pose for pose, h in zip(inside, height, strict=True) if h >= best), key=lambda p: float(p @ p))


def _check_visible(model: SwingModel, poses: Array) -> None:
    """Refuse joints whose weight cannot swing: there is none, or it is the same wherever the joint stands.

    Raises:
        NoTopError: Naming them, with what to do.
    """
    about = [equations_about(model, pose) for pose in poses]
    torque = np.max([np.abs(one.weight @ model.chi) for one in about], axis=0)
    slope = np.max([np.abs(np.diag(one.stiffness @ model.chi)) for one in about], axis=0)
    which = dict(zip(model.robot.joint_names, model.robot.position_names, strict=True))
    names = list(which)
    silent = [names[j] for j in np.flatnonzero(torque <= OSCILLATION.flat_share * max(torque.max(), 1e-9))]
    flat = [
        names[j]
        for j in np.flatnonzero(slope <= OSCILLATION.flat_share * max(slope.max(), 1e-9))
        if names[j] not in silent
    ]
    if not silent and not flat:
        return
    reasons = [f"gravity has no effect on {', '.join(silent)}"] if silent else []
    if flat:
        reasons.append(
            f"the weight of {', '.join(flat)} is the same at every position, as of any slide: it has no slope"
        )
    held = ",".join(f"{which[name]}=0" for name in names if name in silent or name in flat)
    some = len(silent) + len(flat) < len(names)
    lock = f"; lock such joints for the gravity stage (--locked {held})" if some else ""
    ways = "dynident oscillate --stage inertia finds weights as well, from the positions that the joints swing about"
    more = "; or use dynident gravity or identify" if flat else ""
    raise NoTopError(f"robot {model.robot.name}: {', and '.join(reasons)}, so nothing swings there{lock}; {ways}{more}")


def _by_name(model: SwingModel) -> dict[str, float]:
    from dynident.dynamics.evaluate import columns

    names = [column.name for column in columns(model.robot, model.terms)]
    return dict(zip(names, model.chi.tolist(), strict=True))


def _height(model: SwingModel, pose: Array) -> float:
    row = energy_regressor(model.robot, pose[None], np.zeros((1, len(pose))), model.terms, kind="potential")
    return float(row[0] @ model.chi)


def _uphill(model: SwingModel, start: Array) -> Array | None:
    """Newton's way to a place where the weight is balanced and every joint stands upright; None where it does not."""
    from scipy.optimize import minimize

    names = _by_name(model)

    def slope(pose: Array) -> Array:
        return np.asarray(-gravity_torque(model.robot, pose[None], names)[0])

    found = minimize(lambda pose: -_height(model, pose), start, jac=slope, method="BFGS", options={"gtol": 1e-6})
    pose = np.asarray(found.x)
    for _ in range(5):
        about = equations_about(model, pose)
        K = about.stiffness @ model.chi
        if np.linalg.eigvalsh(0.5 * (K + K.T)).max() > -OSCILLATION.flat_share * max(np.abs(K).max(), 1e-9):
            return None
        pose = pose - np.linalg.solve(K, about.weight @ model.chi)
    return np.asarray((pose + np.pi) % (2.0 * np.pi) - np.pi)


def natural_modes(mass: Array, stiffness: Array) -> tuple[Array, Array]:
    """Squared frequencies (n,), rising, and shapes (n, n) in columns, each with its largest joint at one."""
    squares, shapes = np.linalg.eig(np.linalg.solve(mass, stiffness))
    order = np.argsort(squares.real)
    real = shapes.real[:, order]
    return squares.real[order], real / np.abs(real).max(axis=0)


def slow_start(mass: Array, stiffness: Array, amplitude: float) -> Array:
    """Displacement in the slowest mode alone, (n,): all joints share one frequency."""
    return np.asarray(amplitude * natural_modes(mass, stiffness)[1][:, 0])


def mixed_start(mass: Array, stiffness: Array, amplitude: float) -> Array:
    """Displacement with every mode in it, (n,); neither a joint nor a mode goes beyond the amplitude."""
    shapes = natural_modes(mass, stiffness)[1]
    signs = [np.array([1.0 if i >> j & 1 == 0 else -1.0 for j in range(shapes.shape[1])]) for i in range(2**4)]
    mixed = [shapes @ sign for sign in signs]
    chosen = min(mixed, key=lambda x: float(np.abs(x).max()))  # so that as much as possible of each fits in
    return np.asarray(amplitude * chosen / max(1.0, np.abs(chosen).max()))


# ----------------------------------------------------------------------------------------------------------------------
# One swing: a run under the natural control, and what its modes are.


@dataclass(frozen=True)
class Swing:
    """A run under the natural control, and its modes.

    Attributes:
        control: What was sent.
        sent: Value of each group that a stage searches, as it was sent.
        run: What came back.
        amplitude: Of its start [rad or m].
        modes: Its natural modes; None of a swing that fell, was held, or is not clear.
        state: "swings", "falls", "limit" where it meets one of the machine, "held" by friction, "saturated", "unclear".
    """

    control: NaturalControl
    sent: Array
    run: Run
    amplitude: float
    modes: Modes | None
    state: str

    @property
    def fitted(self) -> Modes:
        """The modes of a swing that has some."""
        assert self.modes is not None
        return self.modes

    @property
    def squares(self) -> Array:
        """Squared frequencies [1/s²], empty of a swing without modes."""
        return np.zeros(0) if self.modes is None else self.modes.square

    @cached_property
    def about(self) -> PoseEquations:
        """The equations about its mean position, by standard parameter."""
        return equations_about(self.control.model, np.asarray(self.fitted.mean))

    @property
    def tilt(self) -> float:
        """Largest angle by which the last link may tilt [rad]: that of all joints and all modes together."""
        return float(self.fitted.size.sum())

    @cached_property
    def log_std(self) -> float:
        """Standard deviation of the logarithm of the product of its squared frequencies.

        Beyond noise, a swing of finite size is slower than a small one by its square over 16, each mode by the size of
        all of them; rounded positions come back as torque, and what sampling does is corrected up to a small part.
        """
        bend = len(self.fitted.poles) * self.tilt**2 / 8.0
        rounded = OSCILLATION.rounding_share * quantum_of(self.run.q) / self.amplitude
        step = float(self.run.time[1] - self.run.time[0])
        sampled = OSCILLATION.sampling_share * float(self.fitted.square.max()) * step**2
        systematic = np.linalg.norm([bend, rounded, sampled, OSCILLATION.log_std])
        return float(np.hypot(self.fitted.log_product_std, systematic))

    @cached_property
    def mean_std(self) -> Array:
        """(n,) what may be wrong with the mean positions [rad or m].

        Besides noise, a spring that is not straight shifts the mean by the square of the swing, and rounding to steps d
        of a sinusoid of amplitude A by up to d / (2 pi) * sqrt(d / (pi² A)), the mean of the saw tooth that rounding
        is.
        """
        bend = 0.5 * self.tilt**2 * self.amplitude
        step = quantum_of(self.run.q)
        rounded = step / (2.0 * np.pi) * np.sqrt(step / (np.pi**2 * np.maximum(self.fitted.size.max(axis=0), step)))
        return np.asarray(self.fitted.mean_std + bend + rounded + 1e-9)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "run": self.run.label,
            "sent": self.sent.tolist(),
            "squared_frequencies": self.squares.tolist(),
            "state": self.state,
        }

    @property
    def why(self) -> str:
        """What became of it, in words."""
        return {
            "swings": "swings",
            "falls": f"falls: {self.run.why}",
            "limit": f"meets a limit of its own: {self.run.why}",
            "held": "comes to rest without swinging: friction or a brake holds it",
            "saturated": f"needs more torque than there is: {self.run.why}",
            "unclear": "swings, but not in as many clear modes as there are joints",
        }[self.state]


def swing(
    bench: Bench,
    control: NaturalControl,
    start: Array,
    duration: float,
    *,
    label: str,
    sent: Array,
    amplitude: float,
    fastest: float,
    slowest: float = 0.0,
    reach: float = OscillationOptions.reach,
    count: int | None = None,
) -> Swing:
    """Let the machine swing and look at its modes.

    Args:
        bench: The machine.
        control: What to send.
        start: (n_moving,) displacement from its target [rad or m].
        duration: Length of the run [s].
        label: Name of the run.
        sent: Value of each group that is searched, for the record.
        amplitude: Of the start [rad or m].
        fastest: A frequency that no mode exceeds [rad/s].
        slowest: A frequency that every mode exceeds [rad/s].
        reach: Distance from the target at which the run is stopped [rad or m].
        count: Number of modes; default one per joint.
    """
    bounds = bench.bounds.within(control.target, reach)
    run = bench.run(control, duration, control.target + start, label=label, bounds=bounds)
    modes = None
    if run.end == "saturated":
        state = "saturated"
    elif not run.whole:
        # One that becomes too fast falls: a swing within its reach is slow.
        own = run.end == "bound" and bench.bounds.broken(run.q[-1], run.dq[-1]) is not None
        state = "limit" if own else "falls"
    elif _is_held(run, start):
        state = "held"
    else:
        modes = fit_modes(run.time, run.q, len(start) if count is None else count, fastest, slowest)
        state = "swings" if modes is not None and modes.clear else "unclear"
    return Swing(control, sent, run, amplitude, modes, state)


def _is_held(run: Run, start: Array) -> bool:
    """Whether no joint goes to and fro about where it ends up, by more than a small part of its start."""
    last = run.q[3 * len(run.q) // 4 :]
    middle = 0.5 * (last.max(axis=0) + last.min(axis=0))
    return (
        max(
            turns(run.q[:, j] - middle[j], OSCILLATION.rest_share * float(np.abs(start).max()))
            for j in range(len(start))
        )
        < OSCILLATION.turns
    )


def turns(x: Array, band: float) -> int:
    """How often a signal changes sides, counted only beyond a band about zero."""
    sides = np.sign(x[np.abs(x) > band])
    return int(np.count_nonzero(np.diff(sides)))


# ----------------------------------------------------------------------------------------------------------------------
# A stage: what its swings found.

_SHORTEST, _LONGEST = 2.0, 120.0  # [s]


@record
class StageResult:
    """What a stage found.

    Attributes:
        name: "gravity" or "inertia".
        search: How it was searched.
        groups: The groups.
        estimate: Their values; not determined where the swings do not show them.
        steps: Every swing.
        notes: Facts for people.
        warnings: Doubts.
        poses: (n_poses, n_moving) where it swung [rad or m].
    """

    name: str
    search: str
    groups: tuple[ParameterGroup, ...]
    estimate: ParameterEstimate
    steps: tuple[Swing, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    poses: Array

    @property
    def values(self) -> Array:
        """(n_groups,)."""
        return self.estimate.values

    @property
    def std(self) -> Array:
        """(n_groups,) standard deviations; infinite where the swings do not determine a group."""
        return self.estimate.std

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "stage": self.name,
            "search": self.search,
            "groups": [one.name for one in self.groups],
            "nominal": [one.nominal for one in self.groups],
            "poses": self.poses.tolist(),
            "notes": list(self.notes),
            "steps": [one.as_dict() for one in self.steps],
        }


def duration_for(square: float, periods: float, sample_time: float) -> float:
    """Time for so many periods of a squared frequency, within reason [s]."""
    length = periods * 2.0 * np.pi / np.sqrt(max(square, 1e-6))
    return float(np.clip(length, max(_SHORTEST, 50 * sample_time), _LONGEST))


def refuse(stage: str, one: Swing, advice: str) -> ExperimentError:
    """The error of a stage that cannot go on."""
    return ExperimentError(f"{stage} stage, run {one.run.label}: the machine {one.why}; {advice}")


def estimate_groups(
    groups: Sequence[ParameterGroup], values: Array, covariance: Array, determined: Mask
) -> ParameterEstimate:
    """Values of groups (n_groups,) as an estimate."""
    names, units = tuple(x.name for x in groups), tuple(x.unit for x in groups)
    return ParameterEstimate(names, units, values, covariance, determined)
