"""The torque of a model part by part: the links, and each group of friction columns by itself."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque, regressor
from dynident.dynamics.linearization import LinearizationPoint
from dynident.dynamics.terms import Term
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.dynamics.terms.term import MotionSamples
from dynident.estimate.prediction import TorqueCourse, TorqueModel
from dynident.robot.model import Robot

_LINKS = ("rigid", "Ia")
FRICTION = ("Fv", "Fc", *(law.name for law in FRICTION_LAWS.values() if law.is_friction))
LOAD = tuple(law.name for law in FRICTION_LAWS.values() if law.needs_load)
WINDING_RADII = 20.0  # radii of the widest stop by which a joint moves until all springs slip


def term_name(group: str) -> str:
    """Name of a group's term: stop of stop(0.003)."""
    return group.partition("(")[0]


def group_keys(robot: Robot, term: Term) -> list[str]:
    """The group of each column of a term, named as in a selection: scales of one term are groups of their own."""
    n = len(term.columns(robot))
    if not isinstance(term, FrictionTerm):
        return [term.name] * n
    width = term.columns_per_element
    if len(term.scales) == width:
        return [f"{term.name}({x:g})" for x in term.scales] * (n // width)
    return [f"{term.name}({','.join(f'{x:g}' for x in term.scales)})" if term.scales else term.name] * n


class TorqueParts(TorqueCourse):
    """The torque of a model along a motion, block after block, in parts at the joints.

    Attributes:
        groups: Keys of the groups beside links and rotors.
    """

    def __init__(self, model: TorqueModel, reference: LinearizationPoint | None = None) -> None:
        super().__init__(model, reference)
        robot, n = model.robot, len(model.robot.joint_names)
        self._beside = tuple(term for term in self.of_state if term.name not in _LINKS)
        state, along = (
            [(key, x) for term in terms for key, x in zip(group_keys(robot, term), self._values[term.key], strict=True)]
            for terms in (self._beside, self.along)
        )
        self.groups = tuple(dict.fromkeys(key for key, _ in (*state, *along)))
        # Which column goes to which group, with its value.
        self._mix_state = np.zeros((len(self.groups), len(state)))
        for column, (group, value) in enumerate(state):
            self._mix_state[self.groups.index(group), column] = value
        self._mix_groups = np.zeros((len(self.groups), n, len(self._places)))
        for line, (row, column) in enumerate(self._places):
            self._mix_groups[self.groups.index(along[column][0]), row, line] = along[column][1]
        self._to_joints = joint_torque(robot, np.eye(n))

    def at_joints(self, tau: Array) -> Array:
        """Torque at the joints from torque at the actuated coordinates, (.., n_samples, n_joints)."""
        return np.swapaxes(self._to_joints.T @ np.swapaxes(tau, -1, -2), -1, -2)

    def of_groups(self, samples: MotionSamples, q: Array | None = None) -> Array:
        """Torque of each group, (n_groups, n_samples, n_joints); `q` is the pose where that of the samples is not."""
        robot = self.model.robot
        torque_first = np.zeros((len(self.groups), len(robot.joint_names), len(samples)))
        if self._beside:
            pose = samples.q if q is None else q
            columns = regressor(robot, pose, samples.dq, samples.ddq, self._beside)
            torque_first += np.einsum("gc,nrc->grn", self._mix_state, columns)
        if self._mix_groups.size:
            torque_first += self._mix_groups @ self._course.columns_first(samples)
        return self.at_joints(torque_first.transpose(0, 2, 1))

    def of_links(self, samples: MotionSamples, groups: Array) -> Array:
        """Torque of links and rotors, (n_samples, n_joints), beside what `of_groups` gave."""
        if not self.of_state:
            return np.zeros(samples.q.shape)
        state = samples.q, samples.dq, samples.ddq
        whole = self.at_joints(inverse_dynamics(self.model.robot, *state, self.of_state, self._chi))
        beside = [term.name for term in self._beside]
        return np.asarray(whole - groups[[term_name(group) in beside for group in self.groups]].sum(0))

    def load(self, samples: MotionSamples) -> Array:
        """Torque of the links that friction may grow with, (n_samples, n_joints); (n_samples, 0) without such terms."""
        if self.reference is None:
            return np.zeros((len(samples), 0))
        return self.reference.torque(samples)


def only_friction(model: TorqueModel) -> TorqueModel:
    """The model with its friction alone."""
    chi, first = [], 0
    for term in model.terms:
        count = len(term.columns(model.robot))
        chi += list(model.chi[first : first + count]) if term.name in FRICTION else []
        first += count
    terms = tuple(term for term in model.terms if term.name in FRICTION)
    return TorqueModel(model.robot, terms, np.array(chi), model.reference)


class FixedLoad(LinearizationPoint):
    """A reference whose links always load the rows alike."""

    def __init__(self, robot: Robot, load: Array) -> None:
        super().__init__(robot, np.zeros(0))
        self._load = load

    def torque(self, samples: MotionSamples) -> Array:
        """The load, whatever the motion."""
        return np.repeat(self._load[None], len(samples), axis=0)


def friction_curve(model: TorqueModel, joint: int, velocities: Array, pose: Array, load: Array) -> Array:
    """Friction of a joint that moves steadily, all springs slipping, the others at rest.

    Args:
        model: The model; only its friction counts.
        joint: Number of the joint.
        velocities: (m,) that the joint moves at, of both signs.
        pose: (n_joints,) where the arm stands.
        load: (n_rows,) torque of the links.

    Returns:
        (m,) torque at the joint [N·m or N].
    """
    own = only_friction(model)
    if not own.terms:
        return np.zeros(len(velocities))
    radii = [x for term in own.terms if isinstance(term, FrictionTerm) and term.law.remembers for x in term.scales]
    far = WINDING_RADII * max(radii, default=0.0) * model.robot.moving_joints[joint].radian
    result, parts = np.zeros(len(velocities)), TorqueParts(own, FixedLoad(model.robot, load))
    for sign in (-1.0, 1.0):
        chosen = np.flatnonzero(np.sign(velocities) == sign)
        q = np.repeat(pose[None], len(chosen) + 1, axis=0)
        wound, dq = q.copy(), np.zeros_like(q)
        wound[0, joint] -= sign * far  # the first sample lies behind, so that the second is wound up
        dq[1:, joint] = velocities[chosen]
        samples = MotionSamples.of_stretch(wound, dq, np.zeros_like(q))
        result[chosen] = parts.of_groups(samples, q)[:, 1:, joint].sum(0)
    return result
