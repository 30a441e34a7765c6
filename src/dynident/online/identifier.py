"""`OnlineIdentifier`: parameters, or a payload, while the robot works."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, gather_arrays, restore_parts
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.information.information import Information
from dynident.online.engine import Engine
from dynident.online.filters import (
    CausalFilter,
    FilteredMotion,
    Regridder,
    causal_filter,
    instants_per_row,
    irregular,
)
from dynident.online.history import OnlineSolution, StretchRows, row_variance
from dynident.online.link_by_link import LinkEngine, arithmetic, check_link_by_link
from dynident.online.monitor import MotionVerdict, assess_motion, torque_states
from dynident.online.options import OnlineOptions
from dynident.online.outliers import OutlierGate, Part, velocity_limits
from dynident.online.payload import PayloadState, base_unknowns, payload_state, payload_unknowns, payload_verdict
from dynident.online.prior import Prior, known_robot
from dynident.online.projection import Projector, as_information
from dynident.online.rows import SeriesStructure
from dynident.online.state import OnlineState, Sample
from dynident.online.thresholds import THRESHOLDS
from dynident.options import from_mapping
from dynident.physical.result import PhysicalParameters
from dynident.robot.model import Robot


class OnlineIdentifier:
    """Estimates a robot's base parameters, or what its tool carries, sample by sample.

    Rows of all joints, weighted once and for all, go into one square-root factor; see `docs/reference/online.md`.

    Args:
        robot: The robot.
        **options: See `OnlineOptions`; or the record itself, as `options`.
    """

    def __init__(self, robot: Robot, *, options: OnlineOptions | None = None, **given: Any) -> None:
        chosen = options if options is not None and not given else from_mapping(OnlineOptions, given)
        prior, payload = chosen.prior, bool(chosen.payload)
        heard = (prior.band, prior.signals.delay) if isinstance(prior, Fit) else (None, 0.0)
        known = known_robot(robot, chosen.terms, prior, chosen.sigma, payload)
        self._start(robot, known, payload, chosen.structure, chosen, heard)

    def _start(
        self,
        robot: Robot,
        known: Prior,
        payload: bool,
        structure: SeriesStructure | None,
        options: OnlineOptions,
        heard: tuple[float | None, float],
    ) -> None:
        self.robot, self.known, self.options, self.heard = robot, known, options, heard  # band and delay of the prior
        self.structure: SeriesStructure = structure or SeriesStructure()
        if options.estimator == "link-by-link":
            check_link_by_link(known, options)
            operations = arithmetic(known.base)
            shown = ", ".join(f"{count} {how}" for how, count in operations.items())
            known = self.known = replace(known, notes=(f"operations for an instant in motion: {shown}",))
        self._unknowns = payload_unknowns(known, options.session) if payload else base_unknowns(known, options.lean)
        self._states = None if payload else torque_states(known.base)
        self._projector = Projector(known.base, options.project) if options.project and not payload else None
        self._filter: CausalFilter | None = None
        self._engine: Any = None  # an Engine, or a LinkEngine, which takes its place
        self._grid: Regridder | None = None
        self._gate: OutlierGate | None = None
        self._waiting: list[tuple[float, Array, Array, Array | None]] = []
        self.samples = 0
        self._shape = (len(robot.joint_names),)
        self._time = -np.inf
        if options.sample_time is not None:
            self._begin(options.sample_time, regrid=bool(options.regrid))

    def _begin(self, sample_time: float, box: int | None = None, regrid: bool = False) -> None:
        """The sample time is known: make the filters and all that counts in instants."""
        n_joints = len(self.robot.joint_names)
        self._filter = causal_filter(self.options, n_joints, sample_time, *self.heard)
        self._grid = Regridder(sample_time) if regrid else None
        self._gate = OutlierGate(velocity_limits(self.robot), sample_time)
        box = instants_per_row(self.options, self._filter) if box is None else box
        engine = LinkEngine if self.options.estimator == "link-by-link" else Engine
        self._engine = engine(self.known, self._unknowns, self.structure, self.options, self._filter, box)

    @property
    def payload(self) -> bool:
        """Whether the unknowns are those of a payload."""
        return self._unknowns.payload

    # --- samples --------------------------------------------------------------------------------------------------

    def update(self, sample: Sample) -> None:
        """Take a sample.

        Raises:
            InputError: When a number is missing or not finite. Motion that determines nothing is no error.
        """
        q, tau, dq = self._check_sample(sample)
        self.samples += 1
        self._time = time = float(sample.time)
        if self._filter is None:
            self._queue(time, q, tau, dq)
        else:
            self._push(self._filter, time, q, tau, dq)

    def _push(self, filters: CausalFilter, time: float, q: Array, tau: Array, dq: Array | None) -> None:
        assert self._gate is not None
        values = filters.signals(q, tau, dq)
        if self._gate.passes(time, values):
            self._pass_on(filters, time, values)
            return
        for restart, stamps, signals in self._gate.push(time, values):
            self._restart(restart)
            for at, own in zip(stamps.tolist(), signals, strict=True):
                self._pass_on(filters, at, own)

    def _pass_on(self, filters: CausalFilter, time: float, values: Array) -> None:
        """A sample that goes on from the one before."""
        if self._grid is None:
            self._filter_sample(filters, time, values)
        else:
            for at, own in self._grid.push(time, values):
                self._filter_sample(filters, at, own)

    def _restart(self, restart: bool) -> None:
        """Where positions have jumped, grid and filters start again."""
        for part in (self._grid, self._filter) if restart else ():
            if part is not None:
                part.restart()

    def _filter_sample(self, filters: CausalFilter, time: float, values: Array) -> None:
        found = filters.push_one(time, values)
        if found is None:
            return
        assert self._engine is not None
        if self._engine.take(time - filters.delay_seconds, *filters.parts(found)):
            self._offer(self._engine)

    def _queue(self, time: float, q: Array, tau: Array, dq: Array | None) -> None:
        """Hold the first samples until their stamps give the sample time."""
        self._waiting.append((time, q, tau, dq))
        if len(self._waiting) < THRESHOLDS.first_samples:
            return
        held, self._waiting = self._waiting, []
        stamps = np.array([one[0] for one in held])
        steps = np.diff(stamps)
        if not (steps > 0.0).any():
            return
        sample_time = float(np.median(steps[steps > 0.0]))
        regrid = irregular(stamps, sample_time) if self.options.regrid is None else self.options.regrid
        self._begin(sample_time, regrid=regrid)
        assert self._filter is not None
        for one in held:
            self._push(self._filter, *one)

    def _check_sample(self, sample: Sample) -> tuple[Array, Array, Array | None]:
        q, tau, dq = sample.q, sample.tau, sample.dq
        total = sample.time
        for given in (q, tau) if dq is None else (q, tau, dq):
            if type(given) is not np.ndarray or given.shape != self._shape:
                return self._check_closely(sample)
            total += sum(given.tolist())
        # A finite sum is the usual case and cheap; one that overflows deserves a second look.
        return (q, tau, dq) if math.isfinite(total) else self._check_closely(sample)

    def _check_closely(self, sample: Sample) -> tuple[Array, Array, Array | None]:
        if not np.isfinite(sample.time):
            raise InputError(f"time of the sample is {sample.time}; expected a stamp in seconds")
        q, tau = self._vector(sample, "q", sample.q), self._vector(sample, "tau", sample.tau)
        return q, tau, None if sample.dq is None else self._vector(sample, "dq", sample.dq)

    def _vector(self, sample: Sample, name: str, given: Array) -> Array:
        values = np.asarray(given, dtype=np.float64)
        if values.shape != self._shape:
            raise InputError(f"{name} of the sample has shape {values.shape}; expected {self._shape}")
        if not np.isfinite(values).all():
            joint = self.robot.joint_names[int(np.argmin(np.isfinite(values)))]
            raise InputError(f"{name} of {joint} is not finite at {sample.time:g} s; leave such samples out")
        return values

    def update_many(self, time: ArrayLike, q: ArrayLike, tau: ArrayLike, dq: ArrayLike | None = None) -> None:
        """Take many samples at once: time (n,), the others (n, n_joints); the result is that of `update`."""
        stamps = self._stamps(time)
        names, n, first = self.robot.joint_names, len(stamps), 0
        arrays = [as_samples(x, name, names, n) for x, name in ((q, "q"), (tau, "tau"))]
        velocities = None if dq is None else as_samples(dq, "dq", names, n)
        while self._filter is None and first < n:
            own = None if velocities is None else velocities[first]
            self._queue(float(stamps[first]), arrays[0][first], arrays[1][first], own)
            first += 1
        self.samples += n
        self._time = float(stamps[-1]) if n else self._time
        if self._filter is None:
            return
        rest = None if velocities is None else velocities[first:]
        values = self._filter.signals(arrays[0][first:], arrays[1][first:], rest)
        assert self._gate is not None
        for part in self._gate.push_many(stamps[first:], values):
            self._push_part(self._filter, part)

    def _push_part(self, filters: CausalFilter, part: Part) -> None:
        """Samples without a jump between them."""
        restart, stamps, values = part
        self._restart(restart)
        if self._grid is not None:
            stamps, values = self._grid.push_many(stamps, values)
        self._instants(filters.push_signals(stamps, values))

    def update_motion(self, time: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> None:
        """Take motion whose derivatives are known: no filter, no delay; all (n, n_joints), every instant has rows."""
        stamps, names = self._stamps(time), self.robot.joint_names
        named = ((q, "q"), (dq, "dq"), (ddq, "ddq"), (tau, "tau"))
        arrays = [as_samples(x, name, names, len(stamps)) for x, name in named]
        if self._filter is None:
            if len(stamps) < 2:
                raise InputError("give sample_time when the first block of motion is a single instant")
            self._begin(float(np.median(np.diff(stamps))), self.options.box or 1)
        self.samples += len(stamps)
        self._time = float(stamps[-1]) if len(stamps) else self._time
        assert self._engine is not None
        self._engine.without_filters()
        self._instants(FilteredMotion(stamps, *arrays))

    def _instants(self, motion: FilteredMotion) -> None:
        assert self._engine is not None
        self._engine.take_many(motion)
        self._offer(self._engine)

    def _stamps(self, time: ArrayLike) -> Array:
        stamps = np.atleast_1d(np.asarray(time, dtype=np.float64))
        if stamps.ndim != 1 or not np.isfinite(stamps).all():
            raise InputError("time must be finite stamps, (n_samples,)")
        return stamps

    # --- results --------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """(k,) the values by all rows so far, without standard deviations; a fraction of the work of `state`."""
        if self._engine is None:
            return self._unknowns.start.copy()
        found: Array | None = self._engine.latest()
        known: Array = self._engine.values.copy() if found is None else found
        return known

    def state(self) -> OnlineState:
        """What is known now."""
        before, engine = self._state_at_rest(), self._engine
        whole = None if engine is None else engine.history.whole()
        if engine is None or whole is None or not whole.instants:
            return before
        found = engine.solve(whole)
        payload, verdict = self._assess(engine, found, whole)
        return replace(
            before,
            values=found.values,
            std=found.std,
            determined=found.determined,
            verdict=verdict,
            torque_error=engine.monitor.errors * self.known.sigma,
            relative_error=engine.monitor.relative,
            payload=payload,
            changes=engine.changes_with(payload),
            rows=whole.rows,
            physical=self._latest_physical(),
            physical_time=None if self._projector is None else self._projector.time,
        )

    def _assess(
        self, engine: Engine, found: OnlineSolution, whole: StretchRows
    ) -> tuple[PayloadState | None, MotionVerdict]:
        if self._states is not None:
            return None, assess_motion(self.known.base, self._states, found, whole.rows, engine.moved)
        payload = payload_state(found, self.options.least_mass, self._unknowns.advice)
        return payload, payload_verdict(payload, found, whole.rows, engine.moved, self.robot.joint_names)

    def _state_at_rest(self) -> OnlineState:
        """The state before any motion."""
        values = self._unknowns.start.copy()
        std = np.full(len(values), np.inf)
        if not self.payload and self.known.anything:
            std = np.where(self.known.determined, np.sqrt(np.maximum(np.diag(self.known.covariance), 0.0)), np.inf)
        words = "no joint has moved so far; move the robot" if self.samples else "no sample so far"
        nan = np.full(len(self.robot.joint_names), np.nan)
        return OnlineState(
            time=self._time,
            delay=self._delay,
            names=self._unknowns.names,
            units=self._unknowns.units,
            joints=self.robot.joint_names,
            samples=self.samples,
            counters=self.counters,
            notes=self.known.notes,
            values=values,
            std=std,
            determined=np.zeros(len(values), dtype=bool),
            verdict=MotionVerdict(False, words),
            torque_error=nan,
            relative_error=nan,
            payload=None,
            changes=(),
            rows=0.0,
        )

    @property
    def _delay(self) -> float:
        if self._filter is None:
            return 0.0
        return self._filter.delay_seconds + (0.0 if self._grid is None else 2.0 * self._grid.step)

    @property
    def counters(self) -> Mapping[str, int]:
        """Samples that were late, repeated, filled in or dropped as glitches; jumps, and restarts of the filters."""
        own, gate = self._filter, self._gate
        if own is None or gate is None:
            return {}
        late, filled = (0, 0) if self._grid is None else (self._grid.late, self._grid.filled)
        counts = {"late": own.late + late + gate.late, "filled": own.filled + filled, "restarts": own.restarts}
        return counts | {"jumps": gate.jumps, "glitches": gate.glitches}

    def information(self) -> Information:
        """All rows so far over the base parameters, joints stacked, with the rows that hold them near the prior.

        Raises:
            InputError: With a payload, whose rows are over other unknowns, or before the first samples.
        """
        if self.payload or self._engine is None or isinstance(self._engine, LinkEngine):
            raise InputError(
                "rows over base parameters exist without payload, of the joint estimator, and after the first samples"
            )
        return self._information(self._engine)

    def _information(self, engine: Engine) -> Information:
        whole = engine.history.whole()
        scale = np.sqrt(row_variance(whole, engine.maker.k) * engine.monitor.inflation)
        return as_information(self.known.base, whole, engine.lean * scale)

    def physical(self, **options: Any) -> PhysicalParameters:
        """Physical parameters nearest to the estimate as it is now; see `physical_fit` for the options."""
        from dynident.physical.fitting import physical_fit

        return physical_fit(self.information(), self.known.base, **options)

    def _offer(self, engine: Engine) -> None:
        if self._projector is not None and self._projector.due(engine.time):
            self._projector.begin(engine.time, self._information(engine))

    def _latest_physical(self) -> PhysicalParameters | None:
        if self._projector is None:
            return None
        self._projector.collect()
        return self._projector.latest

    def close(self) -> None:
        """End the thread of projections, if there is one."""
        if self._projector is not None:
            self._projector.collect(wait=True)
            self._projector.close()

    # --- files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a checkpoint (.npz, plain numbers); see `load`."""
        from dynident.online.checkpoint import save

        save(self, path)

    def checkpoint(self) -> bytes:
        """What `save` writes, for those who write it themselves."""
        from dynident.online.checkpoint import checkpoint_bytes

        return checkpoint_bytes(self)

    def memory_arrays(self) -> dict[str, Any]:
        """All that changes with samples as plain arrays: filters, rows, and samples that wait for a sample time."""
        width = len(self.robot.joint_names)
        rows = [[time, *q, *tau, *(np.full(width, np.nan) if dq is None else dq)] for time, q, tau, dq in self._waiting]
        arrays: dict[str, Any] = {
            "waiting": np.array(rows, dtype=np.float64).reshape(len(rows), 1 + 3 * width),
            "counts": np.array([self.samples, self._time]),
        }
        if self._filter is not None and self._engine is not None:
            sample_time, box = self._filter.sample_time, self._engine.maker.box
            arrays["start"] = np.array([sample_time, box, self._grid is not None])
        return arrays | gather_arrays(self._parts)

    @property
    def _parts(self) -> dict[str, Any]:
        """What has a memory, once the sample time is known."""
        return {"grid": self._grid, "gate": self._gate, "filter": self._filter, "engine": self._engine}

    def restore_memory(self, arrays: dict[str, Any]) -> None:
        """Continue from what `memory_arrays` gave."""
        self.samples, self._time = int(arrays["counts"][0]), float(arrays["counts"][1])
        n = len(self.robot.joint_names)
        self._waiting = [
            (float(row[0]), row[1 : 1 + n], row[1 + n : 1 + 2 * n], None if np.isnan(row[-1]) else row[1 + 2 * n :])
            for row in arrays["waiting"]
        ]
        if "start" not in arrays:
            return
        self._begin(float(arrays["start"][0]), int(arrays["start"][1]), bool(arrays["start"][2]))
        restore_parts(self._parts, arrays)

    @classmethod
    def load(cls, path: str | Path, robot: Robot, structure: SeriesStructure | None = None) -> OnlineIdentifier:
        """Continue from a checkpoint, with the filters as full as they were.

        Raises:
            InputError: When the file is no checkpoint, or belongs to another robot.
        """
        from dynident.online.checkpoint import load

        return load(cls, path, robot, structure)
