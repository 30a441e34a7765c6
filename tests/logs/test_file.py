from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynident as di
from dynident import logs
from dynident.logs import Log, LogError, LogFile, open_log, parquet, read_log, stream_log, text
from dynident.logs.tables import regroup

BLOCK = 1000  # here, to keep the files short
N = 2500  # three blocks
NAMES = ("t", "q1", "q2", "tau1")


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(logs.log, "BLOCK", BLOCK)
    monkeypatch.setattr(logs.file, "BLOCK", BLOCK)
    monkeypatch.setattr(text, "PART", 1 << 14)  # so that rows of a block come from several parts


@pytest.fixture(scope="module")
def samples():
    """(N, 4), rounded so that a text holds the same numbers."""
    values = np.random.default_rng(3).normal(size=(N, 4)).round(6)
    values[:, 0] = np.arange(N) / 1000
    return values


def csv(values, header="t,q1,q2,tau1") -> str:
    return header + "\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n"


def table(values, names=NAMES) -> pa.Table:
    return pa.table({name: values[:, i] for i, name in enumerate(names)})


def write(folder, values, kind, **how):
    path = folder / f"log.{kind}"
    if kind == "parquet":
        pq.write_table(table(values), path, **how)
    elif kind == "npz":
        np.savez(path, **{name: values[:, i] for i, name in enumerate(NAMES)})
    else:
        content = csv(values).encode()
        path.write_bytes(gzip.compress(content, 1) if kind == "csv.gz" else content)
    return path


def assert_blocks_are(source, log):
    for _ in range(2):  # a second pass starts again
        blocks = list(source.blocks())
        assert all(0 < len(block) <= BLOCK for block in blocks)
        np.testing.assert_array_equal(np.concatenate([block.time for block in blocks]), log.time)
        assert {tuple(block.channels) for block in blocks} == {tuple(log.channels)}
        for name, values in log.channels.items():
            np.testing.assert_array_equal(np.concatenate([block.channels[name] for block in blocks]), values)
        for part in (source, *blocks):
            assert (part.source, part.digest, part.role, part.label) == (log.source, log.digest, log.role, log.label)


def message(function) -> str:
    with pytest.raises(di.DynidentError) as caught:
        function()
    return f"{type(caught.value).__name__}: {caught.value}"


def same_error(path, **options) -> str:
    """The message of `read_log`, which a pass over the stream must give too."""
    whole = message(lambda: read_log(path, **options))
    assert message(lambda: list(stream_log(path, **options).blocks())) == whole
    return whole


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "npz"])
def test_blocks_together_are_the_log(tmp_path, samples, kind):
    path = write(tmp_path, samples, kind)
    log = read_log(path, role="validation", label="run 4")
    np.testing.assert_array_equal(np.column_stack([log.time, *log.channels.values()]), samples)
    small = open_log(path, role="validation", label="run 4")
    assert isinstance(small, Log)
    assert_blocks_are(small, log)
    assert_blocks_are(stream_log(path, role="validation", label="run 4"), log)
    for start, stop in ((0.5, None), (None, 2.0), (1.6, 1.75), (2.0, 2.0), (-1.0, 99.0)):
        window = read_log(path, start=start, stop=stop)
        assert_blocks_are(stream_log(path, start=start, stop=stop), window)
        assert_blocks_are(open_log(path, start=start, stop=stop), window)


@pytest.mark.parametrize("kind", ["csv", "csv.gz"])
def test_unit_rows_and_column_files_hold_in_the_stream(tmp_path, samples, kind):
    rows = np.insert(samples, 1, 300.0, axis=1)
    content = csv(rows, "# made by a robot\n\ntime,temp,actual_q,q2,effort\nms,K,deg,rad,Nm")
    content = content.replace("\n", "\n# pause\n \n", 300).encode()
    path = tmp_path / f"log.{kind}"
    path.write_bytes(gzip.compress(content, 1) if kind == "csv.gz" else content)
    (tmp_path / "columns.yaml").write_text("actual_q: q1\neffort: {column: tau1, unit: mNm, scale: 2}\n")
    log = read_log(path, columns=tmp_path / "columns.yaml")
    expected = samples * [1e-3, np.pi / 180, 1, 2e-3]
    np.testing.assert_allclose(np.column_stack([log.time, *log.channels.values()]), expected, rtol=1e-15)
    assert log.unused == ("temp",)
    assert_blocks_are(stream_log(path, columns=tmp_path / "columns.yaml"), log)


