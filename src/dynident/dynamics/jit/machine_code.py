"""Machine code from LLVM modules, kept on disk for the next process.

An entry is found by the hash of what it was made from: the caller's key, the versions of dynident and LLVM, and the
processor's name and features. It is written under a temporary name and moved into place, so two processes that compile
at once cannot disturb each other, and it carries its own checksum, so a damaged or foreign file is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from dynident._version import __version__
from dynident.dynamics.jit.vector_ir import Emitter, cpu

_MAGIC = b"dynident object 2\n"
_ready = False
_lock = threading.Lock()


def cache_folder() -> Path | None:
    """Where compiled kernels are kept; None when caching is switched off by an empty DYNIDENT_CACHE."""
    chosen = os.environ.get("DYNIDENT_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "dynident"
    except RuntimeError:  # a user without a home
        return None


class Code:
    """Functions loaded into this process; alive as long as this object is."""

    def __init__(self, machine_code: bytes, symbols: Mapping[str, int]) -> None:
        for name, address in symbols.items():
            llvm.add_symbol(name, address)
        target = _target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self._object = llvm.ObjectFileRef.from_data(machine_code)
        self._engine.add_object_file(self._object)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Address of a function."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise KeyError(name)
        return found

    def function(self, name: str, arguments: list[Any], result: Any = None) -> Any:
        """A function callable from Python; it runs without the interpreter lock."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))


def compile_module(key: str, emit: Callable[[Emitter], None], symbols: Mapping[str, int] | None = None) -> Code:
    """Machine code of the module that `emit` builds, from the cache when it is there.

    Args:
        key: Everything that shapes the module, apart from the machine and the versions.
        emit: Builds the module's functions.
        symbols: Addresses of functions that the module calls and does not define.
    """
    with _lock:  # LLVM's compiler is not made for several threads
        _start()
        digest = hashlib.sha256("\0".join((key, __version__, llvmlite.__version__, *cpu())).encode()).hexdigest()
        folder = cache_folder()
        path = None if folder is None else folder / f"{digest[:40]}.o"
        stored = None if path is None else _read(path, digest)
        if stored is not None:
            return Code(stored, symbols or {})
        machine_code = _compile(emit)
        if path is not None:
            _write(path, digest, machine_code)
        return Code(machine_code, symbols or {})


def _start() -> None:
    global _ready
    if not _ready:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _ready = True


def _target_machine() -> Any:
    name, features = cpu()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=2, jit=True)


def _compile(emit: Callable[[Emitter], None]) -> bytes:
    emitter = Emitter()
    emit(emitter)
    module = llvm.parse_assembly(str(emitter.module))
    module.verify()
    target = _target_machine()
    # The programs are already folded and free of common sub-expressions: a light pipeline is enough.
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


def _seal(digest: str, code: bytes) -> bytes:
    """What an entry begins with: it is of this format, was made from this, and is complete."""
    return _MAGIC + hashlib.sha256(digest.encode() + code).digest()


def _read(path: Path, digest: str) -> bytes | None:
    """The machine code of an entry, or None if it is missing, damaged or another entry's."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    code = content[head:]
    return code if content[:head] == _seal(digest, code) else None


def _write(path: Path, digest: str, code: bytes) -> None:
    """Put an entry in place in one step; a cache that cannot be written is no reason to stop."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(digest, code) + code)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
    except OSError:
        return
