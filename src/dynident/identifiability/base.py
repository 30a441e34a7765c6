"""Structural base parameters: what the joint torques of a robot can ever determine about its standard parameters.

How many there are is the rank of the regressor, read off its singular values. Which columns stand for them is decided
from left to right, links from the base outwards and Khalil's order within a link. A column that depends on those before
it is regrouped on them, which is what Khalil's rules do: YY goes to XX and towards the base, MZ and M go towards the
base, rotor inertia goes to ZZ.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen, on_one_thread
from dynident.display import html_table
from dynident.dynamics.evaluate import parameters, regressor
from dynident.dynamics.terms import Column, Term, TermsLike, all_columns, along_terms, resolve_terms, state_terms
from dynident.errors import InputError
from dynident.identifiability.lengths import recognize
from dynident.identifiability.regrouping import Regrouping, without_rounding
from dynident.identifiability.states import ACCELERATION, random_states, reach
from dynident.robot.model import Robot, Transform
from dynident.robot.notices import list_names
from dynident.robot.parameters import LINK_SYMBOLS, in_frame

TOLERANCE = 1e-8  # share of the largest singular value below which a combination counts as not identifiable
_FAINT = 3e-5  # a combination with a smaller singular value deserves a word
_ROUNDED = 1e-4  # sine of an angle that is small because a right angle was written with few digits
_LEAST_GAP = 1e3  # between the last singular value that counts and the first that does not
_CLEAR = 3e-2  # size above which a column of orthonormal rows is chosen for a base parameter


@dataclass(frozen=True)
class BaseParameters(Regrouping):
    """The base parameters of a robot for a set of terms (see `Regrouping` for names, relations and categories).

    Attributes:
        robot: The robot.
        terms: The terms.
        weakest: The smallest singular value of the scaled regressor that counts, as a share of the largest.
        strongest: The largest one that does not count; 0 without one. The rank gap is between the two.
        warnings: What a reader should know.
    """

    robot: Robot
    terms: tuple[Term, ...]
    weakest: float
    strongest: float
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line, not the numbers."""
        terms = ",".join(term.key_on(self.robot) for term in self.terms)
        return f"BaseParameters({self.robot.name}: {self.n} from {len(self.columns)} standard parameters of {terms})"

    def _repr_html_(self) -> str:
        by_column = self.categories
        kinds = [by_column[self.columns[j].name] for j in self.independent]
        rows = zip(self.names, self.units, kinds, self.expressions, strict=True)
        return html_table(("parameter", "unit", "category", "stands for"), rows, repr(self))

    @property
    def is_faint(self) -> bool:
        """Whether a parameter shows by so little that no motion determines it, as rounded angles do."""
        return self.weakest < _FAINT

    @functools.cached_property
    def texts(self) -> Mapping[tuple[int, int], str]:
        """Coefficients recognized over the robot's named lengths; worked out when somebody wants to read them."""
        terms = state_terms(self.terms)
        n_columns = len(all_columns(self.robot, terms))
        own = [row for row, index in enumerate(self.independent) if index < n_columns]
        return recognize(self.robot, terms, [self.independent[row] for row in own], self.K[own][:, :n_columns])

    def base_values(self, values: str | Mapping[str, float] | ArrayLike | None = None) -> Array:
        """beta = K chi of a value set, (n,). Fixed parameters are no part of it."""
        return np.asarray(self.K @ parameters(self.robot, self.terms, values))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """The base columns of the regressor, (n_samples, n_joints, n)."""
        return regressor(self.robot, q, dq, ddq, self.terms)[:, :, list(self.independent)]

    def _prior(self, prior: str | Mapping[str, float] | ArrayLike) -> Array:
        return parameters(self.robot, self.terms, prior)


@on_one_thread
def base_parameters(robot: Robot, terms: TermsLike = None, *, tolerance: float = TOLERANCE) -> BaseParameters:
    """The structural base parameters of a robot.

    Args:
        robot: The robot; locked joints reduce what can be identified.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        tolerance: Share of the largest singular value of the scaled regressor below which a combination of parameters
            counts as not identifiable.
    """
    resolved = resolve_terms(terms, robot)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"tolerance is {tolerance}; expected a share between 0 and 1")
    along = along_terms(resolved)
    if not along:
        return _of_state(robot, resolved, tolerance)
    # What follows a motion is no function of the state, so the structure regroups none of it.
    found, beside = _of_state(robot, state_terms(resolved), tolerance), all_columns(robot, along)
    n, n_columns = len(beside), len(found.columns)
    return dataclasses.replace(
        found,
        terms=(*found.terms, *along),
        columns=(*found.columns, *beside),
        independent=(*found.independent, *range(n_columns, n_columns + n)),
        K=frozen(np.block([[found.K, np.zeros((found.n, n))], [np.zeros((n, n_columns)), np.eye(n)]])),
    )


