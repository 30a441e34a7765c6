from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.report.comparison import change_words, comparison_html, headline
from tests.cli.fits import FIRST, LOADED, OTHER, SECOND, answer, complaint, fit_of
from tests.report.test_page import Balance
from tests.signals.made import Fourier, make_log, stamps


@pytest.fixture(scope="module")
def pair():
    return fit_of(FIRST), fit_of(SECOND)


@pytest.fixture(scope="module")
def stored(tmp_path_factory, pair):
    root = tmp_path_factory.mktemp("fits")
    for name, fit in zip(("a", "b"), pair, strict=True):
        fit.save(root / name)
    fit_of(LOADED).save(root / "loaded")
    return root


def test_independent_runs_of_one_arm_agree(pair):
    found = di.compare_fits(pair)
    assert found.changed == ()
    z = np.array([one.deviations[1] for one in found.parameters])
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.4  # if the stated standard deviations are right, about 1
    assert found.threshold == pytest.approx(3.33, abs=0.01)  # 5 % over 58 parameters
    assert found.remarks == ()


def test_the_difference_is_over_the_deviation_of_both(pair):
    one = next(one for one in di.compare_fits(pair).parameters if one.name == "Fv2")
    first, second = pair
    place = first.names.index("Fv2")
    spread = math.hypot(first.std[place], second.std[place])
    assert one.deviations == (None, pytest.approx((second["Fv2"] - first["Fv2"]) / spread))
    assert one.differences[1] == second["Fv2"] - first["Fv2"]


def test_a_load_on_the_tool_shows_in_its_parameters():
    found = di.compare_fits([fit_of(FIRST), fit_of(LOADED)], names=("without", "with"))
    changed = [one.name for one in found.changed]
    assert {"MYR5", "MXR3", "MXR2", "ZZR1"} <= set(changed)
    assert not any(name.startswith(("Fv", "Fo")) for name in changed)
    assert found.changed[0].largest == max(one.largest for one in found.parameters)
    assert headline(found).startswith("without predicts the torque best: without ")


def test_errors_are_those_of_the_common_logs(pair):
    found = di.compare_fits(pair)
    (log,) = found.evaluated
    assert log.source == OTHER
    for fit, errors in zip(pair, log.errors, strict=True):
        assert errors.per_joint.tolist() == fit.validation[OTHER].per_joint.tolist()
    assert [one.roles for one in found.logs] == [("training", ""), ("held out", "held out"), ("", "training")]


def test_without_a_common_log_that_is_said_and_logs_can_be_given(pair):
    first, second = pair[0], fit_of(SECOND, held_out=FIRST)
    found = di.compare_fits([first, second])
    assert found.evaluated == ()
    assert "common parameters changed" in headline(found)
    again = di.compare_fits([first, second], logs=di.read_log(FIRST, first.robot))
    assert len(again.evaluated[0].errors) == 2
    assert again.evaluated[0].seen == (0,)
    assert any("also served for training A" in words for words in again.remarks)


def test_errors_in_different_bands_are_not_ranked(pair):
    narrow = fit_of(FIRST, band=4.0)
    found = di.compare_fits([pair[0], narrow])
    assert headline(found).startswith("Torque error in different bands: A ")
    assert any("different bands (A 6 Hz, B 4 Hz)" in words for words in found.remarks)
    assert any("share training data" in words for words in found.remarks)
    again = di.compare_fits([pair[0], narrow], logs=[di.read_log(OTHER, narrow.robot)])
    assert {errors.band for errors in again.evaluated[0].errors} == {6.0}
    assert "equally well" in headline(again)


def test_other_terms_and_robots_are_compared_by_name(pair, tmp_path):
    robot = tmp_path / "arm2.yaml"
    robot.write_text(
        "base: ur10e\nname: arm-2\ngravity: [0, 0, -9.78]\n"
        "drive_gains: [12.0, 12.0, 9.8, 10.8, 10.8, 10.8]\ntorque_source: motor\n"
    )
    other = fit_of(FIRST, robot=str(robot), terms="rigid,Fv,Fc(0.02)")
    found = di.compare_fits([pair[0], other])
    assert any("the robots differ (A demo-arm, B arm-2)" in words for words in found.remarks)
    assert headline(replace(found, evaluated=())).startswith("Different robots: ")  # not: parameters that changed
    assert any("terms of the models differ" in words for words in found.remarks)
    named = {one.name: one for one in found.parameters}
    assert change_words(found, named["Fo1"]) == "only A"
    assert named["Fo1"].values[1] is None
    assert not named["ZZR1"].alike  # with the rotor's inertia and without
    assert change_words(found, named["ZZR1"]) == "another combination"
    far = replace(named["ZZR1"], deviations=(None, 50.0))
    assert replace(found, parameters=(far,)).changed == ()
    assert replace(found, parameters=(replace(far, alike=True),)).changed[0].name == "ZZR1"
    assert named["Fv1"].alike
    assert found.differing["terms"][1] == ["rigid", "Fv", "Fc(0.02)"]


