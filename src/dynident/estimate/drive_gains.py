r"""Drive gains from runs without and with a load of which one mass is known, by total least squares.

Torque is a gain times what was logged, so runs alone tell parameters and gains only up to one common factor; a known
mass fixes that. With the torque y_j that nominal gains give, the factors k_j that correct them, and the load's unknown
standard parameters chi_u beside the known ones,

.. math:: W_j \beta - k_j y_j = 0, \qquad W_j (\beta + K_u \chi_u) + W_j K_k \chi_k - k_j y_j = 0

without and with the load. The noise is in y, which stands on the side of the unknowns: least squares would draw the
gains to zero. So the exact columns are eliminated, and the direction of k is that in which the rest is smallest beside
the noise itself, min ||R k||^2 / sum_j n_j w_j s_j^2 k_j^2, with the channels weighted by their own noise until it
settles. (Gautier, Briot 2014, Global identification of joint drive gains and dynamic parameters of robots.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.blas import on_one_thread
from dynident.checks import Array, frozen
from dynident.errors import InputError, SingularError, UnknownNameError
from dynident.estimate.known_load import Load, tool_link
from dynident.estimate.values import BaseValues
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.solution import RANK_SHARE
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS

_ROUNDS = 200
_SETTLED = 1e-10
_LEAST_NOISE = 1e-10  # share of a channel's torque below which its noise is rounding
_TOLD_APART = 1e-9  # share of the load's known part that its unknown part must not explain


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Drive gains, and what else had to be found with them.

    Attributes:
        joints: Joints in the order of the gains.
        factors: (n_joints,) by which the torques used must be multiplied.
        covariance: (n_joints, n_joints) of the factors.
        nominal: (n_joints,) gains that the torques used were made with; ones where they were raw signals.
        parameters: Base parameters without the load, on the corrected scale.
        load: Load parameters that were not known, and those that were, by name.
        sigma: (n_joints,) noise of each channel on the corrected scale [N·m or N].
        condition: Condition of all unknown columns, scaled to unit norm.
        iterations: Rounds of weighting.
    """

    joints: tuple[str, ...]
    factors: Array
    covariance: Array
    nominal: Array
    parameters: BaseValues
    load: Mapping[str, float]
    sigma: Array
    condition: float
    iterations: int

    def __post_init__(self) -> None:
        for name in ("factors", "covariance", "nominal", "sigma"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def gains(self) -> Array:
        """(n_joints,) drive gains."""
        return self.factors * self.nominal

    @property
    def std(self) -> Array:
        """(n_joints,) their deviations."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0)) * np.abs(self.nominal)

    def table(self) -> str:
        """Joint, gain, deviation and the factor on the nominal gain."""
        lines = [("joint", "gain", "std", "factor")]
        for joint, gain, std, factor in zip(self.joints, self.gains, self.std, self.factors, strict=True):
            lines.append((joint, f"{gain:.5g}", f"{std:.2g}", f"{factor:.4f}"))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


@on_one_thread
def identify_drive_gains(
    robot: Robot,
    unloaded: Information,
    loaded: Information,
    known: Load | Mapping[str, float],
    *,
    nominal: Sequence[float] | Array | None = None,
    known_std: float = 0.0,
    inflation: Sequence[float] | Array | None = None,
) -> DriveGains:
    """Drive gains from unloaded and loaded runs.

    Args:
        robot: The robot; its tool link carries the load.
        unloaded: Data without the load, with torque by nominal gains (as logs with currents have it) or raw signals.
        loaded: Data with the load, torque made in the same way.
        known: The load if all of it is known, else what is known of its standard parameters in the frame of the tool
            link, such as {"M": 10.9}.
        nominal: (n_joints,) gains that the torque was made with; default one.
        known_std: Deviation of the known values as a share of them, all off by the same share.
        inflation: (n_joints,) rows that weigh as much as one independent row; default one.

    Raises:
        SingularError: When the known part of the load does not fix the scale.
    """
    if loaded.channels != unloaded.channels:
        raise InputError(
            f"the loaded data has channels {', '.join(loaded.channels)}, the unloaded {', '.join(unloaded.channels)}; "
            "use the same in both"
        )
    m = len(unloaded.channels)
    scale = _vector(nominal, m, "nominal")
    spread = _vector(inflation, m, "inflation")
    loaded = loaded.over(unloaded)
    columns = _Columns.of(robot, unloaded, known)
    problem = _Problem(unloaded, loaded, columns)
    theta, covariance, sigma, condition, rounds = problem.solve(spread)
    n, u = unloaded.coordinates.n, columns.free.shape[1]
    covariance = covariance + known_std**2 * np.outer(theta, theta)
    factors = theta[n + u :]
    return DriveGains(
        joints=unloaded.channels,
        factors=factors,
        covariance=covariance[n + u :, n + u :],
        nominal=scale,
        parameters=BaseValues(unloaded.coordinates, theta[:n], covariance[:n, :n], np.ones(n, dtype=bool)),
        load=columns.load(theta[n : n + u]),
        sigma=sigma,
        condition=condition,
        iterations=rounds,
    )


def _vector(given: Sequence[float] | Array | None, m: int, name: str) -> Array:
    values = np.ones(m) if given is None else np.asarray(given, dtype=np.float64)
    if values.shape != (m,) or not np.isfinite(values).all() or not values.all():
        raise InputError(f"{name} must be {m} finite numbers other than zero, one per joint; got {given!r}")
    return values


@dataclass(frozen=True)
class _Columns:
    """What a load adds to the base parameters.

    Attributes:
        free: (n, u) independent directions of its unknown part.
        fixed: (n,) its known part.
        back: (n_unknown, u) unknown standard parameters from the directions.
        names: Names of the unknown standard parameters.
        known: Known ones by name.
    """

    free: Array
    fixed: Array
    back: Array
    names: tuple[str, ...]
    known: Mapping[str, float]

    @staticmethod
    def of(robot: Robot, information: Information, given: Load | Mapping[str, float]) -> _Columns:
        number, _ = tool_link(robot)
        if isinstance(given, Load):
            known = given.at(robot)
        else:
            for name in given:
                if name not in LINK_SYMBOLS:
                    raise UnknownNameError("standard parameter of a load", name, LINK_SYMBOLS)
            known = {f"{name}{number}": float(value) for name, value in given.items()}
        K, standard = information.coordinates.K, [column.name for column in information.coordinates.columns]
        place = {name: j for j, name in enumerate(standard)}
        own = [f"{symbol}{number}" for symbol in LINK_SYMBOLS]
        absent = [name for name in own if name not in place]
        if absent:
            raise InputError(f"the data has no column {absent[0]}; use the term rigid")
        fixed = sum((K[:, place[name]] * value for name, value in known.items()), start=np.zeros(len(K)))
        names = tuple(name for name in own if name not in known and K[:, place[name]].any())
        felt = K[:, [place[name] for name in names]]
        size = np.linalg.norm(felt, axis=0)
        left, singular, right = np.linalg.svd(felt / size, full_matrices=False)
        rank = int(np.sum(singular > 1e-9)) if len(singular) else 0
        rest = fixed - left[:, :rank] @ (left[:, :rank].T @ fixed)
        if np.linalg.norm(rest) <= _TOLD_APART * max(float(np.linalg.norm(fixed)), 1e-300):
            raise SingularError(
                "the known part of the load changes nothing that its unknown part could not change as well; the mass "
                "must be known"
            )
        back = (right[:rank].T / singular[:rank]) / size[:, None]
        return _Columns(left[:, :rank], fixed, back, names, known)

    def load(self, directions: Array) -> dict[str, float]:
        """All parameters of the load that have an effect, by name."""
        return {**dict(zip(self.names, (self.back @ directions).tolist(), strict=True)), **self.known}


class _Problem:
    """Rows over base parameters, load directions, factors and the known load, channel by channel."""

    def __init__(self, unloaded: Information, loaded: Information, columns: _Columns) -> None:
        n, u, m = unloaded.coordinates.n, columns.free.shape[1], len(unloaded.channels)
        self.n_exact, self.m = n + u, m
        self.channels, self.rows = [], np.zeros(m)
        for j, (empty, full) in enumerate(zip(unloaded.channel_factors(), loaded.channel_factors(), strict=True)):
            parts = []
            for factor, has_load in ((empty, 0.0), (full, 1.0)):
                dense = factor.dense(n)
                W = dense[:, :n]
                signals = np.zeros((len(dense), m))
                signals[:, j] = -dense[:, n]
                known = has_load * W @ columns.fixed
                parts.append(np.column_stack([W, has_load * W @ columns.free, known, signals]))
            self.channels.append(np.vstack(parts))
            self.rows[j] = empty.n_rows + full.n_rows
            if not self.channels[j][:, n + u + 1 + j].any():
                raise InputError(f"channel {unloaded.channels[j]} has no torque at all; leave it out with `outputs`")

    def solve(self, inflation: Array) -> tuple[Array, Array, Array, float, int]:
        """Unknowns (base, load directions, factors), covariance, noise per channel, condition and rounds."""
        e = self.n_exact
        signal = np.array([np.linalg.norm(part[:, e + 1 + j]) for j, part in enumerate(self.channels)])
        noise = signal / np.sqrt(self.rows)  # of the torque as given; as large as the torque itself to begin with
        floors = _LEAST_NOISE * noise
        factors = np.ones(self.m)
        rounds, settled = 0, False
        while not settled and rounds < _ROUNDS:
            rounds += 1
            theta = self._direction(noise, factors)
            before, factors = factors, theta[e:]
            residual = [np.linalg.norm(part @ np.insert(theta, e, 1.0)) for part in self.channels]
            found = np.array(residual) / np.sqrt(self.rows) / np.abs(factors)
            moved = float(np.abs(factors / before - 1.0).max())
            found = np.maximum(found, floors)
            settled = bool(moved < _SETTLED and np.abs(found / noise - 1.0).max() < 1e-6)
            noise = found
        if not settled:
            raise SingularError(
                f"the gains have not settled after {rounds} rounds: in some channel there is more noise than torque; "
                "filter it, record livelier motion, or use a heavier load"
            )
        covariance, condition = self._spread(theta, noise, inflation)
        return theta, covariance, noise * np.abs(factors), condition, rounds

    def _direction(self, noise: Array, factors: Array) -> Array:
        """One round: exact columns eliminated, factors in the direction least beside the noise, scale by the load."""
        e = self.n_exact
        roots = 1.0 / (noise * np.abs(factors))
        stacked = np.vstack([part * root for part, root in zip(self.channels, roots, strict=True)])
        size = np.linalg.norm(stacked, axis=0)
        if not size[: e + 1].all():
            raise SingularError("some columns are zero throughout: restrict the data to parameters that it feels")
        R = triangular(stacked / size)
        exact, mixed, rest = R[: e + 1, : e + 1], R[: e + 1, e + 1 :], R[e + 1 :, e + 1 :]
        if np.abs(np.diag(exact)).min() < RANK_SHARE * (e + 1) * np.abs(np.diag(exact)).max():
            raise SingularError(
                "the runs do not tell the load from the robot; move all joints in both, with and without the load"
            )
        weight = np.sqrt(self.rows) * roots * noise / size[e + 1 :]  # noise in each scaled column of torque
        k = np.linalg.svd(rest / weight)[2][-1] / weight
        others = -np.linalg.solve(exact, mixed @ k)
        whole = np.concatenate([others, k]) / size
        if abs(others[-1]) < 1e-12 * float(np.abs(others).max()):
            raise SingularError(
                "the loaded runs do not show the known load; were they made with it, and is it heavy enough?"
            )
        return np.asarray(np.delete(whole / whole[e], e))

    def _spread(self, theta: Array, noise: Array, inflation: Array) -> tuple[Array, float]:
        """Covariance of the unknowns, and the condition of their columns scaled to unit norm."""
        e, m = self.n_exact, self.m
        factors = theta[e:]
        roots = 1.0 / (noise * np.abs(factors))
        known = [np.delete(part, e, axis=1) * root for part, root in zip(self.channels, roots, strict=True)]
        H = sum((part.T @ part for part in known), start=np.zeros((e + m, e + m)))
        M = sum((f * part.T @ part for f, part in zip(inflation, known, strict=True)), start=np.zeros((e + m, e + m)))
        own = np.arange(e, e + m)
        # The noise in the torque columns is no information. Its square has no part in the deviations, because the noise
        # of every channel is taken from the same residuals.
        H[own, own] -= self.rows / factors**2
        M[own, own] -= inflation * self.rows / factors**2
        size = np.linalg.norm(np.vstack(known), axis=0)
        scaled = H / np.outer(size, size)
        inverse = np.linalg.inv(scaled)
        singular = np.linalg.svd(np.vstack(known) / size, compute_uv=False)
        return inverse @ (M / np.outer(size, size)) @ inverse / np.outer(size, size), float(singular[0] / singular[-1])
