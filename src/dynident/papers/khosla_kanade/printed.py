"""What the paper prints: Tables 2 to 6 and counts of parameters. Lengths and accelerations are not in it."""

from __future__ import annotations

# Table 2: initial, true and estimated value; unit.
TABLE_2 = {
    "MZ3": (0.27, 1.25, 1.249, "kg·m"),
    "M3": (0.9, 2.5, 2.499, "kg"),
    "M2": (2.1, 5.0, 5.0, "kg"),
    "ZZR1": (2.0, 2.5, 2.5, "kg·m²"),
}
# Table 3: estimated values. I3zz - I3xx = 0.1 stands beside both of them, found from joint 2.
TABLE_3 = {
    "XZ3": 0.1,
    "YZ3": 0.15,
    "YY3": 0.1999,
    "XY3": 0.15,
    "MX3": 0.4898,
    "MZ3": 0.7002,
    "YY2": 0.4999,
    "XX3": 0.2001,
    "ZZ3": 0.3001,
    "MX2": 1.1,
    "MZ2": 0.55,
    "MY3": 0.5251,
    "M2": 5.4999,
    "M3": 3.501,
    "ZZ1": 1.2999,
    "MX1": 2.7013,
    "M1": 13.5,
}
COUNT_CYLINDRICAL = 4  # parameters that section 2.4 identifies
COUNT_ARM = 17  # "seventeen of the twenty-seven"
SAME_WITHIN = 5.0  # [%] of Tables 4 to 6, in which four experiments agree
DIFFERENTIATOR = 18.0  # divisor in the first of its two equations; the second has 10
# Torque of the cylindrical robot at sample 10 [N·m, N, N]: the paper has none; from its equations, worked out apart.
SAMPLE_10 = (52.3907, 96.4491, -29.4215)
# Identifiable combinations of Table 3 with a1 = 0.5, a2 = 0.4, d3 = 0.3 m, from its true values.
COMBINATIONS = {
    "ZZR1": 9.625,
    "YYR2": -0.64,
    "MXR2": 4.7,
    "MZR2": 1.075,
    "XXR3": -0.1,
    "XY3": 0.15,
    "XZ3": 0.1,
    "YY3": 0.2,
    "YZ3": 0.15,
    "MX3": 0.49,
    "MZ3": 0.7,
}
