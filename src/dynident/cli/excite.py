"""`dynident excite`: from options to a motion file."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, print_answer, robot_argument, warn
from dynident.errors import InputError
from dynident.motion.options import FILE_RATE, ExcitationOptions
from dynident.options import REQUIRED, Answer, LockedJoints, Quiet, option, plain_options

if TYPE_CHECKING:
    from dynident.motion.excitation import ExcitingMotion
    from dynident.motion.options import SearchProgress
    from dynident.robot import Robot

_PER_JOINT = ("noise", "rest_velocity", "acceleration", "max_velocity", "max_effort")


@dataclass(frozen=True, kw_only=True)
class ExciteArguments(ExcitationOptions, LockedJoints, Quiet, Answer):
    """`dynident excite` on the command line."""

    robot: str = robot_argument()
    output: str = output_argument(REQUIRED, "file for the motion", "F.yaml")
    extend: str | None = option(
        None, "data that is there already: the folder that identify wrote, or information (.npz)", metavar="FIT"
    )
    csv: str | None = option(None, "samples as t,q1..,dq1..,ddq1..", metavar="F.csv")
    ros: str | None = option(None, "samples as a ROS 2 JointTrajectory message", metavar="F.json")
    report: str | None = option(None, "page with limits, curves, space and standard deviations", metavar="F.html")


def run_excite(options: ExciteArguments) -> int:
    """`dynident excite`."""
    from dynident.cli.inputs import progress_bar, robot_of
    from dynident.files import write_text
    from dynident.motion import optimize_excitation, write_csv, write_ros

    _check_targets(options)
    robot = robot_of(options)
    chosen = _excitation_options(options, robot)
    with progress_bar(options.quiet or options.json) as show:

        def report(state: SearchProgress) -> None:
            if show is not None:
                best = f"best criterion {state.best:.4g} (lower is better) after {state.evaluations} evaluations"
                show(f"searching: {best}", state.step, state.steps)

        motion = optimize_excitation(robot, **chosen | {"progress": report})
    motion.save(options.output)
    if options.csv:
        numbers = tuple(name.removeprefix("q") for name in robot.position_names)
        write_csv(motion.trajectory, options.csv, options.rate or FILE_RATE, numbers)
    if options.ros:
        write_ros(motion.trajectory, options.ros, options.rate or FILE_RATE)
    if options.report:
        from dynident.report.excitation_design import motion_html

        write_text(Path(options.report), motion_html(motion, robot, command=command("excite", options)))
    print_answer(options, motion.as_dict, lambda: _print(motion, robot, options))
    for warning in motion.warnings:
        warn(warning)
    undetermined = sum(map(isinf, motion.std))
    if undetermined:
        warn(
            f"this motion leaves {undetermined} of {len(motion.names)} parameters undetermined; give it a longer "
            "--duration or more --harmonics"
        )
    if motion.interrupted:
        warn("interrupted; the best motion so far was written")
    return 0


def _check_targets(options: ExciteArguments) -> None:
    """Before minutes of work, not after."""
    from dynident.files import check_target

    paths = [path for path in (options.output, options.csv, options.ros, options.report) if path is not None]
    for path in paths:
        check_target(path)
    if Path(options.output).suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{options.output}: a motion file must end in .yaml; --csv and --ros write other formats")
    if len({Path(path).resolve() for path in paths}) < len(paths):
        raise InputError(f"-o, --csv, --ros and --report would write the same file {options.output}; give each its own")


def _excitation_options(options: ExciteArguments, robot: Robot) -> dict[str, Any]:
    """Keywords of `optimize_excitation`: texts by joint become numbers, a fit becomes its information."""
    from dynident.cli.inputs import parse_by_joint, parse_positions

    texts: Any = options  # what a command line gives is text where Python takes numbers, lists and mappings
    chosen = plain_options(options, ExcitationOptions)
    if texts.noise is not None and Path(texts.noise).exists():
        from dynident.estimate.storage import load_fit

        chosen["noise"] = load_fit(texts.noise)
    for name in _PER_JOINT:
        if isinstance(chosen[name], str):
            chosen[name] = _per_joint(chosen[name], f"--{name.replace('_', '-')}")
    if options.position_range is not None:
        text, example = texts.position_range, "joint=LOWER:UPPER, such as q4=-1:0.5, or one range for all joints"
        by_joint = "=" in text
        ranges = parse_by_joint(text if by_joint else f"all={text}", "--position-range", _range, example)
        chosen["position_range"] = ranges if by_joint else ranges["all"]
    chosen["start"] = parse_positions(texts.start, "--start") if texts.start else None
    boxes = [_numbers(text, "--box") for text in texts.boxes]
    for text, box in zip(texts.boxes, boxes, strict=True):
        if len(box) != 6:
            raise InputError(f"--box {text}: expected six numbers, the lower corner and the upper one")
    chosen["boxes"] = [[box[:3], box[3:]] for box in boxes]
    if options.extend is not None:
        from dynident.pipeline.known_information import known_options

        # Noise and rows per second belong together: where the data says both, --rate is that of the files only.
        chosen |= known_options(options.extend, robot)
    return chosen


def _per_joint(text: str, option: str) -> float | list[float] | dict[str, float]:
    """One number, one per joint in their order, or numbers by joint."""
    from dynident.cli.inputs import parse_by_joint, parse_number

    if "=" in text:
        return parse_by_joint(text, option, parse_number, "joint=number, such as q4=1.5")
    numbers = _numbers(text, option)
    return numbers[0] if len(numbers) == 1 else numbers


def _range(text: str) -> float | tuple[float, float]:
    """Lower and upper end from `-1:0.5`, or one number for both sides of zero."""
    from dynident.cli.inputs import parse_number

    lower, colon, upper = text.partition(":")
    return (parse_number(lower), parse_number(upper)) if colon else parse_number(lower)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text}: expected numbers separated by commas") from None


def _print(motion: ExcitingMotion, robot: Robot, options: ExciteArguments) -> None:
    """The page for people: what was found, what is left of the limits, the widest intervals."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from dynident.report.excitation_forecast import assumption_sentences, forecast_sentence, widest_first
    from dynident.report.terminal import page_console
    from dynident.report.text import percent
    from dynident.signals.observations import WIDEST_SHARE

    console = page_console()
    console.print(
        f"{robot.name}: {motion.duration:g} s, {motion.trajectory.harmonics} harmonics of "
        f"{motion.trajectory.frequency:g} Hz, at rest at both ends"
    )
    name = "log det" if motion.criterion == "determinant" else motion.criterion
    facts = {name: motion.value, "condition": motion.condition, "log det": motion.log_determinant}
    found = ", ".join(f"{key} {value:.5g}" for key, value in facts.items())
    console.print(f"{found}; {motion.evaluations} evaluations in {motion.seconds:.1f} s")
    console.print(f"Closest to the limits: {'; '.join(motion.closest.values())}")
    slowest = motion.bandwidth / WIDEST_SHARE
    console.print(f"Bandwidth of the columns: {motion.bandwidth:.3g} Hz; record at {slowest:.0f} Hz or more")
    console.print(f"{forecast_sentence(motion)}.")
    for sentence in assumption_sentences(motion):
        console.print(sentence)
    title = "\nLargest predicted standard deviations"
    table = Table(box=SIMPLE_HEAD, title=title, title_style="bold", title_justify="left")
    heads = ("parameter", "std", "of its value", *(() if motion.before is None else ("before",)))
    for head in heads:
        table.add_column(head, justify="left" if head == "parameter" else "right")
    for i in widest_first(motion)[:6]:
        known = not isnan(motion.values[i])
        row = [motion.names[i], f"{motion.std[i]:.3g} {motion.units[i]}"]
        row.append(percent(float(motion.relative_std[i])) if known else "no value")
        table.add_row(*row, *([] if motion.before is None else [f"{motion.before[i]:.3g}"]))
    console.print(table)
    console.print(f"Motion: {options.output}", soft_wrap=True)
    if options.report:
        console.print(f"Report: {options.report}", soft_wrap=True)
