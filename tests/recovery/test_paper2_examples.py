"""The examples of paper 2's procedures run, say what they should, and are short enough to adapt."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dynident.papers.gautier.printed import TABLE_2

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("sr400_two_step", "known_load", "energy_model")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_says_how_to_run_it(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) < 80
    assert f"Run: python examples/{name}.py" in text


def test_two_steps(example):
    module = example("sr400_two_step")
    truth = module.true_values()
    found = module.two_steps(module.record_runs(truth, segments=25, noise=False))
    assert set(found.essential) == set(truth)
    assert max(abs(found[name] / value - 1.0) for name, value in truth.items()) < 0.03
    noisy = module.two_steps(module.record_runs(truth, segments=25))
    assert not set(truth) - set(noisy.essential) - {"Fv6", "MYR5"}  # a third of the data, the faintest may be missing
    assert [step.label for step in noisy.stages] == ["wrist", "arm"]


def test_known_load_and_drive_gains(example):
    module = example("known_load")
    compared = module.side_by_side(segments=25)
    assert len(compared.changed) == 19
    assert compared["MXR2"].loaded == pytest.approx(compared["MXR2"].predicted, rel=0.05)
    gains = module.find_gains(segments=15)
    np.testing.assert_allclose(gains.gains, [TABLE_2[name][0] for name in gains.joints], rtol=0.03)


def test_energy_power_and_dynamic_model(example):
    module = example("energy_model")
    base, energy, fits = module.three_models(segments=25)
    assert energy.rank == base.n == 17
    truth = module.true_base(base)
    inertial = np.array([name[0] != "F" for name in base.names])
    for fit in fits.values():
        np.testing.assert_allclose(fit.values_[inertial], truth[inertial], atol=0.012)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_as_a_script(name):
    answer = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=True)
    assert "joint" in answer.stdout or "rank" in answer.stdout
