r"""Dry friction along a motion: Coulomb columns that reverse between samples, and where elements reverse.

Torque passes the low-pass of the kinematics and that of the rows; the sign of a velocity that was derived from filtered
positions passes the second one alone, and the moment at which a joint that sticks lets go is not in the positions at
all. Rows that a reversal reaches through the filters are therefore wrong by up to a third of the friction, whatever the
column. Further away the two filters agree, and the column needs no more than the right moment of the reversal: each
sample holds the mean over its own cell of length T,

.. math:: \frac1T \int_{-T/2}^{T/2} \tanh\frac{v + a s}{w}\,ds
    = \frac{w}{aT} \ln\frac{\cosh((v + aT/2)/w)}{\cosh((v - aT/2)/w)},

with velocity v, acceleration a and width w of the element; the mean of the exact sign where w is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.terms import Coulomb, Term
from dynident.dynamics.terms.friction import motion_of
from dynident.dynamics.terms.term import MotionSamples
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.robot.model import Element

_STRAIGHT = 1e-4  # share of the width by which the velocity changes over a cell, below which its middle is its mean
_WIDTH_STEP = 0.05  # share of a width over which the column's slope is taken


def cell_mean(v: Array, a: Array, cell: float, width: Array) -> Array:
    """Mean of tanh(v / w), or of the exact sign, over the cell of each sample, (n_elements, n_samples).

    Args:
        v: (n_elements, n_samples) velocities at the middle of the cells [rad/s or m/s].
        a: (n_elements, n_samples) accelerations [rad/s² or m/s²].
        cell: Length of a cell [s].
        width: (n_elements,) velocities at which the sign reaches tanh(1); 0 is the exact sign.
    """
    half = np.maximum(np.abs(0.5 * cell * a), 1e-300)
    mean = np.clip(v / half, -1.0, 1.0)
    smooth = np.flatnonzero(width > 0.0)
    if len(smooth):
        w = width[smooth, None]
        x, d = v[smooth] / w, half[smooth] / w
        bent = (_log_cosh(x + d) - _log_cosh(x - d)) / (2.0 * d)
        mean[smooth] = np.where(d > _STRAIGHT, bent, np.tanh(x))
    return mean


def _log_cosh(x: Array) -> Array:
    """log(cosh(x)) + log(2), without overflow."""
    size = np.abs(x)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)))


@dataclass(frozen=True)
class CoulombColumn:
    """One more Coulomb column of an element, beside that of the model.

    Attributes:
        element: Label of the element.
        width: Velocity at which its sign reaches tanh(1) [rad/s or m/s]; 0 is the exact sign.
        slope: Whether it is the derivative of the column with respect to the width that is wanted.
    """

    element: str
    width: float
    slope: bool = False

    @property
    def name(self) -> str:
        """Of its coefficient."""
        return f"{'slope of ' if self.slope else ''}Fc({self.width:.9g})_{self.element}"


class DryFriction:
    """The elements with dry friction of a regressor.

    An element whose motion is no fixed combination of the joints' (a loop that is solved numerically) keeps the column
    of the regressor, and reverses where that changes its sign.

    Args:
        regressor: The regressor.
        terms: Terms of the model, whose Coulomb term gives the widths; without one there are no elements.

    Attributes:
        elements: Those whose Coulomb friction is a base parameter.
        directions: (n_elements, n_joints) motion of each with the joints; zero where it is no fixed combination.
        widths: (n_elements,) of the model [rad/s or m/s].
        acts: (n_elements, n_outputs) whether an element acts on an output.
    """

    def __init__(self, regressor: BaseRegressor, terms: tuple[Term, ...]) -> None:
        robot, coordinates = regressor.robot, regressor.coordinates
        term = next((own for own in terms if isinstance(own, Coulomb)), None)
        names = {coordinates.columns[j].name: i for i, j in enumerate(coordinates.independent)}
        every = [] if term is None else term.elements(robot)
        self.elements: list[Element] = [element for element in every if element.names["Fc"] in names]
        self._fixed = np.array([not element.solved.any() for element in self.elements], dtype=bool)
        moving, n_joints = list(robot.moving), len(robot.joint_names)
        self.directions = np.array(
            [motion_of(robot, e) * fixed for e, fixed in zip(self.elements, self._fixed, strict=True)]
        ).reshape(len(self.elements), n_joints)
        self.widths = np.array([0.0 if term is None else term.width(element) for element in self.elements])
        columns = [names[element.names["Fc"]] for element in self.elements]
        self._places = [  # element, output, place among the columns of the output, share of the torque
            (e, output, own.index(column), float(element.torque[moving[output]]))
            for e, (element, column) in enumerate(zip(self.elements, columns, strict=True))
            for output, own in enumerate(regressor.columns)
            if column in own
        ]
        self.acts = np.zeros((len(self.elements), len(regressor.columns)), dtype=bool)
        for e, output, _, _ in self._places:
            self.acts[e, output] = True

    def velocities(self, samples: MotionSamples, columns: Array, starts: list[int]) -> tuple[Array, Array]:
        """Velocity and acceleration of each element, (n_elements, n_samples) [rad/s or m/s, and per s].

        Args:
            samples: The motion.
            columns: Columns of the regressor on it, columns first; an element in a loop takes its sign from there.
            starts: Line of the first column of each output.
        """
        v, a = self.directions @ samples.dq.T, self.directions @ samples.ddq.T
        for e, output, place, _ in self._places:
            if not self._fixed[e]:
                v[e] = columns[starts[output] + place]
        return v, a

    def set_columns(self, v: Array, a: Array, cell: float, columns: Array, starts: list[int]) -> None:
        """Put the means over cells in place of the regressor's Coulomb columns."""
        means = cell_mean(v, a, cell, self.widths)
        for e, output, place, share in self._places:
            if self._fixed[e]:
                columns[starts[output] + place] = share * means[e]

    def extra_columns(self, v: Array, a: Array, cell: float, wanted: tuple[CoulombColumn, ...]) -> Array:
        """More Coulomb columns, one line for each place in `extra_places`, (n_lines, n_samples)."""
        labels = [element.label for element in self.elements]
        own = [labels.index(one.element) for one in wanted]
        widths = np.array([one.width for one in wanted])
        means = cell_mean(v[own], a[own], cell, widths)
        slopes = [i for i, one in enumerate(wanted) if one.slope]
        if slopes:
            step, at = _WIDTH_STEP * widths[slopes], [own[i] for i in slopes]
            low, high = (cell_mean(v[at], a[at], cell, widths[slopes] + sign * step) for sign in (-1.0, 1.0))
            means[slopes] = (high - low) / (2.0 * step[:, None])
        places = self.extra_places(wanted)
        shares = np.array([share for _, _, share in places]).reshape(-1, 1)
        return np.asarray(means[[number for number, _, _ in places]] * shares)

    def extra_places(self, wanted: tuple[CoulombColumn, ...]) -> list[tuple[int, int, float]]:
        """For each line of `extra_columns`: which column it is, the output it is for, its share of the torque."""
        return [
            (number, output, share)
            for number, one in enumerate(wanted)
            for e, output, _, share in self._places
            if self.elements[e].label == one.element and self._fixed[e]
        ]


class Reversals:
    """Marks of the samples at which an element reverses or rests, along a stretch.

    Args:
        rest: (n_elements,) velocities up to which an element may stick [rad/s or m/s].
    """

    def __init__(self, rest: Array) -> None:
        self._rest, self._before = rest[:, None], np.zeros((len(rest), 0))

    def push(self, v: Array) -> Array:
        """Of the next samples of the stretch, (n_elements, n_samples): one at a mark, zero elsewhere."""
        way = np.sign(v)
        before = np.concatenate([self._before, way], axis=1)
        turned: Mask = np.zeros(v.shape, dtype=bool)
        turned[:, v.shape[1] - before.shape[1] + 1 :] = before[:, 1:] != before[:, :-1]
        self._before = way[:, -1:]
        return (turned | (np.abs(v) <= self._rest)).astype(np.float64)
