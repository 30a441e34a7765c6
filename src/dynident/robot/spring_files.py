"""Springs in robot files (entries of the key `springs`; what they leave out is estimated) and in stored robots."""

from __future__ import annotations

import math
import re

import numpy as np

from dynident.arrays import Array
from dynident.robot.draft import Draft
from dynident.robot.expressions import ExpressionError, linear_form
from dynident.robot.model import BASE
from dynident.robot.springs import FORCE, SPRING_KINDS, STIFFNESS, Line, Spring
from dynident.robot.stored_keys import Around, Keys, StoredKey, choice_key, plain, read_by, read_record, text_key
from dynident.schema import LocatedReader, quote

_KEYS = (
    "label",
    "joint",
    "along",
    "kind",
    "from",
    "to",
    "stiffness",
    "rest",
    "force",
    "length",
    "gas_column",
    "exponent",
)
_OF_KIND = {"linear": ("stiffness", "rest"), "gas": ("force", "length", "gas_column", "exponent")}


def read_spring(draft: Draft, value: object, where: str) -> tuple[Spring, dict[str, float]]:
    """A spring, and the values that are known of it.

    Args:
        draft: The robot so far, with all its joints.
        value: The entry.
        where: Its place, for messages.
    """
    reader = draft.reader
    given = reader.mapping(value, where, _KEYS)
    kind = reader.choice(given.get("kind", "linear"), f"{where} kind", SPRING_KINDS)
    for key in _OF_KIND["gas" if kind == "linear" else "linear"]:
        if key in given:
            raise reader.error(where, f"'{key}' has no meaning for a spring of kind {kind}; remove it")
    joints, default = _coordinate(draft, given, where)
    slides = {draft.joints[j].kind == "prismatic" for j in np.flatnonzero(joints)}
    if len(slides) > 1:
        raise reader.error(where, "adds up joints that turn and joints that slide; give springs of their own")
    prismatic = slides == {True}
    label = str(given.get("label", default))
    if not re.fullmatch(r"\w+", label):
        raise reader.error(where, f"the label '{label}' ends parameter names; expected letters and digits such as 2")
    line = _line(draft, given, joints, prismatic, where)
    if kind == "linear":
        rest = reader.number(given["rest"], f"{where} rest") if "rest" in given else None
        spring = Spring(label, joints, prismatic, line=line, rest=rest)
        known = {STIFFNESS: "stiffness"}
    else:
        if line is None:
            raise reader.error(
                where, "is a cylinder; give its two ends: from and to, points in the frames of two links"
            )
        for key in ("length", "gas_column"):
            if key not in given:
                raise reader.error(where, f"needs the key '{key}' [m]: {_MEANING[key]}")
        length, column = (_positive(reader, given[key], f"{where} {key}") for key in ("length", "gas_column"))
        exponent = _positive(reader, given.get("exponent", 1.0), f"{where} exponent")
        spring = Spring(label, joints, prismatic, kind, line, None, length, column, exponent)
        known = {FORCE: "force"}
        _check_cylinder(reader, spring, where)
    values = {
        symbol + label: reader.number(given[key], f"{where} {key}") for symbol, key in known.items() if key in given
    }
    return spring, values


_MEANING = {
    "length": "from end to end, where its force is Fg",
    "gas_column": "gas volume at that length over the area of the piston, of a gas spring over that of its rod",
}


def _coordinate(draft: Draft, given: dict[str, object], where: str) -> tuple[Array, str]:
    """Coefficients (n_joints,) of what a spring acts along, and its usual label."""
    reader = draft.reader
    if ("joint" in given) == ("along" in given):
        raise reader.error(where, "needs one of the keys 'joint', such as q2, and 'along', such as q2 - q3")
    row = np.zeros(len(draft.joints))
    if "joint" in given:
        index = draft.joint_index(reader.text(given["joint"], f"{where} joint"), where)
        row[index] = 1.0
        return row, str(draft.joints[index].number)
    variables = {joint.variable: str(i) for i, joint in enumerate(draft.joints)}
    try:
        terms, constant = linear_form(given["along"], variables, reader.names)
    except ExpressionError as error:
        raise reader.error(where, f"{error}; expected a sum of joints such as q2 - q3") from None
    if constant:
        raise reader.error(where, f"{quote(given['along'])} must not have a constant; use 'rest'")
    for key, coefficient in terms.items():
        row[int(key)] = coefficient
    if not row.any():
        raise reader.error(where, "acts along no joint; name one (q3)")
    return row, "_".join(str(draft.joints[j].number) for j in np.flatnonzero(row))


