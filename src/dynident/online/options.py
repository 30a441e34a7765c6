"""`OnlineOptions`, `LiveOptions`: what shapes an on-line identification, and how a stream is followed.

Importable without NumPy, for `dynident live --help`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from dynident.options import TERMS_HELP, Options, option, option_fields

if TYPE_CHECKING:
    import threading

    from numpy.typing import ArrayLike

    from dynident.dynamics.terms import TermsLike
    from dynident.estimate.fit import Fit
    from dynident.logs.read import Columns

_LARGEST_DELAY_S = 0.5  # that anybody can mean
Pace = float  # may be infinite
_MODEL = ("terms", "prior", "payload", "sigma", "structure")  # what a checkpoint keeps in another form
MOST_TOGETHER = 512  # samples handed on together


@dataclass(frozen=True, kw_only=True)
class OnlineOptions(Options):
    """Options of `OnlineIdentifier`."""

    terms: TermsLike = option(
        None,
        f"terms of the model, functions of the state alone; {TERMS_HELP}",
        shown="those of the prior, or all",
    )
    prior: Fit | str | Mapping[str, float] | None = option(
        None,
        "what is known: a `Fit`, the name of one of the robot's value sets, values by name, or None. Beside a payload "
        "its friction may follow the motion along time; else its links and plain friction count",
        cli=False,
        recorded=False,
    )
    payload: bool | None = option(
        None,
        "fit what the tool carries, with the robot as the prior has it",
        cli=False,
        recorded=False,
        shown="yes for a stream beside a fit, else no",
    )
    sigma: ArrayLike | None = option(
        None,
        "(n_joints,) standard deviation of each joint's torque, for its weight",
        cli=False,
        recorded=False,
        shown="the prior's residuals",
    )
    structure: Any = option(
        None,
        "where the torque comes from, such as `ParallelStructure`",
        cli=False,
        recorded=False,
        shown="the samples (input error)",
    )
    estimator: str = option(
        "joint",
        "joint, or link-by-link: from the tip to the base, each joint with the links beyond as known (Khosla & Kanade "
        "1987), with less arithmetic and larger standard deviations",
        choices=("joint", "link-by-link"),
        metavar="NAME",
    )
    sample_time: float | None = option(
        None, "time between samples", unit="s", minimum=0.0, cli=False, shown="median of the first ones"
    )
    band: float | None = option(
        None,
        "bandwidth in which motion and torque are compared; 0 leaves the low-pass out: positions go to the five-point "
        "differentiator as they are",
        unit="Hz",
        least=0.0,
        metavar="HZ",
        shown="that of the fit, or 10",
    )
    differentiator: str = option(
        "low-pass",
        "low-pass, or five-point (Khosla & Kanade 1987)",
        choices=("low-pass", "five-point"),
        cli=False,
    )
    velocity_source: str = option(
        "position", "position (derived), or measured", choices=("position", "measured"), cli=False
    )
    torque_delay: float | None = option(
        None,
        "time delay between torque and position",
        unit="s",
        least=-_LARGEST_DELAY_S,
        most=_LARGEST_DELAY_S,
        cli=False,
        shown="what the prior was identified with, or none",
    )
    regrid: bool | None = option(
        None,
        "bring samples with irregular stamps onto a grid",
        cli=False,
        shown="by the first stamps; no where the sample time is given",
    )
    rest_velocity: float = option(
        0.01,
        "joints slower than this are at rest: dry friction may hold them, and they have no row; with 0 every row "
        "counts, those near reversals too",
        unit="rad/s or m/s",
        least=0.0,
        cli=False,
    )
    box: int | None = option(
        None,
        "instants over which columns and torque are averaged to one row",
        least=1,
        cli=False,
        shown="by the bandwidth",
    )
    forgetting: str = option(
        "directional",
        "how old samples are forgotten: directional, exponential or none",
        choices=("directional", "exponential", "none"),
        metavar="HOW",
    )
    memory: float = option(
        60.0, "time of motion after which old samples count 1/e", unit="s", minimum=0.0, metavar="SECONDS"
    )
    floor: float = option(0.0, "smallest standard deviation as a share of each value; 0 for none", least=0.0, cli=False)
    lean: float = option(
        1.0,
        "weight of the prior's values, in units of their own information; 0 for none",
        least=0.0,
        cli=False,
    )
    session: str = option(
        "none",
        "friction that a run with payload has of its own: none, load or friction (see `identify_payload`)",
        choices=("none", "load", "friction"),
        cli=False,
    )
    detect: bool | None = option(None, "look for picked and released payloads", cli=False, shown="with a payload")
    window: float = option(
        2.0, "length of the last stretch of motion that is compared with all before", unit="s", minimum=0.0, cli=False
    )
    stretch: float | None = option(
        None,
        "motion after which changes are looked for and values solved again: the resolution of a change in time",
        unit="s",
        minimum=0.0,
        cli=False,
        shown="0.1 with a payload, else 1",
    )
    least_mass: float = option(0.1, "smallest mass that matters", unit="kg", minimum=0.0, cli=False)
    project: float = option(
        0.0,
        "time between projections to physical parameters in the background; 0 for none",
        unit="s",
        least=0.0,
        cli=False,
    )

    def stretch_seconds(self, payload: bool) -> float:
        """Length of a stretch [s]: with a payload there are few unknowns, and changes are to be found soon."""
        return self.stretch if self.stretch is not None else (0.1 if payload else 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the options that a checkpoint keeps."""
        return {name: getattr(self, name) for name in option_fields(OnlineOptions) if name not in _MODEL}


@dataclass(frozen=True, kw_only=True)
class LiveOptions(OnlineOptions):
    """Options of `stream`: those of the estimator, and how the stream is followed."""

    identifier: Any = option(
        None, "estimator to use, an `OnlineIdentifier`", cli=False, shown="an `OnlineIdentifier` of the robot"
    )
    stop: threading.Event | None = option(None, "ends the stream when it is set, as its source would", cli=False)
    pace: Pace = option(
        float("inf"), "of a log: 1 as recorded, infinity as fast as possible", cli=False, shown="infinity"
    )
    columns: Columns = option(None, "YAML file for senders or logs with other names", metavar="FILE")
    listen_all: bool = option(False, "let other machines send too, not only this one")
    interval: float = option(1.0, "time between states", unit="s", minimum=0.0, cli=False)
    clock: str = option(
        "stream",
        "whose time that is: stream (the stamps; the same states whenever a log is replayed) or real",
        choices=("stream", "real"),
        cli=False,
    )
    timeout: float | None = option(
        None,
        "real time without a sample after which to give up: an error before the first one, the end of the stream after",
        unit="s",
        minimum=0.0,
        metavar="SECONDS",
        shown="wait for ever",
    )
    duration: float | None = option(None, "end after so much time of stamps", unit="s", minimum=0.0, metavar="SECONDS")
    count: int | None = option(None, "end after so many samples", minimum=0, metavar="N")
    checkpoint: str | PathLike[str] | None = option(
        None, "file that keeps the estimate; if it exists, go on from it", metavar="F.npz"
    )
    checkpoint_every: float = option(5.0, "real time between checkpoints", unit="s", minimum=0.0, metavar="SECONDS")
    together: int = option(
        MOST_TOGETHER,
        "samples that the estimator takes at once when they have piled up; with 1, results are the same to the last "
        "bit however samples were grouped on their way",
        minimum=0,
        cli=False,
    )
