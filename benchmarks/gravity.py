"""Gravity moments by slow sweeps on the MuJoCo plant: what is achievable, on which arms, and where it fails.

    python benchmarks/gravity.py [--seeds 5] [--write docs/reference/gravity.md]

Real logs of a UR10e at DYNIDENT_DATA, or in ../shared/data, are put beside a fit of its other logs; skipped where they
are absent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.friction import DATA, UR10E_GAINS

import dynident as di
from dynident.experiments.gravity import GravityMoments
from dynident.experiments.protocol import ExperimentError
from dynident.plant import MujocoPlant, Sensors

STEP, NOISE = 0.012, 1.0  # [s], [N·m] of Abhishek et al.
ARMS = {"sr400": 0.5, "puma560": 0.5, "ur10e": 0.5, "panda": 0.2, "tx40": 0.5}  # noise [N·m]
UR10E = DATA / "ur10e"
COUNT = 2.0 * np.pi / 2**17
BEGIN, END = "<!-- tables: benchmarks/gravity.py -->", "<!-- end of tables -->"


def swept(
    robot: di.Robot,
    values: str | Mapping[str, float] = "plant",
    *,
    noise: float = 0.0,
    sample_time: float = STEP,
    seed: int = 0,
    effects: Mapping[str, float] | None = None,
    **how: object,
) -> GravityMoments:
    """Moments of a simulated machine."""
    sensors = Sensors(torque_noise=noise, resolution=COUNT)
    plant = MujocoPlant(robot, values, sample_time=sample_time, step=2e-3, sensors=sensors, seed=seed, effects=effects)
    true = values if isinstance(values, str) else dict(values)
    return di.experiments.gravity_moments(plant, true=true, **how)


def off(found: Sequence[GravityMoments]) -> tuple[float, float, float]:
    """Largest error [kg·m], largest in standard deviations, and the share within two."""
    every = [(one.value - (one.true or 0.0), one.std) for each in found for one in each.estimates]
    error, std = np.array(every).T
    return float(np.abs(error).max()), float(np.abs(error / std).max()), float(np.mean(np.abs(error) < 2.0 * std))


def paper(seeds: int) -> Iterator[str]:
    """Lines about the paper's arm."""
    robot = di.load_robot("kr5-planar")
    bare = {name: value for name, value in robot.value_set("plant").items() if name[0] != "F"}
    guess = robot.with_values("guess", {name: 0.7 * value for name, value in bare.items()})
    yield "| kr5-planar, ±60 degrees, 12 ms | largest error [kg·m] | error / std | within 2 std |"
    yield "|---|---|---|---|"
    cases = {
        "no friction, no noise; controller off by 30 %": [swept(guess, bare)],
        "friction, no noise; controller knows both": [swept(robot)],
        "friction, no noise; controller off by 30 %, knows no friction": [swept(guess)],
        f"friction, {NOISE:.0f} N·m noise, {seeds} seeds": [swept(robot, noise=NOISE, seed=k) for k in range(seeds)],
    }
    for name, found in cases.items():
        error, ratio, share = off(found)
        yield f"| {name} | {error:.2g} | {ratio:.1f} | {100.0 * share:.0f} % |"


def arms() -> Iterator[str]:
    """Lines about six and seven joints."""
    yield "| robot, friction, 250 Hz | noise [N·m] | sweeps | largest error [kg·m] | error / std | left out |"
    yield "|---|---|---|---|---|---|"
    for name, noise in ARMS.items():
        found = swept(di.load_robot(name), noise=noise, sample_time=4e-3)
        error, ratio, _ = off([found])
        yield f"| {name} | {noise} | {len(found.runs)} | {error:.2g} | {ratio:.1f} | {', '.join(found.skipped)} |"


def sinusoids(seeds: int) -> Iterator[str]:
    """Lines about the motion of the paper, +-60 degrees of one joint, whose torque Pinocchio makes."""
    robot = di.load_robot("kr5-planar")
    rng = np.random.default_rng(0)
    yield (
        "| kr5-planar, two periods of ±60 degrees, friction, 12 ms | error without noise [kg·m] | std of MXR1, MY1 "
        f"with 1 N·m noise, 2^17 counts | rms of errors in standard deviations, {seeds} seeds | worst |"
    )
    yield "|---|---|---|---|---|"
    for period in (5.0, 10.0, 30.0, 60.0, 120.0):
        logs = [_sinusoid(robot, j, period) for j in range(3)]
        clean = di.experiments.gravity_from_logs(robot, logs)
        exact = np.abs(clean.values - clean.base.values()).max()
        off = []
        for _ in range(seeds):
            noisy = [_measured(log, rng) for log in logs]
            found = di.experiments.gravity_from_logs(robot, noisy)
            off.append((found.values - found.base.values()) / found.std)
        spread = f"{found.std[0]:.2f}, {found.std[1]:.2f}"
        rms, worst = np.sqrt(np.mean(np.square(off))), np.abs(off).max()
        yield f"| {period:g} s | {exact:.0e} | {spread} | {rms:.2f} | {worst:.1f} |"


