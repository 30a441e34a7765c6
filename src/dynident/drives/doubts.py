"""What speaks against commands or an estimate: units, order, saturation, gains, a trunk that moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.drives.linear import SCALE, DriveRows, LinearDrives, drive_elements
from dynident.drives.replay import ClosedLoopReplay, ReplayErrors
from dynident.drives.thresholds import THRESHOLDS
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.logs.log import LogError, LogSource, joint_positions, row_torques
from dynident.robot.model import Robot
from dynident.signals.rows import PREDICTION

_SMOOTHING = 0.02  # [rad/s] of the sign of dry friction in residuals
_TRUNK_SECONDS = 0.1  # over which residuals are averaged before a moving trunk is looked for, which is slower [s]
_STD_OVER_MEDIAN, _MOST_STD = 1.4826, 3.0  # of normal residuals; how many of them one residual may count as
_LEAST_JOINTS = 6  # that three accelerations of a trunk are looked for in


def check_commands(robot: Robot, log: LogSource) -> None:
    """Refuse targets in degrees, and targets in another order than positions.

    Raises:
        LogError: Naming the log and what to do.
    """
    parts = [(block.array("target", robot), joint_positions(block, robot)) for block in log.blocks()]
    targets, positions = (np.concatenate(own) for own in zip(*parts, strict=True))
    joints = robot.moving_joints
    apart, spread = np.std(targets, axis=0), np.std(positions, axis=0)
    moving = (apart > 0.0) & (spread > 0.0)
    # The slope of positions over targets is about one where a controller follows, whatever its delay.
    covariance = np.mean((targets - targets.mean(0)) * (positions - positions.mean(0)), axis=0)
    slope = np.where(moving, covariance / np.where(moving, apart**2, 1.0), np.nan)
    turning = np.array([joint.kind != "prismatic" for joint in joints])
    degrees = np.pi / 180.0
    for name, other, unit in (("targets", degrees, "[deg]"), ("positions", 1.0 / degrees, "[deg]")):
        ratio = slope[moving & turning] / other
        if len(ratio) and (np.abs(np.log(np.maximum(ratio, 1e-300))) < np.log(THRESHOLDS.degree_margin)).all():
            raise LogError(
                log.source,
                f"{name} look like degrees beside the other (positions over targets: {np.median(slope[moving]):.3g}); "
                f"write the unit {unit} into the heads of their columns, such as {name[:-1]}1{unit}".replace(
                    "position1", "q1"
                ),
            )
    order = _order(targets, positions)
    if order is not None:
        wanted = ", ".join(f"target{joints[k].number}" for k in order)
        raise LogError(
            log.source,
            "targets are in another order than positions: those that follow "
            f"{', '.join(f'q{joint.number}' for joint in joints)} are {wanted}; put the columns into the order of the "
            f"joints {', '.join(robot.joint_names)}",
        )


def _order(targets: Array, positions: Array) -> list[int] | None:
    """The targets that positions follow, where that is another order by far; else None."""
    from scipy.optimize import linear_sum_assignment

    pairs = zip(targets.T, positions.T, strict=True)
    own = float(np.sum([np.mean((target - position) ** 2) for target, position in pairs]))
    apart = np.mean((targets[:, None, :] - positions[:, :, None]) ** 2, axis=0)  # [position, target]
    rows, columns = linear_sum_assignment(apart)
    best = float(apart[rows, columns].sum())
    return [int(k) for k in columns] if best < THRESHOLDS.better_order**2 * own else None


def saturation(robot: Robot, logs: Sequence[LogSource]) -> list[str]:
    """What to say of torque beyond the joints' limits, which the rows leave out.

    Raises:
        LogError: Where nearly all of a joint's commands ask for more than its limit.
    """
    said = []
    for log in logs:
        over = np.concatenate([np.abs(row_torques(one, robot)) >= robot.effort_limits for one in log.blocks()])
        shares = over.mean(axis=0)
        worst = int(np.argmax(shares))
        limit, joint = robot.effort_limits[worst], robot.moving_joints[worst]
        if shares[worst] > THRESHOLDS.most_saturated:
            raise LogError(
                log.source,
                f"{100.0 * shares[worst]:.0f} % of the commands of joint {joint.name} ask for more than its limit of "
                f"{limit:g} {joint.torque_unit}; check the unit of the targets, the gains and the order of the joints",
            )
        many = [
            f"{joint.name} ({100.0 * share:.2g} %)"
            for joint, share in zip(robot.moving_joints, shares.tolist(), strict=True)
            if share > THRESHOLDS.little_saturated
        ]
        if many:
            said.append(f"{log.label}: commands beyond the torque limit are left out, of joints {', '.join(many)}")
    return said


def doubts_of_estimate(
    rows: DriveRows, base: Any, found: LinearDrives, delay: float, scales: tuple[Array, Array]
) -> list[str]:
    """What speaks against gains, masses and targets."""
    said, drives = [], drive_elements(rows.robot)
    scaled, _ = rows.solve(base, PREDICTION, delay, free_links=None)
    factor, std = scaled.mapping()[SCALE], float(scaled.std[scaled.names.index(SCALE)])
    wrong = abs(factor - 1.0) > max(THRESHOLDS.gain_share, THRESHOLDS.gain_std * std) and factor > 0.0
    by_torque = rows.kp is None
    what, check = ("drive gains or torque", "them") if by_torque else ("gains", "kp, kd")
    if wrong:
        said.append(
            f"the torque of the links is {factor:.3g} ± {std:.2g} times what the robot file says, as {what} would show "
            f"that are {1.0 / factor:.3g} times those given; check {check} and the masses"
        )
    else:
        off = np.abs(scales[0] - 1.0) > np.maximum(THRESHOLDS.gain_share, THRESHOLDS.gain_std * scales[1])
        for drive, scale, own, is_off in zip(drives, *scales, off, strict=True):
            if is_off:
                said.append(
                    f"the links of joint {drive.joint} show {what} of {scale:.3g} ± {own:.2g} times those given; check "
                    f"{check} of this joint and the masses that it carries"
                )
    if std > THRESHOLDS.determined_gain:
        said.append(
            f"the motion shows no weight or inertia of the links beside friction (their factor is {factor:.2g} ± "
            f"{std:.2g}): whether {what} are right cannot be said from it"
        )
    if found.negative:
        said.append(
            f"{', '.join(found.negative)} would be negative, and zero was taken: a velocity gain kd that is too large, "
            "a delay or targets of another joint would do that"
        )
    values = found.mapping()
    far = {drive.joint: values.get(f"bias{drive.number}", 0.0) for drive in drives}
    far = {joint: bias for joint, bias in far.items() if abs(bias) > THRESHOLDS.largest_bias}
    if far:
        each = ", ".join(f"{joint} {bias:.3g}" for joint, bias in far.items())
        said.append(
            f"the bias is larger than any encoder's ({each} rad or m): targets are relative to another pose than "
            "positions, such as the default pose of a policy, or belong to another joint"
        )
    return said


def replay_doubts(
    rows: DriveRows,
    found: LinearDrives,
    delay: float,
    replay: ClosedLoopReplay,
    before: ReplayErrors,
    after: ReplayErrors,
) -> list[str]:
    """What replays and residuals say against an estimate."""
    said = []
    if after.total >= before.total:
        said.append(
            f"the replay is no better than with the values of the robot file ({after.total:.3g} against "
            f"{before.total:.3g} rad or m rms); check targets, gains and the order of the joints"
        )
    motion = np.concatenate([one.positions - one.positions.mean(0) for one in replay.commands])
    size = float(np.sqrt(np.mean(motion**2)))
    if rows.kp is not None and after.total > size:
        said.append(
            f"the replay misses positions by {after.total:.3g} rad or m rms, more than their motion of {size:.3g}: "
            "these numbers describe no drive; check targets and gains"
        )
    trunk = moving_trunk(rows, found, delay)
    if trunk is not None:
        said.append(
            "residuals of the joints move together as those of a trunk that accelerates by "
            f"{trunk[1]:.2g} m/s² rms ({100.0 * trunk[0]:.0f} % of their squares): the base is taken as held; hold the "
            "trunk, or expect friction and bias to be off"
        )
    return said


def moving_trunk(rows: DriveRows, found: LinearDrives, delay: float) -> tuple[float, float] | None:
    r"""The share of the residuals' squares that an acceleration of the base explains, and its rms [m/s²].

    An acceleration a of the base acts like gravity of -a. At each sample, the residuals of all joints are projected on
    the three columns that it has. How much is explained by chance is known from the same residuals with random signs of
    the joints: what is common to joints for another reason (friction of joints that move in phase) stays, and only a
    base has the signs as they are. None where it finds nothing, and for robots of too few joints.
    """
    robot, drives = rows.robot, drive_elements(rows.robot)
    n = len(drives)
    if n < _LEAST_JOINTS:
        return None
    residuals, columns = [], []
    names = found.mapping()
    values = np.array([[names.get(drive.name(symbol), 0.0) for drive in drives] for symbol in ("Ia", "Fv", "Fc")])
    bias = np.array([names.get(f"bias{drive.number}", 0.0) for drive in drives])
    offset = np.array([names.get(drive.name("Fo"), 0.0) for drive in drives])
    pulls = [dataclasses.replace(robot, gravity=axis) for axis in np.eye(3)]
    for k, observed in enumerate(rows.observations):
        kp = np.zeros(n) if rows.kp is None else rows.kp[k]
        for block in observed.with_options(delay=-delay).motion():
            q, dq, ddq, tau = block.q, block.dq, block.ddq, block.tau[0]
            known = inverse_dynamics(robot, q + bias, dq, ddq, ["rigid"], rows.links)
            known = known + values[0] * ddq + values[1] * dq + values[2] * np.tanh(dq / _SMOOTHING)
            each = max(1, round(_TRUNK_SECONDS * block.rate))
            residuals.append(_means(tau - known - kp * bias - offset, each))
            q = _means(q, each)
            still = np.zeros_like(q)
            columns.append(
                np.stack([inverse_dynamics(one, q, still, still, ["rigid"], rows.links) for one in pulls], axis=2)
            )
    r, G = np.concatenate(residuals), np.concatenate(columns)
    r = r - r.mean(0)
    size = (_STD_OVER_MEDIAN * np.median(np.abs(r), axis=0)).clip(1e-12)
    r, G = np.clip(r / size, -_MOST_STD, _MOST_STD), G / size[None, :, None]  # reversals and starts have long tails
    U = np.linalg.svd(G, full_matrices=False)[0]  # (n_samples, n, 3)
    signs = np.sign(np.random.default_rng(0).normal(size=(int(THRESHOLDS.trunk_placebos), n)))
    signs[0] = 1.0
    explained = np.array([np.sum(np.einsum("sjk,sj->sk", U, r * own) ** 2) for own in signs]) / np.sum(r**2)
    others = explained[1:]
    accelerations = np.einsum("skj,sj->sk", np.linalg.pinv(G), r)
    # What random signs explain as well is no acceleration.
    beyond = max(explained[0] - float(np.median(others)), 0.0) / explained[0]
    size = float(np.sqrt(beyond * np.mean(np.sum(accelerations**2, axis=1))))
    enough = explained[0] > np.quantile(others, 0.99) and explained[0] > THRESHOLDS.trunk_share * np.median(others)
    return (float(explained[0]), size) if enough and size > THRESHOLDS.trunk_acceleration else None


def _means(values: Array, each: int) -> Array:
    """(n_windows, n) means over windows of some samples."""
    n = len(values) // each
    return np.asarray(values[: n * each].reshape(n, each, values.shape[1]).mean(axis=1))
