"""Plain friction of robots whose motors turn with several joints: viscous and Coulomb coefficients of every element.

`friction_summary` looks at one joint after the other. Where elements act along several joints, what belongs to which of
them shows only when all joints move.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.along import MotionSamples
from dynident.dynamics.evaluate import joint_torque, regressor
from dynident.dynamics.friction_terms import ElementLaw
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FixedLoad, Parts, only_friction

N_STATES = 600
_SLOW = 0.01  # [rad/s or m/s] faster than this, all springs slip


def plain_elements(fit: Fit, seed: int = 0) -> tuple[dict[str, float], float]:
    """Viscous and Coulomb coefficients, none negative, nearest to all friction of a fit in steady motion.

    Speeds of the joints are drawn from the training data, each by itself; friction that grows with load is taken at the
    median load.

    Args:
        fit: The estimate.
        seed: Of the draws.

    Returns:
        Values by name (Fv1, .., Fcm6), and the RMS of what they leave as a share of that of the friction.

    Raises:
        InputError: For a fit that keeps no view of its friction.
    """
    from scipy.optimize import nnls  # takes a while to load

    if fit.friction_view is None:
        raise InputError("this fit keeps no view of its friction; identify again, with friction among the terms")
    robot, points = fit.robot, fit.friction_view.points
    rng = np.random.default_rng(seed)
    dq = np.stack([rng.choice(_known(own), N_STATES) for own in points[0]], axis=1)  # (N_STATES, n_joints)
    load = np.array([np.median(np.abs(_known(own))) for own in points[4]])
    torque = _steady_friction(fit, dq, load)
    terms = resolve_terms("Fv,Fc")
    still = np.zeros_like(dq)
    rows = regressor(robot, still, dq, still, terms)  # (N_STATES, n_rows, n_columns)
    columns = joint_torque(robot, np.eye(dq.shape[1])).T @ rows
    # Every joint counts alike, or the small ones would be left to chance.
    size = np.maximum(np.sqrt(np.mean(torque**2, axis=0)), 1e-12)
    A = (columns / size[:, None]).reshape(-1, columns.shape[2])
    y = (torque / size).ravel()
    found, left = nnls(A, y)
    names = [column.name for column in all_columns(robot, terms)]
    return dict(zip(names, found.tolist(), strict=True)), float(left / max(float(np.linalg.norm(y)), 1e-300))


def _known(values: Array) -> Array:
    known = values[np.isfinite(values)]
    return known if len(known) else np.zeros(1)


def _steady_friction(fit: Fit, dq: Array, load: Array) -> Array:
    """Friction at the joints with all springs slipping, (n_samples, n_joints)."""
    own = only_friction(fit.model)
    radii = [x for term in own.terms if term.name == "stop" and isinstance(term, ElementLaw) for x in term.scales]
    n, n_joints = dq.shape
    # Every state comes right behind one that lies so far back that springs are wound up on the way.
    q, speed = np.zeros((2 * n, n_joints)), np.zeros((2 * n, n_joints))
    q[0::2], speed[1::2] = -dq * 2.0 * max(radii, default=0.0) / _SLOW, dq
    still = np.zeros_like(q)
    samples = MotionSamples.of_stretch(q, speed, still)
    return np.asarray(Parts(own, FixedLoad(fit.robot, load)).of_groups(samples, still).sum(0)[1::2])
