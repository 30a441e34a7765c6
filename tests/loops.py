"""Robots with loops that no affine relation closes, and independent models of them: MuJoCo, and Lagrange in SymPy."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import sympy as sp

import dynident as di
from dynident.robot.model import BASE, Robot
from dynident.robot.parameters import to_classical

LINKS = """
      1: {mass: 1, com: [0.09, 0.01, 0], inertia: [0.001, 0, 0, 0.004, 0, 0.0047]}
      2: {mass: 1.5, com: [0.22, -0.02, 0.01], inertia: [0.002, 0, 0, 0.03, 0, 0.031]}
      3: {mass: 1.2, com: [0.19, 0.015, 0], inertia: [0.002, 0, 0, 0.016, 0, 0.0175]}
"""
FOUR_BAR = f"""
name: four-bar
convention: modified-dh
lengths: {{crank: 0.2, coupler: 0.5, rocker: 0.4, ground: 0.45}}
gravity: [0, -9.81, 0]
joints:
  - {{name: crank}}
  - {{name: coupler, d: crank, mu: 0}}
  - {{name: rocker, antecedent: 0, d: ground, mu: 0}}
  - {{name: pin, antecedent: 2, d: coupler}}
  - {{name: end, antecedent: 3, sigma: 2, d: rocker}}
loops:
  - {{cut: 4, closes_on: 5, solve: [q2, q3], branch: {{q1: 1, q2: -0.5, q3: 1.3}}}}
parameters:
  plant:
    links: {LINKS}
    Ia: {{1: 0.02}}
    Fv: {{1: 0.1}}
    Fc: {{1: 0.3}}
"""
FIVE_BAR = """
name: five-bar
convention: modified-dh
lengths: {left: 0.3, right: 0.28, far_left: 0.45, far_right: 0.4, base: 0.25}
gravity: [0, -9.81, 0]
joints:
  - {name: left}
  - {name: far_left, d: left, mu: 0}
  - {name: right, antecedent: 0, d: base}
  - {name: far_right, d: right, mu: 0}
  - {name: pin, antecedent: 2, d: far_left}
  - {name: end, antecedent: 4, sigma: 2, d: far_right}
loops:
  - {cut: 5, closes_on: 6, solve: [q2, q4], branch: {q1: 1.9, q3: 1.1, q2: -1.0, q4: 1.0}}
parameters:
  plant:
    links:
      1: {mass: 1, com: [0.14, 0.01, 0], inertia: [0.001, 0, 0, 0.008, 0, 0.0085]}
      2: {mass: 0.9, com: [0.2, -0.02, 0], inertia: [0.002, 0, 0, 0.02, 0, 0.021]}
      3: {mass: 1.1, com: [0.12, -0.01, 0], inertia: [0.001, 0, 0, 0.007, 0, 0.0075]}
      4: {mass: 0.8, com: [0.18, 0.015, 0], inertia: [0.002, 0, 0, 0.012, 0, 0.013]}
    Ia: {1: 0.02, 3: 0.03}
    Fv: {1: 0.1, 3: 0.2}
"""
# Crank and rocker on axes that neither meet nor are parallel, and a rod between ball joints: loops in space.
SPATIAL = """
name: rssr
convention: modified-dh
joints:
  - {name: crank}
  - {name: rocker, antecedent: 0, d: 0.3, alpha: pi/2, r: 0.05, mu: 0}
  - {name: swivel, antecedent: 1, d: 0.1, mu: 0}
  - {name: rod, antecedent: 3, alpha: pi/2, mu: 0}
loops:
  - first: {link: 4, position: [0.35, 0, 0]}
    second: {link: 2, position: [0.25, 0, 0.04]}
    joint: ball
    solve: [q2, q3, q4]
    branch: {q1: 0.3, q2: 1.5, q3: -0.8, q4: 0.8}
parameters:
  plant:
    links:
      1: {mass: 1, com: [0.05, 0.01, 0.02], inertia: [0.002, 0, 0, 0.004, 0, 0.005]}
      2: {mass: 0.8, com: [0.12, -0.01, 0.02], inertia: [0.001, 0.0002, 0, 0.007, 0, 0.0075]}
      3: {mass: 0.1, com: [0, 0, 0], inertia: [0.0002, 0, 0, 0.0001, 0, 0.0002]}
      4: {mass: 0.6, com: [0.17, 0.002, 0.003], inertia: [0.001, 0, 0.0001, 0.006, 0, 0.0065]}
