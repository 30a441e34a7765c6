"""`IdentifyOptions`: what shapes an identification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynident.dynamics.terms import Term, TermsLike
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.signals.observations import SignalOptions


@dataclass(frozen=True)
class IdentifyOptions:
    """What shapes an identification; the defaults are meant to be right for any arm.

    Attributes:
        terms: Basic terms of the model, which are there in any case; None for rigid, Ia, Fv, Fc smoothed, Fo.
        friction: Friction beside them: "auto" lets the training data decide, "basic" adds none, "generic" what helps on
            most arms, "full" everything; or terms such as "stop(0.0003,0.003),load". None is auto, or basic where terms
            are given, only essential parameters are wanted, or a prior speaks of the robot's own values.
        estimator: Method by name, or an estimator.
        essential: Keep only parameters with a relative deviation below this share; None keeps all.
        band: Band of the rows [Hz]; None chooses it from the motion of each log.
        delay: Delay of the torque [s]; None lets the training data decide.
        speed: "position", "measured", or None to let the training data decide.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
        differentiator: What differentiates the low-passed positions.
        check: What to do if the logs are found wrong: "stop", "tell" in the warnings, or "off" to leave the check out.
    """

    terms: TermsLike = None
    friction: str | Sequence[str | Term] | None = None
    estimator: str | Estimator = "weighted"
    essential: float | None = None
    band: float | None = None
    delay: float | None = None
    speed: str | None = None
    rest_speed: float = SignalOptions.rest_speed
    differentiator: str = SignalOptions.differentiator
    check: str = "stop"

    def __post_init__(self) -> None:
        if self.check not in ("stop", "tell", "off"):
            raise InputError(f"check is {self.check!r}; expected stop, tell or off")
