"""Sockets, lines, logs and plants as sources."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError
from dynident.logs.log import Log
from dynident.online.sources import (
    Replay,
    SourceError,
    StandardInput,
    TcpSource,
    UdpSource,
    open_source,
    simulated_source,
)
from dynident.online.sources.network import is_loopback, parse_address
from dynident.online.sources.packets import LONGEST
from tests.logs.test_bag import cdr, write_mcap
from tests.online.fakes import packets

ROBOT = di.load_robot("pendulum-2")
PATIENCE = 20.0  # [s] a busy machine may take


def lines(n: int) -> list[bytes]:
    return [json.dumps(packet).encode() for packet in packets(n)]


def collect(source, n: int):
    """Blocks of a source until so many have been received."""
    found, end = [], time.monotonic() + PATIENCE
    for block in source.blocks():
        if block is not None and len(block):
            found.append(block)
        if source.tally.received >= n or time.monotonic() > end:
            break
    return found


def joined(blocks, name: str) -> np.ndarray:
    return np.concatenate([getattr(block, name) for block in blocks])


def log(n: int = 300, start: float = 0.0) -> Log:
    given = packets(n)
    channels = {f"{kind}{j + 1}": np.array([p[kind][j] for p in given]) for kind in ("q", "tau") for j in range(2)}
    return Log("made", "", start + np.array([p["t"] for p in given]), channels)


def test_udp_packets_arrive_on_loopback_in_their_order():
    source = UdpSource(ROBOT)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for line in [*lines(50), b"rubbish", b"x" * (LONGEST + 100)]:
                sender.sendto(line, ("127.0.0.1", source.port))
        found = collect(source, 52)
    finally:
        source.close()
        source.close()
    np.testing.assert_array_equal(joined(found, "time"), [p["t"] for p in packets(50)])
    np.testing.assert_array_equal(joined(found, "q"), [p["q"] for p in packets(50)])
    assert source.tally.malformed == 2
    assert all((block.arrived <= time.perf_counter()).all() for block in found)
    assert source._socket.fileno() == -1
    assert not source._thread.is_alive()


def test_udp_lets_the_oldest_go_when_nobody_keeps_up():
    source = UdpSource(ROBOT, room=10)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for line in lines(100):
                sender.sendto(line, ("127.0.0.1", source.port))
        end = time.monotonic() + PATIENCE
        while source._overrun < 90 and time.monotonic() < end:
            time.sleep(0.01)
        found = collect(source, 100)
    finally:
        source.close()
    assert source.tally.overrun == 90
    assert source.tally.received == 100
    np.testing.assert_array_equal(joined(found, "sequence"), np.arange(90, 100))


def test_tcp_makes_a_fast_sender_wait_and_takes_the_next_one():
    source = TcpSource(ROBOT)
    sent = lines(2000)

    def send() -> None:
        for part in (sent[:1500], sent[1500:]):
            with socket.create_connection(("127.0.0.1", source.port)) as sender:
                sender.sendall(b"\n".join(part) + b"\n" + b'{"t": 1')  # and is cut off

    thread = threading.Thread(target=send)
    thread.start()
    try:
        found = collect(source, 2002)
    finally:
        thread.join()
        source.close()
    np.testing.assert_array_equal(joined(found, "sequence"), np.arange(2000))
    assert source.tally.malformed == 2
    assert max(len(block) for block in found) <= 512


def test_lines_of_standard_input_however_they_are_cut():
    read, write = os.pipe()
    data = b"\n\n" + b"\n".join([*lines(20), b"y" * (3 * LONGEST), *lines(22)[20:]])
    source = StandardInput(ROBOT, descriptor=read)
    source.skip(0.05)

    def send() -> None:
        for first in range(0, len(data), 1000):
            os.write(write, data[first : first + 1000])
        os.close(write)

    thread = threading.Thread(target=send)
    thread.start()
    found = [block for block in source.blocks() if block is not None]
    thread.join()
    os.close(read)
    np.testing.assert_array_equal(joined(found, "sequence"), np.arange(6, 22))
    assert (source.tally.received, source.tally.malformed) == (23, 1)


def test_a_log_is_replayed_as_it_is_and_what_is_broken_counted(tmp_path):
    rows = ["t,q1,q2,tau1,tau2", *(f"{k / 100},{k},0,1,{-k}" for k in range(1000))]
    rows[500] = rows[499]  # repeated
    rows[700] = "6.99,nan,0,1,2"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows))
    source = open_source(path, ROBOT)
    found = [block for block in source.blocks() if block is not None]
    assert len(joined(found, "time")) == 999
    assert (source.tally.received, source.tally.malformed) == (1000, 1)
    assert joined(found, "q")[100].tolist() == [100.0, 0.0]


def test_logs_follow_each_other_on_one_clock():
    source = Replay(ROBOT, [log(100), log(100, start=50.0)])
    found = joined(list(source.blocks()), "time")
    np.testing.assert_allclose(found[:100], np.arange(100) / 100)
    assert found[100] == pytest.approx(0.99 + 1.0)
    assert (np.diff(found) > 0.0).all()


def test_a_replay_skips_what_has_been_seen():
    source = Replay(ROBOT, log(100))
    source.skip(0.5)
    found = joined(list(source.blocks()), "time")
    assert found[0] == 0.51
    assert source.tally.received == 49


def test_a_log_at_ten_times_its_velocity_takes_a_tenth_of_its_time():
    source = Replay(ROBOT, log(301), pace=10.0)
    began = time.perf_counter()
    found = [block for block in source.blocks() if block is not None]
    assert time.perf_counter() - began >= 0.3
    assert len(joined(found, "time")) == 301
    assert len(found) > 3
    arrived = joined(found, "arrived")
    np.testing.assert_allclose(np.diff(arrived), 1e-3, atol=1e-6)  # when each was due, not when it was handed on


@pytest.mark.parametrize("pace", [0.0, -1.0, float("nan"), "fast"])
def test_a_velocity_must_be_positive(pace):
    with pytest.raises(InputError, match="pace is"):
        Replay(ROBOT, log(), pace=pace)


def test_joint_states_of_an_mcap_file_are_a_stream(tmp_path):
    path, given = tmp_path / "bag.mcap", packets(200)
    names = list(reversed(ROBOT.joint_names))
    messages = (
        ("/joint_states", stamp, cdr(stamp, names, p["q"][::-1], [], p["tau"][::-1]))
        for stamp, p in ((10_000_000 * (k + 1), p) for k, p in enumerate(given))
    )
    write_mcap(path, messages)
    source = open_source(path, ROBOT)
    found = [block for block in source.blocks() if block is not None]
    np.testing.assert_array_equal(joined(found, "tau"), [p["tau"] for p in given])
    np.testing.assert_allclose(joined(found, "time"), np.arange(200) / 100)
    assert source._logs[0].table._kept is None, "a stream keeps nothing of a bag in memory"


def test_the_plant_is_a_source_and_can_be_gone_through_again():
    pytest.importorskip("mujoco")
    motion = _swing()
    source = simulated_source(ROBOT, motion, rate=100.0, relative_noise=0.0)
    found = [block for block in source.blocks() if block is not None]
    time_, q = joined(found, "time"), joined(found, "q")
    np.testing.assert_allclose(time_, np.arange(1, 51) / 100)
    np.testing.assert_allclose(q, motion.sample(time_)[0], atol=0.02)
    source.skip(0.3)
    again = [block for block in source.blocks() if block is not None]
    np.testing.assert_array_equal(joined(again, "tau"), joined(found, "tau")[30:])


def _swing():
    class Swing:
        duration = 0.5

        def sample(self, t):
            t = np.asarray(t)[:, None]
            return (0.3 * (1 - np.cos(2 * t)) * [1, -1], 0.6 * np.sin(2 * t) * [1, -1], 1.2 * np.cos(2 * t) * [1, -1])

    return Swing()


def test_addresses():
    assert parse_address("udp://:9870") == ("udp", "127.0.0.1", 9870)
    assert parse_address("udp://localhost:1") == ("udp", "127.0.0.1", 1)
    assert parse_address("tcp://192.168.1.5:7") == ("tcp", "192.168.1.5", 7)
    assert parse_address("udp://:9870", listen_all=True) == ("udp", "0.0.0.0", 9870)
    assert is_loopback("127.0.0.1")
    assert not is_loopback("192.168.1.5")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("udp://0.0.0.0:9870", "say --listen-all"),
        ("tcp://[::]:9870", "say --listen-all"),
        ("udp://127.0.0.1", "is not an address"),
        ("udp://127.0.0.1:99999", "is not an address"),
        ("udp://127.0.0.1:x", "is not an address"),
        ("udp://127.0.0.1:1/path", "is not an address"),
        ("upd://127.0.0.1:1", "unknown scheme 'upd'; did you mean 'udp'"),
        ("udp://no.such.host.invalid:1234", "there is no host"),
        ("udp://203.0.113.7:1234", "not an address of this machine"),
    ],
)
def test_what_is_no_source_is_reported_with_its_reason(text, words):
    with pytest.raises(SourceError, match=words):
        open_source(text, ROBOT)


@pytest.mark.parametrize("kind", [UdpSource, TcpSource])
def test_a_port_in_use_is_reported(kind):
    first = kind(ROBOT)
    try:
        with pytest.raises(SourceError, match="in use by another program"):
            kind(ROBOT, port=first.port)
    finally:
        first.close()
