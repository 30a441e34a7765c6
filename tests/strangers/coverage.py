"""Coverage: errors of parameters, payloads and drive gains in stated standard deviations, over ways to record a log.

Factors are the arm, how sharply its dry friction turns over, the rate of the log, how often the motion was made (ten
times in one log or in ten), by how much torque is late, and the period of the motion. `DESIGN` pairs every two levels
of any two factors at least once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from dynident.payload.quantities import PayloadNumber
from tests.strangers.runs import ARMS, body, measured, run
from tests.strangers.stranger import Calibration, Stranger, calibration

LEAST = 24  # combinations of the design
SEEDS = (0, 1, 2)
OTHER = 100  # added to the seed of a second motion
PAUSE = 2.0  # between logs that follow each other on-line [s]
GAIN = 0.1  # share by which drive gains are off, with either sign


@dataclass(frozen=True)
class Combination:
    """One way to record logs of an arm.

    Attributes:
        arm: Its name.
        width: Velocity within which dry friction turns over [rad/s; slides a tenth of it in m/s]; 0 for a sign,
            infinite for none.
        rate: Of the log [Hz].
        repeats: How often the motion was made, and whether that is one log.
        delay: By which torque is logged too late [s].
        period: Of the motion [s].
        law: Of its dry friction, see `LAWS`; Fc is that of fast motion without load.
    """

    arm: str
    width: float
    rate: int
    repeats: tuple[int, bool]
    delay: float
    period: float
    law: str = "coulomb"

    @property
    def stranger(self) -> Stranger:
        return ARMS[self.arm]()

    @property
    def truth(self) -> dict[str, float]:
        """Standard parameters of its machine by name."""
        dry = self.width < np.inf
        return {name: x for name, x in self.stranger.truth.items() if dry or not name.startswith("Fc")}

    def logs(self, seed: int, *, loaded: bool = False) -> list[di.Log]:
        """Its logs; those with the payload along another motion."""
        own = seed + OTHER * loaded
        found = run(self.arm, own, self.period, self.width, loaded=loaded, law=self.law)
        times, joined = self.repeats
        return measured(self.stranger, found, self.rate, times, own, delay=self.delay, joined=joined)

    def cells(self) -> tuple[str, ...]:
        dry = {0.0: "ideal", np.inf: "none"}.get(self.width, f"{1e3 * self.width:.0f} mrad/s")
        made = f"{self.repeats[0]}{' in one' if self.repeats[1] else ''}"
        dry += "" if self.law == "coulomb" else f", {self.law}"
        return self.arm, dry, f"{self.rate} Hz", made, f"{1e3 * self.delay:.1f} ms", f"{self.period:.0f} s"


# No delay stands twice: half of the combinations have none.
LEVELS: tuple[tuple, ...] = (
    tuple(ARMS),
    (0.0, 3e-3, 20e-3, 62e-3),
    (100, 250, 500, 1000),
    ((1, False), (3, False), (10, False), (10, True)),
    (0.0, 0.5e-3, 0.0, 4.3e-3),
    (6.0, 12.0, 24.0),
)


def covering_design(levels: Sequence[Sequence], least: int, tries: int = 3000, seed: int = 0) -> list[Combination]:
    """Combinations that pair every two levels of any two factors, chosen greedily among random ones.

    Those that pair most stand first: a few of them are a fair selection. Beyond what the pairs need, up to `least`,
    those are taken that repeat pairs least.
    """
    rng, sizes = np.random.default_rng(seed), [len(own) for own in levels]
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    seen = {pair: np.zeros([sizes[k] for k in pair]) for pair in pairs}
    rows: list[np.ndarray] = []
    while len(rows) < least or any((counts == 0).any() for counts in seen.values()):
        candidates = rng.integers(0, sizes, (tries, len(sizes)))
        news = sum((seen[i, j][candidates[:, i], candidates[:, j]] == 0).astype(int) for i, j in pairs)
        often = sum(seen[i, j][candidates[:, i], candidates[:, j]] for i, j in pairs)
        row = candidates[np.lexsort((often, -news))[0]]
        for i, j in pairs:
            seen[i, j][row[i], row[j]] += 1
        rows.append(row)
    names = [field.name for field in dataclasses.fields(Combination)][: len(sizes)]
    return [Combination(**{name: own[k] for name, own, k in zip(names, levels, row, strict=True)}) for row in rows]


DESIGN = covering_design(LEVELS, LEAST)
# Friction that basic terms do not hold: those of the design whose friction turns over within some mrad/s, by turns.
OTHER_FRICTION = [
    dataclasses.replace(one, law=law)
    for one, law in zip(
        [DESIGN[k] for k in (0, 3, 17, 23, 12, 5, 14, 18, 19)], 3 * ("falling", "load", "both"), strict=True
    )
]


def parameters(one: Combination, seed: int, friction: str | None = None) -> Calibration:
    """Base parameters by `identify`; None for its default friction."""
    fit = _fit(one, seed, friction)
    truth = dict(zip(fit.base.names, fit.base.base_values(one.truth), strict=True))
    found = fit.estimate
    return _determined(found.names, found.values, found.std, [truth[name] for name in found.names])


def payload(one: Combination, seed: int, friction: str | None = None) -> Calibration:
    """The numbers of a body on the tool, beside a fit without it."""
    found = di.identify_payload(_fit(one, seed, friction), one.logs(seed, loaded=True))
    return _body_calibration(one.stranger, found.numbers)


def online_payload(one: Combination, seed: int, friction: str | None = None) -> Calibration:
    """The same numbers on-line, the loaded logs one after the other."""
    arm = one.stranger
    found = di.OnlineIdentifier(arm.described, prior=_fit(one, seed, friction), payload=True)
    begin = 0.0
    for log in one.logs(seed, loaded=True):
        time = log.time - log.time[0] + begin
        found.update_many(time, joint_positions(log, arm.described), row_torques(log, arm.described))
        begin = float(time[-1]) + PAUSE
    state = found.state().payload
    assert state is not None
    return _body_calibration(arm, state.numbers)


def drive_gains(one: Combination, seed: int, friction: str | None = None) -> Calibration:
    """Factors of drive gains that are off, from runs without and with a body of known mass."""
    arm = one.stranger
    n = len(arm.torque_noise)
    truth = 1.0 + GAIN * np.where(np.random.default_rng([seed, n]).random(n) < 0.5, -1.0, 1.0)
    logs = [[_off(log, truth) for log in one.logs(seed, loaded=loaded)] for loaded in (False, True)]
    runs = [di.estimate.experiment("runs", arm.described, own) for own in logs]
    found = di.identify_drive_gains(arm.described, *runs, {"M": body(arm).mass})
    return _determined(found.joints, found.factors, np.sqrt(np.diag(found.covariance)), truth)


METHODS: dict[str, Callable[..., Calibration]] = {
    "parameters": parameters,
    "other friction": parameters,
    "payload": payload,
    "payload on-line": online_payload,
    "drive gains": drive_gains,
}


def _fit(one: Combination, seed: int, friction: str | None) -> di.Fit:
    return di.identify(one.stranger.described, one.logs(seed), **({} if friction is None else {"friction": friction}))


def _body_calibration(arm: Stranger, numbers: Sequence[PayloadNumber]) -> Calibration:
    own = body(arm)
    truth = (own.mass, *own.com, *(own.inertia[k] for k in (0, 3, 5, 1, 2, 4)))
    known = [(number, true) for number, true in zip(numbers, truth, strict=True) if number.value is not None]
    assert known, "all numbers are withheld"
    return _determined(*zip(*((number.name, number.value, number.std, true) for number, true in known), strict=True))


def _off(log: di.Log, factors: np.ndarray) -> di.Log:
    """A log as gains that are off give it: the true torque is the logged one times these factors."""
    torques = {f"tau{j}": log.channels[f"tau{j}"] / factor for j, factor in enumerate(factors, start=1)}
    return dataclasses.replace(log, channels={**log.channels, **torques})


def _determined(names, values, std, truth) -> Calibration:
    known = np.isfinite(np.asarray(std, float))
    assert known.any()
    return calibration(np.array(names)[known], *(np.asarray(x, float)[known] for x in (values, std, truth)))
