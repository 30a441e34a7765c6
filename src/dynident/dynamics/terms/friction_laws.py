"""Every law of friction, written once over any number type, and the table that all others read.

A law is the torque c phi(x; s): coefficient c, motion x of an element, scale s. It runs on floats (the simulated
plant), on NumPy arrays (columns of the regressor), and on arrays of recorded numbers (exported C). Adding one takes an
entry of `FRICTION_LAWS` and a test: whatever else the package needs to know of a law is a field of its entry. Help and
documentation read the table as well, so this module loads no NumPy.

Scales are in radians at the joint. A joint that slides moves `METERS_PER_RADIAN` where one that turns moves a radian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from dynident.robot.algebra import Functions, Number, is_number, mul

SMOOTHING = 0.02  # [rad/s] at which the sign of a velocity reaches tanh(1)


@dataclass(slots=True)
class ElementMotion:
    """How an element moves, on one number type; (n_elements, n_samples) each where it is arrays.

    Attributes:
        position: [rad or m].
        velocity: [rad/s or m/s].
        load: Torque of the links that it carries [N·m or N].
        jerk: [rad/s³ or m/s³].
        wound: Share of its radius by which a stop operator is wound up, -1 to 1; see `play` and `play_step`.
        unit: Motion that counts as a radian [rad or m].
        functions: Functions of the number type.
        sticks: Whether the caller makes dry friction stick and slip, as the plant does.
        asks_level: Whether the law at hand is asked for its level alone; `FrictionLaw.torque` says so to dry ones.
    """

    position: Number = 0.0
    velocity: Number = 0.0
    load: Number = 0.0
    jerk: Number = 0.0
    wound: Number = 0.0
    unit: Number = 1.0
    _: KW_ONLY
    functions: Functions
    sticks: bool = False
    asks_level: bool = False

    @property
    def sign(self) -> Number:
        """Sign of the velocity: smoothed about standstill, or exact where the caller makes dry friction stick.

        A dry law sees 1 there: it gives the level, and the caller its direction.
        """
        if self.asks_level:
            return 1.0
        if self.sticks:
            return self.functions.sign(self.velocity)
        return self.functions.tanh(self.velocity / self.unit / SMOOTHING)

    @property
    def slides(self) -> Number:
        """1 in motion, falling to 0 about standstill; 1 throughout where the caller makes dry friction stick."""
        return 1.0 if self.sticks else abs(self.sign)


def coulomb(velocity: Number, width: float, functions: Functions) -> Number:
    r"""Coulomb friction: the exact sign of the velocity, or :math:`\tanh(v / w)` where the width w is not zero."""
    if is_number(velocity, 0):
        return 0.0  # a locked element does not slide
    return functions.tanh(mul(1.0 / width, velocity)) if width else functions.sign(velocity)


def viscous(velocity: Number) -> Number:
    """Viscous friction."""
    return velocity


def _stop(c: Number, x: ElementMotion, radius: float) -> Number:
    return mul(c, x.wound)


def _stribeck(c: Number, x: ElementMotion, scale: float) -> Number:
    level = mul(c, x.sign)
    share = x.velocity / x.unit / scale
    return mul(level, x.functions.exp(-(share * share)))


def _smooth_sign(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(c, x.functions.tanh(x.velocity / x.unit / scale))


def _load(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(mul(c, abs(x.load)), x.sign)


def _load_viscous(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(mul(c, abs(x.load)), x.velocity)


def _load_stribeck(c: Number, x: ElementMotion, scale: float) -> Number:
    return _stribeck(mul(c, abs(x.load)), x, scale)


def _driving(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(mul(c, x.load), x.slides)


def _asymmetric(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(c, x.slides)


def _quadratic(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(mul(c, x.velocity), abs(x.velocity))


def _cubic(c: Number, x: ElementMotion, scale: float) -> Number:
    """v³, in products on scalars and by NumPy's power on arrays: each rounds as it always did, to the last bit."""
    v = x.velocity
    return mul(c, v**3) if getattr(v, "ndim", 0) else mul(c, v) * v * v


def _cosine(c: Number, x: ElementMotion, waves: float) -> Number:
    return mul(c, x.functions.cos(waves * (x.position / x.unit)))


def _sine(c: Number, x: ElementMotion, waves: float) -> Number:
    return mul(c, x.functions.sin(waves * (x.position / x.unit)))


