"""Paper mode: alternating starts of 15 degrees, a factor per parameter, periods counted in a number of updates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.experiments.bench import Bench
from dynident.experiments.oscillation.model import SwingModel
from dynident.experiments.oscillation.modes import counted_periods
from dynident.experiments.oscillation.swings import NaturalControl, upright_pose
from dynident.information.parameter_estimate import text_table
from dynident.motion.simple import Sinusoid
from dynident.papers.jamisola import printed
from dynident.papers.jamisola.model import is_paper_chain
from dynident.papers.jamisola.tracking import CHANGE, choose_motion, choose_start, motion_text, tracking_errors

RESOLUTION = 0.5  # periods: counting sees each half of one
_START = np.radians(printed.START)  # [rad]
_REACH = np.radians(80.0)  # an arm that leaves this falls


@dataclass(frozen=True)
class PaperRow:
    """One run.

    Attributes:
        factors: Factor of each group.
        periods: Number of periods of each joint; empty when it falls.
        printed: What the paper has, a number of periods or "falls"; empty where it has nothing.
        falls: Whether the arm fell.
        error: Tracking error with these factors [rad or m]; None where it was not looked at.
    """

    factors: tuple[float, ...]
    periods: tuple[float, ...]
    printed: str
    falls: bool
    error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        error = None if self.error is None or not np.isfinite(self.error) else self.error
        row = {"factors": list(self.factors), "periods": list(self.periods), "falls": self.falls}
        return {**row, "printed": self.printed, "tracking_error": error}

    def cells(self, joints: int) -> list[str]:
        """Periods of so many joints as text."""
        return ["falls"] * joints if self.falls else [f"{x:.2f}" for x in self.periods]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper made again, and the candidates that its resolution leaves.

    Attributes:
        number: Of the paper's table; empty for another robot.
        stage: "gravity" or "inertia".
        names: Of the groups.
        joints: Names of the joints.
        rows: The same factor for all groups, as in the paper.
        candidates: Every combination of factors, each with its tracking error if it is within the resolution.
        updates: Number of updates in a run.
        sample_time: [s] of an update.
        kp: Proportional gain [1/s²]; 0 in the gravity stage.
        resolution: Periods that counting tells apart.
        band: Half-width of the factors that counting cannot distinguish from the right one; None where rows do not.
        start: (n_moving,) displacement at the start of the candidates [rad or m]; empty without candidates.
        check: Motion in which the candidates are tried, in words; empty where none was.
        discrimination: How well that motion tells each group, and last the combination that it tells least: change of
            each group, of length one; root mean square change of the arm's motion for a change of a tenth in all [rad
            or m]; and the change at which the arm moves as much as the best candidate's own error: smaller ones do not
            show.
    """

    number: str
    stage: str
    names: tuple[str, ...]
    joints: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    candidates: tuple[PaperRow, ...]
    updates: int
    sample_time: float
    kp: float
    resolution: float
    band: float | None
    start: tuple[float, ...] = ()
    check: str = ""
    discrimination: tuple[tuple[Array, float, float], ...] = ()

    @property
    def title(self) -> str:
        """What it is."""
        which = f"Table {self.number}" if self.number else "Counted periods"
        return f"{which}: {self.stage} stage, {self.updates} updates of {1e3 * self.sample_time:.4g} ms"

    @property
    def facts(self) -> list[str]:
        """Resolution and tolerance in words."""
        lines = [f"Counting resolves {self.resolution:g} periods."]
        if self.band is not None:
            lines.append(
                f"Factors within ±{self.band:.2g} of the right one cannot be distinguished from it (tolerance band)."
            )
        return lines

    @property
    def warnings(self) -> list[str]:
        """Where the machine contradicts the paper."""
        right = [row for row in self.rows if row.printed not in ("", "falls") and not row.falls]
        still = [row for row in right if self.stage == "gravity" and row.factors[0] <= 1.0]
        unlike = [row for row in self.rows if row.printed not in ("", "falls") and row.falls]
        found = []
        if still or unlike:
            found.append(
                f"Table {self.number}: the paper prints periods at factors of 1 and less, where by its own eq. (13) "
                "nothing swings; such rows are not reproducible"
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": self.number,
            "stage": self.stage,
            "groups": list(self.names),
            "updates": self.updates,
            "sample_time": self.sample_time,
            "kp": self.kp,
            "resolution": self.resolution,
            "tolerance_band": self.band,
            "rows": [row.as_dict() for row in self.rows],
            "candidates": [row.as_dict() for row in self.candidates],
            "candidate_start": list(self.start),
            "check": self.check,
            "discrimination": [
                {
                    "combination": dict(zip(self.names, shares.tolist(), strict=True)),
                    "response": response,
                    "resolution": resolution,
                }
                for shares, response, resolution in self.discrimination
            ],
        }

    def period_rows(self) -> list[tuple[str, ...]]:
        """A head, then the rows: factor, periods of each joint, what is printed."""
        rows = [(f"{row.factors[0]:.3f}", *row.cells(len(self.joints)), row.printed or "-") for row in self.rows]
        return [("factor", *self.joints, "printed"), *rows]

    def candidate_rows(self) -> list[tuple[str, ...]]:
        """A head, then the candidates: factor of each group, periods of each joint, tracking error."""
        rows: list[tuple[str, ...]] = [(*self.names, *self.joints, "tracking error [deg]")]
        for row in self.candidates:
            error = "" if row.error is None else f"{np.degrees(row.error):.4f}"
            rows.append((*(f"{f:.3f}" for f in row.factors), *row.cells(len(self.joints)), error))
        return rows

    def discrimination_rows(self) -> list[tuple[str, ...]]:
        """A head, then the combinations in words: change of the motion for 10 % [deg], resolution [%]."""
        rows: list[tuple[str, ...]] = [("combination", "10 % moves it by [deg]", "seen from [%]")]
        for shares, response, resolution in self.discrimination:
            words = " ".join(
                f"{share:+.2f} {name}" if abs(share) < 0.995 else name
                for share, name in zip(shares, self.names, strict=True)
                if abs(share) > 0.005
            )
            rows.append((words, f"{np.degrees(response):.4f}", f"{100.0 * resolution:.2g}"))
        return rows

    def table(self) -> str:
        """The rows as text, printed numbers beside."""
        head, *rows = self.period_rows()
        return text_table(head, rows, head)

    def candidate_table(self) -> str:
        """The candidates as text."""
        head, *rows = self.candidate_rows()
        return text_table(head, rows, head)

    def discrimination_table(self) -> str:
        """How well each combination is determined, as text."""
        head, *rows = self.discrimination_rows()
        return text_table(head, rows, head[1:])

    @property
    def candidate_facts(self) -> list[str]:
        """Start and check of the candidates in words."""
        lines = [f"Starts of {', '.join(f'{np.degrees(x):+.0f}' for x in self.start)} deg."] if self.start else []
        return [*lines, *([f"Motion of the check: {self.check}."] if self.check else [])]


