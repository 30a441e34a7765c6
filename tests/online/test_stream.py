"""Samples in, states out: with a small estimator, so that every number can be determined beforehand."""

from __future__ import annotations

import json
import os
import socket
import threading

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError, InputError
from dynident.online.sources import Replay, SourceError, StandardInput, UdpSource
from dynident.online.streaming import LatencyRecord, stream
from tests.online.fakes import GainIdentifier, packets, write_swing
from tests.online.test_sources import log

ROBOT = di.load_robot("pendulum-2")


def through_a_pipe(lines: list[bytes]) -> StandardInput:
    """A source that reads these lines from a file descriptor, as standard input is read."""
    read, write = os.pipe()

    def send() -> None:
        with os.fdopen(write, "wb") as file:
            file.write(b"\n".join(lines))

    threading.Thread(target=send, daemon=True).start()
    return StandardInput(ROBOT, descriptor=read)


def test_states_come_with_the_stamps_and_the_last_is_that_of_all():
    states = list(stream(ROBOT, log(301), identifier=GainIdentifier()))
    assert [state.time for state in states] == [1.0, 2.0, 3.0, 3.0]
    assert [state.final for state in states] == [False, False, False, True]
    assert [state.counters.used for state in states] == [101, 201, 301, 301]
    np.testing.assert_allclose(states[-1].estimate.values, [2.0, -3.0], atol=0.01)
    answer = json.loads(json.dumps(states[-1].as_dict(), allow_nan=False))
    assert answer["counters"]["used"] == answer["samples"] == 301
    assert answer["latency"] is None


@pytest.mark.parametrize(("ends", "used"), [({"count": 42}, 42), ({"duration": 0.5}, 51), ({"duration": 0.505}, 51)])
def test_it_ends_where_it_was_asked_to(ends, used):
    *_, last = stream(ROBOT, log(301), identifier=GainIdentifier(), **ends)
    assert last.counters.used == last.estimate.samples == used


def test_it_ends_when_it_is_stopped():
    stop = threading.Event()
    seen = []
    for state in stream(ROBOT, log(5000), identifier=GainIdentifier(), stop=stop):
        seen.append(state)
        stop.set()
    assert seen[-1].final
    assert 0 < seen[-1].counters.used < 5000


