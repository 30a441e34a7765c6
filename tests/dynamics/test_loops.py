"""Loops closed numerically, against MuJoCo, against Lagrange in SymPy, and against parallelograms that are affine."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from dynident.dynamics.loop_assembly import assembly
from dynident.robot.loops import CUT_JOINTS, JointState, loop_rows, n_rows
from dynident.robot.model import BASE, Loop, Transform
from dynident.robot.rotations import rpy_matrix
from dynident.robot.storage import robot_from_data, robot_to_data, yaml_text
from tests.loops import FIVE_BAR, FOUR_BAR, LINKS, SPATIAL, MujocoOracle, five_bar_oracle, four_bar_oracle, load
from tests.robots import random_urdf
from tests.signals.made import exact_log

TEXTS = {"four-bar": FOUR_BAR, "five-bar": FIVE_BAR, "rssr": SPATIAL}
INERTIAL = "rigid,Ia"


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    return {name: load(text, tmp_path_factory.mktemp(name)) for name, text in TEXTS.items()}


@pytest.fixture(params=list(TEXTS))
def robot(request, robots):
    return robots[request.param]


def states(robot, n=40, seed=1, spread=0.5):
    rng = np.random.default_rng(seed)
    shape = (n, len(robot.joint_names))
    return robot.closure.reference + rng.uniform(-spread, spread, shape), *3.0 * rng.normal(size=(2, *shape))


class TestAgainstOthers:
    def test_mujoco_needs_the_same_torque(self, robot):
        q, dq, ddq = states(robot)
        motion, oracle = di.dynamics.tree_motion(robot, q, dq, ddq), MujocoOracle(robot)
        gap, velocity, acceleration = oracle.opening(motion.q, motion.dq, motion.ddq).max(0)
        assert gap < 1e-12
        assert velocity < 1e-12
        assert acceleration < 1e-6  # its own derivative is by differences
        theirs = oracle.torque(motion.q, motion.dq, motion.ddq)
        np.testing.assert_allclose(di.inverse_dynamics(robot, q, dq, ddq, INERTIAL), theirs, atol=1e-9)

    def test_mujoco_moves_the_same_way(self, robot):
        start, n, step = robot.closure.reference, len(robot.joint_names), 0.004
        held = di.gravity_torque(robot, start[None])[0]

        def torque(t):
            return held + 0.3 * np.sin(20.0 * t)

        def slope(t, x):
            return np.append(x[n:], di.forward_dynamics(robot, x[:n], x[n:], torque(t), INERTIAL)[0])

        x = np.append(start, np.zeros(n))
        for t in np.arange(25) * step:  # Runge-Kutta
            a = slope(t, x)
            b = slope(t + step / 2, x + step / 2 * a)
            c = slope(t + step / 2, x + step / 2 * b)
            x = x + step / 6 * (a + 2 * b + 2 * c + slope(t + step, x + step * c))
        position, velocity = MujocoOracle(robot).simulated(
            di.dynamics.tree_motion(robot, start[None]).q[0], torque, 25 * step
        )
        theirs = np.append(position[list(robot.active)] - start, velocity[list(robot.active)])
        np.testing.assert_allclose(x - np.append(start, np.zeros(n)), theirs, rtol=3e-3)  # its loops give a little

    @pytest.mark.parametrize(("name", "make"), [("four-bar", four_bar_oracle), ("five-bar", five_bar_oracle)])
    def test_lagrange_in_the_motor_angles_says_the_same(self, robots, name, make):
        robot = robots[name]
        q, dq, ddq = states(robot, n=15)
        oracle = make(robot)
        np.testing.assert_allclose(
            di.inverse_dynamics(robot, q, dq, ddq, INERTIAL), oracle.torque(q, dq, ddq), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(di.mass_matrix(robot, q), oracle.mass(q), rtol=1e-9)

    @pytest.mark.parametrize("locked", [{}, {"q7": 0.1}, {"q2": -1.4, "q4": 0.3}])
    def test_a_parallelogram_is_the_same_either_way(self, locked, tmp_path):
        affine = di.load_robot("sr400")
        from dynident.robot.load import _BUNDLED

        given = yaml.safe_load((_BUNDLED / "sr400.yaml").read_text())
        del given["passive"]
        given["loops"][0] |= {"solve": ["q3", "q8"], "branch": {"q2": -1.5, "q3": 3.0, "q8": -1.4}}
        general = load(yaml_text(given), tmp_path)
        rng = np.random.default_rng(3)
        q = rng.uniform(-0.6, 0.6, (30, 6)) + [0, -1.5, 0, 0, 0, 0]
        affine, general = (robot.lock(**locked) for robot in (affine, general))
        moving = list(affine.moving)
        q, dq, ddq = q[:, moving], *rng.normal(size=(2, 30, len(moving)))
        assert general.joint_names == affine.joint_names
        np.testing.assert_allclose(
            di.regressor(general, q, dq, ddq), di.regressor(affine, q, dq, ddq), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(di.mass_matrix(general, q), di.mass_matrix(affine, q), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(di.dynamics.energy(general, q, dq), di.dynamics.energy(affine, q, dq), rtol=1e-9)
        if not locked:
            ours, theirs = (di.base_parameters(one, INERTIAL) for one in (general, affine))
            assert ours.names == theirs.names
            np.testing.assert_allclose(ours.K, theirs.K, atol=1e-6)

    def test_a_loop_is_the_same_wherever_it_is_cut(self, tmp_path):
        """A slider-crank, cut at the pin of its slider and at the slider's guide."""
        head = "convention: modified-dh\ngravity: [0, -9.81, 0]\nparameters:\n  plant:\n    links:" + LINKS
        crank = "joints:\n  - {name: crank}\n  - {name: rod, d: 0.2}\n"
        pin = """
  - {name: slider, antecedent: 0, sigma: 1, gamma: pi/2, alpha: pi/2}
loops:
  - {first: {link: 2, position: [0.5, 0, 0]}, second: {link: 3, rpy: [-pi/2, 0, 0]},
     solve: [q2, q3], branch: {q1: 0.5, q2: -0.7, q3: 0.65}}
"""
        guide = """
  - {name: slider, d: 0.5}
loops:
  - {first: {link: 3, rpy: [0, pi/2, 0]}, second: {link: base, rpy: [0, pi/2, 0]}, joint: prismatic,
     solve: [q2, q3], branch: {q1: 0.5, q2: -0.7, q3: 0.2}}
"""
        one, other = (load(head + crank + end, tmp_path) for end in (pin, guide))
        q, dq, ddq = states(one, spread=4.0)
        x = 0.2 * np.cos(q[:, 0]) + np.sqrt(0.25 - 0.04 * np.sin(q[:, 0]) ** 2)
        np.testing.assert_allclose(di.dynamics.tree_motion(one, q).q[:, 2], x, rtol=1e-13)
        ours, theirs = (di.inverse_dynamics(robot, q, dq, ddq, "rigid") for robot in (one, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert di.base_parameters(one, "rigid").n == di.base_parameters(other, "rigid").n == 6

    @pytest.mark.parametrize("cut", CUT_JOINTS)
    def test_derivatives_of_the_rows_equal_differences(self, cut):
        """Also where the loop is open, and whatever joints it has."""
        robot = di.robot.robot_from_urdf(random_urdf(6, tree=True))
        rng = np.random.default_rng(2)
        n = len(robot.joints)
        frames = [Transform(rpy_matrix(*rng.normal(size=3)), rng.normal(size=3)) for _ in range(2)]
        loop = Loop("open", (n - 1, BASE), (frames[0], frames[1]), cut)

        def rows(q, dq):
            placed = [
                JointState(1.0, 0.0, x, v) if joint.kind == "prismatic" else JointState(np.cos(x), np.sin(x), 0.0, v)
                for joint, x, v in zip(robot.joints, q, dq, strict=True)
            ]
            return loop_rows(loop, robot.joints, placed)

        q, dq = rng.normal(size=(2, n))
        found, h = rows(q, dq), 1e-4
        assert len(found.residual) == n_rows(loop)
        steps = [np.array(rows(q + k * h * dq, dq).residual) for k in (-2, -1, 0, 1, 2)]
        velocity = sum(np.array(column) * dq[joint] for joint, column in found.jacobian.items())
        np.testing.assert_allclose(velocity, (steps[0] - 8 * steps[1] + 8 * steps[3] - steps[4]) / (12 * h), atol=1e-9)
        bent = (-steps[0] + 16 * steps[1] - 30 * steps[2] + 16 * steps[3] - steps[4]) / (12 * h**2)
        np.testing.assert_allclose(found.drift, bent, atol=1e-5)


class TestClosure:
    def test_loops_close_to_rounding_with_exact_derivatives(self, robot):
        q, dq, ddq = states(robot)
        motion = di.dynamics.tree_motion(robot, q, dq, ddq)
        h = 1e-4
        steps = [di.dynamics.tree_motion(robot, q + k * h * dq, dq) for k in (-2, -1, 1, 2)]
        velocity = (steps[0].q - 8 * steps[1].q + 8 * steps[2].q - steps[3].q) / (12 * h)
        drift = (steps[0].dq - 8 * steps[1].dq + 8 * steps[2].dq - steps[3].dq) / (12 * h)
        np.testing.assert_allclose(np.einsum("nij,nj->ni", motion.G, dq), velocity, atol=1e-9)
        np.testing.assert_allclose(motion.dq, velocity, atol=1e-9)
        np.testing.assert_allclose(motion.drift, drift, atol=1e-7)
        np.testing.assert_allclose(motion.ddq, np.einsum("nij,nj->ni", motion.G, ddq) + motion.drift, atol=1e-12)
        np.testing.assert_allclose(motion.q[:, list(robot.active)], q, atol=0)

    def test_a_crank_turns_round_and_round(self, robots):
        t = np.linspace(0.0, 1.0, 2001)[:, None]
        motion = di.dynamics.tree_motion(robots["four-bar"], 1.0 + 6.0 * np.pi * t)
        assert np.abs(np.diff(motion.q, axis=0)).max() < 0.05
        np.testing.assert_allclose(motion.q[-1] - motion.q[0], [6 * np.pi, -6 * np.pi, 0.0], atol=1e-12)
        angle = motion.q[:, 0] + motion.q[:, 1]
        pin = 0.2 * np.exp(1j * motion.q[:, 0]) + 0.5 * np.exp(1j * angle)
        np.testing.assert_allclose(pin, 0.45 + 0.4 * np.exp(1j * motion.q[:, 2]), atol=2e-15)
        assert pin.imag.min() > 0.1  # always on the side of the branch

    def test_the_branch_chooses_the_way_of_assembly(self, robots, tmp_path):
        text = FOUR_BAR.replace("{q1: 1, q2: -0.5, q3: 1.3}", "{q1: -1, q2: 0.5, q3: -1.3}")
        mirrored = load(text, tmp_path)
        q = np.linspace(-4, 4, 100)[:, None]
        up, down = di.dynamics.tree_motion(robots["four-bar"], q).q, di.dynamics.tree_motion(mirrored, -q).q
        np.testing.assert_allclose(np.cos(up), np.cos(down), atol=1e-12)
        np.testing.assert_allclose(np.sin(up), -np.sin(down), atol=1e-12)
        assert mirrored.fingerprint != robots["four-bar"].fingerprint

    def test_a_pose_has_one_answer_wherever_it_stands(self, robots):
        robot = robots["five-bar"]
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (3000, 2))
        elbow = 0.25 + 0.28 * np.exp(1j * q[:, 1]) - 0.3 * np.exp(1j * q[:, 0])
        inside = (np.abs(elbow) < 0.85 - 1e-3) & (np.abs(elbow) > 0.05 + 1e-3)
        assert 0 < np.count_nonzero(~inside) < 100
        assert ((assembly(robot).pivots(q.T) > 0.0) == inside).all()
        q = q[inside]
        motion = di.dynamics.tree_motion(robot, q)
        alone = di.dynamics.tree_motion(robot, np.concatenate([q[::-1][:50], q[:1] + 2 * np.pi]))
        np.testing.assert_allclose(np.exp(1j * alone.q[:50]), np.exp(1j * motion.q[::-1][:50]), atol=1e-12)
        np.testing.assert_allclose(np.exp(1j * alone.q[-1]), np.exp(1j * motion.q[0]), atol=1e-12)
        tip = 0.45 * np.exp(1j * (motion.q[:, 0] + motion.q[:, 1]))
        assert (np.imag(tip * np.conj(elbow[inside])) > 0).all()  # the tip is on one side of the elbows everywhere

    def test_poses_out_of_reach_are_named(self, tmp_path):
        robot = load(
            FOUR_BAR.replace("crank: 0.2", "crank: 0.5").replace("q2: -0.5", "q2: -1.3").replace("q3: 1.3", "q3: 0.7"),
            tmp_path,
        )
        q = np.array([[1.0], [0.9], [3.0]])
        with pytest.raises(di.InputError, match=r"loop 4-5: cannot be closed at sample 2 \(q1 = 3\).*ends at q1 = "):
            di.inverse_dynamics(robot, q, q, q)
        with pytest.raises(di.InputError, match="cannot be closed at sample 2"):
            di.accumulate(robot, q, q, q, q)
        assert di.base_parameters(robot, "rigid").n == 8  # decided where the loop can be closed

    def test_singular_poses_are_named(self, tmp_path):
        text = FOUR_BAR.replace("coupler: 0.5, rocker: 0.4, ground: 0.45", "coupler: 0.5, rocker: 0.2, ground: 0.5")
        robot = load(text.replace("q2: -0.5, q3: 1.3", "q2: -1, q3: 1"), tmp_path)
        np.testing.assert_allclose(di.dynamics.tree_motion(robot, [[2.0]]).q, [[2.0, -2.0, 2.0]], atol=1e-12)
        with pytest.raises(di.SingularError, match=r"loop 4-5: singular at sample 1 \(q1 = 0\)"):
            di.mass_matrix(robot, [[1.0], [0.0]])

    def test_a_jump_to_another_way_of_assembly_is_seen(self, robots):
        found_by = assembly(robots["four-bar"])
        q = np.linspace(0.0, 1.0, 30)[None]
        found = found_by._found(q)
        assert not found_by._jumps(q, found).any()
        found.s[:, 17:] += 0.6  # as if the rest had been solved otherwise
        assert np.flatnonzero(found_by._jumps(q, found)).tolist() == [17]

    def test_numbers_that_are_not_finite_are_named(self, robots):
        q, dq, ddq = states(robots["four-bar"])
        q[7] = np.nan
        for function in (di.regressor, di.inverse_dynamics):
            with pytest.raises(di.InputError, match="q is nan at sample 7"):
                function(robots["four-bar"], q, dq, ddq)
        with pytest.raises(di.InputError, match="q is nan at sample 7"):
            di.accumulate(robots["four-bar"], q, dq, ddq, ddq)


class TestEverythingElse:
    def test_the_equations_fit_together(self, robot):
        q, dq, ddq = states(robot)
        tau = di.inverse_dynamics(robot, q, dq, ddq)
        np.testing.assert_allclose(di.regressor(robot, q, dq, ddq) @ di.parameters(robot), tau, atol=1e-12)
        np.testing.assert_allclose(di.forward_dynamics(robot, q, dq, tau), ddq, atol=1e-9)
        M = di.mass_matrix(robot, q)
        assert (np.linalg.eigvalsh(M) > 0.0).all()
        np.testing.assert_allclose(M, np.swapaxes(M, 1, 2), atol=0)
        kinetic = di.dynamics.energy_regressor(robot, q, dq, INERTIAL, "kinetic") @ di.parameters(robot, INERTIAL)
        np.testing.assert_allclose(0.5 * np.einsum("ni,nij,nj->n", dq, M, dq), kinetic, rtol=1e-12)
        parts = di.gravity_torque(robot, q) + di.coriolis_torque(robot, q, dq) + np.einsum("nij,nj->ni", M, ddq)
        np.testing.assert_allclose(parts, di.inverse_dynamics(robot, q, dq, ddq, INERTIAL), atol=1e-12)

    def test_power_is_the_change_of_energy(self, robot):
        t = np.linspace(0.0, 1.0, 4001)[:, None]
        w = np.arange(2, 2 + len(robot.joint_names))
        q = robot.closure.reference + 0.4 * np.sin(w * t)
        dq, ddq = 0.4 * w * np.cos(w * t), -0.4 * w**2 * np.sin(w * t)
        power = (di.inverse_dynamics(robot, q, dq, ddq, INERTIAL) * dq).sum(1)
        H, h = di.dynamics.energy(robot, q, dq, INERTIAL), 1.0 / 4000
        slope = (H[:-4] - 8 * H[1:-3] + 8 * H[3:-1] - H[4:]) / (12 * h)
        np.testing.assert_allclose(slope, power[2:-2], atol=1e-6 * np.abs(power).max())

    def test_compiled_kernels_agree(self, robot, monkeypatch):
        q, dq, ddq = states(robot)
        monkeypatch.setenv("DYNIDENT_BACKEND", "numpy")
        plain = di.regressor(robot, q, dq, ddq), di.inverse_dynamics(robot, q, dq, ddq)
        monkeypatch.setenv("DYNIDENT_BACKEND", "llvm")
        np.testing.assert_allclose(di.regressor(robot, q, dq, ddq), plain[0], atol=1e-11)
        np.testing.assert_allclose(di.inverse_dynamics(robot, q, dq, ddq), plain[1], atol=1e-11)

    def test_a_locked_motor_leaves_a_loop_with_one(self, robots):
        robot = robots["five-bar"]
        q, dq, ddq = states(robot)
        q[:, 1], dq[:, 1], ddq[:, 1] = 1.3, 0.0, 0.0
        locked = robot.lock(q3=1.3)
        np.testing.assert_allclose(
            di.inverse_dynamics(locked, q[:, :1], dq[:, :1], ddq[:, :1]),
            di.inverse_dynamics(robot, q, dq, ddq)[:, :1],
            atol=1e-12,
        )
        assert di.base_parameters(locked, "rigid").n < di.base_parameters(robot, "rigid").n

    def test_passive_joints_may_rub(self, tmp_path):
        text = FOUR_BAR + "elements: [{label: p, velocity: q3 - q1, carries: [Fv, Fc]}]\n"
        robot = load(text.replace("Fc: {1: 0.3}", "Fc: {1: 0.3, p: 0.2}"), tmp_path)
        q, dq, ddq = states(robot)
        motion = di.dynamics.tree_motion(robot, q, dq)
        share = motion.G[:, 2, 0] - 1.0
        W = di.regressor(robot, q, dq, ddq, "Fv,Fc")[:, 0]
        names = [column.name for column in di.columns(robot, "Fv,Fc")]
        np.testing.assert_allclose(W[:, names.index("Fvp")], share**2 * dq[:, 0], atol=1e-12)
        np.testing.assert_allclose(W[:, names.index("Fcp")], share * np.sign(share * dq[:, 0]), atol=1e-12)
        again = robot_from_data(yaml.safe_load(yaml_text(robot_to_data(robot))), "test")
        assert again.fingerprint == robot.fingerprint
        np.testing.assert_array_equal(di.regressor(again, q, dq, ddq), di.regressor(robot, q, dq, ddq))

    def test_robots_survive_storage(self, robot):
        again = robot_from_data(yaml.safe_load(yaml_text(robot_to_data(robot))), "test")
        assert again.fingerprint == robot.fingerprint
        assert again.closure.loops[0].name == robot.closure.loops[0].name
        data = robot_to_data(robot)
        data["closure"]["branch"][0] += 0.1
        with pytest.raises(di.RobotFileError, match="checksum"):
            robot_from_data(data, "test")
        del data["closure"]["solved"]
        with pytest.raises(di.RobotFileError, match="closure solved: is missing"):
            robot_from_data(data, "test")

    def test_inspect_shows_the_loop(self, inspect, tmp_path, capsys, monkeypatch):
        load(FOUR_BAR, tmp_path)
        answer = inspect(str(tmp_path / "robot.yaml"))
        assert answer["loops"] == ["4-5"]
        assert answer["counts"]["base"] == 8
        monkeypatch.setenv("COLUMNS", "80")
        assert main(["inspect", str(tmp_path / "robot.yaml")]) == 0
        page = capsys.readouterr().out
        assert "solved from" in page
        assert max(len(line) for line in page.splitlines()) <= 80


class TestIdentification:
    def test_accumulated_data_gives_the_base_parameters_back(self, robot):
        q, dq, ddq = states(robot, n=300)
        base = di.base_parameters(robot)
        tau = di.inverse_dynamics(robot, q, dq, ddq)
        for options in ({}, {"segment": 70}, {"extra": {"known": np.ones_like(tau)}}):
            solution = di.accumulate(robot, q, dq, ddq, tau, **options).solve()
            np.testing.assert_allclose(solution.values[: base.n], base.base_values(), atol=1e-8)

    def test_a_log_gives_them_back_within_their_deviations(self, robots):
        robot = robots["four-bar"]
        w = 2.0 * np.pi * np.array([0.3, 0.7, 1.1])

        def motion(t):
            t = np.asarray(t)[:, None]
            a = np.array([0.9, 0.5, 0.3])
            q = 2.5 * t + (a * np.sin(w * t)).sum(1, keepdims=True)  # round and round
            dq = 2.5 + (a * w * np.cos(w * t)).sum(1, keepdims=True)
            return q, dq, -(a * w**2 * np.sin(w * t)).sum(1, keepdims=True)

        log = exact_log(robot, motion, np.arange(4000) / 200.0)
        rng = np.random.default_rng(1)
        tau = log.channels["tau1"] + 0.05 * rng.normal(size=4000)
        noisy = di.Log("noisy", "noisy", log.time, {**log.channels, "tau1": tau})
        estimate = di.identify(robot, noisy, terms="rigid,Ia,Fv,Fc(0.02),Fo")
        truth = estimate.base.base_values()
        assert estimate.rank == 11
        assert np.abs((estimate.beta - truth) / estimate.std).max() < 4.0
        assert estimate["ZZR1"] == pytest.approx(truth[0], rel=0.05)
        assert di.validate(estimate, log).relative_error < 0.01
