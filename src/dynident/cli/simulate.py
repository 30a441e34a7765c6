"""`dynident simulate`: a motion on the MuJoCo plant, logged as a controller would."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.cli.arguments import output_argument, print_answer, robot_argument, warn
from dynident.options import REQUIRED, Answer, LockedJoints, Quiet, option, plain_options
from dynident.plant.options import SimulateOptions


@dataclass(frozen=True, kw_only=True)
class SimulateArguments(SimulateOptions, LockedJoints, Quiet, Answer):
    """`dynident simulate` on the command line."""

    robot: str = robot_argument()
    motion: str = option(
        REQUIRED, "motion file, or a table with t, q1.. (dq1.., ddq1..)", positional=True, metavar="MOTION"
    )
    output: str = output_argument(REQUIRED, "log to write: .csv, .csv.gz, .parquet or .npz", "LOG")


def run_simulate(options: SimulateArguments) -> int:
    """`dynident simulate`."""
    from dynident.cli.inputs import plant_values, robot_of
    from dynident.files import check_target
    from dynident.logs.write import log_ending, write_log
    from dynident.plant.simulation import read_motion, simulate

    log_ending(options.output)  # not only when the run is over
    check_target(options.output)
    robot = robot_of(options)
    given = plain_options(options, SimulateOptions) | plant_values(options)
    run = simulate(robot, read_motion(options.motion, robot), **given)
    write_log(run.log, options.output)

    def show() -> None:
        worst, place = max((far, place) for place, far in enumerate(run.tracking.tolist()))
        print(f"{options.output}: {len(run.log)} samples at {run.log.rate:.6g} Hz, {run.log.duration:.6g} s")
        where = f"{worst:.3g} {robot.moving_joints[place].unit} (joint {robot.joint_names[place]})"
        print(f"largest distance from the motion: {where}")
        if len(robot.joints) > len(robot.active):
            print(f"largest gap of the loops: {run.loop_gap:.3g} rad or m")
        for warning in run.warnings:
            warn(warning)

    return print_answer(options, lambda: {"robot": robot.name, "log": str(options.output), **run.as_dict()}, show)
