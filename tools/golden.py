"""Golden comparison: what every verb answers, before and after a change of structure.

    python tools/golden.py write build/golden/before --source ../worktree [--all] [--only PATTERN]
    python tools/golden.py write build/golden/after [--all] [--only PATTERN]
    python tools/golden.py compare build/golden/before build/golden/after

A case is a line of commands in a folder of its own. Kept are exit code, standard output (as an object with `--json`),
standard error, the hash of files that are exported, and of a stored fit its names, values, standard deviations,
covariance and predicted torque. References are written from a worktree of an earlier commit on the machine that
compares, with one BLAS thread; they are never committed.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VALUES, SPREADS = 1e-8, 1e-6  # relative differences allowed: parameters; standard deviations and errors
SPREAD_KEYS = ("std", "error", "rms", "deviation", "covariance", "condition", "white", "band", "share", "fit", "misfit")
TIMED_KEYS = (
    "seconds",
    "elapsed",
    "latency",
    "duration_of_run",
    "date",
    "time_of_run",
    "versions",
    "version",
    "command",
)
RENAMED: tuple[tuple[str, str], ...] = ()  # words before -> words after, in text

DEMO = "{examples}/demo/arm.yaml {examples}/demo/fourier_1.csv.gz {examples}/demo/fourier_2.csv.gz"
HELD = "--validation {examples}/demo/wandering.csv.gz"
URDF = "{examples}/urdf/arm.yaml {examples}/urdf/train.csv.gz --columns {examples}/urdf/columns.yaml"
HELD_OUT_LOG = "{examples}/urdf/validation.csv.gz --columns {examples}/urdf/columns.yaml"

# Name -> commands of a case; `*` before a name: part of the quick set.
CASES: dict[str, list[str]] = {
    "*inspect-demo": ["inspect {examples}/demo/arm.yaml --json", "inspect {examples}/demo/arm.yaml"],
    "*inspect-robots": [
        f"inspect {name} --json" for name in ("sr400", "puma560", "kr5-planar", "cylindrical", "minnesota")
    ],
    "inspect-nearest": ["inspect kr5-planar --values table4 --nearest-physical --json"],
    "*demo-auto": [
        f"identify {DEMO} {HELD} -o fit",
        f"identify {DEMO} {HELD} -o fit --json",
        "validate fit {examples}/demo/wandering.csv.gz --json",
        "predict fit {examples}/demo/wandering.csv.gz -o tau.csv",
        "payload fit {examples}/demo/payload.csv.gz --json",
        "export fit --yaml out.yaml --mjcf out.xml --c c --name arm",
        "report fit",
    ],
    "*demo-basic": [f"identify {DEMO} {HELD} --friction basic --check off -o fit --json"],
    "demo-generic": [f"identify {DEMO} {HELD} --friction generic -o fit --json"],
    "demo-full": [f"identify {DEMO} {HELD} --friction full -o fit --json"],
    "demo-list": [f"identify {DEMO} {HELD} --friction stop(0.0003,0.003),load -o fit --json"],
    "demo-check": ["check {examples}/demo/arm.yaml {examples}/demo/fourier_1.csv.gz --all --json"],
    "demo-init": ["init {examples}/demo/arm.yaml {examples}/demo -o run.yaml --json", "run run.yaml --json"],
    "*urdf-auto": [
        f"identify {URDF} -o fit --json",
        f"validate fit {HELD_OUT_LOG}",
        "export fit --urdf out.urdf --yaml out.yaml --json",
    ],
    **{
        f"*urdf-{estimator}": [f"identify {URDF} --friction basic --estimator {estimator} -o fit --json"]
        for estimator in ("ordinary", "weighted", "robust", "total", "ridge", "prior")
    },
    "*urdf-essential": [f"identify {URDF} --friction basic --essential -o fit --json"],
    "*urdf-delay": [f"identify {URDF} --friction basic --delay 0.002 --rest-velocity 0.02 -o fit --json"],
    "*urdf-band": [f"identify {URDF} --friction basic --band 8 --differentiator central --check warn -o fit --json"],
    "*urdf-window": [f"identify {URDF} --friction basic --window 2:9 -o fit --json"],
    "*urdf-locked": [f"identify {URDF} --friction basic --terms rigid,Ia,Fv,Fc(0.02) --check warn -o fit --json"],
    "*subchain": ["identify kr5 {examples}/subchain/joints_2_3_5.csv.gz --locked q1=0,q4=0,q6=0 -o fit --json"],
    "*compare": [
        f"identify {URDF} --friction basic -o a",
        f"identify {URDF} --friction basic --estimator ordinary -o b",
        "compare a b --json",
        "compare a b",
    ],
    "*wrong-input": [
        "identify nothing.urdf log.csv",
        "identify nothing.urdf log.csv -o fit",
        "identify {examples}/demo/arm.yaml nothing.csv -o fit",
        "identify {examples}/demo/arm.yaml {examples}/urdf/train.csv.gz -o fit",
        f"identify {DEMO} --estimator best -o fit",
        f"identify {DEMO} --bnad 3 -o fit",
        f"identify {DEMO} --band -3 -o fit --json",
        f"identify {DEMO} --friction sticky -o fit --json",
        f"identify {DEMO} --window 3:1 -o fit",
        "check {examples}/demo/arm.yaml {examples}/urdf/train.csv.gz --json",
    ],
    "*simulate": ["simulate pendulum-2 {motion} -o log.csv --seed 3 --json"],
    "*excite": ["excite pendulum-2 -o motion.yaml --starts 2 --kicks 0 --seed 1 --json"],
    "excite-six": ["excite ur10e -o motion.yaml --starts 4 --kicks 1 --seed 1 --json"],
    "*gravity": ["gravity pendulum-2 --seed 1 --json"],
    "gravity-kr5": ["gravity kr5-planar --seed 1 --json"],
    "*friction": ["friction pendulum-1 --seed 1 --json"],
    "friction-sr400": ["friction sr400 --joints joint5,joint6 --seed 1 --json"],
    "*oscillate": ["oscillate pendulum-1 --json", "oscillate ur10e --sensitivity --json"],
    "oscillate-paper": ["oscillate pendulum-1 --paper --stage gravity --updates 1000 --factors 1.02,1.01 --json"],
    "step": ["step minnesota --seed 1 --json"],
    "live": ["identify {examples}/demo/arm.yaml {examples}/demo/fourier_1.csv.gz --friction basic -o fit --quiet"],
    **{
        f"example-{name}": [f"python {{examples}}/{name}.py"]
        for name in (
            "cmu_arm",
            "cylindrical_sequential",
            "energy_model",
            "four_bar",
            "kim_step",
            "known_load",
            "kr5_gravity",
            "kr5_planar",
            "kr5_subchain",
            "pendulum_oscillation",
            "sr400_two_step",
            "sr400_velocity",
            "symbolic_model",
        )
    },
}


DRIVE_GAINS = {  # [N·m/A] of logs with currents
    "ur10e": "[11.97, 11.97, 9.84, 10.76, 10.76, 10.76]",
    "tiago_arm": "[1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]",
}


def real_cases(data: Path) -> dict[str, list[str]]:
    """One default and one basic fit of every log at hand, evaluated by the other logs of its robot."""
    cases: dict[str, list[str]] = {}
    for folder in sorted(data.iterdir()) if data.exists() else ():
        robots = [folder / f"robot.{kind}" for kind in ("urdf", "xml", "yaml") if (folder / f"robot.{kind}").exists()]
        gains = DRIVE_GAINS.get(folder.name)
        for log in sorted(folder.glob("*.csv.gz")):
            short = f"real-{folder.name}-{log.name.removesuffix('.csv.gz')}"
            for kind in ("auto", "basic"):
                mark = "*" if (folder.name, kind) == ("tiago_arm", "basic") else ""
                robot = "arm.yaml" if gains else robots[0]
                lines = [f"write arm.yaml base: {robots[0]}|drive_gains: {gains}"] if gains else []
                lines.append(f"identify {robot} {log} --friction {kind} --check warn -o fit --json")
                cases[f"{mark}{short}-{kind}"] = lines
    return cases


# --- write ------------------------------------------------------------------------------------------------------------


def chosen_cases(everything: bool, only: str | None) -> dict[str, list[str]]:
    """The cases to run by name: the quick ones, all, or those of a pattern."""
    data = Path(os.environ.get("DYNIDENT_DATA", ROOT.parent / "shared" / "data"))
    both = {**CASES, **real_cases(data)}
    return {
        name.lstrip("*"): lines
        for name, lines in both.items()
        if (fnmatch.fnmatch(name.lstrip("*"), only) if only else everything or name.startswith("*"))
    }


def write(folder: Path, source: Path, everything: bool, only: str | None) -> None:
    """Run the cases with the package of `source` in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source / 'src'}{os.pathsep}{source}",
        "OPENBLAS_NUM_THREADS": "1",
        "COLUMNS": "100",
        "PYTHONHASHSEED": "0",
    }
    arguments = [sys.executable, __file__, "run", str(folder), "--source", str(source)]
    arguments += ["--all"] if everything else []
    arguments += ["--only", only] if only else []
    subprocess.run(arguments, env=environment, check=True)


