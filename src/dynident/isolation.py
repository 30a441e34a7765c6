"""Readers that run in a process of their own, with limits of time and memory: a file that breaks them breaks no more.

For parsers in C whose soundness no look at the file can promise (HDF5, MATLAB), and for what computes (xacro).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from dynident import limits
from dynident.limits import LimitError, RefusedError

_PATIENCE = 5.0  # real time over processor time, on a machine that has much else to do
_CHILD = "from dynident.isolation import main; main()"


def call_in_child(function: Any, source: str | Path, *arguments: Any, packed: int | None = None) -> Any:
    """`function(source, *arguments)` in a process that has so much time and memory as a file of its size may need.

    Args:
        function: Of a module, by its name there; arguments and result are plain data, as in JSON.
        source: The file.
        *arguments: Further arguments.
        packed: Bytes of the file; default those of `source`.

    Raises:
        RefusedError: What the function raised, or how its process ended.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # within another program, no Python can be started
        return function(str(source), *arguments)
    request = request_of(function, source, arguments, packed)
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-W", "ignore", "-c", _CHILD]  # -P: nothing is imported from the current folder
    seconds = request["seconds"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=_PATIENCE * seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LimitError(f"takes longer than {_PATIENCE * seconds:.0f} s to read") from None
    return result_of(done.returncode, done.stdout, seconds, request["memory"])


def request_of(function: Any, source: str | Path, arguments: tuple[Any, ...], packed: int | None) -> dict[str, Any]:
    """What the other process gets: the call, and its limits."""
    size = os.stat(source).st_size if packed is None else packed
    own = limits.LIMITS
    unpacked = int(min(own.memory_bytes, max(own.harmless_bytes, own.expansion * size)))
    return {
        "module": function.__module__,
        "function": function.__qualname__,
        "arguments": [str(source), *arguments],
        "seconds": own.child_seconds + own.child_seconds_per_megabyte * size / 1e6,
        "memory": own.child_bytes + 2 * unpacked,
        "file": unpacked + own.harmless_bytes,
    }


def result_of(code: int, said: bytes, seconds: float, memory: int) -> Any:
    """The result of the call, from the code its process ended with and what it answered.

    Raises:
        RefusedError: What the function raised, or how its process ended.
    """
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise LimitError(f"takes more than {seconds:.0f} s of processor time to read")
    if code < 0:
        raise RefusedError(f"makes its reader end with {signal.Signals(-code).name}; it is damaged, or made to do so")
    try:
        found = json.loads(said)
    except ValueError:
        raise RefusedError(f"makes its reader end with code {code}; it is damaged, or made to do so") from None
    if "memory" in found:
        raise LimitError(f"needs more than {limits.in_bytes(memory)} of memory to be read")
    if "error" in found:
        raise RefusedError(found["error"])
    return found["result"]


def main() -> None:
    """The other process: a request from standard input, its answer to standard output."""
    request = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    answer(request, out)


def answer(request: dict[str, Any], out: int) -> NoReturn:
    """Do what a request asks for within its limits, write the result to a file descriptor, and end."""
    _limit(request)
    try:
        function = import_module(request["module"])
        for part in request["function"].split("."):
            function = getattr(function, part)
        found = {"result": function(*request["arguments"])}  # type: ignore[operator]
    except MemoryError:
        found = {"memory": True}
    except Exception as error:  # whatever a parser raises
        from dynident.readers import reason_of

        found = {"error": getattr(error, "problem", "") or reason_of(error)}
    with os.fdopen(out, "wb") as file:
        file.write(json.dumps(found).encode())
    os._exit(0)  # without the clean-up of libraries that a damaged file may have confused


def _limit(request: dict[str, Any]) -> None:
    try:
        import resource
    except ImportError:  # not on Windows: there the time alone is limited
        return
    seconds = max(1, round(request["seconds"]))
    wanted = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_DATA: request["memory"],
        resource.RLIMIT_FSIZE: request["file"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in wanted.items():
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
