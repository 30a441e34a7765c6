"""Friction that changes between logs and with temperature: recovered, and what it does for another log.

    python benchmarks/friction_levels.py [--parts levels,temperature,plant,real] [--seeds 5] [--none 20]

Simulated: the puma560 by Pinocchio with noise. Levels: three logs of 20 s; viscous friction of each is scaled by a
factor that all joints share (10 %) and one of each joint (3 %), or by nothing. Temperature: one log of 60 s whose
joints warm up by 5 to 15 K and lose 2 % of their viscous friction per kelvin, or nothing; and the same arm on the
MuJoCo plant. Real: the UR10e (DYNIDENT_DATA or ../shared/data), from logs of two months, evaluated at 5 Hz on a log
that was left out, with levels and without, and by an oracle that scales viscous friction on the very log that is
evaluated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np
from numpy.typing import NDArray
from tests.signals.made import Fourier, make_log, pinocchio_torque, stamps

import dynident as di
import friction
from dynident.arrays import Array
from dynident.logs.log import Log
from dynident.robot.model import Robot
from dynident.signals.rows import ObservedRows

TIME = stamps(20.0, 500.0)
NOISE = np.array([1.0, 2.0, 1.0, 0.2, 0.2, 0.1])  # [N·m]
SHARED, OWN, LOGS = 0.10, 0.03, 3
WARM_TIME, THINNING = stamps(60.0, 500.0), 0.02  # [s], [1/K]
BAND = 5.0  # [Hz]


def simulated(robot: Robot, viscous: Array, seed: int, *, differ: bool) -> tuple[list[Log], Array]:
    """Logs, and the factors of their viscous friction, (n_logs, n_joints)."""
    rng, logs, factors = np.random.default_rng(seed), [], []
    for number in range(LOGS):
        q, dq, ddq = Fourier.random(6, 10 * seed + number)(TIME)
        factor = 1.0 + differ * (SHARED * rng.normal() + OWN * rng.normal(size=6))
        tau = pinocchio_torque(robot, q, dq, ddq) + (factor - 1.0) * viscous * dq
        logs.append(make_log(robot, TIME, q, tau + NOISE * rng.normal(size=tau.shape), source=f"log {number + 1}"))
        factors.append(factor)
    return logs, np.array(factors)


def recovery(seeds: int, without: int) -> None:
    """Errors over stated standard deviations of levels and parameters."""
    robot = di.load_robot("puma560")
    truth = robot.value_set()
    viscous = np.array([truth[f"Fv{j}"] for j in range(1, 7)])
    print("| seed | levels over std, rms | spread found (shared, own) | parameters over std, rms |\n|" + "---|" * 4)
    levels, parameters = [], []
    for seed in range(seeds):
        logs, factors = simulated(robot, viscous, seed, differ=True)
        fit = di.identify(robot, logs, check="off")
        found = fit.friction_levels
        if found is None:
            print(f"| {seed} | not found | | |", flush=True)
            continue
        own = (found.values - (factors - factors.mean(0)) * viscous) / found.std
        values = {**truth, **{f"Fv{j + 1}": factors[:, j].mean() * viscous[j] for j in range(6)}}
        off = (fit.beta - fit.base.base_values(values)) / fit.std
        levels.append(own)
        parameters.append(off)
        spread = ", ".join(f"{100.0 * x:.1f} %" for x in found.spread)
        print(f"| {seed} | {_rms(own):.2f} | {spread} | {_rms(off):.2f} |", flush=True)
    if levels:
        largest = max(float(np.abs(own).max()) for own in levels)
        print(f"| all | {_rms(np.array(levels)):.2f} (largest {largest:.1f}) | | {_rms(np.array(parameters)):.2f} |")
    none = 0
    for seed in range(without):
        logs, _ = simulated(robot, viscous, 1000 + seed, differ=False)
        none += di.identify(robot, logs, check="off").friction_levels is None
    print(f"\nLogs of one friction: nothing found in {none} of {without}.\n", flush=True)


def warmed(robot: Robot, viscous: Array, seed: int, *, thins: bool) -> Log:
    """A log whose joints warm up, by thermometers with noise and steps; friction falls exponentially where it thins."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = Fourier.random(6, seed)(WARM_TIME)
    rise, pace, start = rng.uniform(5.0, 15.0, 6), rng.uniform(20.0, 60.0, 6), rng.uniform(20.0, 30.0, 6)
    warm = start + rise * (1.0 - np.exp(-WARM_TIME[:, None] / pace))
    # Values of the robot hold at the mean, to which the term refers.
    factor = np.exp(-THINNING * thins * (warm - warm.mean(0)))
    tau = pinocchio_torque(robot, q, dq, ddq) + (factor - 1.0) * viscous * dq
    log = make_log(robot, WARM_TIME, q, tau + NOISE * rng.normal(size=tau.shape), source=f"seed {seed}")
    shown = np.round(warm + 0.05 * rng.normal(size=warm.shape), 1)
    return replace(log, channels={**log.channels, **{f"temp{j + 1}": shown[:, j] for j in range(6)}})


