r"""What one swing says about the machine: equations that are linear in its parameters.

A mode ``a e^{s t}`` of the machine under the law obeys

.. math:: (s^2 M + s F_v + K)\,a = G(s)\,(A_q + s A_v)\,a

with M and K the mass matrix and the slope of the weight of the machine, F_v its viscous friction, A_q and A_v the
slopes of the law's torque, and G what sampling makes of it. The position it swings about is where the weight equals the
law's torque. Both are linear in masses, moments and inertias, so the weight need not be known: it is estimated along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque
from dynident.experiments.bench import Bounds
from dynident.experiments.oscillation.model import PoseEquations, SwingModel, equations_about, nominals
from dynident.experiments.oscillation.modes import ComplexArray, Modes
from dynident.experiments.oscillation.swings import NaturalControl, Swing
from dynident.plant.protocol import Reading

# A drive that holds the torque over a sample, instead of going there in a straight line, acts half a sample early and
# has a twelfth of the squared sample time more curvature: standard deviations of the two numbers that stand for that.
HOLD_STD = (1 / 2, 1 / 12)
_STEP = 1e-5  # [rad, m, rad/s or m/s] of difference quotients of the law
_WALK = 0.6  # 6/5 for a straight line through a random walk, times half of its variance for the phase


def group_equations(model: SwingModel, pose: Array) -> PoseEquations:
    """The equations of a robot about a pose: what no group changes, then slopes by its gravity and inertia groups."""
    about, gravity, both = equations_about(model, pose), model.gravity, (*model.gravity, *model.inertia)
    heavy = np.array([one.direction for one in gravity]).reshape(len(gravity), -1)
    moved = np.array([one.direction for one in both])
    if model.lumped:
        moved[: len(gravity)] = 0.0
    still = np.zeros((len(both), len(model.chi)))
    still[: len(gravity)] = heavy
    nominal = np.array([one.nominal for one in both])
    at_rest = np.vstack([model.chi - nominal @ still, still])
    in_motion = np.vstack([model.chi - nominal @ moved, moved])
    return PoseEquations(
        pose,
        weight=np.einsum("ic,kc->ik", about.weight, at_rest),
        stiffness=np.einsum("ijc,kc->ijk", about.stiffness, at_rest),
        mass=np.einsum("ijc,kc->ijk", about.mass, in_motion),
    )


@dataclass(frozen=True)
class Evidence:
    """The equations of one swing: columns of the unknowns, right-hand side, and what noise does to them.

    Attributes:
        columns: (n_rows, n_unknowns) by group, viscous friction of each joint, and the two numbers of the hold.
        right: (n_rows,).
        parts: The equations of motion about the mean.
        modes: The modes.
        law: (n, n) twice: slopes of the law's torque with position and velocity.
        gain: (n, n) the law's gain, which its squared frequencies come from if its model is right.
        covariance: Of the numbers of the modes.
        sample_time: [s].
    """

    columns: Array
    right: Array
    parts: PoseEquations
    modes: Modes
    law: tuple[Array, Array]
    gain: Array
    covariance: Array
    sample_time: float

    def spread(self, unknown: Array) -> Array:
        """Covariance of the rows if the machine is that of given unknowns, (n_rows, n_rows)."""
        n, modes = len(self.modes.mean), self.modes
        J = np.zeros((n * (len(modes.poles) + 1), len(self.covariance)), dtype=np.complex128)
        A_q, stiffness = self.law[0], self._mass_and_stiffness(unknown)[1]
        width = 1 + 2 * len(modes.poles)
        first = 2 * len(modes.poles) + width * np.arange(n)
        J[-n:, first] = stiffness - A_q
        for i, (s, a) in enumerate(zip(modes.poles, modes.shape, strict=True)):
            rows = slice(i * n, (i + 1) * n)
            by_shape, step = self._dynamics(s, unknown), 1e-5 * abs(s)
            up, down = (self._dynamics(s + sign * step, unknown) @ a for sign in (1.0, -1.0))
            by_pole = (up - down) / (2.0 * step)
            J[rows, 2 * i], J[rows, 2 * i + 1] = by_pole, 1j * by_pole
            J[rows, first + 1 + 2 * i], J[rows, first + 2 + 2 * i] = by_shape, -1j * by_shape
        real = _real(J, n)
        covariance = self.covariance + np.diag(_bent(modes, min(1.0, self.wrong(unknown))))
        return np.asarray(real @ covariance @ real.T)

    def wrong(self, unknown: Array) -> float:
        """Share by which the law misses the machine of given unknowns: its squared frequencies are not the gains."""
        mass, stiffness = self._mass_and_stiffness(unknown)
        ratios = np.linalg.eigvals(np.linalg.solve(mass, stiffness - self.law[0]) @ np.linalg.inv(self.gain))
        return float(np.abs(ratios - 1.0).max())

    def _mass_and_stiffness(self, unknown: Array) -> tuple[Array, Array]:
        """Of the machine of given unknowns, (n, n) each."""
        values = np.append(1.0, unknown)[: self.parts.mass.shape[-1]]
        return self.parts.mass_of(values), self.parts.stiffness_of(values)

    def _dynamics(self, s: complex, unknown: Array) -> ComplexArray:
        """The matrix that a mode's shape makes vanish, (n, n)."""
        mass, stiffness = self._mass_and_stiffness(unknown)
        (early, curved), friction = unknown[-2:], unknown[-2 - len(mass) : -2]
        x = s * self.sample_time
        answer = sampling_gain(x) * (1.0 + early * x + curved * x * x) * (self.law[0] + s * self.law[1])
        return np.asarray(s * s * mass + s * np.diag(friction) + stiffness - answer)


