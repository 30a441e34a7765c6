"""What the paper prints: Tables 2 to 5, trajectory (12)."""

from __future__ import annotations

TABLE_2 = {  # lengths of the KR5 [mm]
    "b1": 400.011,
    "a1": 179.992,
    "a2": 599.998,
    "b3": 0.002,
    "a3": 119.991,
    "b4": 620.042,
    "b5": 0.001,
}
TWISTS = (90.0, 0.0, 90.0, 90.0, 90.0, 0.0)  # [deg] of its six rows
TABLE_3 = {"a1": 0.6, "a2": 0.631}  # "mm"
EFFECT = {"standard": 30, "without effect": 18, "with effect": 12, "base": 9}
COEFFICIENTS = {  # of Table 4: base parameter, mass, its coefficient
    **{("ZZR1", f"M{i}"): -0.36 for i in (1, 2, 3)},
    **{("MXR1", f"M{i}"): 0.6 for i in (1, 2, 3)},
    **{("ZZR2", f"M{i}"): -0.39879 for i in (2, 3)},
    **{("MXR2", f"M{i}"): 0.6315 for i in (2, 3)},
}
# Table 5: by least squares (Table 4 too), and by gravity compensation [kg·m].
TABLE_5 = {
    "MXR1": (38.3942, 38.297),
    "MY1": (0.0064, 0.0),
    "MXR2": (10.6798, 8.612),
    "MY2": (7.2487, 9.058),
    "MX3": (1.1736, 1.169),
    "MY3": (-0.4988, -0.499),
}
ANGLE, DURATION, SAMPLES = 60.0, 5.0, 500  # [deg], [s] of trajectory (12)
PERIOD = 0.012  # [s] of the Robot Sensor Interface
# Base parameters of a machine with the mass moments of Table 4, as bodies of 30, 20 and 6 kg.
SIMULATED = {
    "ZZR1": -17.8939,
    "MXR1": 38.3942,
    "MY1": 0.0064,
    "ZZR2": -4.8945,
    "MXR2": 10.6798,
    "MY2": 7.2487,
    "ZZ3": 0.3910,
    "MX3": 1.1736,
    "MY3": -0.4988,
}
