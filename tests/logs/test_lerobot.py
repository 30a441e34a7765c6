from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynident as di

N = 50
NAMES = ["joint5", "joint2", "joint3"]  # of kr5-planar, in another order than its own
OWN = [1, 2, 0]


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return {"state": rng.normal(size=(N, 3)), "effort": rng.normal(size=(N, 3))}


def vectors(values, fixed):
    return pa.FixedSizeListArray.from_arrays(values.ravel(), 3) if fixed else pa.array(values.tolist())


def write(root, signals, *, names=NAMES, fixed=True, episodes=1, kind=np.float32):
    (root / "meta").mkdir(parents=True, exist_ok=True)
    features = {f"observation.{name}": {"dtype": "float64", "shape": [3], "names": names} for name in signals}
    features["action"] = {"dtype": "float32", "shape": [3], "names": None}
    (root / "meta" / "info.json").write_text(json.dumps({"fps": 30, "features": features}))
    frames = np.arange(N)
    columns = {f"observation.{name}": vectors(values, fixed) for name, values in signals.items()}
    columns |= {"action": vectors(np.zeros((N, 3)), fixed), "frame_index": frames}
    columns["timestamp"] = (frames / 30).astype(kind)
    (root / "data" / "chunk-000").mkdir(parents=True, exist_ok=True)
    for episode in range(episodes):
        table = pa.table({**columns, "episode_index": np.full(N, episode)})
        pq.write_table(table, root / "data" / "chunk-000" / f"episode_{episode:06d}.parquet")
    return root / "data" / "chunk-000" / "episode_000000.parquet"


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("names", [NAMES, {"motors": NAMES}, [f"{name}.pos" for name in NAMES]])
def test_an_episode(tmp_path, robot, signals, names, fixed):
    file = write(tmp_path, signals, names=names, fixed=fixed)
    for path in (file, tmp_path):
        log = di.read_log(path, robot)
        np.testing.assert_array_equal(log.time, np.arange(N) / 30)
        np.testing.assert_array_equal(log.array("q", robot), signals["state"][:, OWN])
        np.testing.assert_array_equal(log.array("tau", robot), signals["effort"][:, OWN])
        assert "action.1" in log.unused


def test_episodes_follow_with_a_gap(tmp_path, robot, signals):
    write(tmp_path, signals, episodes=3)
    log = di.read_log(tmp_path, robot)
    assert len(log) == 3 * N
    steps = np.diff(log.time)
    np.testing.assert_allclose(steps[[N - 1, 2 * N - 1]], 1.0)
    np.testing.assert_allclose(np.delete(steps, [N - 1, 2 * N - 1]), 1 / 30)


def test_column_file_for_units(tmp_path, robot, signals):
    rules = {f"{name}.position": {"column": f"q{OWN.index(i) + 1}", "unit": "deg"} for i, name in enumerate(NAMES)}
    log = di.read_log(write(tmp_path, signals), robot, columns=rules)
    np.testing.assert_allclose(log.array("q", robot), np.radians(signals["state"][:, OWN]), rtol=1e-15)


def test_what_is_wrong_is_named(tmp_path, robot, signals):
    file = write(tmp_path, signals, names=NAMES[:2])
    with pytest.raises(di.LogError, match=r"'observation.state' has vectors of other lengths than the 2 of meta/info"):
        di.read_log(file, robot)
    with pytest.raises(di.LogError, match="no such file"):
        di.read_log(file.with_name("none.parquet"), robot)
    with pytest.raises(di.LogError, match=r"column 'joint2\.effort' appears twice"):
        di.read_log(write(tmp_path, signals | {"torque": signals["effort"]}), robot)
    (tmp_path / "meta" / "info.json").write_text("[]")
    with pytest.raises(di.LogError, match=r"info\.json: does not describe the features"):
        di.read_log(file, robot)
    write(tmp_path, signals)
    file.write_text("nonsense")
    with pytest.raises(di.LogError, match="cannot be read as Parquet"):
        di.read_log(tmp_path, robot)
    file.unlink()
    with pytest.raises(di.LogError, match=r"has no data/\*\*/\*\.parquet"):
        di.read_log(tmp_path, robot)
