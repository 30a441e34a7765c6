from __future__ import annotations

import sys
import zlib
from dataclasses import replace

import h5py
import numpy as np
import pytest
from scipy.io import savemat

import dynident as di
from dynident import limits

N = 40
TIME = np.arange(N) * 0.01


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return {"q": rng.normal(size=(N, 3)), "tau": rng.normal(size=(N, 3))}


def save73(path, variables):
    """As MATLAB writes v7.3: a header of 512 bytes, axes in reverse, the class of each variable as an attribute."""
    with h5py.File(path, "w", userblock_size=512) as file:
        _fill(file, variables)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))


def _fill(group, variables):
    for name, value in variables.items():
        if isinstance(value, dict):
            inner = group.create_group(name)
            inner.attrs["MATLAB_class"] = np.bytes_("struct")
            _fill(inner, value)
        else:
            data = group.create_dataset(name, data=np.atleast_2d(value).T, compression="gzip")
            data.attrs["MATLAB_class"] = np.bytes_("double")


def save5(path, variables):
    savemat(path, variables, do_compression=True)


def check(path, robot, signals, **options):
    log = di.read_log(path, robot, **options)
    np.testing.assert_array_equal(log.time, TIME)
    for kind, values in signals.items():
        np.testing.assert_array_equal(log.array(kind, robot), values)
    return log


@pytest.mark.parametrize("save", [save5, save73])
def test_matrices_vectors_and_structs(tmp_path, robot, signals, save):
    q, tau = signals["q"], signals["tau"]
    columns = {f"{kind}{i + 1}": values[:, i] for kind, values in signals.items() for i in range(3)}
    writings = {
        "matrices": {"t": TIME[:, None], "q": q, "tau": tau},
        "across": {"t": TIME[None], "q": q.T, "tau": tau.T},
        "vectors": {"time": TIME[:, None], **columns},
        "struct": {"run": {"t": TIME[:, None], "measured": {"q": q, "tau": tau}}},
        "with more": {"t": TIME[:, None], "q": q, "tau": tau, "fs": 100.0, "gains": np.eye(3)},
    }
    for name, variables in writings.items():
        path = tmp_path / f"{name}.mat"
        save(path, variables)
        log = check(path, robot, signals)
    assert log.unused == ("fs (1x1)", "gains (3x3)")


@pytest.mark.parametrize("save", [save5, save73])
def test_column_files_and_clashing_fields(tmp_path, robot, signals, save):
    wanted = {"stamp": TIME[:, None] * 1000.0, "state": np.degrees(signals["q"]), "load": {"state": signals["tau"]}}
    save(tmp_path / "log.mat", wanted)
    rules = {"stamp": {"column": "t", "unit": "ms"}}
    rules |= {f"state{i}": {"column": f"q{i}", "unit": "deg"} for i in (1, 2, 3)}
    rules |= {f"load.state{i}": f"tau{i}" for i in (1, 2, 3)}
    log = di.read_log(tmp_path / "log.mat", robot, columns=rules)
    np.testing.assert_allclose(log.array("q", robot), signals["q"], rtol=1e-14)
    np.testing.assert_array_equal(log.array("tau", robot), signals["tau"])


@pytest.mark.parametrize("save", [save5, save73])
def test_one_joint_and_uneven_arrays(tmp_path, signals, save):
    save(tmp_path / "one.mat", {"t": TIME[:, None], "q": signals["q"][:, :1]})
    assert list(di.read_log(tmp_path / "one.mat").channels) == ["q1"]
    save(tmp_path / "uneven.mat", {"t": TIME[:, None], "q": signals["q"][:-1]})
    with pytest.raises(di.LogError, match=r"uneven\.mat: 'q' is 39x3, but the log has 40 samples"):
        di.read_log(tmp_path / "uneven.mat")


