"""A stream at 1 kHz over UDP, from packet to updated estimate: what is lost, and how long a packet takes.

    .venv/bin/python benchmarks/live.py [SECONDS]

The UR10e swings for a minute of real time. A second program, examples/live_sender.py, sends every sample as a JSON
packet; this one is held to one core and updates all base parameters with each of them. Then the same with one packet in
ten malformed, for a tenth of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynident as di
from dynident.online.identifier import OnlineIdentifier
from dynident.online.sources import UdpSource
from dynident.online.state import StreamState
from dynident.online.streaming import stream

SENDER = Path(__file__).parents[1] / "examples" / "live_sender.py"
RATE = 1000.0  # [Hz]
ROBOT = "ur10e"


def write_swing(path: Path, robot: di.Robot, seconds: float) -> None:
    """A log of every joint swinging at its own pace, with torque as the robot's values have it and noise."""
    time_ = np.arange(round(seconds * RATE)) / RATE
    n = len(robot.joint_names)
    q, dq, ddq = np.zeros((3, len(time_), n))
    for size, velocities in ((1.0, 0.7 + 0.23 * np.arange(n)), (0.5, 2.3 - 0.19 * np.arange(n))):  # [rad], [rad/s]
        phase = time_[:, None] * velocities
        q += size * np.sin(phase)
        dq += size * velocities * np.cos(phase)
        ddq -= size * velocities**2 * np.sin(phase)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    tau = tau + 0.02 * np.abs(tau).mean(0) * np.random.default_rng(0).standard_normal(tau.shape)
    head = ",".join(["t", *(f"{kind}{j + 1}" for kind in ("q", "tau") for j in range(n))])
    np.savetxt(path, np.column_stack([time_, q, tau]), fmt="%.9g", delimiter=",", header=head, comments="")


def followed(robot: di.Robot, log: Path, malformed: float) -> tuple[StreamState, float]:
    """The last state of a stream sent by the other program, and the processor time per second of it."""
    source = UdpSource(robot)
    words = [str(log), "--to", f"udp://127.0.0.1:{source.port}", "--malformed", str(malformed)]
    identifier = OnlineIdentifier(robot, sample_time=1.0 / RATE)
    with subprocess.Popen([sys.executable, str(SENDER), *words], stdout=subprocess.DEVNULL) as sender:
        os.sched_setaffinity(sender.pid, _other_cores())
        begin = time.process_time()
        *_, last = stream(robot, source, identifier=identifier, clock="real", timeout=10.0)
        busy = time.process_time() - begin
    return last, busy / last.elapsed


def _other_cores() -> set[int]:
    """Cores that the estimator does not use, where there are such."""
    return (_CORES - {min(_CORES)}) or _CORES


def show(last: StreamState, sent: int, busy: float) -> None:
    counters, latency = last.counters, last.latency
    assert latency is not None
    lost = sent - counters.used
    print(f"  {sent} sent, {counters.used} used, {lost} lost; {counters.malformed} malformed, {counters.late} late")
    print(
        f"  arrival to estimate: median {1e6 * latency['median']:.0f} us, 99.9 % {1e3 * latency['most']:.2f} ms, "
        f"longest {1e3 * latency['longest']:.1f} ms; {100.0 * busy:.0f} % of one core"
    )
    print(f"  {len(last.estimate.names)} parameters, {last.estimate.verdict.reason}")


def main(seconds: float = 60.0) -> None:
    robot = di.load_robot(ROBOT)
    os.sched_setaffinity(0, {min(_CORES)})
    try:
        with tempfile.TemporaryDirectory() as folder:
            for share, length in ((0.0, seconds), (0.1, 0.1 * seconds)):
                log = Path(folder) / "swing.csv"
                write_swing(log, robot, length)
                print(f"{ROBOT} at {RATE:g} Hz over UDP for {length:g} s of real time, {share:.0%} malformed")
                last, busy = followed(robot, log, share)
                show(last, round(length * RATE), busy)
    finally:
        os.sched_setaffinity(0, _CORES)


_CORES = os.sched_getaffinity(0)

if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]))
