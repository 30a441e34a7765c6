from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st

from dynident.robot import parameters as par
from dynident.robot.rotations import rpy_matrix, z_to


def random_body(seed):
    rng = np.random.default_rng(seed)
    mass, center = rng.uniform(0.1, 10), rng.normal(size=3) * 0.3
    root = rng.normal(size=(3, 3)) * 0.2
    second = root @ root.T + 1e-3 * np.eye(3)
    return mass, center, mass * (np.trace(second) * np.eye(3) - second)


@pytest.mark.parametrize("seed", range(5))
def test_orders_agree_with_pinocchio(seed):
    mass, center, inertia = random_body(seed)
    theirs = pin.Inertia(mass, center, inertia).toDynamicParameters()
    ours = par.from_classical(mass, center, inertia)
    np.testing.assert_allclose(par.to_pinocchio(ours), theirs, atol=1e-13)
    np.testing.assert_allclose(par.from_pinocchio(theirs), ours, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_mujoco_reads_what_we_write(seed):
    mass, center, inertia = random_body(seed)
    m, pos, full = par.to_mujoco(par.from_classical(mass, center, inertia))
    xml = (
        f'<mujoco><worldbody><body><joint/><inertial mass="{m}" pos="{" ".join(map(str, pos))}" '
        f'fullinertia="{" ".join(map(str, full))}"/></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(xml)
    np.testing.assert_allclose(np.sort(model.body_inertia[1]), np.linalg.eigvalsh(inertia), rtol=1e-9)
    np.testing.assert_allclose(par.from_mujoco(m, pos, full), par.from_classical(mass, center, inertia), atol=1e-13)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_conversions_come_back(seed):
    mass, center, inertia = random_body(seed)
    chi = par.from_classical(mass, center, inertia)
    m, c, i = par.to_classical(chi)
    np.testing.assert_allclose(m, mass)
    np.testing.assert_allclose(c, center, atol=1e-12)
    np.testing.assert_allclose(i, inertia, atol=1e-11)
    np.testing.assert_allclose(par.from_urdf(*_urdf(par.to_urdf(chi))), chi, atol=1e-11)


def _urdf(parts):
    mass, center, inertia = parts
    return mass, center, np.eye(3), inertia


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_change_of_frame_agrees_with_pinocchio(seed):
    mass, center, inertia = random_body(seed)
    rng = np.random.default_rng(seed + 1)
    placement = pin.SE3.Random()
    placement = pin.SE3(rpy_matrix(*rng.normal(size=3)), rng.normal(size=3))
    moved = placement.act(pin.Inertia(mass, center, inertia))
    ours = par.in_frame(par.from_classical(mass, center, inertia), placement.rotation, placement.translation)
    np.testing.assert_allclose(par.to_pinocchio(ours), moved.toDynamicParameters(), atol=1e-10)


def test_batches_convert_like_single_links():
    links = [par.from_classical(*random_body(seed)) for seed in range(4)]
    masses, centers, inertias = par.to_classical(np.array(links))
    for i, chi in enumerate(links):
        m, c, tensor = par.to_classical(chi)
        np.testing.assert_allclose(masses[i], m)
        np.testing.assert_allclose(centers[i], c)
        np.testing.assert_allclose(inertias[i], tensor)


def test_a_massless_link_has_no_centre():
    mass, center, inertia = par.to_classical(np.zeros(10))
    assert mass == 0.0
    assert not center.any()
    assert not inertia.any()


@given(st.tuples(*[st.floats(-1, 1)] * 3))
def test_axis_alignment_is_a_rotation(axis):
    vector = np.array(axis)
    length = np.linalg.norm(vector)
    if length < 1e-3:
        return
    R = z_to(vector / length)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(R[:, 2], vector / length, atol=1e-12)


@pytest.mark.parametrize("axis", [s * np.eye(3)[i] for i in range(3) for s in (1, -1)])
def test_aligned_axes_give_signed_permutations(axis):
    R = z_to(axis)
    assert set(np.unique(np.abs(R))) == {0.0, 1.0}
    assert np.linalg.det(R) == 1.0


def test_rpy_agrees_with_pinocchio():
    angles = np.random.default_rng(0).uniform(-3, 3, 3)
    np.testing.assert_allclose(rpy_matrix(*angles), pin.rpy.rpyToMatrix(*angles), atol=1e-15)
