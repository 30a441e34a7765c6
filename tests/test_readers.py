"""Every reader is listed, refuses what is no file, and lets nothing but `DynidentError` out."""

from __future__ import annotations

import ast
import io
import os
import zipfile
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident import limits
from dynident.errors import DynidentError, InputError, RobotFileError, UnknownNameError
from dynident.limits import LIMITS, Expansion, LimitError
from dynident.logs.read import FORMATS, LogFormat
from dynident.npz import read_npz
from dynident.readers import READERS, boundary, reader

SOURCE = Path(di.__file__).parent
# What takes a file apart. Where it is called, a reader must be above it.
PARSERS = {
    *(
        "np.load",
        "yaml.load",
        "yaml.compose",
        "yaml.safe_load",
        "json.load",
        "json.loads",
        "gzip.open",
        "sqlite3.connect",
    ),
    *("loadmat", "h5py.File", "parquet.ParquetFile", "zipfile.ZipFile", "fromstring", "mujoco.MjSpec.from_file"),
    *("xacro.process_file", "read_npz", "parse_record", "parse_json", "parse_yaml", "parse_xml"),
}
CONTENTS = (".read_text", ".read_bytes")
# Modules with such calls, and the readers in them or above them; a new one needs a line here and a reader.
HOMES = {
    "export/source_files.py": "what load_robot has read",
    "logs/bag_files.py": "dynident.logs.read.ROS bag",
    "npz.py": "its callers, which have readers of their own",
    "schema.py": "its callers",
    "isolation.py": "answers of the library's own processes",
    "logs/tables.py": "dynident.logs.read.NumPy archive",
    "logs/text.py": "dynident.logs.read.text",
    "logs/rsi.py": "dynident.logs.read.KUKA RSI",
    "logs/mat.py": "dynident.logs.read.MATLAB",
    "logs/parquet.py": "dynident.logs.read.Parquet",
    "logs/lerobot.py": "dynident.logs.read.LeRobot dataset",
    "logs/bag.py": "dynident.logs.read.ROS bag",
    "logs/columns.py": "dynident.logs.columns.read_rules",
    "online/checkpoint.py": "dynident.online.checkpoint.load",
    "information/storage.py": "dynident.information.storage.load_information",
    "estimate/storage.py": "dynident.estimate.storage.load_fit",
    "report/plot_data.py": "dynident.report.plot_data.load_report_data",
    "report/html.py": "templates of the library",
    "drives/storage.py": "dynident.drives.storage.load_drives",
    "motion/storage.py": "dynident.motion.storage.load_trajectory",
    "robot/load.py": "dynident.robot.load.load_robot",
    "robot/sources.py": "dynident.robot.load.load_robot",
    "robot/urdf.py": "dynident.robot.load.load_robot",
    "robot/mjcf.py": "dynident.robot.load.load_robot",
    "robot/mjcf_scan.py": "dynident.robot.load.load_robot",
    "export/mjcf.py": "what load_robot has read",
    "export/urdf.py": "what load_robot has read",
    "export/c_export.py": "files of the library, and one that it would overwrite",
    "sealed.py": "its callers",
    "files.py": "its callers, and what it has written",
    "export/drake.py": "what it has written",
    "export/usd.py": "what it has written",
    "export/motion_check.py": "what the library has made",
    "fleet/fleet_file.py": "dynident.fleet.fleet_file.read_fleet_file",
    "fleet/running.py": "a file of columns, whose text is a part of the key; dynident.logs.columns.read_rules reads it",
    "fleet/store.py": "dynident.fleet.store.FleetStore.open",
    "cli/doctor.py": "a file of the library",
    "cli/inputs.py": "dynident.cli.inputs._effects_file",
    "cli/step.py": "dynident.cli.step._from_file",
}


def complete() -> dict[str, object]:
    """The registry once every module has been imported that calls `reader`."""
    for path in SOURCE.rglob("*.py"):
        if "reader(" in path.read_text():
            import_module(".".join(("dynident", *path.relative_to(SOURCE).with_suffix("").parts)))
    return READERS


