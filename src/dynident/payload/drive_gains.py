r"""Drive gains from runs without and with a payload of which one mass is known, by total least squares.

Torque is a gain times what was logged, so runs alone tell parameters and gains only up to one common factor; a known
mass fixes that. With the torque y_j that nominal gains give, the factors k_j that correct them, and the payload's
unknown standard parameters chi_u beside the known ones,

.. math:: W_j \beta - k_j y_j = 0, \qquad W_j (\beta + K_u \chi_u) + W_j K_k \chi_k - k_j y_j = 0

without and with the payload. The noise is in y, which stands on the side of the unknowns: least squares would draw the
gains to zero. Total least squares looks for the smallest change of y, beside its noise, that makes the equations agree,

.. math:: \min \sum_j \| y_j - (W_j \beta_j + b_j) / k_j \|^2 / s_j^2

with s_j the standard deviation of that change in channel j, found on the way. It starts at the direction of k in which
least is left when the exact columns are eliminated. (After Gautier, Briot 2014, Global identification of joint drive
gains and dynamic parameters of robots.)

That takes the columns for exact. Columns made of positions in steps of an encoder are not: their noise draws inertias,
and with them the gains, aside by percents. Experiments know the logs they were made of; their rows are then seen
through instruments (`instruments.py`), which such noise does not reach, and away from reversals of dry friction. What
the delay of the torque in each experiment lacks is unknown as well: a column D_j beside the torque, y_j - D_j d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.errors import InputError, SingularError, UnknownNameError
from dynident.estimate.stage_data import StageData, shared_inflation
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord, text_table
from dynident.information.solution import RANK_SHARE
from dynident.payload.body import Payload, tool_link
from dynident.payload.instruments import InstrumentedChannel, instrument_channels
from dynident.payload.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS

_MAX_ROUNDS = 500
_SETTLED_STEP = 1e-9
_REWEIGHTING_ROUNDS = 4  # rounds in which the noise of each channel is measured again
_MAX_DAMPING = 1e6  # beyond it, a step that does not help is as good as none
_MIN_NOISE_SHARE = 1e-10  # share of a channel's torque below which its noise is rounding
_POSITIVE = ("ZZ", "Ia", "Fv", "Fc")  # no body or drive has these negative, regrouped or not
_ROUNDING = 1e-9  # share of the payload's known part that its unknown part must not explain


@record
class DriveGains(ParameterEstimate):
    """Drive gains by joint, and what else had to be found with them.

    The residual standard deviations are the noise of each channel on the corrected scale [N·m or N], the condition is
    that of all unknown columns, scaled to unit norm.

    Attributes:
        nominal: (n_joints,) gains that the torques used were made with; ones where they were raw signals.
        parameters: Base parameters without the payload, on the corrected scale.
        payload: Payload parameters that were not known, and those that were, by name.
        warnings: What a reader should know.
    """

    nominal: Array = field(default_factory=lambda: np.zeros(0))
    parameters: ParameterEstimate | None = None
    payload: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints in the order of the gains."""
        return self.names

    @property
    def gains(self) -> Array:
        """(n_joints,) drive gains."""
        return self.values

    @property
    def factors(self) -> Array:
        """(n_joints,) by which the torques used must be multiplied."""
        return self.values / self.nominal

    def table(self) -> str:
        """Joint, gain, standard deviation and the factor on the nominal gain."""
        each = zip(self.names, self.values, self.std, self.factors, strict=True)
        lines = [(joint, f"{gain:.5g}", f"{std:.2g}", f"{factor:.4f}") for joint, gain, std, factor in each]
        return text_table(("joint", "gain", "std", "factor"), lines, ())


