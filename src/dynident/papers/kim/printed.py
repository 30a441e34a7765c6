"""What the paper prints: Table 1, tracking errors of Figures 5 and 6; and what it leaves out."""

from __future__ import annotations

# Table 1 [kg·m²]: identified and computed values, by the names of the appendix.
TABLE_1 = {
    "Iz1": (0.19719, 0.1752),
    "Ix2": (0.02592, 0.04125),
    "m2X2^2+Ie2+Iy2": (1.68135, 1.06955),
    "m2X2^2+Ie2+Iz2": (1.78135, 1.16955),
    "Ie1+Ie5": (0.28922, 0.298045),
    "Ie1+Ie6": (0.27759, 0.296158),
    "Ie3": (0.20, 0.2498),
    "Ie4": (0.14543, 0.1319),
}
DAMPING, COULOMB = (0.036, 0.078, 0.27), (2.52, 1.0, 0.02)  # [N·m·s/rad], [N·m]
# Identifiable combinations of the eight.
COMBINATIONS = {
    "Ie1+Ie6": {"Ie1+Ie6": 1.0},
    "(m2X2^2+Ie2+Iz2)+Ie4": {"m2X2^2+Ie2+Iz2": 1.0, "Ie4": 1.0},
    "Ie1+Ie5-Ie4": {"Ie1+Ie5": 1.0, "Ie4": -1.0},
    "Ie3": {"Ie3": 1.0},
    "Iz1+Ie1+Ie6+(m2X2^2+Ie2+Iy2)": {"Iz1": 1.0, "Ie1+Ie6": 1.0, "m2X2^2+Ie2+Iy2": 1.0},
    "Iz1+Ix2+Ie4": {"Iz1": 1.0, "Ix2": 1.0, "Ie4": 1.0},
}
# Effective inertia at q = 0 by, (A-5) and.
INERTIA_AT_ZERO = (
    {"Iz1": 1.0, "Ie1+Ie6": 1.0, "m2X2^2+Ie2+Iy2": 1.0, "Ie3": 2.0},
    {"m2X2^2+Ie2+Iz2": 1.0, "Ie1+Ie5": 1.0, "Ie3": 2.0},
    {"Ie1+Ie6": 1.0},
)
TRACKING = {"one joint": (1.06, 1.35, 0.78), "all joints": (1.38, 3.4, 0.78)}  # [deg] largest errors
MOTION = {"way": 30.0, "time": 0.3, "velocity": 150.0, "acceleration": 2000.0}  # [deg], [s], [deg/s], [deg/s²]
SAMPLE_TIME, CONTROL_TIME = 2.4e-3, 4e-3  # [s] of the record; of the feedforward, 250 Hz
# Not printed; peak torque over a full scale of 10 V, voltages that a step may have, 16 bits of a resolver.
GAINS = (11.8, 7.8, 5.8)  # [N·m/V]
VOLTAGES = {"joint1": (0.8, 0.5), "joint2": (0.8, 0.4), "joint3": (0.4, 0.2)}
COUNTS = 65536  # per turn


def total(parts: dict[str, float], column: int = 0) -> float:
    """A combination of Table 1's values: identified (column 0) or computed (column 1) [kg·m²]."""
    return sum(share * TABLE_1[name][column] for name, share in parts.items())
