r"""Armature, friction and bias of each joint by linear least squares, with the links known.

With what a controller commands, kp (target - q) - kd dq + tau_ff, as the torque tau,

.. math:: \tau = \tau_{links}(q + b) + I_a \ddot q + F_v \dot q + F_c \operatorname{sign} \dot q + k_p b

is linear in rotor inertia (armature), friction and the bias b, by which measured positions are short of the true ones
that the controller sees.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.arrays import Array, record
from dynident.drives.links import KnownLinks, known_coefficients, link_scale_name
from dynident.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from dynident.dynamics.terms.linearized import Zero
from dynident.errors import InputError
from dynident.estimate.covariance import autocorrelation_model, residual_correlation, serial_covariance
from dynident.estimate.estimator import Estimator
from dynident.estimate.friction_width import Gather, make_estimator
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.robot.model import Element, Robot
from dynident.signals.observations import Observations
from dynident.signals.rows import DELAY, ObservedRows, RowRule

NONNEGATIVE = ("Ia", "Fv", "Fc")
SCALE = "links"  # name of the one coefficient of all link torques


@dataclass(frozen=True, eq=False)
class DriveElement:
    """The element of a joint's own drive.

    Attributes:
        joint: Name of the joint.
        number: Of the joint.
        element: Where its rotor and friction are.
        prismatic: Whether it slides.
    """

    joint: str
    number: int
    element: Element
    prismatic: bool

    def name(self, symbol: str) -> str:
        """Name of its parameter of this kind, such as Fv3."""
        return self.element.names[symbol]


def drive_elements(robot: Robot) -> tuple[DriveElement, ...]:
    """The drives of the moving joints, in order.

    Raises:
        InputError: Where a joint has no element with rotor inertia and friction of its own.
    """
    found = []
    for place, joint in zip(robot.moving, robot.moving_joints, strict=True):
        alone = np.eye(len(robot.active))[place]
        own = [
            element
            for element in robot.elements
            if np.array_equal(element.velocity != 0.0, alone != 0.0) and {"Ia", "Fv", "Fc", "Fo"} <= set(element.names)
        ]
        if not own:
            raise InputError(
                f"robot {robot.name}: joint {joint.name} has no drive of its own (an element with Ia, Fv, Fc and Fo "
                "that moves with it alone); from commands, drives of coupled joints cannot be identified"
            )
        found.append(DriveElement(joint.name, joint.number, own[0], joint.kind == "prismatic"))
    return tuple(found)


@record
class LinearDrives:
    """A linear estimate.

    Attributes:
        names: Ia, Fv, Fc and bias of each joint, such as Fv3 and bias3; the delay where it was estimated along.
        values: (n,).
        covariance: (n, n), for autocorrelated residuals.
        at_bound: Parameters that a sign would have made impossible; they are zero.
        negative: Those of them that were below zero by four standard deviations.
        residual_std: (n_joints,) [N·m or N].
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    at_bound: tuple[str, ...]
    negative: tuple[str, ...]
    residual_std: Array

    def replace(self, **changes: Any) -> LinearDrives:
        """The same with other fields."""
        return replace(self, **changes)

    @property
    def std(self) -> Array:
        """(n,) standard deviations."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def mapping(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class DriveRows:
    """The equations of some logs with known links.

    Attributes:
        robot: The robot.
        observations: The logs, filtered.
        links: (10 n_links,) standard parameters.
        kp: (n_logs, n_joints) position gains; None where torque was measured, whose offset is no bias of positions.
    """

    robot: Robot
    observations: tuple[Observations, ...]
    links: Array
    kp: Array | None

    def base(self, smoothing: float | None, widths: Mapping[str, float] | None = None) -> BaseParameters:
        """Columns of the links, rotors and friction, and of the bias."""
        coulomb = Coulomb(widths=widths) if widths else Coulomb() if smoothing is None else Coulomb(smoothing)
        return base_parameters(self.robot, (KnownLinks(), RotorInertia(), Viscous(), coulomb, Offset(), Zero()))

    @property
    def stiffness(self) -> Array | None:
        """(n_joints,) torque for a bias of one, to which the offsets of all logs are referred."""
        if self.kp is None:
            return None
        largest = self.kp.max(axis=0)
        return np.asarray(np.where(largest > 0.0, largest, 1.0))

    @functools.cached_property
    def _groups(self) -> list[tuple[tuple[Observations, ...], Array]]:
        """Logs of the same gains, with what their offset is beside that of the largest gains, (n_joints,)."""
        if self.kp is None:
            return [(self.observations, np.ones(len(self.robot.moving)))]
        assert self.stiffness is not None
        found: dict[bytes, tuple[list[Observations], Array]] = {}
        for one, kp in zip(self.observations, self.kp, strict=True):
            found.setdefault(kp.tobytes(), ([], kp / self.stiffness))[0].append(one)
        return [(tuple(own), shares) for own, shares in found.values()]

    def _rows(self, base: BaseParameters, rule: RowRule, delay: float) -> list[tuple[ObservedRows, Array]]:
        """The rows of each group, with commands that reach the joints this much later [s], and its offsets' shares."""
        return [
            (
                ObservedRows(tuple(one.with_options(delay=-delay) for one in own), base, self.links, rule=rule),
                shares,
            )
            for own, shares in self._groups
        ]

    def _offset_scales(self, names: Sequence[str], shares: Array) -> Array:
        """(n,) one, and for the offset of each joint its share."""
        own = dict(zip((drive.name("Fo") for drive in drive_elements(self.robot)), shares.tolist(), strict=True))
        return np.array([own.get(name, 1.0) for name in names])

    def _information(self, groups: Sequence[tuple[ObservedRows, Array]]) -> Information:
        """What all rows say, over offsets at the largest gains."""
        parts = []
        for rows, shares in groups:
            own = accumulate_source(rows)
            if len(groups) > 1:
                own = own.transformed(np.diag(self._offset_scales(own.names, shares)), own.names)
            parts.append(own)
        return functools.reduce(operator.add, parts)

    def solve(
        self, base: BaseParameters, rule: RowRule, delay: float, *, free_links: Sequence[int] | None = ()
    ) -> tuple[LinearDrives, Estimator]:
        """Least squares with the torque of the links taken off, none of the parameters negative.

        Args:
            base: The columns.
            rule: Which rows.
            delay: By which commands reach the joints late [s].
            free_links: Numbers of the joints whose link torque has an unknown factor of its own, which wrong gains
                would show in; None for one factor that all share.
        """
        groups = self._rows(base, rule, delay)
        information = self._information(groups)
        chart, names = self._chart(information, free_links)
        origin = known_coefficients(information.names)
        free = {SCALE} if free_links is None else {link_scale_name(number) for number in free_links}
        origin[[free_links is None or name in free for name in information.names]] = 0.0
        own = information.around(origin).transformed(chart, names)
        dropped: list[str] = []
        negative: list[str] = []
        while True:
            fitted = make_estimator().fit(own)
            std = np.where(fitted.std_ > 0.0, fitted.std_, 1.0)
            ratios = {
                name: value / deviation
                for name, value, deviation in zip(fitted.names_, fitted.values_, std, strict=True)
                if name[:2] in NONNEGATIVE and value < 0.0
            }
            if not ratios:
                break
            worst = min(ratios, key=lambda name: ratios[name])
            dropped.append(worst)
            if ratios[worst] < -4.0:
                negative.append(worst)
            own = own.restrict([name for name in own.names if name != worst])
        place = [names.index(name) for name in fitted.names_]
        every = origin + chart[:, place] @ fitted.values_
        scales = [self._offset_scales(information.names, shares) for _, shares in groups]
        sources = [rows for rows, _ in groups]
        # Columns have frequencies of their own: those of a bias are far below those that encoder noise is loud at.
        autocorrelation = autocorrelation_model(
            [residual_correlation(own, scale * every) for own, scale in zip(sources, scales, strict=True)]
        )
        charts = [scale[:, None] * chart[:, place] for scale in scales]
        covariance = serial_covariance(fitted, list(zip(sources, charts, strict=True)), autocorrelation)
        wide, spread = np.zeros(len(names)), np.zeros((len(names), len(names)))
        wide[place], spread[np.ix_(place, place)] = fitted.values_, covariance
        found = LinearDrives(tuple(names), wide, spread, tuple(dropped), tuple(negative), fitted.sigma_)
        return found, fitted

    def _chart(self, information: Information, free_links: Sequence[int] | None) -> tuple[Array, list[str]]:
        """(n, m) from what is found to the columns of the rows, and its names."""
        names, columns = [], []

        def unit(*entries: tuple[str, float]) -> Array:
            column = np.zeros(len(information.names))
            for name, number in entries:
                if name in information.names:
                    column[information.names.index(name)] = number
            return column

        for row, drive in enumerate(drive_elements(self.robot)):
            for symbol in NONNEGATIVE:
                names.append(drive.name(symbol))
                columns.append(unit((drive.name(symbol), 1.0)))
            if self.stiffness is None:
                names.append(drive.name("Fo"))
                columns.append(unit((drive.name("Fo"), 1.0)))
            else:
                assert self.kp is not None
                names.append(f"bias{drive.number}")
                pull = float(self.stiffness[row]) * bool(self.kp[:, row].any())
                columns.append(unit((f"zero_{drive.number}", 1.0), (drive.name("Fo"), pull)))
        beside = [name for name in information.names if name == DELAY or "(" in name]
        names += beside
        columns += [unit((name, 1.0)) for name in beside]
        if free_links is None:
            names.append(SCALE)
            columns.append(known_coefficients(information.names))
        else:
            names += [link_scale_name(number) for number in free_links]
            columns += [unit((link_scale_name(number), 1.0)) for number in free_links]
        return np.array(columns).T, names

    def gather(self, delay: float) -> Gather:
        """What the search for widths asks for: information without the torque of the links."""

        def gathered(base: BaseParameters, rule: RowRule) -> Information:
            information = self._information(self._rows(base, rule, delay))
            kept = [name for name in information.names if not name.startswith("links_")]
            return information.around(known_coefficients(information.names)).restrict(kept)

        return gathered


