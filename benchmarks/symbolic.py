"""Closed forms: how long a person waits for the equations of a robot."""

from __future__ import annotations

import time

import dynident as di
from harness import seconds


def timed(job) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> None:
    import sympy  # noqa: F401 - loaded before the clock starts: its import is not our time

    print("Symbolic models (first call)")
    for name in ("puma560", "sr400", "panda"):
        robot = di.load_robot(name)
        for what, job, limit in (
            ("mass matrix", lambda robot=robot: di.symbolic.symbolic_model(robot, "rigid,Ia").M, 10.0),
            (
                "regressor, as polynomials",
                lambda robot=robot: di.symbolic.symbolic_model(robot, "rigid,Ia").form.regressor,
                10.0,
            ),
            ("regressor, as SymPy matrix", lambda robot=robot: di.symbolic.symbolic_model(robot, "rigid,Ia").W, 60.0),
            ("base parameters", lambda robot=robot: di.symbolic.symbolic_base(robot, "rigid,Ia").K, 10.0),
            ("inverse dynamics as Python", lambda robot=robot: di.symbolic.symbolic_model(robot).python("tau"), 2.0),
        ):
            print(f"{name + ', ' + what:44}{seconds(timed(job)):>11}   (aim: {limit:g} s)")


if __name__ == "__main__":
    main()