def sampling_gain(x: complex) -> complex:
    """G of the law by ``x = s h``: worked out at a sample, reached at the next, in straight lines between."""
    return complex(np.exp(-x) * (2.0 * np.sinh(0.5 * x) / x) ** 2)


def evidence_of(one: Swing, sample_time: float) -> Evidence:
    """The equations of a swing that has modes."""
    assert one.modes is not None
    modes, n = one.modes, len(one.modes.mean)
    parts = group_equations(one.control.model, np.asarray(modes.mean))
    torque, A_q, A_v = slopes_of(one.control, np.asarray(modes.mean), sample_time)
    columns, right = [], []
    for s, a in zip(modes.poles, modes.shape, strict=True):
        own = np.tensordot(s * s * parts.mass + parts.stiffness, a, (1, 0))  # (n, 1 + n_groups)
        x = s * sample_time
        answer = sampling_gain(x) * (A_q + s * A_v) @ a
        hold = np.stack([-x * answer, -x * x * answer], axis=1)
        columns.append(np.concatenate([own[:, 1:], np.diag(s * a), hold], axis=1))
        right.append(answer - own[:, 0])
    columns.append(np.concatenate([parts.weight[:, 1:], np.zeros((n, n + 2))], axis=1).astype(np.complex128))
    right.append((torque - parts.weight[:, 0]).astype(np.complex128))
    return Evidence(
        columns=_real(np.concatenate(columns), n),
        right=_real(np.concatenate(right)[:, None], n)[:, 0],
        parts=parts,
        modes=modes,
        law=(A_q, A_v),
        gain=one.control.kp * np.eye(n) if np.ndim(one.control.kp) == 0 else np.asarray(one.control.kp),
        covariance=modes.covariance + _feedback_covariance(one, A_q, A_v),
        sample_time=sample_time,
    )


def _real(rows: ComplexArray, still: int) -> Array:
    """Real and imaginary parts of complex rows; the last `still` rows are real."""
    return np.concatenate([rows[:-still].real, rows[:-still].imag, rows[-still:].real])


def slopes_of(control: NaturalControl, pose: Array, sample_time: float) -> tuple[Array, Array, Array]:
    """Torque of a law at rest (n,), and its slopes with position and velocity (n, n), at the joints."""
    robot, n = control.model.robot, len(pose)
    control.start(sample_time)

    def torque(q: Array, dq: Array) -> Array:
        return np.asarray(joint_torque(robot, control.command(0.0, Reading(0.0, q, dq, np.zeros(n)))[None])[0])

    rest, step = np.zeros(n), _STEP * np.eye(n)
    by_q = [(torque(pose + d, rest) - torque(pose - d, rest)) / (2.0 * _STEP) for d in step]
    by_v = [(torque(pose, d) - torque(pose, -d)) / (2.0 * _STEP) for d in step]
    return torque(pose, rest), np.stack(by_q, axis=1), np.stack(by_v, axis=1)