def with_true_gains(found: LinearDrives, robot: Robot) -> LinearDrives:
    r"""An estimate with factors of the controllers' gains, s = 1 / c, instead of coefficients c of the links' torque.

    With gains of s times what they are taken for, s (kp (target - q) - kd dq) is the torque, so that armature and
    friction are s times what follows from the gains given.
    """
    place = {name: k for k, name in enumerate(found.names)}
    values, slopes, names = found.values.copy(), np.eye(len(found.names)), list(found.names)
    for drive in drive_elements(robot):
        link = place.get(link_scale_name(drive.number))
        if link is None or found.values[link] <= 0.0:
            continue
        gain = 1.0 / found.values[link]
        values[link], names[link] = gain, gain_name(drive.number)
        slopes[link, link] = -(gain**2)
        for symbol in (*NONNEGATIVE, "Fo"):
            if (own := place.get(drive.name(symbol))) is not None:
                values[own] = gain * found.values[own]
                slopes[own, own], slopes[own, link] = gain, -(gain**2) * found.values[own]
    return found.replace(names=tuple(names), values=values, covariance=slopes @ found.covariance @ slopes.T)


def gain_name(number: int) -> str:
    """Name of the factor of the gains of a joint's controller."""
    return f"gain{number}"


def with_gains(robot: Robot, kp: Sequence[float] | Array, kd: Sequence[float] | Array) -> Robot:
    """The robot with gains of its position controller, (n_joints,) each."""
    gains = np.zeros((2, len(robot.active)))
    gains[:, list(robot.moving)] = kp, kd
    return replace(robot, drive=replace(robot.drive, kp=gains[0], kd=gains[1]))
