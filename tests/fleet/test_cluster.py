"""Processes that are killed: a worker, the scheduler, the run itself; and logs on an S3 of the test's own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import dynident as di
from dynident.fleet.running import run_fleet
from dynident.fleet.store import FleetStore
from tests.fleet.made import write_fleet
from tests.fleet.test_run import largest_difference, parameters

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    return write_fleet(tmp_path_factory.mktemp("f"), robots=2, logs=16, options="validation: 0\n")


@pytest.fixture(scope="module")
def undisturbed(fleet, cluster):
    store = fleet.parent / "undisturbed"
    done = run_fleet(fleet, store, scheduler=cluster)
    assert (done.failed, done.unfinished) == ({}, {})
    return parameters(store)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def process(*words: str):
    own = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield own
    finally:
        kill_all(own)


def kill_all(own: subprocess.Popen) -> None:
    try:
        parts = [*psutil.Process(own.pid).children(recursive=True), psutil.Process(own.pid)]
    except psutil.NoSuchProcess:
        parts = []
    for part in parts:
        with suppress(psutil.NoSuchProcess):
            part.kill()
    own.wait()


def when_rows(store: Path, n: int, action) -> threading.Thread:
    """Do something as soon as so many logs are finished."""

    def wait() -> None:
        end = time.monotonic() + 240.0
        while time.monotonic() < end and len(list(store.glob("logs/*/*/*.parquet"))) < n:
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.full
def test_a_worker_that_is_killed_costs_nothing(fleet, undisturbed):
    from distributed import Client, LocalCluster

    store = fleet.parent / "killed"
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as inner, Client(inner) as client:
        pids = list(client.run(os.getpid).values())
        thread = when_rows(store, 8, lambda: os.kill(pids[0], signal.SIGKILL))
        done = run_fleet(fleet, store, scheduler=client)
        thread.join()
    assert (done.finished, done.failed, done.unfinished) == (32, {}, {})
    assert largest_difference(parameters(store), undisturbed) < 1e-10


@pytest.mark.full
def test_a_scheduler_that_is_restarted_gets_the_rest(fleet, undisturbed):
    port, store = free_port(), fleet.parent / "restarted"
    address = f"tcp://127.0.0.1:{port}"
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    worker = ("distributed.cli.dask_worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard")
    with process(*scheduler) as first, process(*worker) as one:
        answer: list[object] = []
        running = threading.Thread(target=lambda: answer.append(run_fleet(fleet, store, scheduler=address)))
        when_rows(store, 8, lambda: (kill_all(first), kill_all(one)))
        running.start()
        while first.poll() is None or one.poll() is None:
            assert running.is_alive()
            time.sleep(0.1)
        n_before = len(FleetStore.open(store).rows())
        with process(*scheduler), process(*worker):
            running.join(240.0)
            assert not running.is_alive()
    (done,) = answer
    assert 8 <= n_before < 32
    assert (done.failed, done.unfinished) == ({}, {})
    assert largest_difference(parameters(store), undisturbed) < 1e-10


@pytest.mark.full
def test_a_run_that_is_killed_goes_on_where_it_was(fleet, undisturbed):
    store = fleet.parent / "stopped"
    words = ("dynident", "fleet", "run", str(fleet), "-o", str(store), "--workers", "2", "--json")
    with process(*words) as own:
        when_rows(store, 8, lambda: kill_all(own)).join()
    n_before = len(FleetStore.open(store).rows())
    assert 8 <= n_before < 32
    again = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    answer = json.loads(again.stdout)
    assert again.returncode == 0
    assert (answer["finished"], answer["known"]) == (32 - n_before, n_before)
    assert largest_difference(parameters(store), undisturbed) < 1e-10


def test_a_scheduler_that_is_not_there_is_named(fleet, tmp_path):
    with pytest.raises(di.InputError, match=r"does not answer.*dask scheduler"):
        run_fleet(fleet, tmp_path / "store", scheduler=f"tcp://127.0.0.1:{free_port()}")


def test_logs_on_an_s3(tmp_path, cluster):
    """The same parameters as from the files; a broken object is named by its address."""
    boto3, server = pytest.importorskip("boto3"), pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    file = write_fleet(tmp_path / "local", robots=1, logs=3, options="validation: 0\n")
    run_fleet(file, tmp_path / "here", scheduler=cluster)
    own = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    own.start()
    try:
        address = "http://{}:{}".format(*own.get_host_and_port())
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        s3 = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        s3.create_bucket(Bucket="fleet")
        for path in (tmp_path / "local" / "logs" / "A1").iterdir():
            s3.upload_file(str(path), "fleet", f"logs/A1/{path.name}")
        s3.put_object(Bucket="fleet", Key="logs/A1/2026-03-09.parquet", Body=b"no log")
        remote = tmp_path / "remote.yaml"
        text = file.read_text().replace("logs: logs/", "logs: s3://fleet/logs/")
        remote.write_text(f"{text}storage: {{endpoint_url: '{address}', key: test, secret: test}}\n")
        done = run_fleet(remote, tmp_path / "there", scheduler=cluster)
        assert list(done.failed) == ["s3://fleet/logs/A1/2026-03-09.parquet"]
        assert done.failed["s3://fleet/logs/A1/2026-03-09.parquet"].startswith(
            "s3://fleet/logs/A1/2026-03-09.parquet: "
        )
        assert run_fleet(remote, tmp_path / "there", scheduler=cluster).finished == 0
    finally:
        own.stop()
    assert largest_difference(parameters(tmp_path / "there"), parameters(tmp_path / "here")) < 1e-11
    assert not list(Path("/tmp").glob("dynident-*/2026-03-09.parquet"))