def test_every_call_of_a_parser_has_a_reader_above_it():
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ((words := ast.unparse(node.func)) in PARSERS or words.endswith(CONTENTS))
        and path.relative_to(SOURCE).parts[0] != "papers"
    }
    # A module that reads files: decorate its function with @reader, and add its line.
    assert found == HOMES.keys()
    readers = complete()
    missing = [home for home in HOMES.values() if home.startswith("dynident.") and home not in readers]
    assert not missing


def test_formats_of_logs_and_public_loaders_are_listed():
    readers = complete()
    for one in FORMATS:
        assert readers[f"dynident.logs.read.{one.name}"].function is one.read
    made = LogFormat("another", lambda path, robot, mapped, keep: 1 / 0, contents="")
    try:
        with pytest.raises(di.LogError, match=r"a\.csv: cannot be read as another"):
            made.read(Path("a.csv"), None, (), True)
    finally:
        del READERS["dynident.logs.read.another"]
    for name in ("load_robot", "load_fit", "load_information", "load_trajectory", "read_log"):
        if hasattr(di, name):
            function = getattr(di, name)
            assert f"{function.__module__}.{function.__qualname__}" in readers


def test_nothing_else_comes_out_of_a_reader(tmp_path):
    @reader("a thing", InputError)
    def read(path, raised):
        raise raised

    path = tmp_path / "thing.bin"
    try:
        for raised, words in (
            (ZeroDivisionError(), "ZeroDivisionError"),
            (KeyError("beta"), "it has no 'beta'"),
            (RecursionError("maximum"), "nested too deeply"),
            (MemoryError(), "more memory"),
            (FileNotFoundError(2, "No such"), "no such file"),
            (ValueError("one\n two \x1b[2J " + "x" * 5000), r"one two \?\[2J x{50}"),
        ):
            with pytest.raises(InputError, match=rf"thing\.bin: cannot be read as a thing \(.*{words}") as caught:
                read(path, raised)
            assert caught.value.__cause__ is raised
            assert len(str(caught.value)) < 500
            assert str(caught.value).isprintable()
        with pytest.raises(InputError, match=r"thing\.bin: is beyond"):
            read(path, LimitError("is beyond"))
        with pytest.raises(UnknownNameError, match=r"thing\.bin: unknown joint 'a'"):  # of its own class, with the file
            read(path, UnknownNameError("joint", "a", ["b"]))
        with pytest.raises(UnknownNameError) as caught:
            read(path, UnknownNameError("joint", "a" * 100_000, ["b"]))
        assert len(str(caught.value)) < 4000
        with pytest.raises(TypeError):  # a wrong call is no damaged file
            read(path)
        with pytest.raises(KeyboardInterrupt):
            read(path, KeyboardInterrupt())
    finally:
        del READERS[f"{read.__module__}.{read.__qualname__}"]


