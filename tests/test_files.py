from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import dynident as di
from dynident import files
from dynident.files import (
    check_results,
    is_ours,
    make_folder,
    remove_leftovers,
    settle,
    settled,
    write_bytes,
    write_text,
    write_together,
    write_whole,
)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


class TestOneFile:
    def test_an_error_of_writing_names_the_file_and_leaves_the_older_one(self, tmp_path):
        write_text(tmp_path / "a.txt", "before")

        def half(file):
            file.write(b"half")
            full()

        with pytest.raises(di.InputError, match=r"a\.txt: cannot be written \(No space left on device\)"):
            write_whole(tmp_path / "a.txt", half)
        assert content(tmp_path) == {"a.txt": b"before"}

    def test_a_part_of_a_killed_process_goes_with_the_next_write(self, tmp_path):
        (tmp_path / ".fit.npz.abcd_123.part").write_bytes(b"half")
        (tmp_path / ".arm.urdf.abcd_123.part.urdf").write_bytes(b"half")
        folder = tmp_path / ".dynident-abcd_123.part"
        folder.mkdir()
        (folder / "fit.yaml").write_bytes(b"half")
        others = (".hidden.part", "video.mp4.part", ".notes.abcd_123.partial", "a.abcd_123.part")
        for name in others:
            (tmp_path / name).write_bytes(b"mine")
        write_text(tmp_path / "a.txt", "new")
        assert sorted(content(tmp_path)) == sorted(["a.txt", *others])

    @pytest.mark.skipif(os.name == "nt", reason="Windows keeps open files by itself")
    def test_a_part_that_somebody_is_writing_stays(self, tmp_path):
        code = (
            "import sys, time; from dynident.files import file_aside; from pathlib import Path\n"
            "with file_aside(Path(sys.argv[1])) as (aside, file):\n"
            "    print(aside, flush=True); sys.stdin.read()"
        )
        words = [sys.executable, "-c", code, str(tmp_path / "b.txt")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            aside = other.stdout.readline().strip()
            remove_leftovers(tmp_path)
            assert os.path.exists(aside)
            other.kill()
            other.wait()
        assert os.path.exists(aside)
        remove_leftovers(tmp_path)
        assert os.listdir(tmp_path) == []


class TestTogether:
    OLD, NEW = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "b": b"new b"}

    def test_all_or_none(self, tmp_path, monkeypatch):
        write_together(tmp_path, self.OLD)
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "fsync", full)
            with pytest.raises(di.InputError, match=r"a: cannot be written \(No space left on device\)"):
                write_together(tmp_path, self.NEW)
        assert content(tmp_path) == self.OLD
        write_together(tmp_path, self.NEW)
        assert content(tmp_path) == self.NEW

    def test_what_was_complete_counts(self, tmp_path, monkeypatch):
        """A kill between the moves: the next one who looks finishes them."""
        write_together(tmp_path, self.OLD)
        moved = []

        def once(source, target):
            if moved:
                raise KeyboardInterrupt
            moved.append(target)
            os.rename(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", once)
            with pytest.raises(KeyboardInterrupt):
                write_together(tmp_path, self.NEW)
        assert content(tmp_path) != self.NEW
        assert settled(tmp_path / "b").read_bytes() == b"new b"
        assert content(tmp_path) == self.NEW

    def test_where_nothing_can_be_moved_it_is_read_where_it_is(self, tmp_path, monkeypatch):
        write_together(tmp_path, self.OLD)
        complete = tmp_path / ".dynident-abcd_123.complete"
        complete.mkdir()
        (complete / "a").write_bytes(b"new a")
        monkeypatch.setattr(files.os, "replace", lambda *_: full())
        assert settled(tmp_path / "a").read_bytes() == b"new a"
        assert settled(tmp_path / "b").read_bytes() == b"old b"
        monkeypatch.undo()
        write_bytes(tmp_path / "a", b"newest a")  # the older one must not come back afterwards
        settle(tmp_path)
        assert content(tmp_path) == {"a": b"newest a", "b": b"old b"}

    def test_folders_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(di.InputError, match="file: is a file; choose another folder"):
            make_folder(tmp_path / "file")
        with pytest.raises(di.InputError, match=r"cannot be made \(Not a directory\)"):
            write_together(tmp_path / "file" / "folder", self.NEW)


class TestOurs:
    def test_results_of_others_stay(self, tmp_path):
        names = ("fit.yaml", "report.html")
        check_results(tmp_path / "new", names)
        write_text(tmp_path / "fit.yaml", "# Identified with dynident.\n")
        check_results(tmp_path, names)
        (tmp_path / "report.html").write_text("<html>my thesis</html>")
        with pytest.raises(di.InputError, match=r"report\.html: was not written by dynident; move it, or choose"):
            check_results(tmp_path, names)

    def test_files_of_earlier_versions_are_ours(self, tmp_path):
        np.savez(tmp_path / "fit.npz", beta=np.ones(2), text=np.zeros(32, np.uint8))
        (tmp_path / "result.json").write_text(json.dumps({"robot": "a", "warnings": []}))
        page = '<!DOCTYPE html>\n<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
        (tmp_path / "report.html").write_text(page)
        assert all(is_ours(tmp_path / name) for name in ("fit.npz", "result.json", "report.html"))

    def test_others_are_not(self, tmp_path):
        np.savez(tmp_path / "a.npz", q=np.ones(2))
        (tmp_path / "a.json").write_text('{"robot": "a"}')
        (tmp_path / "b.json").write_text("{" * 100)
        (tmp_path / "c.npz").write_bytes(b"PK\x03\x04 and no more")
        assert not any(is_ours(path) for path in tmp_path.iterdir())
        assert not is_ours(tmp_path / "missing")


def test_a_folder_of_thousands_is_no_obstacle(tmp_path):
    for i in range(2000):
        (tmp_path / f"{i}.csv").touch()
    begin = time.process_time()
    write_text(tmp_path / "a.txt", "new")
    assert time.process_time() - begin < 0.5