def _feedback_covariance(one: Swing, A_q: Array, A_v: Array) -> Array:
    """Covariance that noise of the readings adds to the modes, as the law sends it back as torque.

    In coordinates of the modes, ``eta'' + w² eta = w² nu`` with nu the noise of the readings as a mode feels it: white,
    and new with every sample. It lets the mode's own phase and amplitude walk, which its pole takes for part of it; at
    the frequencies of the other modes, and at rest, it adds to their shapes and to the mean.
    """
    assert one.modes is not None
    modes, n, count = one.modes, len(one.modes.mean), len(one.modes.poles)
    samples, width = len(one.run.time), 1 + 2 * count
    first = 2 * count + width * np.arange(n)
    turned = modes.shape / np.exp(1j * np.angle(modes.shape[np.arange(count), np.argmax(modes.size, axis=1)]))[:, None]
    shapes = turned.real
    found = np.zeros_like(modes.covariance)
    velocity = _velocity_noise(one)
    for k, shape in enumerate(shapes):
        sent = np.concatenate([(shape @ A_q) * modes.noise, (shape @ A_v) * velocity])
        noise = float(np.linalg.norm(sent)) / max(abs(float(shape @ A_q @ shape)), 1e-300)  # over the amplitude
        own = noise**2 * np.outer(shape, shape) / samples
        found[np.ix_(first, first)] += own
        for i in range(count):
            if i == k:
                for place in (2 * i, 2 * i + 1):
                    found[place, place] += _WALK * modes.square[i] * noise**2 / samples
                continue
            louder = modes.square[k] / (modes.square[k] - modes.square[i])
            for place in (1 + 2 * i, 2 + 2 * i):
                found[np.ix_(first + place, first + place)] += 2.0 * louder**2 * own
    return found


def _velocity_noise(one: Swing) -> Array:
    """Root mean square of what the modes leave of the velocities, (n,)."""
    assert one.modes is not None
    t = one.run.time - one.run.time[0]
    motion = np.exp(np.outer(t, one.modes.poles))  # (n_samples, n_modes)
    basis = np.concatenate([motion.real, motion.imag], axis=1)
    rest = one.run.dq - basis @ np.linalg.lstsq(basis, one.run.dq, rcond=None)[0]
    return np.asarray(np.sqrt(np.mean(rest**2, axis=0)))


def _bent(modes: Modes, wrong: float) -> Array:
    """Variances that the size of a swing adds to the numbers of the modes.

    A pendulum of amplitude A is slower than a small swing by A²/16, and a spring that is not straight shifts its mean
    by about A²/4. A law with the right weight and inertia makes the machine straight, so that only the share by which
    it is wrong bends.
    """
    count, n = len(modes.poles), len(modes.mean)
    largest = modes.size.max(axis=1)
    bend = wrong * float((largest**2).sum())
    of_poles = np.stack([np.zeros(count), np.sqrt(modes.square) * bend / 16.0], axis=1).ravel()
    of_joint = np.append(bend / 4.0, np.repeat(largest * bend / 8.0, 2))
    return np.concatenate([of_poles, np.tile(of_joint, n)]) ** 2


# ----------------------------------------------------------------------------------------------------------------------
# Where the inertia stage swings and with which gains: what tells the parameters best by the model.

SMALLER = np.radians(0.1)  # [rad or m] amplitude unless the encoders need more
_APART = 3.0  # largest gain over the least: neighboring modes of seven joints still part within ten periods
_CANDIDATES = 40
_OPEN = 1e-11  # singular value, over the largest, of what set-points do not determine
_WIDE = 1.2  # [rad or m] set-points lie within this of the first one


