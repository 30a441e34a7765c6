from __future__ import annotations

import dataclasses
import os
import re
import shutil

import numpy as np
import pytest
import yaml

import dynident as di
from dynident import files
from dynident.estimate import storage
from dynident.estimate.fit import Fit
from dynident.estimate.storage import FORMAT, FitFileError, load_fit
from dynident.pipeline.identification import identify
from tests.signals.made import TERMS, Fourier, exact_torque, make_log, stamps

ROBOTS = ["pendulum-2", "tx40"]
MAY_BE_EMPTY = ("nominal", "notes", "warnings", "validation", "traces", "data", "held_out", "rank", "condition", "band")


def noisy_log(robot, seed, source, role="train", seconds=20.0):
    motion, t = Fourier.random(len(robot.joint_names), seed), stamps(seconds, 200.0)
    tau = exact_torque(robot, motion, t)
    tau = tau + 0.02 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, motion(t)[0], tau, source=source, role=role)


def estimate_of(name, seed=0, **options):
    robot = di.load_robot(name)
    logs = [noisy_log(robot, seed, "a.csv"), noisy_log(robot, seed + 10, "b: odd name.csv", "validation")]
    return identify(robot, logs, terms=TERMS, **options)


@pytest.fixture(scope="module", params=ROBOTS)
def estimate(request):
    return estimate_of(request.param)


@pytest.fixture(scope="module")
def pendulum():
    return estimate_of("pendulum-2")


@pytest.fixture(scope="module")
def other():
    return estimate_of("pendulum-2", seed=1)


@pytest.fixture
def saved(pendulum, tmp_path):
    pendulum.save(tmp_path)
    return tmp_path


