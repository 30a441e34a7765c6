"""Where to swing and how to begin: the top of the model's weight, its modes, starts of a slow mode or of all."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import energy_regressor, gravity_torque
from dynident.experiments.answer import ExperimentError
from dynident.experiments.bench import Bounds
from dynident.experiments.oscillation.groups import SwingModel, local

SMALL = np.radians(0.3)  # [rad or m] amplitude at which a sine is straight to 2e-6
_COUNTS = 100  # steps of the encoder that a swing should have
_LARGEST = np.radians(3.0)
_TRIES = 16
_FLAT = 1e-6  # curvature of the weight over its largest below which a joint has none


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


def top(model: SwingModel, bounds: Bounds, near: Array | None = None) -> Array:
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
    _check_felt(model, rng.uniform(lower, upper, (_TRIES, n)))
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


def _check_felt(model: SwingModel, poses: Array) -> None:
    """Refuse joints whose weight cannot swing: there is none, or it is the same wherever the joint stands.

    Raises:
        NoTopError: Naming them, with what to do.
    """
    about = [local(model, pose) for pose in poses]
    torque = np.max([np.abs(one.weight @ model.chi) for one in about], axis=0)
    slope = np.max([np.abs(np.diag(one.stiffness @ model.chi)) for one in about], axis=0)
    which = dict(zip(model.robot.joint_names, model.robot.position_names, strict=True))
    names = list(which)
    silent = [names[j] for j in np.flatnonzero(torque <= _FLAT * max(torque.max(), 1e-9))]
    flat = [names[j] for j in np.flatnonzero(slope <= _FLAT * max(slope.max(), 1e-9)) if names[j] not in silent]
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
        about = local(model, pose)
        K = about.stiffness @ model.chi
        if np.linalg.eigvalsh(0.5 * (K + K.T)).max() > -_FLAT * max(np.abs(K).max(), 1e-9):
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
