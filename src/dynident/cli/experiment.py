"""What all special experiments share on the command line: the machine, the folder, the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dynident.cli.arguments import command, warn
from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.experiments.options import PlantOptions
from dynident.options import (
    REQUIRED,
    Answer,
    LockedJoints,
    Quiet,
    given_options,
    option,
    option_fields,
    option_flags,
)

if TYPE_CHECKING:
    from dynident.experiments.bench import Bench, Bounds
    from dynident.experiments.protocol import Experiment, ExperimentResult
    from dynident.logs import Log
    from dynident.options import Progress
    from dynident.plant import Motors, Plant
    from dynident.robot import Robot

ResultT = TypeVar("ResultT", bound="ExperimentResult")

PLANT_SET = "plant"  # value set of a bundled robot that a machine could have
_RUNS, _RESULT, _REPORT = "runs", "result.json", "report.html"
SIMULATED = tuple(name for name in option_fields(PlantOptions) if name != "plant")


@dataclass(frozen=True, kw_only=True)
class ExperimentArguments(PlantOptions, LockedJoints, Quiet, Answer):
    """What all experiments have on the command line."""

    robot: str = option(REQUIRED, "robot file or bundled name", positional=True, metavar="ROBOT")
    output: str | None = option(
        None,
        "folder for the runs (OUT/runs), result.json and report.html",
        flags=("-o", "--output"),
        metavar="OUT",
        shown="nothing is written",
    )
    fresh: bool = option(False, "start fresh: remove the earlier run in OUT first", recorded=False)


def refuse_given(options: Any, names: Iterable[str], why: str) -> None:
    """Refuse options that would not be used; the message names the first that was given."""
    fields, given = option_fields(type(options)), given_options(options)
    for name in names:
        if name in given:
            raise InputError(f"{option_flags(name, fields[name])[-1]} {why}")


def split_names(joints: Any) -> list[str] | None:
    """Joints from `q2,q3`."""
    return None if joints is None else [part.strip() for part in joints.split(",") if part.strip()]


def parse_pose(text: str, robot: Robot, flag: str = "--pose") -> list[float]:
    """A pose (n_moving,) from `q2=1.2`, other joints at zero."""
    from dynident.cli.inputs import parse_positions

    given = parse_positions(text, flag)
    for name in given:
        if name not in robot.joint_names and name not in robot.position_names:
            raise UnknownNameError(f"joint in {flag}", name, (*robot.position_names, *robot.joint_names))
    pairs = list(zip(robot.joint_names, robot.position_names, strict=True))
    for name, variable in pairs:
        if name != variable and name in given and variable in given:
            raise InputError(f"{flag}: {name} and {variable} are the same joint; give it once")
    return [given.get(name, given.get(variable, 0.0)) for name, variable in pairs]


def parse_levels(text: str | None, flag: str, expected: str) -> list[float] | dict[str, list[float]] | None:
    """Numbers from ``0.1,0.5,1`` for every joint, or ``q5=1:2:3,q6=0.8:2.4``."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if parts and "=" not in text:
            return [float(number) for part in parts for number in part.split(":")]
        pairs = [part.partition("=") for part in parts]
        found = {name.strip(): [float(number) for number in numbers.split(":")] for name, _, numbers in pairs}
    except ValueError:
        found = {}
    if not found:
        raise InputError(f"{flag} {text}: expected {expected}")
    return found


def true_values(options: PlantOptions, robot: Robot) -> str | None:
    """Name of the value set that the simulated machine has; None for the robot's own values."""
    if options.plant_values is not None:
        robot.value_set(options.plant_values)  # which refuses an unknown name
        return options.plant_values
    return PLANT_SET if PLANT_SET in robot.values else None


def machine(
    options: PlantOptions,
    robot: Robot,
    *,
    rate: float,
    encoder: float = 0.0,
    motors: Motors | None = None,
    step: float | None = None,
) -> Plant:
    """The machine of the options: one of the user's own, or the MuJoCo plant.

    Args:
        options: Which.
        robot: The robot.
        rate: Commands per second, unless given [Hz].
        encoder: Counts per turn (or meter) unless given; 0 for exact positions.
        motors: Electrical model, for voltages.
        step: Longest time step of the physics [s]; default the plant's own.
    """
    import numpy as np

    from dynident.cli.inputs import own_plant, parse_effects, parse_payload
    from dynident.plant import Breakaway, MujocoPlant, Sensors
    from dynident.plant.simulation import TURN

    if options.plant is not None:
        refuse_given(options, SIMULATED, "shapes the simulated machine; leave it out with --plant")
        return own_plant(options.plant, robot)
    counts = encoder if options.encoder is None else options.encoder
    turns = [1.0 if robot.joints[robot.active[i]].kind == "prismatic" else TURN for i in robot.moving]
    resolution = np.array(turns) / counts if counts else np.zeros(len(turns))
    return MujocoPlant(
        robot,
        true_values(options, robot),
        sample_time=1.0 / (options.rate or rate),
        step=step,
        motors=motors,
        breakaway=None if options.breakaway is None else Breakaway(options.breakaway),
        effects=parse_effects(options.effects),
        sensors=Sensors(resolution=resolution, torque_noise=options.noise or 0.0),
        payload=parse_payload(options.payload),
        seed=options.noise_seed or 0,
    )


