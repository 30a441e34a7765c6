"""YAML files: read back by our own reader, with standard deviations and provenance."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError
from dynident.export import overlay as yaml_file
from dynident.export.overlay import export_yaml
from dynident.export.verification import ExportError
from tests.estimate.test_storage import estimate_of
from tests.export.made import ARM, assert_close, other_values, states
from tests.robots import random_urdf


@pytest.fixture(scope="module")
def estimate():
    return estimate_of("pendulum-2")


@pytest.mark.parametrize("name", ["ur10e", "panda", "tx40", "sr400", "cmu-dd-arm-3"])
def test_it_stands_on_a_bundled_robot(name, tmp_path, inspect):
    robot = di.load_robot(name)
    values = other_values(robot)
    done = export_yaml(robot, values, tmp_path / "b.yaml", note="prior: CAD\nof 2019")
    again = di.load_robot(done.path)
    assert again.fingerprint == robot.fingerprint
    assert dict(again.value_set()) == {**values, **robot.fixed}  # to the last bit
    q, dq, ddq = states(robot)
    assert_close(di.inverse_dynamics(again, q, dq, ddq), di.inverse_dynamics(robot, q, dq, ddq, values=values))
    assert done.agreement.relative == 0.0
    beta = di.base_parameters(robot)
    assert again.base_values["identified"] == dict(zip(beta.names, beta.base_values(values), strict=True))
    assert "# prior: CAD of 2019" in done.path.read_text()
    shown = inspect(str(done.path), "--terms", "rigid,Ia,Fv,Fc,Fo", "--values", "identified")
    assert shown["counts"]["base"] == beta.n


def test_it_stands_on_a_file_elsewhere(tmp_path):
    (tmp_path / "in here").mkdir()
    (tmp_path / "in here" / "arm.urdf").write_text(ARM)
    robot = di.load_robot(tmp_path / "in here" / "arm.urdf")
    (tmp_path / "out").mkdir()
    done = export_yaml(robot, {**robot.value_set(), "Fo1": 1e-05}, tmp_path / "out" / "b.yaml")
    assert "base: '../in here/arm.urdf'" in done.path.read_text()
    assert di.load_robot(done.path).value_set()["Fo1"] == 1e-05
    on_top = export_yaml(di.load_robot(done.path), robot.value_set(), tmp_path / "c.yaml")
    assert "base: out/b.yaml" in on_top.path.read_text()
    with pytest.raises(InputError, match="is the file the robot was read from"):
        export_yaml(di.load_robot(on_top.path), robot.value_set(), done.path)


def test_an_estimate_with_its_deviations_and_data(estimate, tmp_path):
    done = export_yaml(estimate.robot, None, tmp_path / "b.yaml", estimate=estimate)
    again, text = di.load_robot(done.path), done.path.read_text()
    assert again.base_values["identified"] == dict(zip(estimate.names, estimate.beta, strict=True))
    assert again.base_values["identified-std"] == dict(zip(estimate.names, estimate.std, strict=True))
    q, dq, ddq = states(again)
    dq = np.sign(dq) * (1.0 + np.abs(dq))  # where smoothed friction is as large as it gets
    ours = estimate.base.regressor(q, dq, ddq) @ estimate.beta
    assert_close(di.inverse_dynamics(again, q, dq, ddq), ours)
    assert estimate.data[0].digest[:12] in text
    assert f"Method: {estimate.estimator.name}" in text
    assert "they are no bodies" in text
    line = next(line for line in text.splitlines() if line.strip().startswith(f"{estimate.names[0]}:"))
    assert re.search(rf"# {re.escape(estimate.units[0])}", line)
    assert f"± {estimate.std[0]:.2g}" in text


def test_given_values_beside_an_estimate(estimate, tmp_path):
    robot = estimate.robot
    values = other_values(robot)
    deviations = {**dict.fromkeys(values, 0.25), "M1": np.inf}
    done = export_yaml(robot, values, tmp_path / "b.yaml", estimate=estimate, deviations=deviations)
    again = di.load_robot(done.path)
    assert again.value_set()["M2"] == values["M2"]
    assert again.base_values["standard-std"]["M2"] == 0.25
    assert "M1" not in again.base_values["standard-std"]
    assert again.base_values["identified"][estimate.names[0]] == estimate.beta[0]
    assert re.search(r"M2: \S+ +# kg, ± 0.25, mass", done.path.read_text())


def test_a_fit_without_enough_rank_says_so(estimate, tmp_path):
    known = np.arange(len(estimate.names)) > 0
    poor = estimate.replace(determined=known)
    done = export_yaml(poor.robot, None, tmp_path / "b.yaml", estimate=poor, note="prior: zero")
    text = done.path.read_text()
    assert f"# Not determined by the data: {poor.names[0]}." in text
    assert "# prior: zero" in text
    assert f", not determined, {poor.base.expressions[0]}" in text
    assert poor.names[0] not in di.load_robot(done.path).base_values["identified-std"]


def test_held_joints_stay_held(tmp_path):
    robot = di.load_robot("tx40").lock(q5=0.4)  # motor 6 turns with it: torque at the joints is not known
    done = export_yaml(robot, robot.value_set(), tmp_path / "b.yaml")
    assert di.load_robot(done.path).locked == robot.locked


def test_terms_that_a_value_set_does_not_know(tmp_path):
    robot = di.load_robot("pendulum-2")
    terms = "rigid,Fv,Fc(0.05),stop(0.001)"
    name = di.columns(robot, terms)[-1].name
    done = export_yaml(robot, {**robot.value_set(), name: 2.0}, tmp_path / "b.yaml", terms=terms)
    assert done.lost[0] == f"further friction {name}"
    assert done.lost[1].startswith("smoothing of Coulomb friction below 0.05")
    assert di.load_robot(done.path).base_values["identified"][name] == 2.0


def test_bad_input(estimate, tmp_path, monkeypatch):
    robot = estimate.robot
    with pytest.raises(InputError, match="there is nothing to export"):
        export_yaml(robot, None, tmp_path / "b.yaml")
    with pytest.raises(InputError, match=r"must end in .yaml or .yml"):
        export_yaml(robot, robot.value_set(), tmp_path / "b.json")
    with pytest.raises(InputError, match="the estimate is of another robot"):
        export_yaml(di.load_robot("ur10e"), None, tmp_path / "b.yaml", estimate=estimate)
    with pytest.raises(UnknownNameError, match="parameter with a standard deviation 'M9'"):
        export_yaml(robot, robot.value_set(), tmp_path / "b.yaml", deviations={"M9": 1.0})
    by_hand = di.robot.robot_from_urdf(random_urdf(3))
    with pytest.raises(InputError, match="give that as base"):
        export_yaml(by_hand, by_hand.value_set(), tmp_path / "b.yaml")
    with pytest.raises(ExportError, match=r"M1.*expected 0 or more"):
        export_yaml(robot, {"M1": -1.0}, tmp_path / "b.yaml")
    monkeypatch.setattr(yaml_file, "own_torque", lambda *given: np.zeros_like(given[2].q))
    with pytest.raises(ExportError, match="was not written, because its torque differs by 1 "):
        export_yaml(robot, robot.value_set(), tmp_path / "b.yaml")
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_changed_since(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    robot = di.load_robot(path)
    path.write_text(ARM.replace('xyz="0.1 0 0.25"', 'xyz="0.1 0 0.26"'))
    with pytest.raises(ExportError, match="the file was changed since"):
        export_yaml(robot, robot.value_set(), tmp_path / "b.yaml")