@pytest.mark.parametrize("rows", [N, 70], ids=["one row group", "small row groups"])
def test_parquet_in_degrees_and_of_many_types(tmp_path, samples, rows):
    path = tmp_path / "log.parquet"
    columns = {
        "note": ["idle"] * N,
        "Time [ms]": np.arange(N, dtype=np.int64),
        "state.q1 [deg]": samples[:, 1].astype(np.float32),
        "state": samples[:, 2],
        "i1": np.arange(N, dtype=np.uint16),
    }
    pq.write_table(pa.table(columns), path, row_group_size=rows)
    log = read_log(path, columns={"state.q1": "q1"})
    np.testing.assert_array_equal(log.time, np.arange(N) * 1e-3)
    np.testing.assert_array_equal(log.channels["q1"], samples[:, 1].astype(np.float32) * np.float64(np.pi / 180))
    np.testing.assert_array_equal(log.channels["i1"], np.arange(N))
    assert log.unused == ("state", "note (string)")
    assert_blocks_are(stream_log(path, columns={"state.q1": "q1"}), log)


def test_a_text_may_be_cut_anywhere(tmp_path, samples, monkeypatch):
    """Parts of seven bytes cut numbers, line ends and characters of several bytes."""
    content = csv(samples[:300], "# Gelenkgröße µ\n\nt [s],q1 [rad],q2,tau1 [N·m]")
    for end in ("\n", "\r\n", "\r"):
        path = tmp_path / "log.csv"
        path.write_bytes(("\ufeff" + content.replace("\n", end) + f"#{end}{end}9,8,7,6").encode())
        log = read_log(path)
        np.testing.assert_array_equal(log.time, [*samples[:300, 0], 9.0])
        with monkeypatch.context() as patch:
            patch.setattr(text, "PART", 7)
            assert_blocks_are(stream_log(path), log)


FAULTS = {
    "finite": (
        {(2 * BLOCK + 10, 2): np.nan},
        rf"column 'q2' is nan at row {2 * BLOCK + 11} \(1 in all\); repair the log",
    ),
    # The first column of the file is named, whichever block it fails in, and all its faults are counted.
    "columns": (
        {(5, 3): np.inf, (BLOCK, 1): -np.inf, (N - 1, 1): np.nan},
        rf"column 'q1' is -inf at row {BLOCK + 1} \(2 in all\)",
    ),
    "time": ({(BLOCK, 0): np.nan, (3, 0): 7.0}, rf"column 't' is nan at row {BLOCK + 1} \(1 in all\)"),
    "border": ({(BLOCK, 0): 0.998}, rf"time runs backwards from 0\.999 to 0\.998 s at row {BLOCK + 1}; sort"),
    "inside": ({(BLOCK + 2, 0): 0.998, (2000, 0): 0.0}, rf"from 1\.001 to 0\.998 s at row {BLOCK + 3}; sort"),
    "no time": ({(..., 0): 3.0}, "time never advances"),
}


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_numbers_are_named_alike(tmp_path, samples, kind, fault):
    changes, words = FAULTS[fault]
    values = samples.copy()
    for place, value in changes.items():
        values[place] = value
    path = write(tmp_path, values, kind)
    with pytest.raises(di.LogError, match=rf"log\.{kind}: .*{words}"):
        list(stream_log(path).blocks())
    same_error(path)
    same_error(path, start=0.0, stop=99.0)


def test_sound_blocks_come_before_the_fault(tmp_path, samples):
    values = samples.copy()
    values[2 * BLOCK + 10, 2] = np.nan
    stream = stream_log(write(tmp_path, values, "parquet")).blocks()
    assert [len(next(stream)) for _ in range(2)] == [BLOCK, BLOCK]
    with pytest.raises(di.LogError, match="column 'q2' is nan"):
        next(stream)


