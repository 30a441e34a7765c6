from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from dynident.diagnostics.log_preview import preview
from dynident.logs import Log, stream_log
from dynident.report.terminal.diagnosis import print_preview
from dynident.signals import survey_log
from tests.diagnostics.made import N, opened, sound, write


def page(seen) -> str:
    console = Console(width=80, file=io.StringIO(), markup=False, highlight=False)
    print_preview(seen, console)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_what_a_sound_log_holds(tmp_path):
    columns = sound()
    seen = preview(opened(tmp_path, columns))
    assert (seen.samples, seen.gaps, seen.repeated_rows, seen.out_of_order) == (N, 0, 0, 0)
    assert seen.duration == pytest.approx(19.995)
    assert seen.rate == pytest.approx(200.0)
    assert seen.kinds == dict.fromkeys(("q", "dq", "tau"), (1, 2, 3, 4, 5, 6))
    assert seen.unused == ()
    for channel in seen.channels:
        values = columns[channel.name]
        assert channel.lowest == pytest.approx(values.min(), rel=1e-6)
        assert channel.highest == pytest.approx(values.max(), rel=1e-6)
        assert channel.rms == pytest.approx(np.sqrt(np.mean(values**2)), rel=1e-6)
        assert not channel.constant
    assert {channel.unit for channel in seen.channels} == {"rad", "rad/s", "N·m"}
    assert "4 000 samples over 19.995 s, 200 Hz" in page(seen)
    assert "Found: q of joints 1 to 6, dq of joints 1 to 6, tau of joints 1 to 6" in page(seen)


def test_a_log_that_no_fit_would_take(tmp_path):
    columns = sound()
    columns["q1"] = np.round(columns["q1"], 2)
    columns["tau2"][:] = -3.0
    columns["tau5"][[9, 10, 3000]] = np.nan
    columns["dq6"][:] = np.inf
    columns["t"][2000:] -= 1.0
    columns["t"][3000:] += 30.0
    columns["state"] = np.ones(N)
    seen = preview(opened(tmp_path, columns))
    by_name = {channel.name: channel for channel in seen.channels}
    assert (seen.out_of_order, seen.first_out_of_order) == (1, 2001)
    assert (seen.gaps, seen.gap_times) == (1, (pytest.approx(13.995),))
    assert seen.longest_gap == pytest.approx(30.005)
    assert seen.unused == ("state",)
    assert by_name["q1"].step == pytest.approx(0.01)
    assert by_name["q1"].repeated > 0.3
    assert by_name["tau2"].constant
    assert (by_name["tau5"].faults, by_name["tau5"].fault_row) == (3, 10)
    assert by_name["tau5"].highest == pytest.approx(np.nanmax(columns["tau5"]), rel=1e-6)
    assert (by_name["dq6"].faults, by_name["dq6"].lowest, by_name["dq6"].rms) == (N, None, None)
    plain = json.loads(json.dumps(seen.as_dict(), allow_nan=False))
    assert plain["kinds"]["tau"] == [1, 2, 3, 4, 5, 6]
    assert plain["channels"][0]["name"] == "q1"
    text = page(seen)
    for words in (
        "1 row out of order, the first is row 2001",
        "1 gap, the longest 30.01 s; they begin at 13.995 s",
        "Not understood: state (map them in a column file)",
        "constant",
    ):
        assert words in text
    assert "3 not finite, from row 10" in " ".join(text.replace("│", " ").split())


def test_stamps_that_are_not_numbers_or_in_another_unit(tmp_path):
    columns = sound()
    columns["t"] = columns["t"] * 1e3
    columns["t"][[4, 9]] = np.nan
    seen = preview(opened(tmp_path, columns))
    assert (seen.time_unit, seen.time_faults) == ("ms", 2)
    assert seen.rate == pytest.approx(200.0)
    assert "time was taken to be in ms" in page(seen)
    columns["t"][:] = np.nan
    seen = preview(opened(tmp_path, columns))
    assert (seen.start, seen.duration, seen.rate) == (None, None, None)
    assert "4000 stamps not finite" in page(seen)


def test_lengths_have_the_unit_of_lengths(tmp_path):
    columns = {"t": np.arange(50.0) / 50, "q1 [mm]": np.arange(50.0), "dq1 [mm/s]": np.ones(50), "q2": np.arange(50.0)}
    seen = preview(stream_log(write(tmp_path / "log.csv", columns)))
    assert [channel.unit for channel in seen.channels] == ["m", "m/s", "rad"]
    assert seen.channels[0].highest == pytest.approx(0.049)
    assert seen.channels[0].header == "q1 [mm]"


def test_blocks_and_files_do_not_matter(tmp_path, monkeypatch):
    """A log in memory, a file, and a file cut into other blocks look the same."""
    columns = {name: np.round(values, 3) for name, values in sound().items()}
    columns["tau1"] = np.minimum(columns["tau1"], 20.0)
    for name in set(columns) - {"t"}:
        columns[name][995:1010] = columns[name][995]
    log = Log("made", "", columns["t"], {name: values for name, values in columns.items() if name != "t"})
    whole = survey_log(log)
    assert whole.channels["tau1"].saturated_share > 0.1
    assert (whole.repeats.longest, whole.repeats.n_long) == (14, 14)
    file = opened(tmp_path, columns)
    monkeypatch.setattr("dynident.logs.file.BLOCK", 1000)  # a hundred windows, so that these are the same
    cut = survey_log(file)
    assert cut.repeats == whole.repeats
    assert cut.clock.n_gaps == whole.clock.n_gaps == 0
    for name, values in whole.channels.items():
        other = cut.channels[name]
        assert (other.lowest, other.highest, other.step, other.repeated_share) == (
            *(values.lowest, values.highest, values.step, values.repeated_share),
        )
        assert other.rms == pytest.approx(values.rms, rel=1e-12)
        assert other.saturated_share == pytest.approx(values.saturated_share, abs=0.01)
    np.testing.assert_allclose(cut.joints.slope, whole.joints.slope, rtol=1e-9)
    assert cut.joints.moving_share == pytest.approx(dict(whole.joints.moving_share), abs=0.01)
