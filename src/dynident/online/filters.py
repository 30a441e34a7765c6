"""Causal filters: motion and torque at one common instant in the past, from the samples known so far.

Positions pass a symmetric low-pass that is delayed until it is causal, and are differentiated after it: by the
differentiator of Khosla & Kanade 1987 (section 5.1), delayed two samples each time,

.. math:: f'(x - 2T) = \frac{-2 f(x-4T) - f(x-3T) + f(x-T) + 2 f(x)}{10\\,T}

or by the exact derivatives of the low-pass. Torque passes the same low-pass and the same delay. The equations are then
evaluated on filtered motion, so friction sees the speed that was, and both sides of them speak of the same instant.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError, UnknownNameError
from dynident.signals.kernels import FIVE_POINT, FirKernel, low_pass_kernel

Differentiator = Literal["low-pass", "five-point"]
Speed = Literal["position", "measured"]
MOST_FILLED = 4  # samples that may be missing in a row; more, and the filters start anew
_IDENTITY = FirKernel("as it is", np.ones(1), 0, 0)


@dataclass(frozen=True)
class CausalOptions:
    """How samples become motion.

    Attributes:
        sample_time: Time between samples [s].
        cutoff: Half-amplitude frequency of the low-pass [Hz]; None for the five-point differentiator alone.
        differentiator: "low-pass" (exact derivatives of it) or "five-point".
        speed: "position" derives speeds from positions; "measured" takes the samples' own.
        torque_delay: Time by which torque is stamped late, to be undone by its low-pass [s].
    """

    sample_time: float
    cutoff: float | None = 20.0
    differentiator: Differentiator = "low-pass"
    speed: Speed = "position"
    torque_delay: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.sample_time < np.inf:
            raise InputError(f"sample_time is {self.sample_time} s; expected a positive time between samples")
        if self.cutoff is not None and not 0.0 < self.cutoff <= 0.45 / self.sample_time:
            most = 0.45 / self.sample_time
            raise InputError(f"cutoff is {self.cutoff:g} Hz; expected at most {most:.4g} Hz at this rate, or None")
        for what, choice, valid in (
            ("differentiator", self.differentiator, get_args(Differentiator)),
            ("source of speed", self.speed, get_args(Speed)),
        ):
            if choice not in valid:
                raise UnknownNameError(what, choice, valid)

    def kernels(self) -> list[FirKernel]:
        """The low-pass, the first and second derivative of what it lets through, and the low-pass of torque."""
        rate = 1.0 / self.sample_time
        if self.cutoff is None:
            smooth = torque = _IDENTITY
        else:
            smooth = low_pass_kernel(self.cutoff, rate)
            torque = low_pass_kernel(self.cutoff, rate, shift=self.torque_delay)
        if self.cutoff is not None and self.differentiator == "low-pass":
            return [smooth, *(low_pass_kernel(self.cutoff, rate, order) for order in (1, 2)), torque]
        return [smooth, smooth.then(FIVE_POINT), smooth.then(FIVE_POINT).then(FIVE_POINT), torque]


@dataclass(frozen=True, eq=False)
class Filtered:
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
        options: What they are.
        n_joints: Joints of a sample.
    """

    def __init__(self, options: CausalOptions, n_joints: int) -> None:
        self.options, self.n = options, n_joints
        kernels = options.kernels()
        before = max(kernel.center for kernel in kernels)
        after = max(len(kernel.taps) - 1 - kernel.center for kernel in kernels)
        self.length, self.delay = before + after + 1, after  # samples
        self.taps = np.zeros((4, self.length))
        for line, kernel in zip(self.taps, kernels, strict=True):
            start = before - kernel.center
            line[start : start + len(kernel.taps)] = kernel.taps / options.sample_time**kernel.order
        # Signals side by side: positions, torques and, where they are measured, speeds.
        self.width = n_joints * (3 if options.speed == "measured" else 2)
        self._held = np.zeros((2 * self.length, self.width))  # written twice, so that the last ones are contiguous
        self._count, self._last = 0, -np.inf
        self.restarts = self.filled = self.late = 0

    @property
    def delay_seconds(self) -> float:
        """By how much the result lags behind the sample [s]."""
        return self.delay * self.options.sample_time

    def step_response(self, after: Array) -> Array:
        """Share of a step of the torque that the filtered torque shows, so long after the step [s]."""
        step, before = self.options.sample_time, self.length - 1 - self.delay
        # The newest of the samples sees a step first; between samples it comes up evenly.
        first = self.options.torque_delay - (self.length - 1 - before) * step
        edges = first + (np.arange(self.length + 1) - 0.5) * step
        return np.asarray(np.interp(after, edges, np.concatenate([[0.0], np.cumsum(self.taps[3][::-1])])))

    def push(self, time: float, q: Array, tau: Array, dq: Array | None = None) -> Filtered | None:
        """One sample; the motion it completes, or None while there is none."""
        found = self.push_one(time, self.signals(q, tau, dq))
        if found is None:
            return None
        return self._result(np.array([time - self.delay_seconds]), found[None])

    def signals(self, q: Array, tau: Array, dq: Array | None) -> Array:
        """(.., width) positions, torques and perhaps speeds side by side.

        Raises:
            InputError: When speeds are to be used and there are none.
        """
        if self.options.speed == "position":
            return np.concatenate([q, tau], axis=-1)
        if dq is None:
            raise InputError("speed is 'measured', but the sample has no dq; send dq, or derive speeds from positions")
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
        steps = math.floor((time - self._last) / self.options.sample_time + 0.5)
        if steps <= 0 and time > self._last - 1.0:  # a clock that jumps back has been set anew
            self.late += 1
            return 0
        if steps <= 0 or steps > MOST_FILLED + 1:
            self.restart()
            return 1
        return steps

    def restart(self) -> None:
        """Start anew, as after a gap: what comes next is another motion."""
        if self._count:
            self._count = 0
            self.restarts += 1

    def _write(self, values: Array) -> None:
        place = self._count % self.length
        self._held[place] = self._held[place + self.length] = values
        self._count += 1

    def push_many(self, time: Array, q: Array, tau: Array, dq: Array | None = None) -> Filtered:
        """Many samples; all the motion that they complete."""
        return self.push_signals(time, self.signals(q, tau, dq))

    def push_signals(self, time: Array, values: Array) -> Filtered:
        """Many samples (n, width) of signals side by side."""
        return self._result(*self._many(time, values))

    def _many(self, time: Array, values: Array) -> tuple[Array, Array]:
        """The same as sample by sample: instants, and (n, 4, width)."""
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
            return np.zeros(0), np.zeros((0, 4, self.width))
        instants, parts = zip(*results, strict=True)
        return np.concatenate(instants), np.concatenate(parts)

    def _regular(self, time: Array, start: int) -> int:
        """End of the samples from `start` that follow each other, and the last one before, without a fault."""
        steps = np.floor(np.diff(time[start:], prepend=self._last) / self.options.sample_time + 0.5)
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

    def _result(self, time: Array, found: Array) -> Filtered:
        """Named parts of filtered signals (n, 4, width)."""
        return Filtered(time, *self.parts(found))

    def parts(self, found: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq, tau of filtered signals (.., 4, width)."""
        n = self.n
        smooth, first, second, tau = found[..., 0, :], found[..., 1, :], found[..., 2, :], found[..., 3, n : 2 * n]
        if self.options.speed == "measured":
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


# ----------------------------------------------------------------------------------------------------------------------
# Samples with irregular stamps onto a uniform grid, as they come.
#
# A sample that is stamped a millisecond off moves a joint by a milliradian at 1 rad/s, which two derivatives make into
# a
# violent acceleration. The cubic through the two samples on either side puts the motion where the grid is.

JITTER = 0.01  # of the sample time: stamps that scatter by more are irregular


def irregular(stamps: Array, sample_time: float) -> bool:
    """Whether stamps scatter around a grid; missing samples are no scatter."""
    steps = np.diff(stamps) / sample_time
    steps = steps[steps > 0.5]
    return bool(len(steps) and np.std(steps - np.round(steps)) > JITTER)


class Regridder:
    """Interpolates signals at multiples of the sample time.

    Args:
        sample_time: Step of the grid [s].
        most_missing: Samples that may be missing in a row; more, and the grid starts anew.
    """

    def __init__(self, sample_time: float, most_missing: int) -> None:
        self.step, self.longest = sample_time, (most_missing + 1.5) * sample_time
        self._times: deque[float] = deque(maxlen=4)
        self._values: deque[Array] = deque(maxlen=4)
        self._next = math.nan
        self.late = self.filled = 0

    def push(self, time: float, values: Array) -> list[tuple[float, Array]]:
        """One sample (width,); the grid's samples that it completes, about two sample times late."""
        if self._times:
            gap = time - self._times[-1]
            if -1.0 < gap <= 0.0:
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
        """Start anew, as after a gap."""
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
