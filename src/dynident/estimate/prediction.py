"""Torque from position and time: at the rate of the filtered motion, or at a log's own stamps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import Term, along_terms, state_terms
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.robot.model import Robot
from dynident.signals.observations import Observations


@record
class TorqueModel:
    """A robot with parameter values.

    Attributes:
        robot: The robot.
        terms: Terms of the model.
        chi: (n_columns,) values of the standard parameters, or any that predict the same torque.
        reference: (10 n_links,) what some terms are linear around; None without such terms.
    """

    robot: Robot
    terms: tuple[Term, ...]
    chi: Array
    reference: Array | None = None

    @staticmethod
    def of(estimate: ParameterEstimate, base: BaseParameters | None = None) -> TorqueModel:
        """What predicts torque with estimated base parameters; those of `base` that are not among them are zero.

        Args:
            estimate: The estimate.
            base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        """
        owner = estimate.coordinates if base is None else base
        if not isinstance(owner, BaseParameters):
            raise InputError(
                "the data does not know its robot; give the base parameters: TorqueModel.of(estimate, "
                "base_parameters(robot))"
            )
        found = dict(zip(estimate.names, estimate.values.tolist(), strict=True))
        chi = owner.standard_values(found, "regrouped zero")
        return TorqueModel(owner.robot, owner.terms, chi, estimate.linearization)

    def start(self) -> TorqueCourse:
        """Begin to follow a motion."""
        return TorqueCourse(self)

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque at the actuated coordinates of one stretch of motion, (n_samples, n_joints) like all that is given."""
        return self.start().torque(MotionSamples.of_stretch(q, dq, ddq))


class TorqueCourse:
    """The torque of a model along a motion, block after block.

    Args:
        model: The model.
        reference: What load-dependent terms take for the torque of the links; default the model's own reference.
    """

    def __init__(self, model: TorqueModel, reference: LinearizationPoint | None = None) -> None:
        self.model, self.of_state, self.along = model, state_terms(model.terms), along_terms(model.terms)
        robot = model.robot
        if reference is None and model.reference is not None:
            reference = LinearizationPoint(robot, model.reference)
        self.reference, self._course = reference, TermCourse(robot, self.along, reference)
        values = iter(model.chi)
        self._values = {term.key: [next(values) for _ in term.columns(robot)] for term in model.terms}
        self._chi = np.array([x for term in self.of_state for x in self._values[term.key]])
        beside = [x for term in self.along for x in self._values[term.key]]
        self._places = all_places(robot, self.along)
        self._mix = np.zeros((len(robot.joint_names), len(self._places)))
        for line, (row, column) in enumerate(self._places):
            self._mix[row, line] = beside[column]

    def torque(self, samples: MotionSamples) -> Array:
        """Torque at the actuated coordinates on the next samples, (n_samples, n_joints)."""
        torque = np.zeros((len(samples), len(self.model.robot.joint_names)), order="F")
        if self.of_state:
            state = samples.q, samples.dq, samples.ddq
            torque += inverse_dynamics(self.model.robot, *state, self.of_state, self._chi)
        if self._mix.size:
            torque += (self._mix @ self._course.columns_first(samples)).T
        return torque


def predicted_blocks(model: TorqueModel, observations: Observations) -> Iterator[tuple[Array, Array]]:
    """Predicted joint torque at the log's own stamps, in blocks: stamps (n,) and torque (n, n_joints)."""
    course = model.start()
    for stamps, pieces in motion_at_stamps(observations, model.terms):
        torque = np.concatenate([course.torque(samples) for samples in pieces])
        yield stamps, joint_torque(model.robot, torque)


def motion_at_stamps(observations: Observations, terms: Sequence[Term]) -> Iterator[tuple[Array, list[MotionSamples]]]:
    """The filtered motion at the log's own stamps, in blocks: stamps (n,), and the pieces of stretches they are in.

    Torque that is stamped late by the delay of the options shows at time t what happened at t - delay.

    Args:
        observations: The log.
        terms: Terms of the model, for what they look at.
    """
    pieces = _pieces(observations.for_terms(along_terms(terms)))
    time, motion, _ = next(pieces)  # of one stretch, around the stamps that are asked for next
    ahead = next(pieces, None)
    restart, n = True, len(observations.robot.joint_names)
    for stamps in (block.time for block in observations.log.blocks()):
        wanted = stamps - observations.options.delay
        found: list[MotionSamples] = []
        done = 0
        while done < len(stamps):
            rest = wanted[done:]
            while ahead is not None and not ahead[2] and _known_until(time) < rest[-1]:
                keep = max(0, int(np.searchsorted(time, rest[0])) - 4)  # what lies long before is not needed any more
                time, motion = np.concatenate([time[keep:], ahead[0]]), np.concatenate([motion[keep:], ahead[1]])
                ahead = next(pieces, None)
            if ahead is None or _known_until(time) >= rest[-1]:
                count = len(rest)
            else:  # a gap: the stamps before it belong to this stretch, those behind to the next
                count = int(np.searchsorted(rest, 0.5 * (time[-1] + ahead[0][0]), side="right"))
            values = _interpolate(time, motion, rest[:count])
            values, warm = (values[:, :-n], values[:, -n:]) if observations.has_temperatures else (values, None)
            q, dq, ddq, dddq = np.split(values, [n, 2 * n, 3 * n], axis=1)
            if count:
                found.append(MotionSamples(q, dq, ddq, dddq, restart, temperature=warm))
                restart = False
            done += count
            if done < len(stamps):
                assert ahead is not None
                (time, motion, _), ahead, restart = ahead, next(pieces, None), True
        yield stamps, found


# Stamps, motion (n, 3 or 4 n_joints) with temperatures behind it where the log has them, whether a new stretch begins.
Piece = tuple[Array, Array, bool]


def _pieces(observations: Observations) -> Iterator[Piece]:
    """The filtered motion. It is what is interpolated, for torque jumps with friction where motion is smooth."""
    for motion in observations.motion(delays=()):
        parts = [motion.q, motion.dq, motion.ddq, motion.dddq]
        parts += [] if motion.temperature is None else [motion.temperature]
        yield motion.time, np.hstack(parts), motion.restart


def _known_until(time: Array) -> float:
    """Time up to which interpolation has a sample on the far side [s]."""
    return float(time[max(len(time) - 3, 0)])


def _interpolate(time: Array, motion: Array, wanted: Array) -> Array:
    """Cubic interpolation, (n_wanted, ..); beyond the ends the last value holds."""
    n = len(time)
    if n < 4:
        return np.stack([np.interp(wanted, time, signal) for signal in motion.T], axis=1)
    rate = (n - 1) / (time[-1] - time[0])
    places = np.clip((wanted - time[0]) * rate, 0.0, n - 1.0)
    left = np.clip(np.floor(places).astype(int), 1, n - 3)
    u, signals_first = places - left, motion.T
    a, b, c, d = (signals_first[:, left + k] for k in (-1, 0, 1, 2))
    # The cubic through four neighbors; a signal sampled at sixteen times its band needs no more.
    p, q = u + 1.0, u - 1.0
    r = u - 2.0
    return np.asarray(-a * u * q * r / 6.0 + b * p * q * r / 2.0 - c * p * u * r / 2.0 + d * p * u * q / 6.0).T
