"""Tasks on a cluster of Dask: submitted in bounded numbers, repeated where a worker or the scheduler is lost.

Dask does the work: scheduling, moving a task to another worker when one dies, the dashboard. What stands here is that
no more tasks are outstanding than keep all workers busy, so that the scheduler's memory does not grow with a fleet, and
that a scheduler which was restarted gets the outstanding ones again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.errors import InputError
from dynident.fleet.options import FleetRunOptions
from dynident.fleet.store import FleetStore, StoreError

if TYPE_CHECKING:
    from distributed import Client, Future

_TASKS_PER_WORKER = 8  # outstanding: enough for a worker never to wait for the client
_RECONNECT_S = 120.0  # [s] until a scheduler that is gone is given up
_CONNECT_S = 5.0  # [s] of one attempt


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes:
        key: Of the task.
        result: What it returned; None where it failed.
        error: Why it failed; None where it did not.
    """

    key: str
    result: Any = None
    error: BaseException | None = None


class TaskCluster:
    """A cluster that works off tasks; made by `open_engine`.

    Args:
        client: Connected to the scheduler.
        address: Of a scheduler that somebody else runs; None where it ends with this process.
    """

    def __init__(self, client: Client, address: str | None) -> None:
        self._client, self._address = client, address

    @property
    def dashboard(self) -> str:
        """Address of the dashboard; empty where there is none."""
        return str(self._client.dashboard_link or "")

    @property
    def n_workers(self) -> int:
        """Threads of all workers."""
        return sum(self._client.nthreads().values())

    def check_store(self, store: FleetStore) -> None:
        """Refuse workers that cannot reach the store.

        Raises:
            StoreError: Naming them.
        """
        self._client.wait_for_workers(1, timeout=_RECONNECT_S)
        reached = self._client.run(_is_store, str(store.folder))
        if lost := sorted(worker for worker, found in reached.items() if not found):
            raise StoreError(
                f"{store.folder}: workers {', '.join(lost)} cannot reach it; it must be on a file system that all share"
            )

    def outcomes(self, function: Callable[..., Any], tasks: Iterable[tuple[str, tuple[Any, ...]]]) -> Iterator[Outcome]:
        """Run tasks, in the order in which they are done.

        Args:
            function: What runs on a worker; it must be the same to run it twice.
            tasks: Key and arguments of each; taken as there is room for them.
        """
        from distributed import as_completed

        waiting, pending = iter(tasks), dict[str, tuple[Any, ...]]()
        while True:
            lost = False
            try:
                first = [self._submit(function, key, own) for key, own in pending.items()]
                done = as_completed(first, with_results=True, raise_errors=False)
                room = max(_TASKS_PER_WORKER * self.n_workers, 2)
                self._fill(function, waiting, pending, done, room)
                for future, result in done:
                    outcome = _outcome_of(future, result)
                    if outcome is None:
                        lost = True
                        break
                    if pending.pop(outcome.key, None) is not None:
                        yield outcome
                    future.release()
                    self._fill(function, waiting, pending, done, room)
            except (OSError, TimeoutError):
                lost = True
            if not lost:
                return
            self._reconnect()

    def _fill(self, function: Any, waiting: Iterator[Any], pending: dict[str, Any], done: Any, room: int) -> None:
        while len(pending) < room:
            task = next(waiting, None)
            if task is None:
                return
            pending[task[0]] = task[1]
            done.add(self._submit(function, *task))

    def _submit(self, function: Any, key: str, own: tuple[Any, ...]) -> Future[Any]:
        return self._client.submit(_run_alone, function, own, key=key, pure=False)

    def _reconnect(self) -> None:
        """Wait for the scheduler to be there again.

        Raises:
            InputError: When it is not within two minutes.
        """
        from distributed import Client

        if self._address is None:
            raise InputError("the local cluster has stopped; run again: what is finished is not repeated")
        end = time.monotonic() + _RECONNECT_S
        while time.monotonic() < end:
            try:
                client = Client(self._address, timeout=_CONNECT_S)
                client.wait_for_workers(1, timeout=max(end - time.monotonic(), _CONNECT_S))
            except (OSError, TimeoutError):
                time.sleep(1.0)
                continue
            old, self._client = self._client, client
            with suppress(OSError, TimeoutError):  # its scheduler is gone, so it cannot take leave
                old.close(timeout=1.0)
            return
        raise InputError(f"--scheduler {self._address}: is gone; run again once it is back: nothing finished is lost")

    def close(self) -> None:
        """Leave the scheduler."""
        self._client.close()


def _outcome_of(future: Any, result: Any) -> Outcome | None:
    """What a future that is done holds; None where the scheduler has lost it."""
    if future.status == "finished":
        return Outcome(future.key, result)
    if future.status == "error":
        return Outcome(future.key, error=future.exception())
    return None


_ALONE = threading.Lock()


def _run_alone(function: Callable[..., Any], own: tuple[Any, ...]) -> Any:
    """Run a task while no other runs in this process: workers with several threads share warnings and imports."""
    with _ALONE:
        return function(*own)


def _is_store(folder: str) -> bool:
    return (Path(folder) / "store.json").is_file()


@contextmanager
def open_engine(options: FleetRunOptions) -> Iterator[TaskCluster]:
    """A local cluster for as long as it is open, or a connection to a running scheduler.

    Raises:
        InputError: When Dask is not installed, or the scheduler does not answer.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError("fleets need fsspec and distributed: pip install 'dynident[fleet]'") from None
    given = options.scheduler
    if isinstance(given, Client):
        yield TaskCluster(given, None)
        return
    if given is not None:
        try:
            client = Client(given, timeout=_CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"--scheduler {given}: does not answer ({error or type(error).__name__}); start one with `dask "
                "scheduler`, or leave it out for a local cluster"
            ) from None
        engine = TaskCluster(client, str(given))
        try:
            yield engine
        finally:
            engine.close()
        return
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield TaskCluster(client, None)
