from __future__ import annotations

from types import SimpleNamespace

from dynident.logs.read import short_names


def short(*given):
    """Short names of logs, each a path or (label, path)."""
    logs = [one if isinstance(one, tuple) else (one, one) for one in given]
    return list(short_names(SimpleNamespace(label=label, source=source) for label, source in logs).values())


def test_the_name_of_the_file_is_enough_where_it_is_its_own():
    assert short("/data/2024/run1.csv", "/data/2024/run2.csv") == ["run1.csv", "run2.csv"]
    assert short("run.csv") == ["run.csv"]


def test_folders_tell_files_of_one_name_apart_and_only_those():
    assert short("/x/a/run.csv", "/x/b/run.csv", "/x/b/other.csv") == ["a/run.csv", "b/run.csv", "other.csv"]
    assert short("/1/a/run.csv", "/2/a/run.csv") == ["1/a/run.csv", "2/a/run.csv"]
    assert short("run.csv", "a/run.csv") == ["run.csv", "a/run.csv"]
    assert short("/run.csv", "run.csv") == ["/run.csv", "run.csv"]


def test_names_that_were_given_stay():
    assert short(("night run", "/x/a.csv"), "/x/b.csv") == ["night run", "b.csv"]
    assert short(("b.csv", "/x/a.csv"), "/y/b.csv") == ["b.csv", "y/b.csv"]
    assert short(("made", "")) == ["made"]
    assert short(("/x/a.csv, from 2 s", "/x/a.csv")) == ["/x/a.csv, from 2 s"]


def test_windows_of_one_file_keep_their_numbers():
    assert short("/x/a.csv", ("/x/a.csv (2)", "/x/a.csv"), "/y/b.csv") == ["a.csv", "a.csv (2)", "b.csv"]
