"""`dynident live`: identify while samples come."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import complain, warn
from dynident.errors import InputError
from dynident.online.options import LiveOptions
from dynident.options import (
    REQUIRED,
    Answer,
    LockedJoints,
    Quiet,
    given_options,
    option,
    option_fields,
    option_flags,
    plain_options,
)

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.online.sources import Source
    from dynident.online.state import StreamState
    from dynident.robot import Robot

_PLANT = "plant:"
# Options of the simulated machine -> keywords of its source.
_PLANT_OPTIONS = {
    "plant_values": "values",
    "rate": "rate",
    "relative_noise": "relative_noise",
    "plant_payload": "payload",
    "payload_at": "payload_at",
    "seed": "seed",
}
_FRAMES_HZ = 4.0  # of the view


@dataclass(frozen=True, kw_only=True)
class LiveArguments(LiveOptions, LockedJoints, Quiet, Answer):
    """`dynident live` on the command line."""

    sources: tuple[str, ...] = option(
        REQUIRED,
        "udp://127.0.0.1:9870 or tcp://127.0.0.1:9870 (JSON, one sample each), - (JSON lines on standard input), a log "
        "or a ROS 2 bag (several follow each other), or plant:MOTION (the simulated robot)",
        positional=True,
        many=True,
        metavar="SOURCE",
    )
    robot: str | None = option(None, "robot file or bundled name", metavar="ROBOT")
    fit: str | None = option(
        None,
        "an identification of the robot instead: its links are known, and the payload is found",
        metavar="FIT",
    )
    find: str | None = option(
        None,
        "parameters or payload",
        choices=("parameters", "payload"),
        metavar="WHAT",
        shown="payload with --fit, else parameters",
    )
    log_window: str | None = option(
        None,
        "only this part of every log, by its own stamps",
        unit="s",
        flags=("--window",),
        metavar="START:STOP",
    )
    replay_pace: str | None = option(
        None,
        "of a log or the plant: 1 as it was, 10 ten times as fast, or max",
        flags=("--pace",),
        metavar="X",
        shown="max",
    )
    plant_values: str | None = option(
        None, "plant: what the machine really is", flags=("--values",), metavar="SET", shown="the robot's own"
    )
    rate: float | None = option(None, "plant: samples per second", unit="Hz", minimum=0.0, metavar="HZ", shown="500")
    relative_noise: float | None = option(
        None,
        "plant: standard deviation of the torque noise over each joint's RMS torque",
        least=0.0,
        metavar="SHARE",
        shown="0.01",
    )
    plant_payload: str | None = option(
        None,
        "plant: body on the tool",
        unit="kg, m, kg·m²",
        flags=("--payload",),
        metavar="MASS[,CX,CY,CZ[,..]]",
    )
    payload_at: float | None = option(
        None, "plant: time at which it is attached", unit="s", least=0.0, metavar="SECONDS", shown="0"
    )
    seed: int | None = option(None, "plant: of the noise", least=0, metavar="N", shown="0")
    timeout: float = option(
        30.0,
        "real time without a sample after which to give up; 0: wait for ever",
        unit="s",
        least=0.0,
        metavar="SECONDS",
    )
    fresh: bool = option(False, "start fresh: do not continue from the earlier checkpoint", recorded=False)


def run_live(options: LiveArguments) -> int:
    """`dynident live`."""
    from dynident.online.streaming import stream

    if options.fresh and options.checkpoint is None:
        raise InputError("--fresh belongs to --checkpoint F.npz; without it there is no earlier run to leave aside")
    known = _load_known(options)
    watching = not (options.json or options.quiet) and sys.stdout.isatty()
    source = _open_source(options, known)
    try:
        if options.fresh and options.checkpoint is not None:
            _remove_checkpoint(Path(options.checkpoint))
        _announce(source, options)
        stop = threading.Event()
        own = {
            "payload": None if options.find is None else options.find == "payload",
            "stop": stop,
            "clock": "real",
            "interval": 1.0 / _FRAMES_HZ if watching else 1.0,
            "timeout": options.timeout or None,
        }
        states = stream(known, source, **plain_options(options, LiveOptions) | own)
        with _ended_by_signal(stop):
            last = _show_view(states) if watching else _show_lines(states, options)
    finally:
        source.close()
    _finish(last, options)
    return 0


def _remove_checkpoint(path: Path) -> None:
    """Remove the checkpoint of an earlier run, and nothing else that has its name."""
    from dynident.files import is_ours

    if path.exists() and not is_ours(path):
        raise InputError(f"{path}: is no checkpoint of dynident, so that --fresh does not remove it; give another name")
    path.unlink(missing_ok=True)


def _load_known(options: LiveArguments) -> Robot | Fit:
    """The robot, or the identification that was given."""
    from dynident.cli.inputs import load_locked
    from dynident.estimate.storage import load_fit

    if options.fit is None and options.robot is not None:
        if options.find == "payload":
            raise InputError("a payload is found beside known links; give --fit FIT, an identification of the robot")
        return load_locked(options.robot, options)
    if options.fit is None or options.robot is not None:
        raise InputError("live needs either --robot ROBOT or --fit FIT, an identification of the robot")
    if options.locked:
        raise InputError("--locked belongs to --robot; a fit has its own locked joints")
    return load_fit(options.fit)


def _open_source(options: LiveArguments, known: Robot | Fit) -> Source:
    """Where samples come from."""
    from dynident.cli.inputs import parse_window
    from dynident.estimate.fit import Fit
    from dynident.online.sources import open_source

    robot = known.robot if isinstance(known, Fit) else known
    first, *others = options.sources
    is_plant = first.startswith(_PLANT)
    if others and not all(Path(one).exists() for one in options.sources):
        raise InputError(f"{others[0]}: only logs can follow each other; give one SOURCE, or logs that exist")
    if first == "-" or "://" in first or is_plant:
        _refuse(
            options,
            ("log_window",) if is_plant else ("log_window", "replay_pace"),
            f"belongs to logs; {first} has its own time",
        )
    if is_plant:
        return _plant_source(first.removeprefix(_PLANT), robot, options)
    _refuse(options, _PLANT_OPTIONS, f"belongs to plant:MOTION; {first} is another source")
    start, stop = parse_window(options.log_window)
    return open_source(
        list(options.sources) if others else first,
        robot,
        pace=_parse_pace(options.replay_pace),
        columns=options.columns,
        start=start,
        stop=stop,
        listen_all=options.listen_all,
    )


def _refuse(options: LiveArguments, names: Iterable[str], why: str) -> None:
    """Refuse options that would not be used; the message names the first that was given."""
    fields, given = option_fields(LiveArguments), given_options(options)
    for name in names:
        if name in given:
            raise InputError(f"{option_flags(name, fields[name])[0]} {why}")


def _plant_source(motion: str, robot: Robot, options: LiveArguments) -> Source:
    from dynident.cli.inputs import parse_payload
    from dynident.online.sources import simulated_source
    from dynident.plant.simulation import read_motion

    if not motion:
        raise InputError("plant: needs a motion, such as plant:motion.yaml (dynident excite ROBOT -o motion.yaml)")
    if options.listen_all or options.columns is not None:
        raise InputError("--listen-all and --columns have no meaning with plant:MOTION; leave them out")
    all_given = given_options(options)
    given: dict[str, Any] = {word: all_given[name] for name, word in _PLANT_OPTIONS.items() if name in all_given}
    if "payload" in given:
        given["payload"] = parse_payload(given["payload"])
    elif "payload_at" in given:
        raise InputError("--payload-at needs --payload")
    return simulated_source(robot, read_motion(motion, robot), pace=_parse_pace(options.replay_pace), **given)


def _parse_pace(text: str | None) -> float:
    if text is None or text == "max":
        return math.inf
    try:
        pace = float(text)
    except ValueError:
        pace = math.nan
    if not (pace > 0.0 and math.isfinite(pace)):
        raise InputError(f"--pace {text}: expected 1 (as it was), 10 (ten times as fast), another number, or max")
    return pace


def _announce(source: Source, options: LiveArguments) -> None:
    """Where it listens and who can send there, or what is wrong with a log that can be used all the same."""
    from dynident.online.sources.network import is_loopback

    for words in getattr(source, "warnings", ()):
        warn(words)
    host = getattr(source, "host", None)
    if host is None:
        return
    if not options.quiet:
        complain(f"listening at {source.label}")
    if not is_loopback(host):
        warn(f"other machines can send to {source.label}, whoever they are")


@contextmanager
def _ended_by_signal(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C, or a request to end, lets the stream end as if its source had; a second one does not wait."""
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be had
        yield
        return
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.getsignal(name) for name in names}

    def end(number: int, frame: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for name in names:
        signal.signal(name, end)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _show_lines(states: Iterator[StreamState], options: LiveArguments) -> StreamState:
    """States one by one: JSON, plain lines, or nothing."""
    from dynident.report.terminal.live import live_line

    last = None
    for last in states:
        if options.json and (last.final or not options.quiet):
            print(json.dumps(last.as_dict(), allow_nan=False), flush=True)
        elif not (options.json or options.quiet or last.final):
            print(live_line(last), flush=True)
    assert last is not None
    return last


def _show_view(states: Iterator[StreamState]) -> StreamState:
    """States in place, on a terminal."""
    from rich.live import Live

    from dynident.report.terminal import page_console
    from dynident.report.terminal.live import live_view

    console, last = page_console(), None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for last in states:
            live.update(live_view(last, console.height), refresh=True)
    assert last is not None
    return last


def _finish(last: StreamState, options: LiveArguments) -> None:
    from dynident.report.terminal import page_console
    from dynident.report.terminal.live import print_summary

    if not options.json:
        console = page_console()
        print_summary(last, console)
        if options.checkpoint is not None:
            console.print(f"Checkpoint: {options.checkpoint}", soft_wrap=True)
    if last.counters.lost:
        warn(f"{last.counters.lost} samples were lost on the way or overrun")
