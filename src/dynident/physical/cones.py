"""Convex problems over cones, put together block by block and solved by Clarabel.

    minimize   1/2 x' P x + q' x    such that   b + A x  lies in a cone, block by block

Every block has a label; the multipliers of a solution are found under it. What is positive semidefinite travels as
the stacked upper triangle, columns after each other, off-diagonal entries times the square root of two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError, InfeasibleError

Kind = Literal["zero", "nonnegative", "second order", "semidefinite", "exponential"]
Indices = NDArray[np.intp]
Part = tuple[Indices, Array]  # variables (k,), and their coefficients (m, k)
_ROOT2 = float(np.sqrt(2.0))
_SOLVER_TOLERANCE = 1e-9
_SOLVED_STATES = ("Solved", "AlmostSolved", "InsufficientProgress", "MaxIterations")  # with small residuals
_MAX_RESIDUAL = 1e-5  # residual of the constraints, relative, up to which a solution counts


class SolveError(DynidentError):
    """A convex problem that was not solved."""


@dataclass(frozen=True)
class Cone:
    """One cone: b + A x lies in it.

    Attributes:
        kind: Which cone.
        rows: (k,) row of each entry of A.
        columns: (k,) its variable.
        data: (k,) its value.
        b: (m,).
    """

    kind: Kind
    rows: Indices
    columns: Indices
    data: Array
    b: Array

    def times(self, x: Array) -> Array:
        """A x, (m,)."""
        return np.bincount(self.rows, self.data * x[self.columns], len(self.b)).astype(np.float64)

    def dense(self, n: int) -> Array:
        """A over the first n variables, (m, n)."""
        A, own = np.zeros((len(self.b), n)), self.columns < n
        A[self.rows[own], self.columns[own]] = self.data[own]
        return A


@dataclass
class ConeProblem:
    """A convex problem under construction.

    Attributes:
        n: Variables so far.
        squares: Weight w_i of 1/2 w_i x_i^2 by variable.
        linear: Coefficient of x_i by variable.
        blocks: Cones by label.
    """

    n: int = 0
    squares: dict[int, float] = field(default_factory=dict)
    linear: dict[int, float] = field(default_factory=dict)
    blocks: dict[str, Cone] = field(default_factory=dict)

    def variables(self, count: int) -> Indices:
        """So many new variables: their indices."""
        first, self.n = self.n, self.n + count
        return np.arange(first, self.n)

    def require(self, label: str, kind: Kind, parts: list[Part], constant: Array) -> None:
        """Add a cone.

        Args:
            label: Name of the block; each has its own.
            kind: Which cone.
            parts: Pairs of indices (k,) and coefficients (m, k).
            constant: (m,) what is added.
        """
        found = [(*np.nonzero(matrix), where, matrix) for where, matrix in parts]
        rows = np.concatenate([row for row, _, _, _ in found])
        columns = np.concatenate([np.asarray(where)[column] for _, column, where, _ in found])
        data = np.concatenate([matrix[row, column] for row, column, _, matrix in found])
        self.blocks[label] = Cone(kind, rows, columns, data, np.asarray(constant, dtype=np.float64))

    def solve(self) -> tuple[Array, dict[str, Array], float]:
        """The minimum: variables (n,), the dual variable of each cone by label, and the solver's time [s].

        Raises:
            InfeasibleError: When the constraints contradict each other.
            SolveError: When the solver gave up.
        """
        import clarabel  # takes a while to load, as SciPy does, and most uses of the library have no need of it
        from scipy import sparse

        P = sparse.diags([self.squares.get(i, 0.0) for i in range(self.n)], format="csc")
        q = np.array([self.linear.get(i, 0.0) for i in range(self.n)])
        A, b = self._stacked()
        cones = [cone for block in self.blocks.values() for cone in _cones(clarabel, block)]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.max_iter = 200
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _SOLVER_TOLERANCE
        found = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
        status = str(found.status)
        if "Infeasible" in status:
            raise InfeasibleError(f"the constraints contradict each other ({status})")
        if status not in _SOLVED_STATES or not _close(found):
            raise SolveError(f"the convex solver stopped without a solution ({status}); are values of sane size?")
        z = np.asarray(found.z)
        ends = np.cumsum([len(block.b) for block in self.blocks.values()])
        parts = np.split(z, ends[:-1])
        return np.asarray(found.x), dict(zip(self.blocks, parts, strict=True)), found.solve_time

    def _stacked(self) -> tuple[Any, Array]:
        """All blocks as the solver wants them: s = b - A x."""
        from scipy import sparse

        blocks = list(self.blocks.values())
        b = np.concatenate([block.b for block in blocks])
        starts = np.cumsum([0, *(len(block.b) for block in blocks)])
        rows = np.concatenate([block.rows + start for block, start in zip(blocks, starts[:-1], strict=True)])
        columns = np.concatenate([block.columns for block in blocks])
        data = np.concatenate([block.data for block in blocks])
        return sparse.csc_matrix((-data, (rows, columns)), shape=(len(b), self.n)), b


def _close(found: Any) -> bool:
    """Whether the residuals are small enough, whatever the solver thinks of its own work."""
    return bool(found.r_prim < _MAX_RESIDUAL and found.r_dual < 1e3 * _MAX_RESIDUAL)


def _cones(clarabel: Any, block: Cone) -> list[Any]:
    """The solver's own names for a block's cones."""
    m = len(block.b)
    if block.kind == "exponential":
        return [clarabel.ExponentialConeT() for _ in range(m // 3)]
    if block.kind == "semidefinite":
        return [clarabel.PSDTriangleConeT(side(m))]
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "second order": clarabel.SecondOrderConeT,
    }
    return [kinds[block.kind](m)]


def side(entries: int) -> int:
    """Side of the matrix whose triangle has so many entries."""
    return int((np.sqrt(8.0 * entries + 1.0) - 1.0) / 2.0)


def triangle(matrix: Array) -> Array:
    """The stacked triangle of symmetric matrices, (..., k, k) to (..., k (k + 1) / 2)."""
    rows, columns = places(matrix.shape[-1])
    return np.asarray(matrix[..., rows, columns] * np.where(rows == columns, 1.0, _ROOT2))


def from_triangle(stacked: Array) -> Array:
    """The symmetric matrix of a stacked triangle, (m,) to (k, k)."""
    k = side(len(stacked))
    rows, columns = places(k)
    matrix = np.zeros((k, k))
    matrix[rows, columns] = stacked / np.where(rows == columns, 1.0, _ROOT2)
    return np.asarray(matrix + np.triu(matrix, 1).T)


def places(k: int) -> tuple[Indices, Indices]:
    """Rows and columns of the entries of the upper triangle, column after column."""
    pairs = [(i, j) for j in range(k) for i in range(j + 1)]
    return np.array([i for i, _ in pairs]), np.array([j for _, j in pairs])


def log_determinant(problem: ConeProblem, label: str, parts: list[Part], constant: Array) -> Indices:
    r"""Variables t (k,) whose sum is at most log det of a matrix M = constant + sum of parts, (k, k).

    .. math:: \begin{bmatrix} M & Z \\ Z^T & \operatorname{diag} Z \end{bmatrix} \succeq 0, \quad t_i \le \log Z_{ii},
        \quad Z \text{ lower triangular}

    Args:
        problem: Grows by the variables and two blocks.
        label: Start of the blocks' labels.
        parts: Pairs of indices (n,) and triangles (k (k + 1) / 2, n) of M.
        constant: Stacked triangle of what is constant in M.
    """
    k = side(len(constant))
    lower = [(i, j) for j in range(k) for i in range(j, k)]
    z, t = problem.variables(len(lower)), problem.variables(k)
    rows, columns = places(2 * k)
    at = {(int(i), int(j)): number for number, (i, j) in enumerate(zip(rows, columns, strict=True))}
    own = [at[int(i), int(j)] for i, j in zip(*places(k), strict=True)]
    big = np.zeros((len(rows), len(lower)))
    for number, (i, j) in enumerate(lower):
        big[at[i, k + j], number] = _ROOT2
        if i == j:
            big[at[k + i, k + i], number] = 1.0
    whole = np.zeros(len(rows))
    whole[own] = constant
    spread = []
    for where, matrix in parts:
        wide = np.zeros((len(rows), matrix.shape[1]))
        wide[own] = matrix
        spread.append((where, wide))
    problem.require(f"{label} determinant", "semidefinite", [*spread, (z, big)], whole)
    diagonal = [number for number, (i, j) in enumerate(lower) if i == j]
    logs, ones = np.zeros((3 * k, k)), np.zeros((3 * k, k))
    logs[0::3], ones[2::3] = np.eye(k), np.eye(k)
    constants = np.zeros(3 * k)
    constants[1::3] = 1.0  # exp(t) <= Z: (t, 1, Z) lies in the exponential cone
    problem.require(f"{label} logarithms", "exponential", [(t, logs), (z[diagonal], ones)], constants)
    return t
