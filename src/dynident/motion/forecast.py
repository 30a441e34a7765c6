"""What an identification will make of a motion: a log of it is made up and goes the way of every log.

The log has the torque of the robot's own values, white noise and the steps of encoders. `identify` chooses its
bandwidth, leaves out rows that reversals reach and allows for correlated residuals, so the standard deviations are
those that a log of a machine with this noise will get.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque
from dynident.errors import DynidentError, InputError
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters
from dynident.logs.log import Log, channel_names
from dynident.motion.fourier import Fourier
from dynident.motion.options import ENCODER_COUNTS, NOISE_SHARE, ExcitationOptions
from dynident.motion.thresholds import THRESHOLDS
from dynident.pipeline.identification import identify
from dynident.robot.model import Robot
from dynident.signals.rows import ROWS_PER_BAND


@dataclass(frozen=True)
class Forecast:
    """What a log of a motion will tell.

    Attributes:
        std: (n,) standard deviation of each base parameter; infinite where the log will not determine it.
        precision: (n, n) inverse of their covariance, zero along what the log will not determine.
        noise: (n_joints,) standard deviation of the noise in each sample of the torque [N·m or N].
        noise_words: Where that noise comes from.
        refusal: Why `identify` would not take the log; empty where it does.
    """

    std: Array
    precision: Array
    noise: Array
    noise_words: str
    refusal: str = ""


def forecast_identification(
    base: BaseParameters,
    motion: Fourier,
    options: ExcitationOptions,
    *,
    rate: float,
    noise: Array | None,
    effort: Array,
) -> Forecast:
    """Standard deviations of the base parameters from a log of a motion.

    Args:
        base: The base parameters.
        motion: The motion. Of one that repeats itself for long, some repetitions tell about all.
        options: Terms and values of the robot, and the seed of the noise.
        rate: Samples per second of the log.
        noise: (n_joints,) standard deviation of the noise in each sample of the torque; None takes a share of what the
            motion asks of each joint.
        effort: (n_joints,) effort limits, whose share is the noise of a joint without a torque.
    """
    robot = base.robot
    seconds = _seconds(motion)
    time = np.arange(round(seconds * rate) + 1) / rate
    states = motion.sample(time)
    tau = inverse_dynamics(robot, *states, values=options.values)
    words = "as given"
    if noise is None:
        noise, words = usual_noise(np.sqrt(np.mean(tau**2, axis=0)), effort)
    tau = tau + noise * np.random.default_rng(options.seed).normal(size=tau.shape)
    try:
        fit = identify(
            robot, _log(robot, time, states[0], tau), check="off", terms=options.terms, friction="basic", store=None
        )
    except DynidentError as error:
        n = base.n
        return Forecast(np.full(n, np.inf), np.zeros((n, n)), noise, words, str(error).removeprefix(f"{_LABEL}: "))
    shorter = seconds / motion.duration
    precision = _precision(base, fit) / shorter
    place = {name: i for i, name in enumerate(fit.names)}
    std = np.array([fit.std[place[name]] if name in place else np.inf for name in base.names])
    return Forecast(std * np.sqrt(shorter), precision, noise, words)


_LABEL = "a log of this motion"


def usual_noise(rms: Array, effort: Array) -> tuple[Array, str]:
    """(n_joints,) noise of torque sensors or currents where nobody stated it, and where it comes from, in words.

    Args:
        rms: (n_joints,) root mean square of the torque that a motion asks for [N·m or N]; zero where it is not known.
        effort: (n_joints,) effort limits, infinite where there is none.
    """
    share = f"{100.0 * NOISE_SHARE:g} %"
    known, limited = rms > THRESHOLDS.no_torque_share * rms.max(initial=0.0), np.isfinite(effort)
    noise = np.where(known, NOISE_SHARE * rms, np.where(limited, NOISE_SHARE * np.where(limited, effort, 1.0), 1.0))
    sources = [
        words
        for words, own in (
            (f"of {share} of each joint's rms torque", known),
            (f"of {share} of the effort limit", ~known & limited),
            ("of 1 N·m or N, as neither torque nor effort limit is known", ~known & ~limited),
        )
        if own.any()
    ]
    return noise, " or ".join(sources)


def noise_of_fit(fit: Fit, robot: Robot, rate: float) -> Array:
    """(n_joints,) white noise in each sample of a log that leaves as much uncertainty as the residual of a fit.

    A second has rate / s^2 independent facts about torque of noise s, and the rows of a fit that pass the bandwidth B
    with residual sigma and inflation f have 4 B / (f sigma^2); the two are the same for white noise.

    Args:
        fit: The fit.
        robot: The robot of the motion.
        rate: Samples per second of the log.

    Raises:
        InputError: When the fit is of other joints.
    """
    own = dict(zip(fit.solve.channels, zip(fit.sigma, fit.inflation, strict=True), strict=True))
    missing = [name for name in robot.joint_names if name not in own]
    if missing:
        raise InputError(f"noise: the fit is of the joints {', '.join(own)}; it has no residual of {missing[0]}")
    band = float(np.average([log.band for log in fit.data], weights=[log.duration for log in fit.data]))
    sigma, inflation = np.array([own[name] for name in robot.joint_names]).T
    return np.asarray(sigma * np.sqrt(inflation * rate / (ROWS_PER_BAND * band)))


def _seconds(motion: Fourier) -> float:
    """Length of the log that is made up [s]: whole periods of a motion that repeats itself for long."""
    periods = motion.duration * motion.frequency
    whole = round(periods)
    enough = int(np.ceil(THRESHOLDS.forecast_s * motion.frequency))
    if abs(periods - whole) > 1e-9 * periods or whole <= enough:
        return motion.duration
    return enough / motion.frequency


def _log(robot: Robot, time: Array, q: Array, tau: Array) -> Log:
    """A log as the simulated plant writes it: positions in steps of encoders, and currents where gains are known."""
    step = np.array([1.0 if joint.kind == "prismatic" else 2.0 * np.pi for joint in robot.moving_joints])
    step = step / ENCODER_COUNTS
    gains = robot.drive.gains
    torque = ("tau", joint_torque(robot, tau)) if gains is None else ("i", tau / gains[list(robot.moving)])
    channels = {
        name: values
        for kind, columns in (("q", np.round(q / step) * step), torque)
        for name, values in zip(channel_names(kind, robot), columns.T, strict=True)
    }
    return Log(_LABEL, "", time, channels)


def _precision(base: BaseParameters, fit: Fit) -> Array:
    """(n, n) inverse covariance of base parameters, zero along directions that the data leaves open."""
    places = [base.names.index(name) for name in fit.names]
    variances = np.diag(fit.covariance)
    size = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    covariance = fit.covariance / size / size[:, None]
    directions = np.eye(len(size))
    if fit.solve.null_space is not None:
        # (C + b Z Z')^-1 for b without end: the inverse of C on what is orthogonal to Z.
        Z = fit.solve.null_space / size[:, None]
        directions = np.linalg.svd(Z.T)[2][Z.shape[1] :].T
    own = directions @ np.linalg.solve(directions.T @ covariance @ directions, directions.T)
    precision = np.zeros((base.n, base.n))
    precision[np.ix_(places, places)] = own / size / size[:, None]
    return precision
