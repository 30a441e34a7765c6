r"""How far the estimates may be off: noise that is not white, and drive gains that are not exact.

An estimate is linear in the torque, \hat beta = sum_j A_j tau_j with A_j = w_j C W_j', where w_j is the weight of
channel j and C the inverse of the information matrix. So its covariance is sum_j A_j cov(tau_j) A_j'. The textbook
formula takes cov(tau_j) = sigma_j^2 I; filtered data and unmodeled friction make neighboring residuals alike, and
n rows then weigh no more than n / f_j independent ones. That factor is the one of columns that vary slowly. Where
residuals swing, as filtered encoder noise does, columns gain or lose by their own frequencies, and the whole
autocorrelation takes the place of f_j: see `serial_covariance`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import NormalDist

import numpy as np
from scipy.signal import oaconvolve
from scipy.signal.windows import parzen

from dynident.arrays import Array, Mask, on_one_thread, record
from dynident.dynamics.evaluate import joint_torque
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.estimate.prediction import TorqueModel, motion_at_stamps
from dynident.estimate.thresholds import THRESHOLDS
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor, RegressorBlock, RowSource
from dynident.signals.observations import Observations


@record
class ResidualCorrelation:
    """How alike neighboring residuals of a channel are.

    Attributes:
        channels: Names of the channels.
        autocorrelation: (n_channels, THRESHOLDS.max_lags + 1) over the lag in rows.
        inflation: (n_channels,) rows that weigh as much as one independent row, f = 1 + 2 sum of autocorrelations.
        n_rows: (n_channels,) rows behind it.
    """

    channels: tuple[str, ...]
    autocorrelation: Array
    inflation: Array
    n_rows: Array


class LagSums:
    """Autocovariance of several series as their samples come in.

    Args:
        n_series: How many.
        most_lags: Largest lag looked at.
    """

    def __init__(self, n_series: int, most_lags: int = THRESHOLDS.max_lags) -> None:
        self.most = most_lags
        self.products = np.zeros((n_series, most_lags + 1))
        self.counts = np.zeros((n_series, most_lags + 1))
        self._held: list[Array] = [np.zeros((2, 0))] * n_series

    def add(self, number: int, fresh: Array, *, restart: bool = False, used: Mask | None = None) -> None:
        """More samples of a series; after a restart they have nothing to do with those before.

        Args:
            number: Of the series.
            fresh: (n,) its next samples.
            restart: Whether a new series begins.
            used: (n,) which samples count, the others being gaps in time; default all.
        """
        held = np.zeros((2, 0)) if restart else self._held[number]
        there = np.ones(len(fresh)) if used is None else used.astype(np.float64)
        series = np.hstack([held, [np.where(there > 0.0, fresh, 0.0), there]])  # samples, and whether they are there
        if len(fresh):
            size = 1 << int(np.ceil(np.log2(series.shape[1] + self.most + 1)))
            new = series.copy()
            new[:, : held.shape[1]] = 0.0
            spectrum = np.fft.rfft(new, size) * np.conj(np.fft.rfft(series, size))
            lags = np.arange(min(self.most, series.shape[1] - 1) + 1)
            products, counts = np.fft.irfft(spectrum, size)[:, lags]
            self.products[number, lags] += products
            self.counts[number, lags] += np.round(counts)
        self._held[number] = series[:, -self.most :]

    def correlation(self, names: tuple[str, ...]) -> ResidualCorrelation:
        """What the sums say."""
        covariance = self.products / np.maximum(self.counts, 1.0)
        variance = covariance[:, :1]
        rho = np.where(variance > 0.0, covariance / np.where(variance > 0.0, variance, 1.0), 0.0)
        inflation = [_inflation_of(own) for own in rho]
        return ResidualCorrelation(names, rho, np.array(inflation), self.counts[:, 0])


def _inflation_of(rho: Array) -> float:
    """1 + 2 sum of an autocorrelation, up to where it is lost in noise."""
    below = np.flatnonzero(rho < THRESHOLDS.negligible_autocorrelation)
    return 1.0 + 2.0 * float(rho[1 : int(below[0]) if len(below) else len(rho)].sum())


def residual_correlation(rows: RowSource, values: Array) -> ResidualCorrelation:
    """How residuals of given base values, (n,) or those of each channel (n_channels, n), follow each other."""
    lags = ResidualLags(rows.channels, values)
    for block in rows.blocks():
        lags.add(block)
    return lags.correlation()


class ResidualLags:
    """Autocorrelation of the residuals of rows while these go by.

    Args:
        channels: Names of the outputs.
        values: Base values, (n,), or those of each channel, (n_channels, n).
    """

    def __init__(self, channels: tuple[str, ...], values: Array) -> None:
        self._channels, self._lags, self._before = channels, LagSums(len(channels)), ("", -1)
        self._values = np.broadcast_to(values, (len(channels), values.shape[-1]))

    def add(self, block: RegressorBlock) -> None:
        """The next rows."""
        another = _is_another_log(block, self._before)
        for output, own in enumerate(block.columns):
            lines = block.columns_first[output]
            residual = lines[len(own)] - self._values[output, list(own)] @ lines[: len(own)]
            self._lags.add(output, residual, restart=another, used=block.usable[:, output])
        self._before = block.log, block.segment

    def correlation(self) -> ResidualCorrelation:
        """What they say together."""
        return self._lags.correlation(self._channels)


def _is_another_log(block: RegressorBlock, before: tuple[str, int]) -> bool:
    """Whether a block is of another log than the one before, whose label and segment are given."""
    return block.log != before[0] or block.segment < before[1]  # logs may share a label


def common_inflation(correlations: Sequence[ResidualCorrelation]) -> Array:
    """(n_channels,) the inflation of several data sets together, by their rows."""
    rows = np.array([one.n_rows for one in correlations])
    inflation = np.array([one.inflation for one in correlations])
    return np.asarray((rows * inflation).sum(0) / np.maximum(rows.sum(0), 1.0) + (rows.sum(0) == 0.0))


@on_one_thread
def correlated_covariance(estimator: Estimator, inflation: Array, noise: Array | None = None) -> Array:
    """Covariance of the estimates when residuals of a channel are correlated, (n, n).

    Args:
        estimator: A fitted estimator.
        inflation: (n_channels,) rows that weigh as much as one independent row.
        noise: (n_channels,) standard deviation of the noise, where it is not that of the residual.
    """
    C, n, factors = estimator.inverse_, len(estimator.names_), estimator.information_.channel_factors()
    middle = np.zeros((n, n))  # what correlation adds to the white-noise covariance, which knows of priors too
    parts = zip(estimator.channel_weights_, estimator.sigma_, inflation, strict=True)
    for channel, (weight, sigma, rows_per_fact) in enumerate(parts):
        if noise is None:
            scale, share = weight * sigma * np.sqrt(max(rows_per_fact - 1.0, 0.0)), 1.0
        else:  # less than the residual, where that holds errors of what is known
            scale, share = weight, rows_per_fact * noise[channel] ** 2 - sigma**2
        rows = factors[channel].dense(n)[:, :n] * scale
        middle += share * (rows.T @ rows)
    return np.asarray(estimator.covariance_ + C @ middle @ C)


def autocorrelation_model(correlations: Sequence[ResidualCorrelation]) -> Array:
    r"""(n_channels, n_lags) autocorrelation of residuals that is a possible one: no frequency has negative power.

    Lags count up to m, the last one before :math:`\max(5, \sqrt{\log_{10} n})` in a row lie within what chance makes of
    n rows, :math:`2 \sqrt{\log_{10}(n) / n}` (Politis 2003). Parzen's window of length 8 m leaves these nearly as they
    are; at most n / 4, so that chance makes no more than a third of the power. Gaps may still make the power of a
    frequency negative. It is set to zero there, and a second window, of twice the length, ends the sequence; its own
    power is positive, so that no frequency becomes negative again.

    Args:
        correlations: Of several data sets, which count by their rows.
    """
    rows = np.array([one.n_rows for one in correlations])
    shares = rows / np.maximum(rows.sum(0), 1.0)
    found = np.sum(shares[:, :, None] * np.array([one.autocorrelation for one in correlations]), axis=0)
    models = [_possible(rho, float(n)) for rho, n in zip(found, rows.sum(0), strict=True)]
    together = np.zeros((len(models), max(len(one) for one in models)))
    for own, line in zip(models, together, strict=True):
        line[: len(own)] = own
    return together


def _possible(rho: Array, n: float) -> Array:
    """(n_lags,) of one channel, (max_lags + 1,), that n rows made."""
    if n < 8.0 or rho[0] <= 0.0:  # too few for any lag to count
        return np.ones(1)
    run = max(5, int(np.ceil(np.sqrt(np.log10(n)))))
    counts = np.abs(rho[1:]) > 2.0 * np.sqrt(np.log10(n) / n)
    alone = [m for m in range(len(counts) - run + 1) if not counts[m : m + run].any()]
    last = alone[0] if alone else len(counts)
    length = int(max(1, min(8 * last, n // 4, len(rho) - 1)))
    windowed = rho[:length] * parzen(2 * length - 1)[length - 1 :]
    power = np.fft.rfft(np.concatenate([windowed, np.zeros(2 * length + 1), windowed[:0:-1]])).real
    again = np.fft.irfft(np.maximum(power, 0.0), 4 * length)[: 2 * length]
    return np.asarray(again * parzen(4 * length - 1)[2 * length - 1 :])


@on_one_thread
def serial_covariance(
    estimator: Estimator, sources: Sequence[tuple[RowSource, Array]], autocorrelation: Array
) -> Array:
    r"""Covariance of the estimates by the whole autocorrelation of residuals, (n, n).

    .. math:: \operatorname{cov} \hat\beta = C \Bigl(\sum_j w_j^2 \sigma_j^2 W_j' \Gamma_j W_j\Bigr) C

    with Gamma_j the matrix of autocorrelations between the rows that are used.

    Args:
        estimator: A fitted estimator.
        sources: Rows behind it, each with a chart, (n_base, n), of what is estimated in its columns.
        autocorrelation: (n_channels, n_lags), see `autocorrelation_model`.
    """
    C, middle = estimator.inverse_, np.zeros_like(estimator.inverse_)
    for rows, chart in sources:
        products = _SerialProducts(autocorrelation)
        for block in rows.blocks():
            products.add(block)
        for (columns, own), weight, sigma in zip(
            products.found, estimator.channel_weights_, estimator.sigma_, strict=True
        ):
            middle += (weight * sigma) ** 2 * chart[columns].T @ (own + own.T) @ chart[columns]
    return np.asarray(C @ middle @ C)


class _SerialProducts:
    """Halves of W_j' Gamma_j W_j of each channel while rows go by: N_j, of which N_j + N_j' is the whole.

    Args:
        autocorrelation: (n_channels, n_lags).
    """

    def __init__(self, autocorrelation: Array) -> None:
        self._filters = autocorrelation.copy()
        self._filters[:, 0] *= 0.5
        self._held: list[Array] = []
        self.found: list[tuple[list[int], Array]] = []
        self._before = ("", -1)

    def add(self, block: RegressorBlock) -> None:
        """The next rows."""
        if not self.found:
            self.found = [(list(own), np.zeros((len(own), len(own)))) for own in block.columns]
        lags = self._filters.shape[1]
        if not self._held or _is_another_log(block, self._before):
            self._held = [np.zeros((len(own), lags - 1)) for own in block.columns]
        for output, (own, sums) in enumerate(self.found):
            fresh = np.where(block.usable[:, output], block.columns_first[output][: len(own)], 0.0)
            series = np.hstack([self._held[output], fresh])
            sums += fresh @ oaconvolve(series, self._filters[output][None], mode="valid", axes=1).T
            self._held[output] = series[:, series.shape[1] - lags + 1 :]
        self._before = block.log, block.segment


@on_one_thread
def gain_covariance(
    estimator: Estimator, tolerances: Sequence[float] | Array, labels: Collection[str] | None = None
) -> Array:
    """What uncertain drive gains add to the covariance of the estimates, (n, n).

    A gain that is off by a share d_j makes all torque of channel j off by that share, in every log, so it does not
    average out: the estimates move by d_j w_j C W_j' tau_j.

    Args:
        estimator: A fitted estimator.
        tolerances: (n_channels,) relative standard deviation of each channel's gain.
        labels: Logs whose torque comes from these gains; default all.
    """
    n = len(estimator.names_)
    total = np.zeros((n, n))
    segments = estimator.information_.segments
    own = [i for i, segment in enumerate(segments) if labels is None or segment.label in labels]
    if not own:
        return total
    factors = estimator.information_.select(own).channel_factors()
    parts = zip(factors, estimator.channel_weights_, tolerances, strict=True)
    for factor, weight, tolerance in parts:
        rows = factor.dense(n)
        moved = tolerance * weight * (estimator.inverse_ @ (rows[:, :n].T @ rows[:, n]))
        total += np.outer(moved, moved)
    return total


@on_one_thread
def null_space(estimator: Estimator) -> tuple[Array, Array]:
    """Directions along which the data says nothing, so that values are a choice there, not a measurement.

    A covariance cannot determine them. It is zero along other directions, those that least squares of minimum norm
    leaves at zero, and the two differ by the scale of the columns, which only the data knows.

    Returns:
        (n, n - rank) orthonormal directions of scaled parameters, and (n,) norms of the columns: with v = direction /
        norm, W v = 0.
    """
    n = len(estimator.names_)
    factors = zip(estimator.information_.channel_factors(), estimator.channel_weights_, strict=True)
    rows = np.vstack([factor.dense(n)[:, :n] * np.sqrt(weight) for factor, weight in factors])
    size = np.linalg.norm(rows, axis=0)
    present = size > 0.0
    # Parameters that no row has are directions of their own: their scale is anybody's, and mixed with others it would
    # leave nothing but rounding of these.
    directions = np.zeros((n, n - estimator.rank_))
    n_mixed = int(present.sum()) - estimator.rank_
    directions[present, :n_mixed] = np.linalg.svd(np.linalg.qr(rows[:, present] / size[present])[1])[2][
        estimator.rank_ :
    ].T
    directions[~present, n_mixed:] = np.eye(n - int(present.sum()))
    return directions, np.where(present, size, 1.0)


# ----------------------------------------------------------------------------------------------------------------------
# How far predicted torque may be off: what the parameters are uncertain, and what the model never explains.
#
# A prediction w beta deviates by sqrt(w C w' + s^2), C the covariance of the parameters and s the level of residuals on
# data that was not used. Both are of torque low-passed at the band of the fit.

TORQUE_BAND_LEVEL = 0.9  # of the bands


def half_width(level: float) -> float:
    """Standard deviations on each side of a band that covers this share of a normal distribution.

    Raises:
        InputError: For a level that is no share.
    """
    if isinstance(level, str) or not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}; expected a share between 0 and 1, such as 0.9")
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def covariance_root(covariance: Array) -> Array:
    """(n, n) root S with S S' = C; what rounding made negative is zero."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def banded_blocks(
    model: TorqueModel, base: BaseParameters, root: Array, levels: Array, observations: Observations
) -> Iterator[tuple[Array, Array, Array]]:
    """Predicted joint torque and its std at a log's own stamps, in blocks: (n,), (n, n_joints), (n, n_joints).

    Args:
        model: The robot with its values.
        base: Base parameters whose covariance is given.
        root: (n, n) root of that covariance.
        levels: (n_joints,) residual level of each output.
        observations: The log.
    """
    regressor = BaseRegressor.of(base.robot, base.terms)
    torque, course = model.start(), regressor.course(model.reference)
    outputs = [(list(columns), lines) for columns, lines in zip(regressor.columns, regressor.lines(), strict=True)]
    # Joint torques are sums of those at the outputs; without couplings the sums have one part.
    sums = joint_torque(base.robot, np.eye(len(base.robot.joint_names))).T  # (n_joints, n_outputs)
    for stamps, pieces in motion_at_stamps(observations, base.terms):
        torques, stds = [], []
        for samples in pieces:
            torques.append(torque.torque(samples) @ sums.T)
            rows = regressor.columns_first_along(samples, course)
            spreads = np.stack([root[columns].T @ rows[lines] for columns, lines in outputs])
            joint = np.einsum("jr,rkn->jkn", sums, spreads)
            stds.append(np.sqrt((joint**2).sum(1).T + sums**2 @ levels**2))
        yield stamps, np.concatenate(torques), np.concatenate(stds)