@functools.lru_cache(maxsize=16)
def _of_state(robot: Robot, resolved: tuple[Term, ...], tolerance: float) -> BaseParameters:
    """Base parameters of terms that are functions of the state."""
    if not resolved:
        return BaseParameters((), (), frozen(np.zeros((0, 0))), robot, (), 1.0, 0.0)
    described = all_columns(robot, resolved)
    scales = column_scales(robot, described)
    W = scaled_observation(robot, resolved, scales)
    W[:, [column.fixed is not None for column in described]] = 0.0
    # The rank is decided in frames whose z axis is the joint's: there, what depends does so clearly. A link frame that
    # is turned against its joint by a thousandth would blur it.
    X = aligning_matrix(robot, described) * scales / scales[:, None]
    _, singular, right = np.linalg.svd(np.linalg.qr(W @ np.linalg.inv(X), mode="r"))
    shares = singular / max(float(singular[0]), np.finfo(np.float64).tiny)
    n = int(np.count_nonzero(shares > tolerance))
    independent, K = readable_base(np.asarray(np.linalg.qr((right[:n] @ X).T)[0].T), scales)
    return BaseParameters(
        robot=robot,
        terms=resolved,
        columns=described,
        independent=tuple(independent),
        K=frozen(K),
        weakest=float(shares[:n].min(initial=1.0)),
        strongest=float(shares[n:].max(initial=0.0)),
        warnings=_warnings(robot, shares, n),
    )


def column_scales(robot: Robot, described: Sequence[Column]) -> Array:
    """Typical size of each column, (n_columns,), from the kind of its parameter: W / scales is well scaled."""
    length = reach(robot)
    weight = max(ACCELERATION * length, float(np.linalg.norm(robot.gravity)))
    kinds = {"M": weight * length, "MX": weight, "MY": weight, "MZ": weight, "Fv": 3.0, "Fc": 1.0, "Fo": 1.0}
    return np.array([kinds.get(column.symbol, ACCELERATION) for column in described])


def aligning_matrix(robot: Robot, described: Sequence[Column]) -> Array:
    """chi in joint frames from chi in link frames, (n_columns, n_columns); elements are left alone."""
    X = np.eye(len(described))
    places = {column.name: j for j, column in enumerate(described) if column.term == "rigid"}
    for joint in robot.joints:
        own = [places[f"{symbol}{joint.number}"] for symbol in LINK_SYMBOLS if places]
        if own:
            X[np.ix_(own, own)] = in_frame(np.eye(10), joint.after.rotation, joint.after.translation).T
    return X


def readable_base(seen: Array, scales: Array) -> tuple[list[int], Array]:
    """Base parameters for what the rows of `seen` span, one for each row, on columns chosen from the left.

    A column is passed over if less than `_CLEAR` of it is new. Of r rows that are not yet spanned, orthonormal as they
    are, the squares of all columns still add up to r, so that one column at least is larger than 1/sqrt(n_columns): a
    threshold below that finds as many columns as there are rows, in one pass.

    Args:
        seen: (n, n_columns), the identifiable combinations of scaled parameters, orthonormal rows.
        scales: Typical size of each column.

    Returns:
        The n chosen columns, and K over parameters as they are.
    """
    n, n_columns = seen.shape
    clear = min(_CLEAR, 0.5 / np.sqrt(max(n_columns, 1)))
    left = np.array(seen)  # the part of every column that no chosen one explains
    independent: list[int] = []
    for j in range(n_columns):
        size = float(np.linalg.norm(left[:, j]))
        if len(independent) < n and size > clear:
            new = left[:, j] / size
            left[:, j:] -= np.outer(new, new @ left[:, j:])
            independent.append(j)
    over = np.linalg.lstsq(seen[:, independent], seen, rcond=None)[0]
    return independent, without_rounding(np.asarray(over / scales[independent][:, None] * scales, dtype=np.float64))


def scaled_observation(robot: Robot, terms: Sequence[Term], scales: Array) -> Array:
    """The regressor on random states with scaled columns, (n_rows, n_columns)."""
    n_samples = max(30, int(np.ceil(3.0 * len(scales) / len(robot.moving))))
    W = regressor(robot, *random_states(robot, n_samples), terms)
    stacked = np.ascontiguousarray(W).reshape(-1, len(scales)) / scales
    return np.asarray(stacked / np.sqrt(len(stacked)))


def _warnings(robot: Robot, shares: Array, n: int) -> tuple[str, ...]:
    """What makes the count doubtful: combinations that are hardly visible, and singular values without a gap.

    Args:
        robot: The robot.
        shares: Singular values over the largest, falling.
        n: How many of them count.
    """
    found = []
    faint = int(np.count_nonzero(shares[:n] < _FAINT))
    if faint:
        which = "a base parameter is" if faint == 1 else f"{faint} of the {n} base parameters are"
        found.append(
            f"{which} visible only through an effect of relative size {shares[n - 1]:.0e}, which no log shows: "
            f"{_where_rounded(robot)}. A tolerance of {_FAINT:.0e} counts {n - faint} base parameters"
        )
    if 0 < n < len(shares) and shares[n - 1] < _LEAST_GAP * shares[n]:
        found.append(
            f"the rank is not clear-cut: {n} base parameters have singular values down to {shares[n - 1]:.1e} of the "
            f"largest, and what was not counted up to {shares[n]:.1e}"
        )
    return tuple(found)


def _where_rounded(robot: Robot) -> str:
    """Which angles of the robot file are rounded, and what to write instead."""
    joints = [joint.name for joint in robot.joints if _is_rounded(joint.before) or _is_rounded(joint.after)]
    if not joints:
        return "are angles or lengths rounded in the robot file?"
    return (
        f"angles are rounded in the robot file (origin or axis of {list_names(joints)}); "
        f"write all digits, pi/2 as {np.pi / 2}, not as 1.5708"
    )


def _is_rounded(frame: Transform) -> bool:
    """Whether a frame is turned by nearly a right angle, but not quite."""
    size = np.abs(frame.rotation)
    return bool(np.any((size > TOLERANCE) & (size < _ROUNDED)))
