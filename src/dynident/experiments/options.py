"""Options of the four experiments, declared once. Importable without NumPy, for `dynident VERB --help`.

Angles are radians here; the command line takes degrees where its records say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from dynident.errors import InputError
from dynident.options import Options, option

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dynident.arrays import Array
    from dynident.estimate.fit import Fit
    from dynident.experiments.gravity.plan import Sweep
    from dynident.plant.controllers import Controller
    from dynident.robot.model import Robot

Order = int | Literal["auto"]  # of a Fourier series
Gravity = Literal["cancel", "model", "none"]  # where the gravity of a run comes from
Way = Literal["sequential", "together"]  # how effective inertias become combinations
StageName = Literal["both", "gravity", "inertia"]
SearchName = Literal["extrapolate", "creep", "walk"]
MOST_SWEEP_POSES = 4  # of a joint
TAYLOR_TERMS = (2, 24)  # of the series for A and U: fewest and most


@dataclass(frozen=True, kw_only=True)
class PlantOptions(Options):
    """Which plant an experiment drives: the simulated one and what disturbs it, or one of the user's own."""

    HELP_GROUP: ClassVar[str] = "the machine: simulated with MuJoCo, or your own with --plant"

    plant: str | None = option(
        None,
        "a machine of your own: a Python file and the name of its Plant, or of a function robot -> Plant",
        metavar="FILE.py:NAME",
    )
    plant_values: str | None = option(
        None,
        "what the simulated machine really is",
        flags=("--values",),
        metavar="SET",
        shown="the robot's plant values, else its own",
    )
    rate: float | None = option(None, "of commands and readings", unit="Hz", minimum=0.0, metavar="HZ")
    noise: float | None = option(
        None, "standard deviation of the torque noise", unit="N·m or N", least=0.0, metavar="TORQUE"
    )
    encoder: float | None = option(
        None, "counts of the encoders, per turn or meter (0: exact)", least=0.0, metavar="COUNTS"
    )
    breakaway: float | None = option(None, "static over kinetic friction", minimum=0.0, metavar="RATIO")
    effects: str | None = option(
        None,
        "friction of real gears, tilt and joint offsets by parameter name, or a YAML file of them",
        metavar="stop0.3_1=4,..",
    )
    payload: str | None = option(None, "body on the tool [kg, m, kg·m²]", metavar="MASS[,CX,CY,CZ[,..]]")
    noise_seed: int | None = option(None, "of the noise", flags=("--seed",), least=0, metavar="N", shown="0")


@dataclass(frozen=True, kw_only=True)
class GravityOptions(Options):
    """How the quasi-static gravity test is made."""

    joints: Sequence[str] | None = option(
        None,
        "only these joints, by name or variable; moments of links beyond a joint must be found too, so leave out inner "
        "joints only",
        metavar="q2,q3",
        shown="all that gravity acts on",
    )
    poses: Sequence[Mapping[str, float]] = option(
        (),
        "where joints are held; may be repeated for a further pose",
        unit="rad or m",
        flags=("--pose",),
        repeated=True,
        metavar="q2=-1.2,..",
        shown="where every moment shows",
    )
    least_poses: int = option(
        1,
        "sweeps of each joint at different poses, at least",
        flags=("--poses",),
        least=1,
        most=MOST_SWEEP_POSES,
        expected=f"1 to {MOST_SWEEP_POSES}",
        metavar="N",
    )
    span: float | None = option(
        None,
        "half the range of a joint that turns; joints that slide go 0.2 m either way",
        unit="rad",
        minimum=0.0,
        cli=False,
        shown="60 degrees",
    )
    sweep_velocity: float | None = option(
        None,
        "velocity of the sweeps; joints that slide have a quarter of the number, in m/s",
        unit="rad/s",
        minimum=0.0,
        metavar="VELOCITY",
        shown="0.2",
    )
    order: Order = option(
        1, "of the Fourier series: 1 (rigid links) to 3, or auto: the one that the residual asks for", metavar="N"
    )
    control: Callable[[Robot, Sweep], Controller] | None = option(
        None,
        "controller that follows a sweep, robot and sweep -> Controller; default a spring and damper at each joint on "
        "top of the torque of the robot's own values. Torque is measured, that of its model is never believed",
        cli=False,
        recorded=False,
    )
    true: str | Mapping[str, float] | None = option(
        None, "values of a simulated machine, shown beside the estimates", cli=False, recorded=False
    )


