"""The main job on the demo's logs: command line, formats, order, blocks, processes, interruption."""

from __future__ import annotations

import dataclasses
import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.estimate.candidates import BASIC_TERMS
from dynident.information.row_source import accumulate_source
from dynident.pipeline import factor_cache as store_module
from dynident.signals import ObservedRows, SignalOptions, observe, survey_log

DEMO = Path(__file__).parents[2] / "examples" / "demo"
ARM = str(DEMO / "arm.yaml")
TRAIN = [str(DEMO / "fourier_1.csv.gz"), str(DEMO / "fourier_2.csv.gz")]
OTHER = str(DEMO / "wandering.csv.gz")
FIXED = {"band": 6.0, "delay": 0.004, "velocity_source": "position", "friction": "basic"}  # preprocessing fixed


@pytest.fixture(scope="module")
def robot():
    return di.load_robot(ARM)


@pytest.fixture(scope="module")
def logs(robot):
    return [di.read_log(path, robot) for path in TRAIN]


@pytest.fixture(scope="module")
def fit(robot, logs):
    return di.identify(robot, logs, **FIXED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "deep" / "fit"
    assert main(["identify", ARM, *TRAIN, "-o", str(out), "--validation", OTHER, "--quiet"]) == 0
    return out


def run_json(capsys, *arguments: str) -> dict:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_identify_answers_in_the_agreed_shape(tmp_path, capsys):
    answer = run_json(capsys, "identify", ARM, *TRAIN, "-o", str(tmp_path / "a"), "--validation", OTHER)
    assert answer["rank"] == len(answer["parameters"]) >= 58
    assert 1.0 < answer["condition"] < 1e4
    assert {"name", "value", "std", "relative_std", "unit", "category"} <= set(answer["parameters"][0])
    assert len(answer["train"]["per_joint"]) == 6
    assert answer["train"]["relative_error"] < 0.01 < answer["nominal"]["relative_error"]
    assert next(iter(answer["validation"].values()))["relative_error"] < 0.012
    assert answer["cross_validation"]["over"] == "blocks"  # of the prediction
    assert not answer["prediction"]["same_as_parameters"]
    assert 0.0 <= answer["prediction"]["weight"] <= 1.0
    assert not any(row["name"].startswith("stop") for row in answer["parameters"])
    assert 0.0025 < answer["signals"]["delay"] < 0.005  # made with 4 ms; the lag of dry friction hides a part of them
    for name in ("fit.yaml", "fit.npz", "report.html"):
        assert (tmp_path / "a" / name).stat().st_size > 1000


def test_validate_and_predict(folder, tmp_path, capsys, robot):
    answer = run_json(capsys, "validate", str(folder), OTHER)
    assert answer["relative_error"] < 0.012
    assert len(answer["per_joint"]) == 6
    assert answer["seen_in_training"] == []
    assert run_json(capsys, "validate", str(folder / "fit.yaml"), TRAIN[0])["seen_in_training"] == [TRAIN[0]]
    narrow = run_json(capsys, "validate", str(folder), OTHER, "--band", "3")
    assert narrow["band"] == 3.0
    target = tmp_path / "tau.csv"
    assert main(["predict", str(folder), OTHER, "-o", str(target)]) == 0
    lines = target.read_text().splitlines()
    assert lines[0] == "t,tau1,tau2,tau3,tau4,tau5,tau6"
    log = di.read_log(OTHER, robot)
    table = np.loadtxt(lines[1:], delimiter=",")
    np.testing.assert_array_equal(table[:, 0], log.time)
    np.testing.assert_allclose(table[:, 1:], di.load_fit(folder).predict(log), rtol=1e-8, atol=1e-8)


def test_prediction_does_not_look_at_torque(folder, robot):
    fit = di.load_fit(folder)
    log = di.read_log(OTHER, robot)
    positions = {name: values for name, values in log.channels.items() if name.startswith("q")}
    blind = di.Log(log.source, log.digest, log.time, positions)
    zero = di.Log(log.source, log.digest, log.time, {**positions, **{f"tau{i}": 0 * log.time for i in range(1, 7)}})
    np.testing.assert_array_equal(fit.predict(blind), fit.predict(log))
    np.testing.assert_array_equal(fit.predict(zero), fit.predict(log))


class Rebatched:
    """A log whose blocks have other sizes."""

    def __init__(self, log, sizes):
        self.log, self.sizes = log, sizes
        self.source, self.digest, self.role, self.label = log.source, log.digest, log.role, log.label

    def blocks(self):
        first, number = 0, 0
        while first < len(self.log):
            size = self.sizes[number % len(self.sizes)]
            yield self.log.samples(slice(first, first + size))
            first, number = first + size, number + 1


@pytest.mark.parametrize("sizes", [(1000,), (7, 391), (257,), (64, 1, 2, 900)])
def test_blocks_of_any_size_give_one_result(robot, logs, fit, sizes):
    other = di.identify(robot, [Rebatched(log, sizes) for log in logs], **FIXED)
    np.testing.assert_allclose(other.beta, fit.beta, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(other.covariance, fit.covariance, rtol=1e-6, atol=1e-12)


def test_logs_in_any_order_give_one_result(robot, logs, fit):
    other = di.identify(robot, logs[::-1], **FIXED)
    np.testing.assert_allclose(other.beta, fit.beta, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(other.std, fit.std, rtol=1e-8)


def test_each_log_is_surveyed_once(robot, logs, monkeypatch):
    """The diagnostics of `identify` and of `check` take the survey that observations were made from."""
    surveyed: list[str] = []
    real = survey_log

    def counting(log, *args, **options):
        surveyed.append(log.label)
        return real(log, *args, **options)

    for module in (
        "pipeline.preprocessing",
        "signals.observations",
        "diagnostics.diagnosing",
        "diagnostics.log_preview",
    ):
        monkeypatch.setattr(importlib.import_module(f"dynident.{module}"), "survey_log", counting)
    held_out = dataclasses.replace(logs[1], role="validation", label="other")
    found = di.identify(robot, [logs[0], held_out], **{**FIXED, "check": "warn"})
    assert found.diagnosis is not None
    assert surveyed == [logs[0].label, "other"]
    surveyed.clear()
    assert di.check_logs(robot, logs).diagnostics
    assert surveyed == [log.label for log in logs]


_ONE_PROCESS = """
import sys
import dynident as di
from dynident.information.row_source import accumulate_source
from dynident.estimate.candidates import BASIC_TERMS
from dynident.signals import ObservedRows, SignalOptions, observe
robot = di.load_robot(sys.argv[1])
log = di.read_log(sys.argv[2], robot)
base = di.base_parameters(robot, BASIC_TERMS)
rows = ObservedRows((observe(log, robot, SignalOptions(band=6.0, delay=0.004)),), base)
accumulate_source(rows).save(sys.argv[3])
"""


def test_factors_of_two_processes_merge_to_one_result(tmp_path, robot, logs):
    files = [str(tmp_path / f"{i}.npz") for i in range(2)]
    jobs = [
        subprocess.Popen([sys.executable, "-c", _ONE_PROCESS, ARM, path, file])
        for path, file in zip(TRAIN, files, strict=True)
    ]
    assert [job.wait() for job in jobs] == [0, 0]
    merged = sum(di.load_information(file) for file in files)
    signals = SignalOptions(band=6.0, delay=0.004)
    observed = tuple(observe(log, robot, signals) for log in logs)
    whole = accumulate_source(ObservedRows(observed, di.base_parameters(robot, BASIC_TERMS)))
    ours, theirs = (di.estimators.WeightedLeastSquares().fit(one).values_ for one in (merged, whole))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_csv_parquet_and_npz_give_one_fit(tmp_path, robot, logs, fit):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = {"t": logs[0].time, **logs[0].channels}
    parquet.write_table(arrow.table({k: np.asarray(v) for k, v in table.items()}), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", **table)
    text = "\n".join(
        [",".join(table), *(",".join(map(repr, map(float, row))) for row in zip(*table.values(), strict=True))]
    )
    (tmp_path / "a.csv").write_text(text)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(text)
    first = di.identify(robot, logs[:1], **FIXED)
    for name in ("a.csv", "a.csv.gz", "a.parquet", "a.npz"):
        other = di.identify(robot, [di.open_log(tmp_path / name, robot)], **FIXED)
        np.testing.assert_array_equal(other.beta, first.beta)
    streamed = di.identify(robot, [di.logs.stream_log(tmp_path / "a.parquet", robot)], **FIXED)
    np.testing.assert_allclose(streamed.beta, first.beta, rtol=1e-12)


def test_finished_logs_are_not_read_again(tmp_path, robot, logs, monkeypatch, fit):
    count, interrupted = [], True
    real = accumulate_source

    def counting(rows, *rest):
        count.append(rows)
        if interrupted and len(count) == 2:
            raise KeyboardInterrupt
        return real(rows, *rest)

    def gathered(store, **options):
        count.clear()
        known = {"terms": "rigid,Ia,Fv,Fc(0.02),Fo"}  # widths of dry friction need no search
        fit = di.identify(robot, logs, store=tmp_path / store, **FIXED | known | options)
        return len(count), fit

    monkeypatch.setattr(store_module, "accumulate_source", counting)
    with pytest.raises(KeyboardInterrupt):
        gathered("factors")
    assert len(list((tmp_path / "factors").iterdir())) == 1
    interrupted = False
    everything, fresh = gathered("fresh")
    rest, again = gathered("factors")
    assert rest == everything - 1  # the first log of the first pass was there
    np.testing.assert_array_equal(again.beta, fresh.beta)
    assert gathered("factors")[0] == 0
    assert gathered("factors", band=5.0)[0] >= len(logs)  # other options are another story


def test_a_damaged_factor_is_made_again(tmp_path, robot, logs, fit):
    store = tmp_path / "factors"
    di.identify(robot, logs, store=store, **FIXED)
    for file in store.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(di.identify(robot, logs, store=store, **FIXED).beta, fit.beta)


@pytest.mark.parametrize("estimator", ["ordinary", "weighted", "robust", "total", "ridge"])
def test_every_estimator_identifies_the_arm(robot, logs, estimator):
    fit = di.identify(robot, logs, estimator=estimator, **FIXED)
    assert fit.train.relative < 0.02
    assert fit.estimator.name == estimator
    assert np.isfinite(fit.std).all()


def test_a_prior_pulls_towards_the_robots_own_values(tmp_path, capsys):
    answers = [
        run_json(capsys, "identify", ARM, TRAIN[0], "-o", str(tmp_path / s), "--estimator", "prior", "--prior-std", s)
        for s in ("1e-6", "1e3")
    ]
    nominal = answers[0]["nominal"]["relative_error"]
    assert answers[0]["train"]["relative_error"] == pytest.approx(nominal, rel=0.02)
    assert answers[1]["train"]["relative_error"] < 0.2 * nominal


def test_drive_gain_tolerances_widen_the_deviations(tmp_path, logs, fit):
    overlay = tmp_path / "arm.yaml"
    gains = ", ".join(f"{{value: {gain}, tolerance: {0.02 * gain}}}" for gain in fit.robot.drive.gains)
    overlay.write_text(f"base: {ARM}\ndrive_gains: [{gains}]\n")
    wide = di.identify(di.load_robot(overlay), logs, **FIXED)
    np.testing.assert_array_equal(wide.beta, fit.beta)
    assert (wide.std >= fit.std).all()
    # Friction of joint 6 is proportional to its gain, which is known to 2 %.
    fc = wide.names.index("Fc6")
    assert wide.std[fc] == pytest.approx(np.hypot(fit.std[fc], 0.02 * fit.beta[fc]), rel=0.05)
    assert "drive gains" in wide.covariance_kind


def test_rank_deficient_data_says_what_it_cannot_determine(tmp_path, robot, logs, capsys):
    still = dict(logs[0].channels)
    for n in (4, 5, 6):
        still[f"q{n}"] = np.full(len(logs[0]), 0.3)
    log = di.Log("still.csv", "0", logs[0].time, still)
    fit = di.identify(robot, [log], **FIXED, check="off")  # torque of joints that moved, which the check would refuse
    assert fit.rank < 58
    assert fit.undetermined
    assert np.isinf(fit.std[fit.names.index("Fv5")])
    assert np.isfinite(fit.beta).all()
    assert any("leaves open" in warning for warning in fit.warnings)
    fit.save(tmp_path)
    assert di.load_fit(tmp_path).undetermined == fit.undetermined
    assert run_json(capsys, "validate", str(tmp_path), TRAIN[0])["relative_error"] > 0.0


def bad_logs():
    """Name -> (change of the good text's lines, what the message must say)."""

    def column(lines, name, index, change):
        at = lines[0].replace(" [rad]", "").replace(" [A]", "").replace(" [s]", "").split(",").index(name)
        cells = lines[index].split(",")
        cells[at] = change
        return [*lines[:index], ",".join(cells), *lines[index + 1 :]]

    return {
        "missing column": (lambda ls: [",".join(x.split(",")[:-1]) for x in ls], "i6"),
        "missing position": (lambda ls: [",".join([x.split(",")[0], *x.split(",")[2:]]) for x in ls], "q1"),
        "joint that is not there": (lambda ls: [ls[0] + ",q7", *(x + ",0" for x in ls[1:])], "q7"),
        "nan": (lambda ls: column(ls, "q3", 500, "nan"), "'q3'"),
        "infinite": (lambda ls: column(ls, "i2", 700, "inf"), "'i2'"),
        "text": (lambda ls: column(ls, "q2", 40, "abc"), "'abc' is not a number"),
        "empty": (lambda ls: [], "is empty"),
        "header only": (lambda ls: ls[:1], "rows of numbers"),
        "one row": (lambda ls: ls[:2], "needs many"),
        "few rows": (lambda ls: ls[:12], "at least"),
        "backwards": (lambda ls: [*ls[:100], ls[90], *ls[100:]], "backwards"),
        "too short for the filter": (lambda ls: ls[:22], "long enough"),
        "too short for training": (lambda ls: ls[:60], "per parameter"),
        "only rest": (
            lambda ls: [
                ls[0],
                *(",".join([x.split(",")[0], *ls[1].split(",")[1:7], *x.split(",")[7:]]) for x in ls[1:]),
            ],
            "no joint moves",
        ),
        "no time": (lambda ls: [",".join(x.split(",")[1:]) for x in ls], "no time column"),
        "time stands": (lambda ls: [ls[0], *("1.0," + ",".join(x.split(",")[1:]) for x in ls[1:])], "never advances"),
    }


@pytest.mark.parametrize("name", bad_logs())
def test_bad_logs_get_one_clear_message_and_nothing_is_written(name, tmp_path, capsys):
    change, fragment = bad_logs()[name]
    with gzip.open(TRAIN[0], "rt") as file:
        lines = file.read().splitlines()[:1500]
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(change(lines)) + "\n")
    out = tmp_path / "out"
    capsys.readouterr()
    assert main(["identify", ARM, str(path), "-o", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "bad.csv" in captured.err
    assert fragment in captured.err
    assert not (out / "fit.yaml").exists()
    assert not (out / "report.html").exists()


def test_a_failed_run_leaves_the_last_result_alone(folder, tmp_path):
    before = (folder / "fit.yaml").read_bytes()
    bad = tmp_path / "bad.csv"
    bad.write_text("t,q1\n0,1\n1,2\n")
    assert main(["identify", ARM, str(bad), "-o", str(folder)]) == 2
    assert (folder / "fit.yaml").read_bytes() == before


BAD_OPTIONS = {
    "band": (["--band", "-1"], "--band"),
    "band nan": (["--band", "nan"], "--band"),
    "estimator": (["--estimator", "wieghted"], "did you mean 'weighted'?"),
    "velocity": (["--velocity-source", "measurd"], "did you mean 'measured'?"),
    "measured without": (["--velocity-source", "measured"], "dq1"),
    "differentiator": (["--differentiator", "central2"], "central"),
    "window": (["--window", "3"], "START:STOP"),
    "empty window": (["--window", "100:200"], "no sample lies between"),
    "terms": (["--terms", "rigid,Fx"], "unknown term 'Fx'"),
    "term option": (["--terms", "rigid,Fv(2)"], "Fv takes no options"),
    "prior without": (["--prior-std", "0.1"], "--estimator prior"),
    "columns": (["--columns", "gone.yaml"], "gone.yaml"),
    "delay": (["--delay", "inf"], "delay"),
    "missing log": (["--validation", "gone.csv"], "gone.csv"),
}


@pytest.mark.parametrize(("options", "fragment"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options(options, fragment, tmp_path, capsys):
    capsys.readouterr()
    assert main(["identify", ARM, TRAIN[0], "-o", str(tmp_path / "out"), *options]) == 2
    captured = capsys.readouterr()
    assert fragment in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out" / "fit.yaml").exists()


def test_a_fit_that_is_not_there(tmp_path, capsys):
    for verb in (["validate", str(tmp_path), OTHER], ["predict", str(tmp_path), OTHER, "-o", str(tmp_path / "x.csv")]):
        assert main(verb) == 2
        assert "fit.yaml: no such file" in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


_STREAMED = """
import sys
import dynident as di
robot = di.load_robot("ur10e")
fit = di.identify(robot, [di.open_log(sys.argv[1], robot)], friction="basic")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024, fit.rank)
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_log(tmp_path):
    """From a million samples on, when readers and caches have what they ever take."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from main_job import write_log

    peaks = []
    for n in (1_000_000, 10_000_000):
        path = tmp_path / f"{n}.parquet"
        write_log(path, n)
        answer = subprocess.run(
            [sys.executable, "-c", _STREAMED, str(path)], capture_output=True, text=True, check=True
        ).stdout.split()
        peaks.append(int(answer[0]))
        assert answer[1] == "58"
        path.unlink()
    assert 20 * (peaks[1] - peaks[0]) < 13 * 8 * 9_000_000