def written(path, length):
    """An arm in a vertical plane, one of its lengths as somebody wrote it down."""
    path.write_text(
        "name: arm\nconvention: dh\ngravity: [0, -9.81, 0]\n"
        + ("lengths: {l1: 0.33333}\n" * (length == "l1"))
        + f"joints:\n  - {{name: a, a: {length}}}\n  - {{name: b, a: 0.25}}\n"
        "parameters:\n  own:\n    links:\n"
        "      1: {mass: 3, com: [-0.1, 0.01, 0], inertia: [0.01, 0, 0, 0.02, 0, 0.03]}\n"
        "      2: {mass: 2, com: [-0.1, 0, 0], inertia: [0.01, 0, 0, 0.02, 0, 0.02]}\n"
    )
    return di.load_robot(path)


@pytest.mark.parametrize(("length", "alike"), [("0.33333", True), ("l1", True), ("0.335", False)])
def test_rounding_of_a_coefficient_is_no_other_sum(tmp_path, length, alike):
    """1/3 m with seven digits, with five, and by name: the same sums, written otherwise; 335 mm are not."""
    exact, fits = written(tmp_path / "exact.yaml", "0.3333333"), []
    for robot in (exact, written(tmp_path / "other.yaml", length)):
        q, dq, ddq = Fourier.random(2, 1, velocity=1.5)(t := stamps(4.0, 200.0))
        log = make_log(robot, t, q, di.inverse_dynamics(exact, q, dq, ddq))
        fits.append(di.identify(robot, log, terms="rigid", friction="basic", delay=0.0))
    assert fits[0].rows()[0]["expression"] != fits[1].rows()[0]["expression"]
    found = di.compare_fits(fits)
    assert all(one.alike for one in found.parameters) == alike
    assert any("the same name stands for different sums" in words for words in found.remarks) == (not alike)


def test_what_a_run_does_not_determine_has_no_distance(pair):
    known = np.array(pair[1].determined)
    known[0] = False
    found = di.compare_fits([pair[0], pair[1].replace(determined=known)])
    assert found.parameters[0].deviations == (None, None)
    assert found.parameters[0].stds[1] is None
    assert change_words(found, found.parameters[0]) == "not determined"


def test_the_page_holds_every_parameter_and_is_sound(pair):
    page = comparison_html(di.compare_fits([*pair, fit_of(LOADED)]), command="dynident compare '<a>' b -o c.html")
    shown = Balance(page)
    for name in pair[0].names:
        assert f">{name}</th>" in page
    assert "<a>" not in page
    assert "nan" not in shown.text.split()
    assert page.count("<svg") == 1
    assert len(page) < 400_000


def test_the_verb_in_json_and_as_a_page(stored, tmp_path, capsys):
    target = tmp_path / "page.html"
    found = answer(capsys, "compare", str(stored / "a"), str(stored / "loaded" / "fit.yaml"), "-o", str(target))
    assert [one["name"] for one in found["fits"]] == ["A", "B"]
    assert "MYR5" in found["changed"]
    assert found["errors"][0]["relative_error"] < 0.02 < found["errors"][1]["relative_error"]
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert main(["compare", str(stored / "a"), str(stored / "b"), "--validation", OTHER, "--all"]) == 0
    page = capsys.readouterr().out
    assert re.search(r"predicts? the torque [\w ]+: A [\d.]+ %, B [\d.]+ %", page)
    assert "Ia6" in page


def test_the_same_fit_twice_is_equal(stored, capsys):
    assert main(["compare", str(stored / "a"), str(stored / "a")]) == 0
    page = capsys.readouterr().out
    assert "All 58 common parameters are equal." in page
    assert "Options that differ" not in page


def test_what_it_refuses(stored, tmp_path, capsys, pair):
    a, b = str(stored / "a"), str(stored / "b")
    assert "needs another FIT" in complaint(capsys, "compare", a)
    assert "--quiet leaves nothing to do" in complaint(capsys, "compare", a, b, "--quiet")
    assert "ends in .html" in complaint(capsys, "compare", a, b, "-o", str(tmp_path / "x.txt"))
    assert "belong to --validation" in complaint(capsys, "compare", a, b, "--window", "1:2")
    with pytest.raises(di.InputError, match="two estimates or more"):
        di.compare_fits(pair[:1])
    with pytest.raises(di.InputError, match="expected 2 different ones"):
        di.compare_fits(pair, names=("x", "x"))
