"""Gravity and friction compensation in C: against Pinocchio and hand-written formulas, and under bad velocities."""

from __future__ import annotations

import dataclasses
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import dynident as di
from dynident.export import export_c
from dynident.export.c_compensation import MOST_SHARE, RISE_TIME
from dynident.export.c_export import find_compiler
from dynident.logs.log import Log
from tests.export.c_library import with_everything

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
DT = 0.005


def built(export):
    """The Python module of an export, its library built by the makefile."""
    command = ["make", "-f", f"{export.name}.mk", f"lib{export.name}.so", "selftest"]
    answer = subprocess.run(command, cwd=export.folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "warning" not in answer.stderr
    file = next(path for path in export.files if path.suffix == ".py")
    spec = importlib.util.spec_from_file_location(f"compensation_{export.folder.name}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Compensation()


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """Puma with viscous, Coulomb friction and offsets of its own."""
    robot = di.load_robot("puma560")
    export = export_c(robot, tmp_path_factory.mktemp("puma"), name="arm")
    return robot, built(export), export


def settled(library, q, dq):
    """Torque of drag after its rise."""
    library.reset()
    for _ in range(int(1.5 * RISE_TIME / DT)):
        tau = library.drag(q, dq, DT)
    return np.array(tau)


class TestHold:
    def test_against_pinocchio(self, arm):
        import pinocchio

        from tests.robots import tree_model

        robot, library, _ = arm
        model = tree_model(robot)
        data = model.createData()
        offsets = np.array([robot.value_set().get(f"Fo{j + 1}", 0.0) for j in range(6)])
        rng = np.random.default_rng(0)
        for q in rng.uniform(-2, 2, (20, 6)):
            expected = pinocchio.computeGeneralizedGravity(model, data, q @ robot.follow.T + robot.follow_offset)
            expected = expected @ robot.follow + offsets
            expected = np.clip(expected, -robot.effort_limits, robot.effort_limits)
            np.testing.assert_allclose(library.hold(q), expected, atol=1e-9)

    def test_names_and_bad_input(self, arm):
        robot, library, _ = arm
        assert tuple(library.joints) == robot.joint_names
        with pytest.raises(ValueError, match="no finite number"):
            library.hold([np.nan] * 6)
        with pytest.raises(ValueError, match="q has 2 numbers; expected 6"):
            library.hold([0.0, 0.0])

    def test_limits(self, arm):
        _, library, _ = arm
        before = list(library.torque_limit)
        library.torque_limit[1] = 3.0
        try:
            assert abs(library.hold([0.0] * 6)[1]) <= 3.0
        finally:
            library.torque_limit[1] = before[1]


class TestDrag:
    def friction(self, robot, dq):
        own = robot.value_set()
        found = [(own[f"Fv{j}"], own[f"Fc{j}"]) for j in range(1, 7)]
        return np.array([viscous * v + coulomb * np.sign(v) for (viscous, coulomb), v in zip(found, dq, strict=True)])

    def test_is_a_share_of_the_friction(self, arm):
        robot, library, _ = arm
        q, dq = np.full(6, 0.3), np.array([0.4, -0.3, 0.5, -0.6, 0.2, 0.7])
        friction = self.friction(robot, dq)
        np.testing.assert_allclose(settled(library, q, dq) - library.hold(q), MOST_SHARE * friction, rtol=1e-9)

    def test_nothing_at_rest(self, arm):
        """Noise of the velocity below the rest velocity gives no friction torque at all."""
        _, library, _ = arm
        rng, q = np.random.default_rng(1), np.full(6, 0.3)
        hold = library.hold(q)
        library.reset()
        for _ in range(200):
            dq = rng.uniform(-1, 1, 6) * np.array(library.rest_velocity)
            assert library.drag(q, dq, DT) == hold

    def test_any_velocities_take_energy_and_stay_bounded(self, arm):
        robot, library, _ = arm
        rng = np.random.default_rng(2)
        library.reset()
        for k in range(2000):
            q, dq = rng.uniform(-2, 2, 6), rng.normal(size=6) * 10.0 ** rng.uniform(-4, 2)
            hold = np.array(library.hold(q))
            free = np.abs(hold) < 0.5 * robot.effort_limits  # elsewhere the limit of all torque cuts
            extra = np.array(library.drag(q, dq, rng.uniform(0, 0.1))) - hold
            assert (np.abs(extra) <= np.array(library.drag_limit) + 1e-9).all()
            friction = self.friction(robot, dq)
            assert (extra * dq <= MOST_SHARE * friction * dq + 1e-9).all(), k
            assert (extra * dq >= -1e-12)[free].all()

    def test_rises_slowly_and_falls_at_once(self, arm):
        _, library, _ = arm
        q, dq = np.zeros(6), np.full(6, 0.5)
        hold, limit = np.array(library.hold(q)), np.array(library.drag_limit)
        library.reset()
        first = np.array(library.drag(q, dq, DT)) - hold
        assert (first <= limit * DT / RISE_TIME + 1e-12).all()
        settled(library, q, dq)
        turned = np.array(library.drag(q, -dq, DT)) - hold
        assert (np.abs(turned) <= limit * DT / RISE_TIME + 1e-12).all()
        assert np.array(library.drag(q, np.zeros(6), DT)) == pytest.approx(hold)

    def test_a_pushed_arm_comes_to_rest(self, arm):
        """In MuJoCo, with the friction that was identified, a late and noisy velocity, and a push at the start."""
        import mujoco

        from dynident.plant.mjcf_writer import ModelOptions, mujoco_xml

        robot, library, _ = arm
        model = mujoco.MjModel.from_xml_string(mujoco_xml(robot, robot.value_set(), ModelOptions(step=1e-3)))
        data = mujoco.MjData(model)
        q0 = np.array([0.3, -0.4, 0.5, 0.2, -0.3, 0.4])
        data.qpos[:6], data.qvel[:6] = q0, np.array([0.8, 0.6, -0.8, 1.0, 1.0, -1.0])
        rng, late, rests = np.random.default_rng(3), [np.zeros(6)] * 20, []
        library.reset()
        offsets = np.array([robot.value_set()[f"Fo{j}"] for j in range(1, 7)])  # MuJoCo has none
        for k in range(4000):
            late = [*late[1:], data.qvel[:6] + 1e-3 * rng.normal(size=6)]  # 20 ms late
            data.qfrc_applied[:6] = library.drag(data.qpos[:6], late[0], 1e-3) - offsets
            mujoco.mj_step(model, data)
            if k > 3500:
                rests.append(np.abs(data.qvel[:6]).max())
        assert np.abs(data.qpos[:6] - q0).max() > 0.05  # it was easy to move
        assert max(rests) < 1e-3
        assert np.abs(data.qpos[:6] - q0).max() < 2.0


class TestOthers:
    def test_friction_of_every_kind(self, tmp_path):
        """Where friction has memory, load and waves, compensation stays below what the model itself takes."""
        robot = di.load_robot("pendulum-2")
        model = with_everything(robot)
        library = built(export_c(model, tmp_path, name="odd"))
        rng = np.random.default_rng(5)
        library.reset()
        for _ in range(500):
            q, dq = rng.uniform(-1, 1, 2), rng.normal(size=2)
            extra = np.array(library.drag(q, dq, DT)) - np.array(library.hold(q))
            assert np.isfinite(extra).all()
            assert extra @ dq >= -1e-9
            assert (np.abs(extra) <= np.array(library.drag_limit) + 1e-9).all()

    def test_coupled_joints_and_single_precision(self, tmp_path):
        robot = di.load_robot("tx40")
        library = built(export_c(robot, tmp_path, name="tx", number="float"))
        rng = np.random.default_rng(6)
        library.reset()
        coupling = robot.moving_coupling
        for _ in range(300):
            q, dq = rng.uniform(-1, 1, 6), rng.normal(size=6)
            extra = np.array(library.drag(q, dq, DT)) - np.array(library.hold(q))
            assert extra @ (coupling @ dq) >= -1e-3

    def test_uncertain_friction_is_compensated_less(self, tmp_path):
        robot = di.load_robot("examples/demo/arm.yaml")
        log = di.read_log("examples/demo/fourier_1.csv.gz", robot).window(0.0, 6.0)
        fit = di.identify(robot, [log], friction="basic")
        export = export_c(fit, tmp_path, name="arm", selftest=log)
        library = built(export)
        share = np.array(library.drag_share)
        assert ((share > 0.0) & (share <= MOST_SHARE)).all()
        wide = dataclasses.replace(
            fit, estimate=dataclasses.replace(fit.estimate, covariance=1e4 * fit.estimate.covariance)
        )
        other = built(export_c(wide, tmp_path / "wide", name="arm"))
        assert (np.array(other.drag_share) <= share).all()
        assert (np.array(other.drag_share) < share).any()
        answer = subprocess.run([tmp_path / "selftest"], capture_output=True, text=True, check=False)
        assert answer.returncode == 0
        assert "torque error" in answer.stdout
        assert answer.stdout.endswith("ok\n")

    def test_the_self_test_can_fail(self, arm):
        _, _, export = arm
        path = export.folder / "arm.c"
        text = path.read_text()
        values = text.index("arm_base[ARM_N_BASE] = {")
        first = text.index("\n", values) + 1
        end = text.index(",", first)
        path.write_text(text[:first] + "    123.0" + text[end:])
        try:
            subprocess.run(["make", "-f", "arm.mk", "selftest"], cwd=export.folder, capture_output=True, check=True)
            answer = subprocess.run([export.folder / "selftest"], capture_output=True, text=True, check=False)
            assert answer.returncode == 1
            assert "FAILED" in answer.stdout
        finally:
            path.write_text(text)

    def test_a_log_of_another_robot(self, tmp_path):
        log = Log("other.csv", "none", np.arange(100) / 100.0, {"q1": np.zeros(100), "tau1": np.zeros(100)})
        with pytest.raises(di.DynidentError, match=r"other\.csv"):
            export_c(di.load_robot("pendulum-2"), tmp_path, selftest=log)
        assert not list(tmp_path.iterdir())
