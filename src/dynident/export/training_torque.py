"""What a file lacks of the identified torque, over the motion that the model was identified on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque
from dynident.dynamics.terms import Coulomb
from dynident.estimate.fit import Fit
from dynident.export.verification import MissingTorque
from dynident.plant.mjcf_writer import element_places

_WORDS = {"Ia": "rotor inertia", "Fv": "viscous friction", "Fc": "Coulomb friction", "Fo": "torque offsets"}
_REST = "what plain values do not describe (friction beyond viscous and Coulomb, springs and the like)"
_TURNED_OVER = 3.0  # smoothing velocities from which friction has 99.5 % of its size
_MIN_SHARE = 5e-4  # of the torque, below which a kind is not named


def missing_torque(fit: Fit, values: Mapping[str, float], held: Mapping[str, float]) -> MissingTorque | None:
    """Torque at the joints that a file lacks, as a share of what the fit predicts on the motion of its training logs.

    Left out is motion so slow that smoothed Coulomb friction has not turned over: nobody knows dry friction there.

    Args:
        fit: The fit.
        values: Standard values that were to be written.
        held: Those that the file holds.

    Returns:
        None for fits that keep no motion.
    """
    view = fit.friction_view
    if view is None or not view.states.size:
        return None
    q, dq, ddq, torque = view.states.transpose(0, 2, 1)
    fast = _fast(fit, dq)
    size = float(np.linalg.norm(torque[fast]))

    def of(chosen: Mapping[str, float]) -> Array:
        return joint_torque(fit.robot, inverse_dynamics(fit.robot, q, dq, ddq, values=dict(chosen)))

    def share(part: Array) -> float:
        return float(np.linalg.norm(part[fast])) / size if size else 0.0

    plain = {name: x for name, x in values.items() if name in fit.robot.parameter_names}
    still = of({})  # what fixed values cause in any case
    parts = {_REST: share(torque - of(plain))}
    gone = {name: x for name, x in plain.items() if name not in held}
    for symbol, words in _WORDS.items():
        own = {name: x for name, x in gone.items() if name.startswith(symbol)}
        if own:
            parts[words] = share(of(own) - still)
    shown = dict(sorted(((k, x) for k, x in parts.items() if x > _MIN_SHARE), key=lambda item: -item[1]))
    return MissingTorque(share(torque - of(held)), shown)


def _fast(fit: Fit, dq: Array) -> Mask:
    """(n_states, n_joints) where no dry friction that acts on a joint is near its reversal."""
    robot, n = fit.robot, dq.shape[1]
    smoothed = [term for term in fit.model.terms if isinstance(term, Coulomb)]
    elements = {element.label: element for element in robot.elements}
    fast = np.ones(dq.shape, dtype=bool)
    for place in element_places(robot, {}):
        width = max((term.width(elements[place.label]) for term in smoothed), default=0.0)
        slow = np.abs(dq @ place.direction[:n]) < _TURNED_OVER * width
        fast &= ~(slow[:, None] & (place.push[:n] != 0.0))
    return fast
