"""Write the truths of `dynident doctor`, src/dynident/cli/self_test.json, from sources that are not dynident's.

Torque and the number of base parameters by Pinocchio, a regression with the values certified by NIST, and the values
with which the logs of the demo were simulated.

    python tools/self_test_truths.py           # writes the file
    python tools/self_test_truths.py --check   # says whether it is what this would write, to 1e-12
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.information import nist  # noqa: E402

import dynident as di  # noqa: E402
from dynident.export.urdf import export_urdf  # noqa: E402

FILE = ROOT / "src" / "dynident" / "cli" / "self_test.json"
ROBOTS = ("panda", "ur10e", "puma560")
STATES = 3


def truths() -> dict[str, Any]:
    """All of them."""
    W, y, values, deviations = nist.longley()
    truth = di.load_robot(ROOT / "examples" / "demo" / "truth.yaml").value_set("truth")
    return {
        "dynamics": {name: _dynamics(name) for name in ROBOTS},
        "regression": {
            "source": "NIST StRD Longley",
            "columns": W.tolist(),
            "observed": y.tolist(),
            "values": values.tolist(),
            "std": deviations.tolist(),
        },
        "demo": dict(truth),
    }


def _dynamics(name: str) -> dict[str, Any]:
    """Torque in some states, and how many base parameters the links have."""
    robot = di.load_robot(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        export_urdf(robot, robot.value_set(), path, terms="rigid")
        model = pinocchio.buildModelFromUrdf(str(path))
    data, rng = model.createData(), np.random.default_rng(0)
    model.gravity.linear = np.array(robot.gravity)
    n = model.nv
    states = [tuple(rng.uniform(-1.5, 1.5, n).round(3) for _ in range(3)) for _ in range(STATES)]
    torque = [pinocchio.rnea(model, data, *state) for state in states]
    rows = [pinocchio.computeJointTorqueRegressor(model, data, *rng.uniform(-2, 2, (3, n))) for _ in range(100)]
    return {
        **{key: [state[i].tolist() for state in states] for i, key in enumerate(("q", "dq", "ddq"))},
        "torque": [one.tolist() for one in torque],
        "base_parameters": int(np.linalg.matrix_rank(np.vstack(rows), tol=1e-8)),
    }


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_same, a, b))
    return a == b if isinstance(a, str) else bool(np.isclose(a, b, rtol=1e-12, atol=1e-12))


def main() -> int:
    """Command line."""
    found = truths()
    if "--check" in sys.argv[1:]:
        same = _same(found, json.loads(FILE.read_text()))
        print(f"{FILE.relative_to(ROOT)} is {'true' if same else 'out of date: python tools/self_test_truths.py'}")
        return 0 if same else 1
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{FILE.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