def paper_table(
    bench: Bench,
    model: SwingModel,
    stage: str,
    *,
    updates: int | None = None,
    factors: Sequence[float] | None = None,
    combinations: Sequence[float] = (),
    kp: float = printed.KP,
    start: ArrayLike = _START,
    resolution: float = RESOLUTION,
) -> PaperTable:
    """Count periods as the paper does.

    Args:
        bench: The machine; its sample time is the time of an update.
        model: From `paper_model`.
        stage: "gravity" or "inertia".
        updates: In a run; default 5000 or 20 000.
        factors: Rows; default those of the paper's table.
        combinations: Factors that every group takes in turn, in all combinations; none to leave that out.
        kp: Gain of the inertia stage [1/s²].
        start: Displacement of the first joint, the next ones alternate; or (n_moving,) of every joint [rad or m].
        resolution: Periods that counting tells apart.
    """
    if stage not in ("gravity", "inertia"):
        raise InputError(f"stage is '{stage}'; expected gravity or inertia")
    usual = "", (1.02, 1.01, 1.0) if stage == "gravity" else (1.0, 1.1), ()
    chain = is_paper_chain(model.robot)
    table, its_factors, periods = printed.TABLES.get((len(model.robot.moving), stage), usual) if chain else usual
    wanted = tuple(factors or its_factors)
    count = printed.UPDATES[stage] if updates is None else updates
    gain = 0.0 if stage == "gravity" else kp
    if count < 2 or not all(np.isfinite(f) and f > 0.0 for f in (*wanted, *combinations)):
        raise InputError("paper mode: expected positive factors and at least 2 updates")
    shift = np.asarray(start, dtype=np.float64)
    if shift.ndim == 0:
        shift = shift * (-1.0) ** np.arange(len(model.robot.moving))
    for name, value in (("kp", kp), ("start", float(np.abs(shift).max())), ("resolution", resolution)):
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"paper mode: {name} is {value:.4g}; expected a positive number")
    paper = _Paper(bench, model, stage, count, gain, shift)
    printed_rows: dict[float, str] = {}
    if periods and count == printed.UPDATES[stage]:
        printed_rows = {f: "falls" if x is None else f"{x:g}" for f, x in zip(its_factors, periods, strict=True)}
    groups = model.gravity if stage == "gravity" else model.inertia
    rows = []
    for place, factor in enumerate(wanted):
        bench.progress(f"{stage} table", place, len(wanted))
        rows.append(paper.row((factor,) * len(groups), printed_rows.get(factor, "")))
    found = paper.candidates(combinations, resolution)
    check, discrimination = paper.discrimination(found)
    band = _band(rows, stage, resolution)
    return PaperTable(
        number=table,
        stage=stage,
        names=tuple(one.name for one in groups),
        joints=model.robot.joint_names,
        rows=tuple(rows),
        candidates=tuple(found),
        updates=count,
        sample_time=bench.plant.sample_time,
        kp=gain,
        resolution=resolution,
        band=band,
        start=tuple(paper.other.tolist()) if found else (),
        check=check,
        discrimination=discrimination,
    )


