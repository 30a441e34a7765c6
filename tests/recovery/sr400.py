"""The SR400 of Gautier, Khalil, Restrepo 1995, simulated: Pinocchio for its links, equations (6) to (8) by hand.

Logs are treated as in the paper: positions low-passed at a fifth and rows at a tenth of the rate, without phase,
central differences, every tenth row kept. Butterworth instead of the paper's Chebyshev, whose gain at rest is not one.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.signal import butter, filtfilt

import dynident as di
from dynident.papers.gautier.experiments import (
    NOISE as NOISE_BY_JOINT,
    QUANTUM,
    RATE,
    TERMS,
    quintic as moving,
    sr400,
    true_values,
)
from dynident.papers.gautier.printed import TABLE_3
from tests.robots import tree_model

WRIST, ARM = (2, 3, 4), (0, 1, 5)  # places of joints 4, 5, 6 and 1, 2, 7
NOISE = np.array(list(NOISE_BY_JOINT.values()))  # [N·m]
LOAD = TABLE_3
BALL = {"XX": 300.0, "YY": 300.0, "ZZ": 300.0, "M": 300.0}
INDEPENDENT = 1.25  # rows at 100 Hz, low-passed at 40 Hz: 80 independent ones in a second


def truth(*, loaded: bool) -> dict[str, float]:
    """Base parameters that are not zero: Table 4, and Fv7, Fc7 as those of motor 2; with the load by its relations."""
    return true_values(loaded=loaded)


def vector(values: dict[str, float]) -> np.ndarray:
    _, base = sr400()
    return np.array([values.get(name, 0.0) for name in base.names])


def quintic(seed: int, segments: int, locked: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    """Point-to-point motion through random points; locked joints stay at zero."""
    motion = moving(seed, segments)
    for x in motion:
        x[:, list(locked)] = 0.0
    return motion


def tree_torque(robot, tree) -> np.ndarray:
    """Torque at the eight tree joints by Pinocchio, (8, n_samples)."""
    model = tree_model(robot)
    data = model.createData()
    return np.array([pin.rnea(model, data, *state) for state in zip(*tree, strict=True)]).T


def motor_torque(values: dict[str, float], q, dq, ddq) -> np.ndarray:
    """Motor torques without a line of dynident's equations: Pinocchio on the tree, eq. (6), friction (7) and (8)."""
    robot, base = sr400()
    names = [column.name for column in base.columns]
    own = dict(zip(names, base.standard_values(values, "regrouped zero"), strict=True))
    tree = []
    for x, constant in ((q, np.pi / 2), (dq, 0.0), (ddq, 0.0)):
        x1, x2, x4, x5, x6, x7 = x.T
        tree.append(np.column_stack([x1, x2, constant - x2 + x7, x4, x5, x6, x7, x2 - x7]))
    # Pinocchio takes physical links only, which the table's are not: as heavy balls with them, and without.
    balls = {f"{symbol}{i}": size for i in range(1, 9) for symbol, size in BALL.items()}
    both = {name: value + balls.get(name, 0.0) for name, value in own.items()}
    g = tree_torque(robot.with_values("both", both), tree) - tree_torque(robot.with_values("balls", balls), tree)
    (_, _, _, d5, d6, _), (_, _, _, a5, a6, _) = dq.T, ddq.T
    rows = [g[0], g[1] - g[2] + g[7], g[3], g[4] - g[5], g[5], g[6] + g[2] - g[7]]
    velocities, accelerations = list(dq.T), list(ddq.T)
    velocities[4], accelerations[4] = d5 + d6, a5 + a6  # motor 6
    for row, label in enumerate(("1", "2", "4", "5", "m6", "7")):
        rotor = own[f"Ia{label.removeprefix('m')}"]
        friction = own[f"Fv{label}"] * velocities[row] + own[f"Fc{label}"] * np.sign(velocities[row])
        rows[row] = rows[row] + rotor * accelerations[row] + friction
    between = own["Fv6"] * d6 + own["Fc6"] * np.sign(d6)
    rows[3], rows[4] = rows[3] + between, rows[4] - between
    return np.array(rows).T


def low_pass(x: np.ndarray, factor: int) -> np.ndarray:
    """Without phase, at 0.8 of half the rate over `factor`; samples last."""
    return filtfilt(*butter(4, 0.8 / factor), x, axis=-1)


def derived(q: np.ndarray) -> list[np.ndarray]:
    """Low-passed positions and their central differences, (n_samples, n_joints) each."""
    smooth = np.ascontiguousarray(low_pass(q.T, 5))
    dq = np.gradient(smooth, 1.0 / RATE, axis=-1)
    return [x.T for x in (smooth, dq, np.gradient(dq, 1.0 / RATE, axis=-1))]


def rows(base, q, torques, outputs) -> list[di.Information]:
    """Filtered rows of some outputs, for several torques along one motion."""
    parts, motion = [], derived(q)
    for first in range(0, len(q), 6000):  # the whole regressor would take hundreds of megabytes
        W = base.regressor(*(x[first : first + 6000] for x in motion))
        parts.append(np.moveaxis(W, 0, -1)[list(outputs)])
    W = np.concatenate(parts, axis=-1)  # (n_outputs, n, n_samples)
    present = np.abs(W).max((0, 2)) > 1e-9
    own = slice(200, -200, 10)
    kept = np.zeros((*W.shape[:2], len(range(*own.indices(W.shape[2])))))
    kept[:, present] = low_pass(np.ascontiguousarray(W[:, present]), 10)[:, :, own]
    names = [base.robot.joint_names[i] for i in outputs]
    filtered = (low_pass(np.ascontiguousarray(tau.T[list(outputs)]), 10)[:, own].T for tau in torques)
    return [di.information.accumulate_rows(np.moveaxis(kept, -1, 0), tau, base, channels=names) for tau in filtered]


def steps(
    seed: int, *, noisy: bool, oracle: bool = False, segments: int = 60
) -> dict[bool, list[di.estimate.StageData]]:
    """The two experiments of the paper, without (False) and with (True) the load, along the same motion."""
    robot, base = sr400()
    rng = np.random.default_rng(1000 + seed)
    found: dict[bool, list[di.estimate.StageData]] = {False: [], True: []}
    for number, (name, locked, outputs) in enumerate((("wrist", (), WRIST), ("arm", WRIST, ARM))):
        motion = quintic(2 * seed + number, segments, locked)
        torques = []
        for loaded in found:
            values = truth(loaded=loaded)
            if oracle:
                torques.append(motor_torque(values, *motion))
            else:
                chi = base.standard_values(values, "regrouped zero")
                torques.append(di.inverse_dynamics(robot, *motion, TERMS, chi))
        q = motion[0]
        if noisy:
            torques = [tau + NOISE * rng.normal(size=tau.shape) for tau in torques]
            q = QUANTUM * np.round(q / QUANTUM)
        for loaded, information in zip(found, rows(base, q, torques, outputs), strict=True):
            found[loaded].append(di.estimate.StageData(name, information, np.full(3, INDEPENDENT)))
    return found
