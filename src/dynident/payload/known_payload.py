"""A known load as a test of an identification: what it must change, against what a second identification finds.

Base parameters are linear in standard ones, so a load at the tool changes them by K times its own standard parameters
(Gautier, Khalil, Restrepo 1995, section 4.4). Unloaded values plus that change must be the loaded values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.regrouping import Regrouping
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS, from_classical, in_frame, to_classical
from dynident.robot.physicality import violations

Agreement = Literal["agrees", "doubtful", "differs", "not determined"]
AGREES, DIFFERS = 2.0, 3.0  # deviations up to which values agree, above which they differ


@dataclass(frozen=True)
class Load:
    """A rigid body fastened to the tool.

    Attributes:
        mass: [kg].
        center: (3,) centre of mass in the tool frame [m].
        inertia: (6,) XX XY XZ YY YZ ZZ about the centre of mass, axes of the tool frame [kg·m²].
    """

    mass: float
    center: Array
    inertia: Array

    def __init__(
        self, mass: float, center: Any = (0.0, 0.0, 0.0), inertia: Any = (0.0,) * 6, *, strict: bool = True
    ) -> None:
        """A load; `strict` refuses inertia that belongs to no body."""
        for name, given, shape in (("mass", mass, ()), ("center", center, (3,)), ("inertia", inertia, (6,))):
            value = np.asarray(given, dtype=np.float64)
            if value.shape != shape or not np.isfinite(value).all():
                raise InputError(f"{name} of the load must be finite, with shape {shape}; got {given!r}")
            object.__setattr__(self, name, frozen(value) if shape else float(value))
        if self.mass <= 0.0:
            raise InputError(f"mass of the load is {self.mass:g} kg; expected more than zero")
        broken = violations(from_classical(self.mass, np.zeros(3), self._matrix), "load") if strict else []
        if broken:
            raise InputError(
                f"inertia of the load belongs to no body: {broken[0].condition} ({broken[0].value:.4g} kg·m²); "
                "expected XX XY XZ YY YZ ZZ about the centre of mass (Load.from_standard takes those about the tool)"
            )

    @staticmethod
    def from_standard(values: Mapping[str, float]) -> Load:
        """A load from its standard parameters (XX, .. MX, .. M) about the origin of the tool frame, as in papers.

        Rounding of printed numbers may leave inertia about the centre of mass that belongs to no body; that is allowed.
        """
        for name in values:
            if name not in LINK_SYMBOLS:
                raise UnknownNameError("standard parameter of a load", name, LINK_SYMBOLS)
        mass, center, inertia = to_classical([values.get(symbol, 0.0) for symbol in LINK_SYMBOLS])
        return Load(float(mass), center, inertia[(0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)], strict=False)

    @property
    def _matrix(self) -> Array:
        """(3, 3) inertia about the centre of mass."""
        return np.asarray(self.inertia[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]])

    @property
    def standard(self) -> Array:
        """(10,) standard parameters about the origin of the tool frame."""
        return from_classical(self.mass, self.center, self._matrix)

    def at(self, robot: Robot) -> dict[str, float]:
        """What it adds to the standard parameters of the robot's tool link, by name."""
        link, tool = tool_link(robot)
        chi = in_frame(self.standard, tool.rotation, tool.translation)
        return {f"{symbol}{link}": float(x) for symbol, x in zip(LINK_SYMBOLS, chi, strict=True)}


def tool_link(robot: Robot) -> tuple[int, Any]:
    """Number of the link that carries the tool, and the tool frame in it."""
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
        )
    index, frame = robot.tool
    return robot.joints[index].number, frame


def load_change(base: BaseParameters, load: Load) -> Array:
    """How a load changes the base parameters, K times its standard parameters, (n,)."""
    if not isinstance(base, BaseParameters):
        hint = "pass base_parameters(robot)" if isinstance(base, Robot) else "expected those of base_parameters(robot)"
        raise InputError(f"a {type(base).__name__} is no set of base parameters; {hint}")
    added = load.at(base.robot)
    return np.asarray(base.K @ [added.get(column.name, 0.0) for column in base.columns])


@dataclass(frozen=True)
class LoadRow:
    """One base parameter without and with the load.

    Attributes:
        name: Base parameter.
        unit: Its unit.
        unloaded: Identified without the load.
        unloaded_std: Its deviation.
        change: What the load adds.
        loaded: Identified with the load.
        loaded_std: Its deviation.
    """

    name: str
    unit: str
    unloaded: float
    unloaded_std: float
    change: float
    loaded: float
    loaded_std: float

    @property
    def predicted(self) -> float:
        """What must be found with the load; as uncertain as the value without."""
        return self.unloaded + self.change

    @property
    def deviations(self) -> float:
        """Difference between found and predicted, in deviations of the difference; NaN where one is not determined."""
        spread = float(np.hypot(self.unloaded_std, self.loaded_std))
        if not np.isfinite(spread):
            return float("nan")
        gap = abs(self.loaded - self.predicted)
        return gap / spread if spread > 0.0 else (0.0 if gap == 0.0 else float("inf"))

    @property
    def agreement(self) -> Agreement:
        """What the difference means: agrees up to two deviations, differs above three."""
        size = self.deviations
        if np.isnan(size):
            return "not determined"
        if size <= AGREES:
            return "agrees"
        return "doubtful" if size <= DIFFERS else "differs"