@contextmanager
def bench(options: ExperimentArguments, plant: Plant, **how: Any) -> Iterator[Bench]:
    """The bench of an experiment; an error on it tells where the runs so far are."""
    from dynident.cli.inputs import progress_bar
    from dynident.experiments.bench import Bench
    from dynident.files import check_results

    folder = None if options.output is None else Path(options.output) / _RUNS
    if folder is not None:
        check_results(folder.parent, (_RESULT, _REPORT))
    if folder is not None and options.fresh:
        _remove_earlier(folder)
    with progress_bar(options.quiet or options.json) as progress:
        shown: Progress | None = progress
        made = Bench(plant, folder=folder, progress=shown, **how)
        try:
            yield made
        except DynidentError as error:
            kept = sum(len(run.time) > 0 for run in made.runs)
            if folder is None or not kept:
                raise
            error.args = (f"{error}; what was recorded so far is in {folder}",)  # whatever its class was made from
            raise
        except KeyboardInterrupt:
            if folder is None or not any(len(run.time) for run in made.runs):
                raise
            raise KeyboardInterrupt(f"what was recorded so far is in {folder}") from None


_RUN_NAME = re.compile(r"\d{3,}-.*\.csv")  # of `Bench`


def _remove_earlier(folder: Path) -> None:
    """Remove the runs of an earlier experiment, and its answer, which beside new runs would look like theirs.

    Files that no experiment has written stay; runs beside them are refused when they begin.
    """
    from dynident.files import is_ours, remove_leftovers

    try:
        for run in folder.glob("*.csv"):
            if _RUN_NAME.fullmatch(run.name) and run.open("rb").read(2) == b"t,":
                run.unlink()
        remove_leftovers(folder)
        for name in (_RESULT, _REPORT):
            if is_ours(folder.parent / name):
                (folder.parent / name).unlink()
    except OSError as error:
        raise InputError(f"{folder.parent}: cannot be cleared ({error.strerror})") from None


def perform(
    options: ExperimentArguments, experiment: Experiment[Any, Any, ResultT], plant: Plant, bounds: Bounds | None = None
) -> ResultT:
    """Perform an experiment on a machine, with runs and progress as the options say."""
    with bench(options, plant, bounds=bounds) as made:
        return experiment.perform(made)


def read_logs(options: Any, robot: Robot) -> list[Log]:
    """Logs of `--from`."""
    from dynident.cli.inputs import parse_window
    from dynident.logs import read_log

    start, stop = parse_window(options.window)
    return [
        read_log(path, robot, columns=options.columns, topics=options.topic, start=start, stop=stop)
        for path in options.logs
    ]


def show_result(verb: str, options: ExperimentArguments, found: ExperimentResult) -> int:
    """Write and print what an experiment found."""
    from dynident.report.experiments import experiment_html, experiment_text

    def page() -> str:
        return experiment_html(found, command(verb, options))

    return show_answer(options, found.as_dict(), lambda: experiment_text(found), page)


def show_answer(
    options: Any,
    found: dict[str, Any],
    text: Callable[[], str],
    page: Callable[[], str] | None = None,
) -> int:
    """Write and print the answer.

    Args:
        options: output, json, quiet.
        found: The JSON object.
        text: The page for people, as text.
        page: The HTML page for OUT/report.html.
    """
    from dynident.files import check_results, write_together
    from dynident.report.text import print_prose

    written = ""
    if options.output is not None:
        out = Path(options.output)
        check_results(out, (_RESULT, _REPORT))
        texts = {_RESULT: json.dumps(found, indent=1, allow_nan=False) + "\n"}
        written = f"Result: {out / _RESULT}"
        if page is not None:
            texts[_REPORT] = page()
            written += f"\nReport: {out / _REPORT}"
        write_together(out, {name: content.encode() for name, content in texts.items()})
    if options.json:
        print(json.dumps(found, allow_nan=False))
        return 0
    if not options.quiet:
        print_prose(text())
        print(written, end="\n" if written else "")
    for warning in found["warnings"]:
        warn(warning)
    return 0