def run(folder: Path, source: Path, everything: bool, only: str | None) -> None:
    """Run the cases with the package that is on the path, each in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in chosen_cases(everything, only).items():
        room = folder.resolve() / "rooms" / name
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        places = {"examples": str(source / "examples"), "motion": str(room / "motion.yaml")}
        (room / "motion.yaml").write_text(PENDULUM_MOTION)
        began = time.perf_counter()
        with contextlib.chdir(room):
            answers = [answer(fill(line, places), source, room) for line in lines]
            found = {"answers": answers, "fits": fits(room), "files": files(room, source)}
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1, sort_keys=True))
        print(f"{name}: {time.perf_counter() - began:.1f} s, exit {[one['exit'] for one in answers]}", flush=True)


PENDULUM_MOTION = """\
format: dynident motion 1
duration: 5.0
motion:
  kind: fourier
  joints: [joint1, joint2]
  frequency: 0.2
  length: 5.0
  offset: [0.1, -0.2]
  sine: [[0.4, 0.3], [-0.2, -0.15]]
  cosine: [[0.1, -0.2], [-0.1, 0.2]]
"""


def fill(line: str, places: dict[str, str]) -> list[str]:
    """The words of a command, with places filled in."""
    for key, text in places.items():
        line = line.replace(f"{{{key}}}", text)
    return line.split()


def answer(words: list[str], source: Path, room: Path) -> dict[str, Any]:
    """Exit code and what is printed, machine paths left out."""
    if words[0] == "write":
        Path(words[1]).write_text(" ".join(words[2:]).replace("|", "\n") + "\n")
        return {"command": "write", "exit": 0, "stderr": "", "stdout": ""}
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, out, err = called(words)
    texts = [plain(text, source, room) for text in (out, err)]
    found: dict[str, Any] = {"command": plain(" ".join(words), source, room), "exit": code, "stderr": texts[1]}
    with contextlib.suppress(json.JSONDecodeError):
        return {**found, "json": json.loads(texts[0])}
    return {**found, "stdout": texts[0]}


def called(words: list[str]) -> tuple[int, str, str]:
    """The command line in this process: starting one for each command takes longer than the commands."""
    try:
        from dynident.cli.command_line import main
    except ImportError:
        from dynident.cli.command_line import main
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words) or 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except Exception as error:  # a traceback is an answer too, and a bad one
            code = 99
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return int(code), out.getvalue(), err.getvalue()


def plain(text: str, source: Path, room: Path) -> str:
    """A text without machine paths and times."""
    for path, word in ((room, "ROOM"), (source, "SOURCE"), (ROOT.parent, "PARENT")):
        text = text.replace(str(path.resolve()), word)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s) of (CPU|processor) time", "TIME", text)
    return re.sub(r"(wall|took|in) \d+(\.\d+)? (ms|s)\b", r"\1 TIME", text)


def fits(room: Path) -> dict[str, Any]:
    """Stored fits as numbers, read by the package itself."""
    import numpy as np

    import dynident as di

    load = di.load_fit if hasattr(di, "load_fit") else di.load_estimate
    found = {}
    for path in sorted(room.glob("*/fit.yaml")):
        fit = load(path.parent)
        covariance = fit.covariance if hasattr(fit, "covariance") else fit.estimate.covariance
        found[path.parent.name] = {
            "names": list(fit.names),
            "values": np.asarray(fit.beta).tolist(),
            "std": np.asarray(fit.std).tolist(),
            "covariance_trace": float(np.trace(np.nan_to_num(np.asarray(covariance), posinf=0.0))),
            "table": fit.table(),
        }
    return found


def files(room: Path, source: Path) -> dict[str, Any]:
    """What was exported or simulated: hash of the words without machine paths, and the numbers."""
    found = {}
    for path in sorted(room.rglob("*")):
        if path.suffix in (".urdf", ".xml", ".c", ".h", ".csv") or path.name == "out.yaml":
            words, numbers = [], []
            text = path.read_text().replace(str(room), "ROOM")
            for place in (os.path.relpath(source, path.parent), str(source)):  # a file names others beside itself
                text = text.replace(place, "SOURCE")
            for part in re.split(r"(-?\b\d+\.?\d*(?:e[-+]?\d+)?)", text):
                (numbers if re.fullmatch(r"-?\d+\.?\d*(?:e[-+]?\d+)?", part) else words).append(part)
            values = [float(x) for x in numbers]
            found[str(path.relative_to(room))] = {
                "words": hashlib.sha256("".join(words).encode()).hexdigest(),
                "numbers": len(values),
                "sample": values[:: max(1, len(values) // 200)],
            }
    return found


# --- compare ----------------------------------------------------------------------------------------------------------


def compare(before: Path, after: Path) -> int:
    """Print what differs; the number of cases that do."""
    names = sorted(path.name for path in after.glob("*.json"))
    worse = 0
    for name in names:
        if not (before / name).exists():
            print(f"{name}: no reference")
            continue
        old, new = (json.loads((folder / name).read_text()) for folder in (before, after))
        found = [*different_fits(old.pop("fits"), new.pop("fits")), *differences(old, new, "")]
        worse += bool(found)
        print(f"{name.removesuffix('.json')}: {'equal' if not found else f'{len(found)} differences'}")
        for line in found[:12]:
            print(f"    {line}")
    missing = sorted({path.name for path in before.glob("*.json")} - set(names))
    if missing:
        print(f"not compared: {', '.join(missing)}")
    return worse


def different_fits(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Values over the larger of value and standard deviation; standard deviations over themselves."""
    for key in sorted({*old, *new}):
        if key not in old or key not in new:
            yield f"fit {key}: only {'before' if key in old else 'after'}"
            continue
        a, b = old[key], new[key]
        if a["names"] != b["names"]:
            yield f"fit {key}: other parameters {sorted(set(a['names']) ^ set(b['names']))}"
            continue
        off = spread = in_std = 0.0
        for x, y, s, r in zip(a["values"], b["values"], a["std"], b["std"], strict=True):
            if math.isfinite(s) and math.isfinite(r):
                off = max(off, abs(x - y) / max(abs(x), s, 1e-300))
                in_std = max(in_std, abs(x - y) / max(s, 1e-300))
                spread = max(spread, abs(s - r) / max(abs(s), 1e-300))
            elif math.isfinite(s) != math.isfinite(r):
                yield f"fit {key}: a parameter determined in one only"
        if off > VALUES:
            yield f"fit {key}: values by {off:.1e} relative, {in_std:.1e} standard deviations"
        if spread > SPREADS:
            yield f"fit {key}: standard deviations by {spread:.1e}"


def differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """What differs between two answers, place by place."""
    if any(key in path.rsplit("/", 1)[-1] for key in TIMED_KEYS):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if key not in new:
                yield f"{path}/{key}: gone"
            elif key in old:  # keys may be added
                yield from differences(old[key], new[key], f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (x, y) in enumerate(zip(old, new, strict=True)):
            yield from differences(x, y, f"{path}/{k}")
    elif isinstance(old, bool) or isinstance(new, bool) or not isinstance(old, (int, float)):
        if renamed(old) != new:
            yield (
                f"{path}: {str(old)[:300]!r} -> {str(new)[:300]!r}"
                if not isinstance(old, str)
                else text(path, old, new)
            )
    elif not isinstance(new, (int, float)):
        yield f"{path}: {old} -> {new}"
    elif not near(float(old), float(new), SPREADS if any(key in path for key in SPREAD_KEYS) else VALUES):
        yield f"{path}: {old!r} -> {new!r} ({abs(old - new) / max(abs(old), 1e-300):.1e})"


def near(x: float, y: float, allowed: float) -> bool:
    """Whether two numbers are the same up to a relative difference."""
    return x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= allowed * max(abs(x), abs(y)) + 1e-11


def renamed(value: Any) -> Any:
    """A text of before in the words of after."""
    if isinstance(value, str):
        for before, after in RENAMED:
            value = value.replace(before, after)
    return value


def text(path: str, old: str, new: Any) -> str:
    """The first line that differs."""
    lines = zip((renamed(old) + "\n").splitlines(), (str(new) + "\n").splitlines(), strict=False)
    first = next(((a, b) for a, b in lines if a != b), ("", "a longer text"))
    return f"{path}: {first[0][:160]!r} -> {first[1][:160]!r}"


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("write", "run"):
        own = verbs.add_parser(verb)
        own.add_argument("folder", type=Path)
        own.add_argument("--source", type=Path, default=ROOT, help="worktree whose package answers")
        own.add_argument("--all", action="store_true", dest="everything")
        own.add_argument("--only", metavar="PATTERN")
    own = verbs.add_parser("compare")
    own.add_argument("before", type=Path)
    own.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        return 1 if compare(given.before, given.after) else 0
    (write if given.verb == "write" else run)(given.folder, given.source.resolve(), given.everything, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