def same(a, b) -> bool:
    """Bitwise, through records, mappings and sequences."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a) and type(a) is type(b) and not isinstance(a, di.Robot):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, di.Robot):
        return a.fingerprint == b.fingerprint and same(a.link_parameters(), b.link_parameters()) and a.name == b.name
    if hasattr(a, "items"):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "key"):
        return a.key == b.key  # a term
    return a == b


class TestRoundTrip:
    def test_everything_comes_back_bit_by_bit(self, estimate, tmp_path):
        estimate.save(tmp_path / "new folder")
        back = load_fit(tmp_path / "new folder")
        for field in dataclasses.fields(Fit):
            assert same(getattr(estimate, field.name), getattr(back, field.name)), field.name
        assert back.rows() == estimate.rows()
        assert back.table() == estimate.table()

    def test_a_second_round_changes_nothing(self, estimate, tmp_path):
        estimate.save(tmp_path / "a.yaml")
        load_fit(tmp_path / "a.yaml").save(tmp_path / "b.yaml")
        assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()

    def test_predictions_come_back(self, estimate, tmp_path):
        estimate.save(tmp_path)
        log = noisy_log(estimate.robot, 5, "c.csv", seconds=5.0)
        np.testing.assert_array_equal(load_fit(tmp_path).predict(log), estimate.predict(log))

    def test_by_file_and_by_folder(self, pendulum, tmp_path):
        pendulum.save(tmp_path / "mine.yaml")
        assert sorted(os.listdir(tmp_path)) == ["mine.npz", "mine.yaml"]
        assert load_fit(str(tmp_path / "mine.yaml")).names == pendulum.names
        pendulum.save(tmp_path)
        assert sorted(os.listdir(tmp_path)) == ["fit.npz", "fit.yaml", "mine.npz", "mine.yaml"]
        assert load_fit(tmp_path).names == load_fit(tmp_path / "fit.yaml").names

    def test_what_data_does_not_know(self, tmp_path):
        """Infinite standard deviations, an infinite condition number."""
        robot = di.load_robot("pendulum-2")
        t = stamps(20.0, 200.0)
        q = Fourier.random(2, 0)(t)[0] * [1.0, 0.0]
        estimate = identify(robot, make_log(robot, t, q, np.sin(q)), terms=TERMS, check="off")
        assert estimate.undetermined
        estimate.save(tmp_path)
        back = load_fit(tmp_path)
        assert back.undetermined == estimate.undetermined
        assert same(back.std, estimate.std)
        assert same(back.white_std, estimate.white_std)

    def test_options_of_estimators(self, tmp_path):
        for number, estimator in enumerate(["robust", di.estimate.RidgeLeastSquares(strength=1e-6)]):
            made = estimate_of("pendulum-2", estimator=estimator)
            made.save(tmp_path / str(number))
            back = load_fit(tmp_path / str(number))
            assert same(back.estimator, made.estimator)

    def test_the_text_reads_well(self, saved, pendulum):
        data = yaml.safe_load((saved / "fit.yaml").read_text())
        assert data["format"] == FORMAT
        first = data["parameters"][0]
        assert list(first)[:3] == ["name", "value", "std"]
        assert first["value"] == pendulum.beta[0]
        assert data["data"][0]["label"] == "a.csv"
        assert "b: odd name.csv" in data["validation"]


class TestDamage:
    def refused(self, folder, words):
        with pytest.raises(FitFileError, match=words) as error:
            load_fit(folder)
        assert re.search(r"fit\.(yaml|npz)", str(error.value))
        assert str(folder) in str(error.value)
        assert "\n" not in str(error.value)

    def edit(self, folder, old, new, count=1):
        text = (folder / "fit.yaml").read_text()
        assert old in text
        (folder / "fit.yaml").write_text(text.replace(old, new, count))

    def test_no_file(self, tmp_path):
        self.refused(tmp_path, r"no such file; give the fit\.yaml that identify wrote")

    def test_missing_arrays(self, saved):
        (saved / "fit.npz").unlink()
        self.refused(saved, r"fit\.npz is not beside it; keep the two files together")

    def test_arrays_of_another_fit_of_the_same_robot(self, saved, other, tmp_path):
        other.save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / "fit.npz", saved / "fit.npz")
        self.refused(saved, "the parameters of the two files differ; were they edited")

    def test_arrays_of_another_robot(self, saved, tmp_path):
        estimate_of("tx40").save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / "fit.npz", saved / "fit.npz")
        self.refused(saved, "damaged")

    def test_an_edited_value(self, saved, pendulum):
        self.edit(saved, repr(float(pendulum.beta[1])), "0.123")
        self.refused(saved, "the parameters of the two files differ")

    def test_an_edited_name(self, saved):
        self.edit(saved, "name: ZZR1", "name: ZZR9")
        self.refused(saved, "the parameters of the two files differ")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "format is 'NoneType'; expected 'dynident fit 2'"),
            ("just words", "format is 'str'"),
            ("format: dynident robot 1\n", "format is 'dynident robot 1'; expected 'dynident fit 2'"),
            ("format: [", r"cannot be read"),
            ("format: dynident fit 1\n", "has no"),
            ("format: dynident fit 2\n", "has no"),
            ("a: b: c", "cannot be read"),
            ("!!python/object/apply:os.getcwd []", "cannot be read"),
        ],
    )
    def test_text_that_is_no_fit(self, saved, text, words):
        (saved / "fit.yaml").write_text(text)
        self.refused(saved, words)

    def test_bytes_that_are_no_text(self, saved):
        (saved / "fit.yaml").write_bytes(b"\xff\xfe\x00format")
        self.refused(saved, "cannot be read")

    def test_a_folder_in_place_of_the_file(self, saved):
        (saved / "fit.yaml").unlink()
        (saved / "fit.yaml").mkdir()
        self.refused(saved, "cannot be read")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not an archive"])
    def test_arrays_that_are_no_archive(self, saved, content):
        (saved / "fit.npz").write_bytes(content)
        self.refused(saved, "is damaged")

    def test_arrays_cut_short(self, saved):
        whole = (saved / "fit.npz").read_bytes()
        for length in range(1, len(whole), len(whole) // 40):
            (saved / "fit.npz").write_bytes(whole[:length])
            self.refused(saved, "is damaged")

    def test_text_cut_short(self, saved):
        whole = (saved / "fit.yaml").read_text()
        for length in range(0, len(whole) - 2, len(whole) // 25):
            (saved / "fit.yaml").write_text(whole[:length])
            with pytest.raises((FitFileError, di.RobotFileError), match=re.escape(str(saved))):
                load_fit(saved)

    def test_any_key_removed(self, saved):
        data = yaml.safe_load((saved / "fit.yaml").read_text())
        for key in data.keys() - {"name"}:  # the robot has its name
            less = {name: value for name, value in data.items() if name != key}
            (saved / "fit.yaml").write_text(yaml.safe_dump(less))
            named = "" if key in ("check", "provenance") else f".*{key}"  # not every fit has one
            self.refused(saved, "format is None" if key == "format" else f"damaged{named}")

    @pytest.mark.parametrize("wrong", [None, "words", [], {"odd": 1}])
    def test_any_key_of_another_type(self, saved, wrong):
        data = yaml.safe_load((saved / "fit.yaml").read_text())
        for key in data:
            if key in ("format", "dynident", "deviations", "name", "cross_validation", "terms"):
                continue  # words, results that are only shown, and what the next test is for
            (saved / "fit.yaml").write_text(yaml.dump({**data, key: wrong}, Dumper=yaml.CSafeDumper))
            try:
                load_fit(saved)
            except di.DynidentError as error:
                assert str(saved) in str(error)  # noqa: PT017 - some values are allowed, others must be refused so
            else:
                assert key in MAY_BE_EMPTY

    def test_no_terms(self, saved):
        data = yaml.safe_load((saved / "fit.yaml").read_text())
        (saved / "fit.yaml").write_text(yaml.safe_dump({**data, "terms": None}))
        self.refused(saved, "damaged")

    @pytest.mark.parametrize(
        "name",
        ["beta", "covariance", "white_std", "determined", "K", "independent", "solve_numbers"],
    )
    def test_any_array_removed_or_of_another_shape(self, saved, name):
        with np.load(saved / "fit.npz") as stored:
            arrays = dict(stored)
        for changed in ({}, {name: arrays[name].ravel()[:-1]}):
            left = {key: value for key, value in arrays.items() if key != name} | changed
            with open(saved / "fit.npz", "wb") as file:
                np.savez(file, **left)
            self.refused(saved, "damaged")

    def test_an_array_of_objects(self, saved):
        with np.load(saved / "fit.npz") as stored:
            arrays = dict(stored)
        arrays["beta"] = np.array([{}, []], dtype=object)
        with open(saved / "fit.npz", "wb") as file:
            np.savez(file, **arrays)
        self.refused(saved, "is damaged")

    @pytest.mark.parametrize(
        ("place", "value"),
        [(4, 0xFF), (6, 0x01), (6, 0x20), (8, 0x63)],
        ids=["version", "encrypted", "patched", "compression"],
    )
    def test_odd_headers_of_the_archive(self, saved, place, value):
        """The same byte in the local header and in the central directory, where it comes two bytes later."""
        whole = bytearray((saved / "fit.npz").read_bytes())
        central = whole.index(b"PK\x01\x02")
        whole[place] = whole[central + place + 2] = value
        (saved / "fit.npz").write_bytes(bytes(whole))
        self.refused(saved, "is damaged")

    def test_flipped_bytes(self, saved, pendulum):
        """Any byte of the archive: refused as damaged, or nothing changed."""
        whole = bytearray((saved / "fit.npz").read_bytes())
        rng = np.random.default_rng(0)
        for place in rng.integers(0, len(whole), 80):
            broken = bytearray(whole)
            broken[place] ^= int(rng.integers(1, 256))
            (saved / "fit.npz").write_bytes(bytes(broken))
            try:
                back = load_fit(saved)
            except FitFileError as error:
                assert "fit." in str(error)  # noqa: PT017 - either outcome is fine
            else:
                assert same(back.beta, pendulum.beta)
                assert same(back.covariance, pendulum.covariance)


class TestWriting:
    def content(self, folder):
        return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}

    def test_arrays_that_fail_midway_leave_the_old_files(self, saved, other, monkeypatch):
        before = self.content(saved)

        def savez(file, **arrays):
            file.write(b"half of it")
            raise OSError("no space left on device")

        monkeypatch.setattr(storage.np, "savez", savez)
        with pytest.raises((OSError, di.DynidentError)):
            other.save(saved)
        assert self.content(saved) == before

    def test_text_that_fails_leaves_the_old_files(self, saved, other, monkeypatch):
        before = self.content(saved)

        def broken(data):
            raise ValueError("cannot be written")

        monkeypatch.setattr(storage, "yaml_text", broken)
        with pytest.raises(ValueError, match="cannot be written"):
            other.save(saved)
        assert self.content(saved) == before

    def test_a_first_save_that_fails_leaves_nothing(self, pendulum, tmp_path, monkeypatch):
        def savez(file, **arrays):
            raise OSError("no space left on device")

        monkeypatch.setattr(storage.np, "savez", savez)
        with pytest.raises((OSError, di.DynidentError)):
            pendulum.save(tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_a_folder_that_cannot_be_written(self, saved, other, monkeypatch):
        """Root may write anywhere, so the system's answer is made up."""
        before = self.content(saved)

        def refuse(**where):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files.tempfile, "mkdtemp", refuse)
        with pytest.raises(di.InputError, match=rf"{saved}: cannot be written \(Permission denied\)"):
            other.save(saved)
        assert self.content(saved) == before

    def test_a_file_in_place_of_the_folder(self, pendulum, tmp_path):
        (tmp_path / "taken").write_text("mine")
        with pytest.raises(di.InputError, match=r"taken: is a file; choose another folder"):
            pendulum.save(tmp_path / "taken")
        assert (tmp_path / "taken").read_text() == "mine"

    def test_a_folder_in_place_of_the_file(self, pendulum, tmp_path):
        (tmp_path / "fit.yaml").mkdir()
        with pytest.raises(di.InputError, match=r"fit\.yaml: is a folder"):
            pendulum.save(tmp_path)

    def test_no_leftovers(self, saved):
        assert sorted(os.listdir(saved)) == ["fit.npz", "fit.yaml"]
