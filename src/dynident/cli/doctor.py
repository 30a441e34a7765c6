"""`dynident doctor`: what is installed, where compiled code is kept, and a self-test; for reports of defects."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynident._version import __version__
from dynident.cli.arguments import print_answer
from dynident.options import Answer

_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_DEVELOPERS = ("test", "docs")  # extras of which no verb makes use


@dataclass(frozen=True, kw_only=True)
class DoctorArguments(Answer):
    """`dynident doctor` on the command line."""


def run_doctor(options: DoctorArguments) -> int:
    """`dynident doctor`; 1 where the self-test finds something wrong."""
    answer = installation() | {"self_test": self_test()}
    print_answer(options, lambda: answer, lambda: _print(answer))
    return 0 if all(one["passed"] for one in answer["self_test"]) else 1


# ----------------------------------------------------------------------------------------------------------------------
# What is there.


def installation() -> dict[str, Any]:
    """Versions, packages, processor and compile cache."""
    return {
        "dynident": __version__,
        "sources": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": _packages(),
        "processor": _processor(),
        "cache": _cache(),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("DYNIDENT_")},
    }


def _packages() -> list[dict[str, Any]]:
    """Packages that dynident needs or makes use of: name, extra (none for those that it needs), version or None."""
    found: dict[str, dict[str, Any]] = {}
    try:
        requirements = importlib.metadata.requires("dynident") or []
    except importlib.metadata.PackageNotFoundError:  # sources on a path, which nobody has installed
        return []
    extras = [_EXTRA.search(requirement) for requirement in requirements]
    sizes = Counter(extra[1] for extra in extras if extra)
    # A package of several extras counts for the smallest of them.
    for requirement, extra in sorted(
        zip(requirements, extras, strict=True), key=lambda one: sizes[one[1][1]] if one[1] else 0
    ):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        if extra is None or extra[1] not in _DEVELOPERS:
            version = None
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                version = importlib.metadata.version(name)
            found.setdefault(name, {"name": name, "extra": extra[1] if extra else None, "version": version})
    return sorted(found.values(), key=lambda one: (one["extra"] or "", one["name"]))


def _processor() -> dict[str, Any]:
    """The processor as LLVM sees it; its features shape compiled code."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"machine": platform.machine(), "cores": usable, "name": None, "features": []}
    with contextlib.suppress(ImportError):
        from dynident.dynamics.jit.vector_ir import cpu

        name, features = cpu()
        own = sorted(one[1:] for one in features.split(",") if one.startswith("+"))
        found |= {"name": name, "features": own}
    return found


def _cache() -> dict[str, Any]:
    """The compile cache, and what computes."""
    from dynident.dynamics.jit.code_cache import cache_folder, distrust
    from dynident.dynamics.jit.numpy_kernel import chosen_backend

    folder = cache_folder()
    entries = [] if folder is None else [entry.stat().st_size for entry in folder.glob("*.o")]
    why = "switched off by DYNIDENT_CACHE" if folder is None else distrust(folder)
    return {
        "backend": chosen_backend(),
        "folder": None if folder is None else str(folder),
        "unused_because": why or None,
        "entries": len(entries),
        "bytes": sum(entries),
    }


# ----------------------------------------------------------------------------------------------------------------------
# Self-test: truths from Pinocchio and NIST, which `tools/self_test_truths.py` of the sources writes.


def self_test() -> list[dict[str, Any]]:
    """Compute what is known: name, passed, what was found, seconds."""
    import json
    from importlib.resources import files

    truths = json.loads((files("dynident.cli") / "self_test.json").read_text(encoding="utf-8"))
    tests: dict[str, Callable[[dict[str, Any]], tuple[bool, str]]] = {
        "torque against Pinocchio": lambda known: _torque(known["dynamics"]),
        "base parameters": lambda known: _base_parameters(known["dynamics"]),
        "certified regression": lambda known: _regression(known["regression"]),
        "demo": lambda known: _demo(known["demo"]),
    }
    found = []
    for name, test in tests.items():
        begin = time.perf_counter()
        try:
            passed, words = test(truths)
        except Exception as error:  # whatever is wrong with an installation, the report is to say it
            passed, words = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
        seconds = round(time.perf_counter() - begin, 3)
        found.append({"name": name, "passed": bool(passed), "found": words, "seconds": seconds})
    return found


