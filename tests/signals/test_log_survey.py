from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.logs import LogError, stream_log
from dynident.logs.log import PositionsOnly
from dynident.signals import Survey, observe, survey_log
from tests.signals.made import Fourier, Pieces, make_log, stamps

RATE = 500.0
MOTION = Fourier.random(2, 1)  # harmonics of 0.1 Hz up to 0.5 Hz


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def log_at(robot, t, q=None, **more):
    """A log whose torque column differs in every row, so that no row repeats another."""
    q = MOTION(t)[0] if q is None else q
    return make_log(robot, t, q, np.column_stack([np.arange(len(t)), np.zeros(len(t))]), **more)


def survey(log, robot) -> Survey:
    """Of a log that is usable; what observation needs does not depend on whether channels are surveyed."""
    found = survey_log(log, robot, channels=False)
    found.require_usable()
    return found


def check_motion(found):
    assert 0.35 < found.typical < 0.6


class TestCounts:
    def test_a_plain_log(self, robot):
        t = 3.0 + stamps(10.0, RATE)
        found = survey(log_at(robot, t), robot)
        assert (found.n_samples, found.n_repeated, found.n_gaps, found.gaps) == (5000, 0, 0, ())
        assert found.stretches == (5000,)
        assert (found.start, found.stop) == (3.0, t[-1])
        assert found.duration == pytest.approx(9.998)
        assert found.grid.rate == pytest.approx(RATE, rel=1e-12)
        assert not found.grid.irregular
        np.testing.assert_array_equal(found.lowest, MOTION(t)[0].min(0))
        np.testing.assert_array_equal(found.highest, MOTION(t)[0].max(0))

    def test_repeats_are_counted(self, robot):
        t = np.sort(np.concatenate([stamps(10.0, RATE), stamps(10.0, RATE)[5:305]]))
        found = survey(log_at(robot, t), robot)
        assert (found.n_samples, found.n_repeated) == (5300, 300)
        assert not found.grid.irregular
        check_motion(found)

    def test_gaps_are_named_and_counted(self, robot):
        t = stamps(12.0, RATE)
        t = t[(t < 4.0) | ((t >= 4.5) & (t < 8.0)) | (t >= 8.2)]
        for sizes in [(10**6,), (100,), (2000, 7)]:
            found = survey(Pieces(log_at(robot, t), sizes), robot)
            assert found.n_gaps == 2
            np.testing.assert_allclose(found.gaps, [3.998, 7.998])
            assert found.stretches == (2000, 1750, 1900)
            assert not found.grid.irregular
            check_motion(found)

    def test_only_a_hundred_gaps_are_named(self, robot):
        t = (np.arange(30)[None, :] / RATE + np.arange(150.0)[:, None]).ravel()
        found = survey(log_at(robot, t), robot)
        assert (len(found.gaps), found.n_gaps, len(found.stretches)) == (100, 149, 150)
        assert found.gaps[-1] == pytest.approx(99.0 + 29 / RATE)

    @pytest.mark.parametrize("sizes", [(9,), (17, 3), (1000,), (4999,)])
    def test_blocks_do_not_show(self, robot, sizes):
        rng = np.random.default_rng(0)
        t = np.delete(stamps(10.0, RATE) + rng.uniform(0.0, 2e-4, 5000), slice(2000, 2200))
        log = log_at(robot, t)
        whole, pieces = survey(log, robot), survey(Pieces(log, sizes), robot)
        for name in ("n_samples", "n_repeated", "gaps", "n_gaps", "stretches", "start", "stop"):
            assert getattr(whole, name) == getattr(pieces, name)
        assert pieces.grid == whole.grid
        assert pieces.typical == pytest.approx(whole.typical)
        np.testing.assert_array_equal(pieces.lowest, whole.lowest)

    def test_too_few_samples_are_named(self, robot):
        for n in (1, 2, 10, 16):
            with pytest.raises(di.LogError, match=rf"short\.csv: has {n} different samples; at least 17 are needed"):
                survey(log_at(robot, stamps(1.0, RATE)[:n], source="short.csv"), robot)
        assert survey(log_at(robot, stamps(1.0, RATE)[:17]), robot).n_samples == 17

    def test_one_stamp_alone(self, robot):
        with pytest.raises(di.LogError, match="different samples"):
            survey(log_at(robot, np.zeros(100)), robot)


