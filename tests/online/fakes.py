"""An estimator small enough to be checked by hand: gain of tau over q at each joint, sample by sample."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import numpy as np

import dynident as di


@dataclass(frozen=True)
class GainState:
    names: tuple[str, ...]
    values: np.ndarray
    samples: int
    time: float | None

    def as_dict(self) -> dict:
        return {"parameters": [float(x) for x in self.values], "samples": self.samples, "time": self.time}


@dataclass
class GainIdentifier:
    n: int = 2
    samples: int = 0
    time: float | None = None
    sums: np.ndarray = field(default=None)
    blocks: list = field(default_factory=list)  # sizes of the blocks that came

    def __post_init__(self):
        self.sums = np.zeros((2, self.n)) if self.sums is None else self.sums

    def update(self, sample):
        self.blocks.append(1)
        self._take(sample.time, sample.q, sample.tau)

    def update_many(self, time, q, tau, dq=None):
        self.blocks.append(len(time))
        for k in range(len(time)):
            self._take(float(time[k]), q[k], tau[k])

    def _take(self, time, q, tau):
        assert np.isfinite(q).all()
        assert np.isfinite(tau).all()
        assert self.time is None or time > self.time, "stamps must rise"
        self.time, self.samples = time, self.samples + 1
        self.sums += [q * tau, q * q]

    def state(self):
        with np.errstate(all="ignore"):
            return GainState(
                tuple(f"k{j + 1}" for j in range(self.n)), self.sums[0] / self.sums[1], self.samples, self.time
            )

    def checkpoint(self):
        file = io.BytesIO()
        np.savez(file, sums=self.sums, samples=self.samples, time=self.time)
        return file.getvalue()

    @classmethod
    def load(cls, path, robot):
        with np.load(path) as kept:
            return cls(kept["sums"].shape[1], int(kept["samples"]), float(kept["time"]), kept["sums"])


def packets(n: int, rate: float = 100.0, seed: int = 0) -> list[dict]:
    """A sine of two joints whose torque is 2 q1 and -3 q2, with noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(n) / rate
    q = np.column_stack([np.sin(3.0 * time), np.cos(2.0 * time)])
    tau = q * [2.0, -3.0] + 0.01 * rng.standard_normal(q.shape)
    return [
        {"t": float(t), "q": a.tolist(), "tau": b.tolist(), "seq": k}
        for k, (t, a, b) in enumerate(zip(time, q, tau, strict=True))
    ]


def write_swing(path, robot, seconds: float = 6.0, rate: float = 200.0, seed: int = 0) -> None:
    """A log of every joint swinging at its own pace, with torque as the robot's values have it and a little noise."""
    rng = np.random.default_rng(seed)
    n = len(robot.joint_names)
    time = np.arange(round(seconds * rate)) / rate
    velocity = 2.0 + 1.3 * np.arange(n)
    phase = time[:, None] * velocity
    q, dq, ddq = np.sin(phase), velocity * np.cos(phase), -(velocity**2) * np.sin(phase)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    tau = tau + 0.01 * np.abs(tau).mean(0) * rng.standard_normal(tau.shape)
    head = ",".join(["t", *(f"{kind}{j + 1}" for kind in ("q", "tau") for j in range(n))])
    np.savetxt(path, np.column_stack([time, q, tau]), fmt="%.12g", delimiter=",", header=head, comments="")
