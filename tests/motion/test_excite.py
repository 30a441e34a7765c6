"""Exciting motions: inside their limits, at rest at the ends, better than chance, and as good as they promise."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.errors import InputError, UnknownNameError
from dynident.motion.excitation import series_of
from dynident.motion.geometry import LinkPoints
from dynident.motion.options import ExcitationOptions

QUICK = {"starts": 2, "kicks": 1, "iterations": 40, "duration": 5.0, "harmonics": 4}


@pytest.fixture(scope="module")
def arm():
    return di.load_robot("cmu-dd-arm-3")


@pytest.fixture(scope="module")
def motion(arm):
    return di.optimize_excitation(arm, **QUICK)


def check_limits(robot, motion, safety=0.95):
    """At 1 kHz, with nothing of the search: positions, velocities, torques, and rest at the ends."""
    t = np.linspace(0.0, motion.duration, round(1000 * motion.duration) + 1)
    q, dq, ddq = motion.trajectory.sample(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    for i, place in enumerate(robot.moving):
        limits = robot.joints[robot.active[place]].limits
        middle, half = (limits.lower + limits.upper) / 2, safety * (limits.upper - limits.lower) / 2
        assert np.abs(q[:, i] - middle).max() <= half
        assert np.abs(dq[:, i]).max() <= safety * limits.velocity
        assert np.abs(tau[:, i]).max() <= safety * limits.effort
    assert max(np.abs(dq[[0, -1]]).max(), np.abs(ddq[[0, -1]]).max()) < 1e-10
    assert min(motion.slack.values()) >= 0.0


@pytest.mark.parametrize("name", ["sr400", "tx40", "cylindrical"])
def test_loops_couplings_and_sliding_joints(name):
    robot = di.load_robot(name)
    found = di.optimize_excitation(robot, starts=1, kicks=0, iterations=20, duration=5.0)
    check_limits(robot, found)
    assert found.condition < 500.0
    assert found.trajectory.joints == robot.joint_names


def test_limits_are_respected_and_touched(arm, motion):
    check_limits(arm, motion)
    assert min(motion.slack.values()) < 0.01
    assert motion.value == motion.log_determinant
    quality = di.excitation(di.base_parameters(arm), *motion.trajectory.sample(motion.trajectory.times(100.0)))
    assert quality.persistent
    assert motion.condition == pytest.approx(quality.condition, rel=0.5)  # that one is not weighted


def test_much_better_than_chance(arm, motion):
    rng = np.random.default_rng(0)
    base = di.base_parameters(arm, "rigid,Ia,Fv,Fc(0.02),Fo")
    limits = [joint.limits for joint in arm.joints]
    noise = np.array([0.01 * limit.effort for limit in limits])
    best = -np.inf
    for _ in range(60):
        a, b = rng.normal(size=(2, 4, 3))
        chance = di.trajectories.Fourier.at_rest(np.zeros(3), a, b, frequency=0.2, length=5.0)
        q, dq, ddq = chance.sample(chance.times(100.0))
        share = max(
            max(np.abs(q[:, i]).max() / (0.95 * x.upper), np.abs(dq[:, i]).max() / (0.95 * x.velocity))
            for i, x in enumerate(limits)
        )
        W = base.regressor(q / share, dq / share, ddq / share) / noise[None, :, None]
        best = max(
            best, 2 * np.sum(np.log(np.linalg.svd(np.ascontiguousarray(W).reshape(-1, base.n), compute_uv=False)))
        )
    assert np.exp((motion.log_determinant - best) / base.n) > 1.3


def made_up_log(arm, motion, rate, seed=7):
    """A log of a motion with the noise that was assumed and encoders of 17 bits."""
    time = motion.trajectory.times(rate)
    q, dq, ddq = motion.trajectory.sample(time)
    tau = di.inverse_dynamics(arm, q, dq, ddq) + motion.noise * np.random.default_rng(seed).normal(size=q.shape)
    step = 2.0 * np.pi / 2**17
    kinds = ("q", np.round(q / step) * step), ("tau", tau)
    return di.Log("made up", "", time, {f"{kind}{i + 1}": x[:, i] for kind, x in kinds for i in range(3)})


def weighted_rows(arm, motion):
    """Rows of a whole motion, weighted as the reference says, with nothing of the search."""
    base = di.base_parameters(arm, "rigid,Ia,Fv,Fc(0.02),Fo")
    q, dq, ddq = motion.trajectory.sample(motion.trajectory.times(500.0))
    limits = [joint.limits for joint in arm.joints]
    rest = np.array([0.02 * limit.velocity for limit in limits])
    weight = np.sqrt(dq**2 / (dq**2 + rest**2)) / np.array([0.01 * limit.effort for limit in limits])
    return (base.regressor(q, dq, ddq) * weight[:, :, None]).reshape(-1, base.n)


def worst_interval(arm, motion):
    """The largest deviation beside its size."""
    W = weighted_rows(arm, motion)
    size = np.linalg.norm(W, axis=0)
    inverse = np.linalg.inv((W / size).T @ (W / size))
    return np.max(np.sqrt(np.diag(inverse)) / size / motion.sizes)


def test_each_criterion_wins_its_own_contest(arm, motion):
    for criterion, measure in (
        ("condition", lambda m: -m.condition),
        ("interval", lambda m: -worst_interval(arm, m)),
    ):
        other = di.optimize_excitation(arm, criterion=criterion, **QUICK)
        assert measure(other) > measure(motion)
        assert other.log_determinant < motion.log_determinant
        assert other.value == pytest.approx(-measure(other), rel=1e-3)
    smallest = di.optimize_excitation(arm, criterion="smallest", **QUICK)
    assert smallest.value > 0.0


def test_the_same_seed_gives_the_same_motion(arm):
    short = {**QUICK, "iterations": 5, "starts": 1}
    assert di.optimize_excitation(arm, **short).trajectory == di.optimize_excitation(arm, **short).trajectory
    assert di.optimize_excitation(arm, seed=1, **short).trajectory != di.optimize_excitation(arm, **short).trajectory


def noisy(robot, trajectory, sigma, seed=0):
    states = trajectory.sample(np.arange(0.0, trajectory.duration, 0.01))
    rng = np.random.default_rng(seed)
    tau = di.inverse_dynamics(robot, *states, "rigid,Ia,Fv,Fc(0.02),Fo") + sigma * rng.normal(size=states[0].shape)
    return di.accumulate(robot, *states, tau, "rigid,Ia,Fv,Fc(0.02),Fo")


@pytest.mark.parametrize("name", ["ur10e", "tx40"])
def test_the_forecast_is_what_a_simulated_log_gives(name):
    """Forecast and outcome: parameters below 15 % within a fifth, std alike, and no name for what is unknown."""
    robot = di.load_robot(name)
    found = di.optimize_excitation(robot, starts=2, kicks=0, iterations=20)
    fit = di.identify(robot, [di.simulate(robot, found.trajectory, seed=5).log])
    promised, came = (int(np.sum(one.relative_std < 0.15)) for one in (found, fit))
    assert abs(promised - came) <= 0.2 * min(promised, came)
    assert np.median(fit.std / found.std) == pytest.approx(1.0, abs=0.15)
    described = fit.base.base_values()
    np.testing.assert_array_equal(np.isnan(found.values), np.abs(described) < 1e-12)
    assert found.as_dict()["relative_std"][found.names[int(np.argmin(np.abs(described)))]] is None


def test_noise_is_stated_or_that_of_a_fit(arm):
    sigma = np.array([2.0, 1.0, 0.2])
    quick = {**QUICK, "starts": 1, "kicks": 0, "iterations": 10}
    stated = di.optimize_excitation(arm, noise=sigma, rate=200.0, **quick)
    np.testing.assert_array_equal(stated.noise, sigma)
    assert stated.rate == 200.0
    fit = di.identify(arm, [made_up_log(arm, stated, 200.0)], friction="basic")
    # The fit allows for friction beyond basic friction as well, which the forecast of the motion does not.
    assert np.median(fit.std / stated.std) == pytest.approx(1.0, abs=0.25)
    # White noise that leaves these residuals is the noise there was, whatever the rate.
    again = di.optimize_excitation(arm, noise=fit, rate=200.0, **quick)
    np.testing.assert_allclose(again.noise, sigma, rtol=0.2)
    faster = di.optimize_excitation(arm, noise=fit, **quick)
    np.testing.assert_allclose(faster.noise, again.noise * np.sqrt(500.0 / 200.0))
    with pytest.raises(InputError, match="the fit is of the joints joint1, joint2, joint3; it has no residual of"):
        di.optimize_excitation(di.load_robot("cylindrical"), noise=fit)


def test_a_description_without_values_has_a_forecast_in_units(arm):
    bare = dataclasses.replace(arm, values={"none": {}}, default_values="none")
    found = di.optimize_excitation(bare, **{**QUICK, "kicks": 0, "iterations": 10})
    assert np.isnan(found.relative_std).all()
    assert np.isfinite(found.std).all()


@pytest.mark.parametrize(
    ("options", "series"),
    [
        ({"duration": 4.0}, (0.25, 5)),
        ({"duration": 10.0}, (0.1, 5)),
        ({"duration": 16.0}, (1 / 16, 8)),
        ({"duration": 30.0}, (1 / 15, 10)),
        ({"duration": 3600.0}, (0.05, 10)),
        ({"duration": 30.0, "harmonics": 4}, (1 / 30, 4)),
        ({"duration": 30.0, "frequency": 0.1}, (0.1, 5)),
    ],
)
def test_a_motion_of_any_length_is_fast_enough(options, series):
    frequency, harmonics = series_of(ExcitationOptions(**options))
    assert (frequency, harmonics) == (pytest.approx(series[0]), series[1])
    if set(options) == {"duration"}:
        assert frequency * harmonics >= 0.5
        assert options["duration"] * frequency == pytest.approx(round(options["duration"] * frequency))


def test_a_long_motion_repeats_itself(arm):
    """Searched for over one period, it keeps its limits and rests at both ends of all; its log tells as much more."""
    quick = {"starts": 1, "kicks": 0, "iterations": 10, "frequency": 0.2, "harmonics": 4}
    found = di.optimize_excitation(arm, duration=160.0, **quick)
    check_limits(arm, found)
    W = weighted_rows(arm, found)
    assert found.log_determinant == pytest.approx(2.0 * np.sum(np.log(np.linalg.svd(W, compute_uv=False))), rel=1e-4)
    fit = di.identify(arm, [made_up_log(arm, found, 500.0)], friction="basic")
    assert np.median(fit.std / found.std) == pytest.approx(1.0, abs=0.15)  # 120 s predicted 160 s


def test_a_motion_too_short_for_identify_says_so(arm):
    found = di.optimize_excitation(arm, duration=0.2, starts=1, kicks=0, iterations=2)
    assert any("identify would not take a log of this motion" in words for words in found.warnings)
    assert np.isinf(found.std).all()


def test_a_data_set_is_extended_where_it_is_weakest(arm):
    sigma = np.array([2.0, 1.0, 0.2])
    poor = di.trajectories.Fourier.at_rest(np.zeros(3), 0.1 * np.eye(3), 0.3 * np.eye(3), frequency=0.2, length=5.0)
    known = noisy(arm, poor, sigma)
    found = di.optimize_excitation(arm, information=known, rest_velocity=0.0, **QUICK)
    assert found.criterion == "interval"
    assert found.before is not None
    np.testing.assert_allclose(found.before, known.solve().std, rtol=1e-6)
    assert np.all(found.std < found.before)
    assert (found.std / found.sizes).max() < 0.3 * (found.before / found.sizes).max()
    both = (known + noisy(arm, found.trajectory, sigma, seed=1)).solve()
    # All rows count in both; of a log, those near reversals do not, and the width of dry friction is open.
    assert np.all(found.std > 0.85 * both.std)
    assert np.median(found.std / both.std) < 1.5


def test_the_energy_model():
    robot = di.load_robot("pendulum-2")
    found = di.optimize_excitation(robot, model="energy", noise=0.01, **QUICK)
    check_limits(robot, found)
    assert np.isfinite(found.std).all()
    with pytest.raises(InputError, match="one number"):
        di.optimize_excitation(robot, model="energy", noise=[1.0, 2.0])


def test_start_pose_and_locked_joints(arm):
    start = {"joint1": 0.5, "q2": -0.3, "joint3": 1.0}
    found = di.optimize_excitation(arm, start=start, **{**QUICK, "iterations": 10})
    np.testing.assert_allclose(found.trajectory.sample([0.0, 5.0])[0], [[0.5, -0.3, 1.0]] * 2, atol=1e-12)
    check_limits(arm, found)
    held = di.optimize_excitation(arm.lock(q2=0.4), **{**QUICK, "iterations": 10})
    assert held.trajectory.joints == ("joint1", "joint3")


def test_obstacles_are_kept_out_of():
    robot = di.load_robot("pendulum-2")
    found = di.optimize_excitation(robot, floor=-1.2, radius=0.05, **QUICK)
    q = found.trajectory.sample(found.trajectory.times(1000.0))[0]
    tip = LinkPoints(robot, [1], np.array([robot.tool[1].translation])).at(q)
    assert tip[..., 2].min() >= -1.15
    assert "keep-out" in found.slack


@pytest.mark.parametrize("at", [1, 12, 130])
def test_an_interrupt_leaves_a_usable_motion(arm, at):
    steps = []

    def stop(state):
        steps.append(state)
        if len(steps) == at:
            raise KeyboardInterrupt

    found = di.optimize_excitation(arm, progress=stop, **QUICK)
    assert found.interrupted
    check_limits(arm, found)
    assert [s.best for s in steps] == sorted((s.best for s in steps), reverse=True)
    assert steps[-1].evaluations >= at


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"start": [4.0, 0.0, 0.0]}, InputError, r"joint1 at 4 is above its upper limit by 1\.53"),
        ({"start": [2.4695, 0.0, 0.0]}, di.trajectories.InfeasibleError, "upper position of joint1 within 0.0005 rad"),
        ({"start": {"joint1": 0.0}}, InputError, "start is not given for joint2, joint3"),
        ({"floor": 5.0}, di.trajectories.InfeasibleError, r"link .* above the floor broken by 5\.\d+ m"),
        ({"criterion": "volume"}, InputError, "criterion: unknown choice 'volume'"),
        ({"model": "power"}, InputError, "model: unknown choice 'power'"),
        ({"harmonic": 5}, UnknownNameError, "did you mean 'harmonics'"),
        ({"harmonics": 1}, InputError, "at least 2 harmonics"),
        ({"duration": -1.0}, InputError, "duration is -1"),
        ({"safety": 1.5}, InputError, "safety is 1.5"),
        ({"starts": 0}, InputError, "starts is 0"),
        ({"kicks": -1}, InputError, "kicks is -1"),
        ({"noise": -1.0}, InputError, "noise must be positive"),
        ({"noise": {"joint1": 1.0}}, InputError, "noise is not given for joint2"),
        ({"boxes": [[[0, 0, 0], [1, -1, 1]]]}, InputError, "the lower one first"),
    ],
)
def test_bad_input_is_named(arm, options, error, message):
    with pytest.raises(error, match=message):
        di.optimize_excitation(arm, **{"starts": 1, "kicks": 0, "iterations": 1, **options})


def test_a_weight_that_no_effort_limit_can_hold():
    robot = di.load_robot("cylindrical")  # 7.5 kg hang on the lift, 73.6 N
    with pytest.raises(di.trajectories.InfeasibleError, match=r"upper torque of lift broken by 54\.6 N "):
        di.optimize_excitation(robot, limits={"lift": {"effort": 20.0}})


def test_a_clearance_that_no_pose_has_is_not_forgotten():
    with pytest.raises(InputError, match=r"clearance is 3 m; no two links are ever farther apart than 1\.\d+ m"):
        di.optimize_excitation(di.load_robot("ur10e"), clearance=3.0)


def test_the_command(tmp_path, capsys):
    files = [tmp_path / name for name in ("m.yaml", "m.csv", "m.json")]
    words = ["excite", "pendulum-2", "-o", files[0], "--csv", files[1], "--ros", files[2], "--rate", "50", "--json"]
    more = [
        "--duration",
        "4",
        "--harmonics",
        "3",
        "--starts",
        "1",
        "--kicks",
        "1",
        "--start",
        "q1=0.1,q2=0",
        "--noise",
        "1,0.5",
    ]
    assert main([str(word) for word in (*words, *more)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"criterion", "condition", "duration", "evaluations"} <= set(answer)
    assert answer["duration"] == 4.0
    read = di.load_trajectory(files[0])
    np.testing.assert_allclose(read.sample(0.0)[0], [[0.1, 0.0]], atol=1e-12)
    assert len(files[1].read_text().splitlines()) == 202
    assert len(json.loads(files[2].read_text())["points"]) == 201


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--box", "0,0,0,1,1"], "expected six numbers"),
        (["--noise", "a"], "expected numbers separated by commas"),
        (["--start", "q1"], "--start q1: expected joint=position"),
        (["-o", "nowhere/m.yaml"], "the folder nowhere does not exist"),
        (["--criterion", "best"], "criterion: unknown choice 'best'"),
    ],
)
def test_bad_options_of_the_command(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["excite", "pendulum-2", *(["-o", "m.yaml"] if "-o" not in words else []), *words]) == 2
    assert message in capsys.readouterr().err


def test_the_motion_complements_a_fit_and_shows_it(tmp_path, monkeypatch, capsys):
    """From a log to a fit to a second motion: rate and correlation are the fit's, and the page says what is gained."""
    monkeypatch.chdir(tmp_path)
    robot = di.load_robot("pendulum-2")
    first = di.trajectories.Fourier.at_rest(
        np.zeros(2), 0.2 * np.eye(4, 2), 0.3 * np.ones((4, 2)), frequency=0.2, length=10.0
    )
    t = np.arange(0.0, 10.0, 0.005)
    q, dq, ddq = first.sample(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    table = np.column_stack([t, q, tau])
    np.savetxt("first.csv", table, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    assert main(["identify", "pendulum-2", "first.csv", "-o", "fit", "--quiet"]) == 0
    words = "excite pendulum-2 --extend fit -o second.yaml --report second.html --starts 1 --kicks 0 --duration 5"
    assert main([*words.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "interval"
    fit = di.load_fit("fit")
    before = np.array([answer["before"][name] for name in fit.names])
    # The fit weighs its channels a little differently, and allows for the delay and the width of dry friction. Friction
    # beyond basic friction, which it allows for too, is open in ten seconds, and widens friction parameters alone.
    friction = np.array([name[:2] in ("Fv", "Fc") for name in fit.names])
    assert (before < 1.3 * fit.std).all()
    assert (before > 0.4 * fit.std)[~friction].all()
    assert all(answer["deviations"][name] < x for name, x in answer["before"].items())
    page = (tmp_path / "second.html").read_text()
    assert "before this motion" in page
    assert page.count("<script") == 1  # the common one, which the policy names
    assert main(["excite", "cylindrical", "--extend", "fit", "-o", "x.yaml"]) == 2
    assert "was identified with the joints" in capsys.readouterr().err
    for file in (tmp_path / "fit" / "factors").iterdir():
        file.unlink()
    assert main(["excite", "pendulum-2", "--extend", "fit", "-o", "x.yaml"]) == 2
    assert "has no factors of first.csv" in capsys.readouterr().err