class _Paper:
    def __init__(self, bench: Bench, model: SwingModel, stage: str, updates: int, kp: float, shift: Array) -> None:
        self.bench, self.model, self.stage, self.updates, self.kp = bench, model, stage, updates, kp
        n = len(model.robot.moving)
        self.pose = (
            np.zeros(n) if is_paper_chain(model.robot) or stage == "inertia" else upright_pose(model, bench.bounds)
        )
        self.groups = model.gravity if stage == "gravity" else model.inertia
        self.shift, self.size, self.runs = shift, float(np.abs(shift).max()), 0

    @cached_property
    def other(self) -> Array:
        """Start of the candidates: alternating ones leave every other link of a chain upright, its weight unseen."""
        return choose_start(self.model, self.groups, self.pose, self.size)

    @cached_property
    def motion(self) -> Sinusoid:
        """Motion of the check."""
        return choose_motion(self.model, self.groups, self.pose, self.bench.bounds)

    def parameters(self, factors: tuple[float, ...]) -> tuple[Array, Array]:
        """Weight and motion of given factors."""
        values = np.array(factors)
        if self.stage == "gravity":
            return self.model.weight(values), self.model.chi
        return self.model.chi, self.model.motion(values)

    def row(self, factors: tuple[float, ...], printed: str = "", shift: Array | None = None) -> PaperRow:
        """Send factors and count, from the paper's start unless another is given."""
        control = NaturalControl(self.model, *self.parameters(factors), self.kp, self.pose)
        bounds = self.bench.bounds.within(self.pose, _REACH)
        self.runs += 1
        label = f"{self.stage}-{self.runs}-{'-'.join(f'{f:.3f}' for f in dict.fromkeys(factors))}"
        length = self.updates * self.bench.plant.sample_time
        start = self.pose + (self.shift if shift is None else shift)
        run = self.bench.run(control, length, start, label=label, bounds=bounds)
        if not run.whole:
            return PaperRow(factors, (), printed, True)
        counted = [counted_periods(run.time, run.q[:, j], float(self.pose[j])) for j in range(len(self.pose))]
        return PaperRow(factors, tuple(counted), printed, False)

    def candidates(self, factors: Sequence[float], resolution: float) -> list[PaperRow]:
        """All combinations; those that counting cannot distinguish from the aim are tried in a motion."""
        combinations = list(itertools.product(factors, repeat=len(self.groups))) if factors else []
        rows = []
        for place, one in enumerate(combinations):
            self.bench.progress(f"{self.stage} combinations", place, len(combinations))
            rows.append(self.row(one, shift=self.other))
        swinging = [row for row in rows if not row.falls]
        if not swinging:
            return rows
        length = self.updates * self.bench.plant.sample_time
        if self.stage == "gravity":  # the slowest swing is nearest to the right weights
            aim = np.array(min(swinging, key=lambda row: float(np.mean(row.periods))).periods)
        else:
            aim = np.full(len(self.pose), np.sqrt(self.kp) * length / (2.0 * np.pi))
        checked = []
        for row in rows:
            near = not row.falls and float(np.abs(np.array(row.periods) - aim).max()) <= resolution
            if near:
                errors = self._errors(row.factors)
                row = replace(row, error=float("inf") if errors is None else float(np.sqrt(np.mean(errors**2))))
            checked.append(row)
        return checked

    def _errors(self, factors: tuple[float, ...]) -> Array | None:
        name = f"{self.stage}-track-{'-'.join(f'{f:.3f}' for f in factors)}"
        return tracking_errors(self.bench, self.model, *self.parameters(factors), self.motion, name)

    def discrimination(self, rows: Sequence[PaperRow]) -> tuple[str, tuple[tuple[Array, float, float], ...]]:
        """How well the check tells each group about the best candidate, and the combination that it tells least.

        Each group is made larger by a tenth in turn; the smallest eigenvalue of the responses' products belongs to the
        combination whose responses cancel most.
        """
        tried = [row for row in rows if row.error is not None and np.isfinite(row.error)]
        if not tried:
            return "", ()
        best = min(tried, key=lambda row: row.error or 0.0)
        before = self._errors(best.factors)
        responses = []
        for k in range(len(self.groups)):
            factors = tuple(f * (1.0 + CHANGE * (i == k)) for i, f in enumerate(best.factors))
            after = self._errors(factors)
            if before is None or after is None:
                return motion_text(self.motion), ()
            responses.append((after - before).ravel())
        R = np.stack(responses, axis=1) / np.sqrt(len(responses[0]))
        worst = np.linalg.eigh(R.T @ R)[1][:, 0]
        worst = worst * np.sign(worst[np.argmax(np.abs(worst))])
        shares = [*np.eye(len(self.groups)), *([worst] if len(self.groups) > 1 else [])]
        floor = best.error or 0.0
        found = []
        for share in shares:
            response = float(np.linalg.norm(R @ share))
            found.append((share, response, CHANGE * floor / max(response, 1e-300)))
        return motion_text(self.motion), tuple(found)


def _band(rows: Sequence[PaperRow], stage: str, resolution: float) -> float | None:
    """Half-width of factors that counting leaves open about the right one.

    N² is a straight line in the factor: through zero at the right weight, and through zero at no inertia at all.
    """
    swinging = [row for row in rows if not row.falls and min(row.periods, default=0.0) > 0.0]
    if len(swinging) < 2:
        return None
    factor = np.array([row.factors[0] for row in swinging])
    square = np.array([float(np.mean(row.periods)) ** 2 for row in swinging])
    slope = float(np.polyfit(factor, square, 1)[0])
    if slope <= 0.0:
        return None
    if stage == "gravity":
        return resolution**2 / slope
    aim = float(np.sqrt(max(0.0, float(np.mean(square)) + slope * (1.0 - float(np.mean(factor))))))
    return 2.0 * aim * resolution / slope