def _torque(known: dict[str, Any]) -> tuple[bool, str]:
    """Inverse dynamics of bundled robots: of few samples by NumPy, of many by compiled code, and by the regressor."""
    import numpy as np

    import dynident as di
    from dynident.dynamics.kernels import WORTH_COMPILING

    worst = 0.0
    for name, truth in known.items():
        robot, wanted = di.load_robot(name), np.array(truth["torque"])
        state = [np.array(truth[key]) for key in ("q", "dq", "ddq")]
        many = [np.tile(one, (WORTH_COMPILING // len(one) + 1, 1)) for one in state]
        by_columns = di.regressor(robot, state[0], state[1], state[2], "rigid") @ di.parameters(robot, "rigid")
        by_code = di.inverse_dynamics(robot, many[0], many[1], many[2], "rigid")[-len(wanted) :]
        for torque in (di.inverse_dynamics(robot, state[0], state[1], state[2], "rigid"), by_columns, by_code):
            worst = max(worst, float(np.abs(torque - wanted).max() / np.abs(wanted).max()))
    return worst < 1e-9, f"largest difference {worst:.1e} of the largest torque; allowed 1e-9"


def _base_parameters(known: dict[str, Any]) -> tuple[bool, str]:
    """How many combinations of the links' parameters torque depends on."""
    import dynident as di

    found = {name: di.base_parameters(di.load_robot(name), "rigid").n for name in known}
    wanted = {name: truth["base_parameters"] for name, truth in known.items()}
    wrong = [f"{name} {n}, not {wanted[name]}" for name, n in found.items() if n != wanted[name]]
    return not wrong, "; ".join(wrong) or ", ".join(f"{name} {n}" for name, n in found.items())


def _regression(known: dict[str, Any]) -> tuple[bool, str]:
    """Least squares with certified values and standard deviations."""
    import numpy as np

    from dynident.information import accumulate_rows

    W, y = np.array(known["columns"]), np.array(known["observed"])
    solved = accumulate_rows(W[:, None, :], y[:, None], [f"b{i}" for i in range(W.shape[1])]).solve(weighting="equal")
    errors = [
        float(np.abs(own / np.array(known[key]) - 1.0).max())
        for own, key in ((solved.values, "values"), (solved.std, "std"))
    ]
    return max(errors) < 1e-7, f"{known['source']}: {max(errors):.1e} off the certified values; allowed 1e-7"


def _demo(truth: dict[str, float]) -> tuple[bool, str]:
    """A log of the demo: values within their standard deviations, and the fit comes back from its files."""
    import tempfile

    import numpy as np

    import dynident as di
    from dynident.cli.run import demo_folder

    robot = di.load_robot(demo_folder() / "arm.yaml")
    log = di.read_log(demo_folder() / "fourier_1.csv.gz", robot)
    fit = di.identify(robot, log, terms="rigid,Ia,Fv,Fc,Fo", check="off")
    chi = np.array([truth.get(column.name, 0.0) for column in fit.base.columns])
    errors = (fit.beta - fit.base.K @ chi) / fit.std
    rms = float(np.sqrt(np.mean(errors**2)))
    with tempfile.TemporaryDirectory() as folder:
        fit.save(folder)
        back = di.load_fit(folder)
    same = bool((back.beta == fit.beta).all() and (back.covariance == fit.covariance).all())
    words = f"{len(errors)} parameters, errors of {rms:.2f} standard deviations rms; stored and read back"
    return 0.5 < rms < 2.0 and same, words if same else f"{words} differently"


# ----------------------------------------------------------------------------------------------------------------------


def _print(answer: dict[str, Any]) -> None:
    from dynident.report.text import print_prose

    cache, processor = answer["cache"], answer["processor"]
    print(f"dynident {answer['dynident']}, Python {answer['python']}, {answer['system']}")
    print_prose(f"Sources: {answer['sources']}")
    groups: dict[str, list[str]] = {}
    for package in answer["packages"]:
        version = package["version"] or "not installed"
        groups.setdefault(package["extra"] or "needed", []).append(f"{package['name']} {version}")
    for extra, packages in groups.items():
        print_prose(f"{extra.capitalize() if extra == 'needed' else f'[{extra}]'}: {', '.join(packages)}")
    print_prose(
        f"Processor: {processor['name'] or processor['machine']}, {processor['cores']} cores to be used; "
        f"{' '.join(processor['features']) or 'features not known without llvmlite'}"
    )
    where = cache["folder"] or "none"
    state = cache["unused_because"] or f"{cache['entries']} entries, {cache['bytes'] / 1e6:.1f} MB"
    print_prose(f"Compiled code: {where} ({state}); equations by {cache['backend']}")
    for name, value in answer["environment"].items():
        print_prose(f"{name}={value}")
    print()
    for one in answer["self_test"]:
        print_prose(f"{'ok  ' if one['passed'] else 'FAIL'} {one['name']} ({one['seconds']:.2f} s): {one['found']}")
    if not all(one["passed"] for one in answer["self_test"]):
        print("This installation computes wrongly; please report it with this page.", file=sys.stderr)
