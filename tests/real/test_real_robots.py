"""Robot files of real machines; skipped where the data is absent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from tests.robots import PinocchioOracle

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
COUNTS = {"franka_panda": 43, "kuka_lwr4": 43, "staubli_tx40": 36, "ur10e": 36, "tiago_arm": 44}


@pytest.fixture(params=COUNTS)
def urdf(request):
    path = DATA / request.param / "robot.urdf"
    if not path.exists():
        pytest.skip(f"real data not found at {DATA}; set DYNIDENT_DATA")
    return path


def test_structure_and_dynamics_of_a_real_urdf(urdf):
    robot = di.load_robot(urdf)
    assert di.base_parameters(robot, "rigid").n == COUNTS[urdf.parent.name]
    oracle = PinocchioOracle(urdf.read_text(), robot.joint_names)
    rng = np.random.default_rng(0)
    n = len(robot.joint_names)
    q, dq, ddq = rng.normal(size=(3, 10, n))
    assert oracle.model.nv == n
    if oracle.model.nq == n:  # continuous joints have another layout of q in Pinocchio
        theirs = oracle.torque(q, dq, ddq)
        ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid")
        assert np.linalg.norm(ours - theirs) < 1e-9 * np.linalg.norm(theirs)
    assert isinstance(oracle.model, pin.Model)


def test_bundled_tx40_is_the_arm_of_the_data():
    path = DATA / "staubli_tx40" / "robot.urdf"
    if not path.exists():
        pytest.skip(f"real data not found at {DATA}; set DYNIDENT_DATA")
    bundled, file = di.load_robot("tx40"), di.load_robot(path)
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 10, 6))
    # Same frames, so the same standard parameters must give the same joint torques.
    values = file.link_parameters().ravel()
    ours = di.joint_torque(bundled, di.inverse_dynamics(bundled, q, dq, ddq, "rigid", values))
    theirs = di.inverse_dynamics(file, q, dq, ddq, "rigid", values)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)