"""


def load(text: str, folder: Path) -> Robot:
    """The robot of a YAML text."""
    path = folder / "robot.yaml"
    path.write_text(text)
    return di.load_robot(path)


# --- MuJoCo ---------------------------------------------------------------------------------------------------------


def mujoco_model(robot: Robot, step: float = 1e-4) -> mujoco.MjModel:
    """The tree in MuJoCo with every loop held by an equality constraint at a point; link frames are joint frames."""
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(i)

    def numbers(values) -> str:
        return " ".join(f"{x:.17g}" for x in np.ravel(values))

    def body(i: int) -> str:
        joint = robot.joints[i]
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, joint.before.rotation.ravel())
        mass, com, inertia = to_classical(robot.link_parameters()[i])
        order = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        rotor = robot.value_set().get(f"Ia{joint.number}", 0.0)
        kind = "hinge" if joint.kind == "revolute" else "slide"
        return (
            f'<body name="b{i}" pos="{numbers(joint.before.translation)}" quat="{numbers(quat)}">'
            f'<inertial pos="{numbers(com)}" mass="{float(mass):.17g}" fullinertia="{numbers(order)}"/>'
            f'<joint name="j{i}" type="{kind}" axis="0 0 1" armature="{rotor:.17g}"/>'
            + "".join(body(child) for child in children.get(i, []))
            + "</body>"
        )

    connects = ""
    for loop in robot.closure.loops:
        names = ["world" if link == BASE else f"b{link}" for link in loop.links]
        connects += f'<connect body1="{names[0]}" body2="{names[1]}" anchor="{numbers(loop.frames[0].translation)}"'
        connects += ' solref="-1e6 -2e3" solimp="0.9999 0.9999 0.001"/>'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" inertiafromgeom="false"/>'
        f'<option timestep="{step}" integrator="RK4" gravity="{numbers(robot.gravity)}" tolerance="1e-15"/>'
        f"<worldbody>{''.join(body(i) for i in children[BASE])}</worldbody><equality>{connects}</equality></mujoco>"
    )
    for k, loop in enumerate(robot.closure.loops):
        model.eq_data[k, 3:6] = loop.frames[1].translation  # anchor in the second body, where the loop closes
    return model


class MujocoOracle:
    """MuJoCo's answers for a robot with loops."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.model = robot, mujoco_model(robot)
        self.data = mujoco.MjData(self.model)
        self.order = [int(self.model.joint(f"j{i}").dofadr[0]) for i in range(len(robot.joints))]
        self.active = [self.order[j] for j in robot.active]

    def _put(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Bring the tree into a state; the constraint Jacobian there."""
        self.data.qpos[self.order], self.data.qvel[self.order] = q, dq
        mujoco.mj_forward(self.model, self.data)
        assert not mujoco.mj_isSparse(self.model)
        return self.data.efc_J.reshape(self.data.nefc, self.model.nv).copy()

    def torque(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Torque of the motors that balances the tree's inertia and weight together with the forces of the loops."""
        result = []
        for a, b, c in zip(q, dq, ddq, strict=True):
            J = self._put(a, b)
            own = np.zeros(self.model.nv)
            own[self.order] = c
            M = np.zeros((self.model.nv, self.model.nv))
            mujoco.mj_fullM(self.model, self.data, M)
            needed = M @ own + self.data.qfrc_bias
            given = np.column_stack([np.eye(self.model.nv)[:, self.active], J.T])
            found = np.linalg.lstsq(given, needed, rcond=1e-10)[0]
            np.testing.assert_allclose(given @ found, needed, atol=1e-9)
            result.append(found[: len(self.active)])
        return np.array(result)

    def opening(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, h: float = 1e-5) -> np.ndarray:
        """Offset, velocity and acceleration at which the loops open, (n_samples, 3); all should be zero."""
        result = []
        for a, b, c in zip(q, dq, ddq, strict=True):
            J = self._put(a, b)
            own, velocity = np.zeros((2, self.model.nv))
            own[self.order], velocity[self.order] = c, b
            gap = self.data.efc_pos[: self.data.nefc].copy()
            bent = (self._put(a + h * b, b) - self._put(a - h * b, b)) @ velocity / (2 * h)
            result.append([np.abs(gap).max(), np.abs(J @ velocity).max(), np.abs(J @ own + bent).max()])
        return np.array(result)

    def simulated(self, start: np.ndarray, torque, seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """Tree positions and velocities after some time under torque(t), from rest."""
        self.data.time = 0.0
        self._put(start, 0.0 * start)
        while self.data.time < seconds - 0.5 * self.model.opt.timestep:
            self.data.qfrc_applied[self.active] = torque(self.data.time)
            mujoco.mj_step(self.model, self.data)
        return self.data.qpos[self.order].copy(), self.data.qvel[self.order].copy()


# --- Lagrange in minimal coordinates --------------------------------------------------------------------------------


def meeting_point(a, b, ra: float, rb: float, side: int):
    """Where circles about a and b meet: the point to the left (side 1) or right of the way from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = dx**2 + dy**2
    along = (ra**2 - rb**2 + square) / (2 * square)
    across = side * sp.sqrt(ra**2 / square - along**2)
    return a[0] + along * dx - across * dy, a[1] + along * dy + across * dx


class LagrangeOracle:
    """Plane links whose pose is known in closed form over the motor angles.

    Args:
        robot: For masses, centers and rotor inertias.
        angles: Symbols of the motor angles.
        poses: For each link (origin x, origin y, cosine, sine) of its frame.
    """

    def __init__(self, robot: Robot, angles, poses) -> None:
        self._robot, places, moved, turned = robot, [], [], []
        self._bodies = [to_classical(chi) for chi in robot.link_parameters()]
        for (_, com, _), (x, y, c, s) in zip(self._bodies, poses, strict=True):
            a, b = float(com[0]), float(com[1])
            places.append(sp.Matrix([x + c * a - s * b, y + s * a + c * b]))
            moved.append(places[-1].jacobian(angles))
            turned.append([c * sp.diff(s, q) - s * sp.diff(c, q) for q in angles])
        self._poses = sp.lambdify(angles, [places, moved, turned], "numpy")

    def _numbers(self, q) -> tuple[np.ndarray, complex]:
        """Mass matrix and potential energy."""
        numbers = [self._robot.joints[j].number for j in self._robot.active]
        M, V = np.diag([complex(self._robot.value_set().get(f"Ia{number}", 0.0)) for number in numbers]), 0.0j
        for (mass, _, inertia), place, moved, turned in zip(self._bodies, *self._poses(*q), strict=True):
            M = M + float(mass) * moved.T @ moved + float(inertia[2, 2]) * np.outer(turned, turned)
            V = V - float(mass) * (self._robot.gravity[:2] @ place).item()
        return M, V

    def mass(self, q: np.ndarray) -> np.ndarray:
        """Mass matrix, (n_samples, n, n)."""
        return np.array([self._numbers(x)[0].real for x in q])

    def torque(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """d/dt dL/d(dq) - dL/dq with L = T - V; slopes by imaginary steps, which are exact to rounding."""
        result = []
        for a, b, c in zip(q, dq, ddq, strict=True):
            ahead = [self._numbers(a + 1e-30j * own) for own in np.eye(len(a))]
            slopes = [M.imag / 1e-30 for M, _ in ahead]
            weight = np.array([V.imag / 1e-30 for _, V in ahead])
            turning = sum((slope @ b) * velocity for slope, velocity in zip(slopes, b, strict=True))
            turning = turning - 0.5 * np.array([b @ slope @ b for slope in slopes])
            result.append(self.mass([a])[0] @ c + turning + weight)
        return np.array(result)


def four_bar_oracle(robot: Robot) -> LagrangeOracle:
    """The four-bar on the branch of `FOUR_BAR`: coupler and rocker meet above the line from crank to ground."""
    size, (q,) = robot.lengths, sp.symbols("q:1")
    crank = size["crank"] * sp.cos(q), size["crank"] * sp.sin(q)
    pin = meeting_point(crank, (size["ground"], 0), size["coupler"], size["rocker"], 1)
    poses = [(0, 0, sp.cos(q), sp.sin(q))]
    poses += [_link(crank, pin, size["coupler"]), _link((size["ground"], 0), pin, size["rocker"])]
    return LagrangeOracle(robot, [q], poses)


def five_bar_oracle(robot: Robot) -> LagrangeOracle:
    """The five-bar on the branch of `FIVE_BAR`: its tip is above the line between its elbows."""
    size, (a, b) = robot.lengths, sp.symbols("q:2")
    left = size["left"] * sp.cos(a), size["left"] * sp.sin(a)
    right = size["base"] + size["right"] * sp.cos(b), size["right"] * sp.sin(b)
    tip = meeting_point(left, right, size["far_left"], size["far_right"], 1)
    poses = [(0, 0, sp.cos(a), sp.sin(a)), _link(left, tip, size["far_left"])]
    poses += [(size["base"], 0, sp.cos(b), sp.sin(b)), _link(right, tip, size["far_right"])]
    return LagrangeOracle(robot, [a, b], poses)


def _link(start, end, length: float):
    """Frame of a link from its two ends."""
    return *start, (end[0] - start[0]) / length, (end[1] - start[1]) / length