@dataclass(frozen=True, kw_only=True)
class FrictionOptions(Options):
    """How the constant-velocity friction test is made."""

    joints: Sequence[str] | None = option(
        None, "joints to test; coupled ones are tested together", metavar="q5,q6", shown="all with friction"
    )
    velocities: Mapping[str, Sequence[float]] | Sequence[float] | None = option(
        None,
        "velocities of every joint, each run in both directions, or by joint; of coupled joints those of the motors, "
        "on the joint side",
        unit="rad/s or m/s",
        metavar="0.1,0.5,1|q5=1:2:3,..",
        shown="shares of the fastest that limits and range allow",
    )
    ranges: Mapping[str, tuple[float, float]] | None = option(
        None,
        "positions between which joints may move",
        unit="rad or m",
        flags=("--range",),
        metavar="q5=-1:1,..",
        shown="their limits",
    )
    at: Mapping[str, float] | None = option(
        None,
        "where other joints are held",
        unit="rad or m",
        metavar="q2=0.5,..",
        shown="where gravity does least, by the robot's own values",
    )
    gravity: Gravity = option(
        "cancel",
        "cancel (by both directions), model (the robot's own values) or none: with these two, each direction is a "
        "point of its own and offsets are found too",
        choices=("cancel", "model", "none"),
    )
    fit: Fit | None = option(None, "gravity and inertia from what identify wrote", metavar="FIT")
    friction: str | Sequence[str] | None = option(
        None,
        "laws beside viscous and Coulomb that show at constant velocity, such as stribeck(0.2) or quadratic",
        metavar="WHICH",
    )
    bandwidth: float = option(
        30.0, "of the feedback that moves and holds the joints", unit="rad/s", minimum=0.0, metavar="RAD/S"
    )
    cruise: float = option(
        1.0,
        "longest time at a velocity; less where the range is short, more where a slow joint needs longer to settle",
        unit="s",
        minimum=0.0,
        metavar="SECONDS",
    )
    ramp: float = option(0.3, "from rest to a velocity", unit="s", minimum=0.0, metavar="SECONDS")
    settle: float = option(
        0.2, "at a velocity before it is measured, on either way", unit="s", minimum=0.0, metavar="SECONDS"
    )
    least: float = option(0.2, "shortest time that is measured", unit="s", minimum=0.0, cli=False)
    rest: float = option(0.1, "time before each way", unit="s", minimum=0.0, cli=False)
    wind: float = option(
        0.04,
        "way over which the feedback winds up against friction before a joint follows",
        unit="rad; a tenth in m",
        minimum=0.0,
        cli=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cruise < self.shortest_cruise:
            raise InputError(
                f"cruise is {self.cruise:g} s; at least {self.shortest_cruise:g} s, twice settle and least, must be at "
                "velocity"
            )

    @property
    def shortest_cruise(self) -> float:
        """Least time at a velocity that leaves something to measure [s]."""
        return 2.0 * self.settle + self.least


@dataclass(frozen=True, kw_only=True)
class StepOptions(Options):
    """How the voltage-step test is made."""

    joints: Sequence[str] | None = option(
        None, "joints to test, by name or variable", metavar="q1,q2,..", shown="all that can be"
    )
    voltages: Mapping[str, Sequence[float]] | Sequence[float] | None = option(
        None,
        "steps for all joints, or by joint: q1=0.8:0.5,q2=0.8:0.4",
        unit="V",
        flags=("--volts",),
        metavar="V,V",
        shown="what the robot's own values suggest, of both signs where gravity acts",
    )
    duration: float = option(1.2, "of a step", unit="s", minimum=0.0, metavar="SECONDS")
    settle: float | None = option(
        None, "time before a step", unit="s", least=0.0, metavar="SECONDS", shown="0.02, or 0.3 where weight is carried"
    )
    configurations: int | None = option(
        None, "joints and poses together", metavar="N", shown="two more than there are combinations"
    )
    poses: ArrayLike | None = option(
        None,
        "where to lock the others, instead of chosen poses, (n_poses, n_moving); may be repeated",
        unit="rad or m",
        flags=("--pose",),
        repeated=True,
        metavar="q1=0,q2=0.5,..",
    )
    repeat: Sequence[tuple[int, Array]] | None = option(
        None, "(motor, pose) of an earlier test, made again with a payload that nobody knows", cli=False
    )
    for_payload: bool = option(False, "add poses that determine a payload, for a test whose loaded repeat follows")
    still: float = option(0.005, "by how much a locked joint may move", unit="rad or m", minimum=0.0, metavar="RAD")
    bandwidth: float | None = option(
        None,
        "bandwidth of what holds the others",
        unit="rad/s",
        minimum=0.0,
        flags=("--hold",),
        metavar="RAD/S",
        shown="what the rate allows",
    )
    values: str | None = option(
        None,
        "what the controller knows of the robot: inertia for the hold, weight to carry",
        flags=("--nominal",),
        metavar="SET",
        shown="its own values",
    )
    weight_std: float = option(
        0.2,
        "relative standard deviation of the masses, centers and inertias that it knows (0: exact); steps of both signs "
        "correct them",
        least=0.0,
        metavar="SHARE",
    )
    terms: int | None = option(
        None,
        "A and U by Taylor's series with N terms, as in the paper",
        flags=("--taylor",),
        metavar="N",
        shown="the exact solution",
    )
    way: Way = option(
        "sequential",
        "combinations joint by joint from the tip (sequential), or all together",
        choices=("sequential", "together"),
        flags=("--solve",),
    )
    emf_known: bool = option(False, "whether the motors' back-EMF is known, so that damping can be split", cli=False)
    seed: int = option(0, "of the candidates for poses", cli=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terms is not None:
            check_terms(self.terms)


def check_terms(terms: int) -> None:
    """Refuse a number of terms of Taylor's series that determines no A, or that floats are not good for."""
    least, most = TAYLOR_TERMS
    if not least <= terms <= most:
        raise InputError(f"{terms} terms of Taylor's series; expected {least} to {most}")


@dataclass(frozen=True, kw_only=True)
class OscillationOptions(Options):
    """How the free-oscillation test is made."""

    stage: StageName = option(
        "both", "gravity, inertia or both, the weight first", choices=("both", "gravity", "inertia")
    )
    search: SearchName = option(
        "extrapolate",
        "of the weight: extrapolate, or as in the paper creep or walk",
        choices=("extrapolate", "creep", "walk"),
    )
    nominal: str | Mapping[str, float] | None = option(
        None, "what is known before: a value set", metavar="SET", shown="the robot's own"
    )
    factor: float = option(1.5, "over-estimate to begin with, times what is known before", metavar="F")
    amplitude: float | None = option(
        None, "of the starts", unit="rad or m", cli=False, shown="small, but many steps of the encoder"
    )
    reach: float = option(
        math.radians(12.0), "distance at which a swing is a fall", unit="rad or m", minimum=0.0, cli=False
    )
    periods: float = option(4.0, "of the slowest mode in a run", minimum=0.0, metavar="N")
    rounds: int = option(2, "of runs, at most", least=1, metavar="N")
    tolerance: float = option(2e-4, "relative change of the estimates at which rounds end", minimum=0.0, cli=False)
    kp: float = option(100.0, "proportional gain of the inertia stage", unit="1/s²", metavar="1/S2")
    pose: ArrayLike | None = option(
        None, "where to look for the upright pose, or where the sensitivity is wanted", metavar="q1=0,.."
    )
    set_points: Sequence[ArrayLike] | None = option(
        None,
        "set-points of the inertia stage, other joints at 0; may be repeated",
        flags=("--set-point",),
        repeated=True,
        metavar="q2=1.2,..",
        shown="poses that determine most",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factor > 1.0:
            raise InputError(f"factor is {self.factor}; expected an over-estimate above 1: under-estimates fall")
        if self.amplitude is not None and not 0.0 < self.amplitude < self.reach:
            raise InputError(
                f"amplitude is {self.amplitude:.4g} rad ({math.degrees(self.amplitude):.4g} degrees); expected between "
                f"0 and the reach, {self.reach:.4g} rad ({math.degrees(self.reach):.4g} degrees)"
            )