def test_what_is_read_later_is_within_the_boundary(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,q1,tau1\n0,1,2\n0.1,1,2\n")
    log = di.open_log(path) if hasattr(di, "open_log") else import_module("dynident.logs.read").stream_log(path)
    log = import_module("dynident.logs.read").stream_log(path)
    log.table.parts = lambda places: iter([1 / 0 for _ in places])
    with pytest.raises(di.LogError, match=r"log\.csv: cannot be read as a log \(division by zero\)"):
        list(log.blocks())


@pytest.mark.parametrize(
    "name", ["log.csv", "log.npz", "log.mat", "log.parquet", "log.mcap", "log.db3", "log.bag", "log.xml"]
)
def test_pipes_and_devices_are_refused(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(di.LogError, match=rf"{name}: is a pipe, not a file"):
        di.read_log(tmp_path / name)
    (tmp_path / f"zero-{name}").symlink_to("/dev/zero")
    with pytest.raises(di.LogError, match=r"is a device, not a file"):
        di.read_log(tmp_path / f"zero-{name}")


def test_all_readers_refuse_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "fit.yaml")
    os.mkfifo(tmp_path / "run.npz")
    for load in (
        lambda: di.load_fit(tmp_path),
        lambda: di.load_robot(tmp_path / "fit.yaml"),
        lambda: di.load_information(tmp_path / "run.npz"),
        lambda: di.OnlineIdentifier.load(tmp_path / "run.npz", di.load_robot("pendulum-1")),
        lambda: import_module("dynident.cli.inputs").parse_effects(str(tmp_path / "fit.yaml")),
        lambda: import_module("dynident.cli.run_file").read_run_file(tmp_path / "fit.yaml"),
    ):
        with pytest.raises(DynidentError, match="is a pipe"):
            load()


# ----------------------------------------------------------------------------------------------------------------------
# Limits, and archives of arrays.


def test_every_limit_has_unit_meaning_and_reason():
    for one in fields(LIMITS):
        assert one.metadata["meaning"], one.name
        assert one.metadata["calibrated"], one.name
        assert one.default > 0


def test_the_meter_counts_what_comes_out():
    meter = Expansion(1000, largest=limits.LIMITS.memory_bytes)
    meter.add(LIMITS.harmless_bytes)
    with pytest.raises(LimitError, match=r"unpacks to more than \d+ bytes from 1000"):
        meter.add(1)
    with pytest.raises(LimitError, match="at most 2 GB are read"):
        Expansion(10**9, limits.LIMITS.memory_bytes, limits.STREAM).add(2_000_000_001)
    Expansion(10**9, float("inf")).add(10**11)


@pytest.mark.parametrize("packed", [False, True])
def test_archives_come_back_as_numpy_reads_them(tmp_path, packed):
    rng = np.random.default_rng(1)
    arrays = {
        "a": rng.normal(size=(3, 4)),
        "fortran": np.asfortranarray(rng.normal(size=(5, 2))),
        "mask": np.array([True, False]),
        "text": np.array(["a", "Nm·s"]),
        "scalar": np.array(3.0),
        "empty": np.zeros((0, 7)),
        "bytes": np.frombuffer(b"abc", np.uint8),
        "big": rng.normal(size=3).astype(">f8"),
        "complex": np.array([1j]),
        "times": np.array(["2020-01-01"], "M8[s]"),
    }
    (np.savez_compressed if packed else np.savez)(tmp_path / "a.npz", **arrays)
    found = read_npz(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as expected:
        assert list(found) == expected.files
        for name in expected.files:
            assert found[name].dtype == expected[name].dtype
            np.testing.assert_array_equal(found[name], expected[name])
    found["a"][0, 0] = 1.0  # as NumPy's, they can be written


def test_what_is_no_plain_array_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", t=np.arange(3.0), o=np.array([{}], object), r=np.zeros(2, [("x", "f8")]))
    with pytest.raises(ValueError, match="'o' is objects or records"):
        read_npz(tmp_path / "a.npz")
    others: list[str] = []
    assert list(read_npz(tmp_path / "a.npz", others)) == ["t"]
    assert others == ["o (objects or records)", "r (objects or records)"]


def test_damage_within_an_archive_is_seen(tmp_path):
    out = io.BytesIO()
    np.savez(out, t=np.arange(100.0))
    whole = bytearray(out.getvalue())
    whole[400] ^= 1
    (tmp_path / "a.npz").write_bytes(whole)
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        read_npz(tmp_path / "a.npz")


def test_errors_of_files_have_one_form():
    assert str(RobotFileError.of_file("a.urdf", "is odd")) == "a.urdf: is odd"
    assert di.LogError.of_file("a.csv", "is odd").problem == "is odd"
    with pytest.raises(InputError, match=r"^b: is odd$"), boundary("b", "it", InputError):
        raise InputError("is odd")
