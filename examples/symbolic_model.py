"""A robot's equations in closed form: derived twice, regrouped, printed and used.

Run it with a robot file or a bundled name: python examples/symbolic_model.py cmu-dd-arm-3
"""

from __future__ import annotations

import sys

import numpy as np
import sympy as sp

import dynident as di


def main(name: str = "cmu-dd-arm-3") -> None:
    """Print the equations of a robot with a few joints and prove them."""
    robot = di.load_robot(name)

    # 1. What can be identified, exactly: each base parameter over the standard ones and the named lengths.
    base = di.symbolic.symbolic_base(robot, "rigid,Ia")
    print(base.text())

    # 2. The equations in base parameters, the shortest form there is. `latex()` prints them for a paper.
    print(base.model().text("M,B,C,g"))

    # 3. The same physics by Euler and Lagrange, from energies: the difference is zero, not merely small.
    model = di.symbolic.symbolic_model(robot, "rigid")
    lagrange = di.symbolic.lagrange_model(robot)
    n = len(model.q)
    coupling = sp.Matrix(n, n, lambda i, j: sp.nsimplify(robot.coupling[i, j]))
    difference = lagrange.W - coupling.T * model.W
    left = [x for x in difference if sp.simplify(x) != 0]
    print(f"Lagrange and Newton-Euler differ in {len(left)} of {len(difference)} entries.")

    # 4. As numbers: a printed Python module against the library's own kernels.
    module: dict = {}
    exec(di.symbolic.symbolic_model(robot).python("tau,M"), module)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 100, n))
    tau = [module["inverse_dynamics"](*state) for state in zip(q, dq, ddq, strict=True)]
    error = np.abs(tau - di.inverse_dynamics(robot, q, dq, ddq)).max()
    print(f"The printed Python differs from inverse_dynamics by at most {error:.0e} N·m.")

    # 5. As symbols: where does gravity leave the joints alone?
    for joint, torque in zip(robot.joint_names, model.g, strict=True):
        print(f"{joint}: {'no gravity' if torque == 0 else sp.collect(sp.expand(torque), sp.Symbol('g'))}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
