from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import dynident as di
from tests.information.test_accumulation import data


@pytest.fixture
def info():
    robot = di.load_robot("sr400")
    return di.accumulate(robot, *data(robot, 600), segment=200)


def test_save_load_continue(info, tmp_path):
    robot = di.load_robot("sr400")
    path = tmp_path / "run.npz"
    info.save(path)
    loaded = di.load_information(path)
    assert loaded.names == info.names
    assert loaded.coordinates.relations == info.coordinates.relations
    np.testing.assert_array_equal(loaded.solve().values, info.solve().values)
    more = di.accumulate(robot, *data(robot, 300, 1))
    np.testing.assert_array_equal((loaded + more).solve().values, (info + more).solve().values)
    assert path.stat().st_size < 400_000


def test_a_failed_save_leaves_the_old_file(info, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    info.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        info.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"not an archive", lambda b: b""])
def test_damaged_files_are_named(info, tmp_path, damage):
    path = tmp_path / "run.npz"
    info.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(di.information.InformationFileError, match=r"run\.npz"):
        di.load_information(path)


def test_foreign_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    np.savez(tmp_path / "b.npz", schema=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    np.savez(tmp_path / "c.npz", schema=np.array([{"format": 1}], dtype=object))
    for name in "abc":
        with pytest.raises(di.information.InformationFileError, match=rf"{name}\.npz"):
            di.load_information(tmp_path / f"{name}.npz")
    with pytest.raises(di.information.InformationFileError, match="no such file"):
        di.load_information(tmp_path / "none.npz")


def test_files_with_an_array_for_each_factor_are_read(info, tmp_path):
    """The format of before."""
    info.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as stored:
        schema, K = json.loads(bytes(stored["schema"]).decode()), stored["K"]
    schema["format"] = "dynident information 1"
    separate = {
        f"R{s}_{c}": factor.R[np.triu_indices(len(factor.R))]
        for s, segment in enumerate(info.segments)
        for c, factor in enumerate(segment.factors)
    }
    text = np.frombuffer(json.dumps(schema).encode(), dtype=np.uint8)
    np.savez(tmp_path / "before.npz", schema=text, K=K, **separate)
    now, before = (di.load_information(tmp_path / f"{name}.npz") for name in ("now", "before"))
    assert before.names == now.names
    for mine, theirs in zip(now.segments, before.segments, strict=True):
        for one, other in zip(mine.factors, theirs.factors, strict=True):
            np.testing.assert_array_equal(one.R, other.R)
    np.savez(tmp_path / "short.npz", schema=text, K=K, **dict(list(separate.items())[:-1]))
    with pytest.raises(di.information.InformationFileError, match=r"short\.npz"):
        di.load_information(tmp_path / "short.npz")


def test_what_is_worked_out_is_not_pickled(info):
    before = pickle.dumps(info)
    first = info.channel_factors()
    assert info.channel_factors() is first
    assert pickle.dumps(info) == before
