"""Fleet files: what they may say, and one sentence with the line where they say something else."""

from __future__ import annotations

import os

import pytest

from dynident.fleet.draft import draft_fleet_file
from dynident.fleet.fleet_file import FleetFileError, PathPattern, read_fleet_file
from dynident.fleet.listing import list_logs

PLAIN = "types:\n  arm:\n    robot: pendulum-2\n    logs: logs/{serial}/{date}.parquet\n"


def file_of(tmp_path, text):
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    return path


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


BAD = {
    "fleet: a\n": "has no 'types'",
    "types: {}\n": "types is empty",
    "types:\n  arm: {robot: pendulum-2}\n": "line 2: type arm has no 'logs'",
    PLAIN + "pilots_s: 3\n": "unknown key 'pilots_s'; did you mean 'pilot_s'?",
    PLAIN + "pilot_s: 0\n": "pilot_s is 0.0; expected a positive number",
    PLAIN + "segments: 1.5\n": "segments must be a whole number, got '1.5'",
    PLAIN + "identify: {sequential: online}\n": "unknown key 'sequential'",
    PLAIN + "validation: 1\n": "validation is 1.0",
    PLAIN.replace("{date}", "{day}"): "unknown field '{day}'; fields are {serial}, {date}, {payload}, {temperature}",
    PLAIN.replace("{serial}/", ""): "{serial} must stand in the path",
    PLAIN + "    serials: [a/b]\n": "'a/b' must consist of letters",
    PLAIN + "    services: {A1: [soon]}\n": "services of A1: 'soon' is no date; expected ISO 8601",
    PLAIN + "    from_log: {mass: m}\n": "unknown key 'mass'",
}


@pytest.mark.parametrize("text", BAD)
def test_one_sentence_for_each_mistake(text, tmp_path):
    with pytest.raises(FleetFileError) as error:
        read_fleet_file(file_of(tmp_path, text))
    assert BAD[text] in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_paths_say_serial_date_payload_and_temperature(tmp_path):
    touch(tmp_path, "logs/A1/2026-03-02_2.5kg_-3C.csv", "logs/A1/2026-03-01_0kg_31.5C.csv", "logs/A1/notes.txt")
    text = PLAIN.replace("{date}.parquet", "{date}_{payload}kg_{temperature}C.csv")
    kind, refs = list_logs(read_fleet_file(file_of(tmp_path, text)))["A1"]
    assert kind.name == "arm"
    assert [(ref.date, ref.payload, ref.temperature) for ref in refs] == [
        ("2026-03-01T00:00:00+00:00", 0.0, 31.5),
        ("2026-03-02T00:00:00+00:00", 2.5, -3.0),
    ]


def test_dates_of_another_format(tmp_path):
    touch(tmp_path, "logs/A1/02.03.26.parquet")
    text = PLAIN + "date_format: '%d.%m.%y'\n"
    (ref,) = list_logs(read_fleet_file(file_of(tmp_path, text)))["A1"][1]
    assert ref.date.startswith("2026-03-02")
    with pytest.raises(FleetFileError, match=r"'02\.03\.26' is no date"):
        list_logs(read_fleet_file(file_of(tmp_path, PLAIN)))


def test_without_a_date_the_file_has_one(tmp_path):
    touch(tmp_path, "logs/A1/x.parquet")
    os.utime(tmp_path / "logs/A1/x.parquet", (1_772_352_000, 1_772_352_000))
    (ref,) = list_logs(read_fleet_file(file_of(tmp_path, PLAIN.replace("{date}", "*"))))["A1"][1]
    assert ref.date.startswith("2026-03-01")


def test_serials_of_two_types_must_differ_and_types_have_logs(tmp_path):
    touch(tmp_path, "logs/A1/2026-03-01.parquet")
    with pytest.raises(FleetFileError, match="serial A1 is of type arm and of other"):
        list_logs(read_fleet_file(file_of(tmp_path, PLAIN + PLAIN.removeprefix("types:\n").replace("arm:", "other:"))))
    with pytest.raises(FleetFileError, match="type arm: no log is found at"):
        list_logs(read_fleet_file(file_of(tmp_path, PLAIN.replace("logs/", "nowhere/"))))


@pytest.mark.parametrize(
    ("pattern", "path", "said"),
    [
        ("/l/{serial}/{serial}_{date}.csv", "/l/A/A_2026.csv", {"serial": "A", "date": "2026"}),
        ("/l/{serial}/{serial}_{date}.csv", "/l/A/B_2026.csv", None),
        ("/l/{serial}/**/*.csv", "/l/A/x/y/z.csv", {"serial": "A"}),
        ("/l/{serial}/**/*.csv", "/l/A/z.csv", {"serial": "A"}),
        ("/l/{serial}/*.csv", "/l/A/x/z.csv", None),
        ("/l/a+b/{serial}.csv", "/l/a+b/C.csv", {"serial": "C"}),
    ],
)
def test_patterns(pattern, path, said):
    assert PathPattern(pattern).match(path) == said


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("A1/2026-03-01.parquet", "B2/2026-03-02.parquet"), "{serial}/{date}.parquet"),
        (("A1/2026-03-01/x.csv", "B2/2026-03-02/y.csv"), "{serial}/{date}/*.csv"),
        (("A1.csv", "B2.csv"), "{serial}.csv"),
        (("A-1_2026-03-01.csv", "A-1_2026-03-02.csv", "B2_20260301T1200.csv"), "{serial}_{date}.csv"),
        (("A1-2026-03-01.csv", "B_2-2026-03-02.csv"), "{serial}-{date}.csv"),
        (("A_1_2026-03-01.csv", "B2_2026-03-02.csv"), "{serial}.csv"),
        (("A1_2026-03-01.csv", "B2-2026-03-02.csv"), "{serial}.csv"),
        (("A1/runs/a.csv", "B2/runs/b.csv.gz"), "{serial}/runs/*.*"),
    ],
)
def test_a_draft_is_a_fleet_file_that_finds_its_logs(names, pattern, tmp_path):
    touch(tmp_path / "logs", *names)
    target = tmp_path / "fleet.yaml"
    text, n_logs, serials = draft_fleet_file(tmp_path / "logs", "pendulum-2", target)
    target.write_text(text)
    fleet = read_fleet_file(target)
    assert n_logs == len(names)
    assert list(serials) == sorted(list_logs(fleet))
    assert fleet.types[0].logs[0].text == str(tmp_path / "logs" / pattern)
    assert sum(len(refs) for _, refs in list_logs(fleet).values()) == len(names)
