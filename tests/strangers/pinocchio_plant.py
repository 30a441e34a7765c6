"""`PinocchioPlant`: a serial arm simulated by Pinocchio alone.

Its Coulomb friction is a true sign that sticks, or turns over within a width of velocity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from dynident.plant import Motors, Payload, Reading
from dynident.robot.model import Robot

FINE = 5  # steps of a step in which one does
STIFF = 0.5  # longest Runge-Kutta step over the fastest time constant of smooth friction; 2.8 is the limit of stability
WITHIN = 10.0  # widths of velocity beyond which a tanh is one to 4e-9
LOAD_ROUNDS = 4  # until friction and the load that it leaves agree: each takes the error down by the load factor
SWEEPS = 60  # of the projected Gauss-Seidel that finds the friction of joints that stick


class PinocchioPlant:
    """A serial arm under torque or voltage as a `Plant`; its equations, friction and encoders share no code with ours.

    Torque is reached in a straight line at the next sample; the measured torque is that of the sample's own instant.

    Args:
        robot: The robot as described; joints in the order of the model's.
        model: What the machine really is: inertias and armature (rotor inertia).
        viscous: (n,) Fv.
        coulomb: (n,) Fc.
        offset: (n,) Fo.
        width: (n,) velocity w of friction Fc tanh(dq / w) [rad/s or m/s]; 0 for a sign that sticks.
        falling: Share by which dry friction is larger as motion sets in, Fc (1 + falling exp(-|dq| / velocity)) as
            Tustin has it; like `load` where it turns over within a width.
        falling_velocity: (n,) that velocity [rad/s or m/s].
        load: Dry friction per torque that the links ask for, rotors aside.
        sample_time: [s].
        step: Longest Runge-Kutta step while no joint turns round [s].
        resolution: (n,) step of the encoders; 0 for none.
        torque_noise: (n,) standard deviation of the measured torque.
        motors: Electrical model for voltages, without inductance.
        payload: Body on the last link, in its frame.
        payload_at: Time from which it is there [s].
        seed: Of noise and of where the encoders' steps lie.
    """

    def __init__(
        self,
        robot: Robot,
        model: pin.Model,
        viscous: Sequence[float],
        coulomb: Sequence[float],
        *,
        offset: float | Sequence[float] = 0.0,
        width: float | Sequence[float] = 0.0,
        falling: float = 0.0,
        falling_velocity: float | Sequence[float] = 1.0,
        load: float = 0.0,
        sample_time: float = 2e-3,
        step: float = 1e-3,
        resolution: float | Sequence[float] = 2.0 * np.pi / 2**17,
        torque_noise: float | Sequence[float] = 0.0,
        motors: Motors | None = None,
        payload: Payload | None = None,
        payload_at: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.robot, self.sample_time, self.motors = robot, sample_time, motors
        self._bare, self._loaded = model, model if payload is None else _loaded(model, payload)
        self._payload_at = payload_at
        self._n = model.nv
        self._viscous, self._coulomb = np.array(viscous, float), np.array(coulomb, float)
        self._offset = np.broadcast_to(np.asarray(offset, float), self._n)
        self._width = np.broadcast_to(np.asarray(width, float), self._n)
        assert np.all(self._width > 0.0) or not np.any(self._width > 0.0), "all joints stick or none"
        self._falling, self._load = falling, load
        self._falling_velocity = np.broadcast_to(np.asarray(falling_velocity, float), self._n)
        assert np.all(self._width > 0.0) or not (falling or load), "what sticks has Coulomb friction alone"
        self._resolution = np.broadcast_to(np.asarray(resolution, float), self._n)
        self._noise = np.broadcast_to(np.asarray(torque_noise, float), self._n)
        self._rng = np.random.default_rng(seed)
        self._phase = self._rng.uniform(-0.5, 0.5, self._n) * self._resolution
        self._limits = np.array([joint.limits.effort or np.inf for joint in robot.joints])
        self._inner = max(1, round(sample_time / step))
        self.reset(np.zeros(self._n))

    # --- the protocol -----------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        return self._k * self.sample_time

    def reset(self, q, dq=None) -> None:
        self._k, self.saturated = 0, frozenset()
        self.q, self.dq = np.array(q, float), np.zeros(self._n) if dq is None else np.array(dq, float)
        self._stuck = np.zeros(self._n)  # friction that acted last on each joint
        self._before = self._after = None  # torque at this sample and at the next
        self._braking = np.zeros(self._n)
        self._acceleration = np.zeros(self._n)  # over the last step, where friction is smooth
        self._choose_model()

    def apply_torque(self, tau) -> None:
        wanted = np.array(tau, float)
        command = np.clip(wanted, -self._limits, self._limits)
        self._note_limited(command, wanted)
        self._before = command if self._after is None else self._after
        self._after, self._braking = command, np.zeros(self._n)

    def apply_voltage(self, voltage) -> None:
        assert self.motors is not None
        motors = self.motors.for_joints(self.robot.joint_names)
        wanted = np.array(voltage, float)
        held = np.clip(wanted, -motors.voltage_limit, motors.voltage_limit)
        self._note_limited(held, wanted)
        self._voltage = held
        self._before = self._after = motors.torque_constant * held / motors.resistance
        self._braking = motors.braking

    def step(self) -> None:
        if self._after is None:
            self._before = self._after = np.zeros(self._n)
        h = self.sample_time / self._inner
        for k in range(self._inner):
            ends = [
                self._before + part * (self._after - self._before) for part in (k / self._inner, (k + 1) / self._inner)
            ]
            self._advance(*ends, h)
        self._k += 1
        self._choose_model()

    def read(self) -> Reading:
        torque = np.zeros(self._n) if self._after is None else self._after - self._braking * self.dq
        step = np.where(self._resolution > 0.0, self._resolution, 1.0)
        counted = np.round((self.q + self._phase) / step) * step - self._phase
        q = np.where(self._resolution > 0.0, counted, self.q)
        tau = torque + self._noise * self._rng.standard_normal(self._n)
        if self.motors is None:
            return Reading(self.time, q, self.dq.copy(), tau)
        constant = np.broadcast_to(self.motors.torque_constant, self._n)
        return Reading(self.time, q, self.dq.copy(), tau, tau / constant, getattr(self, "_voltage", np.zeros(self._n)))

    def stop(self) -> None:
        self._after = None

    # --- physics ----------------------------------------------------------------------------------------------------

    def _choose_model(self) -> None:
        self._model = self._loaded if self.time >= self._payload_at - 1e-9 else self._bare
        self._data = self._model.createData()

    def _note_limited(self, command, wanted) -> None:
        self.saturated |= {self.robot.joint_names[i] for i in np.flatnonzero(command != wanted)}

    def _advance(self, before, after, h: float) -> None:
        """Runge-Kutta where every joint keeps the sign of its velocity; small steps with set-valued friction else."""
        before, after = before - self._offset, after - self._offset
        if self._width[0] > 0.0:
            self._smooth(before, after, h)
            return
        sign = np.sign(self.dq)
        if np.all((sign != 0.0) | (self._coulomb == 0.0)):
            q, dq = self._runge_kutta(before, after, sign, h)
            if np.all((dq * sign > 0.0) | (self._coulomb == 0.0)):
                self.q, self.dq, self._stuck = q, dq, self._coulomb * sign
                return
        for k in range(FINE):
            part = (k + 0.5) / FINE
            self._sticking(before + part * (after - before), h / FINE)

    def _smooth(self, before, after, h: float) -> None:
        """Runge-Kutta with steps as short as the slope of the friction asks for."""
        done = 0.0
        while done < h * (1.0 - 1e-9):
            own = h - done
            near = np.maximum(np.abs(self.dq) - h * np.abs(self._acceleration), 0.0) / self._width
            if np.any(near < WITHIN):  # the slope where the velocity may be within this step, or is now
                most = self._coulomb * (1.0 + self._falling) + self._load * np.maximum(np.abs(before), np.abs(after))
                slope = most / self._width / np.cosh(np.minimum(near, WITHIN)) ** 2
                rate = np.max(np.diag(_inverse_inertia(self._model, self._data, self.q)) * (slope + self._viscous))
                own /= np.ceil(own * rate / STIFF)
            ends = [before + part / h * (after - before) for part in (done, done + own)]
            last = self.dq
            self.q, self.dq = self._runge_kutta(*ends, None, own)
            self._acceleration = (self.dq - last) / own
            done += own

    def _runge_kutta(self, before, after, sign, h):
        lost = self._viscous + self._braking

        def rate(q, dq, part):
            given = before + part * (after - before) - lost * dq
            if sign is not None:
                return pin.aba(self._model, self._data, q, dq, given - self._coulomb * sign)
            turned = np.tanh(dq / self._width)
            dry = self._coulomb * (1.0 + self._falling * np.exp(-np.abs(dq) / self._falling_velocity))
            a = pin.aba(self._model, self._data, q, dq, given - dry * turned)
            own = dry
            for _ in range(LOAD_ROUNDS if self._load else 0):
                # What the links ask for is what their friction leaves of the motor's torque, less the rotor's share.
                links = given - own * turned - self._model.armature * a
                own = dry + self._load * np.abs(links)
                a = pin.aba(self._model, self._data, q, dq, given - own * turned)
            return a

        q, v = self.q, self.dq
        a1 = rate(q, v, 0.0)
        v2 = v + 0.5 * h * a1
        a2 = rate(q + 0.5 * h * v, v2, 0.5)
        v3 = v + 0.5 * h * a2
        a3 = rate(q + 0.5 * h * v2, v3, 0.5)
        v4 = v + h * a3
        a4 = rate(q + h * v3, v4, 1.0)
        return q + h * (v + 2.0 * v2 + 2.0 * v3 + v4) / 6.0, v + h * (a1 + 2.0 * a2 + 2.0 * a3 + a4) / 6.0

    def _sticking(self, tau, h: float) -> None:
        """One midpoint step: friction f with |f| <= Fc, and zero velocity wherever it is smaller than Fc."""
        G = _inverse_inertia(self._model, self._data, self.q)
        guess, _ = self._struck(tau, G, self.q, self.dq, h)
        mean = 0.5 * (self.dq + guess)
        v, f = self._struck(tau, G, self.q + 0.5 * h * mean, mean, h)
        self.q, self.dq, self._stuck = self.q + 0.5 * h * (self.dq + v), v, f

    def _struck(self, tau, G, q, dq, h: float):
        """Velocity after a time h with the accelerations at (q, dq), and the friction that acts."""
        lost = (self._viscous + self._braking) * dq
        f = np.where(self.dq == 0.0, self._stuck, self._coulomb * np.sign(self.dq))
        v = self.dq + h * pin.aba(self._model, self._data, q, dq, tau - lost - f)
        slow = np.flatnonzero((self.dq == 0.0) | (v * self.dq <= 0.0))  # they stick or turn round: friction is unknown
        if len(slow):
            change = np.linalg.solve(h * G[np.ix_(slow, slow)], v[slow])  # that stops all of them
            if np.all(np.abs(f[slow] + change) <= self._coulomb[slow]):
                f[slow] += change
                v -= h * G[:, slow] @ change
            else:
                self._slide(v, f, slow, h * G)
        v[np.abs(f) < self._coulomb] = 0.0
        return v, f

    def _slide(self, v, f, slow, G) -> None:
        """Some slide: projected Gauss-Seidel on velocity and friction, in place."""
        for _ in range(SWEEPS):
            most = 0.0
            for j in slow:
                new = min(max(f[j] + v[j] / G[j, j], -self._coulomb[j]), self._coulomb[j])
                v -= G[:, j] * (new - f[j])
                most, f[j] = max(most, abs(new - f[j])), new
            if most < 1e-10:
                break


def _inverse_inertia(model: pin.Model, data: pin.Data, q) -> np.ndarray:
    upper = np.triu(pin.computeMinverse(model, data, q))
    return upper + np.triu(upper, 1).T


def _loaded(model: pin.Model, payload: Payload) -> pin.Model:
    xx, xy, xz, yy, yz, zz = payload.inertia
    body = pin.Inertia(payload.mass, np.array(payload.com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    loaded = pin.Model(model)
    loaded.inertias[model.njoints - 1] = model.inertias[model.njoints - 1] + body
    return loaded
