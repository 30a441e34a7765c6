"""Plain friction of coupled elements: what simulators get where a fit has more terms than they know."""

from __future__ import annotations

import pytest

import dynident as di
from dynident.estimate.equivalent_friction import plain_elements
from dynident.export.fit_export import plain_friction
from tests.payload.payloads import made_log

SPRING = 1.5  # [N·m] on joint 2, which slips after 3 mrad
MOTOR = 0.6  # [N·m] on the motor that turns with two joints


@pytest.fixture(scope="module")
def fit():
    """The TX40, whose sixth motor turns with two joints; one joint and that motor have friction with memory."""
    robot = di.load_robot("tx40")
    terms = "rigid,Ia,Fv,Fc(0.02),Fo,stop(0.003)"
    log = made_log(robot, 1, seconds=10.0, terms=terms, more={"stop3_2": SPRING, "stop3_m6": MOTOR})
    return di.identify(robot, log, friction="stop(0.003)", delay=0.0, velocity_source="position")


def test_all_friction_of_an_element_is_in_it(fit):
    truth = fit.robot.value_set()
    found, lost = plain_elements(fit)
    assert lost < 0.06
    assert found["Fc2"] == pytest.approx(truth["Fc2"] + SPRING, rel=0.05)
    assert found["Fcm6"] == pytest.approx(truth["Fcm6"] + MOTOR, rel=0.1)
    assert found["Fc4"] == pytest.approx(truth["Fc4"], rel=0.1)
    for name in ("Fv1", "Fv2", "Fv3", "Fv5", "Fvm6"):
        assert found[name] == pytest.approx(truth[name], rel=0.1), name
    assert min(found.values()) >= 0.0


def test_exports_of_a_coupled_robot_use_it(fit):
    values, terms, printed = plain_friction(fit, di.physical_fit(fit).values)
    assert "stop" not in [term.name for term in terms]
    assert not any(name.startswith("stop") for name in values)
    assert values["Fcm6"] == pytest.approx(plain_elements(fit)[0]["Fcm6"])
    assert "friction terms stop(0.003): damping and dry friction in the file stand for all of them" in printed[0]


def test_a_fit_without_a_view_is_refused(fit):
    from dataclasses import replace

    with pytest.raises(di.InputError, match="keeps no view of its friction"):
        plain_elements(replace(fit, friction_view=None))


def test_the_value_set_of_a_yaml_file_has_it_too(fit, tmp_path, capsys):
    """Its Fv and Fc alone would be those of overlapping terms: a simulation of them missed 18 % of the torque."""
    from dynident.cli.command_line import main

    fit.save(tmp_path / "fit")
    assert main(["export", str(tmp_path / "fit"), "--yaml", str(tmp_path / "out.yaml")]) == 0
    assert "friction terms stop(0.003)" in capsys.readouterr().out
    again, truth = di.load_robot(tmp_path / "out.yaml"), fit.robot.value_set()
    assert again.value_set()["Fc2"] == pytest.approx(truth["Fc2"] + SPRING, rel=0.05)
    assert again.base_values["identified"]["stop3_2"] == pytest.approx(fit["stop3_2"])
    assert "Fc2" not in again.base_values["standard-std"]  # that standard deviation belongs to another number
