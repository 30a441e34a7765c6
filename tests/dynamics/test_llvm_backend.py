from __future__ import annotations

import dataclasses
import subprocess
import sys
import warnings

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.equations import regressor_entries
from dynident.dynamics.jit import code_cache, machine_code as jit
from dynident.dynamics.jit.llvm_kernel import LlvmKernel
from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.program import Recorder
from dynident.dynamics.kernels import _KINDS, record
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.state import make_state
from dynident.dynamics.terms import Coulomb, resolve_terms
from tests.robots import random_urdf

IN_TEST, IN_FULL = 12, 200
SEEDS = [pytest.param(s, marks=[pytest.mark.full] if s >= IN_TEST else []) for s in range(IN_FULL)]


def inputs_for(program, n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        np.array(rng.uniform(0.5, 2)) if name.startswith("chi") else rng.normal(size=n) * 2 for name in program.inputs
    ]


def both(program, inputs, n):
    plain, fast = np.zeros((2, len(program.outputs), n))
    NumpyKernel(program)(inputs, plain)
    LlvmKernel(program)(inputs, fast)
    return plain, fast


def assert_equal_to_rounding(plain, fast):
    # An output that is zero but for rounding is evaluated beside the others.
    size = np.maximum(np.abs(plain).max(1, keepdims=True), 1e-3 * np.abs(plain).max())
    assert (np.abs(plain - fast) / size).max() < 1e-12


@pytest.mark.parametrize("name", di.bundled_names())
def test_bundled_robots_equal_the_reference(name):
    program, _ = record(di.load_robot(name), "regressor", resolve_terms(None))
    assert_equal_to_rounding(*both(program, inputs_for(program, 300), 300))


@pytest.mark.parametrize("kind", [kind for kind in _KINDS if kind not in ("regressor", "forward dynamics")])
def test_every_function_equals_the_reference(kind):
    program, _ = record(di.load_robot("sr400"), kind, resolve_terms(None))
    assert_equal_to_rounding(*both(program, inputs_for(program, 131), 131))


