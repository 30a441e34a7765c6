"""Effects at work in the MuJoCo plant: laws on its elements, the load that MuJoCo says they carry, and time steps.

Friction that winds up is stiff, so it is not held over a time step: a Runge-Kutta step asks for its torque four times,
as it does for MuJoCo's accelerations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.plant.compiled_model import MujocoModel, import_mujoco
from dynident.plant.effects import PLANT_FUNCTIONS, Effect, FrictionEffect, check_dry, joint_labels, read_effects
from dynident.plant.mjcf_writer import Place, chosen_values, element_places, free_joints
from dynident.plant.protocol import UnstableError
from dynident.plant.springs import own_springs
from dynident.plant.time_step import EXACT, LONGEST_STEP, SHORTEST_STEP, STABLE
from dynident.robot.model import Element, Robot
from dynident.robot.rotations import quaternion_matrix
from dynident.robot.springs import Spring

if TYPE_CHECKING:
    import mujoco

SPRING_LAG = 1e-3  # [s] with which the plant follows its own acceleration to know the jerk
_POSES = 32  # at which the lightest inertia of the elements is looked for

Dry = Callable[[Array, "Array | None"], Array]  # torque of dry friction outside MuJoCo, from velocities and levels


class Effects:
    """The effects of one machine.

    Args:
        robot: The robot.
        values: Its standard parameters, as `MujocoPlant` takes them.
        given: Values by name, such as ``{"stop0.3_1": 4.0, "load_2": 0.05, "tilt_x": 0.01}``.

    Attributes:
        effects: All that are not zero.
        acts: Whether anything happens in the time steps: more than another gravity and another zero.
        offset: (n_moving,) true joint position minus what its encoder says [rad or m].
        gravity: (3,) in the base as it stands [m/s²].
        places: Inertia that holds the jerk; see `SPRING_LAG`.
    """

    def __init__(
        self, robot: Robot, values: str | Mapping[str, float] | None, given: Mapping[str, float] | None
    ) -> None:
        self.robot, self.effects = robot, read_effects(robot, given)
        elements = {element.label: element for element in robot.elements}
        found = chosen_values(robot, values)
        self._places = {place.label: place for place in element_places(robot, found)}
        self._springs = OutsideSprings(robot, found, own_springs(robot, found, free_joints(robot))[1])
        offsets = {e.label: e.value for e in self.effects if e.law == "zero"}
        self.offset = np.array([offsets.get(label, 0.0) for label in joint_labels(robot)])
        self.gravity = _tilt_gravity(robot, self.effects)
        on_elements = [e for e in self.effects if e.law not in ("zero", "tilt")]
        self.acts = bool(on_elements) or bool(self._springs)
        if self.acts and robot.closure is not None:
            what = f"effects such as {on_elements[0].name}" if on_elements else "springs along lines"
            raise InputError(f"{what} are not simulated on robots with general loops")
        self._labels = list(dict.fromkeys(e.label for e in on_elements))
        self._element = {label: i for i, label in enumerate(self._labels)}
        own = [self._places[label] for label in self._labels]
        n = len(robot.moving)
        self._directions = np.array([place.direction for place in own]).reshape(-1, n)
        self._pushes = np.array([place.push for place in own]).reshape(-1, n)
        self._loads = np.array([_load_shares(robot, elements[label]) for label in self._labels]).reshape(-1, n)
        units = {label: elements[label].radian for label in self._labels}
        laws = [FrictionEffect(e, units[e.label]) for e in on_elements]
        self._forces = [effect for effect in laws if not effect.law.dry and not effect.law.needs_jerk]
        self._forces_at = [(force, self._element[force.effect.label]) for force in self._forces]
        self._grips = [effect for effect in laws if effect.law.dry]
        self._loaded = any(effect.law.needs_load for effect in laws)
        self._check()
        self.places = self._spring_places([effect.effect for effect in laws if effect.law.needs_jerk])
        self._springy = np.array([place.direction for place in self.places]).reshape(-1, n)
        self._spring = np.array([place.inertia for place in self.places])
        self._spring_pushes = np.array([place.push for place in self.places]).reshape(-1, n)

    # --- time steps -------------------------------------------------------------------------------------------------

    def start(self, model: MujocoModel, data: mujoco.MjData) -> None:
        """Begin where the plant is: springs unwound, loads those of the weight."""
        positions = (self._directions @ data.qpos[model.moving]).tolist()
        for force, k in self._forces_at:
            force.start(positions[k])
        self._lag = np.zeros(len(self._spring))  # accelerations as followed [rad/s²]
        import_mujoco().mj_forward(model.model, data)
        self._load = self._carried(model, data, False)

    def step(self, model: MujocoModel, data: mujoco.MjData, torque: Array, dry: Dry) -> None:
        """One time step under a torque at the joints, by the Runge-Kutta scheme of order four.

        Forces are asked at every stage. Dry friction, which MuJoCo itself makes hold, is that of the step's middle;
        what a slipping spring remembers, and the load, change when the step is over.
        """
        length, forward, moving = model.model.opt.timestep, import_mujoco().mj_forward, model.moving
        qpos, qvel, qacc, applied, warm = data.qpos, data.qvel, data.qacc, data.qfrc_applied, data.qacc_warmstart
        q, dq, lag = qpos.copy(), qvel.copy(), self._lag
        left = torque - dry(dq[moving], self._levels((dq + 0.5 * length * qacc)[moving]))
        velocities: list[Array] = []
        accelerations: list[Array] = []
        lags: list[Array] = []
        for part in (0.0, 0.5, 0.5, 1.0):
            now = lag
            if part:
                qpos[:] = q + part * length * velocities[-1]
                qvel[:] = dq + part * length * accelerations[-1]
                now = lag + part * length * lags[-1]
            if not np.isfinite(qvel).all():
                return  # the plant tells which joint ran away
            applied[moving] = left - self._taken(qpos[moving], qvel[moving], now)
            forward(model.model, data)
            warm[:] = qacc
            velocities.append(qvel.copy())
            accelerations.append(qacc.copy())
            lags.append((self._springy @ qacc[moving] - now) / SPRING_LAG)
        self._load = self._carried(model, data, True)
        qpos[:] = q + length * _mean(velocities)
        qvel[:] = dq + length * _mean(accelerations)
        self._lag = lag + length * _mean(lags)
        data.time += length
        positions = (self._directions @ qpos[moving]).tolist()
        for force, k in self._forces_at:
            force.move(positions[k])

    def _taken(self, q: Array, dq: Array, lag: Array) -> Array:
        """Torque at the joints that forces take, (n_moving,)."""
        positions, velocities = (self._directions @ q).tolist(), (self._directions @ dq).tolist()
        taken = [0.0] * len(positions)
        for force, k in self._forces_at:
            taken[k] += force.torque(positions[k], velocities[k], self._load[k])
        total = np.array(taken) @ self._pushes + self._springs.torque(q)
        if len(lag):
            # MuJoCo carries the spring's share of the newest acceleration, as inertia; here that of the followed one.
            total -= (self._spring * lag) @ self._spring_pushes
        return np.asarray(total)

    def _levels(self, dq: Array) -> Array | None:
        """Dry friction of each element beyond its Coulomb friction, (n_own,)."""
        if not self._grips:
            return None
        velocities, levels = (self._directions @ dq).tolist(), np.zeros(len(self._labels))
        for grip in self._grips:
            k = self._element[grip.effect.label]
            levels[k] += grip.torque(0.0, velocities[k], self._load[k])
        return levels

    def spread(self, labels: Sequence[str]) -> Array:
        """(n_labels, n_own): where the levels that `Dry` is given belong among the elements of a model."""
        return np.array([[float(label == own) for own in self._labels] for label in labels]).reshape(len(labels), -1)

    def _carried(self, model: MujocoModel, data: mujoco.MjData, moving: bool) -> list[float]:
        """Torque of the links that each element carries: by MuJoCo's recursion, without rotors and friction."""
        if not self._loaded:
            return [0.0] * len(self._labels)
        torque = np.zeros(model.model.nv)
        import_mujoco().mj_rne(model.model, data, int(moving), torque)
        return list((self._loads @ model.to_joints(torque)).tolist())

    # --- how long a time step may be --------------------------------------------------------------------------------

    def longest_step(self, model: MujocoModel, given: float | None) -> float:
        """The time step that the effects ask for, or the given one if they bear it [s].

        Raises:
            UnstableError: When they do not, naming the quickest effect.
        """
        if not self._forces:
            return LONGEST_STEP if given is None else given
        easy = self._mobility(model)
        springs = np.array([force.stiffness * easy[k] for force, k in self._forces_at])
        dampers = np.array([force.damping * easy[k] for force, k in self._forces_at])
        quickest = max(math.sqrt(springs.sum()), float(dampers.sum()))  # [1/s]
        wanted = min(LONGEST_STEP, EXACT / quickest) if quickest else LONGEST_STEP
        step = wanted if given is None else given
        if step * quickest > STABLE or wanted < SHORTEST_STEP:
            worst = self._forces[int(np.argmax(np.maximum(np.sqrt(springs), dampers)))].effect
            joint = self.robot.joint_names[int(np.argmax(np.abs(self._directions[self._element[worst.label]])))]
            raise UnstableError(
                0.0,
                joint,
                f"effect {worst.name} on joint {joint} cannot be simulated with time steps of {step:.2g} s: at its "
                f"lightest the joint answers within {1.0 / quickest:.2g} s; "
                + ("lower its value" if wanted < SHORTEST_STEP else f"allow steps of {wanted:.2g} s")
                + " or give the machine its rotor inertia",
            )
        return step

    def _mobility(self, model: MujocoModel) -> Array:
        """The most that each element is accelerated by its own torque, over many poses, (n_own,) [1/(kg·m²)]."""
        multiply, forward = import_mujoco().mj_mulM, import_mujoco().mj_fwdPosition
        data, rng = model.new_data(), np.random.default_rng(0)
        most = np.zeros(len(self._labels))
        for _ in range(_POSES):
            model.set_state(data, rng.uniform(-math.pi, math.pi, len(model.moving)))
            forward(model.model, data)
            mass = np.zeros((len(model.moving), len(model.moving)))
            for k in range(len(mass)):
                column, product = np.zeros(model.model.nv), np.zeros(model.model.nv)
                column[model.dofs] = model.follow[:, k]
                multiply(model.model, data, product, column)
                mass[k] = model.to_joints(product)
            eased = np.einsum("ij,ij->i", self._directions, np.linalg.solve(mass, self._pushes.T).T)
            most = np.maximum(most, np.abs(eased))
        return most

    # --- what can be ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for label in self._labels:
            place = self._places[label]
            if place.share is None:
                continue  # no brake of its own in any case
            uneven = [f.value for f in self._forces if f.law.even and f.effect.label == label]
            own = [grip for grip in self._grips if grip.effect.label == label]
            check_dry(label, place.coulomb, place.share, own, sum(uneven))

    def _spring_places(self, springs: Sequence[Effect]) -> tuple[Place, ...]:
        """A springy drive: torque c times the jerk (a - x) / T, where x follows the acceleration a with a short lag T.

        It is an inertia c / T under the acceleration a, which MuJoCo carries, less a torque of x.
        """
        found = []
        for effect in springs:
            place = self._places[effect.label]
            if place.share is None or place.share * effect.value < 0.0:
                raise InputError(
                    f"effect {effect.name} is {effect.value:g}: a drive that runs ahead of its motor cannot be; "
                    "give the value the sign with which friction brakes"
                )
            inertia = effect.value / SPRING_LAG
            found.append(Place(effect.name, place.direction, place.push, place.share, inertia=inertia))
        return tuple(found)


