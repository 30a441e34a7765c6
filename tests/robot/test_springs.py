"""Springs of robot files: torque, energy, storage, simulation and export agree; entries that cannot be are refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.dynamics.evaluate import energy_regressor
from dynident.export import export_mjcf, export_urdf, export_yaml
from dynident.plant import MujocoPlant
from dynident.robot.storage import robot_from_data, robot_to_data

ARM = """<mujoco><compiler angle="degree"/><worldbody>
<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" stiffness="30" springref="25" damping="0.3" ref="10"/>
<inertial mass="2" pos="0.2 0 0" diaginertia="0.01 0.02 0.02"/>
<body name="b" pos="0.4 0 0"><joint name="j2" axis="0 1 0" stiffness="5" armature="0.05"/>
<inertial mass="1" pos="0.1 0 0.05" diaginertia="0.01 0.02 0.02"/>
<body name="c" pos="0.3 0 0"><joint name="j3" type="slide" axis="1 0 0" stiffness="200" springref="0.03"/>
<inertial mass="1" pos="0.1 0 0.05" diaginertia="0.01 0.02 0.02"/></body></body></body></worldbody>
<tendon><fixed name="t" stiffness="12" springlength="0.2"><joint joint="j1" coef="1"/><joint joint="j2" coef="-0.5"/>
</fixed></tendon></mujoco>"""
GAS = "joint: j2, kind: gas, from: [-0.1, 0, 0.3], to: [0.2, 0, 0.02], length: 0.5, gas_column: 0.6"
EVERY_KIND = f"""base: arm.xml
springs:
- {{joint: j1, rest: 0.4, stiffness: 17}}
- {{{GAS}, exponent: 1.3, force: 300}}
- {{label: pull, joint: j1, kind: hydraulic, from: [0.3, 0, 1.2], to: [0.1, 0, 0.05],
   length: 0.2, gas_column: 0.9, force: 90}}
