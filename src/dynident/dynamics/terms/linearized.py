"""Small errors of the description as columns, linear around an estimate of the links: tilt and joint zeros."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.term import AlongTerm, Column, Follower, LinkTorque, MotionSamples, Place
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import BASE, Robot

_STEP = 1e-5  # [rad or m] of the difference quotient; the torque of links is smooth


class Tilt(AlongTerm):
    """The base does not stand upright: two small rotations of gravity, about the base axes across it.

    A joint whose axis is upright feels no weight until it tilts, so nothing else tells the first moments that hang on
    it; what they add is a cosine and a sine of its own angle.
    """

    name = "tilt"
    needs_linearization_point = True

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        if scales or only is not None:
            raise InputError(f"term tilt takes neither numbers nor elements; got {self.key}")

    def _axes(self, robot: Robot) -> list[int]:
        if not robot.gravity.any():
            raise InputError("term tilt: the robot has no gravity that could be tilted; leave it out")
        down = int(np.argmax(np.abs(robot.gravity)))
        return [axis for axis in range(3) if axis != down]

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """Two angles, and two weights for each upright joint."""
        angles = [
            Column(f"tilt_{'xyz'[axis]}", "rad", "tilt_", "xyz"[axis], self.name, f"tilt about base {'xyz'[axis]}")
            for axis in self._axes(robot)
        ]
        weights = []
        for row in _upright(robot):
            joint = robot.moving_joints[row]
            for part in ("cos", "sin"):
                meaning = f"weight on {joint.name} that only a tilt shows ({part}ine)"
                name = f"tilt{part}_{joint.number}"
                weights.append(Column(name, "N·m", f"tilt{part}_", str(joint.number), self.name, meaning))
        return (*angles, *weights)

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Gravity acts on all rows, an upright joint's own weight by its row."""
        aside = [(row, column) for column in range(2) for row in range(len(robot.moving))]
        own = [(row, 2 + 2 * number + part) for number, row in enumerate(_upright(robot)) for part in range(2)]
        return (*aside, *own)

    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Weight of the links in a gravity that points aside."""
        assert links is not None
        turned = [dataclasses.replace(robot, gravity=np.cross(np.eye(3)[i], robot.gravity)) for i in self._axes(robot)]
        upright = _upright(robot)

        def follower(samples: MotionSamples) -> Array:
            rest = np.zeros_like(samples.q)
            parts = [links.torque_at(samples.q, rest, rest, other).T for other in turned]
            parts += [np.stack([np.cos(samples.q[:, row]), np.sin(samples.q[:, row])]) for row in upright]
            return np.concatenate(parts)

        return follower


@functools.lru_cache(maxsize=16)
def _upright(robot: Robot) -> tuple[int, ...]:
    """Rows of the joints at the root of the tree that turn about a line along gravity."""
    down = robot.gravity / np.linalg.norm(robot.gravity)
    rows = []
    for row, moving in enumerate(robot.moving):
        joint = robot.joints[robot.active[moving]]
        along = abs(float(joint.before.rotation[:, 2] @ down)) > 1.0 - 1e-6
        if joint.parent == BASE and joint.kind == "revolute" and along:
            rows.append(row)
    return tuple(rows)


class Zero(AlongTerm):
    """Joint positions are off by a constant: what a radian more would change in the links' torque."""

    name = "zero"
    needs_linearization_point = True

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        if scales:
            raise InputError(f"term zero takes no number; got {self.key}")

    def _joints(self, robot: Robot) -> list[int]:
        """Indices among the moving joints."""
        labels = [str(joint.number) for joint in robot.moving_joints]
        effective = [_zero_has_effect(robot, i) for i in robot.moving]
        for label in self.only or ():
            if label not in labels:
                raise UnknownNameError("joint of term zero", label, labels)
            if not effective[labels.index(label)]:
                raise InputError(f"term zero: no torque depends on the position of joint {label}; leave it out")
        return [i for i, label in enumerate(labels) if effective[i] and (self.only is None or label in self.only)]

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """One offset per joint."""
        result = []
        for i in self._joints(robot):
            joint = robot.moving_joints[i]
            unit = joint.unit
            meaning = f"offset of the position of {joint.name}"
            result.append(Column(f"zero_{joint.number}", unit, "zero_", str(joint.number), self.name, meaning))
        return tuple(result)

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """A joint's angle acts on all rows."""
        return tuple((row, column) for column in range(len(self._joints(robot))) for row in range(len(robot.moving)))

    def follow(self, robot: Robot, links: LinkTorque | None) -> Follower:
        """Difference quotient of the links' torque."""
        assert links is not None
        joints = self._joints(robot)

        def follower(samples: MotionSamples) -> Array:
            n, steps = len(samples), _STEP * np.eye(samples.q.shape[1])[joints]
            if not joints or not n:  # of a robot that turns about gravity alone, no joint has an effect
                return np.zeros((len(joints) * len(robot.moving), n))
            q = np.concatenate([samples.q + sign * step for step in steps for sign in (1.0, -1.0)])
            dq, ddq = (np.tile(x, (2 * len(joints), 1)) for x in (samples.dq, samples.ddq))
            ahead, behind = links.torque_at(q, dq, ddq).reshape(len(joints), 2, n, -1).swapaxes(0, 1)
            return np.asarray(((ahead - behind) / (2.0 * _STEP)).swapaxes(1, 2).reshape(-1, n))

        return follower


def _zero_has_effect(robot: Robot, active: int) -> bool:
    """Whether a joint's position matters: a tree turned about gravity, or moved as a whole, needs the same torque."""
    place = robot.active[active]
    joint, down = robot.joints[place], robot.gravity / max(float(np.linalg.norm(robot.gravity)), 1e-300)
    alone = np.count_nonzero(robot.follow[:, active]) == 1 and robot.closure is None
    if joint.parent != BASE or not alone:
        return True
    across = abs(float(joint.before.rotation[:, 2] @ down)) < 1.0 - 1e-12
    return joint.kind == "revolute" and bool(robot.gravity.any()) and across


LINEARIZED_TERMS: tuple[type[AlongTerm], ...] = (Tilt, Zero)
