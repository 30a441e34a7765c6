"""`dynident sample`: models drawn from the posterior, for domain randomization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import complain, output_argument, print_answer
from dynident.cli.drives import PdGains, robot_with_gains
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LogReading, Quiet, option

if TYPE_CHECKING:
    from dynident.drives.coverage import Coverage


@dataclass(frozen=True, kw_only=True)
class SampleArguments(PdGains, LogReading, Quiet, Answer):
    """`dynident sample` on the command line."""

    fit: str = option(
        REQUIRED,
        "drives.yaml, fit.yaml, or the folder that drives or identify wrote",
        positional=True,
        metavar="FIT",
    )
    samples: int = option(1000, "how many models are drawn", flags=("-n", "--samples"), metavar="N")
    output: str | None = output_argument(None, "folder for models, samples.npz, ranges.yaml and events", "OUT")
    format: str = option("mjcf", "format of the models", choices=("mjcf", "urdf", "none"))
    seed: int = option(0, "of the random numbers", least=0, metavar="N")
    widen: float = option(1.0, "factor of all standard deviations", metavar="FACTOR")
    unidentified: float = option(
        0.05, "relative standard deviation of masses that torque leaves open, of a fit", metavar="SHARE"
    )
    level: float = option(0.9, "share of the samples in ranges and bands", metavar="SHARE")
    timestep: float = option(
        0.005, "physics step of Isaac Lab and mjlab, in which they count delays", unit="s", metavar="SECONDS"
    )
    from_scratch: bool = option(False, "write new files, even where the file of the robot could be kept and edited")
    validation: tuple[str, ...] = option(
        (), "held-out logs; how often reality lies within the band of the samples", many=True, metavar="LOG"
    )


def run_sample(options: SampleArguments) -> int:
    """`dynident sample`."""
    import dataclasses

    from dynident.cli.export import load_result
    from dynident.drives.sampling import sample_models
    from dynident.export.samples import write_samples
    from dynident.report.text import print_prose

    if options.output is None and not options.validation:
        raise InputError("sample needs a folder to write to (-o OUT), logs to compare with (--validation LOG), or both")
    result, _ = load_result(options.fit)
    models = sample_models(
        result, options.samples, seed=options.seed, widen=options.widen, unidentified=options.unidentified
    )
    robot = robot_with_gains(models.robot, options)
    if robot is not models.robot:
        moving = list(robot.moving)
        assert robot.drive.kp is not None
        assert robot.drive.kd is not None
        models = dataclasses.replace(models, robot=robot, kp=robot.drive.kp[moving], kd=robot.drive.kd[moving])
    models.ranges(options.level)  # a level that is no share is refused before any work
    coverage = _coverage(result, models, options) if options.validation else None
    written = None
    if options.output is not None:
        written = write_samples(
            models,
            options.output,
            form=options.format,
            level=options.level,
            timestep=options.timestep,
            coverage=coverage,
            from_scratch=options.from_scratch,
        )

    def answer() -> dict[str, Any]:
        ranges = zip(models.names, models.ranges(options.level).tolist(), strict=True)
        return {
            "robot": models.robot.name,
            "samples": len(models),
            "seed": models.seed,
            "level": options.level,
            "ranges": {name: pair for name, pair in ranges if pair[1] > pair[0]},
            "coverage": None if coverage is None else coverage.to_dict(),
            "files": [] if written is None else [str(path) for path in written.files],
            "models": 0 if written is None else written.models,
            "notes": list(models.notes),
        }

    def show() -> None:
        print_prose(f"{len(models)} samples of {models.robot.name}, seed {models.seed}")
        for note in models.notes:
            print_prose(f"  {note}")
        if coverage is not None:
            print_prose(str(coverage))
        if written is not None:
            print_prose(f"Written to {written.folder}: {', '.join(path.name for path in written.files)}")
            if written.first is not None:
                print_prose(f"{written.models} models in {written.folder / 'models'}; the first was {_proof(written)}")
            if not any(path.name.startswith("events") for path in written.files):
                complain("events are not written: a drive turns several joints, and simulators randomize single ones")

    return print_answer(options, answer, show)


def _proof(written: Any) -> str:
    return str(written.first.agreement)


def _coverage(result: Any, models: Any, options: SampleArguments) -> Coverage:
    """By replay where the logs have commands, by torque otherwise."""
    from dynident.cli.inputs import logs_of
    from dynident.drives.coverage import coverage_of_replays, coverage_of_torque
    from dynident.drives.identification import DriveEstimate
    from dynident.drives.replay import commands_of

    logs = logs_of(options.validation, models.robot, options, "validation")
    with_commands = [next(iter(log.blocks())).has("target", models.robot) for log in logs]
    if isinstance(result, DriveEstimate) or all(with_commands):
        stretches = [stretch for log in logs for stretch in commands_of(log, models.robot)]
        return coverage_of_replays(models, stretches, options.level)
    return coverage_of_torque(models, result, logs, options.level)
