"""Excitation, residual tests, trust map and physicality say what the numbers say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.estimate.torque_errors import Trace
from dynident.report.charts import std_plot
from dynident.report.fit.bodies import find_bodies, physicality_section
from dynident.report.fit.excitation import excitation_section
from dynident.report.fit.parameters import trust_map
from dynident.report.fit.residuals import residuals_section
from dynident.report.html import render
from tests.report.test_page import make_log


@pytest.fixture(scope="module")
def estimate():
    robot = di.load_robot("pendulum-2")
    return di.identify(robot, [make_log(robot, 1)], friction="basic", check="off")


def test_parameters_that_trade_against_each_other_are_reported_together(estimate):
    names = estimate.names
    i, j = names.index("Fv1"), names.index("Fc1")
    covariance = np.diag(np.diag(estimate.covariance))
    covariance[i, j] = covariance[j, i] = -0.999 * np.sqrt(covariance[i, i] * covariance[j, j])
    page = render(excitation_section(estimate.replace(covariance=covariance, null_space=None)))
    (row,) = re.findall(r"<tr><th[^>]*>([^<]*)</th>", page.split("<tbody>")[1])
    assert row in ("Fv up, Fc down: friction of 1", "Fc up, Fv down: friction of 1")
    assert "22 ×" in page  # 1/sqrt(1 - 0.999²)
    independent = estimate.replace(covariance=np.diag(np.diag(covariance)), null_space=None)
    assert "rich enough" in render(excitation_section(independent))


def test_long_names_have_room_beside_their_bars():
    drawn = std_plot(["stribeck0.5_m6", "Fv1"], np.array([0.3, 0.2]), (1e-4, 10.0), "key")
    ends = {name: int(x) for x, name in re.findall(r'<text x="(\d+)" y="\d+" class="end name">([^<]+)<', drawn)}
    assert ends["stribeck0.5_m6"] >= 16 * len("stribeck0.5_m6")  # a letter of 29 units is about 16 wide
    marks = [int(x) for x in re.findall(r'<text x="(\d+)" y="\d+" class="mid">', drawn)]
    assert min(np.diff(marks)) > 110  # "1000 %" at that size
    assert marks[-1] + 55 <= 960


def test_friction_columns_are_named_without_their_joint():
    robot = di.load_robot("pendulum-2")
    fit = di.identify(robot, [make_log(robot, 1)], friction="sign(0.005)", check="off")
    covariance = np.diag(np.diag(fit.covariance))
    i, j = fit.names.index("Fc1"), fit.names.index("sign0.005_1")
    covariance[i, j] = covariance[j, i] = -0.999 * np.sqrt(covariance[i, i] * covariance[j, j])
    page = render(excitation_section(fit.replace(covariance=covariance, null_space=None))).replace("<wbr>", "")
    assert "sign0.005_ " not in page
    assert "sign0.005 " in page


def test_an_open_direction_comes_first(estimate):
    direction = np.zeros((len(estimate.names), 1))
    direction[estimate.names.index("ZZR1")] = 1.0
    page = render(excitation_section(estimate.replace(null_space=direction)))
    first = page.split("<tbody>")[1].split("</tr>")[0]
    assert "ZZR1 up" in first
    assert "not determined" in first
    assert "accelerated" in first


def residual_page(estimate, residual, predicted):
    n = len(predicted)
    trace = Trace(np.arange(n) * 0.01, np.stack([predicted + residual] * 2, axis=1), np.stack([predicted] * 2, axis=1))
    return render(residuals_section(estimate.replace(validation={}), {"one": trace}))


def test_residuals_are_read_by_their_shape(estimate):
    rng = np.random.default_rng(0)
    predicted, noise = 10.0 * rng.normal(size=4000), rng.normal(size=4000)
    assert residual_page(estimate, noise, predicted).count("like noise") == 2
    assert residual_page(estimate, noise + 0.1 * predicted, predicted).count("torque scale") == 2
    assert residual_page(estimate, noise + 1.0, predicted).count("offset") == 2
    rare = np.where(rng.uniform(size=4000) < 0.01, 10.0, 0.0)
    assert residual_page(estimate, noise + rare, predicted).count("rare large errors") == 2
    assert residuals_section(estimate, {}) is None


def test_every_standard_parameter_has_its_mark(estimate):
    page = trust_map(estimate)
    categories = estimate.base.categories
    shown = [c for c in estimate.base.columns if c.term in ("rigid", "Ia", "Fv", "Fc", "Fo")]
    assert page.count('<td class="cell') == len(shown)
    assert page.count("has no effect on any joint torque") == 2 * sum(
        categories[c.name] == "no effect" for c in shown
    )  # for those who point at it and those who cannot
    assert "is part of" in page


def test_inertias_that_are_not_physically_consistent_are_reported(estimate):
    fine = render(physicality_section(find_bodies(estimate)))
    assert "are physically consistent within their uncertainty" in fine
    beta = estimate.beta.copy()
    beta[estimate.names.index("ZZ2" if "ZZ2" in estimate.names else "ZZR2")] = -1.0
    page = render(physicality_section(find_bodies(estimate.replace(beta=beta))))
    assert "farther from physical consistency than noise explains" in page
    assert "Violated conditions" in page
