"""A robot while a reader puts it together, and its completion into an immutable, checked `Robot`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import suggestion
from dynident.robot.expressions import ExpressionError, linear_form
from dynident.robot.loops import check_closure, loop_gap
from dynident.robot.model import BASE, Closure, Drive, Element, Geometry, Joint, Loop, Robot, TorqueSource, Transform
from dynident.robot.notices import list_names
from dynident.robot.parameters import ELEMENT_SYMBOLS, LINK_SYMBOLS
from dynident.robot.physicality import physical_violations, sentences
from dynident.robot.springs import Spring
from dynident.schema import LARGEST_NUMBER, LocatedReader, quote

DEFAULT_GRAVITY = (0.0, 0.0, -9.81)  # [m/s²]
MOST_JOINTS = 1000  # that move: the triangular factor of their columns alone takes a gigabyte


@dataclass
class ElementSpec:
    """An element as written: linear forms over q (joints) and qm (motors)."""

    label: str
    velocity: object
    torque: object | None = None
    carries: tuple[str, ...] = ELEMENT_SYMBOLS


@dataclass
class Draft:
    """What readers collect; `finish` checks it as a whole."""

    reader: LocatedReader
    name: str
    joints: list[Joint]
    gravity: tuple[float, ...] = DEFAULT_GRAVITY
    passive: dict[int, object] = field(default_factory=dict)
    coupling: object | None = None
    gear_ratios: dict[int, float] = field(default_factory=dict)
    zero: dict[int, float] = field(default_factory=dict)
    gains: dict[int, float] = field(default_factory=dict)
    gain_tolerances: dict[int, float] = field(default_factory=dict)
    pd_gains: dict[int, tuple[float, float]] = field(default_factory=dict)
    torque_source: TorqueSource | None = None
    elements: list[ElementSpec] = field(default_factory=list)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    default_values: str = ""
    base_values: dict[str, dict[str, float]] = field(default_factory=dict)
    fixed: dict[str, float] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    geometry: Geometry | None = None
    tool: tuple[int, Transform] | None = None
    tool_name: str = ""
    frames: dict[str, tuple[int, Transform]] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)  # that close by the relations of passive joints
    closing: list[Loop] = field(default_factory=list)
    solved: dict[int, float] = field(default_factory=dict)
    reference: dict[int, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    columns: dict[str, dict[str, str | float]] = field(default_factory=dict)
    locked: dict[str, float] = field(default_factory=dict)
    springs: dict[str, Spring] = field(default_factory=dict)  # by their labels
    free_bases: list[str] = field(default_factory=list)  # links on a free joint, which is held
    fixed_base: bool = False  # whether that is said outright

    def joint_index(self, name: str, where: str) -> int:
        """Index of the joint with this name, variable (q3) or number."""
        found = [i for i, j in enumerate(self.joints) if name in (j.name, j.variable, str(j.number))]
        if len(found) > 1:
            words = " and ".join(f"joint {self.joints[i].number} ('{self.joints[i].name}')" for i in found)
            raise self.reader.error(where, f"'{name}' means both {words}; use a name that only one of them has")
        if not found:
            valid = ", ".join(joint.name for joint in self.joints)
            raise self.reader.error(where, f"there is no joint '{name}' (joints: {valid})")
        return found[0]

    def by_joint(self, given: Mapping[str, Any], where: str, *, motor: bool = False) -> dict[int, Any]:
        """The entries of a mapping by joint index, each joint once and, if asked, none without a motor."""
        result: dict[int, Any] = {}
        for name, item in given.items():
            index = self.joint_index(name, where)
            if index in result:
                raise self.reader.error(where, f"'{name}' is joint '{self.joints[index].name}' again; give it once")
            if motor and (index in self.passive or index in self.solved):
                raise self.reader.error(where, f"'{name}' is passive and has no motor; remove the entry")
            result[index] = item
        return result

    def add_spring(self, spring: Spring, known: Mapping[str, float]) -> None:
        """A spring, in place of one with its label; what is known of it is neither estimated nor counted."""
        old = self.springs.get(spring.label)
        for name in () if old is None else old.names:
            self.fixed.pop(name, None)
            if name not in spring.names:
                for values in self.values.values():
                    values.pop(name, None)
        self.springs[spring.label] = spring
        self.fixed.update(known)

    def active(self) -> list[int]:
        """Indices of the joints with a motor, in the order of their numbers."""
        indices = (i for i in range(len(self.joints)) if i not in self.passive and i not in self.solved)
        return sorted(indices, key=lambda i: self.joints[i].number)

    def finish(self) -> Robot:
        """The complete robot.

        Raises:
            RobotFileError: When the parts do not fit together.
        """
        check_joint_count(self.reader, len(self.joints))
        active = tuple(self.active())
        if not active:
            raise self.reader.error("joints", "all are passive; at least one must have a motor")
        follow, follow_offset = self._follow((*active, *self.solved))
        follow, follow_solved = np.split(follow, [len(active)], axis=1)
        coupling, ratios = self._coupling(active)
        closes = self._check_loops(active, follow, follow_offset)
        elements = self._elements(active, coupling)
        robot = Robot(
            name=self.name,
            source=self.reader.source,
            joints=tuple(self.joints),
            gravity=np.array(self.gravity),
            active=active,
            follow=follow,
            follow_offset=follow_offset,
            coupling=coupling,
            zero=np.array([self.zero.get(j, 0.0) for j in active]),
            drive=self._drive(active, ratios),
            elements=elements,
            values=self.values or {"file": {}},
            default_values=self.default_values or next(iter(self.values), "file"),
            base_values=self.base_values,
            fixed=self.fixed,
            lengths=self.lengths,
            geometry=None if self.closing else self.geometry,  # other lengths would close otherwise, or not at all
            tool=self.tool or self._default_tool(),
            tool_name=self.tool_name,
            frames=self.frames,
            closes=closes,
            columns=self.columns,
            springs=tuple(self.springs.values()),
        )
        if self.closing:
            object.__setattr__(robot, "closure", self._closure(robot, follow_solved))
        self._check_names(robot)
        self._check_finite(robot)
        physical = sentences(physical_violations(robot))
        object.__setattr__(robot, "warnings", (*self._held_bases(), *self.warnings, *physical))
        return robot.lock(**self.locked) if self.locked else robot

    def _check_finite(self, robot: Robot) -> None:
        """Refuse numbers that are not finite, and places beyond any robot, whoever read them.

        Readers check what they parse; this holds for all of them, and for numbers that were worked out.
        """
        for joint in robot.joints:
            for where in ("before", "after"):
                frame: Transform = getattr(joint, where)
                if not np.isfinite(frame.rotation).all() or not np.abs(frame.translation).max() <= LARGEST_NUMBER:
                    problem = f"its frame is not finite, or beyond {LARGEST_NUMBER:g} m; check position and orientation"
                    raise self.reader.error(f"joint '{joint.name}'", problem)
        for where, number in _numbers_of(robot, ""):
            bound = ".limits." in where and not math.isnan(number)  # no limit may be infinitely far away
            if not (abs(number) <= LARGEST_NUMBER**2 or bound):  # a product of two that a file may have
                raise self.reader.error(where, f"is {number}; expected a finite number below {LARGEST_NUMBER**2:g}")

    def _held_bases(self) -> list[str]:
        """The line that says that a free base is held."""
        if self.fixed_base or not self.free_bases:
            return []
        several = len(self.free_bases) > 1
        subject = (
            f"{len(self.free_bases)} free bodies ({list_names(self.free_bases)}) are"
            if several
            else (f"the free base '{self.free_bases[0]}' is")
        )
        return [
            f"{subject} held where the file puts {'them' if several else 'it'}: dynident identifies robots on a fixed "
            "base; --fixed-base, or fixed_base: true in an overlay, confirms this"
        ]

    def _default_tool(self) -> tuple[int, Transform] | None:
        """The last link of a chain; with branches the file must say which."""
        carried = [joint.parent for joint in self.joints]
        tips = [i for i in range(len(self.joints)) if i not in carried]
        return (tips[0], Transform.identity()) if len(tips) == 1 else None

    def _closure(self, robot: Robot, follow: Array) -> Closure:
        """The loops that are closed numerically, assembled and moved a little to see that they can be."""
        reference = np.array([self.reference.get(j, 0.0) for j in robot.active])
        branch = np.array(list(self.solved.values()))
        closure = Closure(tuple(self.closing), tuple(self.solved), follow, reference, branch)
        return check_closure(self.reader, robot, closure)

    def _follow(self, active: tuple[int, ...]) -> tuple[Array, Array]:
        """q_tree = follow @ q + offset, with passive joints resolved through one another."""
        n = len(self.joints)
        follow, offset = np.zeros((n, len(active))), np.zeros(n)
        for column, joint in enumerate(active):
            follow[joint, column] = 1.0
        variables = {joint.variable: str(i) for i, joint in enumerate(self.joints)}
        waiting: dict[int, tuple[dict[str, float], float]] = {}
        for joint, relation in self.passive.items():
            where = f"passive joint '{self.joints[joint].name}'"
            if isinstance(relation, tuple):  # a mimic joint: ({joint index: multiplier}, offset)
                waiting[joint] = ({str(key): value for key, value in relation[0].items()}, relation[1])
                continue
            try:
                waiting[joint] = linear_form(relation, variables, self._constants(relation))
            except ExpressionError as error:
                raise self.reader.error(where, f"{error}; expected an affine function of joints") from None
        while waiting:
            ready = [j for j, (terms, _) in waiting.items() if not any(int(k) in waiting for k in terms)]
            if not ready:
                names = ", ".join(self.joints[j].name for j in waiting)
                raise self.reader.error("passive joints", f"{names} follow one another in a circle; use active joints")
            for joint in ready:
                terms, constant = waiting.pop(joint)
                offset[joint] = constant + sum(c * offset[int(k)] for k, c in terms.items())
                follow[joint] = sum((c * follow[int(k)] for k, c in terms.items()), np.zeros(len(active)))
                if not max(abs(offset[joint]), np.abs(follow[joint]).max()) <= LARGEST_NUMBER:
                    where = f"passive joint '{self.joints[joint].name}'"
                    raise self.reader.error(
                        where, f"moves more than {LARGEST_NUMBER:g} times as far as the joint it follows"
                    )
        return follow, offset

    def _coupling(self, active: tuple[int, ...]) -> tuple[Array, Array]:
        """The map q -> a and the gear ratios; rows are divided by their gear ratio, so that uncoupled motors read q."""
        n = len(active)
        matrix = np.eye(n)
        if isinstance(self.coupling, list):
            if len(self.coupling) != n:
                raise self.reader.error("coupling", f"must have {n} rows, one per motor; it has {len(self.coupling)}")
            matrix = np.array(
                [self.reader.numbers(row, f"coupling row {i + 1}", n) for i, row in enumerate(self.coupling)]
            )
        elif self.coupling is not None:
            motors = {f"qm{self.joints[j].number}": i for i, j in enumerate(active)}
            variables = {self.joints[j].variable: str(i) for i, j in enumerate(active)}
            given = self.reader.mapping(self.coupling, "coupling", motors)
            for motor, form in given.items():
                matrix[motors[motor]] = self._form(form, variables, n, f"coupling {motor}")
        shaft = np.array([self.gear_ratios.get(j, 1.0) for j in active])[:, None] * matrix
        own = np.diag(shaft).copy()
        for i in np.flatnonzero(own == 0.0):
            own[i] = shaft[i, np.argmax(np.abs(shaft[i]))]
        with np.errstate(all="ignore"):  # tiny entries may overflow here; the matrix is then refused
            regular = bool(own.all()) and np.linalg.cond(shaft / own[:, None]) <= 1e9
        if not regular:
            raise self.reader.error(
                "coupling", "the matrix has no inverse, but motors and joints must determine each other; check its rows"
            )
        return shaft / own[:, None], own

    def _constants(self, value: object) -> Mapping[str, float]:
        """The named lengths, for a relation that uses them; the geometry is then more than its lengths say."""
        words = set(re.findall(r"\w+", str(value)))
        if words & set(self.reader.names):
            self.geometry = None
        return self.reader.names

    def _form(self, value: object, variables: Mapping[str, str], n: int, where: str) -> Array:
        """Coefficients (n,) of a linear form without constant."""
        try:
            terms, constant = linear_form(value, variables, self._constants(value))
        except ExpressionError as error:
            raise self.reader.error(where, f"{error}; expected a sum of joints or motors such as q5 + q6") from None
        if constant:
            raise self.reader.error(where, f"{quote(value)} must not have a constant; use joint_offsets")
        row = np.zeros(n)
        for key, coefficient in terms.items():
            row[int(key)] = coefficient
        return row

    def _elements(self, active: tuple[int, ...], coupling: Array) -> tuple[Element, ...]:
        """Joint elements, motor elements where motors are coupled, and those the file declares."""
        n = len(active)
        to_joint = np.linalg.inv(coupling)  # joint velocities from actuated velocities
        to_joint[np.abs(to_joint) < 1e-14] = 0.0
        to_joint = np.pad(to_joint, ((0, 0), (0, len(self.solved))))  # the solved joints' own velocities follow
        rows: dict[str, Array] = {}
        specs: dict[str, ElementSpec] = {}
        for i, j in enumerate(active):
            number = self.joints[j].number
            rows[f"q{number}"], rows[f"qm{number}"] = to_joint[i], np.eye(n, n + len(self.solved))[i]
            alone = np.count_nonzero(coupling[i]) == 1 and coupling[i, i] != 0.0
            carried = ELEMENT_SYMBOLS if alone else ("Fv", "Fc", "Fo")
            specs[str(number)] = ElementSpec(str(number), f"q{number}", carries=carried)
        for j in active:
            number = self.joints[j].number
            if "Ia" not in specs[str(number)].carries:
                specs[f"m{number}"] = ElementSpec(f"m{number}", f"qm{number}", carries=("Ia", "Fv", "Fc"))
        for k, j in enumerate(self.solved):
            rows[self.joints[j].variable] = np.eye(n + len(self.solved))[n + k]
        for spec in self.elements:
            specs[spec.label] = spec
        prismatic = [self.joints[j].kind == "prismatic" for j in (*active, *self.solved)]
        basis = {name: str(k) for k, name in enumerate(rows)}
        stacked = np.array(list(rows.values()))
        built = []
        for spec in specs.values():
            where = f"element '{spec.label}'"
            velocity = self._form(spec.velocity, basis, len(rows), where) @ stacked
            torque = velocity if spec.torque is None else self._form(spec.torque, basis, len(rows), where) @ stacked
            for word, row in (("velocity", velocity), ("torque", torque)):
                if not row.any():
                    raise self.reader.error(where, f"its {word} is always zero; name a joint (q3) or motor (qm3)")
            if "Ia" in spec.carries and not np.array_equal(velocity, torque):
                raise self.reader.error(
                    where, "a rotor turns and pushes in one direction; Ia takes no torque of its own"
                )
            if not np.array_equal(velocity[n:], torque[n:]):
                problem = "a joint that a loop is solved for has friction along its own velocity only"
                raise self.reader.error(where, f"{problem}; take 'torque' away")
            # A rotor is always the motor's, so its inertia needs no letter to distinguish motor from joint.
            names = {s: s + (spec.label.removeprefix("m") if s == "Ia" else spec.label) for s in spec.carries}
            slides = all(prismatic[k] for k in np.flatnonzero(velocity))
            if names:
                built.append(Element(spec.label, velocity[:n], torque[:n], names, slides, velocity[n:]))
        return tuple(built)

    def _drive(self, active: tuple[int, ...], ratios: Array) -> Drive:
        gains = tolerances = None
        if self.gains:
            missing = [self.joints[j].name for j in active if j not in self.gains]
            if missing:
                raise self.reader.error("drive_gains", f"no gain for {', '.join(missing)}; give one for every motor")
            gains = np.array([self.gains[j] for j in active])
            tolerances = np.array([self.gain_tolerances.get(j, 0.0) for j in active])
        kp = kd = None
        if self.pd_gains:
            missing = [self.joints[j].name for j in active if j not in self.pd_gains]
            if missing:
                raise self.reader.error("pd_gains", f"no gains for {', '.join(missing)}; give kp and kd of every motor")
            kp, kd = np.array([self.pd_gains[j] for j in active]).T
        return Drive(ratios, gains, tolerances, self.torque_source, kp, kd)

    def _check_loops(self, active: tuple[int, ...], follow: Array, offset: Array) -> tuple[str, ...]:
        """Every loop must close at random positions of the active joints."""
        rng = np.random.default_rng(0)
        tree = rng.uniform(-1.0, 1.0, (20, len(active))) @ follow.T + offset
        size = max([1e-3, *(float(np.abs(joint.before.translation).max()) for joint in self.joints)])
        for loop in self.loops:
            gap = loop_gap(loop, self.joints, tree)
            if not gap <= 1e-6 * size:
                raise self.reader.error(
                    f"loop {loop.name}",
                    f"does not close: gap {gap:.3g} m or rad over 20 positions; check the passive relations and the "
                    "signs of the lengths (loops other than parallelograms are not affine: name the passive joints "
                    "under 'solve')",
                )
        return tuple(loop.name for loop in (*self.loops, *self.closing))

    def _check_names(self, robot: Robot) -> None:
        names = robot.parameter_names
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise self.reader.error(
                "elements", f"two share the parameter {', '.join(sorted(repeated))}; change a label"
            )
        known = set(names)
        sets: dict[str, Mapping[str, Any]] = {f"parameters '{key}'": value for key, value in self.values.items()}
        for where, values in {**sets, "fixed": self.fixed}.items():
            for name in values:
                if name not in known:
                    raise self.reader.error(where, unknown_parameter(name, robot))


def _numbers_of(part: Any, where: str) -> Iterator[tuple[str, float]]:
    """All numbers of a record, with the names on the way to each."""
    if isinstance(part, float | np.floating):
        yield where, float(part)
    elif isinstance(part, np.ndarray):
        if part.dtype.kind == "f" and part.size:
            yield where, float(part.flat[np.argmax(np.abs(part))])  # which is the place of a NaN, where there is one
    elif isinstance(part, Mapping):
        for name, value in part.items():
            yield from _numbers_of(value, f"{where}.{name}")
    elif isinstance(part, tuple | list):
        for value in part:
            name = getattr(value, "name", None) or getattr(value, "label", None)
            yield from _numbers_of(value, f"{where} '{name}'" if name else where)
    elif dataclasses.is_dataclass(part):
        for item in dataclasses.fields(part):
            yield from _numbers_of(getattr(part, item.name), f"{where}.{item.name}" if where else item.name)


def unknown_parameter(name: str, robot: Robot) -> str:
    """The message for a parameter name the robot does not have."""
    links = ", ".join(LINK_SYMBOLS)
    numbers = ", ".join(str(joint.number) for joint in robot.joints)
    others = [own for element in robot.elements for own in element.names.values()]
    others += [own for spring in robot.springs for own in spring.names]
    every = [f"{symbol}{joint.number}" for joint in robot.joints for symbol in LINK_SYMBOLS] + others
    near = suggestion(name, every).split(" (valid")[0]  # which would list all of them
    return f"unknown parameter '{name}'{near} (links {numbers} have {links}; elements have {', '.join(others)})"


def check_joint_count(reader: LocatedReader, n: int, free_bases: Sequence[str] = ()) -> None:
    """Refuse robots without moving joints, whose free bases do not count, and with more than memory can take.

    Raises:
        RobotFileError: Naming the file.
    """
    if not n and free_bases:
        names = list_names([f"'{name}'" for name in free_bases], 4)
        problem = (
            f"only the free joint of {names} moves, and a free base is held; at least one joint must turn or slide"
        )
        raise reader.error("joints", problem)
    if not n:
        raise reader.error("joints", "none of them moves; at least one must be revolute or prismatic")
    if n > MOST_JOINTS:
        raise reader.error("joints", f"{n} of them move, more than the {MOST_JOINTS} a robot may have")


__all__ = ["BASE", "DEFAULT_GRAVITY", "Draft", "ElementSpec", "check_joint_count", "unknown_parameter"]
