"""How long a time step of the physics may be: what viscous friction bears on the inertia that it stops."""

from __future__ import annotations

import math

import numpy as np

from dynident.arrays import Array
from dynident.plant.compiled_model import MujocoModel, import_mujoco
from dynident.plant.protocol import UnstableError

LONGEST_STEP = 5e-4  # [s] of the physics, unless specified otherwise
SHORTEST_STEP = 5e-6  # [s]; what needs shorter ones is refused
EXACT, STABLE = 0.8, 2.5  # time steps in units of the quickest effect: default, and the most that Runge-Kutta bears
_SETTLING = 1.5  # the default for viscous friction, whose quickest motion dies away and need not be followed closely
_POSES = 32  # at which the lightest inertia is looked for


def damped_step(model: MujocoModel, viscous: Array, given: float | None) -> float:
    """The time step that viscous friction asks for, at most `LONGEST_STEP`, or the given one if it bears that [s].

    Args:
        model: The robot.
        viscous: Viscous friction of every place, (n_places,).
        given: A time step that is asked for [s], or None.

    Raises:
        UnstableError: When the friction is too stiff, naming the joint that it stops first.
    """
    rate, joint = damping_rate(model, viscous)
    wanted = min(LONGEST_STEP, _SETTLING / rate) if rate else LONGEST_STEP
    step = wanted if given is None else given
    if step * rate > STABLE or wanted < SHORTEST_STEP:
        remedy = "lower it, or" if wanted < SHORTEST_STEP else f"allow steps of {wanted:.2g} s, or"
        raise UnstableError(
            0.0,
            joint,
            f"viscous friction of joint {joint} cannot be simulated with time steps of {step:.2g} s: at its lightest "
            f"the joint comes to rest within {1.0 / rate:.2g} s; {remedy} give the machine its rotor inertia",
        )
    return step


def damping_rate(model: MujocoModel, viscous: Array) -> tuple[float, str]:
    """The quickest rate at which viscous friction D stops a robot [1/s], and the joint where it does.

    It is the largest eigenvalue of M^-1 D over many poses of the open tree: closing loops only takes away motions.
    """
    moves = np.zeros((len(viscous), model.model.nv))
    pushes = np.zeros_like(moves)
    for k, place in enumerate(model.places):
        moves[k, model.carriers], pushes[k, model.carriers] = place.direction, viscous[k] * place.push
    damping = pushes.T @ moves
    if not damping.any():
        return 0.0, ""
    mujoco, data, rng = import_mujoco(), model.new_data(), np.random.default_rng(0)
    quickest, worst = 0.0, 0
    for _ in range(_POSES):
        data.qpos[:] = rng.uniform(-math.pi, math.pi, model.model.nq)
        mujoco.mj_fwdPosition(model.model, data)
        decay = np.zeros_like(damping)  # (M^-1 D)', column after column of D
        mujoco.mj_solveM(model.model, data, decay, np.ascontiguousarray(damping.T))
        rates, modes = np.linalg.eig(decay.T)
        first = int(np.argmax(np.abs(rates)))
        if abs(rates[first]) > quickest:
            quickest = float(abs(rates[first]))
            worst = int(np.argmax(np.abs(modes[:, first] * (damping @ modes[:, first]))))
    joint = model.joints[int(np.flatnonzero(model.dofs == worst)[0])]
    return quickest, model.robot.joints[joint].name
