r"""An independent derivation of the closed-form model: Euler and Lagrange instead of Newton and Euler.

Kinetic and potential energy come from homogeneous transforms, with mass m, center of mass r and inertia about the
center of mass for each link. The equations d/dt dL/d(dq) - dL/dq are then nonlinear in r; the coefficients of the
standard parameters are taken out of them as Abhishek et al. do in section 2.3. Nothing is shared with the recursion
but the robot's transforms; the algebra is SymPy's own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from dynident.display import brief
from dynident.errors import DynidentError, InputError
from dynident.robot.model import Robot
from dynident.symbolic.closed_form import require_closed_form
from dynident.symbolic.sympy_forms import load_sympy

_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # XX XY XZ YY YZ ZZ
_DIGITS = 15  # of the description's numbers that are kept
_BODY = ("m", "rx", "ry", "rz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


@brief
@dataclass(frozen=True, eq=False)
class LagrangeModel:
    """The rigid-body model of a robot by Euler and Lagrange, at its moving joints.

    Attributes:
        robot: The robot.
        kinetic: Kinetic energy K over q1, dq1, m1, rx1, .. and Ixx1, .. about the centers of mass.
        potential: Potential energy P.
        tau: (n, 1) torque at the joints over the same symbols, nonlinear in r.
        W: (n, 10 n_links) coefficients of the standard parameters, in the order of `columns(robot, "rigid")`.
    """

    robot: Robot
    kinetic: Any
    potential: Any
    tau: Any
    W: Any


def lagrange_model(robot: Robot) -> LagrangeModel:
    """Derive the rigid-body model from the Lagrangian L = K - P.

    Meant as a second opinion on robots of up to about six joints; `symbolic_model` is the quick way.
    """
    require_closed_form(robot)
    held = [i for i in range(len(robot.active)) if i in robot.locked]
    if held:
        raise InputError("the Lagrange derivation has no locked joints; use symbolic_model, or the robot as it is")
    work = _Derivation(robot)
    kinetic, potential, torques, columns = zip(*(work.link(index) for index in range(robot.n_links)), strict=True)
    n = work.n
    sp = work.sp
    total = [sum((torque[i] for torque in torques), work.zero) for i in range(n)]
    rows = [[work.expression(x) for own in columns for x in own[i]] for i in range(n)]
    return LagrangeModel(
        robot=robot,
        kinetic=work.expression(sum(kinetic, work.zero)),
        potential=work.expression(sum(potential, work.zero)),
        tau=sp.ImmutableMatrix([work.expression(x) for x in total]),
        W=sp.ImmutableMatrix(rows),
    )


class _Derivation:
    """The ring of SymPy in which the derivation is done, and its steps."""

    def __init__(self, robot: Robot) -> None:
        self.sp = sp = load_sympy()
        self.robot, self.n = robot, len(robot.active)
        self.names = list(robot.position_names)
        self.lengths = list(robot.lengths) if robot.geometry is not None else []
        bodies = [f"{kind}{joint.number}" for joint in robot.joints for kind in _BODY]
        trig = [f"{f}({name})" for name in self.names for f in ("cos", "sin")]
        state = [*(f"d{name}" for name in self.names), *(f"dd{name}" for name in self.names)]
        weight = ["g_x", "g_y", "g_z"]
        labels = [*trig, *self.names, *state, *weight, *(f"length {name}" for name in self.lengths), *bodies]
        self.ring, *generators = sp.ring(labels, sp.QQ)
        self.of = dict(zip(labels, generators, strict=True))
        self.zero = self.ring.zero
        self._symbols = self._symbol_table(labels)
        self.dq = [self.of[f"d{name}"] for name in self.names]
        self.ddq = [self.of[f"dd{name}"] for name in self.names]
        self.transforms = self._transforms()

    def _symbol_table(self, labels: list[str]) -> list[Any]:
        """What each generator stands for, as a SymPy expression."""
        sp = self.sp
        gravity = [sp.Rational(str(float(x))) for x in self.robot.gravity]
        along = sum(x != 0 for x in gravity) == 1
        symbols = []
        for label in labels:
            if label[:4] in ("cos(", "sin("):
                symbols.append(getattr(sp, label[:3])(sp.Symbol(label[4:-1])))
            elif label in ("g_x", "g_y", "g_z"):
                value = gravity["xyz".index(label[-1])]
                name = "g" if along else f"g{label[-1]}"
                name += "_" if name in self.lengths else ""
                sign = sp.sign(value) if along else sp.Integer(int(value != 0))
                symbols.append(sign * sp.Symbol(name))
            else:
                symbols.append(sp.Symbol(label.removeprefix("length ")))
        return symbols

    def expression(self, value: Any) -> Any:
        """A ring element as a SymPy expression."""
        return value.as_expr(*self._symbols)

    def _number(self, value: float) -> Any:
        """A float of the description as a rational number, zeros and ones of right angles as such."""
        return self.ring.domain_new(self.sp.Rational(repr(round(float(value), _DIGITS)))) + self.zero

    def _matrix(self, frame: Any) -> list[list[Any]]:
        """A frame of the description as a homogeneous 4 x 4 matrix."""
        axes, origin = frame
        rows = [[*axes[i], origin[i]] for i in range(3)]
        return [[self._element(x) for x in row] for row in [*rows, [0.0, 0.0, 0.0, 1.0]]]

    def _element(self, value: Any) -> Any:
        if isinstance(value, float | int):
            return self._number(value)
        return self._from_expression(self.sp.nsimplify(value, rational=True))

    def _from_expression(self, value: Any) -> Any:
        lookup = {str(symbol): self.of[label] for label, symbol in zip(self.of, self._symbols, strict=True)}
        lookup |= {name: self.of[f"length {name}"] for name in self.lengths}
        result = self.zero
        for term in self.sp.Add.make_args(self.sp.expand(value)):
            product = self.ring.one
            for factor in self.sp.Mul.make_args(term):
                base, exponent = factor.as_base_exp()
                known = lookup.get(str(base))
                product *= self._number(float(factor)) if known is None else known ** int(exponent)
            result += product
        return result

    def _transforms(self) -> list[list[list[Any]]]:
        """Every link's frame seen from the base, as products of homogeneous transforms (eq. 1)."""
        sp, robot = self.sp, self.robot
        frames = [(joint.before.frame(), joint.after.frame()) for joint in robot.joints]
        if robot.geometry is not None:
            frames = robot.geometry.frames({name: sp.Symbol(name) for name in self.lengths})
        result: list[list[list[Any]]] = []
        for joint, (before, after), row, rest in zip(
            robot.joints, frames, robot.follow, robot.follow_offset, strict=True
        ):
            shares = [sp.nsimplify(float(w), rational=True) for w in row]
            position = sp.Add(*(w * sp.Symbol(v) for w, v in zip(shares, self.names, strict=True)))
            position += sp.nsimplify(float(rest), [sp.pi], rational=None) if rest else 0
            motion = _multiply(self._matrix(before), _multiply(self._motion(joint.kind, position), self._matrix(after)))
            result.append(motion if joint.parent < 0 else _multiply(result[joint.parent], motion))
        return result

    def _motion(self, kind: str, position: Any) -> list[list[Any]]:
        one, zero = self.ring.one, self.zero
        if kind == "prismatic":
            c, s, shift = one, zero, self._from_expression(position)
        else:
            c, s = (self._from_expression(self.sp.expand_trig(f(position))) for f in (self.sp.cos, self.sp.sin))
            shift = zero
        return [[c, -s, zero, zero], [s, c, zero, zero], [zero, zero, one, shift], [zero, zero, zero, one]]

    def slope(self, value: Any, joint: int) -> Any:
        """Derivative by a joint's position: d cos = -sin, d sin = cos."""
        name = self.names[joint]
        c, s, q = self.of[f"cos({name})"], self.of[f"sin({name})"], self.of[name]
        return value.diff(c) * -s + value.diff(s) * c + value.diff(q)

    def reduced(self, value: Any) -> Any:
        """The same with squares of sines written as 1 - cos²."""
        for k in range(self.n):
            place = 2 * k + 1
            while any(powers[place] > 1 for powers in value):
                low: dict[Any, Any] = {}
                for powers, coefficient in value.items():
                    moves = ((0, 0, 1),) if powers[place] < 2 else ((0, -2, 1), (2, -2, -1))
                    for c, s, sign in moves:
                        key = (*powers[: place - 1], powers[place - 1] + c, powers[place] + s, *powers[place + 1 :])
                        low[key] = low.get(key, 0) + sign * coefficient
                value = self.ring.from_dict({key: x for key, x in low.items() if x})
        return value

    def link(self, index: int) -> tuple[Any, Any, list[Any], list[list[Any]]]:
        """Energies of one link and what follows from them."""
        joint = self.robot.joints[index]
        mass, *center = (self.of[f"{kind}{joint.number}"] for kind in ("m", "rx", "ry", "rz"))
        inertia = {pair: self.of[f"I{'xyz'[pair[0]]}{'xyz'[pair[1]]}{joint.number}"] for pair in _PAIRS}
        T = self.transforms[index]
        point = [self.reduced(sum((T[i][j] * center[j] for j in range(3)), T[i][3])) for i in range(3)]
        linear = [[self.reduced(self.slope(x, k)) for x in point] for k in range(self.n)]
        angular = [self._angular(T, k) for k in range(self.n)]
        M = [[self.zero] * self.n for _ in range(self.n)]
        for i, j in itertools.combinations_with_replacement(range(self.n), 2):
            moving = sum((a * b for a, b in zip(linear[i], linear[j], strict=True)), self.zero)
            turning = self.zero
            for (a, b), moment in inertia.items():
                both = angular[i][a] * angular[j][b]
                turning += moment * (both if a == b else both + angular[i][b] * angular[j][a])
            M[i][j] = M[j][i] = self.reduced(mass * self.reduced(moving) + turning)
        weight = [self.of[name] for name in ("g_x", "g_y", "g_z")]
        potential = -mass * sum((w * x for w, x in zip(weight, point, strict=True)), self.zero)
        kinetic = sum((M[i][j] * self.dq[i] * self.dq[j] for i in range(self.n) for j in range(self.n)), self.zero) / 2
        torque = [self._torque(M, kinetic, potential, i) for i in range(self.n)]
        columns = [self._extract(x, mass, center, list(inertia.values())) for x in torque]
        return kinetic, potential, torque, columns

    def _angular(self, T: list[list[Any]], joint: int) -> list[Any]:
        """Angular velocity per unit velocity of a joint in the link's frame, from R' dR/dq = [w x]."""
        R = [[T[i][j] for j in range(3)] for i in range(3)]
        D = [[self.slope(x, joint) for x in row] for row in R]

        def entry(a: int, b: int) -> Any:
            return self.reduced(sum((R[k][a] * D[k][b] for k in range(3)), self.zero))

        return [entry(2, 1), entry(0, 2), entry(1, 0)]

    def _torque(self, M: list[list[Any]], kinetic: Any, potential: Any, i: int) -> Any:
        """d/dt dL/d(dq_i) - dL/dq_i with L = K - P (eq. 6)."""
        n = self.n
        momentum = sum((M[i][j] * self.dq[j] for j in range(n)), self.zero)
        result = sum((M[i][j] * self.ddq[j] for j in range(n)), self.zero)
        result += sum((self.slope(momentum, k) * self.dq[k] for k in range(n)), self.zero)
        return self.reduced(result - self.slope(kinetic, i) + self.slope(potential, i))

    def _extract(self, torque: Any, mass: Any, center: list[Any], inertia: list[Any]) -> list[Any]:
        """Coefficients of XX .. ZZ, MX MY MZ, M in a torque of mass, center of mass and inertia about it.

        Inertia about the origin has the coefficients of inertia about the center of mass. Without it and the products
        m r r that come with it, what remains is linear in m r; without that, it is linear in m.
        """
        moments = [torque.diff(x) for x in inertia]
        square = sum((r * r for r in center), self.zero)
        rest = torque
        for (a, b), own, coefficient in zip(_PAIRS, inertia, moments, strict=True):
            steiner = mass * ((square if a == b else self.zero) - center[a] * center[b])
            rest -= coefficient * (own + steiner)
        rest = self.reduced(rest)
        first = [rest.diff(mass).diff(r) for r in center]
        rest -= sum((x * mass * r for x, r in zip(first, center, strict=True)), self.zero)
        last = rest.diff(mass)
        if rest - last * mass != 0 or any(last.diff(r) != 0 for r in center):
            raise DynidentError("the torque is not linear in the standard parameters")  # would contradict mechanics
        return [*moments, *first, last]


def _multiply(a: list[list[Any]], b: list[list[Any]]) -> list[list[Any]]:
    """Product of two 4 x 4 matrices."""
    return [[sum((a[i][k] * b[k][j] for k in range(1, 4)), a[i][0] * b[0][j]) for j in range(4)] for i in range(4)]
