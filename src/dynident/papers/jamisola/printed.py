"""What the paper prints: Tables I to VI, and the constants that fit them."""

from __future__ import annotations

SAMPLE_TIME = 0.01733  # [s] of an update; with KP below, N = 35.50 at the right inertia
KP = 0.41415  # [1/s²]
PHYSICS_STEPS = 4  # of MuJoCo in an update; with 8 periods of an inertia run move by less than 0.003
START = 15.0  # [deg], alternating
UPDATES = {"gravity": 5000, "inertia": 20000}  # in a run of each stage

_FINE = (1.005, 1.004, 1.003, 1.002, 1.001, 1.000)
_COARSE = (1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09, 1.10)

# By number of links and stage: number of the table, the factor of each row, which is the same for all parameters, and
# the number of periods in it; None where the arm falls.
TABLES: dict[tuple[int, str], tuple[str, tuple[float, ...], tuple[float | None, ...]]] = {
    (1, "gravity"): ("I", (1.020, 1.010, *_FINE, 0.999), (8.7, 6.9, 5.8, 5.5, 5.1, 4.8, 4.2, 4.1, None)),
    (1, "inertia"): ("II", _COARSE, (35.5, 35.57, 36, 36, 36.1, 36.5, 36.62, 36.6, 37, 37, 37.13)),
    (2, "gravity"): ("III", (1.010, *_FINE, 0.999, 0.998), (5.4, 4.7, 4.5, 4.5, 4.4, 4.2, 4, 3.6, None)),
    (2, "inertia"): ("IV", _COARSE, (35.5, 35.61, 36, 36, 36.14, 36.5, 36.5, 36.66, 37, 37, 37.17)),
    (3, "gravity"): ("V", (1.010, *_FINE, 0.999, 0.998), (4.5, 4, 3.9, 3.9, 3.7, 3.2, 3.1, 3, None)),
    (3, "inertia"): ("VI", _COARSE, (35.5, 35.62, 36, 36, 36.14, 36.5, 36.5, 36.66, 37, 37, 37.18)),
}

# What the automatic search achieves from weights half as large again: worst relative error [%] by number of links.
WEIGHT_ERROR = {1: 0.002, 2: 0.008, 3: 0.031}
INERTIA_ERROR = {1: 0.1, 2: 0.1, 3: 0.017}  # [%] of the inertias; the search ends when w²/kp is one to 0.1 %
