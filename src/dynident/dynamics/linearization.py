"""The linearization point of terms that are linear only around an estimate of the links, and terms along a motion."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.terms.friction import FrictionFollower
from dynident.dynamics.terms.term import AlongTerm, MotionSamples
from dynident.errors import InputError
from dynident.robot.model import Robot


class LinearizationPoint:
    """The links as an earlier fit estimated them: load-dependent friction, tilt and joint zeros are linear around them.

    Args:
        robot: The robot.
        links: (10 n_links,) standard parameters of its links.
    """

    def __init__(self, robot: Robot, links: Array) -> None:
        self.robot, self.links = robot, frozen(links)
        self._last: tuple[MotionSamples, Array] | None = None

    @property
    def fingerprint(self) -> str:
        """Columns around different points do not mix."""
        return hashlib.sha256(self.links.tobytes()).hexdigest()[:12]

    def torque(self, samples: MotionSamples) -> Array:
        """Torque of the links at the actuated coordinates, (n_samples, n_joints); several terms may ask for it."""
        if self._last is None or self._last[0] is not samples:
            self._last = samples, self.torque_at(samples.q, samples.dq, samples.ddq)
        return self._last[1]

    def set_torque(self, samples: MotionSamples, torque: Array) -> None:
        """Take the torque of the next samples as given instead of evaluating it."""
        self._last = samples, torque

    def torque_at(self, q: Array, dq: Array, ddq: Array, robot: Robot | None = None) -> Array:
        """The same in another state, or for a robot that differs in how it stands."""
        return inverse_dynamics(robot or self.robot, q, dq, ddq, "rigid", self.links)


class TermCourse:
    """The columns of several terms along a motion.

    Args:
        robot: The robot.
        terms: Terms that follow.
        point: What some are linear around.
    """

    def __init__(self, robot: Robot, terms: Sequence[AlongTerm], point: LinearizationPoint | None = None) -> None:
        lacking = [term.key for term in terms if term.needs_linearization_point and point is None]
        if lacking:
            raise InputError(f"term {lacking[0]} needs the torque of the links as a reference; identify gives it one")
        self._followers = [term.follow(robot, point) for term in terms]

    def columns_first(self, samples: MotionSamples) -> Array:
        """(n_places, n_samples) of the next samples, term after term in the order of their places."""
        parts = [follower(samples) for follower in self._followers]
        return np.concatenate([np.zeros((0, len(samples))), *parts])

    def remembered(self) -> list[Array]:
        """What each term that can remember anything does of the motion so far."""
        return [follower.remembered() for follower in self._followers if isinstance(follower, FrictionFollower)]

    def recall(self, kept: Sequence[Array]) -> None:
        """Continue from what `remembered` gave."""
        own = [follower for follower in self._followers if isinstance(follower, FrictionFollower)]
        for follower, array in zip(own, kept, strict=True):
            follower.recall(array)
