"""The paper's experiments on MuJoCo: steps of voltage, and the fast motion under feedforward alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import mass_matrix
from dynident.experiments import Bench, Bounds, StepOptions, StepResult, step_test
from dynident.experiments.step import FeedforwardRun, tracking_check
from dynident.papers.kim import printed
from dynident.plant import Motors, MujocoPlant, Sensors
from dynident.robot import Robot, load_robot


def step_bench(robot: Robot, motors: Motors, sample_time: float = printed.SAMPLE_TIME) -> Bench:
    """The arm with 16-bit resolvers. As in the paper, joint 3 may leave its range of 160 degrees within 1.2 s."""
    limits = Bounds.of(robot)
    free = Bounds(np.full_like(limits.lower, -np.inf), np.full_like(limits.upper, np.inf), limits.velocity)
    sensors = Sensors(resolution=2.0 * np.pi / printed.COUNTS)
    return Bench(MujocoPlant(robot, "plant", sample_time=sample_time, motors=motors, sensors=sensors), bounds=free)


def one_joint(j: int, *, terms: int | None = None, duration: float = 1.2) -> StepResult:
    """Steps of one motor, the others braked at zero.

    Args:
        j: Index of the joint.
        terms: Terms of the paper's series; None for the exact solution.
        duration: Of the record [s].
    """
    robot = load_robot("minnesota").lock(**{f"q{k + 1}": 0.0 for k in range(3) if k != j})
    motors, voltages = Motors(printed.GAINS[j], 1.0), printed.VOLTAGES[f"joint{j + 1}"]
    options = StepOptions(voltages=voltages, poses=np.zeros((1, 1)), terms=terms, duration=duration)
    return step_test(step_bench(robot, motors), motors, options)


@functools.cache
def whole_test() -> StepResult:
    """Steps of all motors in eight locked configurations that are chosen for the six combinations."""
    robot = load_robot("minnesota")
    motors = Motors(np.array(printed.GAINS), 1.0)
    return step_test(step_bench(robot, motors), motors, StepOptions(voltages=printed.VOLTAGES))


def combinations(found: StepResult) -> dict[str, float]:
    """Table 1's six combinations from the base parameters of the robot file [kg·m²]."""
    estimate = found.combinations
    assert estimate is not None
    beta, h = dict(zip(estimate.names, estimate.values.tolist(), strict=True)), found.robot.lengths["h"]
    return {
        "Ie1+Ie6": beta["ZZR3"],
        "(m2X2^2+Ie2+Iz2)+Ie4": beta["ZZR2"] + beta["XXR3"],
        "Ie1+Ie5-Ie4": -beta["XXR3"],
        "Ie3": h * beta["MXR3"],
        "Iz1+Ie1+Ie6+(m2X2^2+Ie2+Iy2)": beta["ZZR1"] + beta["ZZR3"],
        "Iz1+Ix2+Ie4": beta["XXR2"] + beta["XXR3"] + beta["ZZR1"],
    }


def feedforward_runs(found: StepResult) -> list[FeedforwardRun]:
    """Section 6: 30 degrees in 0.3 s without feedback, each joint alone and all together, under three models."""
    motors = Motors(np.array(printed.GAINS), 1.0)
    return tracking_check(step_bench(found.robot, motors, printed.CONTROL_TIME), motors, found, "computed")


def appendix(values: Mapping[str, float], q: Array, *, as_printed: bool) -> dict[str, Array]:
    """Entries of (A-1) to (A-6) at poses.

    Args:
        values: Masses m2 .., centers X2 .., lengths L5, g, h and inertias Ix2 .. of the links.
        q: (n_samples, 3) poses [rad].
        as_printed: With the coupler's own inertia counted to link 3, instead of link 2 with which it turns.

    Returns:
        By name, (n_samples,) each.
    """
    v = values
    C2, S2, C3, S3 = np.cos(q[:, 1]), np.sin(q[:, 1]), np.cos(q[:, 2]), np.sin(q[:, 2])
    Ie1 = v["m3"] * v["X3"] ** 2 + v["m4"] * v["L5"] ** 2 + v["m5"] * v["X5"] ** 2
    Ie2 = v["m3"] * v["h"] ** 2 + v["m4"] * (v["X4"] - v["g"]) ** 2 + v["m5"] * v["g"] ** 2
    Ie3 = v["m3"] * v["X3"] * v["h"] - v["m4"] * (v["X4"] - v["g"]) * v["L5"] + v["m5"] * v["X5"] * v["g"]
    with_3, with_2 = (1.0, 0.0) if as_printed else (0.0, 1.0)
    Ie4, Ie5, Ie6 = (v[f"I{axis}3"] + v[f"I{axis}5"] + with_3 * v[f"I{axis}4"] for axis in "xyz")
    # Turned with link 2, the coupler's y is upright where link 2's z is.
    Ix2, Iy2, Iz2 = (v[f"I{own}2"] + with_2 * v[f"I{other}4"] for own, other in ("xx", "yz", "zy"))
    turning = Ie1 + Ie6 + Ie2 + 2.0 * C3 * Ie3 + Iy2 + v["m2"] * v["X2"] ** 2
    return {
        "M11": v["Iz1"] + C2**2 * turning + S2**2 * (S3**2 * (Ie1 + Ie5) + C3**2 * Ie4 + Ix2),
        "M12": S2 * S3 * (Ie3 + C3 * (Ie1 + Ie5 - Ie4)),
        "M13": C2 * (Ie1 + Ie6 + C3 * Ie3),
        "M22": Iz2 + v["m2"] * v["X2"] ** 2 + C3**2 * (Ie1 + Ie5) + S3**2 * Ie4 + Ie2 + 2.0 * C3 * Ie3,
        "M23": np.zeros(len(q)),
        "M33": np.full(len(q), Ie1 + Ie6),
    }


def appendix_differences() -> dict[str, tuple[float, float]]:
    """Largest difference of each entry from the mass matrix of the arm at random poses: corrected, and as printed."""
    robot, rng = load_robot("minnesota"), np.random.default_rng(0)
    q, v = rng.uniform(-np.pi, np.pi, (200, 3)), dict(robot.lengths)
    names = [f"{kind}{i}" for i in (2, 3, 4, 5) for kind in ("m", "X", "Ix", "Iy", "Iz")]
    v |= {name: float(x) for name, x in zip([*names, "Iz1"], rng.uniform(0.5, 1.5, len(names) + 1), strict=True)}
    chi = {"ZZ1": v["Iz1"]}
    for i in (2, 3, 4, 5):
        mass, center = v[f"m{i}"], -v["X5"] if i == 5 else v[f"X{i}"]
        chi |= {f"M{i}": mass, f"MX{i}": mass * center, f"XX{i}": v[f"Ix{i}"]}
        chi |= {f"{s}{s}{i}": v[f"I{s.lower()}{i}"] + mass * center**2 for s in "YZ"}
    M = mass_matrix(robot, q, chi)
    right, wrong = (appendix(v, q, as_printed=printed_form) for printed_form in (False, True))
    entries = {name: M[:, int(name[1]) - 1, int(name[2]) - 1] for name in right}
    return {
        name: (float(np.abs(right[name] - own).max()), float(np.abs(wrong[name] - own).max()))
        for name, own in entries.items()
    }
