"""Trajectories by property: derivatives against differences, rest at the ends, joins, files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.errors import InputError, UnknownNameError
from dynident.motion.fourier import rest_basis
from dynident.motion.point_to_point import LAWS, peaks

POINTS = np.array([[0.0, 1.0], [0.5, -0.2], [0.5, 0.7], [-1.0, 0.7]])
NAMES = ("shoulder", "elbow")


def legs(law, **more):
    return di.trajectories.PointToPoint(
        points=POINTS, durations=[1.2, 0.7, 0.9], rests=[0.1, 0.3, 0.0, 0.2], law=law, **more
    )


def series(length=10.0, frequency=0.1, harmonics=5, seed=0):
    a, b = np.random.default_rng(seed).normal(size=(2, harmonics, 2)) * 0.3
    return di.trajectories.Fourier.at_rest([0.2, -0.4], a, b, frequency=frequency, length=length, joints=NAMES)


def sinusoid():
    return di.trajectories.Sinusoid(start=[0.1, 0.2], amplitude=[1.0, -0.5], frequency=[1.0, 0.7], length=1.5)


def locked():
    inner = di.trajectories.PointToPoint(points=[[0.0], [1.0]], durations=[0.8], joints=("elbow",))
    return di.trajectories.Locked(joints=NAMES, positions={"shoulder": 0.3}, motion=inner)


def sequence():
    return di.trajectories.Sequence.connected(
        [legs("quintic"), series(), locked()], velocity=[2.0, 1.0], acceleration=5.0
    )


ALL = {law: (lambda law=law: legs(law)) for law in LAWS} | {
    "fourier": series,
    "fourier of broken periods": lambda: series(length=7.3),
    "sinusoid": sinusoid,
    "step": lambda: di.trajectories.Step(start=[0.0, 1.0], stop=[1.0, 1.0], at=0.3, length=1.0),
    "locked": locked,
    "sequence": sequence,
}


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_derivatives_are_those_of_differences(make):
    motion, h = make(), 1e-5
    t = np.random.default_rng(1).uniform(2 * h, motion.duration - 2 * h, 400)
    q, dq, ddq = motion.sample(t)
    (before, dbefore, _), (after, dafter, _) = motion.sample(t - h), motion.sample(t + h)
    # Where the acceleration jumps (or the position, in a step) a difference across the jump says nothing.
    ahead = np.abs(motion.sample(t + h)[2] - motion.sample(t - h)[2]).max(1)
    smooth = (ahead < 0.05) & (np.abs(after - before).max(1) < 0.1)
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(((after - before) / (2 * h))[smooth], dq[smooth], atol=1e-7)
    np.testing.assert_allclose(((dafter - dbefore) / (2 * h))[smooth], ddq[smooth], atol=1e-5)
    assert q.shape == dq.shape == ddq.shape == (400, 2)


@pytest.mark.parametrize("name", ["quintic", "cycloid", "fourier", "fourier of broken periods", "sequence"])
def test_at_rest_at_both_ends(name):
    motion = ALL[name]()
    _, dq, ddq = motion.sample([0.0, motion.duration])
    assert np.abs(dq).max() < 1e-12
    assert np.abs(ddq).max() < 1e-11
    assert np.abs(motion.sample(np.linspace(0, motion.duration, 50))[1]).max() > 0.1


@pytest.mark.parametrize("name", ["cubic", "trapezoid", "sinusoid"])
def test_at_rest_in_velocity_only(name):
    motion = ALL[name]()
    assert np.abs(motion.sample(0.0)[1]).max() < 1e-12
    assert np.abs(motion.sample(0.11 if name != "sinusoid" else 0.0)[2]).max() > 0.5


@pytest.mark.parametrize("make", [m for name, m in ALL.items() if name != "step"], ids=[n for n in ALL if n != "step"])
def test_position_and_velocity_are_continuous(make):
    motion = make()
    t = np.linspace(-0.1, motion.duration + 0.1, 20001)
    q, dq, ddq = motion.sample(t)
    step = t[1] - t[0]
    assert np.abs(np.diff(q, axis=0)).max() <= np.abs(dq).max() * step * 1.001 + 1e-12
    inside = (t > 0) & (t < motion.duration)  # a sinusoid may be cut off in full motion
    assert np.abs(np.diff(dq[inside], axis=0)).max() <= np.abs(ddq).max() * step * 1.001 + 1e-12


def test_the_points_are_reached_and_held():
    motion = legs("quintic")
    q, dq, _ = motion.sample([0.05, 0.1, 1.3, 1.5, 1.6, 2.3, 3.2, 3.4])
    np.testing.assert_allclose(q, POINTS[[0, 0, 1, 1, 1, 2, 3, 3]], atol=1e-12)
    assert np.abs(dq).max() < 1e-12
    assert motion.duration == pytest.approx(3.4)


@pytest.mark.parametrize("law", LAWS)
def test_the_fastest_motion_touches_its_limits(law):
    motion = di.trajectories.PointToPoint.within(
        [[0.0, 0.0], [2.0, 0.3]], velocity=1.5, acceleration=[4.0, 9.0], law=law
    )
    _, dq, ddq = motion.sample(np.linspace(0, motion.duration, 20001))
    shares = np.abs(dq).max(0) / 1.5, np.abs(ddq).max(0) / [4.0, 9.0]
    assert max(shares[0].max(), shares[1].max()) == pytest.approx(1.0, abs=1e-4)
    fast, strong = peaks(law, 1 / 3)
    s = np.linspace(0.0, 1.0, 100001)
    assert LAWS[law](s, 1 / 3)[1].max() == pytest.approx(fast, rel=1e-8)
    assert np.abs(LAWS[law](s, 1 / 3)[2]).max() == pytest.approx(strong, rel=1e-8)


def test_kims_cubic():
    motion = di.trajectories.PointToPoint(points=np.radians([[0.0], [30.0]]), durations=[0.3], law="cubic")
    _, dq, ddq = motion.sample([0.0, 0.15])
    assert np.degrees(dq[1, 0]) == pytest.approx(150.0)
    assert np.degrees(ddq[0, 0]) == pytest.approx(2000.0)


def test_khoslas_sinusoid_gives_the_papers_torque():
    robot = di.load_robot("cylindrical")
    size = [np.pi / 2, 0.5, 0.5]
    motion = di.trajectories.Sinusoid(start=np.zeros(3), amplitude=size, frequency=np.ones(3), length=1.0)
    values = {"MZ3": 1.25, "M3": 2.5, "M2": 5.0, "ZZ1": 2.5}
    tau = di.inverse_dynamics(robot, *motion.sample(0.2), terms="rigid", values=values)[0]
    np.testing.assert_allclose(tau, (52.3907, 96.4491, -29.4215), atol=1e-4)


def test_a_series_that_cannot_rest_says_what_to_do():
    with pytest.raises(InputError, match="at least 2 harmonics"):
        rest_basis(1, 0.1, 10.0)
    with pytest.raises(InputError, match="whole periods"):
        rest_basis(2, 0.1, 7.3)
    assert rest_basis(5, 0.1, 10.0).shape == (10, 8)
    assert rest_basis(5, 0.1, 7.3).shape == (10, 6)


def test_outside_the_motion_the_joints_hold():
    motion = sinusoid()
    q, dq, ddq = motion.sample([-1.0, 9.0])
    np.testing.assert_array_equal(q, motion.sample([0.0, 1.5])[0])
    assert not dq.any()
    assert not ddq.any()


def test_locked_joints_stand_still_and_joins_are_checked():
    q, dq, _ = locked().sample(np.linspace(0, 0.8, 9))
    assert np.all(q[:, 0] == 0.3)
    assert not dq[:, 0].any()
    with pytest.raises(InputError, match=r"part 2 begins .* elbow"):
        di.trajectories.Sequence(parts=(locked(), locked()))
    with pytest.raises(UnknownNameError, match="did you mean 'elbow'"):
        di.trajectories.Locked(joints=NAMES, positions={"elbo": 0.0}, motion=locked().motion)
    with pytest.raises(InputError, match="elbow are left to move"):
        di.trajectories.Locked(joints=NAMES, positions={"shoulder": 0.0}, motion=series())


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_yaml_round_trip_is_exact(make, tmp_path):
    motion, path = make(), tmp_path / "motion.yaml"
    di.trajectories.save_trajectory(motion, path, notes={"criterion": 1.5})
    again = di.load_trajectory(path)
    assert again == motion
    assert hash(again) == hash(motion)
    assert again.joints == motion.joints
    t = np.linspace(0, motion.duration, 77)
    for mine, read in zip(motion.sample(t), again.sample(t), strict=True):
        np.testing.assert_array_equal(mine, read)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="other"), "format is 'other'"),
        (lambda d: d.update(extra=1), "unknown key 'extra'"),
        (lambda d: d.update(duration=3.0), "duration is 3"),
        (lambda d: d.update(duration=[10.0, 10.0]), r"duration is \[10.0, 10.0\]"),
        (lambda d: d.update(duration=None), "duration is None"),
        (lambda d: d["motion"].update(length=[10.0, 10.0]), r"motion.length is \[10.0, 10.0\]; expected a number"),
        (lambda d: d.pop("motion"), "must be a mapping with the key 'kind'"),
        (lambda d: d["motion"].update(kind="spline"), "unknown kind 'spline'"),
        (lambda d: d["motion"].update(harmonics=5), "unknown key 'harmonics'"),
        (lambda d: d["motion"].pop("sine"), "needs the key 'sine'"),
        (lambda d: d["motion"].update(frequency="0.1 Hz"), r"motion.frequency is '0.1 Hz'"),
        (lambda d: d["motion"].update(frequency=-1.0), "frequency is -1"),
        (lambda d: d["motion"].update(offset=[1.0]), r"shape \(n_harmonics, 1\)"),
        (lambda d: d["motion"].update(joints=["one"]), "1 joints are named"),
        (lambda d: d["motion"]["sine"].pop(), "4 harmonics"),
    ],
)
def test_bad_files_name_the_place(change, message, tmp_path):
    path = tmp_path / "motion.yaml"
    di.trajectories.save_trajectory(series(), path)
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(di.trajectories.MotionFileError, match=message):
        di.load_trajectory(path)


@pytest.mark.parametrize(
    ("positions", "message"),
    [("[0.2]", "must be a mapping of joint names"), ("{a: [0.2, 0.3]}", r"positions.a is \[0.2, 0.3\]")],
)
def test_bad_positions_of_locked_joints_name_the_place(positions, message, tmp_path):
    path = tmp_path / "motion.yaml"
    moving = "{kind: point to point, points: [[0.0], [1.0]], durations: [1.0]}"
    motion = f"{{kind: locked, joints: [a, b], positions: {positions}, motion: {moving}}}"
    path.write_text(f"format: dynident motion 1\nmotion: {motion}\n")
    with pytest.raises(di.trajectories.MotionFileError, match=message):
        di.load_trajectory(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(di.trajectories.MotionFileError, match=r"nothing.yaml: no such file"):
        di.load_trajectory(tmp_path / "nothing.yaml")


def test_csv_and_ros(tmp_path):
    motion = series()
    di.trajectories.write_csv(motion, tmp_path / "m.csv", 50.0)
    lines = (tmp_path / "m.csv").read_text().splitlines()
    assert lines[0] == "t,q1,q2,dq1,dq2,ddq1,ddq2"
    rows = np.loadtxt(lines[1:], delimiter=",")
    assert len(rows) == 501
    assert rows[-1, 0] == 10.0
    np.testing.assert_array_equal(rows[:, 1:], np.hstack(motion.sample(rows[:, 0])))
    message = json.loads(json.dumps(di.trajectories.ros_joint_trajectory(motion, 20.0)))
    assert message["joint_names"] == list(NAMES)
    assert message["points"][33]["time_from_start"] == {"sec": 1, "nanosec": 650000000}
    assert len(message["points"]) == 201
    np.testing.assert_allclose(message["points"][33]["positions"], motion.sample(1.65)[0][0])
    with pytest.raises(InputError, match="names its joints"):
        di.trajectories.ros_joint_trajectory(sinusoid(), 20.0)


def test_a_ros_message_ends_at_rest_whatever_the_rate():
    motion = di.trajectories.PointToPoint(points=[[0.0], [1.0]], durations=[0.777], joints=("a",))
    points = di.trajectories.ros_joint_trajectory(motion, 100.0)["points"]
    assert [point["time_from_start"]["nanosec"] for point in points[-2:]] == [770000000, 777000000]
    assert points[-1]["positions"] == [1.0]
    assert points[-1]["velocities"] == [0.0]
    assert len(di.trajectories.ros_joint_trajectory(motion, 1000.0)["points"]) == 778
