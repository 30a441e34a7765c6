"""Sums over rows from which follow what each group of friction is worth, and how much friction a log shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.dynamics.terms import along_terms
from dynident.estimate.friction_parts import FRICTION, LOAD, TorqueParts, friction_curve, term_name
from dynident.estimate.prediction import TorqueModel
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import MotionBlock, Observations
from dynident.signals.rows import LEAST_SEGMENTS, MOST_SEGMENTS, SEGMENT_SECONDS, row_step

_MIN_EIGENVALUE_SHARE = 1e-10  # share of the largest eigenvalue of products


class Shares:
    """Torque and residual of each joint, and what the groups have to do with them."""

    def __init__(self, n_groups: int, n_joints: int) -> None:
        self.products = np.zeros((n_joints, n_groups + 1, n_groups + 1))  # of the groups' torques and the residual
        self.torque, self.count = np.zeros(n_joints), np.zeros(n_joints)

    def add(self, groups: Array, residual: Array, measured: Array, usable: Mask) -> None:
        """More rows: (n_groups, n, n_joints), and (n, n_joints) of the others."""
        for joint, used in enumerate(usable.T):
            columns = np.concatenate([groups[:, used, joint], residual[None, used, joint]])
            self.products[joint] += columns @ columns.T
            self.torque[joint] += measured[used, joint] @ measured[used, joint]
            self.count[joint] += np.count_nonzero(used)

    def solve(self) -> tuple[Array, Array, Array, Array]:
        """RMS torque and residual (n_joints,), RMS torque of each group and residual without it (n_groups, n_joints).

        Where a group is left out, the others of the joint are scaled again: columns that overlap stand in for it.
        """
        n_joints, size = self.products.shape[:2]
        count = np.where(self.count > 0.0, self.count, np.nan)
        share = np.sqrt(np.diagonal(self.products, axis1=1, axis2=2)[:, :-1].T / count)
        without = np.zeros((size - 1, n_joints))
        for joint, own in enumerate(self.products):
            for group in range(size - 1):
                without[group, joint] = max(_square_without(own, group), own[-1, -1])
        return np.sqrt(self.torque / count), np.sqrt(self.products[:, -1, -1] / count), share, np.sqrt(without / count)


def _square_without(products: Array, group: int) -> float:
    """Square of the residual when one group may not explain any of the torque of all groups."""
    whole = np.ones(len(products))
    others = [i for i in range(len(products) - 1) if i != group]
    size = np.sqrt(np.maximum(np.diag(products)[others], 1e-300))
    A, b = products[np.ix_(others, others)] / np.outer(size, size), products[others] @ whole / size
    scaled = np.linalg.pinv(A, rcond=_MIN_EIGENVALUE_SHARE, hermitian=True) @ b
    return max(float(whole @ products @ whole - b @ scaled), 0.0)


class Levels:
    """Factor and constant that suit the friction of one log best: measured = level * model + shift.

    Args:
        n_segments: TorqueParts of the log; how they differ tells what the result is worth.
        n_joints: Joints.
    """

    def __init__(self, n_segments: int, n_joints: int) -> None:
        self.A, self.b = np.zeros((n_segments, n_joints, 2, 2)), np.zeros((n_segments, n_joints, 2))

    def add(self, segment: Array, model: Array, measured: Array, usable: Mask) -> None:
        """More rows: their segments (n,), friction of the model and of the data (n, n_joints)."""
        for number in np.unique(segment):
            for joint, moves in enumerate(usable.T):
                used = moves & (segment == number)
                columns = np.stack([model[used, joint], np.ones(np.count_nonzero(used))])
                self.A[number, joint] += columns @ columns.T
                self.b[number, joint] += columns @ measured[used, joint]

    def solve(self) -> tuple[Array, Array, Array, Array]:
        """Level, its standard error, shift, its standard error; (n_joints,) each, NaN where nothing moves.

        Errors are those of clusters (Liang & Zeger 1986): rows of one segment may depend on each other as they like.
        """
        result = np.full((4, self.A.shape[1]), np.nan)
        for joint in range(self.A.shape[1]):
            A, b = self.A[:, joint], self.b[:, joint]
            informative = A[:, 1, 1] > 0.0
            whole = A.sum(0)
            if np.count_nonzero(informative) < 3 or np.linalg.cond(whole) > 1e10:
                continue
            found = np.linalg.solve(whole, b.sum(0))
            scores = (b - A @ found)[informative]
            n = len(scores)
            bread = np.linalg.inv(whole)
            covariance = bread @ (scores.T @ scores) @ bread * n / (n - 2)
            std = np.sqrt(np.diag(covariance))
            result[:, joint] = found[0], std[0], found[1], std[1]
        level, level_std, shift, shift_std = result
        return level, level_std, shift, shift_std


# ----------------------------------------------------------------------------------------------------------------------
# Hysteresis of friction: what it does while a joint turns back, in the model and in the data.

LOOP_REACH_RAD = 0.05  # [rad] to either side in time of a reversal that a loop shows
_MAX_REACH_SHARE = 0.2  # share of a joint's range that it shows at most
_MIN_TRAVEL_FACTOR = 1.3  # times the reach that a joint must go both ways: near the next reversal, filters mix the two
_LOOPS_PER_DIRECTION = 2  # loops of a joint, for each direction of its reversals
_LOOP_POINTS = 61  # of a loop
_MAX_REVERSALS_PER_BLOCK = 40  # reversals of a block that are tried


class Loops:
    """Friction around reversals, gathered log by log.

    Args:
        units: (n_joints,) what counts as a radian at each joint.
        ranges: (n_joints,) range of the positions [rad or m].
    """

    def __init__(self, units: Array, ranges: Array) -> None:
        self.reach = np.minimum(LOOP_REACH_RAD * units, _MAX_REACH_SHARE * ranges)
        self._found: dict[tuple[int, int], list[Array]] = {}
        self._log: dict[tuple[int, int], int] = {}

    def next_log(self) -> None:
        """Every log may give as many loops as are shown."""
        self._log = {}

    def look(self, q: Array, measured: Array, model: Array, inner: Mask) -> None:
        """Reversals in a block of samples, (n_samples, n_joints) each; those across its borders are passed over."""
        for joint, position in enumerate(q.T):
            if self.reach[joint] <= 0.0:
                continue
            steps = np.diff(position)
            turns = 1 + np.flatnonzero(steps[:-1] * steps[1:] < 0.0)
            for turn in turns[:: max(1, len(turns) // _MAX_REVERSALS_PER_BLOCK)]:
                key = joint, int(np.sign(steps[turn]))
                if self._log.get(key, 0) >= _LOOPS_PER_DIRECTION:
                    continue
                signals = np.stack([position, measured[:, joint], model[:, joint]])
                loop = self._loop(signals, turn, self.reach[joint], inner)
                if loop is not None:
                    self._log[key] = self._log.get(key, 0) + 1
                    self._found.setdefault(key, []).append(loop)

    def _loop(self, signals: Array, turn: int, reach: float, inner: Mask) -> Array | None:
        away = np.abs(signals[0] - signals[0, turn])
        first, last = _side(away[turn::-1], reach), _side(away[turn:], reach)
        if first is None or last is None or not inner[turn - first : turn + last + 1].all():
            return None
        own = slice(turn - first, turn + last + 1)
        places = np.linspace(own.start, own.stop - 1, _LOOP_POINTS)
        return np.array(
            [np.interp(places, np.arange(own.start, own.stop), signal[own]) - shift
             for signal, shift in zip(signals, (signals[0, turn], 0.0, 0.0), strict=True)]
        )  # fmt: skip

    def select(self) -> tuple[Array, Array]:
        """Loops (n_loops, 3, n_points) and the number of each one's joint; of many logs, evenly chosen ones."""
        loops, joints = [np.zeros((0, 3, _LOOP_POINTS))], []
        for (joint, _), own in sorted(self._found.items(), key=lambda item: item[0]):
            chosen = [own[i] for i in np.unique(np.linspace(0, len(own) - 1, _LOOPS_PER_DIRECTION).astype(int))]
            loops.append(np.array(chosen))
            joints += [float(joint)] * len(chosen)
        return np.concatenate(loops), np.array(joints)