class TestRate:
    @pytest.mark.parametrize("rate", [1000.0, 400.0, 333.3333])
    def test_a_long_regular_log_does_not_drift(self, robot, rate):
        """Stamps rounded to a tenth of a microsecond, over ten minutes: the grid ends where the log does."""
        t = np.round(np.arange(int(600 * rate)) / rate, 7)
        found = survey(log_at(robot, t, np.zeros((len(t), 2))), robot)
        assert not found.grid.irregular
        assert abs((len(t) - 1) / found.grid.rate - t[-1]) < 1e-3 / rate

    def test_stamps_since_1970(self, robot):
        """Two tenths of a microsecond is all that a double can tell there."""
        found = survey(log_at(robot, 1.7e9 + stamps(20.0, RATE), MOTION(stamps(20.0, RATE))[0]), robot)
        assert not found.grid.irregular
        assert found.grid.rate == pytest.approx(RATE, rel=1e-8)
        check_motion(found)

    @pytest.mark.parametrize("share", [0.01, 0.3])
    def test_irregular_stamps_are_noticed(self, robot, share):
        rng = np.random.default_rng(0)
        t = stamps(20.0, RATE) + rng.uniform(-share, share, 10_000) / RATE
        found = survey(log_at(robot, t), robot)
        assert found.grid.irregular
        assert found.grid.rate == pytest.approx(RATE, rel=0.01)
        check_motion(found)

    def test_one_missing_row_makes_a_log_irregular(self, robot):
        found = survey(log_at(robot, np.delete(stamps(20.0, RATE), 5000)), robot)
        assert found.grid.irregular
        assert found.grid.rate == pytest.approx(RATE, rel=1e-9)

    def test_a_missing_half_second_is_a_gap_and_no_irregularity(self, robot):
        found = survey(log_at(robot, np.delete(stamps(20.0, RATE), slice(5000, 5250))), robot)
        assert not found.grid.irregular
        assert found.clock.gap_seconds == pytest.approx(251 / RATE, rel=1e-6)
        assert found.grid.rate == pytest.approx(RATE, rel=1e-9)

    def test_a_clock_that_changes_its_pace_is_irregular(self, robot):
        """No step is off by a thousandth, but in the middle of a minute a uniform grid is six milliseconds off."""
        t = np.cumsum(np.repeat([1.0 / RATE, 1.0004 / RATE], int(30 * RATE)))
        assert survey(log_at(robot, t), robot).grid.irregular