def test_malformed_packets_change_nothing_but_the_counters():
    good = [json.dumps(packet).encode() for packet in packets(500)]
    rubbish = (
        b"\xff{",
        b"[1]",
        good[3][:20],
        b'{"t": 1, "q": [1e999, 0], "tau": [0, 0]}',
        good[0].replace(b"[", b"[[1],"),
    )
    mixed = []
    for k, line in enumerate(good):
        mixed += [line] if k % 9 else [rubbish[k // 9 % len(rubbish)], line]  # one in ten
    *_, clean = stream(ROBOT, through_a_pipe(good), identifier=GainIdentifier())
    *_, dirty = stream(ROBOT, through_a_pipe(mixed), identifier=GainIdentifier())
    assert dirty.estimate.values.tobytes() == clean.estimate.values.tobytes()
    assert dirty.estimate.samples == clean.estimate.samples == 500
    assert dirty.counters.malformed == dirty.counters.received - 500 == 56
    assert clean.counters.malformed == 0
    assert (dirty.counters.late, dirty.counters.repeated, dirty.counters.lost) == (0, 0, 0)


def test_neither_do_they_change_a_bit_of_the_robots_parameters(tmp_path):
    write_swing(tmp_path / "log.csv", ROBOT, seconds=2.0)
    given = di.read_log(tmp_path / "log.csv", ROBOT)
    rows = zip(given.time.tolist(), given.array("q", ROBOT).tolist(), given.array("tau", ROBOT).tolist(), strict=True)
    good = [json.dumps({"t": t, "q": q, "tau": tau}).encode() for t, q, tau in rows]
    mixed = [line for k, own in enumerate(good) for line in ([own[:-9], own] if k % 9 == 0 else [own])]
    *_, clean = stream(ROBOT, through_a_pipe(good), together=1)
    *_, dirty = stream(ROBOT, through_a_pipe(mixed), together=1)
    assert dirty.estimate.values.tobytes() == clean.estimate.values.tobytes()
    assert dirty.estimate.std.tobytes() == clean.estimate.std.tobytes()
    assert dirty.counters.malformed == len(mixed) - len(good) > 40
    *_, blocks = stream(ROBOT, through_a_pipe(good))
    np.testing.assert_allclose(blocks.estimate.values, clean.estimate.values, rtol=1e-9, atol=1e-9)


def test_packets_out_of_order_over_udp_are_counted_and_survived():
    source = UdpSource(ROBOT)
    given = packets(200)
    sent = [*given[:100], given[99], given[50], *given[103:199], given[0], given[199]]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for packet in sent:
            sender.sendto(json.dumps(packet).encode(), ("127.0.0.1", source.port))
    *_, last = stream(ROBOT, source, identifier=GainIdentifier(), count=197, timeout=20.0)
    counters = last.counters
    assert (counters.used, counters.repeated, counters.late, counters.dropped) == (197, 1, 2, 3)
    assert last.latency["median"] <= last.latency["most"] <= last.latency["longest"]


def test_what_has_piled_up_is_taken_in_blocks():
    source = UdpSource(ROBOT)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for packet in packets(300):
            sender.sendto(json.dumps(packet).encode(), ("127.0.0.1", source.port))
    identifier = GainIdentifier()
    *_, last = stream(ROBOT, source, identifier=identifier, count=300, timeout=20.0)
    assert last.counters.used == 300
    assert len(identifier.blocks) < 300


def test_nobody_sends():
    with pytest.raises(SourceError, match=r"no sample within 0\.15 s; nothing came at all"):
        list(stream(ROBOT, UdpSource(ROBOT), identifier=GainIdentifier(), timeout=0.15))


def test_only_rubbish_is_sent():
    with pytest.raises(SourceError, match=r"gave no sample; 2 came, 2 malformed .* the last one is not JSON"):
        list(stream(ROBOT, through_a_pipe([b"a", b"b"]), identifier=GainIdentifier()))


def test_a_silent_sender_ends_the_stream():
    source = UdpSource(ROBOT)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(json.dumps(packets(1)[0]).encode(), ("127.0.0.1", source.port))
    *_, last = stream(ROBOT, source, identifier=GainIdentifier(), timeout=1.0)
    assert last.final
    assert last.counters.used == 1


def test_a_stream_goes_on_from_its_checkpoint(tmp_path):
    path = tmp_path / "live.npz"
    whole = GainIdentifier()
    list(stream(ROBOT, log(500), identifier=whole))
    *_, half = stream(ROBOT, log(500), identifier=GainIdentifier(), checkpoint=path, count=321)
    assert half.estimate.samples == 321
    *_, last = stream(ROBOT, log(500), identifier=GainIdentifier(), checkpoint=path)
    assert last.counters.used == 500 - 321
    assert last.estimate.samples == 500
    np.testing.assert_array_equal(last.estimate.values, whole.state().values)
    *_, again = stream(ROBOT, log(500), identifier=GainIdentifier(), checkpoint=path)
    assert (again.counters.used, again.estimate.samples) == (0, 500)


def test_checkpoints_are_written_while_it_goes_on(tmp_path):
    path = tmp_path / "live.npz"
    seen = []
    for state in stream(
        ROBOT, Replay(ROBOT, log(100), pace=2.0), identifier=GainIdentifier(), checkpoint=path,
        checkpoint_every=0.05, interval=0.2,
    ):  # fmt: skip
        seen.append(GainIdentifier.load(path, ROBOT).samples if path.is_file() else 0)
        assert seen[-1] <= state.estimate.samples
    assert 0 < seen[-2] < 100
    assert seen[-1] == 100


def test_leaving_the_loop_keeps_what_was_found(tmp_path):
    path = tmp_path / "live.npz"
    for _ in stream(ROBOT, log(500), identifier=GainIdentifier(), checkpoint=path):
        break
    assert GainIdentifier.load(path, ROBOT).samples == 101


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"interval": 0.0}, InputError, "interval is 0"),
        ({"timeout": -1.0}, InputError, "timeout is -1"),
        ({"count": 0}, InputError, "count is 0"),
        ({"clock": "wall"}, InputError, "clock: unknown choice 'wall'"),
        ({"checkpoint": "/no/such/folder/x"}, InputError, "does not exist"),
        ({"terms": "rigid"}, InputError, "terms: belong to the identifier that is given"),
    ],
)
def test_bad_options_are_reported(options, error, words):
    with pytest.raises(error, match=words):
        list(stream(ROBOT, log(10), identifier=GainIdentifier(), **options))


def test_a_source_is_closed_however_the_stream_ends():
    for options in ({"timeout": 0.1}, {"checkpoint": "/no/such/folder/x"}):
        source = UdpSource(ROBOT)
        with pytest.raises(DynidentError):
            list(stream(ROBOT, source, identifier=GainIdentifier(), **options))
        assert source._socket.fileno() == -1


def test_latencies_in_constant_memory():
    rng = np.random.default_rng(0)
    times = np.exp(rng.normal(-8.0, 1.0, 20_000))
    record = LatencyRecord()
    for seconds in times:
        record.add(float(seconds))
    for share in (0.5, 0.999):
        assert np.quantile(times, share) * 0.99 <= record.quantile(share) <= np.quantile(times, share) * 1.06
    assert record.longest == times.max()
    assert LatencyRecord().as_dict() is None


def test_a_checkpoint_beside_another_fit_is_refused(tmp_path):
    """The options are the same; what is known about the links is not."""
    path, own = tmp_path / "kept.npz", ROBOT.values[ROBOT.default_values]
    heavier = {name: 1.1 * value for name, value in own.items()}
    known = [di.OnlineIdentifier(ROBOT, prior=prior, sigma=np.ones(2)) for prior in (own, heavier)]
    *_, first = stream(ROBOT, log(200), identifier=known[0], checkpoint=path, count=100)
    with pytest.raises(InputError, match="checkpoint beside another fit"):
        list(stream(ROBOT, log(200), identifier=known[1], checkpoint=path))
    again = di.OnlineIdentifier(ROBOT, prior=own, sigma=np.ones(2))
    *_, last = stream(ROBOT, log(200), identifier=again, checkpoint=path)
    assert (first.estimate.samples, last.estimate.samples) == (100, 200)
