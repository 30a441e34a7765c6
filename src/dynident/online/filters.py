"""Causal filters: motion and torque at one common instant in the past, from the samples known so far.

Positions pass a symmetric low-pass that is delayed until it is causal, and are differentiated after it: by the
differentiator of Khosla & Kanade 1987 (section 5.1), delayed two samples each time,

.. math:: f'(x - 2T) = \frac{-2 f(x-4T) - f(x-3T) + f(x-T) + 2 f(x)}{10\\,T}

or by the exact derivatives of the low-pass. Torque passes the same low-pass and the same delay. The equations are then
evaluated on filtered motion, so friction sees the velocity that was, and both sides of them speak of the same instant.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.errors import InputError
from dynident.online.options import OnlineOptions
from dynident.online.thresholds import THRESHOLDS
from dynident.signals.kernels import FIVE_POINT, FirKernel, low_pass_kernel

_IDENTITY = FirKernel("as it is", np.ones(1), 0, 0)


@brief
@dataclass(frozen=True, eq=False)
class FilteredMotion:
    """Motion and torque that belong together.

    Attributes:
        time: (n,) instants they hold at [s].
        q, dq, ddq, tau: (n, n_joints).
    """

    time: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array


class CausalFilter:
    """The filters with their memory.

    Args:
        n_joints: Joints of a sample.
        sample_time: Time between samples [s].
        cutoff: Half-amplitude frequency of the low-pass [Hz]; None for the five-point differentiator alone.
        differentiator: "low-pass" (exact derivatives of it) or "five-point".
        velocity_source: "position" derives velocities from positions; "measured" takes the samples' own.
        torque_delay: Time by which torque is stamped late, to be undone by its low-pass [s].
    """

    def __init__(
        self,
        n_joints: int,
        sample_time: float,
        cutoff: float | None = 20.0,
        *,
        differentiator: str = "low-pass",
        velocity_source: str = "position",
        torque_delay: float = 0.0,
    ) -> None:
        if not 0.0 < sample_time < np.inf:
            raise InputError(f"sample_time is {sample_time} s; expected a positive time between samples")
        highest = THRESHOLDS.highest_cutoff_share / sample_time
        if cutoff is not None and not 0.0 < cutoff <= highest:
            raise InputError(f"cutoff is {cutoff:g} Hz; expected at most {highest:.4g} Hz at this rate, or None")
        self.n, self.sample_time, self.cutoff = n_joints, sample_time, cutoff
        self._measured, self._torque_delay = velocity_source == "measured", torque_delay
        kernels = _kernels(sample_time, cutoff, differentiator, torque_delay)
        before = max(kernel.center for kernel in kernels)
        after = max(len(kernel.taps) - 1 - kernel.center for kernel in kernels)
        self.length, self.delay = before + after + 1, after  # samples
        self.taps = np.zeros((4, self.length))
        for line, kernel in zip(self.taps, kernels, strict=True):
            start = before - kernel.center
            line[start : start + len(kernel.taps)] = kernel.taps / sample_time**kernel.order
        # Signals side by side: positions, torques and, where they are measured, velocities.
        self.width = n_joints * (3 if self._measured else 2)
        self._held = np.zeros((2 * self.length, self.width))  # written twice, so that the last ones are contiguous
        self._count, self._last = 0, -np.inf
        self.restarts = self.filled = self.late = 0

    @property
    def delay_seconds(self) -> float:
        """By how much the result lags behind the sample [s]."""
        return self.delay * self.sample_time

    def step_response(self, after: Array) -> Array:
        """Share of a step of the torque that the filtered torque shows, so long after the step [s]."""
        step, before = self.sample_time, self.length - 1 - self.delay
        # The newest of the samples sees a step first; between samples it comes up evenly.
        first = self._torque_delay - (self.length - 1 - before) * step
        edges = first + (np.arange(self.length + 1) - 0.5) * step
        return np.asarray(np.interp(after, edges, np.concatenate([[0.0], np.cumsum(self.taps[3][::-1])])))

    @property
    def reach(self) -> float:
        """Time from a reversal beyond which the filters have settled [s]: the step of friction is there or not."""
        rest = np.cumsum(self.taps[0][::-1])[::-1]  # of a step, that has yet to come so many samples behind it
        center = self.length - 1 - self.delay
        late = np.flatnonzero(np.abs(rest[center + 1 :]) > THRESHOLDS.settled_step)
        return float((late[-1] + 1) if len(late) else 0) * self.sample_time

    def push(self, time: float, q: Array, tau: Array, dq: Array | None = None) -> FilteredMotion | None:
        """One sample; the motion it completes, or None while there is none."""
        found = self.push_one(time, self.signals(q, tau, dq))
        if found is None:
            return None
        return FilteredMotion(np.array([time - self.delay_seconds]), *self.parts(found[None]))

    def signals(self, q: Array, tau: Array, dq: Array | None) -> Array:
        """(.., width) positions, torques and perhaps velocities side by side.

        Raises:
            InputError: When velocities are to be used and there are none.
        """
        if not self._measured:
            return np.concatenate([q, tau], axis=-1)
        if dq is None:
            raise InputError(
                "velocity_source is 'measured', but the sample has no dq; send dq, or derive velocities from positions"
            )
        return np.concatenate([q, tau, dq], axis=-1)

    def push_one(self, time: float, values: Array) -> Array | None:
        """One sample (width,); the filtered signals (4, width), or None while the filters fill."""
        steps = self._steps(time)
        if steps == 0:
            return None
        if steps > 1:  # a few samples are missing: the straight line between their neighbors stands in
            before = self._held[(self._count - 1) % self.length].copy()
            for i in range(1, steps):
                self._write(before + (values - before) * (i / steps))
            self.filled += steps - 1
        self._write(values)
        self._last = time
        if self._count < self.length:
            return None
        start = self._count % self.length
        return np.asarray(self.taps @ self._held[start : start + self.length])

    def _steps(self, time: float) -> int:
        """Sampling times since the last sample; 0 for one that repeats or comes late, 1 after a gap."""
        if self._count == 0:
            return 1
        steps = math.floor((time - self._last) / self.sample_time + 0.5)
        if steps <= 0 and time > self._last - THRESHOLDS.clock_set_back_s:  # a clock that jumps back has been set again
            self.late += 1
            return 0
        if steps <= 0 or steps > THRESHOLDS.most_filled + 1:
            self.restart()
            return 1
        return steps

    def restart(self) -> None:
        """Start again, as after a gap: what comes next is another motion."""
        if self._count:
            self._count = 0
            self.restarts += 1

    def _write(self, values: Array) -> None:
        place = self._count % self.length
        self._held[place] = self._held[place + self.length] = values
        self._count += 1

    def push_many(self, time: Array, q: Array, tau: Array, dq: Array | None = None) -> FilteredMotion:
        """Many samples; all the motion that they complete."""
        return self.push_signals(time, self.signals(q, tau, dq))

    def push_signals(self, time: Array, values: Array) -> FilteredMotion:
        """Many samples (n, width) of signals side by side; the same as sample by sample."""
        results: list[tuple[Array, Array]] = []
        start = 0
        while start < len(time):
            stop = self._regular(time, start)
            if stop - start > self.length and self._count >= self.length:
                results.append(self._stretch(time[start:stop], values[start:stop]))
                start = stop
                continue
            one = self.push_one(float(time[start]), values[start])
            if one is not None:
                results.append((time[start : start + 1] - self.delay_seconds, one[None]))
            start += 1
        if not results:
            return FilteredMotion(np.zeros(0), *self.parts(np.zeros((0, 4, self.width))))
        instants, found = zip(*results, strict=True)
        return FilteredMotion(np.concatenate(instants), *self.parts(np.concatenate(found)))

    def _regular(self, time: Array, start: int) -> int:
        """End of the samples from `start` that follow each other, and the last one before, without a fault."""
        steps = np.floor(np.diff(time[start:], prepend=self._last) / self.sample_time + 0.5)
        faults = np.flatnonzero(steps != 1.0)
        return start + (int(faults[0]) if len(faults) else len(steps))

    def _stretch(self, time: Array, values: Array) -> tuple[Array, Array]:
        """Samples without a fault while the filters are full."""
        first = self._count % self.length
        series = np.concatenate([self._held[first + 1 : first + self.length], values])
        windows = np.lib.stride_tricks.sliding_window_view(series, self.length, axis=0)  # (n, width, length)
        found = np.stack([windows @ taps for taps in self.taps], axis=1)
        self._held[: self.length] = self._held[self.length :] = series[-self.length :]
        self._count, self._last = self.length, float(time[-1])
        return time - self.delay_seconds, found

    def parts(self, found: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq, tau of filtered signals (.., 4, width)."""
        n = self.n
        smooth, first, second, tau = found[..., 0, :], found[..., 1, :], found[..., 2, :], found[..., 3, n : 2 * n]
        if self._measured:
            return smooth[..., :n], smooth[..., 2 * n :], first[..., 2 * n :], tau
        return smooth[..., :n], first[..., :n], second[..., :n], tau

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        start = self._count % self.length
        counts = [min(self._count, self.length), self.restarts, self.filled, self.late]
        held = self._held[start : start + self.length] if self._count >= self.length else self._held[: self._count]
        return {"held": held.copy(), "counts": np.array(counts, dtype=np.int64), "last": np.array(self._last)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._count = 0
        for row in arrays["held"]:
            self._write(row)
        _, self.restarts, self.filled, self.late = (int(x) for x in arrays["counts"])
        self._last = float(arrays["last"])


def causal_filter(
    options: OnlineOptions, n_joints: int, sample_time: float, prior_band: float | None, prior_delay: float
) -> CausalFilter:
    """The filters that options, and the prior where they leave it open, ask for at a rate."""
    band = options.band if options.band is not None else prior_band or THRESHOLDS.band_hz
    return CausalFilter(
        n_joints,
        sample_time,
        min(THRESHOLDS.cutoff_factor * band, THRESHOLDS.highest_cutoff_share / max(sample_time, 1e-300))
        if band > 0.0
        else None,
        differentiator=options.differentiator,
        velocity_source=options.velocity_source,
        torque_delay=prior_delay if options.torque_delay is None else options.torque_delay,
    )


def instants_per_row(options: OnlineOptions, filters: CausalFilter) -> int:
    """Instants that make one row."""
    if options.box is not None:
        return options.box
    if filters.cutoff is None:
        return 1
    band = filters.cutoff / THRESHOLDS.cutoff_factor
    return max(1, int(1.0 / (filters.sample_time * THRESHOLDS.rows_per_band * band) + 1e-9))


def _kernels(sample_time: float, cutoff: float | None, differentiator: str, torque_delay: float) -> list[FirKernel]:
    """The low-pass, the first and second derivative of what it lets through, and the low-pass of torque."""
    rate = 1.0 / sample_time
    if cutoff is None:
        smooth = torque = _IDENTITY
    else:
        smooth = low_pass_kernel(cutoff, rate)
        torque = low_pass_kernel(cutoff, rate, shift=torque_delay)
    if cutoff is not None and differentiator == "low-pass":
        return [smooth, *(low_pass_kernel(cutoff, rate, order) for order in (1, 2)), torque]
    return [smooth, smooth.then(FIVE_POINT), smooth.then(FIVE_POINT).then(FIVE_POINT), torque]


# ----------------------------------------------------------------------------------------------------------------------
# Samples with irregular stamps onto a uniform grid, as they come.
#
# A sample that is stamped a millisecond off moves a joint by a milliradian at 1 rad/s, which two derivatives make into
# a
# violent acceleration. The cubic through the two samples on either side puts the motion where the grid is.


def irregular(stamps: Array, sample_time: float) -> bool:
    """Whether stamps scatter around a grid; missing samples are no scatter."""
    steps = np.diff(stamps) / sample_time
    steps = steps[steps > 0.5]
    return bool(len(steps) and np.std(steps - np.round(steps)) > THRESHOLDS.jitter_share)


class Regridder:
    """Interpolates signals at multiples of the sample time.

    Args:
        sample_time: Step of the grid [s].
    """

    def __init__(self, sample_time: float) -> None:
        self.step, self.longest = sample_time, THRESHOLDS.longest_gap_s(sample_time)
        self._times: deque[float] = deque(maxlen=4)
        self._values: deque[Array] = deque(maxlen=4)
        self._next = math.nan
        self.late = self.filled = 0

    def push(self, time: float, values: Array) -> list[tuple[float, Array]]:
        """One sample (width,); the grid's samples that it completes, about two sample times late."""
        if self._times:
            gap = time - self._times[-1]
            if -THRESHOLDS.clock_set_back_s < gap <= 0.0:
                self.late += 1
                return []
            if not 0.0 < gap <= self.longest:
                self.restart()
            elif gap > 1.5 * self.step:
                self.filled += round(gap / self.step) - 1
        self._times.append(time)
        self._values.append(values)
        if len(self._times) < 4:
            self._next = self._times[1] if len(self._times) > 1 else math.nan
            return []
        return self._between()

    def restart(self) -> None:
        """Start again, as after a gap."""
        self._times.clear()
        self._values.clear()

    def _between(self) -> list[tuple[float, Array]]:
        """Grid points up to the last but one sample."""
        t, found = list(self._times), []
        held = np.array(self._values)
        while self._next <= t[2] + 1e-9 * self.step:
            x = self._next
            weights = [math.prod((x - t[j]) / (t[i] - t[j]) for j in range(4) if j != i) for i in range(4)]
            found.append((x, np.asarray(np.array(weights) @ held)))
            self._next = x + self.step
        return found

    def push_many(self, time: Array, values: Array) -> tuple[Array, Array]:
        """Many samples (n, width); the grid's samples that they complete."""
        found = [one for i in range(len(time)) for one in self.push(float(time[i]), values[i])]
        if not found:
            return np.zeros(0), np.zeros((0, values.shape[1]))
        stamps, parts = zip(*found, strict=True)
        return np.array(stamps), np.array(parts)

    def as_arrays(self) -> dict[str, Any]:
        """The memory as plain arrays, for checkpoints."""
        return {
            "times": np.array(self._times),
            "values": np.array(self._values),
            "counts": np.array([self._next, self.late, self.filled]),
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._times.extend(float(x) for x in arrays["times"])
        self._values.extend(np.array(row) for row in arrays["values"])
        self._next = float(arrays["counts"][0])
        self.late, self.filled = int(arrays["counts"][1]), int(arrays["counts"][2])