def test_nulls_in_parquet_are_faults(tmp_path):
    for kind in (pa.float64(), pa.int32()):
        column = pa.array([1, 2, None, 4], type=kind)
        pq.write_table(pa.table({"t": [0.0, 1.0, 2.0, 3.0], "q1": column}), tmp_path / "log.parquet")
        assert "column 'q1' is nan at row 3 (1 in all)" in same_error(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("2.3,1,abc,2", "row 2301 of the numbers, column 'q2': 'abc' is not a number"),
        ("2.3,1,2", "row 2301 of the numbers has 3 cells, but the header has 4"),
        ("2.3,1,2,3,", "row 2301 of the numbers has 5 cells, but the header has 4"),
        ("2.3,1,1_000,2", "row 2301 of the numbers, column 'q2': '1_000' is not a number"),
        ("2.3,1,2,3 # note", "row 2301 of the numbers, column 'tau1': '3 # note' is not a number"),
        ("2.3,1,2,\xff", "is not text"),
    ],
)
def test_bad_rows_of_text_are_named_alike(tmp_path, samples, cells, words):
    lines = csv(samples).splitlines()
    lines[2301] = cells
    path = tmp_path / "log.csv"
    path.write_bytes("\n\n# pause\n".join(["\n".join(lines[:50]), "\n".join(lines[50:])]).encode("latin-1"))
    assert words in same_error(path)