@pytest.mark.parametrize("name", ["puma560", "sr400"])
def test_forward_dynamics_undoes_inverse_dynamics_when_compiled(name, monkeypatch):
    monkeypatch.setenv("DYNIDENT_BACKEND", "llvm")
    robot = di.load_robot(name)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 50, 6))
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(di.forward_dynamics(robot, q, dq, tau), ddq, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_robots_equal_the_reference(seed):
    robot = di.robot.robot_from_urdf(random_urdf(500 + seed))
    n = len(robot.joint_names)
    if seed % 2:  # motors coupled to the joints below them
        coupling = np.eye(n) + np.tril(np.random.default_rng(seed).normal(size=(n, n)), -1)
        robot = dataclasses.replace(robot, coupling=coupling)
    terms = resolve_terms(["rigid", "Ia", "Fv", Coulomb(0.05), "Fo"])
    program, places = record(robot, "regressor", terms)
    inputs = inputs_for(program, 90, seed)
    plain, fast = both(program, inputs, 90)
    assert_equal_to_rounding(plain, fast)
    # The recursion on plain floats, sample by sample, knows nothing of programs.
    for k in (0, 57, 89):
        state = [float(x[k]) for x in inputs]
        entries = regressor_entries(
            make_state(robot, NUMPY_FUNCTIONS, state[:n], state[n : 2 * n], state[2 * n :]), terms
        )
        reference = np.array([float(entries.get(place, 0.0)) for place in places])
        assert np.abs(reference - fast[:, k]).max() < 1e-12 * max(1.0, np.abs(reference).max())


@pytest.mark.parametrize("function", ["abs", "exp", "log", "sign", "tanh"])
def test_functions_equal_those_of_numpy_over_their_whole_range(function):
    recorder = Recorder(["x"])
    program = recorder.finish([getattr(recorder, function)(recorder.input("x"))])
    sizes = np.concatenate(
        [10.0 ** np.linspace(-320, 308, 2000), np.linspace(0.0, 800.0, 4001), [1.0, 0.5**0.5, np.inf]]
    )
    x = sizes if function == "log" else np.concatenate([-sizes, sizes])
    with np.errstate(over="ignore", under="ignore"):
        plain, fast = both(program, [x], len(x))
    np.testing.assert_allclose(
        fast, plain, rtol=1e-13 if function == "exp" else 1e-15, atol=0.0 if function != "exp" else 1e-307
    )


@pytest.mark.parametrize("function", ["exp", "log"])
def test_what_is_no_number_stays_none(function):
    recorder = Recorder(["x"])
    program = recorder.finish([getattr(recorder, function)(recorder.input("x"))])
    plain, fast = both(program, [np.array([np.nan, -1.0, 0.0, 1.0, 5e-324, np.inf])], 6)
    np.testing.assert_allclose(fast, plain, rtol=1e-14)


def test_every_length_from_1_to_600():
    program, _ = record(di.load_robot("cylindrical"), "regressor", resolve_terms(None))
    inputs = inputs_for(program, 600)
    plain, _ = both(program, inputs, 600)
    kernel = LlvmKernel(program)
    for n in range(1, 601):
        out = np.full((len(program.outputs) + 1, n), 7.0)
        kernel([x[:n] for x in inputs], out, range(len(program.outputs)))
        assert_equal_to_rounding(plain[:, :n], out[:-1])
        assert (out[-1] == 7.0).all()  # nothing is written beyond the last row


def test_strided_input_and_chosen_rows():
    program, _ = record(di.load_robot("pendulum-2"), "regressor", resolve_terms("rigid"))
    wide = np.random.default_rng(0).normal(size=(400, len(program.inputs)))
    inputs = [wide[::-2, i] for i in range(len(program.inputs))]
    plain = np.zeros((len(program.outputs), 200))
    NumpyKernel(program)([np.ascontiguousarray(x) for x in inputs], plain)
    rows = [2 * i + 1 for i in range(len(program.outputs))]
    out = np.full((2 * len(program.outputs), 200), 7.0)
    LlvmKernel(program)(inputs, out, rows)
    assert_equal_to_rounding(plain, out[1::2])
    assert (out[::2] == 7.0).all()


def test_functions_are_accurate_everywhere():
    recorder = Recorder(["x0"])
    x = recorder.input("x0")
    program = recorder.finish([recorder.sin(x), recorder.cos(x), recorder.tanh(x), recorder.sign(x)])
    special = np.array([0.0, -0.0, 1e-300, -1e-9, 0.6249999, 0.625, 0.6250001, np.pi, 1e5, -1e6, 19.9, 20.1, 700.0])
    values = np.concatenate([special, np.linspace(-50, 50, 20_001), np.geomspace(1e-12, 1e4, 5000)])
    out = np.zeros((4, len(values)))
    LlvmKernel(program)([values], out)
    np.testing.assert_allclose(out[0], np.sin(values), atol=3e-16)
    np.testing.assert_allclose(out[1], np.cos(values), atol=3e-16)
    np.testing.assert_allclose(out[2], np.tanh(values), rtol=1e-15, atol=0)
    np.testing.assert_array_equal(out[3], np.sign(values))


def entries(folder):
    return sorted(folder.glob("*.o"))


class TestCache:
    @pytest.fixture
    def program(self):
        return record(di.load_robot("pendulum-1"), "regressor", resolve_terms(None))[0]

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DYNIDENT_CACHE", str(tmp_path / "cache"))
        code_cache.open_cache.cache_clear()
        return tmp_path / "cache"

    def run(self, program):
        assert_equal_to_rounding(*both(program, inputs_for(program, 40), 40))

    def test_the_second_use_does_not_compile(self, program, folder, monkeypatch):
        self.run(program)
        assert len(entries(folder)) == 1

        def fail(emit):
            raise AssertionError("compiled again")

        monkeypatch.setattr(jit, "_compile", fail)
        self.run(program)

    @pytest.mark.parametrize(
        "damage",
        [lambda b: b"", lambda b: b[:-10], lambda b: b"other" + b, lambda b: b[:200] + b"\x00" * 50 + b[250:]],
        ids=["empty", "short", "foreign", "flipped"],
    )
    def test_a_damaged_entry_is_made_again(self, program, folder, damage):
        self.run(program)
        (entry,) = entries(folder)
        good = entry.read_bytes()
        entry.write_bytes(damage(good))
        self.run(program)
        assert entry.read_bytes() == good

    def test_another_entry_under_this_name_is_not_run(self, program, folder):
        self.run(program)
        (mine,) = entries(folder)
        other = record(di.load_robot("pendulum-2"), "regressor", resolve_terms(None))[0]
        LlvmKernel(other)
        theirs = next(entry for entry in entries(folder) if entry != mine)
        mine.write_bytes(theirs.read_bytes())
        self.run(program)

    def test_entries_depend_on_the_processor(self, program, folder, monkeypatch):
        self.run(program)
        name, features = jit.cpu()
        monkeypatch.setattr(jit, "cpu", lambda: (name, features + ",-made-up"))
        monkeypatch.setattr(jit, "_target_machine", _plain_target)
        self.run(program)
        assert len(entries(folder)) == 2

    def test_only_the_user_may_have_written_it(self, program, folder):
        self.run(program)
        (entry,) = entries(folder)
        assert [path.stat().st_mode & 0o777 for path in (folder, folder / "key", entry)] == [0o700, 0o600, 0o600]
        assert [path.name for path in folder.iterdir() if path.suffix == ".part"] == []

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
    def test_a_folder_that_others_can_write_to_is_not_used(self, program, folder, mode, monkeypatch):
        folder.mkdir()
        folder.chmod(mode)
        monkeypatch.setattr(code_cache.CodeCache, "read", lambda *_: pytest.fail("read"))
        with pytest.warns(di.errors.FileWarning, match="cache: compiled code is neither read .*others can write to it"):
            self.run(program)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.run(program)  # said once
        assert list(folder.iterdir()) == []

    def test_a_folder_of_another_user_is_not_used(self, program, folder, monkeypatch):
        folder.mkdir(mode=0o700)
        monkeypatch.setattr(code_cache.os, "geteuid", lambda: folder.stat().st_uid + 1)
        with pytest.warns(di.errors.FileWarning, match="belongs to another user"):
            self.run(program)
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize("path", ["*.o", "key"])
    def test_files_that_others_can_write_are_not_believed(self, program, folder, path):
        self.run(program)
        (file,) = folder.glob(path)
        file.chmod(0o666)
        before = file.stat().st_ino
        code_cache.open_cache.cache_clear()
        self.run(program)
        assert file.stat().st_ino != before  # made again
        assert file.stat().st_mode & 0o777 == 0o600

    def test_an_entry_made_without_the_key_is_not_run(self, program, folder, tmp_path):
        """A checksum that anybody can compute is none."""
        self.run(program)
        (entry,) = entries(folder)
        good = entry.read_bytes()
        stranger = code_cache.CodeCache(tmp_path / "theirs")
        stranger._path = lambda _: entry
        digest = "0" * 64
        stranger.write(digest, b"code of theirs")
        cache = code_cache.CodeCache(folder)
        assert stranger.read(digest) == b"code of theirs"
        cache._path = lambda _: entry
        assert cache.read(digest) is None
        self.run(program)
        assert entry.read_bytes() == good

    def test_a_link_is_not_followed(self, program, folder, tmp_path):
        self.run(program)
        (entry,) = entries(folder)
        entry.rename(tmp_path / "elsewhere.o")
        entry.symlink_to(tmp_path / "elsewhere.o")
        self.run(program)
        assert not entry.is_symlink()

    def test_a_cache_that_cannot_be_written_is_no_obstacle(self, program, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("DYNIDENT_CACHE", str(tmp_path / "file" / "cache"))
        self.run(program)
        monkeypatch.setenv("DYNIDENT_CACHE", "")
        assert jit.cache_folder() is None
        self.run(program)

    def test_two_processes_at_once(self, folder):
        code = (
            "import numpy as np, dynident as di\n"
            "robot = di.load_robot('pendulum-3')\n"
            "x = np.ones((50, 3))\n"
            "print(di.accumulate(robot, x * [[1, 2, 3]], x, x, x).n_rows)"
        )
        running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
        assert {process.communicate(timeout=60)[0].strip() for process in running} == {"150"}
        assert all(process.returncode == 0 for process in running)
        assert not list(folder.glob("*.part"))
        assert len(entries(folder)) == 2  # the update and the robot's stream


def _plain_target():
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )


def test_back_end_can_be_chosen(monkeypatch):
    robot = di.load_robot("pendulum-2")
    state = np.random.default_rng(0).normal(size=(3, 10, 2))
    answers = []
    for chosen in ("numpy", "llvm", "auto"):
        monkeypatch.setenv("DYNIDENT_BACKEND", chosen)
        answers.append(di.inverse_dynamics(robot, *state))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-13)
    monkeypatch.setenv("DYNIDENT_BACKEND", "fortran")
    with pytest.raises(di.InputError, match="DYNIDENT_BACKEND is 'fortran'; expected auto, numpy, llvm"):
        di.inverse_dynamics(robot, *state)
