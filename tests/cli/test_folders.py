"""Folders of results: what dynident wrote is replaced or removed, what others wrote is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.drives.storage import DrivesFileError, load_drives
from dynident.estimate.storage import FitFileError
from dynident.information.storage import InformationFileError
from dynident.logs.write import write_log
from dynident.report.plot_data import load_report_data
from tests.estimate.test_storage import noisy_log

HOW = ("--terms", "rigid,Fv,Fc", "--check", "off", "--quiet")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a log, and the results of an identification in `out`."""
    folder = tmp_path_factory.mktemp("made")
    write_log(noisy_log(di.load_robot("pendulum-2"), 0, "a", seconds=10.0), folder / "a.csv")
    assert main(["identify", "pendulum-2", str(folder / "a.csv"), "-o", str(folder / "out"), *HOW]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


def identify(folder, *more):
    return main(["identify", "pendulum-2", str(folder / "a.csv"), "-o", str(folder / "out"), *HOW, *more])


def tampered(path, change):
    """The archive with other arrays and the seal that it had."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(path, **(arrays | change(arrays)))


class TestForeignFiles:
    @pytest.mark.parametrize("name", ["fit.yaml", "report.html", "report.npz"])
    def test_results_of_others_are_not_overwritten(self, folder, name, capsys):
        foreign = folder / "out" / name
        foreign.write_bytes(b"a thesis")
        assert identify(folder) == 2
        assert f"{name}: was not written by dynident; move it" in capsys.readouterr().err
        assert foreign.read_bytes() == b"a thesis"

    def test_fresh_removes_our_factors_only(self, folder):
        assert identify(folder) == 0  # names of factors depend on where the log is
        factors = folder / "out" / "factors"
        own = sorted(path.name for path in factors.iterdir())
        assert own
        np.savez(factors / "mine.npz", q=np.ones(3))
        np.savez(factors / f"{'0' * 20}.npz", q=np.ones(3))  # even one of such a name
        (factors / f".{own[0]}.abcd_123.part").write_bytes(b"of a killed run")
        before = (factors / own[0]).stat().st_mtime_ns
        assert identify(folder, "--fresh") == 0
        assert sorted(path.name for path in factors.iterdir()) == sorted([*own, "mine.npz", f"{'0' * 20}.npz"])
        assert (factors / own[0]).stat().st_mtime_ns > before

    def test_fresh_of_live_removes_checkpoints_only(self, folder, capsys):
        shutil.copy(folder / "out" / "fit.npz", folder / "kept.npz")
        np.savez(folder / "log.npz", t=np.arange(3.0))
        words = ["live", str(folder / "a.csv"), "--robot", "pendulum-2", "--quiet", "--fresh", "--checkpoint"]
        assert main([*words, str(folder / "log.npz")]) == 2
        assert "log.npz: is no checkpoint of dynident" in capsys.readouterr().err
        assert (folder / "log.npz").exists()

    def test_fresh_of_an_experiment_removes_runs_only(self, tmp_path, capsys):
        pytest.importorskip("mujoco")
        runs = tmp_path / "out" / "runs"
        runs.mkdir(parents=True)
        (runs / "000-a.csv").write_text("t,q1\n0,0\n")
        (runs / "thesis.csv").write_text("my own")
        (tmp_path / "out" / "result.json").write_text('{"warnings": []}')
        assert main(["gravity", "pendulum-1", "-o", str(tmp_path / "out"), "--fresh", "--quiet"]) == 2
        assert "holds thesis.csv" in capsys.readouterr().err
        assert [path.name for path in runs.iterdir()] == ["thesis.csv"]


class TestSeals:
    def test_negated_covariance(self, folder):
        tampered(folder / "out" / "fit.npz", lambda arrays: {"covariance": -arrays["covariance"]})
        with pytest.raises(FitFileError, match=r"fit\.npz: is damaged \(its seal does not match"):
            di.load_fit(folder / "out")

    def test_negated_covariance_of_a_fit_without_a_seal(self, folder):
        path = folder / "out" / "fit.npz"
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "dynident"}
        np.savez(path, **(arrays | {"covariance": -arrays["covariance"]}))
        with (
            pytest.warns(di.errors.FileWarning, match="has no seal"),
            pytest.raises(FitFileError, match="negative variances"),
        ):
            di.load_fit(folder / "out")

    def test_factors(self, folder):
        assert identify(folder) == 0
        path = next((folder / "out" / "factors").iterdir())
        before = di.load_fit(folder / "out").beta
        tampered(path, lambda arrays: {"R": 1.1 * arrays["R"]})
        with pytest.raises(InformationFileError, match="its seal does not match"):
            di.load_information(path)
        assert identify(folder) == 0  # it is made again
        di.load_information(path)
        np.testing.assert_allclose(di.load_fit(folder / "out").beta, before, rtol=1e-9)

    def test_plots(self, folder):
        path = folder / "out" / "report.npz"
        assert load_report_data(folder / "out") is not None
        tampered(path, lambda arrays: {"trace0": -arrays["trace0"]})
        with pytest.raises(FitFileError, match=r"report\.npz: is damaged \(its seal does not match"):
            load_report_data(folder / "out")

    def test_checkpoints(self, folder):
        found = di.OnlineIdentifier(di.load_robot("pendulum-2"))
        found.save(folder / "kept.npz")
        tampered(folder / "kept.npz", lambda arrays: {"known.sigma": 2.0 * arrays["known.sigma"]})
        with pytest.raises(di.InputError, match=r"kept\.npz: .*its seal does not match"):
            di.OnlineIdentifier.load(folder / "kept.npz", di.load_robot("pendulum-2"))

    def test_a_motion_is_for_people_to_edit(self, folder):
        """No seal where a file is written to be changed."""
        from dynident.motion.storage import load_trajectory, save_trajectory

        motion = di.trajectories.PointToPoint(points=[[0.0], [1.0]], durations=[2.0])
        save_trajectory(motion, folder / "motion.yaml")
        text = (folder / "motion.yaml").read_text()
        (folder / "motion.yaml").write_text(text.replace("duration: 2.0\n", ""))
        assert load_trajectory(folder / "motion.yaml").duration == 2.0


def test_warnings_of_mujoco_leave_no_file(tmp_path, monkeypatch, caplog):
    mujoco = pytest.importorskip("mujoco")
    from dynident.plant.compiled_model import import_mujoco

    monkeypatch.chdir(tmp_path)
    import_mujoco()
    text = "<mujoco><worldbody><body><joint/><geom size='.1' pos='1 0 0'/></body></worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = 1e300
    mujoco.mj_step(model, data)
    assert os.listdir(tmp_path) == []
    assert "The simulation is unstable" in caplog.text


def test_edited_drives(tmp_path):
    from dynident.sealed import sealed_text

    path = Path(tmp_path / "drives.yaml")
    path.write_text(sealed_text("format: dynident drives 1\nkp: [60.0]\n").replace("60", "70"))
    with pytest.raises(DrivesFileError, match=r"drives\.yaml.* the text was edited or damaged"):
        load_drives(path)
