"""What shapes an on-line identification."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynident.errors import InputError
from dynident.online.filters import CausalOptions, Differentiator, Speed
from dynident.online.history import Forgetting, Kind

BAND = 10.0  # [Hz] where neither the user nor a prior says anything
CUTOFF_FACTOR = 4.0  # motion is filtered at this many times the band: a narrower filter smears friction at reversals
_ROWS_PER_BAND = 4.0  # rows of a joint per second, in units of the band, as off-line
_LARGEST_DELAY = 0.5  # [s] that anybody can mean


@dataclass(frozen=True)
class OnlineOptions:
    """Options of `OnlineIdentifier`.

    Attributes:
        sample_time: Time between samples [s]; None takes the median of the first ones.
        band: Frequency up to which motion and torque are compared [Hz]; None for that of the prior, or 10 Hz. Zero
            leaves the low-pass out: positions go to the five-point differentiator as they are.
        differentiator: "low-pass" or "five-point" (Khosla & Kanade 1987).
        speed: "position", or "measured" to use the samples' own speeds.
        torque_delay: Time by which torque is stamped late [s]; None for what the prior was identified with, or none.
        regrid: Whether stamps are irregular and samples are to be brought onto a grid; None looks at the first stamps,
            or takes them as regular where the sample time is given.
        rest_speed: A joint slower than this is at rest: dry friction may hold it, and it has no row [rad/s or m/s].
        box: Instants over which columns and torque are averaged to one row; None chooses by the band.
        forgetting: "directional", "exponential" or "none".
        memory: Time of motion after which old rows count 1/e [s].
        floor: Smallest deviation as a share of each value; 0 for none.
        lean: How strongly parameters are held near the prior's, in units of its own certainty; 0 not at all.
        session: Friction that a run with payload has of its own, "none", "load" or "friction" (see `identify_payload`).
        detect: Whether to look for picked and released payloads; None does so with a payload.
        window: Length of the last stretch of motion that is compared with all before [s].
        stretch: Motion after which changes are looked for and values solved anew [s], the resolution of a change in
            time; None for 0.1 s with a payload and 1 s without.
        least_mass: Smallest mass that matters [kg].
        project: Time between projections to physical parameters in the background [s]; 0 for none.
    """

    sample_time: float | None = None
    band: float | None = None
    differentiator: Differentiator = "low-pass"
    speed: Speed = "position"
    torque_delay: float | None = None
    regrid: bool | None = None
    rest_speed: float = 0.01
    box: int | None = None
    forgetting: Kind = "directional"
    memory: float = 60.0
    floor: float = 0.0
    lean: float = 1.0
    session: str = "none"
    detect: bool | None = None
    window: float = 2.0
    stretch: float | None = None
    least_mass: float = 0.1
    project: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rest_speed", "floor", "lean", "project", *self._given("band")):
            self._check(name, 0.0, "zero or more")
        for name in ("window", "least_mass", *self._given("stretch", "sample_time")):
            self._check(name, 1e-300, "more than zero")
        for name in ("memory", *self._given("torque_delay")):
            self._check(name, -np.inf, "in seconds", finite=False)
        if self.torque_delay is not None and not abs(self.torque_delay) <= _LARGEST_DELAY:
            raise InputError(f"torque_delay is {self.torque_delay!r} s; expected at most {_LARGEST_DELAY:g} s")
        if self.box is not None and (isinstance(self.box, bool) or not isinstance(self.box, int) or self.box < 1):
            raise InputError(f"box is {self.box!r}; expected a whole number from 1 on, or None")
        Forgetting(self.forgetting, self.memory)  # which checks both

    def _given(self, *names: str) -> tuple[str, ...]:
        """Those of some options that are not left open."""
        return tuple(name for name in names if getattr(self, name) is not None)

    def _check(self, name: str, least: float, words: str, *, finite: bool = True) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or (finite and not least <= value < np.inf):
            raise InputError(f"{name} is {value!r}; expected a finite number, {words}")

    @property
    def rule(self) -> Forgetting:
        """How old information makes room."""
        return Forgetting(self.forgetting, self.memory)

    def stretch_seconds(self, payload: bool) -> float:
        """Length of a stretch [s]: with a payload there are few unknowns, and changes are to be found soon."""
        return self.stretch if self.stretch is not None else (0.1 if payload else 1.0)

    def filters(self, sample_time: float, prior_band: float | None, prior_delay: float) -> CausalOptions:
        """The filters at a rate.

        Raises:
            InputError: When the time between samples is none.
        """
        if not sample_time > 0.0:
            raise InputError(f"sample_time is {sample_time} s; expected a positive time between samples")
        wanted = self.band if self.band is not None else prior_band or BAND
        cutoff = min(CUTOFF_FACTOR * wanted, 0.45 / sample_time) if wanted > 0.0 else None
        delay = prior_delay if self.torque_delay is None else self.torque_delay
        return CausalOptions(sample_time, cutoff, self.differentiator, self.speed, delay)

    def step(self, filters: CausalOptions) -> int:
        """Instants that make one row."""
        if self.box is not None:
            return self.box
        if filters.cutoff is None:
            return 1
        band = filters.cutoff / CUTOFF_FACTOR
        return max(1, int(1.0 / (filters.sample_time * _ROWS_PER_BAND * band) + 1e-9))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