def _line(draft: Draft, given: dict[str, object], joints: Array, prismatic: bool, where: str) -> Line | None:
    """The line between two points on both sides of a joint, from their places in the frames of its links."""
    reader = draft.reader
    if "from" not in given and "to" not in given:
        return None
    if "joint" not in given or not ("from" in given and "to" in given):
        raise reader.error(where, "acts along a line: it needs the keys 'joint', 'from' and 'to'")
    joint = draft.joints[int(np.flatnonzero(joints)[0])]
    before, after = (np.array(reader.numbers(given[key], f"{where} {key}", 3)) for key in ("from", "to"))
    back = joint.before.inverse()
    line = Line.between(
        back.rotation @ before + back.translation,
        joint.after.rotation @ after + joint.after.translation,
        prismatic,
    )
    shortest = line.lengths(prismatic)[0]
    still = not prismatic and math.hypot(line.cosine, line.sine) <= 1e-12
    if still:
        raise reader.error(where, f"one of its ends is on the axis of joint {joint.name}, so that it never moves")
    if not shortest > 1e-6:
        carrier = "the base" if joint.parent == BASE else f"link {draft.joints[joint.parent].link}"
        raise reader.error(where, f"its ends meet at a position of joint {joint.name}; check 'from' (in {carrier})")
    return line


def _check_cylinder(reader: LocatedReader, spring: Spring, where: str) -> None:
    if spring.prismatic and spring.kind == "hydraulic":
        raise reader.error(where, "pulls on a slide, which has no longest way; use a joint that turns")
    if spring.least_volume() <= 0.0:
        assert spring.line is not None
        shortest, longest = spring.line.lengths(spring.prismatic)
        raise reader.error(
            where,
            f"its gas would be pressed to nothing: the joint moves it between {shortest:.4g} and {longest:.4g} m, with "
            f"{spring.reference:.4g} m as its reference and a column of {spring.gas_column:.4g} m; check these",
        )


def _positive(reader: LocatedReader, value: object, where: str) -> float:
    number = reader.number(value, where)
    if not number > 0.0:
        raise reader.error(where, f"is {number:g}; expected a positive number")
    return number


# --- springs of stored robots ---------------------------------------------------------------------------------------


def _optional_number(name: str) -> StoredKey:
    return StoredKey(lambda spring, _: plain(getattr(spring, name)), read_by(LocatedReader.number), lambda _: None)


def _read_line(reader: LocatedReader, value: object, where: str, _: Around) -> Line:
    square, cosine, sine = reader.numbers(value, where, 3)
    return Line(square, cosine, sine)


def _read_spring_joints(reader: LocatedReader, value: object, where: str, around: Around) -> Array:
    """{number of a joint: coefficient} as an array over all joints, (n_joints,)."""
    given = reader.named_numbers(value, where, [joint.variable for joint in around["joints"]])
    return np.array([given.get(joint.variable, 0.0) for joint in around["joints"]])


def _cylinder_key(name: str, usual: float) -> StoredKey:
    return StoredKey(
        lambda spring, _: None if getattr(spring, name) == usual else getattr(spring, name),
        read_by(LocatedReader.number),
        lambda _: usual,
    )


SPRING_KEYS: Keys = {
    "label": text_key("label"),
    "joints": StoredKey(
        lambda spring, robot: {
            joint.variable: float(c) for joint, c in zip(robot.joints, spring.joints, strict=True) if c
        },
        _read_spring_joints,
    ),
    "prismatic": choice_key("prismatic", (False, True), False),
    "kind": choice_key("kind", SPRING_KINDS, "linear"),
    "line": StoredKey(
        lambda spring, _: spring.line and [spring.line.square, spring.line.cosine, spring.line.sine],
        _read_line,
        lambda _: None,
    ),
    "rest": _optional_number("rest"),
    "reference": _cylinder_key("reference", 0.0),
    "gas_column": _cylinder_key("gas_column", 1.0),
    "exponent": _cylinder_key("exponent", 1.0),
}


def read_stored_springs(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[Spring, ...]:
    """The springs of a stored robot."""
    items = reader.items(value, where)
    return tuple(
        Spring(**read_record(reader, SPRING_KEYS, item, f"{where}[{i + 1}]", around)) for i, item in enumerate(items)
    )
