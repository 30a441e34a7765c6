from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.diagnostics.diagnosing import diagnose_signals
from dynident.logs import Log, stream_log
from tests.diagnostics.made import N, opened, sound, write

ITEMS = [
    *("time", "sampling", "gaps", "repeats", "wraps", "numbers", "channels"),
    *("saturation", "quantisation", "velocity", "rest", "limits"),
]


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("ur10e")


def in_memory(columns) -> Log:
    return Log("made", "", columns["t"], {name: values for name, values in columns.items() if name != "t"})


def unusual(log, robot) -> dict[str, list]:
    """Items that are not ok, by name."""
    found: dict[str, list] = {}
    for item in diagnose_signals(log, robot):
        assert item.log == log.label
        if item.severity != "ok":
            found.setdefault(item.name, []).append(item)
    return found


def only(log, robot, name):
    """The one item that is not ok."""
    found = unusual(log, robot)
    assert list(found) == [name]
    (item,) = found[name]
    return item


def test_a_sound_log_is_ok_throughout(tmp_path, robot):
    found = diagnose_signals(opened(tmp_path, sound()), robot)
    assert [item.name for item in found] == ITEMS
    assert {item.severity for item in found} == {"ok"}
    assert diagnose_signals(in_memory(sound()), robot)[5] == di_replaced(found[5], "made")
    assert [item.name for item in diagnose_signals(in_memory(sound()))] == ITEMS[:-1]


def di_replaced(item, label):
    return type(item)(item.name, item.severity, item.message, item.fix, label)


def rows(columns, order):
    return {name: values[order] for name, values in columns.items()}


def test_time_that_runs_backwards(tmp_path, robot):
    columns = sound()
    order = np.arange(N)
    order[1000], order[1001] = 1001, 1000
    item = only(opened(tmp_path, rows(columns, order)), robot, "time")
    assert item.severity == "stop"
    assert "once, first from 5.005 to 5 s at row 1002; sort the rows by time, or split" in item.message
    joined = {name: np.concatenate([values, values]) for name, values in columns.items()}
    assert "from 19.995 to 0 s at row 4001" in unusual(opened(tmp_path, joined), robot)["time"][0].message