class TestBand:
    def test_the_typical_frequency_is_that_of_the_motion(self, robot):
        t = stamps(60.0, RATE)
        for frequency in (0.3, 2.0):
            q = np.column_stack([0.5 * np.sin(2 * np.pi * frequency * t), 0.1 * np.sin(2 * np.pi * 0.1 * t)])
            assert survey(log_at(robot, t, q), robot).typical == pytest.approx(frequency, abs=0.06)

    def test_the_fastest_joint_decides(self, robot):
        t = stamps(60.0, RATE)
        q = np.column_stack([np.sin(2 * np.pi * 0.2 * t), 0.05 * np.sin(2 * np.pi * 3.0 * t)])
        assert survey(log_at(robot, t, q), robot).typical == pytest.approx(3.0, abs=0.06)

    def test_no_motion_has_no_frequency(self, robot):
        t = stamps(10.0, RATE)
        assert survey(log_at(robot, t, np.full((5000, 2), 0.3)), robot).typical == 0.0

    def test_many_pieces_of_a_spectrum(self, robot):
        t = stamps(200.0, RATE)
        check_motion(survey(log_at(robot, t), robot))

    def test_offset_and_place_do_not_matter(self, robot):
        t = stamps(20.0, RATE)
        found = survey(log_at(robot, t, MOTION(t)[0] + np.array([100.0, -300.0])), robot)
        check_motion(found)

    @pytest.mark.parametrize("quantum", [1e-5, 1e-4, 3e-4])
    def test_quantised_positions_do_not_fool_it(self, robot, quantum):
        t = stamps(20.0, RATE)
        check_motion(survey(log_at(robot, t, quantum * np.round(MOTION(t)[0] / quantum)), robot))

    @pytest.mark.parametrize(("quantum", "rate"), [(1e-3, 1000.0), (1.5e-3, 1000.0), (3e-4, 4000.0)])
    def test_coarse_encoders_do_not_fool_it(self, robot, quantum, rate):
        """A thousandth of a radian is 6283 counts a turn."""
        t = stamps(20.0, rate)
        check_motion(survey(log_at(robot, t, quantum * np.round(MOTION(t)[0] / quantum)), robot))

    def test_constant_velocities_on_a_coarse_encoder_do_not_fool_it(self, robot):
        """Point to point with trapezoidal velocities, 6283 counts a turn."""
        t = stamps(60.0, RATE)
        velocity = np.repeat(np.random.default_rng(0).choice([-1.0, 0.0, 1.0], 60), int(RATE))
        q = np.cumsum(np.convolve(velocity, np.full(100, 0.01), "same"))[:, None] / RATE * [1.0, -0.31]
        assert survey(log_at(robot, t, q), robot).typical < 2.0
        assert survey(log_at(robot, t, 1e-3 * np.round(q / 1e-3)), robot).typical < 2.0

    @pytest.mark.parametrize("noise", [1e-5, 1e-4])
    def test_noise_of_a_joint_at_rest_does_not_fool_it(self, robot, noise):
        t = stamps(20.0, RATE)
        q = MOTION(t)[0] * [1.0, 0.0] + noise * np.random.default_rng(0).normal(size=(len(t), 2))
        check_motion(survey(log_at(robot, t, q), robot))

    def test_a_slow_joint_with_few_counts_does_not_fool_it(self, robot):
        t = stamps(20.0, RATE)
        q = MOTION(t)[0] * [1.0, 0.01]
        check_motion(survey(log_at(robot, t, 1e-4 * np.round(q / 1e-4)), robot))

    def test_stuttering_rows_do_not_fool_it(self, robot):
        """Every fourth row is that of before."""
        t = stamps(20.0, RATE)
        old = np.arange(len(t)) - (np.arange(len(t)) % 4 == 3)
        channels = {"q1": MOTION(t[old])[0][:, 0], "q2": MOTION(t[old])[0][:, 1]}
        found = survey(di.Log("made", "0", t, channels), robot)
        assert found.n_repeated == 2500
        check_motion(found)

    def test_gaps_do_not_fool_it(self, robot):
        t = stamps(40.0, RATE)
        check_motion(survey(log_at(robot, t[(t % 10.0) < 9.0]), robot))


def counted(log, calls: list[str]):
    """The log, which notes in `calls` whenever its rows are read."""

    class Counted(type(log)):
        def blocks(self):
            calls.append("blocks")
            return super().blocks()

        def rows(self):
            calls.append("rows")
            return super().rows()

    copy = object.__new__(Counted)
    for name, value in vars(log).items():
        object.__setattr__(copy, name, value)
    return copy


def write(path, t, **columns) -> str:
    with open(path, "w") as file:
        file.write(",".join(["t", *columns]) + "\n")
        for row in zip(t, *columns.values(), strict=True):
            file.write(",".join(f"{value:.9g}" for value in row) + "\n")
    return str(path)


@pytest.fixture
def columns():
    t = stamps(20.0, RATE)
    q = MOTION(t)[0]
    return {"t": t, "q1": q[:, 0], "q2": q[:, 1], "tau1": np.arange(len(t)) * 1.0, "tau2": np.sin(t)}


class TestOnePass:
    """Rows as they came and samples that filters can use are surveyed together."""

    FIELDS = ("n_samples", "n_repeated", "grid", "gaps", "n_gaps", "stretches", "start", "stop", "evidence")

    def test_a_log_is_read_once(self, robot, tmp_path, columns):
        path = write(tmp_path / "log.csv", **columns)
        for log, reads in ((stream_log(path), "rows"), (di.read_log(path), "blocks")):
            calls: list[str] = []
            survey_log(counted(log, calls), robot)
            assert calls == [reads]

    def test_channels_change_nothing_for_observations(self, robot, tmp_path, columns):
        columns["t"] = np.delete(columns["t"], slice(4000, 4400))[: len(columns["t"]) - 400]
        columns = {name: values[: len(columns["t"])] for name, values in columns.items()}
        path = write(tmp_path / "log.csv", **columns)
        for window in ({}, {"start": 1.0, "stop": 12.0}):
            with_channels, without = (survey_log(stream_log(path, **window), robot, channels=c) for c in (True, False))
            with_channels.require_usable()
            for name in self.FIELDS:
                assert getattr(with_channels, name) == getattr(without, name)
            np.testing.assert_array_equal(with_channels.lowest, without.lowest)
            assert with_channels.n_gaps == with_channels.clock.n_gaps == 1
            assert list(with_channels.channels) == ["t", "q1", "q2", "tau1", "tau2"]
            assert with_channels.joints.numbers == (1, 2)
            assert (dict(without.channels), without.joints.numbers) == ({}, ())
            assert without.clock == with_channels.clock

    def test_without_a_robot_nothing_is_said_about_its_joints(self, tmp_path, columns):
        found = survey_log(stream_log(write(tmp_path / "log.csv", **columns)))
        assert (found.n_samples, found.clock.n_samples, len(found.channels)) == (10_000, 10_000, 5)
        with pytest.raises(di.InputError, match="without a robot"):
            found.require_usable()

    def test_an_observation_takes_the_survey_that_is_there(self, robot, columns):
        calls: list[str] = []
        channels = {name: values for name, values in columns.items() if name != "t"}
        log = counted(di.Log("made", "0", columns["t"], channels), calls)
        found = survey_log(log, robot)
        calls.clear()
        assert observe(log, robot, di.SignalOptions(band=3.0), survey=found).survey is found
        assert calls == []