@on_one_thread
def identify_drive_gains(
    robot: Robot,
    unloaded: Information | StageData,
    loaded: Information | StageData,
    known: Payload | Mapping[str, float],
    *,
    nominal: Sequence[float] | Array | None = None,
    known_std: float = 0.0,
    inflation: Sequence[float] | Array | None = None,
) -> DriveGains:
    """Drive gains from unloaded and loaded runs.

    Args:
        robot: The robot; its tool link carries the payload.
        unloaded: Data without the payload, with torque by nominal gains (as logs with currents have it) or raw signals.
            Give the experiment of `di.experiment` where the data comes from logs; information alone takes positions,
            velocities and accelerations for exact.
        loaded: Data with the payload, torque made in the same way.
        known: The payload if all of it is known, else what is known of its standard parameters in the frame of the tool
            link, such as {"M": 10.9}.
        nominal: (n_joints,) gains that the torque was made with; default one.
        known_std: Standard deviation of the known values as a share of them, all off by the same share.
        inflation: (n_joints,) rows that weigh as much as one independent row; default that of experiments, else one.

    Raises:
        SingularError: When the known part of the payload does not fix the scale.
    """
    runs = [one if isinstance(one, StageData) else StageData("", one) for one in (unloaded, loaded)]
    unloaded, loaded = (one.information for one in runs)
    if loaded.channels != unloaded.channels:
        raise InputError(
            f"the loaded data has channels {', '.join(loaded.channels)}, the unloaded {', '.join(unloaded.channels)}; "
            "use the same in both"
        )
    if isinstance(known_std, str | bool) or not 0.0 <= known_std < np.inf:
        raise InputError(f"known_std is {known_std!r}; expected a finite share that is not negative, such as 0.01")
    for label, data in (("unloaded", unloaded), ("loaded", loaded)):
        _check_data(robot, data, label)
    m = len(unloaded.channels)
    scale = _vector(nominal, m, "nominal")
    spread = _vector(shared_inflation(runs, unloaded.channels) if inflation is None else inflation, m, "inflation")
    instruments = _instruments(runs)
    loaded = loaded.over(unloaded)
    free, fixed, back, given = _payload_columns(robot, unloaded, known)
    problem = _GainProblem(unloaded, loaded, free, fixed, instruments)
    theta, covariance, sigma, condition, rounds = problem.solve(spread)
    n, u = unloaded.coordinates.n, free.shape[1]
    covariance = covariance + known_std**2 * np.outer(theta, theta)
    factors = theta[n + u :]
    solved = SolveRecord(
        rank=len(theta),
        singular_values=np.zeros(0),
        condition=condition,
        gap=(np.nan, np.nan),
        channels=unloaded.channels,
        residual_std=sigma,
        channel_weights=sigma**-2.0,
        determined=np.ones(m, dtype=bool),
        n_rows=float(problem.rows.sum()),
        iterations=rounds,
    )
    return DriveGains(
        names=unloaded.channels,
        units=("",) * m,
        values=factors * scale,
        covariance=covariance[n + u :, n + u :] * np.outer(scale, scale),
        determined=np.ones(m, dtype=bool),
        solve=solved,
        nominal=scale,
        parameters=ParameterEstimate.of(unloaded.coordinates, theta[:n], covariance[:n, :n], np.ones(n, dtype=bool)),
        payload={name: float(own @ theta[n : n + u]) for name, own in back.items()} | given,
        warnings=_swap_warning(unloaded.names, theta[:n], factors if nominal is not None else None),
    )


def _instruments(runs: Sequence[StageData]) -> list[list[InstrumentedChannel]] | None:
    """The rows of both experiments through instruments, channel by channel; None where they were not made of logs."""
    rows = [one.rows for one in runs if one.rows is not None]
    if len(rows) < len(runs):
        return None
    if rows[0].coordinates.names != rows[1].coordinates.names:
        raise InputError(
            "the experiments without and with the payload have other base parameters; lock the same joints and use the "
            "same terms in both"
        )
    found = [instrument_channels(replace(one, rule=replace(one.rule, delay=True))) for one in rows]
    return [[seen[name] for name in run.information.channels] for seen, run in zip(found, runs, strict=True)]


def _check_data(robot: Robot, data: Information, label: str) -> None:
    """Refuse data of another robot; locked joints do not make another one."""
    free = replace(robot, locked={})
    for name in data.channels:
        if name not in free.joint_names:
            raise InputError(
                f"the {label} data has a channel {name}, robot {robot.name} has joints {', '.join(free.joint_names)}; "
                "give torque rows of this robot"
            )
    for column, meaning in zip(data.coordinates.columns, data.definitions, strict=True):
        if meaning.startswith("robot ") and not meaning.startswith(f"robot {free.fingerprint},"):
            raise InputError(
                f"the {label} data is not that of robot {robot.name}: its column {column.name} was made with another "
                "robot; accumulate both data sets with the robot given"
            )