class OutsideSprings:
    """Springs that act on the plant from outside MuJoCo.

    Args:
        robot: The robot.
        values: Standard values.
        springs: Which.
    """

    def __init__(self, robot: Robot, values: Mapping[str, float], springs: list[Spring]) -> None:
        self._springs = [(s, [values.get(name, 0.0) for name in s.names]) for s in springs]
        joints = np.array([s.joints for s in springs]).reshape(-1, len(robot.joints))
        self._directions = joints @ robot.follow[:, list(robot.moving)]
        self._rest = joints @ robot.rest_positions

    def __bool__(self) -> bool:
        return bool(self._springs)

    def torque(self, q: Array) -> Array:
        """Torque at the joints that they take, (n_moving,)."""
        positions = (self._directions @ q + self._rest).tolist()
        taken = [
            sum(c * float(x) for c, x in zip(values, spring.torques(position, PLANT_FUNCTIONS), strict=True))
            for (spring, values), position in zip(self._springs, positions, strict=True)
        ]
        return np.asarray(np.array(taken) @ self._directions)


def _mean(stages: list[Array]) -> Array:
    """What the four stages of a Runge-Kutta step say together."""
    return np.asarray((stages[0] + 2.0 * (stages[1] + stages[2]) + stages[3]) / 6.0)


