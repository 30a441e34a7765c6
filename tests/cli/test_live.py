"""`dynident live` as a user runs it: replay, packets from another program, interruption, kill -9, bad input."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import dynident as di
from dynident.cli.command_line import main
from dynident.online.streaming import stream
from dynident.report.terminal.live import interval_bar, live_line, live_view, print_summary
from tests.logs.test_bag import cdr, write_mcap
from tests.online.fakes import write_swing

ROOT = Path(__file__).parents[2]
ROBOT = "pendulum-2"
PATIENCE = 60.0  # [s] a busy machine may take


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("live") / "swing.csv"
    write_swing(path, di.load_robot(ROBOT))
    return str(path)


def command(*words: str) -> subprocess.Popen:
    """The command in a process of its own, which can be interrupted and killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.Popen(
        [sys.executable, "-m", "dynident.cli.command_line", "live", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answers(capsys, *words: str) -> list[dict]:
    assert main(["live", *words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def values(answer: dict) -> np.ndarray:
    return np.array([one["value"] for one in answer["parameters"]])


def test_a_log_as_fast_as_possible(tmp_path, capsys):
    path = tmp_path / "log.csv"
    write_swing(path, di.load_robot(ROBOT), seconds=30.0)
    *_, last = answers(capsys, str(path), "--robot", ROBOT)
    assert last["final"]
    assert last["counters"]["used"] == last["counters"]["received"] == last["samples"] == 6000
    assert last["payload"] is None
    assert {"enough", "reason"} <= set(last["verdict"])
    assert [one["joint"] for one in last["torque_error"]] == list(di.load_robot(ROBOT).joint_names)
    assert max(one["relative"] for one in last["torque_error"]) < 0.1


def test_one_object_per_second_of_real_time(log, capsys):
    found = answers(capsys, log, "--robot", ROBOT, "--pace", "4", "--duration", "5")
    assert [one["final"] for one in found] == [False] * (len(found) - 1) + [True]
    assert 2 <= len(found) <= 1 + int(found[-1]["elapsed"]) + 1
    assert found[-1]["counters"]["used"] == 1001
    assert found[-1]["latency"]["median"] > 0.0


def test_the_page_without_a_terminal(log, capsys):
    assert main(["live", log, "--robot", ROBOT, "--count", "500"]) == 0
    page = capsys.readouterr().out
    assert "500 samples" in page
    assert "Torque error" in page
    assert "500 used" in page
    assert max(map(len, page.splitlines())) <= max(80, len(log) + 60)


def test_packets_of_another_program_malformed_ones_among_them(log):
    words = ("udp://127.0.0.1:0", "--robot", ROBOT, "--json", "--count", "1200", "--timeout", str(PATIENCE))
    found = {}
    for share in ("0", "0.1"):
        with command(*words) as live:
            port = re.search(r"listening at udp://127\.0\.0\.1:(\d+)", live.stderr.readline())[1]
            sender = [sys.executable, "-S", "-I", str(ROOT / "examples" / "live_sender.py"), log, "--pace", "20"]
            subprocess.run(
                [*sender, "--to", f"udp://127.0.0.1:{port}", "--malformed", share], check=True, timeout=PATIENCE
            )
            out, _ = live.communicate(timeout=PATIENCE)
        assert live.returncode == 0
        found[share] = json.loads(out.splitlines()[-1])
    clean, dirty = found["0"], found["0.1"]
    assert 80 < dirty["counters"].pop("malformed") < 190
    assert clean["counters"].pop("malformed") == 0
    for answer in (clean, dirty):
        assert answer["counters"]["used"] == 1200
        assert answer["counters"]["dropped"] == answer["counters"]["late"] == 0
    np.testing.assert_allclose(values(dirty), values(clean), rtol=1e-9, atol=1e-12)


def test_ctrl_c_ends_with_a_summary_and_a_checkpoint(log, tmp_path):
    kept = tmp_path / "kept.npz"
    with command(log, "--robot", ROBOT, "--pace", "0.5", "--checkpoint", str(kept)) as live:
        assert "samples" in live.stdout.readline()  # it is under way
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=PATIENCE)
    assert live.returncode == 0
    assert err == ""
    assert "parameter" in out
    assert str(kept) in out
    assert kept.is_file()


def test_killed_and_started_again_it_goes_on(log, tmp_path, capsys):
    kept = tmp_path / "kept.npz"
    *_, whole = answers(capsys, log, "--robot", ROBOT)
    words = (log, "--robot", ROBOT, "--json", "--checkpoint", str(kept))
    with command(*words, "--pace", "2", "--checkpoint-every", "0.1") as live:
        end = time.monotonic() + PATIENCE
        while not kept.is_file() and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.5)  # some checkpoints later
        os.kill(live.pid, signal.SIGKILL)
        live.communicate(timeout=PATIENCE)
    assert live.returncode == -signal.SIGKILL
    assert (
        sorted(tmp_path.iterdir()) == [kept] or len(list(tmp_path.iterdir())) <= 2
    )  # perhaps one that was being written
    *_, last = answers(capsys, *words[:3], "--checkpoint", str(kept))
    assert 0 < last["counters"]["used"] < 1200
    assert last["samples"] == 1200
    np.testing.assert_allclose(values(last), values(whole), rtol=1e-6, atol=1e-9)
    assert "other options" in complaint(capsys, *words[:3], "--band", "7", "--checkpoint", str(kept))
    *_, fresh = answers(capsys, *words[:3], "--checkpoint", str(kept), "--fresh", "--count", "300")
    assert fresh["samples"] == fresh["counters"]["used"] == 300


def test_a_payload_beside_the_fit_that_the_demo_makes(tmp_path, capsys):
    """`make demo`'s fit, whose friction has a memory, and defaults from there on."""
    demo, fit = ROOT / "examples" / "demo", str(tmp_path / "fit")
    logs = [str(demo / f"fourier_{i}.csv.gz") for i in (1, 2)]
    assert main(["identify", str(demo / "arm.yaml"), *logs, "-o", fit, "--check", "off", "--quiet"]) == 0
    assert "stop" in " ".join(term.key for term in di.load_fit(fit).predictive_base.terms)
    *_, last = answers(capsys, str(demo / "payload.csv.gz"), "--fit", fit)
    assert last["verdict"]["enough"]
    assert last["payload"]["present"]
    numbers = {one["name"]: one["value"] for one in last["payload"]["estimates"]}
    assert numbers["mass"] == pytest.approx(2.0, rel=0.01)
    np.testing.assert_allclose([numbers[name] for name in ("cx", "cy", "cz")], [0.01, 0.02, 0.06], atol=1e-3)
    assert last["changes"] == []
    assert last["notes"] == []
    *_, robot = answers(capsys, logs[0], "--fit", fit, "--find", "parameters", "--duration", "2")
    assert robot["notes"] == []  # parameters are those of basic friction


def complaint(capsys, *words: str) -> str:
    assert main(["live", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = [one for one in captured.err.splitlines() if "listening at" not in one]
    return line


def test_an_address_in_use(capsys):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        address = f"udp://127.0.0.1:{other.getsockname()[1]}"
        assert "in use by another program" in complaint(capsys, address, "--robot", ROBOT)


BAD = {
    "no robot": (("x.csv",), "needs either --robot ROBOT or --fit FIT"),
    "two robots": (("x.csv", "--robot", ROBOT, "--fit", "y"), "needs either --robot ROBOT or --fit FIT"),
    "no log": (("gone.csv", "--robot", ROBOT), "gone.csv"),
    "scheme": (("upd://127.0.0.1:1", "--robot", ROBOT), "did you mean 'udp'"),
    "everybody": (("udp://0.0.0.0:9871", "--robot", ROBOT), "say --listen-all"),
    "silence": (("udp://127.0.0.1:0", "--robot", ROBOT, "--timeout", "0.1"), "no sample within 0.1 s"),
    "two sources": (("udp://127.0.0.1:0", "x.csv", "--robot", ROBOT), "only logs can follow each other"),
    "pace": (("x.csv", "--robot", ROBOT, "--pace", "fast"), "--pace fast: expected 1"),
    "pace of a socket": (("udp://127.0.0.1:0", "--robot", ROBOT, "--pace", "2"), "--pace belongs to logs"),
    "plant options": (
        ("x.csv", "--robot", ROBOT, "--relative-noise", "0.1"),
        "--relative-noise belongs to plant:MOTION",
    ),
    "no motion": (("plant:", "--robot", ROBOT), "plant: needs a motion"),
    "count": (("udp://127.0.0.1:0", "--robot", ROBOT, "--count", "0"), "count is 0"),
    "folder": (
        ("udp://127.0.0.1:0", "--robot", ROBOT, "--checkpoint", "/no/such/x.npz", "--timeout", "1"),
        "does not exist",
    ),
    "payload": (("udp://127.0.0.1:0", "--robot", ROBOT, "--find", "payload"), "give --fit FIT"),
    "band": (("udp://127.0.0.1:0", "--robot", ROBOT, "--band", "-1"), "band is -1.0; expected zero or a positive"),
    "fresh without a file": (("x.csv", "--robot", ROBOT, "--fresh"), "--fresh belongs to --checkpoint"),
    "locked fit": (("x.csv", "--fit", "y", "--locked", "q1=0"), "--locked belongs to --robot"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name, capsys):
    words, expected = BAD[name]
    assert expected in complaint(capsys, *words)


def test_a_window_beside_the_log_is_reported(log, capsys):
    """Nobody sends a log: what is wrong is the window."""
    line = complaint(capsys, log, "--robot", ROBOT, "--window", "500:600")
    assert "gave no sample; it is empty, or nothing of it lies in the time that was asked for" in line


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--seed", "-1"), "seed is -1; expected a whole number"),
        (("--rate", "1e9"), "rate is 1e+09 Hz; expected at most"),
    ],
)
def test_a_plant_that_cannot_be_is_refused(option, words, capsys):
    motion = ROOT / "examples" / "demo" / "fourier_1.yaml"
    assert words in complaint(capsys, f"plant:{motion}", "--robot", str(motion.parent / "arm.yaml"), *option)


def test_a_bag_that_was_cut_off_says_so(tmp_path, capsys):
    robot, path = di.load_robot(ROBOT), tmp_path / "bag.mcap"
    names = list(robot.joint_names)
    stamps = [10_000_000 * (k + 1) for k in range(5000)]
    states = (("/joint_states", at, cdr(at, names, [at % 7, 0.5], [], [1.0, at % 5])) for at in stamps)
    write_mcap(path, states)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert main(["live", str(path), "--robot", ROBOT, "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert f"Warning: {path}: is cut off or damaged" in printed.err
    assert 0 < json.loads(printed.out)["counters"]["used"] < 5000


def rendered(part, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=24, force_terminal=False)
    console.print(part) if part is not None else None
    return console.file.getvalue().splitlines()


def test_the_view_fits_a_small_terminal(log):
    *_, state = stream(di.load_robot(ROBOT), log)
    lines = rendered(live_view(state, height=24))
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    text = "\n".join(lines)
    assert state.estimate.names[0] in text
    assert "█" in text
    assert "more" not in text or len(state.estimate.names) > 5
    short = rendered(live_view(state, height=14))
    assert len(short) < len(lines)
    assert any("more" in line for line in short)
    assert "1 200 samples" in live_line(state)


def test_the_summary_has_every_parameter(log):
    *_, state = stream(di.load_robot(ROBOT), log)
    console = Console(file=io.StringIO(), width=80)
    print_summary(state, console)
    for name in state.estimate.names:
        assert name in console.file.getvalue()


def test_bars_shrink_with_the_deviation():
    lengths = [len(interval_bar(share).rstrip()) for share in (10.0, 1.0, 0.1, 0.01, 1e-3, 0.0)]
    assert lengths[0] == lengths[1] == 16
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 0
    assert len(interval_bar(float("nan")).rstrip()) == 16


def test_link_by_link_says_what_it_costs(log, tmp_path, capsys):
    last = answers(
        capsys, log, "--robot", ROBOT, "--estimator", "link-by-link", "--checkpoint", str(tmp_path / "c.npz")
    )[-1]
    assert re.search(r"operations for an instant in motion: \d+ link by link, \d+ jointly", last["notes"][0])
    assert sum(one["determined"] for one in last["parameters"]) > 3
    assert main(["live", log, "--robot", ROBOT, "--checkpoint", str(tmp_path / "c.npz"), "--quiet"]) == 2
    assert "is a checkpoint with other options" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["--robot", ROBOT, "--estimator", "tip"], "--estimator: unknown choice 'tip' (valid: joint, link-by-link)"),
        (["--robot", ROBOT, "--estimator", "link-by-link", "--terms", "rigid,load"], "along time"),
        (["--robot", ROBOT, "--estimator", "link-by-link", "--find", "payload"], "a payload is found beside known"),
    ],
)
def test_link_by_link_bad_input(words, fragment, log, capsys):
    assert main(["live", log, *words]) == 2
    assert fragment in capsys.readouterr().err