@pytest.mark.parametrize(("unit", "size"), [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
@pytest.mark.parametrize("velocities", [True, False])
def test_time_in_another_unit(tmp_path, robot, unit, size, velocities):
    columns = sound()
    columns = {name: values for name, values in columns.items() if velocities or not name.startswith("dq")}
    columns["t"] = columns["t"] * size
    item = only(opened(tmp_path, columns), robot, "time")
    assert item.severity == "stop"
    assert item.fix == {"columns": {"t": {"column": "t", "unit": unit}}}
    assert f"in {unit} 200 Hz" in item.message
    assert not unusual(stream_log(tmp_path / "log.csv", robot, columns=item.fix["columns"]), robot)


def test_measured_velocities_tell_the_unit_of_a_plausible_rate(tmp_path, robot):
    columns = sound()
    columns["t"] = columns["t"][:] * 1e3 / 50  # 10 kHz in ms is read as 10 Hz
    for name in columns:
        if name.startswith("dq"):
            columns[name] = columns[name] * 50
    item = only(opened(tmp_path, columns), None, "time")
    assert item.fix == {"columns": {"t": {"column": "t", "unit": "ms"}}}
    assert "gives 10 Hz, in ms 1e+04 Hz and measured velocities" in item.message
    assert not unusual(stream_log(tmp_path / "log.csv", robot, columns=item.fix["columns"]), None)


def test_time_that_makes_no_sense(tmp_path, robot):
    columns = sound()
    columns["t"][100:] += 1.7e9
    found = unusual(opened(tmp_path, columns), robot)
    assert "time jumps by 1.7e+09 s after 0.495 s" in found["time"][0].message
    columns["t"] = np.zeros(N)
    found = unusual(in_memory(columns), robot)
    assert [item.message for item in found["time"]] == ["time never advances; check the time column and its unit"]
    columns["t"] = np.arange(N) * 1e-9
    assert "median rate is 1e+09 Hz" in unusual(in_memory(columns), robot)["time"][0].message


def test_irregular_stamps_warn_only_if_they_hurt(robot):
    rng = np.random.default_rng(0)
    turns = sound()
    turns["t"] = np.cumsum(rng.choice([0.010, 0.012], N, p=[0.7, 0.3])) / 2
    assert "sampling" not in unusual(in_memory(turns), robot)
    bursts = sound()
    bursts["t"] = np.repeat(bursts["t"][::8], 8) + np.tile(np.arange(8) * 1e-4, N // 8)
    item = unusual(in_memory(bursts), robot)["sampling"][0]
    assert item.severity == "warn"
    assert "very irregular (steps of 0.1 to 39.3 ms" in item.message


def test_gaps(tmp_path, robot):
    columns = rows(sound(), np.r_[0:1000, 1200:3000, 3100:N])
    item = only(opened(tmp_path, columns), robot, "gaps")
    assert item.severity == "warn"
    assert "2 gaps (longest 1.005 s, 1.51 s in all) after 4.995, 14.995 s" in item.message
    columns = rows(sound(), np.flatnonzero(np.arange(N) % 40 < 20))
    assert unusual(opened(tmp_path, columns), robot)["gaps"][0].severity == "stop"


def test_repeated_rows(robot):
    def repeated(share):
        columns = sound()
        order = np.arange(N)
        order[1 :: round(1 / share)] -= 1
        return in_memory({**rows(columns, order), "t": columns["t"]})

    assert not unusual(repeated(0.06), robot)
    item = only(repeated(0.25), robot, "repeats")
    assert item.severity == "warn"
    assert "25 % of the rows repeat the one before" in item.message
    hung = sound()
    for name in set(hung) - {"t"}:
        hung[name][2000:2100] = hung[name][2000]
    assert "up to 100 samples and then jump" in unusual(in_memory(hung), robot)["repeats"][0].message
    stands = sound()
    for name in set(stands) - {"t"}:
        stands[name][:500] = stands[name][500]  # without noise, and without a jump
    assert "repeats" not in unusual(in_memory(stands), robot)


def test_numbers_that_are_not_finite(tmp_path, robot):
    columns = sound()
    columns["tau3"][[99, 2000]] = np.nan
    columns["dq2"][7] = np.inf
    item = only(opened(tmp_path, columns), robot, "numbers")
    assert item.severity == "stop"
    assert "'dq2' (1, the first inf at row 8), 'tau3' (2, the first nan at row 100)" in item.message
    columns["t"][5] = np.nan
    assert "'t' (1, the first nan at row 6)" in only(opened(tmp_path, columns), robot, "numbers").message


def test_dead_channels(robot):
    columns = sound()
    columns["tau4"][:] = 0.25
    item = only(in_memory(columns), robot, "channels")
    assert item.severity == "stop"
    assert "'tau4' stays at 0.25 while joint 4 moves" in item.message
    columns = sound()
    columns["q2"][:] = 0.5
    item = only(in_memory(columns), robot, "channels")
    assert item.severity == "stop"
    assert "'q2' never changes, but the measured velocity reaches" in item.message


def test_a_joint_that_never_moves(robot):
    columns = sound()
    columns["q2"] = 0.5 + np.random.default_rng(0).normal(size=N) * 1e-4
    columns["dq2"] = np.zeros(N)
    columns["tau2"][:] = 3.0  # a brake
    item = only(in_memory(columns), robot, "channels")
    assert item.severity == "warn"
    assert item.message.startswith("joint 2 never moves; move it in another log, or hold it: --locked q2=0.")
    assert item.fix["locked"]["q2"] == pytest.approx(0.5, abs=1e-4)
    assert not unusual(in_memory(columns), robot.lock(**item.fix["locked"]))


@pytest.mark.parametrize("share", [0.06, 0.2])
def test_saturation(robot, share):
    columns = sound()
    end = np.quantile(columns["tau1"], 1 - share)  # noise leaves and enters it, so that less of it is in runs
    columns["tau1"] = np.minimum(columns["tau1"], end)
    item = only(in_memory(columns), robot, "saturation")
    assert item.severity == "warn"
    assert f"at {end:.4g}); these samples are left out" in item.message


def test_a_drive_that_is_off_or_switches_does_not_clip(robot):
    columns = sound()
    columns["tau1"] = np.maximum(columns["tau1"], 0.0)
    assert "saturation" not in unusual(in_memory(columns), robot)
    columns["tau2"] = np.where(np.arange(N) % 1500 < 750, 5.0, -5.0)
    assert "channels" not in unusual(in_memory(columns), robot)
    columns["tau2"][:] = 0.0
    assert only(in_memory(columns), robot, "channels").severity == "warn"


def test_steps_of_a_slide_are_in_meters():
    t = np.arange(2000) / 200.0
    columns = {"t": t, "q1": np.sin(t), "q2": np.round(0.4 * np.sin(2.0 * t), 2), "q3": 0.5 + 0.3 * np.sin(3.0 * t)}
    columns |= {"tau1": np.sin(t), "tau2": np.round(8.0 * np.sin(3.0 * t)), "tau3": np.cos(t)}
    item = unusual(in_memory(columns), di.load_robot("cylindrical"))["quantisation"][0]
    assert "'q2' (steps of 0.01 m," in item.message
    assert "'tau2' (steps of 1 N," in item.message


def test_jumps_by_turns(robot):
    columns = sound()
    columns["q2"] = columns["q2"] % (2.0 * np.pi)
    item = unusual(in_memory(columns), robot)["wraps"][0]
    assert "(2 pi): q2 " in item.message


def test_quantisation(robot):
    columns = sound()
    columns["tau6"] = np.round(columns["tau6"] / 4) * 4
    columns["q3"] = np.round(columns["q3"], 2)
    item = only(in_memory(columns), robot, "quantisation")
    assert item.severity == "warn"
    assert "'q3' (steps of 0.01 rad" in item.message
    assert "'tau6' (steps of 4 N·m" in item.message
    columns = sound()
    for name in columns:
        if name.startswith("q"):
            columns[name] = np.round(columns[name], 4)
    assert not unusual(in_memory(columns), robot)


def swapped(columns):
    columns["dq2"], columns["dq5"] = columns["dq5"], columns["dq2"]


def scaled(name, factor):
    def change(columns):
        columns[name] = columns[name] * factor

    return change


@pytest.mark.parametrize(
    ("change", "words", "fix"),
    [
        (
            swapped,
            "'dq2' follows the position of joint 5: swapped; 'dq5' follows the position of joint 2: swapped",
            {"dq2": {"column": "dq5"}, "dq5": {"column": "dq2"}},
        ),
        (scaled("dq3", -1.0), "'dq3' has the sign flipped", {"dq3": {"column": "dq3", "scale": -1.0}}),
        (scaled("dq1", 180 / np.pi), "in deg/s", {"dq1": {"column": "dq1", "unit": "deg/s"}}),
        (scaled("dq1", -30 / np.pi), "in rpm", {"dq1": {"column": "dq1", "unit": "rpm", "scale": -1.0}}),
        (scaled("dq6", 100.0), "'dq6' is 100 times as fast", {"dq6": {"column": "dq6", "scale": 0.01}}),
    ],
)
def test_measured_velocities_that_are_not_those_of_the_positions(tmp_path, robot, change, words, fix):
    columns = sound()
    change(columns)
    item = only(opened(tmp_path, columns), robot, "velocity")
    assert item.severity == "warn"
    assert words in item.message
    found = item.fix["columns"]
    assert found.keys() == fix.keys()
    for name, rule in fix.items():
        scale = found[name].pop("scale", 1.0)
        assert scale == pytest.approx(rule.pop("scale", 1.0), rel=1e-3)
        assert found[name] == rule
        found[name] |= {"scale": scale}
    assert not unusual(stream_log(tmp_path / "log.csv", robot, columns=found), robot)


def test_a_velocity_that_is_something_else(robot):
    columns = sound()
    columns["dq4"] = np.random.default_rng(0).normal(size=N)
    item = only(in_memory(columns), robot, "velocity")
    assert "'dq4' does not follow the position (correlation" in item.message
    assert not item.fix


def test_a_rule_of_the_column_file_is_kept_in_the_fix(tmp_path, robot):
    columns = sound()
    columns["velocity [mm/s]"] = columns.pop("dq6") * 1e3 * 4
    rules = {"velocity": {"column": "dq6", "scale": 2.0}}
    path = write(tmp_path / "log.csv", columns)
    item = only(stream_log(path, robot, columns=rules), robot, "velocity")
    (rule,) = item.fix["columns"].values()
    assert rule == {"column": "dq6", "unit": "mm/s", "scale": pytest.approx(0.25, rel=1e-4)}
    assert not unusual(stream_log(path, robot, columns=item.fix["columns"]), robot)


def test_rest(robot):
    columns = sound()
    for name in set(columns) - {"t"}:
        columns[name][:3400] = 0.0 if name.startswith("dq") else columns[name][3400]
    item = only(in_memory(columns), robot, "rest")
    assert item.severity == "warn"
    assert "all joints rest in 85 % of the samples" in item.message
    for j in range(1, 7):
        columns[f"q{j}"][:] = 0.1 * j
        columns[f"dq{j}"][:] = 0.0
    item = only(in_memory(columns), robot, "rest")
    assert item.severity == "stop"


def test_limits(tmp_path, robot):
    columns = sound()
    columns["q3"] = columns["q3"] + 3.0
    item = only(opened(tmp_path, columns), robot, "limits")
    assert item.severity == "warn"
    assert "beyond the limits of ur10e: q3 " in item.message
    assert "over 3.14 rad" in item.message
    assert not item.fix
    columns = sound()
    for j in range(1, 7):
        columns[f"q{j}"] = np.degrees(columns[f"q{j}"] * 3) / 3 + np.degrees(3.0 if j == 3 else 0.0)
        del columns[f"dq{j}"]
    columns["q1"] = columns["q1"] * 3
    item = only(opened(tmp_path, columns), robot, "limits")
    assert "may be in degrees" in item.message
    assert {"column": "q3", "unit": "deg"} in item.fix["columns"].values()


def test_positions_in_degrees_are_seen_by_the_velocities(tmp_path, robot):
    columns = sound()
    for j in range(1, 7):
        columns[f"q{j}"] = np.degrees(columns[f"q{j}"])
    item = unusual(opened(tmp_path, columns), robot)["velocity"][0]
    assert item.fix["columns"] == {f"q{j}": {"column": f"q{j}", "unit": "deg"} for j in range(1, 7)}
    assert not unusual(stream_log(tmp_path / "log.csv", robot, columns=item.fix["columns"]), robot)


def test_the_window_of_a_log_is_what_counts(tmp_path, robot):
    columns = sound()
    columns["tau1"][:10] = np.nan
    path = write(tmp_path / "log.csv", columns)
    assert "numbers" in unusual(stream_log(path, robot), robot)
    assert not unusual(stream_log(path, robot, start=0.5), robot)
    with pytest.raises(di.InputError, match="has no sample in the window"):
        diagnose_signals(stream_log(path, robot, start=99.0), robot)


def test_motor_shafts(robot):
    columns = {}
    for name, values in sound().items():
        kind, number = name.rstrip("123456"), name[len(name.rstrip("123456")) :]
        columns[{"q": "qm", "dq": "dqm", "tau": "taum", "t": "t"}[kind] + number] = values * (1 if kind == "t" else 100)
    assert not unusual(in_memory(columns), robot)
    columns["dqm2"] = -columns["dqm2"]
    assert "'dqm2' has the sign flipped" in only(in_memory(columns), robot, "velocity").message


def test_a_log_of_one_channel_is_looked_at():
    log = Log("made", "", np.arange(100) / 100, {"tau1": np.sin(np.arange(100.0))})
    assert not unusual(log, None)


def test_millimetres_by_the_limits(tmp_path):
    t = np.arange(2000) / 200.0
    columns = {"t": t, "q1": np.sin(t), "q2": 500.0 + 400.0 * np.sin(2.0 * t), "q3": 0.5 + 0.3 * np.sin(3.0 * t)}
    found = diagnose_signals(opened(tmp_path, columns), di.load_robot("cylindrical"))
    (one,) = (item for item in found if item.name == "limits")
    assert "may be in millimeters" in one.message
    assert one.fix == {"columns": {"q2": {"column": "q2", "unit": "mm"}}}
