from __future__ import annotations

import errno
import pickle

import numpy as np
import pytest

import dynident as di
from dynident.logs import open_log, parquet, stream_log, text, text as kept
from dynident.logs.text import KeptNumbers

N = 3000


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("dynident.logs.file.BLOCK", 1000)
    monkeypatch.setattr(text, "PART", 1 << 13)


@pytest.fixture
def path(tmp_path):
    values = np.random.default_rng(2).normal(size=(N, 4))
    values[:, 0] = np.arange(N) / 1000
    file = tmp_path / "log.csv"
    np.savetxt(file, values, fmt="%.9g", delimiter=",", header="t [s],q1 [deg],q2,tau1", comments="")
    return file


@pytest.fixture
def parses(monkeypatch):
    """How many times the text was parsed."""
    count = []
    parse = text.TextTable.parts
    monkeypatch.setattr(text.TextTable, "parts", lambda self, places: count.append(places) or parse(self, places))
    return count


def rows(log) -> list[np.ndarray]:
    return [np.vstack([block.time, *block.channels.values()]) for block in log.blocks()]


def assert_same(found, expected):
    assert [block.shape for block in found] == [block.shape for block in expected]
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine.view(np.uint64), theirs.view(np.uint64))


def test_later_passes_are_the_first_without_parsing(path, parses):
    log = stream_log(path)
    first = rows(log)
    assert len(first) == 3
    assert log.kept.complete
    assert_same(rows(log), first)
    assert_same(list(log.rows()), first)
    assert len(parses) == 1
    assert_same(rows(stream_log(path)), first)
    assert len(parses) == 2


def test_an_abandoned_pass_leaves_nothing(path, parses):
    log = stream_log(path)
    for block in log.blocks():
        assert len(block)
        break
    some = log.blocks()
    next(some)
    assert not log.kept.complete
    whole = rows(log)
    assert log.kept.complete
    assert sum(map(len, some)) == N - 1000  # a pass begun before goes on as it was
    assert len(parses) == 3
    assert_same(rows(log), whole)
    assert_same(rows(stream_log(path)), whole)
    assert len(parses) == 4


def test_passes_side_by_side(path):
    log = stream_log(path)
    whole = rows(log)
    pairs = list(zip(log.rows(), log.rows(), strict=True))
    assert_same([one for one, _ in pairs], whole)
    assert_same([other for _, other in pairs], whole)


def test_a_changed_file_is_refused_all_the_same(path):
    log = stream_log(path)
    rows(log)
    path.write_text(path.read_text() + "99,1,2,3\n")
    with pytest.raises(di.LogError, match="has changed since it was opened; open it again"):
        next(log.blocks())
    with pytest.raises(di.LogError, match="has changed"):
        next(log.rows())


def test_a_window_is_not_taken_for_the_whole(path, parses):
    log = stream_log(path, stop=0.5)
    assert sum(map(len, log.blocks())) == 501
    assert not log.kept.complete
    assert sum(map(len, log.blocks())) == 501
    assert len(parses) == 2


def test_faults_are_found_in_every_pass(path):
    lines = path.read_text().splitlines()
    lines[2000] = "nan,1,2,3"
    path.write_text("\n".join(lines))
    log = stream_log(path)
    for _ in range(2):
        with pytest.raises(di.LogError, match="column 't' is nan at row 2000"):
            list(log.blocks())
    assert log.kept.complete
    lines[2500] = "1,2,3,x"
    path.write_text("\n".join(lines))
    log = stream_log(path)
    for _ in range(2):
        with pytest.raises(di.LogError, match="row 2500 of the numbers, column 'tau1': 'x' is not a number"):
            list(log.blocks())
    assert not log.kept.complete


def test_other_columns_of_the_same_table(path):
    table = stream_log(path).table
    store = KeptNumbers()
    all_parts = list(store.parts(table, (0, 1, 2, 3)))
    for places in ((2, 0), (3,), (0, 1, 2, 3)):
        found = list(store.parts(table, places))
        assert_same([np.ascontiguousarray(part) for part in found], [part[list(places)] for part in all_parts])
    store = KeptNumbers()
    list(store.parts(table, (0, 2)))
    found = list(store.parts(table, (0, 1)))  # which were not kept
    assert_same([np.ascontiguousarray(part) for part in found], [part[:2].copy() for part in all_parts])


class FullDisk:
    """A file that takes some bytes and then no more."""

    def __init__(self, room, quietly=False):
        self.room, self.quietly = room, quietly

    def write(self, content):
        self.room -= len(content)
        if self.room < 0 and self.quietly:
            return len(content) // 2
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(content)

    def close(self):
        pass


@pytest.mark.parametrize("quietly", [True, False])
def test_a_full_disk_is_gone_without(path, parses, monkeypatch, quietly):
    whole = rows(stream_log(path))
    monkeypatch.setattr(kept.tempfile, "TemporaryFile", lambda **_: FullDisk(50_000, quietly))
    log = stream_log(path)
    for _ in range(2):
        assert_same(rows(log), whole)
    assert not log.kept.complete
    assert len(parses) == 3


def test_no_temporary_folder_is_gone_without(path, monkeypatch):
    whole = rows(stream_log(path))

    def refuse(**_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(kept.tempfile, "TemporaryFile", refuse)
    log = stream_log(path)
    for _ in range(2):
        assert_same(rows(log), whole)


def test_more_than_the_limit_is_not_kept(path, monkeypatch):
    monkeypatch.setattr(kept, "MOST_KEPT", 8 * 4 * N - 1)
    log = stream_log(path)
    whole = rows(log)
    assert not log.kept.complete
    assert_same(rows(log), whole)
    monkeypatch.setattr(kept, "MOST_KEPT", 8 * 4 * N)
    log = stream_log(path)
    assert_same(rows(log), whole)
    assert log.kept.complete


def test_only_texts_are_kept_and_only_streamed_ones(path, tmp_path, monkeypatch):
    log = di.read_log(path)
    di.write_log(log, tmp_path / "log.parquet")
    assert stream_log(tmp_path / "log.parquet").kept is None
    monkeypatch.setattr(parquet, "SMALL_PARQUET", 0)
    assert open_log(tmp_path / "log.parquet").kept is None

    def refuse(**_):
        raise AssertionError("nothing is to be kept of a log that is read at once")

    monkeypatch.setattr(kept.tempfile, "TemporaryFile", refuse)
    assert len(di.read_log(path)) == len(open_log(path)) == N


def test_a_copy_starts_with_nothing(path):
    log = stream_log(path)
    whole = rows(log)
    copy = pickle.loads(pickle.dumps(log.kept))
    assert not copy.complete
    assert_same(list(copy.parts(log.table, (0, 2))), [part[[0, 2]] for part in log.table.parts((0, 1, 2))])
    assert_same(rows(log), whole)