def _side(away: Array, reach: float) -> int | None:
    """Samples from a reversal, on one side, until the joint is as far as the reach; None if it turns again soon."""
    far = np.flatnonzero(away > _MIN_TRAVEL_FACTOR * reach)
    if not len(far) or (np.diff(away[: far[0] + 1]) < 0.0).any():
        return None
    return int(np.argmax(away > reach))


# ----------------------------------------------------------------------------------------------------------------------
# What there is to see of friction: thinned scatter, curves, loops at reversals, shares, levels log by log.
#
# Measured friction is the measured torque without all that the model says is no friction: links, rotors, offsets, tilt.
# It is gathered in one pass over the training logs, in bounded memory, and kept with the fit.

MAX_SECONDS_PER_LOG = 300.0  # of each log that is looked at
MAX_STATES = 400  # of the motion, over all logs
_MAX_BLOCK_STATES = 50  # of a block of samples
MAX_SCATTER_POINTS = 400  # of a joint's scatter, over all logs
_CURVE_POINTS = 41  # of a curve, on either side of rest


@record
class FrictionView:
    """Friction of each joint, in the model and in the data. NaN stands where there is nothing.

    Attributes:
        groups: Groups of columns beside the links, such as Fv or stop(0.003).
        logs: Labels of the training logs.
        velocity: (n_joints, m) of the curves [rad/s or m/s].
        curve: (n_joints, m) friction of the model at median load [N·m or N].
        offset: (n_joints,) constant torque of the model (Fo) [N·m or N].
        points: (5, n_joints, p) of the data: velocity, measured friction, friction of the model, the part of it that
            goes with the load, the load.
        loops: (n_loops, 3, k): displacement since a reversal [rad or m], measured friction, friction of the model.
        loop_joints: (n_loops,) number of each loop's joint.
        torque: (n_joints,) RMS torque in motion [N·m or N].
        error: (n_joints,) RMS residual.
        share: (n_groups, n_joints) RMS torque of each group.
        without: (n_groups, n_joints) RMS residual without a group, the other groups of the joint scaled again.
        level: (n_logs, n_joints) factor on the model's friction that suits a log best.
        level_std: (n_logs, n_joints) its standard error, from parts of the log.
        shift: (n_logs, n_joints) constant torque beside it [N·m or N].
        shift_std: (n_logs, n_joints) its standard error.
        states: (4, n_joints, p) of the training motion: position, velocity, acceleration, torque of the model at the
            joints; of fits that were stored without, p is zero.
    """

    groups: tuple[str, ...]
    logs: tuple[str, ...]
    velocity: Array
    curve: Array
    offset: Array
    points: Array
    loops: Array
    loop_joints: Array
    torque: Array
    error: Array
    share: Array
    without: Array
    level: Array
    level_std: Array
    shift: Array
    shift_std: Array
    states: Array = field(default_factory=lambda: np.zeros((4, 0, 0)))

    def __post_init__(self) -> None:
        n, groups, logs = len(self.curve), len(self.groups), len(self.logs)
        shapes = {"offset": (n,), "torque": (n,), "error": (n,), "velocity": self.curve.shape}
        shapes |= dict.fromkeys(("share", "without"), (groups, n))
        shapes |= dict.fromkeys(("level", "level_std", "shift", "shift_std"), (logs, n))
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} of the friction view has shape {getattr(self, name).shape}, not {shape}")
        if self.points.shape[:2] != (5, n) or self.loops.shape[:2] != (len(self.loop_joints), 3):
            raise ValueError("points or loops of the friction view have a wrong shape")

    def stored(self) -> dict[str, Array]:
        """Arrays from which `from_stored` makes the view again."""
        return {f"friction_{one.name}": np.asarray(getattr(self, one.name)) for one in fields(self)}

    @staticmethod
    def from_stored(arrays: Mapping[str, Array], n_joints: int) -> FrictionView | None:
        """The view of `stored`; None for fits that were stored without."""
        if "friction_curve" not in arrays:
            return None
        if "friction_speed" in arrays:  # the name of velocities in fits before 0.5
            arrays = {**arrays, "friction_velocity": arrays["friction_speed"]}
        names = [one.name for one in fields(FrictionView) if one.name != "states" or "friction_states" in arrays]
        found = {name: arrays[f"friction_{name}"] for name in names}
        groups, logs = (tuple(str(x) for x in found.pop(name)) for name in ("groups", "logs"))
        view = FrictionView(groups, logs, **{name: np.asarray(x, dtype=np.float64) for name, x in found.items()})
        if len(view.curve) != n_joints:
            raise ValueError(f"the friction view is of {len(view.curve)} joints instead of {n_joints}")
        return view