def choose_set_points(
    model: SwingModel, bounds: Bounds, values: Array | None = None, *, kp: float = 100.0, weighed: bool = False
) -> list[Array]:
    """Set-points at which swings tell the parameters best, the pose nearest to zero first.

    Args:
        model: The model.
        bounds: Where the joints may go.
        values: (n_groups,) of the gravity and the inertia groups; default the description's.
        kp: Proportional gain [1/s²].
        weighed: The weights are known, so that only inertias are looked for.
    """
    known = nominals((*model.gravity, *model.inertia)) if values is None else values
    n, first = len(model.robot.moving), len(model.gravity)
    lower, upper = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    margin = 0.1 * (upper - lower)
    middle = np.clip(np.zeros(n), lower + margin, upper - margin)  # zero may lie at a limit
    rng = np.random.default_rng(1)
    near, far = np.maximum(lower + margin, middle - _WIDE), np.minimum(upper - margin, middle + _WIDE)
    poses = [middle, *rng.uniform(near, far, (_CANDIDATES, n))]
    parts = [group_equations(model, pose) for pose in poses]
    slopes = [design(one, known, kp)[:, first if weighed else 0 :] for one in parts]
    chosen, all_of_them = [0], _rank(np.concatenate(slopes))
    wanted = _count_wanted(n, 0 if weighed else first, len(model.inertia))
    while len(chosen) < wanted or _rank(np.concatenate([slopes[i] for i in chosen])) < all_of_them:
        scores = []
        for j in range(len(poses)):
            J = np.concatenate([slopes[i] for i in (*chosen, j)])
            scores.append(-np.inf if j in chosen else information_of(J))
        chosen.append(int(np.argmax(scores)))
    return [np.asarray(poses[j]) for j in chosen]


def _rank(J: Array) -> int:
    s = np.linalg.svd(J, compute_uv=False)
    return int((s > _OPEN * s[0]).sum())


def _count_wanted(n: int, weights: int, inertias: int) -> int:
    """One set-point more than it takes if each tells the inertia and the weight that every joint feels."""
    if n == 1 and not weights:
        return 1
    return max(2, 1 + -(-max(inertias, weights) // n))


def gains(kp: float, mass: Array) -> tuple[Array, Array]:
    """Squared frequencies about kp, rising (n,) [1/s²], and the gain (n, n) that gives them to a mass matrix.

    With kp alone every mode has the same frequency once the inertias are right, and a swing shows one of them. The
    spring ``L diag(squares) L^T`` with ``L L^T`` the mass matrix keeps them apart, and as it is symmetric no error of
    the inertias lets them flutter.
    """
    n, L = len(mass), np.linalg.cholesky(mass)
    squares = kp * _APART ** (np.linspace(-0.5, 0.5, n) if n > 1 else np.zeros(1))
    return squares, np.linalg.solve(L.T, squares[:, None] * L.T)


def sizes_of(values: Array) -> Array:
    """Typical size of each value; a tenth of the largest for one that is zero up to rounding."""
    size, largest = np.abs(values), max(float(np.abs(values).max(initial=0.0)), 1e-9)
    return np.where(size > 1e-9 * largest, size, 0.1 * largest)


def design(parts: PoseEquations, values: Array, kp: float) -> Array:
    """Slopes of a swing's equations, in positions over its amplitude, with relative changes of all values.

    Args:
        parts: The equations of motion about the set-point.
        values: (n_groups,) of the machine and of the law.
        kp: Proportional gain [1/s²].

    Returns:
        (n_modes n + n, n_groups): the equations of every mode, and the balance of weights.
    """
    mass = parts.mass_of(np.append(1.0, values))
    squares, gain = gains(kp, mass)
    rows = []
    for square, shape in zip(squares, np.linalg.inv(np.linalg.cholesky(mass)), strict=True):  # columns of L^-T
        own = np.tensordot(parts.stiffness - square * parts.mass, shape / np.abs(shape).max(), (1, 0))
        rows.append(np.linalg.solve(mass @ gain, own[:, 1:]))
    rows.append(np.linalg.solve(mass @ gain, parts.weight[:, 1:]) / SMALLER)
    return np.concatenate(rows) * sizes_of(values)


def information_of(J: Array) -> float:
    """How much slopes tell about all parameters together."""
    return float(np.log(np.linalg.svd(J, compute_uv=False) ** 2 + 1e-9).sum())
