"""`sample_models`: models drawn from the posterior of drives or of a fit, for domain randomization.

Parameters are drawn together, with their covariance, and only physically consistent ones; see `consistent_samples`.
What torque leaves open (masses that no joint lifts, links before the first joint) the data says nothing about: such
combinations get a spread that is stated, in the metric of the log-determinant of pseudo-inertias (Lee, Wensing & Park
2020), where a relative standard deviation of a mass is that of the metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dynident.arrays import Array, record
from dynident.drives.consistent_samples import Conditions, Draws, draw_consistent
from dynident.drives.identification import DriveEstimate, values_of
from dynident.drives.linear import NONNEGATIVE, drive_elements
from dynident.drives.replay import DriveValues
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters
from dynident.physical.fitting import physical_fit, rows_of
from dynident.physical.problem import link_columns
from dynident.physical.result import PhysicalParameters
from dynident.robot.model import Robot
from dynident.robot.physicality import pseudo_inertia

UNIDENTIFIED = 0.05  # relative standard deviation of masses that torque leaves open: what CAD is usually good for
_PLAIN = ("rigid", "Ia", "Fv", "Fc", "Fo")
_NULL = 1e-8  # singular value, as a share of the largest, of what the data does not determine


@record
class SampledModels:
    """Models drawn from a posterior.

    Attributes:
        robot: The robot; its own values are those of its file.
        names: Parameters that differ between samples or might: standard parameters, biases, the delay.
        units: Their units.
        center: (p,) values that samples are drawn around: the physically consistent estimate.
        values: (n, p).
        kp: (n_joints,) position gains; None where none are known.
        kd: (n_joints,) velocity gains.
        notes: How they were drawn, in words.
        seed: Of the random numbers.
    """

    robot: Robot
    names: tuple[str, ...]
    units: tuple[str, ...]
    center: Array
    values: Array
    kp: Array | None
    kd: Array | None
    notes: tuple[str, ...] = ()
    seed: int = 0
    _place: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {name: k for k, name in enumerate(self.names)})

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.values)

    def __getitem__(self, name: str) -> Array:
        """(n,) samples of a parameter."""
        if name not in self._place:
            raise UnknownNameError("parameter", name, self.names)
        return np.asarray(self.values[:, self._place[name]])

    def ranges(self, level: float) -> Array:
        """(p, 2) central intervals that hold this share of the samples of each parameter."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level is {level:g}; expected a share between 0 and 1, such as 0.9")
        return np.asarray(np.quantile(self.values, [0.5 - level / 2, 0.5 + level / 2], axis=0).T)

    def mapping(self, sample: int | None = None) -> dict[str, float]:
        """Values by name of a sample, or of the center."""
        own = self.center if sample is None else self.values[sample]
        return dict(zip(self.names, own.tolist(), strict=True))

    def drives(self, sample: int | None = None) -> DriveValues:
        """What a replay needs of a sample, or of the center."""
        found = self.mapping(sample)
        return values_of(self.robot, found, found.get("delay", 0.0))


def sample_models(
    result: DriveEstimate | Fit,
    n: int = 1000,
    *,
    seed: int = 0,
    widen: float = 1.0,
    unidentified: float = UNIDENTIFIED,
    bodies: PhysicalParameters | None = None,
) -> SampledModels:
    """Draw physically consistent models from the posterior of drives or of a fit.

    Args:
        result: Drives, or a fit with viscous and Coulomb friction.
        n: How many.
        seed: Of the random numbers.
        widen: Factor of all standard deviations.
        unidentified: Relative standard deviation of masses that torque leaves open, and of all inertia beside them in
            the same measure; of a fit only.
        bodies: Physically consistent parameters of the fit, where they are there already.

    Raises:
        InputError: For numbers that make no sense, or friction that simulators do not have.
    """
    if n < 1:
        raise InputError(f"n is {n}; expected at least one sample")
    if not (np.isfinite(widen) and widen > 0.0):
        raise InputError(f"widen is {widen:g}; expected a positive factor, 1 for the posterior itself")
    if not (np.isfinite(unidentified) and unidentified >= 0.0):
        raise InputError(f"unidentified is {unidentified:g}; expected a share that is not negative, such as 0.05")
    rng = np.random.default_rng(seed)
    if isinstance(result, DriveEstimate):
        return _of_drives(result, n, rng, widen, seed)
    return _of_fit(result, physical_fit(result) if bodies is None else bodies, n, rng, widen, unidentified, seed)


def _of_drives(found: DriveEstimate, n: int, rng: np.random.Generator, widen: float, seed: int) -> SampledModels:
    std = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    free = np.flatnonzero(std > 0.0)
    eigenvalues, vectors = np.linalg.eigh(found.covariance[np.ix_(free, free)] / np.outer(std[free], std[free]))
    root = np.zeros((len(std), len(free)))
    root[free] = widen * std[free, None] * vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    positive = [drive.name(symbol) for drive in drive_elements(found.robot) for symbol in NONNEGATIVE] + ["delay"]
    places = np.array([found.names.index(name) for name in positive])
    conditions = Conditions(places, np.zeros((0, 10), dtype=np.intp))
    drawn = draw_consistent(found.values, root, np.zeros(root.shape[1]), conditions, n, rng)
    notes = [_how(drawn, n)]
    held = found.undetermined
    if held:
        notes.append(f"at a bound or not determined, and hardly varied: {', '.join(held)}")
    return SampledModels(
        found.robot,
        found.names,
        found.units,
        found.values,
        drawn.theta,
        found.kp if np.any(found.kp) else None,
        found.kd if np.any(found.kp) else None,
        tuple(notes),
        seed,
    )