- {{label: coil, joint: j3, from: [0.1, 0.1, 0], to: [0, 0, 0], rest: 0.3, stiffness: 400}}
- {{label: both, along: q1 + 2*q2, stiffness: 3}}
"""


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    return di.load_robot(tmp_path / "arm.xml")


@pytest.fixture
def every(arm, tmp_path):
    (tmp_path / "every.yaml").write_text(EVERY_KIND)
    return di.load_robot(tmp_path / "every.yaml")


def states(n=20, seed=0):
    return np.random.default_rng(seed).normal(size=(3, n, 3)) * np.array([1.0, 1.0, 0.1])


def test_springs_of_an_mjcf_are_those_of_mujoco(arm):
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    q, dq, ddq = states()
    expected = np.zeros_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        expected[k] = data.qfrc_inverse
    np.testing.assert_allclose(di.inverse_dynamics(arm, q, dq, ddq), expected, atol=1e-12)
    assert arm.fixed == {"Ks1": 30.0, "Ks2": 5.0, "Ks3": 200.0, "Kst": 12.0}
    assert not any(name.startswith("Ks") for name in di.base_parameters(arm).names)


def test_a_flag_that_disables_springs(arm, tmp_path):
    from dynident.robot.mjcf import read_mjcf

    bits = mujoco.mjtDisableBit
    flag = "spring" if hasattr(bits, "mjDSBL_SPRING") else "passive"
    (tmp_path / "off.xml").write_text(
        ARM.replace("<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>', 1)
    )
    draft = read_mjcf(tmp_path / "off.xml")
    assert not draft.springs
    assert any("stiffness is disabled" in words for words in draft.warnings)


def test_torque_is_the_slope_of_the_energy(every):
    q = states()[0]
    known = {name: x for name, x in every.value_set().items() if name[:2] in ("Ks", "Kp", "Fg")} | {"Kpboth": 2.0}
    chi = np.array([known.get(column.name, column.fixed or 0.0) for column in di.columns(every, "spring")])
    assert chi.all()
    torque = di.inverse_dynamics(every, q, 0 * q, 0 * q, "spring", chi)
    step, slope = 1e-6, np.zeros_like(q)
    for i in range(3):
        ahead, behind = (
            energy_regressor(every, q + sign * step * np.eye(3)[i], 0 * q, "spring") @ chi for sign in (1.0, -1.0)
        )
        slope[:, i] = (ahead - behind) / (2.0 * step)
    np.testing.assert_allclose(torque, slope, atol=2e-6 * np.abs(slope).max())


def test_a_cylinder_pushes_along_the_line_between_its_ends(every):
    """At one position, from the force and the lever arm worked out by hand."""
    position, joint = 0.7, every.joints[1]
    c, s = np.cos(position), np.sin(position)
    turn = joint.before.rotation @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    end = joint.before.translation + turn @ (joint.after.rotation @ [0.2, 0.0, 0.02] + joint.after.translation)
    line = end - np.array([-0.1, 0.0, 0.3])
    length = np.linalg.norm(line)
    force = 300.0 * (0.6 / (0.6 - (0.5 - length))) ** 1.3 * line / length
    moment = np.cross(end - joint.before.translation, force) @ joint.before.rotation[:, 2]
    q = np.array([[0.0, position, 0.0]])
    torque = di.inverse_dynamics(
        every,
        q,
        0 * q,
        0 * q,
        "spring",
        {"Fg2": 300.0, "Ks1": 0, "Fgpull": 0, "Kscoil": 0, "Ksboth": 0, "Kst": 0, "Ks3": 0},
    )
    assert torque[0, 1] == pytest.approx(-moment, rel=1e-12)


def test_stored_robots_keep_their_springs(every):
    again = robot_from_data(robot_to_data(every), "stored")
    assert again.fingerprint == every.fingerprint
    q, dq, ddq = states()
    np.testing.assert_array_equal(di.inverse_dynamics(again, q, dq, ddq), di.inverse_dynamics(every, q, dq, ddq))


def test_the_plant_swings_as_the_equations_do(every):
    values = {**every.value_set(), "Kpboth": 1.0}
    plant = MujocoPlant(every, values)
    plant.reset([0.3, -0.2, 0.05], [0.5, 0.1, 0.0])
    for _ in range(200):
        plant.apply_torque(np.zeros(3))
        plant.step()
    q, dq = np.array([[0.3, -0.2, 0.05]]), np.array([[0.5, 0.1, 0.0]])
    h = 1e-3

    def rate(q, dq):
        return di.forward_dynamics(every, q, dq, np.zeros((1, 3)), values=values)

    for _ in range(200):
        k1, v1 = rate(q, dq), dq
        v2 = dq + 0.5 * h * k1
        k2 = rate(q + 0.5 * h * v1, v2)
        v3 = dq + 0.5 * h * k2
        k3 = rate(q + 0.5 * h * v2, v3)
        v4 = dq + h * k3
        k4 = rate(q + h * v3, v4)
        q = q + h / 6.0 * (v1 + 2 * v2 + 2 * v3 + v4)
        dq = dq + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(plant.truth().q[-1], q[0], atol=1e-7)


def test_exports_carry_what_they_can(arm, every, tmp_path):
    values = {**every.value_set(), "Kpboth": 1.0}
    kept = export_mjcf(arm, arm.value_set(), tmp_path / "kept.xml")
    assert not kept.lost
    made = export_mjcf(every, values, tmp_path / "made.xml", from_scratch=True)
    assert made.agreement.relative < 1e-9
    (gone,) = (words for words in made.lost if "spring" in words)
    assert all((name in gone) == (name != "Ksboth") for name in ("Fg2", "Fgpull", "Kscoil", "Ksboth"))
    urdf = export_urdf(every, values, tmp_path / "made.urdf")
    assert any("spring Ks1, Fg2" in words and "URDF" in words for words in urdf.lost)
    export_yaml(every, values, tmp_path / "made.yaml")
    again = di.load_robot(tmp_path / "made.yaml")
    q, dq, ddq = states()
    expected = di.inverse_dynamics(every, q, dq, ddq, values=values)
    np.testing.assert_allclose(di.inverse_dynamics(again, q, dq, ddq), expected, rtol=1e-12)


def test_another_stiffness_in_the_users_own_file(arm, tmp_path):
    (tmp_path / "open.yaml").write_text("base: arm.xml\nsprings:\n- {joint: j1, rest: 0.4}\n")
    robot = di.load_robot(tmp_path / "open.yaml")
    export_mjcf(robot, {**robot.value_set(), "Ks1": 17.0}, tmp_path / "new.xml")
    again = di.load_robot(tmp_path / "new.xml")
    assert again.fixed["Ks1"] == 17.0
    assert again.springs[0].rest == pytest.approx(0.4, rel=1e-14)


WRONG = {
    "{joint: j9}": ["springs[1]", "j9"],
    "{stiffness: 3}": ["springs[1]", "joint", "along"],
    "{joint: j1, kind: rubber}": ["springs[1] kind", "linear, gas, hydraulic"],
    "{joint: j1, force: 3}": ["springs[1]", "'force' has no meaning", "linear"],
    "{joint: j2, kind: gas, length: 0.5, gas_column: 0.6}": ["springs[1]", "from and to"],
    "{" + GAS.replace("gas_column: 0.6", "gas_column: 0.05") + "}": ["springs[1]", "pressed to nothing"],
    "{" + GAS.replace(", gas_column: 0.6", "") + "}": ["springs[1]", "'gas_column'", "gas volume"],
    "{joint: j1, from: [0, 0, 1], to: [0.1, 0, 0]}": ["springs[1]", "on the axis"],
    "{along: q1 + q3}": ["springs[1]", "turn and joints that slide"],
    "{joint: j1}, {joint: j1}": ["springs[2]", "'1' is used twice"],
}


@pytest.mark.parametrize("entry", WRONG)
def test_entries_that_cannot_be_are_refused(entry, arm, tmp_path):
    (tmp_path / "bad.yaml").write_text(f"base: arm.xml\nsprings: [{entry}]\n")
    with pytest.raises(di.RobotFileError) as raised:
        di.load_robot(tmp_path / "bad.yaml")
    assert all(word in str(raised.value) for word in ["bad.yaml", *WRONG[entry]]), str(raised.value)


def test_the_term_needs_springs():
    with pytest.raises(di.InputError, match=r"puma560 has none.*stiffness"):
        di.base_parameters(di.load_robot("puma560"), "rigid,spring")