def _sinusoid(robot: di.Robot, joint: int, period: float) -> di.Log:
    from tests.recovery.kr5 import machine_torque

    t, w = np.arange(0.0, 2.0 * period, STEP), 2.0 * np.pi / period
    q, (dq, ddq) = np.tile([0.8, -0.5, 0.1], (len(t), 1)), np.zeros((2, len(t), 3))
    size = np.pi / 3.0
    q[:, joint] = size * np.sin(w * t)
    dq[:, joint], ddq[:, joint] = size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)
    tau = machine_torque(robot, (q, dq, ddq))
    channels = {f"{kind}{i + 1}": x[:, i] for kind, x in (("q", q), ("tau", tau)) for i in range(3)}
    return di.Log(f"joint {joint + 1}", f"{joint} {period}", t, channels)


def _measured(log: di.Log, rng: np.random.Generator) -> di.Log:
    """The same as encoders and noisy currents tell it."""
    channels = {
        name: np.round(x / COUNT) * COUNT if name.startswith("q") else x + NOISE * rng.normal(size=len(x))
        for name, x in log.channels.items()
    }
    return di.Log(log.source, log.digest + "noisy", log.time, channels)


def failures() -> Iterator[str]:
    """Lines about what goes wrong, on the last joint of the planar KR5 with 0.3 N·m of noise."""
    robot = di.load_robot("kr5-planar")
    yield "| joint5 of kr5-planar, 0.3 N·m noise | error of MX3, MY3 [kg·m] | standard deviations | what is said |"
    yield "|---|---|---|---|"
    pose = [{"q1": 1.0, "q2": -0.75}]
    cases: dict[str, dict[str, object]] = {
        "±60 degrees": {},
        "±30 degrees": {"span": np.radians(30.0)},
        "±15 degrees": {"span": np.radians(15.0)},
        "±15 degrees, two poses": {"span": np.radians(15.0), "poses": (), "least_poses": 2},
        "±8 degrees": {"span": np.radians(8.0), "sweep_velocity": 0.05},
        "1 rad/s": {"sweep_velocity": 1.0},
        "friction grows by 0.2 per load": {"effects": {"load_3": 0.2}},
        "ripple of 1 N·m twice a turn": {"effects": {"ripple2c_3": 1.0}},
        "the same, `--order auto`": {"effects": {"ripple2c_3": 1.0}, "order": "auto"},
        "joint zero off by 0.05 rad": {"effects": {"zero_3": 0.05}},
        "base tilted by 0.02 rad": {"effects": {"tilt_x": 0.0, "tilt_z": 0.02}},
    }
    for name, how in cases.items():
        how = {"poses": pose, **how}
        try:
            found = swept(robot, noise=0.3, joints=["q3"], **how)
        except ExperimentError as error:
            yield f"| {name} | refused | | {str(error).split(': ', 1)[1].split(';')[0]} |"
            continue
        wrong = ", ".join(f"{one.value - (one.true or 0.0):.3f}" for one in found.estimates)
        std = ", ".join(f"{one.std:.3f}" for one in found.estimates)
        reported = "; ".join(text.removeprefix("joint joint5: ").split(";")[0] for text in found.warnings)
        yield f"| {name} | {wrong} | {std} | {reported} |"


def real() -> Iterator[str]:
    """Lines about logs of a UR10e in which one joint at a time oscillates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ur10e.yaml"
        path.write_text(f"base: {UR10E / 'robot.urdf'}\n{UR10E_GAINS}")
        robot = di.load_robot(path)
        fast = [di.read_log(UR10E / f"exc_{name}_12h.csv.gz", robot) for name in ("30s", "40s")]
        fit = di.identify(robot, fast, friction="basic")
        slow = [di.read_log(UR10E / f"single_joint_{j}.csv.gz", robot) for j in range(1, 7)]
        found = di.experiments.gravity_from_logs(robot, slow).compared_to(fit)
    yield "| real UR10e | single-joint logs | std | fit of excitation logs | std |"
    yield "|---|---|---|---|---|"
    assert found.comparison is not None
    for name, own, std, other, more in found.comparison.rows():
        yield f"| {name} [kg·m] | {own:.3f} | {std:.3f} | {other:.3f} | {more:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", type=Path, default=None, metavar="PAGE")
    options = parser.parse_args()
    parts = [paper(options.seeds), sinusoids(8 * options.seeds), arms(), failures()]
    parts += [real()] if UR10E.is_dir() else []
    tables = []
    for part in parts:
        lines = []
        for line in part:
            print(line, flush=True)
            lines.append(line)
        print()
        tables.append("\n".join(lines))
    if options.write is not None:
        text = options.write.read_text()
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        options.write.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(tables) + f"\n\n{END}{after}")


if __name__ == "__main__":
    main()