class TestRefusals:
    """What cannot be filtered is surveyed to the end, and refused when it is to be used."""

    def refused(self, log, robot, words: str) -> Survey:
        for channels in (True, False):
            found = survey_log(log, robot, channels=channels)
            with pytest.raises(di.DynidentError, match=words) as raised:
                found.require_usable()
            with pytest.raises(di.DynidentError) as observed:
                observe(log, robot)
            assert str(observed.value) == str(raised.value)
        return survey_log(log, robot)

    def test_numbers_that_are_not_finite(self, robot, tmp_path, columns):
        columns["tau2"][[5000, 9000]] = np.nan
        found = self.refused(
            stream_log(write(tmp_path / "log.csv", **columns)), robot, r"column 'tau2' is nan at row 5001 \(2 in all\)"
        )
        assert (found.clock.n_samples, found.channels["tau2"].n_faults, found.unreadable) == (10_000, 2, None)

    @pytest.mark.parametrize(("value", "words"), [(np.nan, "not finite"), (np.inf, "not finite"), (0.5, "backwards")])
    def test_stamps_of_a_log_in_memory(self, robot, columns, value, words):
        columns["t"] = columns["t"].copy()
        columns["t"][3000:3002] = value
        channels = {name: values for name, values in columns.items() if name != "t"}
        found = self.refused(di.Log("made", "0", columns["t"], channels), robot, words)
        assert found.clock.n_samples == 10_000

    def test_stamps_without_a_typical_step(self, robot, columns):
        channels = {name: values for name, values in columns.items() if name != "t"}
        t = np.arange(10_000) * 1.0
        t[::2] -= 3.0  # steps of 4 and -2 in turn
        self.refused(di.Log("made", "0", -t, channels), robot, "time runs backwards")

    def test_a_position_that_is_missing(self, robot, tmp_path, columns):
        del columns["q2"]
        found = self.refused(stream_log(write(tmp_path / "log.csv", **columns)), robot, "has no column q2")
        assert found.clock.n_samples == 10_000

    def test_a_window_without_samples(self, robot, tmp_path, columns):
        log = stream_log(write(tmp_path / "log.csv", **columns), start=100.0)
        found = self.refused(log, robot, "no sample lies between 100.0 and None s")
        with pytest.raises(di.InputError, match="has no sample in the window; widen it"):
            found.require_readable()

    def test_a_row_after_the_window_stops_diagnostics_alone(self, robot, tmp_path, columns, monkeypatch):
        monkeypatch.setattr("dynident.logs.file.BLOCK", 1000)
        path = tmp_path / "log.csv"
        write(path, **columns)
        lines = path.read_text().splitlines()
        lines[9000] = "17.998,1,x,3,4"
        path.write_text("\n".join(lines))
        log = stream_log(path, stop=5.0)
        found = survey_log(log, robot)
        found.require_usable()
        assert (found.n_samples, found.stop) == (2501, 5.0)
        with pytest.raises(LogError, match=r"row 9000 .*'x' is not a number"):
            found.require_readable()
        self.refused(stream_log(path), robot, r"row 9000 .*'x' is not a number")

    def test_prediction_needs_positions_only(self, robot, columns):
        channels = {name: values for name, values in columns.items() if name != "t"}
        channels["tau1"] = np.full(len(columns["t"]), np.nan)
        survey_log(PositionsOnly(di.Log("made", "0", columns["t"], channels)), robot, channels=False).require_usable()
