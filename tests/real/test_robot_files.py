"""Robot files that others wrote; skipped where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.plant import SampledMotion

ROBOTS = Path(os.environ.get("DYNIDENT_ROBOTS", Path(__file__).parents[3] / "shared" / "robots"))
REFUSED = {  # for reasons that are true, by what the message must name
    "softfoot.xml": ["tendon 'tendon_1'", "spatial tendon around geom 'roll_heel_1'"],
    "stretch_3.xml": ["body 'link_head_pan' has no <inertial>", "link_head_pan_1.obj"],
}
pytestmark = pytest.mark.skipif(not ROBOTS.exists(), reason=f"robot files not found at {ROBOTS}")


def singular_values(robot):
    """Of the regressor of the rigid links, columns scaled to unit norm, without fixed ones and those of no effect."""
    n = len(robot.joint_names)
    q, dq, ddq = np.random.default_rng(3).normal(size=(3, 60, n)) * np.array([2.0, 3.0, 10.0])[:, None, None]
    free = [column.fixed is None for column in di.columns(robot, "rigid")]
    W = np.ascontiguousarray(di.regressor(robot, q, dq, ddq, "rigid")).reshape(60 * n, -1)[:, free]
    size = np.linalg.norm(W, axis=0)
    seen = size > 1e-10 * size.max()
    return np.linalg.svd(W[:, seen] / size[seen], compute_uv=False)


@pytest.mark.parametrize(("file", "count"), [("romeo.urdf", 351), ("solo12.urdf", 68), ("tidybot_base.xml", 4)])
def test_the_count_is_the_rank(file, count):
    robot = di.load_robot(ROBOTS / file)
    base, values = di.base_parameters(robot, "rigid"), singular_values(robot)
    assert values[count - 1] > 1e6 * np.append(values, 0.0)[count]  # no doubt
    assert base.n == count
    assert base.weakest > 1e-5
    assert base.warnings == ()


@pytest.mark.parametrize(
    "path", sorted(ROBOTS.glob("*.xml")) + sorted(ROBOTS.glob("*.urdf")), ids=lambda path: path.name
)
def test_every_file_loads_or_is_refused_for_a_true_reason(path):
    if path.name in REFUSED:
        with pytest.raises(di.RobotFileError) as caught:
            di.load_robot(path, fixed_base=True)
        assert all(word in str(caught.value) for word in REFUSED[path.name]), caught.value
        return
    robot = di.load_robot(path, fixed_base=True)
    assert len(robot.warnings) <= 3  # by kind, not by joint
    assert np.isfinite(di.inverse_dynamics(robot, *np.zeros((3, len(robot.joint_names))), "rigid")).all()


def hand_motion(robot, duration):
    limits = [robot.joints[j].limits for j in robot.active]
    lower, upper = np.array([(one.lower, one.upper) for one in limits]).T
    t, rng = np.arange(0.0, duration, 0.004), np.random.default_rng(0)
    waves = [np.sin(2.0 * np.pi * f * t[:, None] + rng.uniform(0.0, 6.0, len(lower))) for f in (0.5, 0.9, 1.3)]
    return SampledMotion(t, 0.5 * (lower + upper) + 0.125 * (upper - lower) * sum(waves))


@pytest.mark.parametrize(("controller", "within"), [("feedforward", 1e-3), ("computed-torque", 1e-3), ("pd", 0.3)])
def test_a_hand_follows_its_motion(controller, within):
    robot = di.load_robot(ROBOTS / "leap_right_hand.xml")
    run = di.simulate(robot, hand_motion(robot, 0.3), controller=controller)
    assert run.tracking.max() < within


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_a_hand_is_identified_within_its_deviations(seed):
    robot = di.load_robot(ROBOTS / "leap_right_hand.xml")
    fit = di.identify(robot, di.simulate(robot, hand_motion(robot, 6.0), seed=seed).log)
    apart = (fit.beta - fit.base.base_values()) / np.sqrt(np.diag(fit.covariance))
    assert np.sqrt(np.mean(apart**2)) < 1.3
    assert np.abs(apart).max() < 6.0


@pytest.mark.full
@pytest.mark.parametrize("file", ["2f85.xml", "talos_left_arm.urdf"])
def test_a_gripper_with_loops_and_an_arm_whose_hand_sticks_are_identified(file):
    """Their own motions: loops closed numerically, and an effort that the file's dry friction takes all of."""
    robot = di.load_robot(ROBOTS / file)
    motion = di.optimize_excitation(robot, starts=4, kicks=0, max_velocity=2.0)
    fit = di.identify(robot, di.simulate(robot, motion.trajectory).log)
    apart = (fit.beta - fit.base.base_values()) / np.sqrt(np.diag(fit.covariance))
    assert np.sqrt(np.mean(apart**2)) < 1.3
    good = [int(np.sum(one.relative_std < 0.15)) for one in (motion, fit)]
    assert abs(good[0] - good[1]) <= 0.2 * min(good)


def test_a_count_that_rounded_angles_decide_is_reported():
    base = di.base_parameters(di.load_robot(ROBOTS / "so_arm100.xml"), "rigid")
    assert base.n == 38
    assert "2 of the 38 base parameters" in base.warnings[0]
    assert "counts 36" in base.warnings[0]
