"""Random robots as URDF text, and the same robots in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dynident.robot.rotations import rpy_matrix


def random_urdf(seed: int, *, tree: bool | None = None) -> str:
    """A chain or tree of 1 to 9 moving joints: revolute and prismatic, aligned and skew axes, fixed joints between."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    branching = rng.random() < 0.5 if tree is None else tree
    parts = [_link("base", rng)]
    tips = ["base"]
    for i in range(n):
        parent = tips[int(rng.integers(len(tips)))] if branching else tips[-1]
        if rng.random() < 0.25:
            parts += [_joint(f"fix{i}", "fixed", parent, f"part{i}", rng), _link(f"part{i}", rng)]
            parent = f"part{i}"
        kind = "prismatic" if rng.random() < 0.25 else "revolute"
        parts += [_joint(f"j{i}", kind, parent, f"link{i}", rng), _link(f"link{i}", rng)]
        tips.append(f"link{i}")
    if rng.random() < 0.5:
        parts += [_joint("tool_fix", "fixed", tips[-1], "tool", rng), _link("tool", rng)]
    return f'<robot name="random{seed}">{"".join(parts)}</robot>'


def _text(vector: np.ndarray) -> str:
    return " ".join(f"{x:.17g}" for x in vector)


def _joint(name: str, kind: str, parent: str, child: str, rng: np.random.Generator) -> str:
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    if rng.random() < 0.5:
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    rpy = rng.uniform(-np.pi, np.pi, 3) if rng.random() < 0.7 else rng.integers(-2, 3, 3) * np.pi / 2
    limit = '<limit lower="-3" upper="3" velocity="5" effort="100"/>' if kind != "fixed" else ""
    shape = f'<axis xyz="{_text(axis)}"/>' if kind != "fixed" else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(rng.uniform(-0.5, 0.5, 3))}" rpy="{_text(rpy)}"/>{shape}{limit}</joint>'
    )


def _link(name: str, rng: np.random.Generator) -> str:
    mass = rng.uniform(0.2, 8.0)
    root = rng.normal(size=(3, 3)) * 0.1
    second = root @ root.T + 1e-4 * np.eye(3)
    inertia = mass * (np.trace(second) * np.eye(3) - second)
    numbers = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    entries = " ".join(f'{key}="{inertia[place]:.17g}"' for key, place in numbers.items())
    com, rpy = _text(rng.uniform(-0.2, 0.2, 3)), _text(rng.uniform(-1, 1, 3))
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="{rpy}"/>'
        f'<mass value="{mass:.17g}"/><inertia {entries}/></inertial></link>'
    )


class PinocchioOracle:
    """Pinocchio's answers for a URDF, in the order of our joints."""

    def __init__(self, text: str, joint_names: tuple[str, ...]) -> None:
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        self.order = [self.model.joints[self.model.getJointId(name)].idx_v for name in joint_names]

    def _own(self, x: np.ndarray) -> np.ndarray:
        own = np.zeros(self.model.nv)
        own[self.order] = x
        return own

    def torque(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        return np.array(
            [
                pin.rnea(self.model, self.data, *(self._own(x) for x in state))[self.order]
                for state in zip(q, dq, ddq, strict=True)
            ]
        )

    def mass(self, q: np.ndarray) -> np.ndarray:
        result = []
        for x in q:
            M = np.triu(pin.crba(self.model, self.data, self._own(x)))
            M = M + np.triu(M, 1).T
            result.append(M[np.ix_(self.order, self.order)])
        return np.array(result)

    def energy(self, q: np.ndarray, dq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kinetic = [
            pin.computeKineticEnergy(self.model, self.data, self._own(a), self._own(b))
            for a, b in zip(q, dq, strict=True)
        ]
        return np.array(kinetic), np.array([pin.computePotentialEnergy(self.model, self.data, self._own(a)) for a in q])

    def acceleration(self, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.array(
            [
                pin.aba(self.model, self.data, *(self._own(x) for x in state))[self.order]
                for state in zip(q, dq, tau, strict=True)
            ]
        )


def tree_model(robot) -> pin.Model:
    """The Pinocchio model of a robot's tree, joint by joint from the description's frames."""
    from dynident.robot.parameters import to_classical

    model = pin.Model()
    ids = []
    for joint, chi in zip(robot.joints, robot.link_parameters(), strict=True):
        parent = 0 if joint.parent < 0 else ids[joint.parent]
        placement = pin.SE3(joint.before.rotation, joint.before.translation)
        if joint.parent >= 0:
            carrier = robot.joints[joint.parent].after
            placement = pin.SE3(carrier.rotation, carrier.translation) * placement
        kind = pin.JointModelPZ() if joint.kind == "prismatic" else pin.JointModelRZ()
        ids.append(model.addJoint(parent, kind, placement, joint.name))
        mass, center, inertia = to_classical(chi)
        body = pin.Inertia(float(mass), center, inertia)
        model.appendBodyToJoint(ids[-1], body, pin.SE3(joint.after.rotation, joint.after.translation))
    model.gravity.linear = np.array(robot.gravity)
    return model


__all__ = ["PinocchioOracle", "random_urdf", "rpy_matrix", "tree_model"]