def _tilt_gravity(robot: Robot, effects: Sequence[Effect]) -> Array:
    """Gravity turned by the tilt of the base, about an axis across it."""
    turn = np.zeros(3)
    for effect in effects:
        if effect.law == "tilt":
            turn["xyz".index(effect.label)] = effect.value
    angle = float(np.linalg.norm(turn))
    if not angle:
        return robot.gravity
    half = np.array([math.cos(0.5 * angle), *(math.sin(0.5 * angle) / angle * turn)])
    return np.asarray(quaternion_matrix(half) @ robot.gravity)


def _load_shares(robot: Robot, element: Element) -> Array:
    """How much of each joint's torque an element carries, (n_moving,).

    A motor's gear carries the torque of that motor. An element that is a joint alone, but no single motor, carries the
    joint's. Any other one carries the part of the motors' torques along its own direction.
    """
    coupling = robot.moving_coupling
    motors = np.linalg.inv(coupling).T  # motor torques from joint torques
    push = element.torque[list(robot.moving)]
    at_joints = push @ coupling
    along = np.abs(at_joints) > 1e-12 * np.abs(at_joints).max(initial=0.0)
    if np.count_nonzero(push) > 1 and np.count_nonzero(along) == 1:
        return np.asarray(np.where(along, at_joints, 0.0) / (at_joints @ at_joints))
    return np.asarray(push @ motors / max(float(push @ push), 1e-300))
