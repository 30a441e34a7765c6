"""`dynident live`: identify while samples come."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.errors import InputError

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.online.sources import Source
    from dynident.online.state import StreamState
    from dynident.robot import Robot

_PLANT = "plant:"
_PLANT_OPTIONS = ("values", "rate", "noise", "payload", "payload_at", "seed")
_FRAMES = 4.0  # of the view, per second


def run_live(options: Namespace) -> int:
    """`dynident live`.

    Args:
        options: See `live_arguments`.
    """
    from dynident.online.streaming import stream

    if options.fresh and options.checkpoint is None:
        raise InputError("--fresh belongs to --checkpoint F.npz; there is nothing to start anew from without it")
    known = _known(options)
    given = _identification(options)
    watching = not (options.json or options.quiet) and sys.stdout.isatty()
    source = _source(options, known)
    try:
        if options.fresh and options.checkpoint is not None:
            Path(options.checkpoint).unlink(missing_ok=True)
        _announce(source, options)
        stop = threading.Event()
        states = stream(
            known,
            source,
            stop=stop,
            clock="real",
            interval=1.0 / _FRAMES if watching else 1.0,
            timeout=options.timeout or None,
            duration=options.duration,
            count=options.count,
            checkpoint=options.checkpoint,
            checkpoint_every=options.checkpoint_every,
            **given,
        )
        with _ended_by_signal(stop):
            last = _show_view(states) if watching else _show_lines(states, options)
    finally:
        source.close()
    _finish(last, options)
    return 0


def _known(options: Namespace) -> Robot | Fit:
    """The robot, or the identification that was given."""
    from dynident.cli.inputs import parse_positions
    from dynident.estimate.storage import load_fit
    from dynident.robot import load_robot

    if (options.robot is None) == (options.fit is None):
        raise InputError("live needs either --robot ROBOT or --fit FIT, an identification of the robot")
    if options.fit is not None:
        if options.locked:
            raise InputError("--locked belongs to --robot; a fit has its own locked joints")
        return load_fit(options.fit)
    if options.find == "payload":
        raise InputError("a payload is found beside known links; give --fit FIT, an identification of the robot")
    robot = load_robot(options.robot)
    locked = parse_positions(options.locked)
    return robot.lock(**locked) if locked else robot


def _identification(options: Namespace) -> dict[str, Any]:
    """Options of the estimator that were given; defaults stay where they are defined."""
    names = ("terms", "band", "forgetting", "memory")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.find is not None:
        given["payload"] = options.find == "payload"
    return given


def _source(options: Namespace, known: Robot | Fit) -> Source:
    """Where samples come from."""
    from dynident.cli.inputs import parse_window
    from dynident.estimate.fit import Fit
    from dynident.online.sources import open_source

    robot = known.robot if isinstance(known, Fit) else known
    first, *others = options.sources
    is_file = not (first == "-" or "://" in first or first.startswith(_PLANT))
    if others and not all(Path(one).exists() for one in options.sources):
        raise InputError(f"{others[0]}: only logs can follow each other; give one SOURCE, or logs that exist")
    if not is_file:
        for name in ("window", *(("speed",) if not first.startswith(_PLANT) else ())):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} belongs to logs; {first} has its own time")
    if first.startswith(_PLANT):
        return _plant(first.removeprefix(_PLANT), robot, options)
    for name in _PLANT_OPTIONS:
        if getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} belongs to plant:MOTION; {first} is another source")
    start, stop = parse_window(options.window)
    return open_source(
        options.sources if others else first,
        robot,
        speed=_speed(options.speed),
        columns=options.columns,
        start=start,
        stop=stop,
        listen_all=options.listen_all,
    )


def _plant(motion: str, robot: Robot, options: Namespace) -> Source:
    from dynident.online.sources import simulated_source
    from dynident.plant.simulation import parse_payload, read_motion

    if not motion:
        raise InputError("plant: needs a motion, such as plant:motion.yaml (dynident excite ROBOT -o motion.yaml)")
    if options.listen_all or options.columns is not None:
        raise InputError("--listen-all and --columns have no meaning with plant:MOTION; leave them out")
    given = {name: getattr(options, name) for name in _PLANT_OPTIONS if getattr(options, name) is not None}
    if "payload" in given:
        given["payload"] = parse_payload(given["payload"])
    elif "payload_at" in given:
        raise InputError("--payload-at needs --payload")
    return simulated_source(robot, read_motion(motion, robot), speed=_speed(options.speed), **given)


def _speed(text: str | None) -> float:
    if text is None or text == "max":
        return math.inf
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not (speed > 0.0 and math.isfinite(speed)):
        raise InputError(f"--speed {text}: expected 1 (as it was), 10 (ten times as fast), another number, or max")
    return speed


def _announce(source: Source, options: Namespace) -> None:
    """Where it listens and who can send there, or what is wrong with a log that can be used all the same."""
    from dynident.online.sources.network import is_loopback

    for words in getattr(source, "warnings", ()):
        print(f"dynident: {words}", file=sys.stderr)
    host = getattr(source, "host", None)
    if host is None:
        return
    if not options.quiet:
        print(f"dynident: listening at {source.label}", file=sys.stderr, flush=True)
    if not is_loopback(host):
        print(f"dynident: other machines can send to {source.label}, whoever they are", file=sys.stderr)


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


def _show_lines(states: Iterator[StreamState], options: Namespace) -> StreamState:
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


def _finish(last: StreamState, options: Namespace) -> None:
    from dynident.report.terminal import page_console
    from dynident.report.terminal.live import print_summary

    if not options.json:
        console = page_console()
        print_summary(last, console)
        if options.checkpoint is not None:
            console.print(f"Checkpoint: {options.checkpoint}", soft_wrap=True)
    if last.counters.lost:
        print(f"dynident: {last.counters.lost} samples were lost on the way or overrun", file=sys.stderr)
