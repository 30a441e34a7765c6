"""One log in every format gives the same fit."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

import dynident as di
from dynident.information.row_source import accumulate_source
from dynident.signals import ObservedRows, SignalOptions, observe
from tests.logs.test_bag import START, cdr, write_db3, write_mcap
from tests.logs.test_mat import save73
from tests.logs.test_rsi import record

STEP = 12  # [ms], that of RSI
N = 700


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("examples/demo/arm.yaml")


@pytest.fixture(scope="module")
def base(robot):
    return di.base_parameters(robot, "rigid,Ia,Fv,Fc(0.02),Fo")


@pytest.fixture(scope="module")
def arrays(robot):
    """Positions and currents of the demo, on a steady clock that every format can tell exactly."""
    log = di.read_log("examples/demo/fourier_1.csv.gz", robot)
    return {"t": np.arange(N) * STEP / 1e3, "q": log.array("q", robot)[:N], "i": log.array("i", robot)[:N]}


def write_csv(path, arrays, names):
    header = ["t", *(f"{kind}{k + 1}" for kind in "qi" for k in range(len(names)))]
    rows = np.column_stack([arrays["t"], arrays["q"], arrays["i"]]).tolist()
    text = "\n".join([",".join(header), *(",".join(map(repr, row)) for row in rows)])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_npz(path, arrays, names):
    np.savez(path, **arrays)


def write_mat5(path, arrays, names):
    savemat(path, {"run": arrays}, do_compression=True)


def write_mat73(path, arrays, names):
    save73(path, {"t": arrays["t"][:, None], "q": arrays["q"], "i": arrays["i"]})


def write_parquet(path, arrays, names):
    columns = {f"{kind}{k + 1}": arrays[kind][:, k] for kind in "qi" for k in range(len(names))}
    pq.write_table(pa.table({"t": arrays["t"], **columns}), path)


def write_bag(path, arrays, names):
    messages = []
    for k, (q, current) in enumerate(zip(arrays["q"], arrays["i"], strict=True)):
        stamp = START + k * STEP * 1_000_000
        messages.append(("/joint_states", stamp, cdr(stamp, names[::-1], q[::-1], [], current[::-1])))
    (write_db3 if path.suffix == ".db3" else write_mcap)(path, messages)


def write_rsi(path, arrays, names):
    degrees = np.degrees(arrays["q"])
    path.write_text("\n".join(record(k, degrees[k], arrays["i"][k]) for k in range(N)))


def write_lerobot(path, arrays, names):
    (path / "meta").mkdir(parents=True)
    (path / "data").mkdir()
    about = {"dtype": "float64", "shape": [len(names)], "names": list(names)}
    features = {"observation.state": about, "observation.current": about}
    (path / "meta" / "info.json").write_text(json.dumps({"features": features}))
    columns = {"timestamp": arrays["t"], "observation.state": arrays["q"].tolist()}
    pq.write_table(pa.table({**columns, "observation.current": arrays["i"].tolist()}), path / "data" / "file.parquet")


def fit(log, robot, base):
    rows = ObservedRows((observe(log, robot, SignalOptions(delay=0.0, band=5.0)),), base)
    return di.estimators.WeightedLeastSquares().fit(accumulate_source(rows))


@pytest.fixture(scope="module")
def expected(robot, base, arrays):
    channels = {f"{kind}{k + 1}": arrays[kind][:, k] for kind in "qi" for k in range(6)}
    return fit(di.Log("in memory", "", arrays["t"], channels), robot, base)


FORMATS = {
    "log.csv": write_csv,
    "log.csv.gz": write_csv,
    "log.npz": write_npz,
    "log.parquet": write_parquet,
    "five.mat": write_mat5,
    "seven.mat": write_mat73,
    "log.mcap": write_bag,
    "log.db3": write_bag,
    "log.xml": write_rsi,
    "lerobot": write_lerobot,
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_fit_does_not_know_the_format(tmp_path, robot, base, arrays, expected, name):
    names = tuple(joint.name for joint in robot.joints)
    FORMATS[name](tmp_path / name, arrays, names)
    rules = {f"{joint.name}.effort": f"i{joint.number}" for joint in robot.joints}
    found = fit(di.read_log(tmp_path / name, robot, columns=rules), robot, base)
    # Degrees are rounded on their way to radians and back; everything else is the same bit for bit.
    within = 1e-12 if name == "log.xml" else 0.0
    scale = float(np.abs(expected.values_).max())
    np.testing.assert_allclose(found.values_, expected.values_, rtol=0.0, atol=within * scale)
