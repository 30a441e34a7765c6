"""Exported C against Pinocchio: inverse dynamics of six joints, one core, both in a compiled loop over the samples.

    python benchmarks/export_c.py [--agreement]

Pinocchio's loop is `rneaInParallel` on one thread; ours is the exported code with `-O2` and a loop in C. Both read the
same states from memory and write torques. The first rows of a robot compute what `rnea` computes; the last has rotor
inertia, viscous and Coulomb friction and offsets on top, which `rnea` has not. In brackets: additions/multiplications.

`--agreement` prints, instead of times, how far the C code of several robots is from the library: with basic friction,
with every friction term there is, and as identified from real logs where there are any (see `friction.py`).
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pinocchio as pin
from tests.export.c_library import with_everything
from tests.robots import random_urdf, tree_model

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.estimate.prediction import TorqueModel
from dynident.export import CExport, export_c
from dynident.export.c_export import find_compiler
from dynident.export.c_model import Exportable
from engine import skew_robot
from friction import ARMS, DATA
from harness import Row, interleaved, table

SAMPLES = 100_000
LOOP = """#include "{name}.h"
void loop(int n, const {number} *q, const {number} *dq, const {number} *ddq, {number} *tau);
void loop(int n, const {number} *q, const {number} *dq, const {number} *ddq, {number} *tau)
{{
    for (int i = 0; i < n; i++)
        {name}_{function}(q + {joints} * i, dq + {joints} * i, ddq + {joints} * i, {name}_{values}, tau + {joints} * i);
}}
"""


def compiled(export: CExport, function: str, joints: int) -> ctypes.CDLL:
    """The exported function in a loop, as a shared library."""
    values = "standard" if function.endswith("_standard") else "base"
    text = LOOP.format(name=export.name, number=export.number, function=function, joints=joints, values=values)
    source, library = export.folder / f"{function}_loop.c", export.folder / f"{export.name}_{function}.so"
    source.write_text(text)
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit("no C compiler was found")
    flags = ["-std=c99", "-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, *flags, str(export.files[1]), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def peer_loop(robot: di.Robot, states: list[np.ndarray]) -> tuple[Callable[[], object], np.ndarray]:
    """Pinocchio's loop on one thread, and the torques that it writes, (n_joints, n_samples)."""
    pool = pin.ModelPool(tree_model(robot), 1)
    q, dq, ddq = (np.asfortranarray(x.T) for x in states)
    tau = np.zeros(q.shape, order="F")
    return lambda: pin.rneaInParallel(1, pool, q, dq, ddq, tau), tau


def rows(robot: di.Robot, folder: Path) -> list[Row]:
    """The variants of one robot."""
    rng = np.random.default_rng(0)
    states = list(rng.normal(size=(3, SAMPLES, len(robot.joint_names))))
    theirs, expected = peer_loop(robot, states)
    found = []
    for terms, number, function in (
        ("rigid", "double", "inverse_dynamics_standard"),
        ("rigid", "double", "inverse_dynamics"),
        ("rigid", "float", "inverse_dynamics"),
        ("rigid,Ia,Fv,Fc,Fo", "double", "inverse_dynamics"),
    ):
        model = TorqueModel(robot, resolve_terms(terms), di.parameters(robot, terms))
        export = export_c(model, folder, number=number, name=f"{number}{len(terms)}")
        kind = np.float64 if number == "double" else np.float32
        own = [np.ascontiguousarray(x, dtype=kind) for x in states]
        tau = np.zeros_like(own[0])
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*own, tau)]
        loop = compiled(export, function, tau.shape[1]).loop
        parameters = "standard" if "standard" in function else "base"
        counts = export.counts[function]
        what = f"{robot.name}, {parameters}, {number}{'' if terms == 'rigid' else ', friction'}"
        cost = f"[{counts.additions}/{counts.multiplications}]"
        job = functools.partial(loop, SAMPLES, *pointers)
        found.append(interleaved(f"{what} {cost}", job, theirs, "rnea"))
        if terms == "rigid":  # the same torque, or the comparison says nothing
            assert np.abs(tau - expected.T).max() < 1e-5 * np.abs(expected).max()
    return found


def agreements() -> Iterator[tuple[str, Exportable]]:
    """What is compared with the library."""
    robots = [di.load_robot(name) for name in ("puma560", "ur10e", "panda", "tx40", "sr400", "kr5")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.urdf"
        path.write_text(random_urdf(5, tree=True))
        robots.append(di.load_robot(path))
    yield from ((f"{robot.name}, basic friction", robot) for robot in robots)
    yield from ((f"{robot.name}, every term", with_everything(robot)) for robot in robots)
    for arm, (data, _, make) in ARMS.items():
        if (DATA / data).exists():
            robot, folds = make()
            yield f"{arm}, identified", di.identify(robot, folds[0].train)


def print_agreements() -> None:
    """A line for each robot: operations of the inverse dynamics, and the largest deviation of all functions."""
    print("| robot | base parameters: add, mul, functions | standard parameters | double | float |")
    print("|---|---|---|---|---|")
    for what, given in agreements():
        with tempfile.TemporaryDirectory() as folder:
            double, single = (export_c(given, folder, number=number, name=number) for number in ("double", "float"))
        counts = [double.counts[f"inverse_dynamics{variant}"] for variant in ("", "_standard")]
        costs = [f"{own.additions}, {own.multiplications}, {own.functions}" for own in counts]
        worst = [f"{export.agreement.worst:.1e}" if export.agreement else "-" for export in (double, single)]
        print(f"| {' | '.join([what, *costs, *worst])} |", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--agreement", action="store_true", help="how far the code is from the library")
    if parser.parse_args().agreement:
        print_agreements()
        return
    found = []
    for robot in (di.load_robot("puma560"), di.load_robot("ur10e"), skew_with_values()):
        with tempfile.TemporaryDirectory() as folder:
            found += rows(robot, Path(folder))
    table(found, SAMPLES)


def skew_with_values() -> di.Robot:
    """A geometry without a zero or a right angle: the most that six joints can cost."""
    robot, rng = skew_robot(), np.random.default_rng(1)
    values = {}
    for joint in robot.joints:
        own = dict(
            zip(("XX", "YY", "ZZ", "MX", "MY", "MZ", "M"), (0.3, 0.3, 0.3, *rng.normal(0, 0.2, 3), 3.0), strict=True)
        )
        values |= {f"{symbol}{joint.number}": value for symbol, value in own.items()}
    return robot.with_values("made up", values)


if __name__ == "__main__":
    main()
