"""Bands that torque decides on, where the positions show no noise; and models that are of no use."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.estimate.records import CrossValidation, FitErrors, usefulness
from dynident.estimate.torque_errors import TorqueErrors
from dynident.pipeline import preprocessing
from dynident.pipeline.bandwidth import choose_bands, exceed_the_least, try_other_bands
from dynident.report.fit.trust import assess_fit
from dynident.signals import BandChoice, observe
from dynident.signals.bandwidth import prediction_band
from dynident.signals.log_survey import shared_evidence
from tests.signals.made import Fourier, exact_torque, make_log, stamps

MASS, VISCOUS, DRY = 3.0, 5.0, 1.5  # [kg], [N·s/m], [N]
CARRIAGE = """
name: carriage
convention: modified-dh
gravity: [0, 0, -9.81]
joints:
  - {name: rail, sigma: 1, antecedent: 0, alpha: pi/2}
"""


@pytest.fixture(scope="module")
def carriage(tmp_path_factory):
    path = tmp_path_factory.mktemp("carriage") / "carriage.yaml"
    path.write_text(CARRIAGE)
    return di.load_robot(path)


def relay(rate: float, count: float, stroke: float, seconds: float = 8.0, seed: int = 0) -> di.Log:
    """A carriage whose force is thrown from side to side; its encoder counts `count` [m]. Integrated step by step."""
    rng, h = np.random.default_rng(seed), 2e-4
    x = v = 0.0
    side, turn = 1.0, stroke
    position, force = [], []
    for _ in range(int(seconds / h)):
        if side * x > turn:
            side, turn = -side, stroke * rng.uniform(0.3, 1.0)
        position.append(x)
        force.append(10.0 * MASS * side)
        v += h * (force[-1] - VISCOUS * v - DRY * np.tanh(v / 1e-3)) / MASS
        x += h * v
    step = round(1.0 / (rate * h))
    q, tau = np.array(position)[::step], np.array(force)[::step]
    tau = tau + 0.02 * 10.0 * MASS * rng.normal(size=len(tau))
    return di.Log("relay", "relay", np.arange(len(q)) * step * h, {"q1": count * np.round(q / count), "tau1": tau})


@pytest.mark.parametrize(("rate", "count", "stroke"), [(500.0, 5e-4, 0.002), (1000.0 / 6.5, 5e-4, 0.004)])
def test_the_mass_of_a_carriage_under_relay_control(carriage, rate, count, stroke):
    """Before, the band was 93 Hz and the mass 1.17 +- 0.09 kg in the first log, 2.91 +- 0.02 kg in the second."""
    fit = di.identify(carriage, relay(rate, count, stroke), friction="basic", check="off")
    assert abs(fit["MR1"] - MASS) < 3.0 * fit.std[fit.names.index("MR1")]
    assert fit.std[fit.names.index("MR1")] < 0.01 * MASS


def test_torque_decides_where_no_noise_is_seen(carriage):
    log = relay(1000.0 / 6.5, 5e-4, 0.004)
    base = di.base_parameters(carriage, "rigid,Fv,Fc(0.02),Fo")
    (one,) = choose_bands([observe(log, carriage)], base)
    assert one.options.band is None
    candidates, errors = one.choice.candidates, np.array(one.choice.errors)
    assert len(candidates) >= len(errors) >= 3  # wider ones are not tried where one was worse
    assert one.band == candidates[0]
    assert errors[-1] > 1.03 * errors[0]  # noise has begun to tell in the widest
    assert "held-out blocks" in one.choice.reason
    assert one.with_options(delay=0.001).band == one.band


def test_the_lowest_that_is_as_good():
    def lowest(errors):
        return int(np.argmin(exceed_the_least(errors)))

    rng = np.random.default_rng(0)
    common = 0.05 * (1.0 + rng.uniform(size=5))  # blocks differ from each other more than bands do

    def place(*means):
        noise = 1e-4 * rng.normal(size=(len(means), 5))
        return lowest(common + np.array(means)[:, None] + noise - noise.mean(1)[:, None])

    assert place(0.0, 0.0, 0.0, 0.01) == 0
    assert place(0.02, 1e-6, 0.0, 0.01) == 1
    assert place(0.03, 0.02, 0.01, 0.0) == 3
    errors = np.full((3, 5), 0.1)
    errors[0] = np.inf
    assert lowest(errors) == 1
    errors = np.array([[0.1, 0.2, np.inf, 0.1, 30.0], [0.09, 0.18, np.inf, 0.09, 20.0]])
    assert lowest(errors) == 1  # a block that nobody can assess says nothing, and one that explodes does not decide


class TestSeveralLogs:
    """Parts of one motion, each alone too short to show where noise begins."""

    @pytest.fixture(scope="class")
    @staticmethod
    def parts():
        robot = di.load_robot("pendulum-2")
        t = stamps(30.0, 200.0)
        motion = Fourier.random(2, 3, base=0.1, harmonics=4)
        noise = 3e-3 * np.random.default_rng(0).normal(size=(len(t), 2))
        log = make_log(robot, t, motion(t)[0] + noise, exact_torque(robot, motion, t))
        cuts = [log.samples(slice(first, first + 400)) for first in range(0, 6000, 400)]
        return robot, log, [di.Log(f"{i}", f"{i}", own.time, own.channels) for i, own in enumerate(cuts)]

    def test_noise_is_that_of_all(self, parts):
        robot, whole, logs = parts
        wanted = observe(whole, robot).survey.evidence
        alone = [observe(log, robot).survey for log in logs]
        shared = shared_evidence(alone, robot.radians)
        off = [[abs(np.log(one.limit / wanted.limit)) for one in own] for own in ((x.evidence for x in alone), shared)]
        assert max(off[0]) > 0.3
        assert max(off[1]) < 0.15

    def test_equations_are_those_of_all(self, parts):
        robot, _, logs = parts
        alone = [observe(log, robot).survey for log in logs]
        shared = shared_evidence(alone, robot.radians)
        assert alone[0].evidence.floor == pytest.approx(25.0 / 2.0, rel=0.01)
        assert shared[0].floor == pytest.approx(2.0 * 5.4 / 2.0, rel=0.01)  # half of each gives rows

    def test_a_scrap_among_long_logs_is_no_reason_to_refuse_them(self, parts):
        """Its filters take longer in the band of all than it lasts."""
        robot, whole, _ = parts
        part = whole.samples(slice(0, 200))
        scrap = di.Log("scrap", "scrap", part.time, part.channels)
        long, short = di.identify(robot, [whole, scrap], friction="basic", check="off", delay=0.0).data
        assert 5.4 / long.band > 1.0
        assert 5.4 / short.band == pytest.approx(0.5, rel=0.01)

    def test_other_rates_have_their_own_noise(self, parts):
        robot, whole, logs = parts
        slow = whole.samples(slice(None, None, 4))
        slow = di.Log("slow", "slow", slow.time, slow.channels)
        found = [observe(log, robot).survey for log in (*logs, slow)]
        *_, own = shared_evidence(found, robot.radians)
        assert own.limit == found[-1].evidence.limit
        assert own.floor == found[-1].evidence.floor < found[0].evidence.floor

    def test_a_slow_motion_keeps_its_own_typical_frequency(self, parts):
        robot, whole, _ = parts
        t = stamps(60.0, 200.0)
        motion = Fourier.random(2, 3, base=0.02, harmonics=3)
        slow = make_log(robot, t, motion(t)[0], exact_torque(robot, motion, t))
        found = [observe(log, robot).survey for log in (whole, slow)]
        first, second = shared_evidence(found, robot.radians)
        assert second.typical < 0.25 * first.typical
        assert first.typical == pytest.approx(found[0].typical, rel=0.1)

    def test_a_wobble_beside_a_motion_does_not_raise_the_band(self, parts):
        """A second log moves joints a twentieth as fast, ten times as often."""
        robot, whole, _ = parts
        t = stamps(8.0, 200.0)
        wobble = 1e-2 * np.sin(2.0 * np.pi * (np.array([3.0, 3.4]) * t[:, None] + np.array([0.0, 0.3])))
        found = [observe(log, robot).survey for log in (whole, make_log(robot, t, wobble, wobble, source="wobble"))]
        assert found[1].typical > 5.0 * found[0].typical
        first, second = shared_evidence(found, robot.radians)
        assert second.typical == pytest.approx(first.typical, rel=0.1)
        assert first.typical == pytest.approx(found[0].typical, rel=0.1)


def test_a_wider_band_is_tried_where_noise_bounds_it(carriage):
    """Noise of the encoder, and a torque that only a wide band explains less well."""
    log = relay(500.0, 2e-3, 0.02)
    base = di.base_parameters(carriage, "rigid,Fv,Fc(0.02),Fo")
    (one,) = choose_bands([observe(log, carriage)], base)
    assert "is noise" in one.choice.reason
    assert len(one.choice.candidates) == 3
    assert one.band == one.choice.candidates[0]
    assert one.choice.errors[-1] > one.choice.errors[0]


def test_a_wider_band_may_lack_one_block():
    """Where a joint rests in one block, seen through a wide band alone, the wide band still wins on the others."""
    errors = np.array([[0.9, 0.8, 1.0, 0.9, 0.9], [0.2, 0.2, 0.3, 0.2, np.inf], [np.inf, np.inf, 0.1, 0.1, np.inf]])
    assert exceed_the_least(errors).tolist() == [True, False, True]


class TestOtherBands:
    def test_far_too_much_band_is_taken_back(self, carriage):
        log = relay(500.0, 5e-4, 0.002)
        base = di.base_parameters(carriage, "rigid,Fv,Fc(0.02),Fo")
        one = observe(log, carriage)
        wide = one.decided(BandChoice(100.0, "made"))
        (found,) = try_other_bands([wide], base)
        assert found.band < 60.0
        assert "made; the lowest that predicts" in found.choice.reason

    def test_a_good_band_is_kept(self, carriage):
        log = relay(500.0, 1e-5, 0.02)
        base = di.base_parameters(carriage, "rigid,Fv,Fc(0.02),Fo")
        one = observe(log, carriage)
        (found,) = try_other_bands([one], base)
        assert found.band == one.band

    def test_they_are_tried_before_a_model_is_called_useless(self, carriage, monkeypatch):
        """The rule is made to fail: it gives all that the rate allows."""
        log = relay(500.0, 5e-4, 0.002)
        noisy = log.channels["q1"] + 2e-4 * np.random.default_rng(1).normal(size=len(log))
        log = di.Log("noisy", "noisy", log.time, {**log.channels, "q1": noisy})
        choose = preprocessing.choose_bands
        monkeypatch.setattr(
            preprocessing,
            "choose_bands",
            lambda logs, *more: [one.decided(BandChoice(100.0, "made")) for one in choose(logs, *more)],
        )
        fit = di.identify(carriage, log, friction="basic", check="off")
        assert fit.usefulness.useful
        assert fit.band < 100.0
        assert any("made; the lowest that predicts" in note for note in fit.notes)
        given = di.identify(carriage, log, friction="basic", check="off", band=100.0)
        assert not given.usefulness.useful


class TestPrediction:
    """Predictions are made in the band of the fit, unless faster motion needs more."""

    @pytest.fixture(scope="class")
    @staticmethod
    def fitted():
        robot = di.load_robot("pendulum-2")
        t, motion = stamps(40.0, 200.0), Fourier.random(2, 3, base=0.05, harmonics=4)
        noise = 5e-3 * np.random.default_rng(0).normal(size=(len(t), 2))
        log = make_log(robot, t, motion(t)[0] + noise, exact_torque(robot, motion, t))
        return robot, log, di.identify(robot, log, friction="basic", check="off")

    def test_less_noise_does_not_widen_it(self, fitted):
        robot, _, fit = fitted
        t, motion = stamps(40.0, 200.0), Fourier.random(2, 4, base=0.05, harmonics=4)
        log = make_log(robot, t, motion(t)[0], exact_torque(robot, motion, t))
        assert observe(log, robot).band > 1.2 * fit.band
        assert fit.observe(log).band == fit.band
        assert di.validate(fit, log).errors.band == fit.band

    def test_faster_motion_passes(self, fitted):
        robot, train, fit = fitted
        t, motion = stamps(20.0, 200.0), Fourier.random(2, 4, base=0.8, harmonics=4)
        log = make_log(robot, t, motion(t)[0], exact_torque(robot, motion, t))
        wanted = prediction_band(observe(log, robot).survey.evidence, fit.band)
        assert wanted > 1.2 * fit.band
        assert fit.observe(log).band == pytest.approx(wanted)
        assert di.validate(fit, log).errors.band == pytest.approx(wanted)
        again = di.Log("test", "test", log.time, log.channels, role="validation")
        held_out = di.identify(robot, [train, again], friction="basic", check="off").held_out
        assert held_out[0].band == pytest.approx(wanted)


def left_out(error: float) -> CrossValidation:
    return CrossValidation("blocks", ("a",), np.full((1, 2), error), np.array([error]), None, None, None)


class TestUsefulness:
    def errors(self, error: float, mean: float = 0.0) -> TorqueErrors:
        rng = np.random.default_rng(0)
        torque = mean + rng.normal(size=(1000, 2))
        off = rng.normal(size=torque.shape)
        off *= error * np.linalg.norm(torque) / np.linalg.norm(off)
        return TorqueErrors.of(("a", "b"), 5.0).including(torque, torque + off)

    @pytest.mark.parametrize(("error", "mean", "useful"), [(0.45, 0, True), (0.55, 0, False), (0.2, 10, False)])
    def test_most_of_the_torque_and_more_than_a_constant(self, error, mean, useful):
        found = usefulness(FitErrors(self.errors(0.01), held_out={"log": self.errors(error, mean)}), [(45.0, "")])
        assert found.useful == useful
        assert found.error == pytest.approx(error)
        assert ("tried: band 45 Hz" in found.reason) != useful

    def test_left_out_before_training(self):
        assert not usefulness(FitErrors(self.errors(0.01), cross_validation=left_out(0.9)), ()).useful
        assert usefulness(FitErrors(self.errors(0.01), cross_validation=left_out(0.1)), ()).useful
        assert not usefulness(FitErrors(self.errors(0.9)), ()).useful

    def test_a_robot_without_torque_is_not_assessed(self):
        zero = TorqueErrors.of(("a",), 5.0).including(np.zeros((9, 1)), np.zeros((9, 1)))
        assert usefulness(FitErrors(zero), ()).useful

    def test_it_stands_in_the_first_line_and_in_the_answer(self, carriage, tmp_path, capsys):
        """Torque that has nothing to do with the motion."""
        log = relay(250.0, 1e-5, 0.02)
        rng = np.random.default_rng(0)
        columns = (log.time, log.channels["q1"], rng.normal(size=len(log)))
        lines = [f"{t:.4f},{q:.7f},{tau:.5f}" for t, q, tau in zip(*columns, strict=True)]
        (tmp_path / "log.csv").write_text("\n".join(["t,q1,tau1", *lines]))
        (tmp_path / "robot.yaml").write_text(CARRIAGE)
        words = ["identify", str(tmp_path / "robot.yaml"), str(tmp_path / "log.csv"), "-o", str(tmp_path / "fit")]
        words += ["--friction", "basic", "--check", "off", "--band", "9"]
        assert main([*words, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["useful"] is False
        assert answer["grade"] == "poor"
        assert answer["useless_because"] in answer["reasons"]
        assert "dynident check" in answer["next_steps"][0]
        assert "tried: band 9 Hz (as asked for)" in answer["useless_because"]
        (band,) = answer["bands"]
        assert band == {"log": str(tmp_path / "log.csv"), "band": 9.0, "reason": "as asked for", "tried": []}
        assert main(words) == 0
        assert capsys.readouterr().out.startswith("carriage  poor: ")
        fit = di.load_fit(tmp_path / "fit")
        assert assess_fit(fit).headline.startswith("poor: ")
        assert main(["validate", str(tmp_path / "fit"), str(tmp_path / "log.csv")]) == 0
        assert capsys.readouterr().out.startswith("poor: ")
