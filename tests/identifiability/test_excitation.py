from __future__ import annotations

import numpy as np
import pytest

import dynident as di


def cycloid(n_joints, n=500, duration=5.0, angle=np.pi / 3):
    """Abhishek et al., eq. (12), the same for every joint."""
    t = np.linspace(0, duration, n)
    w = 2 * np.pi / duration
    q = angle / duration * (t - np.sin(w * t) / w)
    dq = angle / duration * (1 - np.cos(w * t))
    ddq = angle / duration * w * np.sin(w * t)
    return [np.tile(x[:, None], (1, n_joints)) for x in (q, dq, ddq)]


@pytest.fixture
def planar():
    return di.base_parameters(di.load_robot("kr5-planar"), "rigid")


def test_trajectory_12_has_condition_310(planar):
    quality = di.excitation(planar, *cycloid(3))
    assert quality.raw_condition == pytest.approx(310, abs=2)
    assert quality.persistent
    assert quality.rank == 9
    assert quality.n_rows == 1500


def test_condition_numbers_are_those_of_the_full_matrix(planar):
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(3, 9000, 3))
    W = planar.regressor(*motion).reshape(-1, 9)
    quality = di.excitation(planar, *motion)
    assert quality.raw_condition == pytest.approx(np.linalg.cond(W), rel=1e-9)
    assert quality.condition == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-9)


def test_a_motion_at_rest_is_not_exciting(planar):
    q = np.random.default_rng(1).normal(size=(50, 3))
    quality = di.excitation(planar, q, 0 * q, 0 * q)
    assert not quality.persistent
    assert quality.condition == np.inf
    assert set(quality.unexcited) == {"ZZR1", "ZZR2", "ZZ3"}
    assert quality.rank == 6


def test_weak_directions_name_what_cannot_be_distinguished():
    """Viscous friction and Coulomb friction look alike when the velocity never changes sign or size."""
    base = di.base_parameters(di.load_robot("pendulum-1"), "rigid,Fv,Fc")
    t = np.linspace(0, 10, 400)[:, None]
    dq = 1.0 + 1e-3 * np.sin(5 * t)
    quality = di.excitation(base, t, dq, 5e-3 * np.cos(5 * t))
    weakest = quality.weak[0]
    assert {name for name, _ in weakest.parts[:2]} == {"Fv1", "Fc1"}
    assert weakest.strength < 1e-2
    assert "Fv1" in str(weakest)


def test_rest_does_not_count_beside_dry_friction():
    """Trajectory (12) turns one way and rests at both ends: the sign 0 there is no second direction."""
    arm, motion = di.load_robot("kr5-planar"), cycloid(3)
    quality = di.excitation(di.base_parameters(arm, "rigid,Fv,Fc,Fo"), *motion)
    assert (quality.rank, len(quality.names), quality.persistent) == (15, 18, False)
    assert quality.n_rows == 3 * int(np.sum(motion[1][:, 0] > 0.01))
    assert di.excitation(di.base_parameters(arm, "rigid,Fv,Fc,Fo"), *motion, rest_velocity=0.0).rank == 15
    assert di.excitation(di.base_parameters(arm, "rigid,Fv,Fo"), *motion).n_rows == 1500  # nothing sticks


def test_only_the_joint_at_rest_is_left_out():
    base = di.base_parameters(di.load_robot("pendulum-2"), "rigid,Fv,Fc")
    t = np.linspace(0.1, 10, 300)
    still = [np.column_stack([x, 0 * x]) for x in (np.sin(t), np.cos(t), -np.sin(t))]
    quality = di.excitation(base, *still)
    assert {"Fv2", "Fc2"} <= set(quality.unexcited)
    assert quality.n_rows == int(np.sum(np.abs(np.cos(t)) > 0.01))
    everywhere = di.excitation(base, still[0], 0 * still[0], 0 * still[0])
    assert (everywhere.rank, everywhere.n_rows, everywhere.condition) == (0, 0, np.inf)
    with pytest.raises(di.InputError, match="rest_velocity is -1"):
        di.excitation(base, *still, rest_velocity=-1)


def test_no_samples_is_an_error(planar):
    with pytest.raises(di.InputError, match="no samples"):
        di.excitation(planar, *np.zeros((3, 0, 3)))
