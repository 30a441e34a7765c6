"""Rows and widths of experiments: away from reversals where that leaves enough, and no nearer than it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import Coulomb
from dynident.estimate.parameter_rows import NEARER, choose_rows, too_few_rows
from dynident.information.row_source import accumulate_source
from dynident.signals.rows import ObservedRows
from tests.signals.made import Fourier, make_log, stamps

RATE = 200.0
FRICTION = {"Fv1": 0.5, "Fv2": 0.4, "Fc1": 2.0, "Fc2": 1.0}


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def made(robot, seconds: float, terms: str, *, gains=(1.0, 1.0), late: float = 0.0, seed: int = 0) -> di.Log:
    t = stamps(seconds, RATE)
    motion = Fourier.random(2, 3, velocity=1.5)
    values = {name: float(x) for name, x in robot.value_set().items()} | FRICTION
    tau = di.inverse_dynamics(robot, *motion(t - late), terms, values)
    noise = 0.002 * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, motion(t)[0], (tau + noise) / np.array(gains), source=f"{seconds} s, {terms}")


def widths(data: di.estimate.StageData) -> dict[str, float]:
    term = next(own for own in data.rows.base.terms if isinstance(own, Coulomb))
    return {element.label: term.width(element) for element in term.elements(data.rows.base.robot)}


class TestRows:
    def test_are_away_from_reversals_where_these_are_enough(self, robot):
        observed = di.observe(made(robot, 40.0, "rigid,Fv,Fc"), robot)
        rows, found = choose_rows(ObservedRows((observed,), di.base_parameters(robot)), 10)
        assert rows.rule.nearest == NEARER[0]
        assert found.n_rows == accumulate_source(rows).n_rows

    def test_are_nearer_where_few_would_remain(self, robot):
        observed = di.observe(made(robot, 40.0, "rigid,Fv,Fc"), robot)
        given = ObservedRows((observed,), di.base_parameters(robot))
        far = accumulate_source(replace(given, rule=replace(choose_rows(given, 1)[0].rule, nearest=NEARER[0])))
        n = int(far.n_rows // 10) + 1  # unknowns for which those rows are too few
        rows, found = choose_rows(given, n)
        assert too_few_rows(far, n)
        assert rows.rule.nearest == NEARER[1]
        assert found.n_rows > far.n_rows

    def test_none_at_all_is_said(self, robot):
        t = stamps(20.0, RATE)
        still = make_log(robot, t, np.zeros((len(t), 2)), np.ones((len(t), 2)))
        with pytest.raises(di.InputError):
            choose_rows(ObservedRows((di.observe(still, robot),), di.base_parameters(robot)), 10)


class TestWidths:
    @pytest.mark.parametrize("gains", [(1.0, 1.0), (1.2, 0.8)], ids=["right", "off"])
    def test_are_found_by_the_data_whatever_the_gains(self, robot, gains):
        log = made(robot, 60.0, "rigid,Fv,Fc(0.3)", gains=gains)
        found = di.estimate.experiment("all", robot, log, signals=di.SignalOptions(band=8.0))
        for width in widths(found).values():
            assert width == pytest.approx(0.3, abs=0.03)

    def test_stay_as_the_terms_have_them(self, robot):
        log = made(robot, 40.0, "rigid,Fv,Fc(0.06)")
        found = di.estimate.experiment("all", robot, log, "rigid,Fv,Fc(0.02)", signals=di.SignalOptions(band=8.0))
        assert set(widths(found).values()) == {0.02}

    def test_do_not_make_other_parameters(self, robot):
        """Experiments that found other widths can be solved together."""
        runs = [
            di.estimate.experiment(name, robot, made(robot, 40.0, f"rigid,Fv,Fc({width})"))
            for name, width in (("sharp", 0.01), ("wide", 0.3))
        ]
        assert widths(runs[0]) != widths(runs[1])
        found = di.estimate.solve_together(runs)
        for name in ("Fc1", "Fc2"):
            i = found.names.index(name)
            assert found.values[i] == pytest.approx(FRICTION[name], abs=max(4.0 * found.std[i], 0.01))


def test_drives_whose_gains_are_off_do_not_pass_for_correlated_noise(robot):
    """Links shared by all channels would leave residuals as long as the motion."""
    own = [
        di.estimate.experiment("all", robot, made(robot, 40.0, "rigid,Fv,Fc(0.06)", gains=gains))
        for gains in ((1.0, 1.0), (1.3, 0.7))
    ]
    np.testing.assert_allclose(own[1].inflation, own[0].inflation, rtol=0.2)
