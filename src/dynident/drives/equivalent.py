"""Plain friction for simulators from an identified model with richer friction, and what it loses in replay.

Simulators know armature, viscous and Coulomb friction. What stands for Stribeck, load-dependent or hysteresis friction
can be chosen by torque (the least squares of `plain_elements`) or by what it is for: the replay that stays nearest to
measured positions. Beside both, a replay with the friction of the model itself says what plain friction loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.drives.replay import STEP, Commands, DriveValues, beginning_of, commands_in_steps
from dynident.errors import InputError
from dynident.estimate.equivalent_friction import plain_elements
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION
from dynident.logs.log import actuated_torque
from dynident.physical.fitting import physical_fit
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.robot.model import Robot

IDENTIFIED = "identified"  # name of the value set
_PLAIN = ("Fv", "Fc")
_BEYOND_PLANT = ("temp", "driving")  # terms that no plant has


@dataclass(frozen=True, eq=False)
class PlainModel:
    """An identified model as simulators can hold it.

    Attributes:
        robot: The robot, whose own values are the physically consistent links and plain friction.
        values: Physically consistent links and rotors, and all friction that the fit predicts torque with.
        further: Names of the friction terms that plain friction stands for.
        lost_torque: RMS of what plain friction leaves of the friction in steady motion, as a share of its RMS.
    """

    robot: Robot
    values: dict[str, float]
    further: tuple[str, ...]
    lost_torque: float

    @property
    def effects(self) -> dict[str, float]:
        """Friction beyond viscous and Coulomb friction by parameter name, as the MuJoCo plant takes it."""
        known = set(self.robot.parameter_names)
        return {name: value for name, value in self.values.items() if name not in known}


def plain_model(fit: Fit) -> PlainModel:
    """The physically consistent links of a fit, with the viscous and Coulomb friction whose torque is nearest.

    Raises:
        InputError: For a fit that keeps no view of its friction, though it has more than plain friction.
    """
    bodies, model = physical_fit(fit), fit.model
    friction = [term for term in model.terms if term.name in FRICTION]
    further = tuple(term.key for term in friction if term.name not in _PLAIN)
    own, lost = bodies.robot_values, 0.0
    values = {name: x for name, x in own.items() if not name.startswith(_PLAIN)}
    columns = zip((column for term in model.terms for column in term.columns(fit.robot)), model.chi, strict=True)
    values |= {column.name: float(x) for column, x in columns if column.term in FRICTION}
    if further:
        plain, lost = plain_elements(fit)
        own |= plain
    own |= {name: max(own[name], 0.0) for name in own if name.startswith((*_PLAIN, "Ia"))}
    return PlainModel(fit.robot.with_values(IDENTIFIED, own), values, further, lost)


def replay_rich(model: PlainModel, commands: Sequence[Commands], drives: DriveValues) -> list[Array]:
    """Replays of a model with its own friction on the MuJoCo plant, (n_samples, n_joints) each.

    Args:
        model: The model.
        commands: What was commanded.
        drives: Bias, delay, offset and gains of the replay.

    Raises:
        DynidentError: Where the plant cannot have a term, or runs away.
    """
    if any(name.startswith(_BEYOND_PLANT) for name in model.effects):
        raise InputError("the plant has no friction that depends on temperature or drive torque")
    plant = MujocoPlant(model.robot, _without_further(model), sample_time=STEP, effects=model.effects)
    return [_follow(plant, one, drives) for one in commands]


def _without_further(model: PlainModel) -> dict[str, float]:
    """Links, rotors and the viscous and Coulomb friction that stand beside the other terms.

    Offsets of the torque are those of the replay.
    """
    known = {name for name in model.robot.parameter_names if not name.startswith("Fo")}
    return {name: value for name, value in model.values.items() if name in known}


def _follow(plant: MujocoPlant, commands: Commands, drives: DriveValues) -> Array:
    """(n_samples, n_joints) positions of the plant under commands, as a log would have them."""
    robot, scale = plant.robot, 1.0 if drives.gains is None else drives.gains
    kp, kd = commands.kp * scale, commands.kd * scale
    n_steps = max(1, int(np.ceil(commands.time[-1] / STEP - 1e-9)))
    begins, velocities = beginning_of(commands)
    q, dq = begins + drives.bias, velocities
    wanted = commands_in_steps(commands, drives, range(n_steps))
    plant.reset(q, dq, torque=_torque(robot, wanted[0], q, dq, kp, kd))
    course = np.empty((n_steps + 1, len(q)))
    course[0] = q
    for k in range(n_steps):
        plant.apply_torque(_torque(robot, wanted[k], q, dq, kp, kd))
        plant.step()
        q, dq = plant.motion
        course[k + 1] = q
    place = commands.time / STEP
    before = np.minimum(place.astype(int), n_steps - 1)
    share = (place - before)[:, None]
    return np.asarray((1.0 - share) * course[before] + share * course[before + 1] - drives.bias)


def _torque(robot: Robot, wanted: Array, q: Array, dq: Array, kp: Array, kd: Array) -> Array:
    """(n_joints,) at the actuated coordinates."""
    own = np.where(kp > 0.0, kp * (wanted - q), wanted) - kd * dq
    return np.asarray(actuated_torque(own[None], robot)[0])