def on_plant(robot: Robot, seed: int, rise: float) -> Log:
    """The same arm on the MuJoCo plant; its friction holds at the start, 20 °C."""
    motion = Fourier.random(6, seed, velocity=0.8)
    shift = motion(np.zeros(1))[0][0]
    samples = Smooth(motion, shift)
    return di.simulate(robot, samples, warm_up=rise, seed=seed).log


class Smooth:
    """A Fourier series about a pose, that begins at rest."""

    duration = 60.0

    def __init__(self, motion: Fourier, shift: Array) -> None:
        self._motion, self._shift = motion, shift

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """q, dq, ddq of a motion that fades in within two seconds."""
        t = np.asarray(t, dtype=np.float64)
        q, dq, ddq = self._motion(t)
        x = np.clip(t / 2.0, 0.0, 1.0)[:, None]
        a = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
        b = 30.0 * x**2 * (1.0 - x) ** 2 / 2.0
        c = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / 4.0
        own = q - self._shift
        return a * own, a * dq + b * own, a * ddq + 2.0 * b * dq + c * own


def temperature(seeds: int, without: int) -> None:
    """Temperature by Pinocchio's torque, and where it does nothing."""
    robot = di.load_robot("puma560")
    truth = robot.value_set()
    viscous = np.array([truth[f"Fv{j}"] for j in range(1, 7)])
    _temperature_table((warmed(robot, viscous, seed, thins=True) for seed in range(seeds)), truth, None)
    none = 0
    for seed in range(without):
        fit = di.identify(robot, warmed(robot, viscous, 1000 + seed, thins=False), check="off")
        none += not any(term.name == "temperature" for term in fit.base.terms)
    print(f"\nFriction that does not change: nothing found in {none} of {without}.\n", flush=True)


def plant(seeds: int) -> None:
    """Temperature on the MuJoCo plant, whose friction holds at its start, 20 °C."""
    robot = di.load_robot("puma560")
    _temperature_table((on_plant(robot, seed, 12.0) for seed in range(seeds)), robot.value_set(), 20.0)


def _temperature_table(logs: Iterable[Log], truth: Mapping[str, float], start: float | None) -> None:
    """Errors over stated standard deviations of all parameters and of those of temperature."""
    robot, every = di.load_robot("puma560"), []
    print("| seed | elements found | temperature over std, rms | parameters over std, rms |\n|" + "---|" * 4)
    for seed, log in enumerate(logs):
        off, own = _temperature_errors(di.identify(robot, log, check="off"), truth, start)
        every.append(off[own])
        print(f"| {seed} | {own.sum() // 2} of 6 | {_rms(off[own]):.2f} | {_rms(off):.2f} |", flush=True)
    found = np.concatenate(every)
    print(f"| all | | {_rms(found):.2f} (largest {np.abs(found).max():.1f}) | |", flush=True)


