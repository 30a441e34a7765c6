"""Equality constraints of an MJCF model: joints that follow others linearly, and bodies that close loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.robot.draft import Draft
from dynident.robot.loops import joint_states, loop_paths, loop_rows, loop_size
from dynident.robot.model import CutJoint, Loop, Transform
from dynident.robot.notices import Notices
from dynident.robot.rotations import quaternion_matrix
from dynident.schema import LocatedReader

_NOTHING = 1e-9  # coefficient of a relation, relative to its largest, that is rounding
_NEW = 1e-6  # [rad or sizes of the loop] by which a joint moves a loop in a way that others cannot
_CLEAR = 1e-2  # the same of a joint that a loop is solved for, where there is one
_MOST_STEPS = 100  # of Newton's method to a pose at which loops close
Place = tuple[int, Transform]  # link that carries a body, and the body's frame in it


def fixed_tendon_terms(model: Any, tendon: int) -> dict[int, float]:
    """Joint -> coefficient of a fixed tendon."""
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    terms: dict[int, float] = {}
    for k in range(first, first + count):
        joint = int(model.wrap_objid[k])
        terms[joint] = terms.get(joint, 0.0) + float(model.wrap_prm[k])
    return {joint: number for joint, number in terms.items() if number}


def resolved_terms(passive: Mapping[int, object], terms: Mapping[int, float]) -> tuple[dict[int, float], float]:
    """A sum of joints over those that follow no other, and its constant."""
    found: dict[int, float] = {}
    constant = 0.0
    for joint, share in terms.items():
        if joint in passive:
            relation: Any = passive[joint]
            inner, offset = resolved_terms(passive, relation[0])
            constant += share * (relation[1] + offset)
            for other, number in inner.items():
                found[other] = found.get(other, 0.0) + share * number
        else:
            found[joint] = found.get(joint, 0.0) + share
    return {joint: number for joint, number in found.items() if number}, constant


class EqualityReader:
    """Reads the equality constraints of a model into a draft.

    Args:
        mujoco: The module.
        model: The compiled model.
        draft: The robot so far.
        bodies: Where each body is.
        notices: Takes what is not used.
        driven: Names of the joints that an actuator drives.
        mocap: Names of bodies that users move.
    """

    def __init__(
        self,
        mujoco: Any,
        model: Any,
        draft: Draft,
        bodies: Sequence[Place],
        notices: Notices,
        driven: set[str],
        mocap: set[str],
    ) -> None:
        self.mujoco, self.model, self.draft, self.bodies, self.notices = mujoco, model, draft, bodies, notices
        self.driven = {j for j, joint in enumerate(draft.joints) if joint.name in driven}
        self.mocap = mocap
        self.reader: LocatedReader = draft.reader

    def read(self) -> None:
        """Followers and loops."""
        kinds = self.mujoco.mjtEq
        readers: dict[int, Callable[[int, str], None]] = {
            int(kinds.mjEQ_JOINT): self._joint,
            int(kinds.mjEQ_TENDON): self._tendon,
            int(kinds.mjEQ_CONNECT): self._loop,
            int(kinds.mjEQ_WELD): self._loop,
        }
        for e in range(self.model.neq):
            where = f"equality '{self.model.equality(e).name or e + 1}'"
            if not self.model.eq_active0[e]:
                self.notices.add(where, "is not active and was not used")
            elif int(self.model.eq_type[e]) in readers:
                readers[int(self.model.eq_type[e])](e, where)
            else:
                problem = (
                    "is neither of joint, tendon, connect and weld, for which dynident has no equations; remove it"
                )
                raise self.reader.error(where, problem)
        if self.draft.closing:
            _LoopSolution(self).choose()

    # --- followers --------------------------------------------------------------------------------------------------

    def _joint(self, e: int, where: str) -> None:
        """q1 - q1_0 = c0 + c1 (q2 - q2_0)."""
        model, coefficients = self.model, self._line(e, where, "joint")
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        terms, constant = {first: 1.0}, float(model.qpos0[first] + coefficients[0])
        if second >= 0:
            terms[second] = terms.get(second, 0.0) - float(coefficients[1])
            constant -= float(coefficients[1] * model.qpos0[second])
        self._relate(terms, constant, where)

    def _tendon(self, e: int, where: str) -> None:
        """The same of the lengths of fixed tendons."""
        model, coefficients = self.model, self._line(e, where, "tendon")
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        terms, constant = fixed_tendon_terms(model, first), float(model.tendon_length0[first] + coefficients[0])
        if second >= 0:
            for joint, share in fixed_tendon_terms(model, second).items():
                terms[joint] = terms.get(joint, 0.0) - float(coefficients[1]) * share
            constant -= float(coefficients[1] * model.tendon_length0[second])
        self._relate(terms, constant, where)

    def _line(self, e: int, where: str, what: str) -> Array:
        """The two coefficients of a relation that is a line."""
        coefficients = np.array(self.model.eq_data[e][:5])
        if int(self.model.eq_obj2id[e]) >= 0 and coefficients[2:].any():
            shown = " ".join(f"{x:g}" for x in coefficients)
            raise self.reader.error(
                where,
                f"is curved: a {what} follows another by polycoef '{shown}'; dynident knows followers along a line "
                "('a b 0 0 0'), write the line that is nearest in the range of use",
            )
        return coefficients

    def _relate(self, given: Mapping[int, float], constant: float, where: str) -> None:
        """Let one joint follow the others so that the sum of the terms is constant."""
        terms, offset = resolved_terms(self.draft.passive, given)
        size = max((abs(x) for x in given.values()), default=0.0)
        terms = {joint: x for joint, x in terms.items() if abs(x) > _NOTHING * size}
        if not terms:
            if abs(constant - offset) > _NOTHING * max(1.0, abs(constant)):
                raise self.reader.error(where, "contradicts the equalities before it; remove one of them")
            return  # they say the same
        follower = min(
            terms, key=lambda joint: joint in self.driven
        )  # the first as written, one without a motor before
        own = terms.pop(follower)
        rest = (constant - offset) / own
        self.draft.passive[follower] = ({joint: -x / own for joint, x in terms.items()}, rest)

    # --- loops ------------------------------------------------------------------------------------------------------

    def _loop(self, e: int, where: str) -> None:
        """Two bodies, or two sites, held together at a point (connect) or altogether (weld)."""
        model = self.model
        sites = int(model.eq_objtype[e]) == int(self.mujoco.mjtObj.mjOBJ_SITE)
        welds = int(model.eq_type[e]) == int(self.mujoco.mjtEq.mjEQ_WELD)
        ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
        bodies = [int(model.site_bodyid[x]) for x in ends] if sites else ends
        if any(model.body(b).name in self.mocap for b in bodies):
            self.notices.add(where, "holds on to a body that users move (mocap), which is a command, and was not used")
            return
        data = np.array(model.eq_data[e])
        if sites:
            frames = [Transform(quaternion_matrix(model.site_quat[x]), model.site_pos[x]) for x in ends]
        elif welds:
            turned = quaternion_matrix(data[6:10])
            frames = [Transform(turned, data[3:6]), Transform(np.eye(3), data[:3])]
        else:
            frames = [Transform(np.eye(3), data[:3]), Transform(np.eye(3), data[3:6])]
        places = [self.bodies[b] for b in bodies]
        held = [place @ frame for (_, place), frame in zip(places, frames, strict=True)]
        joint: CutJoint = "fixed" if welds and data[10] > 0.0 else "ball"
        name = where.partition("'")[2].rstrip("'")
        loop = Loop(name, (places[0][0], places[1][0]), (held[0], held[1]), joint)
        if any(loop_paths(loop, self.draft.joints)):
            self.draft.closing.append(loop)
        # else nothing between them moves


class _LoopSolution:
    """Which joints the loops of a draft are solved for, and a pose at which they close."""

    def __init__(self, equalities: EqualityReader) -> None:
        self.draft, self.model, self.driven = equalities.draft, equalities.model, equalities.driven
        self.joints = self.draft.joints
        self.free = [j for j in range(len(self.joints)) if j not in self.draft.passive]
        self.follow, self.offset = np.zeros((len(self.joints), len(self.free))), np.zeros(len(self.joints))
        for j in range(len(self.joints)):
            terms, self.offset[j] = resolved_terms(self.draft.passive, {j: 1.0})
            for other, share in terms.items():
                self.follow[j, self.free.index(other)] = share
        size = max(loop_size(loop, self.joints) for loop in self.draft.closing)
        self.units = np.array([size if self.joints[j].kind == "prismatic" else 1.0 for j in self.free])

    def choose(self) -> None:
        """Put the solved joints, a pose of the others and the branch there into the draft."""
        start = np.array([float(self.model.qpos0[j]) for j in self.free])
        poses = [pose for pose in (self._closed(start), self._closed(self._middle(start))) if pose is not None]
        if not poses:
            names = ", ".join(loop.name for loop in self.draft.closing)
            problem = "the loops that it closes do not close at the pose of the file; check anchors and joint positions"
            raise self.draft.reader.error(f"equality '{names}'", problem)
        choices = [self._independent(pose) for pose in poses]
        best = max(range(len(poses)), key=lambda i: (len(choices[i][0]), choices[i][1] > _CLEAR, -i))
        chosen, pose = choices[best][0], poses[best]
        motors = [self.joints[self.free[k]].name for k in chosen if self.free[k] in self.driven]
        if motors:
            names = ", ".join(loop.name for loop in self.draft.closing)
            problem = (
                f"closes loops that leave fewer motions free than there are actuators: {', '.join(motors)} must follow "
                "the others, and how their torques share a load is not determined; take those actuators away"
            )
            raise self.draft.reader.error(f"equality '{names}'", problem)
        for k in chosen:
            self.draft.solved[self.free[k]] = float(pose[k])
        for k, j in enumerate(self.free):
            if j not in self.draft.solved and pose[k]:
                self.draft.reference[j] = float(pose[k])

    def _middle(self, start: Array) -> Array:
        """The pose with limited joints in the middle of their range."""
        spans = [self.joints[j].limits.span for j in self.free]
        return np.array([0.5 * (a + b) if np.isfinite(b - a) else x for x, (a, b) in zip(start, spans, strict=True)])

    def _rows(self, pose: Array) -> tuple[Array, Array]:
        """Residuals of all loops, and their derivatives by the free joints in units of their motion."""
        placed = joint_states(self.joints, self.follow @ pose + self.offset)
        residual: list[float] = []
        blocks = []
        for loop in self.draft.closing:
            rows = loop_rows(loop, self.joints, placed)
            block = np.zeros((len(rows.residual), len(self.joints)))
            for joint, derivative in rows.jacobian.items():
                block[:, joint] = derivative
            residual += rows.residual
            blocks.append(block)
        return np.array(residual), np.concatenate(blocks) @ self.follow * self.units

    def _closed(self, pose: Array) -> Array | None:
        """The nearest pose at which all loops close, by Newton's method; None where there is none near."""
        for _ in range(_MOST_STEPS):
            residual, jacobian = self._rows(pose)
            step = np.linalg.lstsq(jacobian, -residual, rcond=1e-9)[0]
            longest = float(np.abs(step).max())
            pose = pose + step * self.units * min(1.0, 0.2 / max(longest, 1e-300))
            if longest < 1e-13:
                break
        return pose if np.abs(self._rows(pose)[0]).max() < 1e-9 else None

    def _independent(self, pose: Array) -> tuple[list[int], float]:
        """The free joints that the loops determine, those without motor, spring and friction first, and how clearly."""
        rest = self._rows(pose)[1]
        chosen: list[int] = []
        clearest = np.inf
        ranks = [self._rank(j) for j in self.free]
        while True:
            sizes = np.linalg.norm(rest, axis=0)
            if not sizes.max(initial=0.0) > _NEW:
                return chosen, float(clearest)
            clear = min(_CLEAR, 0.5 * float(sizes.max()))
            k = min(np.flatnonzero(sizes > clear), key=lambda i: (ranks[i], -sizes[i]))
            chosen.append(int(k))
            clearest = min(clearest, float(sizes[k]))
            along = rest[:, k] / sizes[k]
            rest = rest - np.outer(along, along @ rest)

    def _rank(self, joint: int) -> tuple[bool, int]:
        """What speaks against solving for a joint."""
        model = self.model
        lossy = (model.jnt_stiffness[joint], model.dof_damping[joint], model.dof_frictionloss[joint])
        return joint in self.driven, sum(bool(x) for x in lossy)
