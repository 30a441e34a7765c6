"""A robot's equations on any number type: the recursion, the actuation map and the terms put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dynident.arrays import Array
from dynident.dynamics.recursion import inertia_wrench, joint_torques, mass_matrix
from dynident.dynamics.state import Actuation, State
from dynident.dynamics.terms import Term
from dynident.robot.algebra import ZERO, Number, Vector, add, cross, mul, rotate, sub, total, vadd
from dynident.robot.model import Element


def regressor_entries(state: State, terms: Sequence[Term]) -> dict[tuple[int, int], Number]:
    """Entries (row, column) of the regressor that are not plain zero."""
    entries: dict[tuple[int, int], Number] = {}
    first = 0
    for term in terms:
        for row, column, number in term.torque(state):
            if not (isinstance(number, float) and number == 0.0):
                entries[row, first + column] = add(entries.get((row, first + column), 0.0), number)
        first += len(term.columns(state.robot))
    return entries


def energy_entries(state: State, terms: Sequence[Term], kind: Literal["kinetic", "potential"]) -> dict[int, Number]:
    """Entries (column) of an energy regressor that are not plain zero."""
    entries: dict[int, Number] = {}
    first = 0
    for term in terms:
        for column, number in getattr(term, kind)(state):
            if not (isinstance(number, float) and number == 0.0):
                entries[first + column] = number
        first += len(term.columns(state.robot))
    return entries


def inverse_dynamics(
    state: State,
    terms: Sequence[Term],
    chi: Sequence[Number],
    tool_force: Vector = ZERO,
    tool_moment: Vector = ZERO,
) -> list[Number]:
    """Torque at the rows for given parameters, one number per column of `terms`.

    The tool exerts `tool_force` and `tool_moment` (Khosla & Kanade eq. 7-8), in the tool frame.
    """
    robot = state.robot
    torques: list[Number] = [0.0] * state.n_rows
    first = 0
    wrenches = [(ZERO, ZERO) for _ in robot.joints]
    for term in terms:
        count = len(term.columns(robot))
        own = chi[first : first + count]
        first += count
        if term.name == "rigid":
            wrenches = [
                inertia_wrench(own[10 * link : 10 * link + 10], motion) for link, motion in enumerate(state.motions)
            ]
            continue
        for row, column, number in term.torque(state):
            torques[row] = add(torques[row], mul(own[column], number))
    if robot.tool is not None:
        link, frame = robot.tool
        axes, position = frame.frame()
        force, moment = rotate(axes, tool_force), rotate(axes, tool_moment)
        wrenches[link] = (
            vadd(wrenches[link][0], force),
            vadd(wrenches[link][1], vadd(moment, cross(position, force))),
        )
    rigid = state.to_rows(joint_torques(state.tree, state.joints, wrenches))
    return [add(a, b) for a, b in zip(rigid, torques, strict=True)]


def mass_entries(state: State, terms: Sequence[Term], chi: Sequence[Number]) -> list[list[Number]]:
    """Mass matrix over the moving joints: power of the torque at the rows along the joints' velocities.

    M = F' M_tree F + sum Ia (e·s'); with F from the moving joints to the tree.
    """
    actuation, follow = Actuation(state.robot), state.follow
    n = state.n_rows
    matrix: list[list[Number]] = [[0.0] * n for _ in range(n)]
    first = 0
    for term in terms:
        columns = term.columns(state.robot)
        own = chi[first : first + len(columns)]
        first += len(columns)
        if term.name == "rigid":
            bodies = [own[10 * i : 10 * i + 10] for i in range(len(state.tree))]
            tree = mass_matrix(state.tree, state.joints, bodies)
            for (i, j), number in tree.items():
                for a in range(n):
                    for b in range(a, n):
                        weight = mul(follow[i][a], follow[j][b])
                        if i != j:
                            weight = add(weight, mul(follow[j][a], follow[i][b]))
                        matrix[a][b] = add(matrix[a][b], mul(weight, number))
        elif term.name == "Ia":
            elements = [element for element in state.robot.elements if "Ia" in element.names]
            for value, element in zip(own, elements, strict=True):
                turn = _with_solved(state, element.velocity @ actuation.velocities, element)
                push = _with_solved(state, element.torque @ actuation.velocities, element)
                for a in range(n):
                    for b in range(a, n):
                        matrix[a][b] = add(matrix[a][b], mul(mul(push[a], turn[b]), value))
    for a in range(n):
        for b in range(a):
            matrix[a][b] = matrix[b][a]
    return matrix


def _with_solved(state: State, direction: Array, element: Element) -> list[Number]:
    """An element's velocity over those of the moving joints, with what joints add that loops are solved for."""
    own: list[Number] = [float(x) for x in direction]
    if state.solved is None:
        return own
    jacobian = [[row[i] for i in state.rows] for row in state.solved.jacobian]
    for share, row in zip(element.solved, jacobian, strict=True):
        own = [add(x, mul(float(share), y)) for x, y in zip(own, row, strict=True)]
    return own


def solve_positive(matrix: list[list[Number]], right: list[Number]) -> list[Number]:
    """x with matrix x = right for a symmetric positive definite matrix, by L D L' in straight-line form."""
    n = len(right)
    lower: list[list[Number]] = [[0.0] * n for _ in range(n)]
    inverse: list[Number] = [0.0] * n
    scaled: list[list[Number]] = [[0.0] * n for _ in range(n)]
    for j in range(n):
        pivot = sub(matrix[j][j], total(*(mul(lower[j][k], scaled[j][k]) for k in range(j))))
        inverse[j] = 1.0 / pivot
        for i in range(j + 1, n):
            rest = sub(matrix[i][j], total(*(mul(scaled[i][k], lower[j][k]) for k in range(j))))
            scaled[i][j] = rest
            lower[i][j] = mul(rest, inverse[j])
    x = list(right)
    for i in range(n):
        x[i] = sub(x[i], total(*(mul(lower[i][k], x[k]) for k in range(i))))
    x = [mul(value, inverse[i]) for i, value in enumerate(x)]
    for i in range(n - 1, -1, -1):
        x[i] = sub(x[i], total(*(mul(lower[k][i], x[k]) for k in range(i + 1, n))))
    return x