def view_friction(model: TorqueModel, train: Sequence[Observations]) -> FrictionView | None:
    """Look at the friction of a model beside that of its training logs; None for a model without friction."""
    gathered = _Gathered(model, train)
    if not gathered.friction.any():
        return None
    for one in train:
        gathered.look(one)
    return gathered.view()


class _Gathered:
    """What one pass over the logs leaves."""

    def __init__(self, model: TorqueModel, train: Sequence[Observations]) -> None:
        n = len(model.robot.joint_names)
        self.model, self.parts, self.logs = model, TorqueParts(model), tuple(one.log.label for one in train)
        self.groups = self.parts.groups
        names = [term_name(group) for group in self.groups]
        self.friction = np.array([name in FRICTION for name in names])
        self.loaded = np.array([name in LOAD for name in names])
        self.shares = Shares(len(self.groups), n)
        self.levels: list[Levels] = []
        self.points: list[list[Array]] = [[] for _ in range(n)]
        self.loads: list[Array] = []
        self.states: list[Array] = []  # of finished logs
        self._states: list[Array] = []  # of this one
        lowest = np.min([one.survey.lowest for one in train], axis=0)
        highest = np.max([one.survey.highest for one in train], axis=0)
        self.loops = Loops(model.robot.radians, highest - lowest)
        self.pose = 0.5 * (lowest + highest)  # until the first sample of a log: every loop closes there
        self._began = False

    def look(self, one: Observations) -> None:
        """Go through a log."""
        seconds = min(one.survey.duration, MAX_SECONDS_PER_LOG)
        count = int(np.clip(round(seconds / SEGMENT_SECONDS), LEAST_SEGMENTS, MOST_SEGMENTS))
        levels = Levels(count, len(self.pose))
        quota = max(8, MAX_SCATTER_POINTS // len(self.logs))
        found: list[list[Array]] = [[] for _ in self.points]
        loads = [np.zeros((0, len(self.pose)))]
        self.loops.next_log()
        self._states = []
        for time, torque, links, groups, dq, load, usable in self._rows(one):
            if time[0] > one.survey.start + seconds:
                break
            other, own = groups[~self.friction].sum(0), groups[self.friction].sum(0)
            measured = torque - links - other
            segment = np.clip(((time - one.survey.start) / seconds * count).astype(int), 0, count - 1)
            self.shares.add(groups, measured - own, torque, usable)
            levels.add(segment, own, measured, usable)
            part = groups[self.loaded].sum(0) if self.loaded.any() else np.zeros_like(own)
            at_joints = self.parts.at_joints(load) if load.size else np.full_like(own, np.nan)
            stacked = np.stack([dq, measured, own, part, at_joints])
            for joint, used in enumerate(usable.T):
                found[joint].append(stacked[:, used, joint].T)
            if load.size:
                loads.append(np.abs(load[usable.any(1)]))
        self.levels.append(levels)
        self.loads.append(_thin_points(np.concatenate(loads), quota))
        if self._states:
            self.states.append(_thin_points(np.concatenate(self._states), max(8, MAX_STATES // len(self.logs))))
        for joint, parts in enumerate(found):
            self.points[joint].append(_thin_points(np.concatenate([np.zeros((0, 5)), *parts]), quota))

    def _rows(self, one: Observations) -> Iterator[tuple[Array, Array, Array, Array, Array, Array, Mask]]:
        """Rows in the band at the rate of the equations; loops are looked for on the way, at that of the motion.

        Yields:
            Time (n,); torque, torque of the links (n, n_joints); that of the groups (n_groups, n, n_joints); velocity;
            load at the actuated coordinates; and which rows are usable (n, n_joints).
        """
        n, g = len(self.pose), len(self.groups)
        parts, streams = TorqueParts(self.model), None
        for motion in one.for_terms(along_terms(self.model.terms)).motion():
            step = row_step(one)
            if not self._began:
                self.pose, self._began = motion.q[0].copy(), True
            groups = parts.of_groups(motion)
            links, load = parts.of_links(motion, groups), parts.load(motion)
            tau = parts.at_joints(motion.tau[0])
            states = np.stack([motion.q, motion.dq, motion.ddq, links + groups.sum(0)], axis=1)
            self._states.append(_thin_points(states[motion.inner], _MAX_BLOCK_STATES))
            moving = np.abs(motion.dq) > one.options.rest_velocity
            if streams is None:
                kernel = low_pass_kernel(one.band, motion.rate)
                streams = (
                    FilterStream([((4 + g) * n + load.shape[1], [kernel])], motion.rate, step),
                    FilterStream([(3 * n, [kernel])], motion.rate, 1),
                )
            stacked = np.hstack([tau, links, motion.dq, moving, *groups, load])
            (results,), inner, first = streams[0].push(stacked.T, motion.last, motion.inner)
            self._look_for_loops(motion, tau - links, groups, streams[1])
            if motion.last:
                streams = None
            if len(inner):
                time = motion.start + (first + np.arange(len(inner))) * step / motion.rate
                measured, links, dq, moving, *own = np.split(results[0].T, np.arange(1, 5 + g) * n, axis=1)
                usable = (moving > 0.5) & inner[:, None]
                yield time, measured, links, np.array(own[:g]).reshape(g, *dq.shape), dq, own[g], usable

    def _look_for_loops(self, motion: MotionBlock, rest: Array, groups: Array, stream: FilterStream) -> None:
        measured, own = rest - groups[~self.friction].sum(0), groups[self.friction].sum(0)
        signals = np.hstack([motion.q, measured, own])
        (results,), inner, _ = stream.push(signals.T, motion.last, motion.inner)
        if len(inner):
            q, measured, own = np.split(results[0].T, 3, axis=1)
            self.loops.look(q, measured, own, inner)

    def view(self) -> FrictionView:
        """Everything put together."""
        points = [_thin_points(np.concatenate(own), MAX_SCATTER_POINTS) for own in self.points]
        width = max((len(own) for own in points), default=0)
        padded = np.full((5, len(points), width), np.nan)
        for joint, own in enumerate(points):
            padded[:, joint, : len(own)] = own.T
        loads = np.concatenate(self.loads)
        load = np.median(loads, axis=0) if len(loads) else np.zeros(len(points))
        steps = np.linspace(0.0, 1.0, _CURVE_POINTS + 1)[1:] ** 2  # dense where the curve bends
        velocity = np.array([_curve_velocities(own[:, 0], steps) for own in points])
        curve = [friction_curve(self.model, j, own, self.pose, load) for j, own in enumerate(velocity)]
        loops, loop_joints = self.loops.select()
        levels = [own.solve() for own in self.levels]
        level, level_std, shift, shift_std = (np.array([own[i] for own in levels]) for i in range(4))
        torque, error, share, without = self.shares.solve()
        return FrictionView(
            self.groups, self.logs, velocity, np.array(curve), self._offset(), padded, loops, loop_joints, torque,
            error, share, without, level, level_std, shift, shift_std,
            np.concatenate(self.states).transpose(1, 2, 0) if self.states else np.zeros((4, len(points), 0)),
        )  # fmt: skip

    def _offset(self) -> Array:
        """Torque of Fo at the joints."""
        robot, chi = self.model.robot, iter(self.model.chi)
        rows = np.zeros(len(self.pose))
        for term in self.model.terms:
            values = [next(chi) for _ in term.columns(robot)]
            if term.name == "Fo":
                elements = [element for element in robot.elements if "Fo" in element.names]
                for element, value in zip(elements, values, strict=True):
                    rows += element.torque[list(robot.moving)] * value
        return np.asarray(self.parts.at_joints(rows[None])[0])


def _curve_velocities(seen: Array, steps: Array) -> Array:
    """Velocities of a curve, on either side up to those in the data; a missing direction is like the other."""
    back, forth = float(-seen.min(initial=0.0)), float(seen.max(initial=0.0))
    return np.concatenate([-steps[::-1] * (back or forth), steps * (forth or back)])


def _thin_points(points: Array, most: int) -> Array:
    """So many of the rows, evenly."""
    n = len(points)
    return points if n <= most else points[np.linspace(0, n - 1, most).astype(int)]