def _stiffness(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(c, x.position)


def _jerk(c: Number, x: ElementMotion, scale: float) -> Number:
    return mul(c, x.jerk)


Shape = Callable[[Number, ElementMotion, float], Number]
Scale = Literal["none", "radius", "velocity", "waves"]
Dissipation = Literal["none", "dry", "viscous", "load"]


@dataclass(frozen=True)
class FrictionLaw:
    """A law of friction: its formula and all that its names, columns and simulation need.

    Attributes:
        name: Name of the term, and start of the names of its parameters: small letters only, for a number follows.
        shapes: Torque from coefficient, motion and scale, by what follows the scale in a parameter's name: "c", "s".
        meaning: Of a parameter, in words; {0:g} is the scale, {1} cosine or sine.
        words: What its torque is, in a report; {} are the scales.
        formula: Its column, in the documentation: of velocity v, position q and load, with scale r, vs or k (radius,
            velocity, waves).
        helps: When it helps, in the documentation.
        dissipation: Together with what it must take energy: viscous friction (where it grows with the velocity, at
            1 mrad/s to less than 1 % of what it is at 1 rad/s), dry friction (where it does not, such as a level, or a
            root of the velocity), or alone ("load"); "none" for what is no friction.
        even: Whether its torque is the same in both directions of motion, so that it drives in one of them.
        residual_words: What friction does that it explains where viscous and Coulomb friction miss some at constant
            velocities; empty where it is not tried. With a velocity as its scale, only a positive coefficient counts.
        units: Of the parameter on a joint that turns, and on one that slides.
        scale: What its numbers are, [rad] and [rad/s] at the joint whatever it does; "none" where it takes none.
        scale_meaning: The same in words.
        examples: Numbers as an example, for messages and tests; documentation names the columns of the first.
        named_per_scale: Number in the names of parameters per scale: 1e3 for mrad.
        needs_load: Whether it depends on the torque of the links, and so is linear around an estimate of them.
        needs_jerk: Whether it looks at the third derivative.
        dry: Whether it is a level times `ElementMotion.sign`, up to which the plant holds at rest.
    """

    name: str
    shapes: dict[str, Shape]
    meaning: str
    _: KW_ONLY
    words: str
    formula: str
    helps: str
    dissipation: Dissipation
    even: bool = False
    residual_words: str = ""
    units: tuple[str, str] = ("N·m", "N")
    scale: Scale = "none"
    scale_meaning: str = ""
    examples: tuple[float, ...] = ()
    named_per_scale: float = 1.0
    needs_load: bool = False
    needs_jerk: bool = False
    dry: bool = False

    def torque(self, part: str, c: Number, motion: ElementMotion, scale: float) -> Number:
        """The torque of one of its shapes; of a dry law its level, where the caller makes it stick."""
        motion.asks_level = self.dry and motion.sticks
        return self.shapes[part](c, motion, scale)

    @property
    def is_friction(self) -> bool:
        """Whether it takes energy, unlike torque that comes back with the position or the acceleration."""
        return self.dissipation != "none"

    @property
    def holds_at_rest(self) -> bool:
        """Whether the torque of a joint at rest may be anything up to that of motion."""
        return self.dry or self.dissipation == "dry"

    @property
    def shows_at_constant_velocity(self) -> bool:
        """Whether runs at constant velocities, to and fro, can distinguish it from an offset and from the load."""
        return self.is_friction and not (self.remembers or self.needs_load or self.even)

    @property
    def remembers(self) -> bool:
        """Whether its torque depends on the motion before: stop operators."""
        return self.scale == "radius"

    @property
    def wavy(self) -> bool:
        """Whether its torque repeats with the turn of the joint."""
        return self.scale == "waves"

    @property
    def example(self) -> str:
        """Numbers as an example, as they are written."""
        return ",".join(f"{scale:g}" for scale in self.examples)


_WAVES: dict[str, Shape] = {"c": _cosine, "s": _sine}
_ALL_LAWS = (
    FrictionLaw(
        "stop",
        {"": _stop},
        "friction that winds up over {0:g} mrad",
        words="hysteresis over {} mrad",
        formula="s / r, where s follows q like a spring that slips when wound up by r",
        helps="hysteresis friction: reversals, creeping, rest; 0.1 to 3 mrad on the arms that were tested",
        dissipation="dry",
        scale="radius",
        scale_meaning="a radius [rad]",
        examples=(0.0003, 0.003),
        named_per_scale=1e3,
    ),
    FrictionLaw(
        "stribeck",
        {"": _stribeck},
        "friction that falls below {0:g} rad/s",
        words="Stribeck, up to {} rad/s",
        formula="sign(v) exp(-(v / vs)²)",
        helps="friction that falls as motion sets in",
        dissipation="dry",
        residual_words="friction falls as motion sets in (Stribeck)",
        scale="velocity",
        scale_meaning="a Stribeck velocity [rad/s]",
        examples=(0.2, 0.5),
        dry=True,
    ),
    FrictionLaw(
        "sign",
        {"": _smooth_sign},
        "friction smoothed below {0:g} rad/s",
        words="Coulomb, smooth up to {} rad/s",
        formula="tanh(v / vs)",
        helps="friction that comes up more slowly than Coulomb's, or (0.005) faster",
        dissipation="dry",
        residual_words="friction comes up more slowly than Coulomb's",
        scale="velocity",
        scale_meaning="a velocity [rad/s]",
        examples=(0.2,),
    ),
    FrictionLaw(
        "load",
        {"": _load},
        "Coulomb friction per load",
        words="Coulomb, grows with the load",
        formula="abs(load) sign(v)",
        helps="torque from motors: friction of teeth and bearings in proportion to what they carry",
        dissipation="load",
        units=("1", "1"),
        needs_load=True,
        dry=True,
    ),
    FrictionLaw(
        "loadv",
        {"": _load_viscous},
        "viscous friction per load",
        words="viscous, grows with the load",
        formula="abs(load) v",
        helps="the same for viscous friction",
        dissipation="load",
        units=("s/rad", "s/m"),
        needs_load=True,
    ),
    FrictionLaw(  # Duclusaud et al. 2025: Stribeck friction in proportion to the load
        "loadstribeck",
        {"": _load_stribeck},
        "friction per load that falls below {0:g} rad/s",
        words="Stribeck, grows with the load, up to {} rad/s",
        formula="abs(load) sign(v) exp(-(v / vs)²)",
        helps="geared motors whose breakaway friction grows with what they carry",
        dissipation="load",
        units=("1", "1"),
        scale="velocity",
        scale_meaning="a Stribeck velocity [rad/s]",
        examples=(0.2,),
        needs_load=True,
        dry=True,
    ),
    FrictionLaw(  # Duclusaud et al. 2025: load friction with coefficients of its own for driving and being driven
        "driving",
        {"": _driving},
        "half the difference of Coulomb friction per load between driving and being driven",
        words="differs between driving and being driven",
        formula="load abs(sign(v))",
        helps="gears that are back-driven more easily, or less, than they drive; with `load`",
        dissipation="load",
        even=True,
        units=("1", "1"),
        needs_load=True,
    ),
    FrictionLaw(
        "asymmetric",
        {"": _asymmetric},
        "half the difference of Coulomb friction between directions",
        words="differs between directions",
        formula="abs(sign(v))",
        helps="directions that differ; in motion the same as an offset",
        dissipation="dry",
        even=True,
    ),
    FrictionLaw(
        "quadratic",
        {"": _quadratic},
        "friction with the square of the velocity",
        words="square of the velocity",
        formula="v abs(v)",
        helps="fast joints, grease",
        dissipation="viscous",
        residual_words="friction bends with the square of the velocity",
        units=("N·m·s²/rad²", "N·s²/m²"),
    ),
    FrictionLaw(
        "cubic",
        {"": _cubic},
        "friction with the cube of the velocity",
        words="cube of the velocity",
        formula="v³",
        helps="fast joints, grease",
        dissipation="viscous",
        residual_words="friction bends with the cube of the velocity",
        units=("N·m·s³/rad³", "N·s³/m³"),
    ),
    FrictionLaw(  # sensor offsets, eccentric gears
        "harmonics",
        _WAVES,
        "torque with {0:g} waves per turn ({1})",
        words="{} waves per turn of the joint",
        formula="cos kq, sin kq",
        helps="eccentric gears, errors of a torque sensor, cable bundles",
        dissipation="none",
        scale="waves",
        scale_meaning="a number of waves per turn",
        examples=(1, 2),
    ),
    FrictionLaw(  # of a gear's teeth or flexspline, as given or as found in residuals
        "ripple",
        _WAVES,
        "torque with {0:g} waves per turn ({1})",
        words="gear ripple, {} waves per turn",
        formula="cos kq, sin kq, for teeth: k need not be whole",
        helps="peaks in the spectrum of residuals over position",
        dissipation="none",
        scale="waves",
        scale_meaning="a number of waves per turn",
        examples=(30.65,),
    ),
    FrictionLaw(
        "stiffness",
        {"": _stiffness},
        "torque per position (spring)",
        words="spring, linear in the position",
        formula="q; where the spring is relaxed is in the offset",
        helps="springs and cables that the robot's file does not declare",
        dissipation="none",
        units=("N·m/rad", "N/m"),
    ),
    FrictionLaw(
        "jerk",
        {"": _jerk},
        "torque per jerk (springy drive)",
        words="elastic drive",
        formula="third derivative of q",
        helps="elastic drives",
        dissipation="none",
        units=("kg·m²·s", "kg·s"),
        needs_jerk=True,
    ),
)
FRICTION_LAWS: dict[str, FrictionLaw] = {law.name: law for law in _ALL_LAWS}
