"""`IdentifyOptions`: what shapes an identification. Importable without NumPy, for `dynident identify --help`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.options import TERMS_HELP, Options, Progress, option

if TYPE_CHECKING:
    from pathlib import Path

    from dynident.dynamics.terms import Term, TermsLike
    from dynident.estimate.estimator import Estimator
    from dynident.pipeline.factor_cache import FactorCache
    from dynident.pipeline.stage_file import StageRule

_FRICTION = (
    "friction beside the terms: auto (the training data decides), basic (none), generic (what helps on most arms), "
    "full (all), or a list: stop(0.0003,0.003),load. Basic where terms are given, only essential parameters are "
    "wanted, or a prior speaks of the robot's own values"
)


@dataclass(frozen=True, kw_only=True)
class IdentifyOptions(Options):
    """What shapes an identification; the defaults are meant to be right for any arm."""

    terms: TermsLike = option(
        None, f"basic terms, always there; {TERMS_HELP}", shown="rigid,Ia,Fv,Fc(0.02),Fo", written="list"
    )
    friction: str | Sequence[str | Term] | None = option(
        None,
        _FRICTION,
        names=(*FRICTION_LAWS, "tilt", "zero", "temperature"),
        metavar="WHICH",
        shown="auto",
        written="list",
    )
    friction_levels: str = option(
        "auto",
        "whether viscous friction may differ between training logs (another month, another temperature): auto (where "
        "friction is left to the training data and several logs show it) or off",
        choices=("auto", "off"),
    )
    estimator: str | Estimator = option(
        "weighted",
        "method: ordinary, weighted, robust, total, ridge or prior",
        choices=("ordinary", "weighted", "robust", "total", "ridge", "prior"),
        metavar="NAME",
    )
    sequential: str | None = option(
        None,
        "estimate from the tip to the base, what one stage finds being known in the next (Khosla & Kanade 1987): "
        "online (all joints move; one torque after the other) or offline (logs in which joints are locked, those with "
        "the fewest moving joints first)",
        choices=("online", "offline"),
        const="online",
        metavar="WAY",
    )
    stages: str | Path | Sequence[StageRule] | None = option(
        None,
        "estimate in stages (Gautier, Khalil & Restrepo 1995): a YAML file that says for each stage its logs, which "
        "joints were locked in them and whose torque counts",
        metavar="FILE",
        written="path",
    )
    model: str = option(
        "torque",
        "equations: torque, or energy or power (Gautier, Khalil & Restrepo 1995), which need no accelerations",
        choices=("torque", "energy", "power"),
        metavar="NAME",
    )
    essential: float | None = option(
        None,
        "keep only parameters with a relative standard deviation below this share; the others are zero",
        minimum=0.0,
        const=0.15,
        metavar="SHARE",
    )
    band: float | None = option(
        None, "bandwidth of the rows", unit="Hz", minimum=0.0, metavar="HZ", shown="from the motion of each log"
    )
    delay: float | None = option(
        None, "time by which torque is stamped late", unit="s", metavar="SECONDS", shown="from the training data"
    )
    velocity_source: str | None = option(
        None,
        "velocity source: position (derived) or measured",
        choices=("position", "measured"),
        metavar="SOURCE",
        shown="what suits the training data better",
    )
    rest_velocity: float = option(
        0.01, "joints slower than this are at rest", unit="rad/s or m/s", least=0.0, metavar="VELOCITY"
    )
    differentiator: str = option(
        "low-pass",
        "what differentiates the low-passed positions: low-pass, five-point, five-point causal, central or "
        "savitzky-golay",
        choices=("low-pass", "five-point", "five-point causal", "central", "savitzky-golay"),
        metavar="NAME",
    )
    filter: str = option(
        "smooth",
        "low-pass of positions and torque: smooth, or butterworth (second order, forwards and backwards)",
        choices=("smooth", "butterworth"),
        metavar="NAME",
    )
    decimation: int | None = option(
        None,
        "samples of a log for each row, after the low-pass of the rows",
        least=1,
        metavar="N",
        shown="four rows in a period of the band",
    )
    check: str = option(
        "stop",
        "what to do where the log diagnostics stop: stop (refuse the logs), warn (identify all the same), or off (no "
        "diagnostics)",
        choices=("stop", "warn", "off"),
    )
    store: str | Path | FactorCache | None = option(
        None,
        "folder for the factor of each finished log, or the cache of such a folder; a later run with the same logs and "
        "options continues there",
        cli=False,
        recorded=False,
    )
    progress: Progress | None = option(
        None, "called with what is being done, and how much of it is done", cli=False, recorded=False
    )
