"""Small fleets for tests: logs by the equations of motion, written as Parquet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet

import dynident as di

TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"
START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def values_of(robot, friction=1.0, seed=0, spread=0.0):
    """Standard parameters of an arm: the robot's own, with friction and a spread of their own."""
    rng = np.random.default_rng(seed)
    chi = np.array(di.parameters(robot, terms=TERMS), dtype=float)
    names = [column.name for column in di.columns(robot, terms=TERMS)]
    for place, name in enumerate(names):
        own = {"Ia": 0.3, "Fv": 2.0, "Fc": 3.0, "Fo": 0.1}.get(name.rstrip("0123456789"))
        if own is not None:
            chi[place] = own
        if spread:
            chi[place] *= 1.0 + spread * rng.standard_normal()
        if name.startswith(("Fv", "Fc")):
            chi[place] *= friction
    return chi


def write_log(path: Path, robot, chi, *, seconds=12.0, rate=200.0, seed=0, noise=0.3, temperature=None, more=None):
    """A log of one motion with torque by the equations and noise."""
    rng = np.random.default_rng(seed)
    n, t = len(robot.joint_names), np.arange(int(seconds * rate)) / rate
    q, dq, ddq = (np.zeros((len(t), n)) for _ in range(3))
    for joint in range(n):
        for k in range(1, 6):
            w = 2.0 * np.pi * k * 0.1
            a, phase = rng.uniform(0.15, 0.5) / k, rng.uniform(0.0, 2.0 * np.pi)
            q[:, joint] += a * np.sin(w * t + phase)
            dq[:, joint] += a * w * np.cos(w * t + phase)
            ddq[:, joint] -= a * w**2 * np.sin(w * t + phase)
    tau = np.einsum("noc,c->no", di.regressor(robot, q, dq, ddq, terms=TERMS), chi)
    tau = tau + noise * rng.standard_normal(tau.shape)
    columns = {"t": t}
    for joint in range(n):
        columns |= {f"q{joint + 1}": q[:, joint], f"tau{joint + 1}": tau[:, joint]}
        if temperature is not None:
            columns[f"temp{joint + 1}"] = np.full(len(t), float(temperature))
    for name, value in (more or {}).items():
        columns[name] = np.full(len(t), value)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.table(columns), path)


def write_fleet(folder: Path, *, robots=2, logs=4, robot="pendulum-2", options="", spread=0.02, **how) -> Path:
    """A fleet with its file: `logs/SERIAL/DATE.parquet`."""
    arm = di.load_robot(robot)
    for number in range(robots):
        chi = values_of(arm, seed=number, spread=spread)
        for k in range(logs):
            date = (START + timedelta(days=k)).strftime("%Y-%m-%dT%H%M%S")
            write_log(folder / "logs" / f"A{number + 1}" / f"{date}.parquet", arm, chi, seed=100 * number + k, **how)
    file = folder / "fleet.yaml"
    file.write_text(
        f"fleet: test\ntypes:\n  arm:\n    robot: {robot}\n    logs: logs/{{serial}}/{{date}}.parquet\n"
        f"pilot_s: 20\n{options}"
    )
    return file