def _swap_warning(names: Sequence[str], values: Array, factors: Array | None) -> tuple[str, ...]:
    """Words for a payload that was taken off, not put on: everything is found with its sign turned.

    Gains of raw signals may have either sign; what a body or friction cannot have negative tells then.
    """
    positive = [x for name, x in zip(names, values, strict=True) if name.startswith(_POSITIVE)]
    tell = np.asarray(positive if factors is None else factors)
    if 2 * int(np.sum(tell < 0.0)) <= len(tell):
        return ()
    found = "inertia and friction" if factors is None else "the factors on the nominal gains"
    return (f"most of {found} came out negative; are the loaded and the unloaded data swapped?",)


def _vector(given: Sequence[float] | Array | None, m: int, name: str) -> Array:
    values = np.ones(m) if given is None else np.asarray(given, dtype=np.float64)
    if values.shape != (m,) or not np.isfinite(values).all() or not values.all():
        raise InputError(f"{name} must be {m} finite numbers other than zero, one per joint; got {given!r}")
    return values


def _payload_columns(
    robot: Robot, information: Information, given: Payload | Mapping[str, float]
) -> tuple[Array, Array, dict[str, Array], dict[str, float]]:
    """What a payload adds to the base parameters.

    Returns:
        (n, u) independent directions of its unknown part; (n,) its known part; unknown standard parameters from the
        directions, (u,) coefficients by name; known ones by name.
    """
    number = robot.joints[tool_link(robot)[0]].number
    if isinstance(given, Payload):
        known = given.at(robot)
    else:
        for name in given:
            if name not in LINK_SYMBOLS:
                raise UnknownNameError("standard parameter of a payload", name, LINK_SYMBOLS)
            if isinstance(given[name], str | bool) or not np.isfinite(given[name]):
                raise InputError(f"{name} of the payload is {given[name]!r}; expected a finite number")
        if given.get("M", 1.0) <= 0.0:
            raise InputError(f"mass of the payload is {given['M']:g} kg; expected more than zero")
        known = {f"{name}{number}": float(value) for name, value in given.items()}
    K, standard = information.coordinates.K, [column.name for column in information.coordinates.columns]
    place = {name: j for j, name in enumerate(standard)}
    own = [f"{symbol}{number}" for symbol in LINK_SYMBOLS]
    absent = [name for name in own if name not in place]
    if absent:
        raise InputError(f"the data has no column {absent[0]}; use the term rigid")
    fixed = sum((K[:, place[name]] * value for name, value in known.items()), start=np.zeros(len(K)))
    names = [name for name in own if name not in known and K[:, place[name]].any()]
    unknown = K[:, [place[name] for name in names]]
    size = np.linalg.norm(unknown, axis=0)
    left, singular, right = np.linalg.svd(unknown / size, full_matrices=False)
    rank = int(np.sum(singular > _ROUNDING)) if len(singular) else 0
    rest = fixed - left[:, :rank] @ (left[:, :rank].T @ fixed)
    if np.linalg.norm(rest) <= _ROUNDING * max(float(np.linalg.norm(fixed)), 1e-300):
        raise SingularError(
            "the known part of the payload changes nothing that its unknown part could not change as well; the "
            "mass must be known"
        )
    back = (right[:rank].T / singular[:rank]) / size[:, None]
    return left[:, :rank], fixed, dict(zip(names, back, strict=True)), known


GaussNewtonPoint = tuple[list[Array], list[Array], Array, float]  # see `_GainProblem._point`