def test_files_that_are_no_logs_are_named_alike(tmp_path, samples):
    def put(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    whole = write(tmp_path, samples, "csv.gz").read_bytes()
    assert "is not a complete gzip file" in same_error(put("cut.csv.gz", whole[:-500]))
    assert "is not a complete gzip file" in same_error(put("cut.csv.gz", whole[:-4]))
    bomb = gzip.compress(b"t,q1\n" + b"0,0\n" * 20_000_000)
    assert "unpacks to more than 67125248 bytes" in same_error(put("bomb.csv.gz", bomb))
    assert "has a line of more than 1048576 characters" in same_error(put("line.csv", b"t," * 2_000_000))
    assert "is empty" in same_error(put("empty.csv", b"# nothing\n\n"))
    assert "has 1 rows of numbers" in same_error(put("short.csv", b"t,q1\ns,rad\n0,1"))
    assert "no such file" in same_error(tmp_path / "none.csv")
    assert "no such file" in same_error(tmp_path / "none.parquet")
    assert "cannot be read as Parquet" in same_error(put("bad.parquet", b"nonsense"))
    cut = bytearray(write(tmp_path, samples, "parquet", compression="zstd").read_bytes())
    cut[2000:20000] = bytes(18000)
    assert "cannot be read as Parquet" in same_error(put("damaged.parquet", bytes(cut)))


def test_parquet_without_what_a_log_needs(tmp_path):
    path = tmp_path / "log.parquet"
    for columns, words in (
        ({"note": ["a", "b"]}, "has no numeric column"),
        ({"clock": [0.0, 1.0], "q1": [0.0, 1.0]}, r"has no time column 't' \[s\] \(columns: clock, q1\)"),
        ({"t": [0.0], "q1": [0.0]}, "has 1 samples"),
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(di.LogError, match=words):
            read_log(path)
        same_error(path)
    twice = pa.table([pa.array([0.0, 1.0]), pa.array([0.0, 1.0]), pa.array(["a", "b"])], names=["t", "q1", "q1"])
    pq.write_table(twice, path)
    assert "column 'q1' appears twice" in same_error(path)


def test_the_stream_ends_at_stop(tmp_path, samples):
    values = samples.copy()
    values[-1, 1] = np.nan
    for kind in ("csv", "parquet"):
        path = write(tmp_path, values, kind)
        assert sum(len(block) for block in stream_log(path, stop=1.0).blocks()) == 1001
        with pytest.raises(di.LogError, match="column 'q1' is nan"):
            read_log(path, stop=1.0)
    values[-1, 1] = 0.0
    path = write(tmp_path, values, "parquet")
    for start, stop in ((50.0, None), (None, -1.0), (0.0002, 0.0008), (2.0, 1.0)):
        words = f"InputError: {path}: no sample lies between {start} and {stop} s; the log has 0 to 2.499 s"
        assert same_error(path, start=start, stop=stop) == words


def test_open_log_streams_what_is_large(tmp_path, samples, monkeypatch):
    content = csv(samples).encode()
    for kind, module, name, size in (
        ("csv", text, "SMALL_TEXT", len(content)),
        ("csv.gz", text, "SMALL_TEXT", len(content)),
        ("parquet", parquet, "SMALL_PARQUET", 8 * 4 * N),
    ):
        path = write(tmp_path, samples, kind)
        monkeypatch.setattr(module, name, size)
        log = open_log(path, role="validation")
        assert isinstance(log, Log)
        monkeypatch.setattr(module, name, size - 1)
        large = open_log(path, role="validation")
        assert isinstance(large, LogFile)
        assert_blocks_are(large, log)
        assert_blocks_are(large, read_log(path, role="validation"))
    packed = write(tmp_path, samples, "csv.gz")
    packed.write_bytes(packed.read_bytes() + gzip.compress(b"# a second member\n"))  # which states only its own size
    assert isinstance(open_log(packed), LogFile)
    monkeypatch.undo()
    assert parquet.SMALL_PARQUET == 32 * 2**20
    assert text.SMALL_TEXT == 64 * 2**20


def test_a_file_that_changes_is_refused(tmp_path, samples):
    path = write(tmp_path, samples, "csv")
    log = stream_log(path)
    assert sum(map(len, log.blocks())) == N
    path.write_text(csv(samples[:-1]))
    with pytest.raises(di.LogError, match="has changed since it was opened; open it again"):
        next(log.blocks())
    path.unlink()
    with pytest.raises(di.LogError):
        next(log.blocks())


def test_blocks_share_the_memory_of_their_log(samples):
    mine = samples[:, 1].copy()
    hidden = mine[:]
    hidden.setflags(write=False)
    log = Log("here", "", samples[:, 0], {"q1": mine, "q2": hidden})
    mine[:] = 0.0  # a log is not changed through the caller's arrays, not even through a read-only view of one
    np.testing.assert_array_equal(log.channels["q1"], samples[:, 1])
    np.testing.assert_array_equal(log.channels["q2"], samples[:, 1])
    for block in log.blocks():
        assert np.shares_memory(block.time, log.time)
        assert np.shares_memory(block.channels["q1"], log.channels["q1"])
        with pytest.raises(ValueError, match="read-only"):
            block.time[0] = 1.0


def test_blocks_of_a_file_are_read_only(tmp_path, samples):
    blocks = list(stream_log(write(tmp_path, samples, "parquet")).blocks())
    for block in blocks:  # handed over, not copied
        assert block.time.base is not None
        assert block.time.base is block.channels["q2"].base
    for log in (read_log(write(tmp_path, samples, "csv")), *blocks):
        for array in (log.time, *log.channels.values()):
            assert not array.flags.writeable
            assert array.base is None or not array.base.flags.writeable


def test_blocks_have_the_length_they_promise(tmp_path, monkeypatch):
    monkeypatch.undo()
    assert logs.BLOCK == 16384
    values = np.column_stack([np.arange(40000.0)] * 4)
    path = write(tmp_path, values, "parquet")
    for source in (read_log(path), stream_log(path)):
        assert [len(block) for block in source.blocks()] == [16384, 16384, 7232]


def test_regroup_keeps_every_column_in_order():
    values = np.arange(2 * 1000.0).reshape(2, 1000)
    cuts = np.sort(np.random.default_rng(1).integers(0, 1000, 30))
    for parts in (np.split(values, cuts, axis=1), [values], [values[:, :0]], []):
        blocks = list(regroup(parts, 2, 64))
        whole = np.concatenate([np.empty((2, 0)), *parts], axis=1)
        np.testing.assert_array_equal(np.concatenate([np.empty((2, 0)), *blocks], axis=1), whole)
        assert all(block.shape[1] == 64 for block in blocks[:-1])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x: q1\nx: q2\n", "line 2: key 'x' appears twice"),
        ("x: &a q1\ny: *a\n", "aliases"),
        ("x: {column: q1, scale: .nan}", "'x': scale is nan"),
        ("", "must map column names of the log to channels"),
    ],
)
def test_column_files_are_read_strictly(tmp_path, samples, content, words):
    path = write(tmp_path, samples[:10], "csv")
    rules = tmp_path / "columns.yaml"
    rules.write_text(content)
    with pytest.raises(di.LogError, match=rf"columns\.yaml: .*{words}"):
        read_log(path, columns=rules)
    with pytest.raises(di.LogError, match=r"nothing\.yaml: no such file"):
        read_log(path, columns=tmp_path / "nothing.yaml")
    with pytest.raises(di.LogError, match="columns: 'x': 'velocity1' is not a channel"):
        read_log(path, columns={"x": "velocity1"})


