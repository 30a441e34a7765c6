"""Drift of friction: 20 robots over 60 days, three of which wear; found with at most the false alarms that are stated.

    python benchmarks/fleet_drift.py [--robots 20 --days 60]    logs, run, analysis with and without temperature
    python benchmarks/fleet_drift.py --rates                    rates of false alarms of histories with memory

Each robot has a log a day. Its joints follow the temperature of the hall, a cycle of 30 days and a part of each day's
own, and viscous friction falls by 2 % a kelvin; beyond that, friction of a joint differs by 1.5 % from day to day, half
of which the next day still has. From day 20 on, friction of all joints of three robots rises by 20 % over 30 days.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet

import dynident as di
from dynident.fleet import analyze_fleet, daily_series, find_change, run_fleet
from fleet import START, TERMS, arm_values, motion  # the other benchmark, beside this file

THINNING, MEMORY, DAILY, REFERENCE = 0.02, 0.5, 0.015, 30.0
WEAR, WEAR_FROM, WEAR_DAYS = 0.2, 20, 30


def write_robot(folder: Path, name: str, serial: int, days: int, worn: bool) -> None:
    """A log a day."""
    robot, rng = di.load_robot(name), np.random.default_rng(serial)
    chi, columns = arm_values(robot, serial), di.columns(robot, terms=TERMS)
    n = len(robot.joint_names)
    lasting = np.zeros(n)
    for day in range(days):
        lasting = MEMORY * lasting + np.sqrt(1.0 - MEMORY**2) * rng.standard_normal(n)
        temperature = (
            REFERENCE + 8.0 * np.sin(2.0 * np.pi * day / 30.0) + rng.normal(0.0, 2.0) + rng.normal(0.0, 0.5, n)
        )
        wear = 1.0 + WEAR * worn * np.clip((day - WEAR_FROM) / WEAR_DAYS, 0.0, 1.0)
        own = chi.copy()
        for place, column in enumerate(columns):
            if column.symbol in ("Fv", "Fc"):
                joint = int(column.place) - 1
                thin = np.exp(-THINNING * (temperature[joint] - REFERENCE)) if column.symbol == "Fv" else 1.0
                own[place] *= thin * wear * (1.0 + DAILY * lasting[joint])
        t, q, dq, ddq = motion(robot, 20.0, 200.0, np.random.default_rng([serial, day]))
        tau = np.einsum("noc,c->no", di.regressor(robot, q, dq, ddq, terms=TERMS), own)
        tau += 0.02 * tau.std(0) * rng.standard_normal(tau.shape)
        table = {"t": t}
        for joint in range(n):
            table |= {f"q{joint + 1}": q[:, joint], f"tau{joint + 1}": tau[:, joint]}
            table[f"temp{joint + 1}"] = np.full(len(t), temperature[joint])
        path = folder / "logs" / f"A{serial:02d}" / f"{START + timedelta(days=day):%Y-%m-%d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(arrow.table(table), path)


def main(options: argparse.Namespace) -> None:
    worn = {f"A{1 + k * options.robots // 3:02d}" for k in range(3)}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for serial in range(1, options.robots + 1):
            write_robot(folder, options.robot, serial, options.days, f"A{serial:02d}" in worn)
        (folder / "fleet.yaml").write_text(
            f"types:\n  arm:\n    robot: {options.robot}\n    logs: logs/{{serial}}/{{date}}.parquet\npilot_s: 60\n"
        )
        done = run_fleet(folder / "fleet.yaml", folder / "store", workers=options.workers)
        assert not done.failed, done.failed
        for covariates in ("temperature,payload", "none"):
            found = analyze_fleet(folder / "store", covariates=covariates)
            friction = [one for one in found.changes if one.element != "payload"]
            alarms = [one for one in found.changes if one.alarm]
            hit = {one.robot for one in alarms} & worn
            joints = sum(one.alarm and one.robot in worn for one in friction)
            false = [one for one in alarms if one.robot not in worn or one.element == "payload"]
            print(f"covariates {covariates}: {len(found.changes)} histories, level {found.level:.1e}")
            n_joints = sum(one.robot in worn for one in friction)
            print(f"  worn robots found: {len(hit)} of {len(worn)}, in {joints} of {n_joints} joints")
            print(f"  false alarms: {len(false)}; expected by the rate stated: {found.options.false_alarms:g}")
            for one in [one for one in alarms if one.robot in worn][:6]:
                print(f"    {one.sentence}; chance {one.change.chance:.1g}")
            for one in false[:6]:
                print(f"    false: {one.sentence}; chance {one.change.chance:.1g}")


def rates(options: argparse.Namespace) -> None:
    """Shares of histories without a change whose chance is below a level."""
    for memory in (0.0, 0.3, 0.5, 0.7, 0.8, 0.9):
        chances = []
        for seed in range(options.histories):
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal(options.days)
            for k in range(1, options.days):
                noise[k] = memory * noise[k - 1] + np.sqrt(1.0 - memory**2) * noise[k]
            above = 8.0 * np.sin(2.0 * np.pi * np.arange(options.days) / 30.0) + rng.normal(0.0, 2.0, options.days)
            dates = [(START + timedelta(days=day)).isoformat() for day in range(options.days)]
            series = daily_series(
                dates, noise, np.full(options.days, 0.3), np.column_stack([above, above**2]), ("T", "T^2")
            )
            assert series is not None
            chances.append(find_change(series).chance)
        shares = ", ".join(
            f"{np.mean(np.array(chances) < level):.4f} below {level:g}" for level in (0.1, 0.05, 0.01, 0.001)
        )
        print(f"correlation of neighboring days {memory:g}: {shares}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--histories", type=int, default=400)
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--robot", default="pendulum-3")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder")
    given = parser.parse_args()
    (rates if given.rates else main)(given)