class _GainProblem:
    """Rows over base parameters, payload directions, the known payload, the factors and delays, channel by channel.

    Attributes:
        channels: Of each channel all rows, compressed: what they leave is its noise.
        through: The equations to solve: the same rows, or those through instruments.
        rows: (m,) how many rows there are.
    """

    def __init__(
        self,
        unloaded: Information,
        loaded: Information,
        free: Array,
        fixed: Array,
        instruments: Sequence[Sequence[InstrumentedChannel]] | None = None,
    ) -> None:
        n, u, m = unloaded.coordinates.n, free.shape[1], len(unloaded.channels)
        self.n_exact, self.m, self.instruments = n + u, m, instruments is not None
        self.n_delays = 0 if instruments is None else 2

        def stacked(j: int, empty: Array, full: Array) -> Array:
            parts = []
            for has_payload, dense in enumerate((empty, full)):
                W = dense[:, :n]
                signals = np.zeros((len(dense), m))
                signals[:, j] = -dense[:, -1]
                late = np.zeros((len(dense), self.n_delays))
                late[:, has_payload : has_payload + 1] = dense[:, n:-1]
                parts.append(np.column_stack([W, has_payload * W @ free, has_payload * W @ fixed, signals, late]))
            return np.vstack(parts)

        if instruments is None:
            pairs = list(zip(unloaded.channel_factors(), loaded.channel_factors(), strict=True))
            self.channels = [stacked(j, *(one.dense(n) for one in pair)) for j, pair in enumerate(pairs)]
            self.through = self.channels
            self.rows = np.array([sum(one.n_rows for one in pair) for pair in pairs])
        else:
            both = list(zip(*instruments, strict=True))
            self.channels = [stacked(j, empty[0], full[0]) for j, (empty, full) in enumerate(both)]
            self.through = [stacked(j, empty[1], full[1]) for j, (empty, full) in enumerate(both)]
            self.rows = np.array([float(empty[2] + full[2]) for empty, full in both])
        for j, part in enumerate(self.channels):
            if not part[:, n + u + 1 + j].any():
                raise InputError(f"channel {unloaded.channels[j]} has no torque at all; leave it out with `outputs`")

    def solve(self, inflation: Array) -> tuple[Array, Array, Array, float, int]:
        """Unknowns (base, payload directions, factors), covariance, noise per channel, condition and rounds."""
        e, m = self.n_exact, self.m
        signal = np.array([np.linalg.norm(part[:, e + 1 + j]) for j, part in enumerate(self.channels)])
        floors = _MIN_NOISE_SHARE * signal
        at = self._start(signal)
        if not self.instruments:
            at, found, rounds, settled = self._settle(at, floors)
        # The noise is that of the rows, not of their projection.
        for _ in range(_REWEIGHTING_ROUNDS if self.instruments else 0):
            at, found, rounds, settled = self._settle(at, floors, self._noise(at, floors))
        _, slopes, noise, _ = found
        covariance, condition = _covariance(slopes, inflation)
        covariance, x, c = covariance[: e + m, : e + m], at[:e], at[e : e + m]
        relative = np.sqrt(np.diag(covariance)[e:]) / np.abs(c)
        if not settled or not relative.max() < THRESHOLDS.max_gain_std:
            raise SingularError(
                "the runs do not determine the gains: in some channel there is more noise than torque, or no other "
                "channel depends on its parameters; lower the band of the signals, record livelier motion, or use a "
                "heavier payload"
            )
        back = np.concatenate([np.ones(e), -1.0 / c**2])  # factors are the inverse of c
        covariance = covariance * np.outer(back, back)
        return np.concatenate([x, 1.0 / c]), covariance, noise / np.abs(c), condition, rounds

    def _settle(
        self, at: Array, floors: Array, noise: Array | None = None
    ) -> tuple[Array, GaussNewtonPoint, int, bool]:
        """Gauss-Newton to where the merit is least: the unknowns, the last look, rounds, whether it settled."""
        gains, found = slice(self.n_exact, self.n_exact + self.m), self._point(at, floors, noise)
        damping, rounds, settled = 1e-3, 0, False
        while not settled and rounds < _MAX_ROUNDS:
            rounds += 1
            step, size = _damped_step(found[0], found[1], damping)
            after = self._point(at + step, floors, noise)
            small = float(np.abs(step[gains] / at[gains]).max()) < _SETTLED_STEP or size < _SETTLED_STEP
            if np.isfinite(after[3]) and after[3] <= found[3] + 1e-9 * max(abs(found[3]), 1.0):
                at, found, damping = at + step, after, max(damping / 10.0, 1e-12)
                settled = small and damping <= 1e-6
            else:
                damping *= 10.0
                settled = damping > _MAX_DAMPING and small
        return at, found, rounds, settled

    def _start(self, signal: Array) -> Array:
        """A first guess: exact columns eliminated, factors in the direction in which least is left of the torque.

        Returns:
            (n_exact + m + n_delays,) base parameters and payload directions; c, the inverse of the factors; no delays.
        """
        e, m = self.n_exact, self.m
        stacked = np.vstack([part[:, : e + 1 + m] / size for part, size in zip(self.through, signal, strict=True)])
        size = np.linalg.norm(stacked, axis=0)
        if not size[: e + 1].all():
            raise SingularError("some columns are zero throughout: restrict the data to parameters that it depends on")
        R = triangular(stacked / size)
        exact, mixed, rest = R[: e + 1, : e + 1], R[: e + 1, e + 1 :], R[e + 1 :, e + 1 :]
        if np.abs(np.diag(exact)).min() < RANK_SHARE * (e + 1) * np.abs(np.diag(exact)).max():
            raise SingularError(
                "the runs do not distinguish the payload from the robot; move all joints in both, with and without the "
                "payload"
            )
        k = np.linalg.svd(rest)[2][-1]
        others = -np.linalg.solve(exact, mixed @ k)
        if abs(others[-1]) < 1e-9 * float(np.abs(others).max()) or not k.all():
            raise SingularError(
                "the loaded runs do not show the known payload; were they made with it, is it heavy enough?"
            )
        whole = np.concatenate([others, k]) / size
        whole = whole / whole[e]
        return np.concatenate([whole[:e], 1.0 / whole[e + 1 :], np.zeros(self.n_delays)])

    def _torque(self, at: Array, part: Array) -> tuple[Array, Array]:
        """E_j x + b_j, and D_j d, what delays add to the signal."""
        e, late = self.n_exact, len(at) - self.n_delays
        return part[:, :e] @ at[:e] + part[:, e], part[:, part.shape[1] - self.n_delays :] @ at[late:]

    def _noise(self, at: Array, floors: Array) -> Array:
        """(m,) standard deviation of the rows' residuals y_j - c_j (E_j x + b_j) - D_j d."""
        left = []
        for j, part in enumerate(self.channels):
            torque, late = self._torque(at, part)
            left.append(part[:, self.n_exact + 1 + j] + at[self.n_exact + j] * torque + late)
        return np.asarray(np.maximum([np.linalg.norm(one) for one in left], floors) / np.sqrt(self.rows))

    def _point(self, at: Array, floors: Array, given: Array | None) -> GaussNewtonPoint:
        """Residuals y_j - c_j (E_j x + b_j) - D_j d and their derivatives, each over its own noise, or a given one.

        Returns:
            Both for each channel; the noise; and what is to be small: sum_j n_j log s_j, the likelihood of normal noise
            of unknown size in each channel, or, where the noise is given, the sum of squares.
        """
        e, noise = self.n_exact, self._noise(at, floors) if given is None else given
        residuals, slopes = [], []
        for j, part in enumerate(self.through):
            torque, late = self._torque(at, part)
            residual = -part[:, e + 1 + j] - at[e + j] * torque - late
            slope = np.zeros((len(part), len(at)))
            slope[:, :e] = at[e + j] * part[:, :e]
            slope[:, e + j] = torque
            slope[:, e + self.m :] = part[:, e + 1 + self.m :]
            residuals.append(residual / noise[j])
            slopes.append(slope / noise[j])
        merit = self.rows @ np.log(noise) if given is None else sum(float(one @ one) for one in residuals)
        return residuals, slopes, noise, float(merit)


def _damped_step(residuals: Sequence[Array], slopes: Sequence[Array], damping: float) -> tuple[Array, float]:
    """Gauss-Newton step with Marquardt's damping, and its size in standard deviations."""
    J, r = np.vstack(slopes), np.concatenate(residuals)
    size = np.linalg.norm(J, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    held = np.sqrt(damping) * np.eye(len(scale))
    step = np.linalg.lstsq(np.vstack([J / scale, held]), np.concatenate([r, np.zeros(len(scale))]), rcond=None)[0]
    return step / scale, float(np.linalg.norm(J / scale @ step))


def _covariance(slopes: Sequence[Array], inflation: Array) -> tuple[Array, float]:
    """Covariance of the unknowns, and the condition of their columns scaled to unit norm."""
    J = np.vstack(slopes)
    size = np.linalg.norm(J, axis=0)
    _, singular, right = np.linalg.svd(J / size, full_matrices=False)
    half = right.T / singular / size[:, None]
    meat = np.vstack([np.sqrt(f) * part for f, part in zip(inflation, slopes, strict=True)]) @ half
    spread = half @ meat.T
    return spread @ spread.T, float(singular[0] / singular[-1])