MEASURE = """
import pathlib, re, sys
import pyarrow.parquet
try:
    import pandas  # which pyarrow loads where it is installed
except ImportError:
    pass
from dynident.logs import LogFile, open_log

def peak():
    # Not ru_maxrss: that starts at the size of the process which started this one.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) / 1024

before = peak()
log = open_log(sys.argv[1])
assert isinstance(log, LogFile)
print(sum(len(block) for block in log.blocks()), peak() - before)
"""


def added_megabytes(path, n_samples) -> float:
    run = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    counted, added = run.stdout.split()
    assert int(counted) == n_samples
    assert float(added) > 0.0
    return float(added)


def large_parquet(path, n, **how):
    random = np.random.default_rng(0).normal(size=n)
    columns = {f"{kind}{j}": np.roll(random, j) for kind in ("q", "tau") for j in range(1, 7)}
    pq.write_table(pa.table({"t": np.arange(n) * 1e-3, **columns}), path, **how)
    return path


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")


@on_linux
def test_memory_of_a_stream_is_small(tmp_path):
    n = 500_000  # 52 MB of numbers
    path = large_parquet(tmp_path / "log.parquet", n, row_group_size=n, use_dictionary=False)
    assert added_megabytes(path, n) < 40


@on_linux
@pytest.mark.full
@pytest.mark.parametrize(
    ("how", "limit"),
    [
        ({"row_group_size": 2_000_000, "use_dictionary": False}, 40),
        ({"row_group_size": 5_000}, 40),
        # pyarrow keeps a dictionary page and a data page of each column, 2 MB, beside what it loads itself.
        ({"row_group_size": 2_000_000}, 60),
        ({}, 60),
    ],
    ids=["one row group", "small row groups", "one row group with dictionaries", "as pyarrow writes it"],
)
def test_memory_does_not_grow_with_a_parquet_file(tmp_path, how, limit):
    n = 2_000_000  # 208 MB of numbers
    assert added_megabytes(large_parquet(tmp_path / "log.parquet", n, **how), n) < limit


@on_linux
@pytest.mark.full
def test_memory_does_not_grow_with_a_text_file(tmp_path):
    path = tmp_path / "log.csv.gz"
    n = 100_000
    row = "".join(f",{value:.15f}" for value in np.random.default_rng(0).normal(size=12))
    header = "t," + ",".join(f"{kind}{j}" for kind in ("q", "tau") for j in range(1, 7))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(header + "\n")
        for k in range(4):
            file.writelines(f"{k}.{i:06d}{row}\n" for i in range(n))
    assert added_megabytes(path, 4 * n) < 40


def test_temperatures_are_read_in_degrees_celsius(tmp_path):
    path = tmp_path / "warm.csv"
    path.write_text("t,q1,temp1[K],temp2\n0,0.1,293.15,21\n0.1,0.2,300.15,22\n0.2,0.2,301.15,23\n")
    log = read_log(path)
    np.testing.assert_allclose(log.channels["temp1"], [20.0, 27.0, 28.0], atol=1e-12)
    np.testing.assert_array_equal(log.channels["temp2"], [21.0, 22.0, 23.0])
    path.write_text("t,q1,temp1[F]\n0,0.1,70\n0.1,0.2,71\n")
    with pytest.raises(LogError, match="unit for temp 'F'"):
        read_log(path)
