"""Bands that torque decides on, where the positions show no noise; and models that are of no use."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.estimate.records import CrossValidation, FitErrors, usefulness
from dynident.estimate.torque_errors import TorqueErrors
from dynident.pipeline.bandwidth import choose_bands, lowest_within_a_standard_error
from dynident.report.fit.trust import assess_fit
from dynident.signals import observe

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
    assert len(candidates) == len(errors) >= 3
    assert one.band == candidates[0]
    assert errors[-1] > 1.03 * errors[0]  # noise has begun to tell in the widest
    assert "blocks left out" in one.choice.reason
    assert one.with_options(delay=0.001).band == one.band


def test_the_lowest_that_is_as_good():
    rng = np.random.default_rng(0)
    common = 0.05 * (1.0 + rng.uniform(size=5))  # blocks differ from each other more than bands do

    def place(*means):
        noise = 1e-4 * rng.normal(size=(len(means), 5))
        return lowest_within_a_standard_error(common + np.array(means)[:, None] + noise - noise.mean(1)[:, None])

    assert place(0.0, 0.0, 0.0, 0.01) == 0
    assert place(0.02, 1e-6, 0.0, 0.01) == 1
    assert place(0.03, 0.02, 0.01, 0.0) == 3
    errors = np.full((3, 5), 0.1)
    errors[0] = np.inf
    assert lowest_within_a_standard_error(errors) == 1


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

    def test_a_robot_without_torque_is_not_judged(self):
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
        assert "tried: band 9 Hz (as asked for)" in answer["useless_because"]
        (band,) = answer["bands"]
        assert band == {"log": str(tmp_path / "log.csv"), "band": 9.0, "reason": "as asked for", "tried": []}
        assert main(words) == 0
        assert capsys.readouterr().out.startswith("carriage  useless model: ")
        fit = di.load_fit(tmp_path / "fit")
        assert assess_fit(fit).headline.startswith("useless model")
        assert main(["validate", str(tmp_path / "fit"), str(tmp_path / "log.csv")]) == 0
        assert capsys.readouterr().out.startswith("useless model: ")
