"""What the paper prints: Tables 1 to 4, the eleven parameters without effect, relations of the load."""

from __future__ import annotations

from collections.abc import Mapping

NO_EFFECT = ("XX1", "XY1", "XZ1", "YY1", "YZ1", "MX1", "MY1", "MZ1", "M1", "MZ2", "MZ7")
COUNTS = {"rigid": 39, "rigid,Ia": 42, "rigid,Ia,Fv,Fc": 56}  # the first follows from 42 - 3 rotors
STANDARD, REGROUPED = 20, 22  # of Table 1
# Table 1; its rows 7 and 8 are lost in the scan, and hold the three parameters that the counts still need.
TABLE_1 = (
    *("ZZR1", "XXR2", "XYR2", "XZR2", "YZR2", "ZZR2", "MXR2", "MY2", "XXR3", "XYR3", "XZR3", "YZR3", "ZZR3"),
    *("MXR3", "MYR3", "XXR4", "XY4", "XZ4", "YZ4", "ZZR4", "MX4", "MYR4", "Ia4", "XXR5", "XY5", "XZ5", "YZ5"),
    *("ZZR5", "MX5", "MYR5", "Ia5", "XXR6", "XY6", "XZ6", "YZ6", "ZZ6", "MX6", "MY6", "Ia6"),
)
LOST = ("MXR7", "MY7", "MY8")
TABLE_2 = {  # gains of the drive chains and their tolerance [N·m/V]
    "joint1": (94.0, 1.0),
    "joint2": (-160.0, 1.0),
    "joint4": (-14.9, 0.2),
    "joint5": (-16.0, 0.2),
    "joint6": (16.1, 0.2),
    "joint7": (160.0, 1.0),
}
TABLE_3 = {  # the load about the origin of frame 6
    "XX": 0.454,
    "XY": -0.02,
    "XZ": -0.09,
    "YY": 0.445,
    "YZ": -0.115,
    "ZZ": 0.065,
    "MX": 0.48,
    "MY": 0.6,
    "MZ": 2.0,
    "M": 10.9,
}
# Table 4: unloaded; predicted with the load; identified with the load. Fs is called Fc here.
TABLE_4: dict[str, tuple[float | None, float | None, float | None]] = {
    "ZZR1": (50, 54, 57),
    "XXR2": (-22, -26, -26),
    "ZZR2": (42, 47, 47),
    "MXR2": (37, 44.3, 44.3),
    "XXR3": (5, 12, 10),
    "XYR3": (-2.6, -4.4, -4.4),
    "ZZR3": (30, 37, 37),
    "MXR3": (7.5, 9, 9),
    "MYR3": (12, 20.6, 20),
    "Ia4": (0.3, None, 0.3),
    "XXR5": (0, 0.44, 0.42),
    "ZZR5": (0, 0.44, 0.42),
    "MYR5": (0.04, 2, 2),
    "Ia5": (0.27, None, 0.27),
    "XZ6": (0, -0.09, -0.07),
    "YZ6": (0, -0.11, -0.15),
    "ZZ6": (0, 0.06, 0.08),
    "MX6": (0, 0.47, 0.47),
    "MY6": (0, 0.6, 0.6),
    "Ia6": (0.27, None, 0.27),
    "Fv1": (8, None, 10),
    "Fc1": (30, None, 30),
    "Fv2": (55, None, 57),
    "Fc2": (38, None, 36),
    "Fc4": (2, None, 3),
    "Fv5": (0.11, None, None),
    "Fc5": (1.3, None, None),
    "Fv6": (0.034, None, None),
    "Fc6": (-0.4, None, None),
    "Fvm6": (0.14, None, None),
    "Fcm6": (0.92, None, None),
}
MOTOR_7 = {"Fv7": 55.0, "Fc7": 38.0}  # not printed; taken as those of motor 2
LEVELS = (2.4, -3.0)  # [rad/s] of motor 6 and joint 5 in Figure 2
NOT_SIGNIFICANT = 0.15  # relative standard deviation from which a parameter is left out
DECIMATE_GAIN = 10.0 ** (-2.0 * 0.05 / 20.0)  # at rest, of MATLAB's decimate: 0.05 dB of ripple, there and back


def load_relations(d2: float, d3: float, d4: float, r4: float) -> Mapping[str, float]:
    """What the 19 printed relations add for the load of Table 3, by base parameter.

    Args:
        d2, d3, d4, r4: Lengths [m].
    """
    load = TABLE_3
    m, yy = load["M"], load["YY"]
    return {
        "XXR6": load["XX"] - yy,
        **{f"{symbol}6": load[symbol] for symbol in ("XY", "XZ", "YZ", "ZZ", "MX", "MY")},
        "XXR5": yy,
        "ZZR5": yy,
        "MYR5": load["MZ"],
        "XXR3": (r4**2 - d4**2) * m,
        "XYR3": -d4 * r4 * m,
        "ZZR3": (d4**2 + r4**2) * m,
        "MXR3": d4 * m,
        "MYR3": r4 * m,
        "XXR2": -(d3**2) * m,
        "ZZR2": d3**2 * m,
        "MXR2": d3 * m,
        "ZZR1": (d4**2 + d3**2 + d2**2) * m,
    }


def regroupings(d2: float, d3: float, d8: float) -> Mapping[str, Mapping[str, float]]:
    """Where Table 1 regroups rotors 1, 2, 7 and links 8 and 3: coefficient by standard and base parameter."""
    return {
        "Ia1": {"ZZR1": 1.0},
        "Ia2": {"ZZR2": 1.0},
        "Ia7": {"ZZR3": 1.0},
        "M8": {"MXR7": d8, "XXR3": d8**2, "ZZR3": d8**2, "ZZR1": d2**2},
        "MX8": {"MXR2": 1.0, "MYR3": -d8 / d3, "MXR7": -d8 / d3},
        "MZ8": {"YZR3": d8},
        "MZ3": {"XZR2": -d3},
    }
