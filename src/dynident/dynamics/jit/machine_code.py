"""Machine code from LLVM modules, kept on disk for the next process.

An entry is found by the hash of what it was made from: the caller's key, the versions of dynident and LLVM, and the
processor's name and features. `code_cache` says which entries are believed.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from dynident._version import __version__
from dynident.dynamics.jit.code_cache import cache_folder, open_cache
from dynident.dynamics.jit.vector_ir import Emitter, cpu

_ready = False
_lock = threading.Lock()


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
        cache = None if folder is None else open_cache(folder)
        machine_code = None if cache is None else cache.read(digest)
        if machine_code is None:
            machine_code = _compile(emit)
            if cache is not None:
                cache.write(digest, machine_code)
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
