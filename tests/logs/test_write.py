from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.logs.write import write_log


@pytest.fixture
def log():
    rng = np.random.default_rng(0)
    return di.Log(
        "made", "", np.arange(50) * 1e-3 + 1e-7, {"q1": rng.normal(size=50), "tau1": 1e6 * rng.normal(size=50)}
    )


@pytest.mark.parametrize(("ending", "within"), [(".csv", 1e-8), (".csv.gz", 1e-8), (".parquet", 0.0), (".npz", 0.0)])
def test_what_is_written_is_read(log, ending, within, tmp_path):
    path = tmp_path / f"log{ending}"
    write_log(log, path)
    back = di.read_log(path)
    assert list(back.channels) == list(log.channels)
    assert back.time == pytest.approx(log.time, abs=1e-9 if within else 0.0, rel=0.0)
    for name, values in log.channels.items():
        assert back.channels[name] == pytest.approx(values, rel=within, abs=0.0)
    first = path.read_bytes()
    write_log(log, path)
    assert path.read_bytes() == first


def test_other_endings_and_places(log, tmp_path):
    with pytest.raises(di.InputError, match=r"log\.txt: a log must end in \.csv, "):
        write_log(log, tmp_path / "log.txt")
    with pytest.raises(di.InputError, match="does not exist"):
        write_log(log, tmp_path / "nowhere" / "log.csv")
