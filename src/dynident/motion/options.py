"""`ExcitationOptions`: what shapes an excitation trajectory. Importable without NumPy, for `dynident excite --help`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.options import TERMS_HELP, Options, option

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dynident.dynamics.terms import TermsLike
    from dynident.estimate.fit import Fit
    from dynident.information.information import Information
    from dynident.motion.limits import PerJoint, Range

LONGEST_DURATION_S = 3600.0  # of a motion that is searched for
# What an ordinary log is like, as far as nobody says otherwise: a forecast assumes it, and `simulate` writes it.
LOG_RATE = 500.0  # [Hz]
NOISE_SHARE = 0.01  # standard deviation of the torque noise over each joint's rms torque
ENCODER_COUNTS = 131072.0  # per turn, 2^17; per meter of a joint that slides
FILE_RATE = 100.0  # [Hz] of the CSV and ROS files, and of rows that nobody knows the rate of
_FOR_ALL = "of all joints (smaller ones of the robot stay), or by joint (in place of the robot's)"


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        step: Steps done.
        steps: Most steps there can be.
        evaluations: Criteria evaluated so far.
        best: Best criterion so far, as it is minimized; infinite before the first.
    """

    step: int
    steps: int
    evaluations: int
    best: float


@dataclass(frozen=True, kw_only=True)
class ExcitationOptions(Options):
    """What shapes an excitation trajectory; everything has a default but limits the robot does not state."""

    duration: float = option(
        10.0, "length of the motion", unit="s", minimum=0.0, most=LONGEST_DURATION_S, metavar="SECONDS"
    )
    frequency: float | None = option(
        None,
        "base frequency of the series",
        unit="Hz",
        minimum=0.0,
        metavar="HZ",
        shown="one period in the duration; where harmonics are open too, one in up to 20 s, repeated",
    )
    harmonics: int | None = option(
        None,
        "harmonics of the series",
        least=1,
        metavar="N",
        shown="5 in up to 10 s, 10 from 20 s on: the highest has 0.5 Hz or more",
    )
    criterion: str | None = option(
        None,
        "determinant, condition, smallest (singular value) or interval (worst relative standard deviation)",
        choices=("determinant", "condition", "smallest", "interval"),
        metavar="NAME",
        shown="determinant, or interval where data is extended",
    )
    model: str = option(
        "dynamic", "dynamic (torque of every joint) or energy", choices=("dynamic", "energy"), metavar="NAME"
    )
    terms: TermsLike = option(
        None,
        f"terms of the model that is to be identified; {TERMS_HELP}",
        shown="rigid,Ia,Fv,Fc(0.02),Fo",
        written="list",
    )
    noise: PerJoint | Fit | None = option(
        None,
        "standard deviation of the torque in each sample of the log, of all joints, one per joint or q1=X,..; or the "
        "folder of a fit, whose residuals say it; of the energy of a row [J] for the energy model",
        unit="N·m or N",
        metavar="X[,X..]|FIT",
        shown="that of the data to extend, else 1 % of each joint's rms torque",
    )
    rate: float | None = option(
        None,
        "samples per second of the log that will be recorded, and of the CSV and ROS files; where data is extended, "
        "rows per second of that data",
        unit="Hz",
        minimum=0.0,
        metavar="HZ",
        shown="500 in the log, 100 in the files, of the data what it says or 100",
    )
    rest_velocity: PerJoint | None = option(
        None,
        "velocity at which a joint's row counts half, since friction near standstill is not known; of all joints, one "
        "per joint or q1=X,..; 0 counts all alike",
        unit="rad/s or m/s",
        metavar="VELOCITY",
        shown="2 % of the velocity limits",
    )
    limits: Mapping[str, Mapping[str, float]] | None = option(
        None, "limits by joint that replace the robot's: lower, upper, velocity, acceleration, effort", cli=False
    )
    acceleration: PerJoint | None = option(
        None,
        "acceleration limit, of all joints, one per joint in their order or q1=X,..",
        unit="rad/s² or m/s²",
        metavar="X[,X..]",
        shown="none",
    )
    position_range: Range | Mapping[str, Range] | None = option(
        None, f"position limits {_FOR_ALL}: LOWER:UPPER, or X for -X:X", unit="rad or m", metavar="X|q1=A:B,.."
    )
    max_velocity: PerJoint | None = option(None, f"velocity limit {_FOR_ALL}", unit="rad/s or m/s", metavar="X|q1=X,..")
    max_effort: PerJoint | None = option(None, f"torque limit {_FOR_ALL}", unit="N·m or N", metavar="X|q1=X,..")
    torque: bool = option(True, "keep the torque of the robot's own values within the effort limits", cli=False)
    values: str | Mapping[str, float] | None = option(
        None, "value set for the torque", cli=False, shown="the robot's own"
    )
    safety: float = option(0.95, "share of every joint limit that is used", minimum=0.0, most=1.0, metavar="SHARE")
    start: Mapping[str, float] | ArrayLike | None = option(
        None, "pose at which the motion starts and ends", unit="rad or m", metavar="q1=0,..", shown="free"
    )
    floor: float | None = option(None, "height above which all links stay", unit="m", metavar="Z")
    boxes: Sequence[ArrayLike] = option(
        (),
        "box to stay out of: its lower and its upper corner in the base frame; may be repeated",
        unit="m",
        flags=("--box",),
        repeated=True,
        metavar="x,y,z,x,y,z",
    )
    clearance: float | None = option(
        None, "least distance between links that are not neighbors", unit="m", least=0.0, metavar="M"
    )
    radius: float | Mapping[str, float] = option(
        0.05, "radius of the links, or by link name with 'default' for the others", unit="m", least=0.0, metavar="M"
    )
    information: Information | None = option(
        None, "data that is there already; the criterion is that of both together", cli=False
    )
    inflation: PerJoint = option(
        1.0,
        "variance inflation of that data by autocorrelated residuals, of all joints, by joint or as a list "
        "(`Fit.inflation`); it widens the standard deviations predicted from its noise too",
        cli=False,
    )
    starts: int = option(16, "random starts", least=1, metavar="N")
    kicks: int = option(
        2, "random pushes of each of the three best motions, each followed by a search", least=0, metavar="N"
    )
    iterations: int = option(60, "most steps of the last search", least=1, cli=False)
    seed: int = option(0, "of starts and pushes; the same seed gives the same motion", least=0, metavar="N")
    progress: Callable[[SearchProgress], None] | None = option(
        None, "called after every step with the best criterion so far", cli=False, recorded=False
    )