def _how(drawn: Draws, n: int) -> str:
    """How samples were drawn, in words."""
    words = f"{100.0 * drawn.accepted:.3g} % of the draws of the posterior are physically consistent"
    if not drawn.chained:
        return words if drawn.accepted == 1.0 else f"{words}; the others were rejected"
    return f"{words}; {drawn.chained} of {n} samples are ends of Gibbs chains within the consistent set"


def _of_fit(
    fit: Fit,
    bodies: PhysicalParameters,
    n: int,
    rng: np.random.Generator,
    widen: float,
    unidentified: float,
    seed: int,
) -> SampledModels:
    """Of a fit: data along the directions it determines, a stated spread along the others."""
    base = fit.base
    further = [term.key for term in base.terms if term.name not in _PLAIN]
    if further:
        raise InputError(
            f"the fit has the terms {', '.join(further)}, which simulators do not have; identify with --friction basic "
            "to draw samples for them"
        )
    rows = rows_of(fit)
    free = np.array([column.fixed is None for column in base.columns])
    places = link_columns(base.robot, base.columns)
    weights = _metric_root(base, bodies.chi, fit)  # (p, p): what a step of one of the metric is in parameters
    weights[~free] = 0.0
    singular, left, right = _svd(rows.R @ base.K @ weights)
    own = singular > _NULL * singular[0]
    data = weights @ right[:, own] / singular[own]
    undetermined = weights @ right[:, ~own] * unidentified
    root = np.column_stack([widen * data, undetermined])
    root = root[:, np.linalg.norm(root, axis=0) > 0.0]
    apart = left[:, own].T @ (rows.R @ (rows.estimate.values - base.K @ bodies.chi)) / widen
    mean = np.concatenate([apart, np.zeros(root.shape[1] - len(apart))])
    bodied = [place for place in places if bodies.chi[place].any()]
    names = [column.name for column in base.columns]
    friction = {name for drive in base.robot.elements for symbol, name in drive.names.items() if symbol in NONNEGATIVE}
    positive = [k for k, name in enumerate(names) if name in friction and bodies.chi[k] >= 0.0 and free[k]]
    conditions = Conditions(np.array(positive, dtype=np.intp), np.array(bodied, dtype=np.intp).reshape(-1, 10))
    drawn = draw_consistent(bodies.chi, root, mean, conditions, n, rng)
    moving = list(base.robot.moving)
    drive = base.robot.drive
    kp, kd = (None if own is None else own[moving] for own in (drive.kp, drive.kd))
    notes = [
        _how(drawn, n),
        f"{int(own.sum())} combinations vary as the data allows, {int((~own).sum())} that torque leaves open by "
        f"{100.0 * unidentified:.3g} % (relative standard deviation of a mass)",
    ]
    units = tuple(column.unit for column in base.columns)
    return SampledModels(base.robot, tuple(names), units, bodies.chi, drawn.theta, kp, kd, tuple(notes), seed)


def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Singular values (p,), zeros for what has none, left and right vectors (m, p) and (p, p) of a matrix (m, p)."""
    left, singular, right = np.linalg.svd(matrix, full_matrices=True)
    count, p = len(singular), matrix.shape[1]
    wide = np.zeros((matrix.shape[0], p))
    wide[:, :count] = left[:, :count]
    return np.append(singular, np.zeros(p - count)), wide, right.T


def _metric_root(base: BaseParameters, chi: Array, fit: Fit) -> Array:
    """(p, p) square root of the inverse metric: that of log-determinants for links, shares of others.

    With J = L L' the pseudo-inertia, the metric of a change dJ is the norm of L^-1 dJ L^-T: independent changes of its
    entries with a standard deviation of one (off the diagonal of 1/sqrt(2)) are brought to standard parameters.
    """
    root = np.diag(np.maximum(np.abs(chi), _spreads(base, fit)))
    for place in link_columns(base.robot, base.columns):
        root[place] = 0.0
        if not chi[place].any():
            continue
        L = np.linalg.cholesky(pseudo_inertia(chi[place]))
        to_entries = np.array([pseudo_inertia(own)[_ROWS, _COLUMNS] for own in np.eye(10)]).T  # (10, 10)
        changes = np.zeros((10, 10))
        for k, (i, j) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
            unit = np.zeros((4, 4))
            unit[i, j] = unit[j, i] = 1.0 if i == j else np.sqrt(0.5)
            changes[:, k] = (L @ unit @ L.T)[_ROWS, _COLUMNS]
        root[np.ix_(place, place)] = np.linalg.solve(to_entries, changes)
    return root


_ROWS, _COLUMNS = np.tril_indices(4)


def _spreads(base: BaseParameters, fit: Fit) -> Array:
    """(p,) standard deviations of base parameters by the column that they are named after; zero for others."""
    std = dict(zip(fit.base.names, fit.std.tolist(), strict=True))
    found = np.array([std.get(column.name, 0.0) for column in base.columns])
    return np.where(np.isfinite(found), found, 0.0)