@dataclass(frozen=True)
class LoadComparison:
    """Unloaded and loaded identifications side by side.

    Attributes:
        rows: One per base parameter.
    """

    rows: tuple[LoadRow, ...]

    def __getitem__(self, name: str) -> LoadRow:
        """The row of a base parameter."""
        for row in self.rows:
            if row.name == name:
                return row
        raise UnknownNameError("base parameter", name, [row.name for row in self.rows])

    @property
    def changed(self) -> tuple[LoadRow, ...]:
        """The parameters that the load changes."""
        return tuple(row for row in self.rows if row.change != 0.0)

    @property
    def agreeing(self) -> float:
        """Share of the parameters within two deviations; 95 % if the load is what it is said to be and deviations are
        right, NaN without any that is determined."""
        sizes = np.array([row.deviations for row in self.rows])
        sizes = sizes[np.isfinite(sizes)]
        return float(np.mean(sizes <= AGREES)) if len(sizes) else float("nan")

    def table(self, *, every: bool = False) -> str:
        """The comparison as text.

        Args:
            every: Also parameters that are zero without and with the load.
        """
        head = ("parameter", "unloaded", "std", "predicted", "loaded", "std", "deviations", "")
        shown = [row for row in self.rows if every or row.change or row.unloaded or row.loaded]
        lines = [head, *(_cells(row) for row in shown)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cells(row: LoadRow) -> tuple[str, ...]:
    values = (row.unloaded, row.unloaded_std, row.predicted, row.loaded, row.loaded_std, row.deviations)
    styles = (".4g", ".2g", ".4g", ".4g", ".2g", ".2g")
    return (row.name, *(f"{x:{style}}" for x, style in zip(values, styles, strict=True)), row.agreement)


def compare_load(
    unloaded: Fit | Estimator | ParameterEstimate,
    loaded: Fit | Estimator | ParameterEstimate,
    load: Load,
    *,
    base: BaseParameters | None = None,
) -> LoadComparison:
    """An identification without and one with a known load, parameter by parameter.

    A parameter that was eliminated as not essential is zero with the deviation it had when it left.

    Args:
        unloaded: Fit without the load.
        loaded: Fit with it.
        load: The load.
        base: The base parameters with their robot; needed only where neither fit knows its robot.
    """
    first, second = _parameters(unloaded), _parameters(loaded)
    _check_same_robot(base, first.coordinates, second.coordinates)
    owner = _owner(base, first.coordinates, second.coordinates)
    change = dict(zip(owner.names, load_change(owner, load), strict=True))
    units = dict(zip(owner.names, owner.units, strict=True))
    found = [
        dict(zip(one.names, zip(one.values.tolist(), one.std.tolist(), strict=True), strict=True))
        for one in (first, second)
    ]
    shared = [name for name in owner.names if name in found[0] and name in found[1]]
    if not shared:
        raise InputError("the two fits have no base parameter in common; identify both with the same robot and terms")
    return LoadComparison(
        tuple(
            LoadRow(name, units[name], *found[0][name], 0.0 + float(change[name]), *found[1][name]) for name in shared
        )
    )


def _parameters(fit: Fit | Estimator | ParameterEstimate) -> ParameterEstimate:
    """The estimate in a fit, whichever kind it is."""
    if isinstance(fit, ParameterEstimate):
        return fit
    if isinstance(fit, Fit):
        return ParameterEstimate.of(fit.base, fit.beta, fit.covariance, fit.determined)
    if isinstance(fit, Estimator):
        return fit.estimate_
    raise InputError(f"a {type(fit).__name__} has no base parameters; expected a Fit or a fitted estimator")


def _check_same_robot(*candidates: BaseParameters | Regrouping | None) -> None:
    """Refuse fits of robots that differ in more than locked joints."""
    robots = [one.robot for one in candidates if isinstance(one, BaseParameters)]
    prints = [replace(robot, locked={}).fingerprint for robot in robots]
    for robot, own in zip(robots, prints, strict=True):
        if own != prints[0]:
            raise InputError(
                f"the fits are of different robots, {robots[0].name} and {robot.name}; their geometry, gravity or "
                "elements differ: identify both with the same robot"
            )


def _owner(*candidates: BaseParameters | Regrouping | None) -> BaseParameters:
    for one in candidates:
        if isinstance(one, BaseParameters):
            return one
    raise InputError("neither fit knows its robot; give base=base_parameters(robot, terms)")