def _temperature_errors(
    fit: di.Fit, truth: Mapping[str, float], start: float | None
) -> tuple[Array, NDArray[np.bool_]]:
    """Errors over std, and which are those of temperature; the truth holds at a start, or at the mean."""
    term = next((term for term in fit.base.terms if term.name == "temperature"), None)
    labels = {} if term is None else {label: law[0] for label, law in term.laws.items()}
    values, own = dict(truth), {}
    for label, reference in labels.items():
        at = truth[f"Fv{label}"] * (1.0 if start is None else np.exp(-THINNING * (reference - start)))
        values[f"Fv{label}"], own[f"FvT_{label}"], own[f"FcT_{label}"] = at, -THINNING * at, 0.0
    expected = fit.base.base_values(values)
    expected = np.array([own.get(name, x) for name, x in zip(fit.names, expected, strict=True)])
    return (fit.beta - expected) / fit.std, np.array([name in own for name in fit.names])


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def rescaled(fit: di.Fit, test: Log) -> str:
    """Relative error, and what viscous friction was scaled by, if one factor is fitted to the evaluated log itself."""
    rows = ObservedRows((fit.observe(test, BAND),), fit.predictive_base, fit.predictive.linearization)
    names, residuals, torques, columns = fit.predictive_base.names, [], [], []
    viscous = {
        names.index(name): value for name, value in zip(fit.names, fit.beta, strict=True) if name.startswith("Fv")
    }
    for block in rows.blocks():
        for output, own in enumerate(block.columns):
            lines = block.usable_columns_first(output)
            residuals.append(block.residual(output, fit.predictive.values))
            torques.append(lines[-1])
            columns.append(sum(viscous.get(column, 0.0) * lines[k] for k, column in enumerate(own)))
    residual, torque, column = (np.concatenate(parts) for parts in (residuals, torques, columns))
    factor = float(column @ residual / (column @ column))
    error = np.linalg.norm(residual - factor * column) / np.linalg.norm(torque)
    return f"{100.0 * error:.2f} (by {100.0 * factor:+.1f} %)"


def real() -> None:
    """The UR10e, with levels and without."""
    if not (friction.DATA / "ur10e").exists():
        print(f"ur10e: skipped, no data at {friction.DATA / 'ur10e'} (set DYNIDENT_DATA)")
        return
    robot, folds = friction.ur10e()
    *month, other = folds
    later = other.test
    cases = [(f"{fold.label}, from the others and the other month", [*fold.train, later], fold.test) for fold in month]
    cases += [(f"{fold.label}, from the others alone", fold.train, fold.test) for fold in month]
    cases += [("the other month, from three logs of one month", other.train, later)]
    print(
        "| predicted log | off [%] | auto [%] | within two std: off, auto | levels of the training logs |\n|"
        + "---|" * 5
    )
    for label, train, test in cases:
        errors, inside, words, oracle = [], [], "none", ""
        for option in ("off", "auto"):
            fit = di.identify(robot, train, friction_levels=option)
            evaluated = di.validate(fit, test, band=BAND)
            errors.append(f"{100.0 * evaluated.relative_error:.2f}")
            inside.append(f"{100.0 * float(np.nanmean(evaluated.coverage)):.0f} %")
            oracle = rescaled(fit, test) if option == "off" else oracle
            if fit.friction_levels is not None:
                found = fit.friction_levels
                factors = found.values.sum(1) / found.means.sum()
                words = ", ".join(f"{x:+.1%}" for x in factors) + f"; spread {_rms(found.spread) * np.sqrt(2):.1%}"
        print(f"| {label} | {' | '.join(errors)} | {oracle} | {', '.join(inside)} | {words} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--none", type=int, default=20)
    parser.add_argument("--parts", default="levels,temperature,plant,real")
    given = parser.parse_args()
    parts = {
        "levels": lambda: recovery(given.seeds, given.none),
        "temperature": lambda: temperature(given.seeds, given.none),
        "plant": lambda: plant(given.seeds),
        "real": real,
    }
    for part in given.parts.split(","):
        parts[part]()


if __name__ == "__main__":
    main()