def test_objects_are_named(tmp_path, robot):
    with h5py.File(tmp_path / "object.mat", "w", userblock_size=512) as file:
        data = file.create_dataset("run", data=np.zeros((1, 6), dtype=np.uint32))
        data.attrs["MATLAB_class"] = np.bytes_("timetable")
        data.attrs["MATLAB_object_decode"] = np.int32(3)
    with pytest.raises(
        di.LogError, match=r"only run \(MATLAB object timetable\); in MATLAB, put the numbers into plain"
    ):
        di.read_log(tmp_path / "object.mat", robot)
    (tmp_path / "opaque.mat").write_bytes(_opaque())
    with pytest.raises(di.LogError, match=r"only run \(MATLAB object timetable\)"):
        di.read_log(tmp_path / "opaque.mat", robot)
    savemat(tmp_path / "cell.mat", {"names": np.array(["a", 1.0], dtype=object), "runs": np.zeros(2, [("t", "O")])})
    with pytest.raises(di.LogError, match=r"only names \(cell 1x2\), runs \(struct array 1x2\)"):
        di.read_log(tmp_path / "cell.mat", robot)


def _element(kind, content):
    return np.array([kind, len(content)], "<u4").tobytes() + content + b"\0" * (-len(content) % 8)


def _opaque():
    """A v5 file whose only variable is an object of a class (array class 17), as MATLAB stores a timetable."""
    flags = _element(6, np.array([17, 0], "<u4").tobytes())
    name, system, kind = (_element(1, word) for word in (b"run", b"MCOS", b"timetable"))
    inner = _element(6, np.array([13, 0], "<u4").tobytes()) + _element(5, np.array([1, 1], "<i4").tobytes())
    reference = _element(14, inner + _element(1, b"") + _element(6, np.array([1], "<u4").tobytes()))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    return head + _element(14, flags + name + system + kind + reference)


def test_bombs_are_refused_before_they_unfold(tmp_path, robot, monkeypatch):
    body = zlib.compress(_element(14, b"\0" * 100_000_000))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    (tmp_path / "bomb.mat").write_bytes(head + np.array([15, len(body)], "<u4").tobytes() + body)
    with h5py.File(tmp_path / "bomb73.mat", "w", userblock_size=512) as file:
        file.create_dataset("t", shape=(1, 1 << 40), dtype="f8", chunks=(1, 1 << 16))
    np.savez_compressed(tmp_path / "bomb.npz", t=np.zeros(10_000_000))
    for name, words in (("bomb.mat", "that is no log"), ("bomb73.mat", "at most 2 GB"), ("bomb.npz", "that is no log")):
        with pytest.raises(di.LogError, match=words):
            di.read_log(tmp_path / name, robot)
    monkeypatch.setattr(limits, "LIMITS", replace(limits.LIMITS, memory_bytes=1000))
    np.savez(tmp_path / "large.npz", t=np.arange(1000.0))
    with pytest.raises(di.LogError, match="write a long log as Parquet or CSV"):
        di.read_log(tmp_path / "large.npz", robot)


def test_damaged_files_and_a_missing_library(tmp_path, robot, signals, monkeypatch):
    with pytest.raises(di.LogError, match="no such file"):
        di.read_log(tmp_path / "none.mat", robot)
    (tmp_path / "text.mat").write_text("nonsense")
    with pytest.raises(di.LogError, match=r"cannot be read as a \.mat file"):
        di.read_log(tmp_path / "text.mat", robot)
    for name, save in (("five.mat", save5), ("seven.mat", save73)):
        save(tmp_path / name, {"t": TIME[:, None], "q": signals["q"]})
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) * 2 // 3])
        with pytest.raises(di.LogError, match=rf"{name}: (is cut off|cannot be read as)"):
            di.read_log(tmp_path / name, robot)
        (tmp_path / name).write_bytes(whole)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(di.LogError, match="pip install h5py"):
        di.read_log(tmp_path / "seven.mat", robot)
    di.read_log(tmp_path / "five.mat", robot)
