from __future__ import annotations

import math
import random
import re
import string
from copy import deepcopy
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings, strategies as st

import dynident as di
from dynident.limits import LIMITS
from dynident.robot.dh import read_table
from dynident.schema import parse_yaml

# A parallelogram (joints 2, 3 and 6 to 9) that carries a coupled wrist: every key a table may have is in use.
TABLE = """name: arm
convention: modified-dh
lengths: {d2: 0.1, d3: 0.6, d8: 0.2}
gravity: [0, 0, -9.81]
joints:
  - {name: j1, antecedent: 0}
  - {name: j2, antecedent: 1, alpha: -pi/2, d: d2}
  - {name: j3, antecedent: 2, d: d3, mu: 0}
  - {name: j4, antecedent: 3, alpha: -pi/2, r: 0.4}
  - {name: j5, antecedent: 4, alpha: pi/2}
  - {name: j6, antecedent: 1, alpha: -pi/2, d: d2}
  - {name: j7, antecedent: 6, d: d8, mu: 0}
  - {name: j8, antecedent: 7, d: d3}
  - {name: j9, antecedent: 3, sigma: 2, gamma: pi/2, d: -d8}
loops: [{cut: 8, closes_on: 9}]
passive: {q3: pi/2 - q2 + q6, q7: q2 - q6}
coupling: {qm5: q4 + q5}
gear_ratios: {j1: 100}
joint_offsets: {j1: 0.1}
drive_gains: [10, 10, {value: 5, tolerance: 0.1}, 4, 8]
torque_source: motor
elements: [{label: m5, velocity: qm5, torque: qm5, carries: [Ia, Fv]}]
limits: {j1: {lower: -1, upper: 1, velocity: 2, effort: 3}}
fixed: {XY2: 0}
tool: {joint: j5, position: [0, 0, 0.1]}
parameters:
  plant:
    links: {1: {mass: 2, com: [0, 0, 0.1], inertia: [0.1, 0, 0, 0.1, 0, 0.1]}}
    Fv: {1: 0.5, m5: 0.2}
    Fo4: 0.2
default_parameters: plant
base_parameters: {paper: {ZZR1: 3}}
"""


def refusal(tmp_path, text, name="arm.yaml"):
    """The one-line message with which a file is refused."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(di.RobotFileError) as caught:
        di.load_robot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 1000 + len(str(path))
    return message.removeprefix(f"{path}: ")


def changed(old, new, text=TABLE):
    assert text.count(old) >= 1, f"'{old}' is not in the text"
    return text.replace(old, new, 1)


def test_the_text_that_is_changed_below_is_fine(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(TABLE)
    robot = di.load_robot(path)
    assert robot.joint_names == ("j1", "j2", "j4", "j5", "j6")
    assert robot.closes == ("8-9",)
    assert robot.warnings == ()


REFUSED = {
    # keys
    "unknown key": ("gravity:", "gravty:", ["unknown key 'gravty'", "did you mean 'gravity'?"]),
    "unknown key of a joint": ("alpha: -pi/2", "alfa: -pi/2", ["joint 2", "unknown key 'alfa'", "mean 'alpha'?"]),
    "unknown key of a limit": ("upper: 1", "uper: 1", ["limits of 'j1'", "unknown key 'uper'", "mean 'upper'?"]),
    "unknown key of a link": ("mass: 2", "mas: 2", ["parameters 'plant' link 1", "'mas'", "mean 'mass'?"]),
    "unknown key of a gain": ("tolerance:", "tol:", ["drive gain of 'j4'", "unknown key 'tol'", "value, tolerance"]),
    "unknown key of an element": ("torque: qm5", "tau: qm5", ["elements[1]", "unknown key 'tau'", "label, velocity"]),
    "unknown key of a loop": ("closes_on:", "closes:", ["loops[1]", "unknown key 'closes'", "mean 'closes_on'?"]),
    "unknown key of a tool": ("position:", "pose:", ["tool", "unknown key 'pose'", "joint, position"]),
    # table
    "no convention": ("convention: modified-dh\n", "", ["convention", "is empty", "dh or modified-dh"]),
    "unknown convention": ("modified-dh", "craig", ["convention", "is 'craig'", "dh or modified-dh"]),
    "convention of a wrong type": ("modified-dh", "[dh]", ["convention", "is ['dh']", "dh or modified-dh"]),
    "row is a number": ("{name: j1, antecedent: 0}", "7", ["joint 1", "is 7", "expected a mapping"]),
    "row is empty": ("{name: j1, antecedent: 0}", "", ["joint 1", "is empty", "expected a mapping"]),
    "missing antecedent": (
        "antecedent: 6",
        "antecedent: 60",
        ["joint 7", "antecedent 60 does not exist", "0 (base) to 9"],
    ),
    "own antecedent": ("antecedent: 6", "antecedent: 7", ["joint 7", "antecedent 7 does not exist", "another frame"]),
    "negative antecedent": ("antecedent: 6", "antecedent: -1", ["joint 7", "antecedent -1 does not exist"]),
    "antecedent by name": ("antecedent: 6", "antecedent: j6", ["joint 7 antecedent", "is 'j6'", "a whole number"]),
    "cycle": (
        "antecedent: 1, alpha: -pi/2, d: d2}\n  - {name: j3",
        "antecedent: 3, d: d2}\n  - {name: j3",
        ["joints", "frames 2, 3, 4, 5, 9", "cycle", "start from 0"],
    ),
    "sigma": ("sigma: 2", "sigma: 5", ["joint 9 sigma", "is 5", "0 revolute, 1 prismatic or 2 fixed"]),
    "mu": ("mu: 0", "mu: 2", ["joint 3 mu", "is 2", "1 (motor) or 0 (passive)"]),
    "mu of a fixed frame": (
        "sigma: 2,",
        "sigma: 2, mu: 1,",
        ["joint 9 mu", "fixed or cut frame has no motor", "remove"],
    ),
    "mu of a cut joint": ("name: j8,", "name: j8, mu: 1,", ["joint 8 mu", "fixed or cut frame has no motor", "remove"]),
    "mu of a passive joint": (
        "d: d3, mu: 0",
        "d: d3, mu: 1",
        ["joint 3", "'j3' has mu = 1 and a relation", "remove one"],
    ),
    "name twice": ("name: j4", "name: j3", ["joint 4", "the name 'j3' is used twice", "change one"]),
    "empty name": ("name: j4", "name: ''", ["joint 4 name", "is ''", "expected a name of 1 to 100 printable"]),
    "name of two lines": ("name: j4", r'name: "j\n4"', ["joint 4 name", r"is 'j\n4'", "expected a name"]),
    "name is a list": ("name: j4", "name: [j4]", ["joint 4 name", "is ['j4']", "expected a name"]),
    "name is a truth": ("name: j4", "name: yes", ["joint 4 name", "is True", "expected a name"]),
    "robot name is empty": ("name: arm", "name:", ["name", "is empty", "expected a name"]),
    # expressions
    "cell is a word": (
        "r: 0.4",
        "r: long",
        ["joint 4 r", "'long' is not a known name", "d2, d3, d8, pi", "expected a number"],
    ),
    "cell is code": ("r: 0.4", "r: d3.__class__", ["joint 4 r", "may only contain", "expected a number"]),
    "cell is a list": ("r: 0.4", "r: [0.4]", ["joint 4 r", "[0.4]", "expected a number"]),
    "cell is empty": ("r: 0.4", "r:", ["joint 4 r", "empty is not a number", "such as pi/2"]),
    "cell is nan": ("r: 0.4", "r: .nan", ["joint 4 r", "is nan", "expected a finite number"]),
    "cell is huge": ("r: 0.4", "r: 4e7", ["joint 4 r", "beyond 1e+06", "check the unit"]),
    "cell divides by zero": ("r: 0.4", "r: d3/(d2-d2)", ["joint 4 r", "cannot be computed", "division by zero"]),
    "cell of two lines": ("r: 0.4", r'r: "d3\n+"', ["joint 4 r", r"'d3\n+'", "expected a number"]),
    "other variable": (
        "alpha: pi/2}",
        "alpha: pi/2, theta: q4}",
        ["joint 5 theta", "'q4' is not a known name", "q5 plus a number"],
    ),
    "scaled variable": ("alpha: pi/2}", "alpha: pi/2, theta: 2*q5}", ["joint 5 theta", "'2*q5'", "q5 with factor 1"]),
    "bent variable": ("alpha: pi/2}", "alpha: pi/2, theta: q5^2}", ["joint 5 theta", "'q5^2'", "q5 with factor 1"]),
    # lengths
    "length is a word": ("d8: 0.2", "d8: short", ["length d8", "'short' is not a known name", "expected a number"]),
    "length is a list": ("d8: 0.2", "d8: [1]", ["length d8", "[1]", "expected a number"]),
    "length is nan": ("d8: 0.2", "d8: .nan", ["length d8", "is nan", "finite"]),
    "length is a truth": ("d8: 0.2", "d8: true", ["length d8", "True is not a number", "expected a number"]),
    "length before its turn": ("d2: 0.1", "d2: d3", ["length d2", "'d3' is not a known name", "expected a number"]),
    "length named pi": ("d8: 0.2", "d8: 0.2, pi: 3", ["lengths", "'pi' is not a usable name", "such as d3"]),
    "length named q1": ("d8: 0.2", "d8: 0.2, q1: 3", ["lengths", "'q1' is not a usable name", "such as d3"]),
    "length named sin": ("d8: 0.2", "d8: 0.2, sin: 3", ["lengths", "'sin' is not a usable name", "such as d3"]),
    "length named lambda": ("d8: 0.2", "d8: 0.2, lambda: 3", ["lengths", "'lambda' is not a usable name"]),
    "length named 2a": ("d8: 0.2", "d8: 0.2, 2a: 3", ["lengths", "'2a' is not a usable name"]),
    "lengths are a list": ("{d2: 0.1, d3: 0.6, d8: 0.2}", "[1]", ["lengths", "is [1]", "expected a mapping"]),
    # loops and passive joints
    "loop does not close": ("d: -d8", "d: d8", ["loop 8-9", "does not close: gap", "check the passive relations"]),
    "loop with a wrong relation": (
        "q7: q2 - q6",
        "q7: q6 - q2",
        ["loop 8-9", "does not close: gap", "check the passive"],
    ),
    "loop of one frame": ("closes_on: 9", "closes_on: 8", ["loops[1]", "cut 8, closes_on 8", "two frames of its own"]),
    "loop twice": ("closes_on: 9}", "closes_on: 9}, {cut: 8, closes_on: 9}", ["loops[2]", "two frames of its own"]),
    "loop on a moving frame": ("closes_on: 9", "closes_on: 5", ["loop 8-5", "frame 5 fixed (sigma: 2)"]),
    "loop cut at a fixed frame": (
        "cut: 8, closes_on: 9",
        "cut: 9, closes_on: 8",
        ["loop 9-8", "must be the cut joint's"],
    ),
    "loop outside the table": ("closes_on: 9", "closes_on: 99", ["loops", "frame 99 is not in the table", "1 to 9"]),
    "loop by name": ("closes_on: 9", "closes_on: j9", ["loops[1]", "is 'j9'", "a whole number"]),
    "loop without end": ("{cut: 8, closes_on: 9}", "{cut: 8}", ["loops[1]", "needs the keys 'cut' and 'closes_on'"]),
    "loops are a number": ("loops: [{cut: 8, closes_on: 9}]", "loops: 8", ["loops", "is 8", "{cut: frame, closes_on"]),
    "something on the cut frame": (
        "antecedent: 3, sigma: 2",
        "antecedent: 8, sigma: 2",
        ["joint 9", "frame 8 is cut and carries nothing", "change its antecedent"],
    ),
    "passive without relation": ("q7: q2 - q6", "", ["joint 7", "'j7' is passive (mu = 0)", "give its position under"]),
    "passive nobody": ("q7: q2", "q77: q2", ["passive", "there is no joint 'q77'", "j1, j2"]),
    "passive twice": ("q7: q2 - q6", "q7: q2 - q6, j7: q2", ["passive", "'j7' is joint 'j7' again", "give it once"]),
    "passive product": ("q7: q2 - q6", "q7: q2*q6", ["passive joint 'j7'", "'q2*q6' is not linear", "affine function"]),
    "passive sine": (
        "q7: q2 - q6",
        "q7: sin(q2)",
        ["passive joint 'j7'", "'sin(q2)' is not linear", "affine function"],
    ),
    "passive unknown": ("q7: q2 - q6", "q7: q2 - q12", ["passive joint 'j7'", "'q12' is not a known name", "affine"]),
    "passive nan": ("q7: q2 - q6", "q7: .nan", ["passive joint 'j7'", "not finite", "affine function"]),
    "passive huge": ("q7: q2 - q6", "q7: 1e9*q2", ["passive joint 'j7'", "beyond 1e+06", "affine function"]),
    "passive imaginary": ("q7: q2 - q6", "q7: (-1)^0.5*q2", ["passive joint 'j7'", "negative number to the power 0.5"]),
    "passive circle": (
        "q3: pi/2 - q2 + q6, q7: q2 - q6",
        "q3: q7, q7: q3",
        ["passive joints", "j3, j7 follow one another in a circle", "use active joints"],
    ),
    "passive on itself": ("q7: q2 - q6", "q7: q7", ["passive joints", "j7 follow one another in a circle", "active"]),
    "passive is a list": (
        "passive: {q3: pi/2 - q2 + q6, q7: q2 - q6}",
        "passive: [q3]",
        ["passive", "['q3']", "mapping"],
    ),
    # motors
    "coupling of nobody": ("{qm5: q4 + q5}", "{qm3: q4}", ["coupling", "unknown key 'qm3'", "qm1, qm2, qm4, qm5, qm6"]),
    "coupling to a passive joint": (
        "q4 + q5",
        "q3 + q5",
        ["coupling qm5", "'q3' is not a known name", "such as q5 + q6"],
    ),
    "coupling constant": ("q4 + q5", "q5 + 1", ["coupling qm5", "'q5 + 1' must not have a constant", "joint_offsets"]),
    "coupling without inverse": ("q4 + q5", "q4", ["coupling", "the matrix has no inverse", "check its rows"]),
    "coupling of zeros": ("q4 + q5", "0*q5", ["coupling", "the matrix has no inverse", "check its rows"]),
    "coupling nan": ("q4 + q5", "1e999*q5", ["coupling qm5", "not finite", "such as q5 + q6"]),
    "coupling too small": ("{qm5: q4 + q5}", "[[1, 0], [0, 1]]", ["coupling", "must have 5 rows", "it has 2"]),
    "coupling ragged": (
        "{qm5: q4 + q5}",
        "[[1], [1], [1], [1], [1]]",
        ["coupling row 1", "[1]", "a list of 5 numbers"],
    ),
    "coupling is a number": ("{qm5: q4 + q5}", "5", ["coupling", "is 5", "expected a matrix, or sums such as"]),
    "coupling is empty": ("{qm5: q4 + q5}", "", ["coupling", "is empty", "expected a matrix"]),
    "gear zero": ("{j1: 100}", "{j1: 0}", ["gear ratio of 'j1'", "is 0", "expected another number"]),
    "gear of nobody": ("{j1: 100}", "{j11: 100}", ["gear_ratios", "there is no joint 'j11'", "j1, j2"]),
    "gear of a passive joint": ("{j1: 100}", "{j3: 100}", ["gear_ratios", "'j3' is passive", "remove the entry"]),
    "gear twice": ("{j1: 100}", "{j1: 100, q1: 50}", ["gear_ratios", "'q1' is joint 'j1' again", "give it once"]),
    "too few gears": ("{j1: 100}", "[1, 2]", ["gear_ratios", "[1, 2]", "a list of 5 numbers"]),
    "gear is a word": ("{j1: 100}", "{j1: big}", ["gear_ratios j1", "'big'", "expected a number"]),
    "offset of a passive joint": ("{j1: 0.1}", "{q3: 0.1}", ["joint_offsets", "'q3' is passive", "remove the entry"]),
    "offset nan": ("{j1: 0.1}", "{j1: .nan}", ["joint_offsets j1", "is nan", "finite"]),
    "too few gains": ("[10, 10, {value", "[10, {value", ["drive_gains", "must have 5 entries", "it has 4"]),
    "gain zero": ("4, 8]", "0, 8]", ["drive gain of 'j5'", "is 0", "expected another number"]),
    "gain without value": ("value: 5, ", "", ["drive gain of 'j4'", "needs the key 'value'"]),
    "negative tolerance": ("tolerance: 0.1", "tolerance: -1", ["drive gain of 'j4'", "is -1", "0 or more"]),
    "gains of some": (
        "[10, 10, {value: 5, tolerance: 0.1}, 4, 8]",
        "{j1: 10}",
        ["drive_gains", "no gain for j2, j4", "every motor"],
    ),
    "gains are empty": ("[10, 10, {value: 5, tolerance: 0.1}, 4, 8]", "", ["drive_gains", "is empty", "a mapping"]),
    "torque source": (
        "torque_source: motor",
        "torque_source: [motor]",
        ["torque_source", "['motor']", "motor or sensor"],
    ),
    # elements
    "element of nobody": ("velocity: qm5", "velocity: q9", ["element 'm5'", "'q9' is not a known name", "q1, qm1"]),
    "element with a constant": ("velocity: qm5", "velocity: qm5 + 1", ["element 'm5'", "must not have a constant"]),
    "element that stands still": (
        "velocity: qm5",
        "velocity: qm5 - qm5",
        ["element 'm5'", "velocity is always zero", "(q3)"],
    ),
    "element without effect": ("torque: qm5", "torque: 0", ["element 'm5'", "torque is always zero", "(q3)"]),
    "element with empty torque": ("torque: qm5", "torque:", ["elements[1]", "torque is empty", "remove the key"]),
    "element without label": ("label: m5, ", "", ["elements[1]", "needs the key 'label'"]),
    "label is arithmetic": ("label: m5", "label: m5 + 1", ["elements[1]", "'m5 + 1'", "letters and digits"]),
    "label is empty": ("label: m5", "label: ''", ["elements[1] label", "is ''", "expected a name"]),
    "label twice": (
        "[Ia, Fv]}]",
        "[Ia, Fv]}, {label: m5, velocity: q1}]",
        ["elements[2]", "'m5' is used twice", "change"],
    ),
    "shared parameter": (
        "[Ia, Fv]}]",
        "[Ia, Fv]}, {label: '5', velocity: q5, carries: [Ia]}]",
        ["elements", "Ia5", "change a label"],
    ),
    "carries nonsense": ("[Ia, Fv]", "[Ia, Fx]", ["elements[1]", "cannot carry 'Fx'", "Ia, Fv, Fc, Fo"]),
    "carries a list": ("[Ia, Fv]", "[[Ia]]", ["elements[1]", "cannot carry ['Ia']", "Ia, Fv, Fc, Fo"]),
    "carries twice": ("[Ia, Fv]", "[Ia, Ia]", ["elements[1]", "carries 'Ia' twice", "name it once"]),
    "carries a word": ("[Ia, Fv]", "Ia", ["elements[1] carries", "is 'Ia'", "expected a list"]),
    "elements are a mapping": (
        "elements: [{label: m5, velocity: qm5, torque: qm5, carries: [Ia, Fv]}]",
        "elements: {a: 1}",
        ["elements", "is {'a': 1}", "expected a list"],
    ),
    "element is a number": ("elements: [{", "elements: [7, {", ["elements[1]", "is 7", "expected a mapping"]),
    # everything else
    "gravity of two": ("[0, 0, -9.81]", "[0, -9.81]", ["gravity", "[0, -9.81]", "a list of 3 numbers"]),
    "gravity is a number": ("[0, 0, -9.81]", "-9.81", ["gravity", "is -9.81", "a list of 3 numbers"]),
    "gravity nan": ("[0, 0, -9.81]", "[0, 0, .nan]", ["gravity[3]", "is nan", "finite number"]),
    "gravity beyond floats": ("-9.81]", "1.0e+400]", ["gravity[3]", "is inf", "finite number"]),
    "endless number": ("-9.81]", f"{'9' * 5000}]", ["line 4", "999...999", "not in plain decimal notation"]),
    "endless hexadecimal": ("-9.81]", f"0x{'F' * 5000}]", ["line 4", "FFF...FFF", "not in plain decimal notation"]),
    "limit nan": ("lower: -1", "lower: .nan", ["limits of 'j1' lower", "is nan", "finite number"]),
    "limit empty": ("lower: -1", "lower:", ["limits of 'j1' lower", "empty is not a number"]),
    "limits crossed": ("lower: -1", "lower: 3", ["limits of 'j1'", "lower 3 is above upper 1", "swap them"]),
    "limit velocity": ("velocity: 2,", "velocity: -2,", ["limits of 'j1'", "velocity is -2", "zero or more"]),
    "limits of nobody": ("limits: {j1:", "limits: {j10:", ["limits", "there is no joint 'j10'", "j1, j2"]),
    "limits are a list": (
        "{lower: -1, upper: 1, velocity: 2, effort: 3}",
        "[1]",
        ["limits of 'j1'", "[1]", "a mapping"],
    ),
    "fixed unknown": ("{XY2: 0}", "{XY22: 0}", ["fixed", "unknown parameter 'XY22'", "links 1, 2, 3"]),
    "fixed word": ("{XY2: 0}", "{XY2: zero}", ["fixed XY2", "'zero' is not a known name", "expected a number"]),
    "fixed negative mass": ("{XY2: 0}", "{M2: -1}", ["fixed M2", "is -1", "expected 0 or more"]),
    "tool of nobody": ("tool: {joint: j5", "tool: {joint: j50", ["tool", "there is no joint 'j50'", "j1, j2"]),
    "tool without joint": ("tool: {joint: j5, ", "tool: {", ["tool", "needs the key 'joint'"]),
    "tool position": ("[0, 0, 0.1]}\n", "[0, 0]}\n", ["tool position", "[0, 0]", "a list of 3 numbers"]),
    "negative mass": ("mass: 2", "mass: -2", ["parameters 'plant' link 1 mass", "is -2", "expected 0 or more"]),
    "mass nan": ("mass: 2", "mass: .nan", ["parameters 'plant' link 1 mass", "is nan", "finite number"]),
    "negative M": ("Fo4: 0.2", "M5: -0.2", ["parameters 'plant' M5", "is -0.2", "expected 0 or more"]),
    "link without mass": ("mass: 2, ", "", ["parameters 'plant' link 1", "needs the key 'mass'"]),
    "center of two": ("com: [0, 0, 0.1]", "com: [0, 0]", ["link 1 com", "[0, 0]", "a list of 3 numbers"]),
    "inertia of three": (
        "[0.1, 0, 0, 0.1, 0, 0.1]",
        "[1, 1, 1]",
        ["link 1 inertia", "[1, 1, 1]", "a list of 6 numbers"],
    ),
    "values of nobody": ("links: {1:", "links: {11:", ["parameters 'plant' links", "there is no joint '11'", "j1"]),
    "values of a link twice": (
        "links: {1:",
        "links: {j1: {mass: 1}, 1:",
        ["parameters 'plant' links", "'1' is joint 'j1' again"],
    ),
    "unknown parameter": ("Fo4: 0.2", "ZZ55: 0.2", ["parameters 'plant'", "unknown parameter 'ZZ55'", "links 1, 2, 3"]),
    "unknown friction": (
        "Fv: {1:",
        "Fv: {11:",
        ["parameters 'plant'", "unknown parameter 'Fv11'", "elements have Ia1"],
    ),
    "parameter twice": ("Fo4: 0.2", "Fv1: 0.2", ["parameters 'plant'", "Fv1 is given twice", "remove one"]),
    "values are a list": ("Fv: {1: 0.5, m5: 0.2}", "Fv: [0.5]", ["parameters 'plant' Fv", "[0.5]", "a mapping"]),
    "unknown default": (
        "default_parameters: plant",
        "default_parameters: plnt",
        ["default_parameters", "'plnt'", "mean 'plant'?"],
    ),
    "default is a list": (
        "default_parameters: plant",
        "default_parameters: [plant]",
        ["default_parameters", "['plant']", "a name"],
    ),
    "base value": ("{ZZR1: 3}", "{ZZR1: three}", ["base_parameters 'paper' ZZR1", "'three'", "expected a number"]),
    "base values are a list": ("{ZZR1: 3}", "[3]", ["base_parameters 'paper'", "is [3]", "expected a mapping"]),
    # the language
    "key twice": ("name: arm\n", "name: arm\nname: arm\n", ["line 2", "key 'name' appears twice", "remove one"]),
    "key as number and text": ("links: {1:", "links: {'1': {mass: 1}, 1:", ["line 28", "key '1' appears twice"]),
    "key is nothing": ("name: arm\n", "name: arm\n~: 1\n", ["line 2", "the key empty is not a name", "quotes"]),
    "key is a truth": ("name: arm\n", "name: arm\nno: 1\n", ["line 2", "the key False is not a name", "quotes"]),
    "key is a list": ("name: arm\n", "name: arm\n? [a]\n: 1\n", ["line 2", "the key ['a'] is not a name"]),
    "key of two lines": ("name: arm\n", 'name: arm\n"a\\nb": 1\n', ["line 2", r"the key 'a\nb' is not a name"]),
    "endless key": ("name: arm\n", f"name: arm\n? {'x' * 5000}\n: 1\n", ["line 2", "is not a name"]),
    "merge": ("name: arm\n", "name: arm\n<<: {gravity: [0, 0, 0]}\n", ["line 2", "merge keys (<<) are not allowed"]),
    "alias": (
        "name: arm",
        "name: &a arm\ntool: *a",
        ["line 2", "aliases (*name) are not allowed", "write the value out"],
    ),
    "python object": ("name: arm", "name: !!python/name:os.system arm", ["line 1", "tags", "not allowed", "remove it"]),
    "tag that PyYAML trips over": ("name: arm", "name: !!timestamp x", ["line 1", "tags", "not allowed", "remove it"]),
    "own tag": ("name: arm", "name: !arm x", ["line 1", "tags such as '!arm'", "not allowed", "remove it"]),
    "minutes": ("mass: 2", "mass: 1:30", ["line 28", "'1:30' is not in plain decimal notation", "quotes"]),
    "octal": ("mass: 2", "mass: 010", ["line 28", "'010' is not in plain decimal notation"]),
    "hexadecimal": ("mass: 2", "mass: 0x10", ["line 28", "'0x10' is not in plain decimal notation"]),
    "python number": ("mass: 2", "mass: 1_0", ["line 28", "'1_0' is not in plain decimal notation"]),
    "python number in an expression": ("mass: 2", "mass: 1_0*2", ["link 1 mass", "plain decimal notation"]),
    "date": ("mass: 2", "mass: 2020-13-45", ["line 28", "'2020-13-45' is a date", "quotes"]),
    "tabs": ("gravity: [0", "gravity:\n\t[0", ["line 5", "not valid YAML"]),
    "open bracket": ("gravity: [0, 0, -9.81]", "gravity: [0, 0, -9.81", ["line 5", "not valid YAML", "expected"]),
    "two documents": ("loops:", "---\nloops:", ["not valid YAML", "single document"]),
    "control character": ("name: arm", "name: a\x07rm", ["not valid YAML", "special characters are not allowed"]),
}


@pytest.mark.parametrize(("old", "new", "fragments"), REFUSED.values(), ids=REFUSED)
def test_refused_with_element_and_remedy(tmp_path, old, new, fragments):
    message = refusal(tmp_path, changed(old, new))
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", "must be a mapping with keys such as 'name' and 'joints'"),
        ("- 1\n- 2\n", "must be a mapping with keys such as 'name' and 'joints'"),
        ("arm\n", "must be a mapping with keys such as 'name' and 'joints'"),
        (b"name: \xff\xfe", "is not UTF-8 text; give a URDF or YAML file"),
        ("convention: dh\n", "joints: is empty; expected a list with one row per joint"),
        ("convention: dh\njoints: []\n", "joints: is []; expected a list with one row per joint"),
        ("convention: dh\njoints: {a: 1}\n", "joints: is {'a': 1}; expected a list with one row per joint"),
        ("convention: dh\njoints: [{sigma: 2}]\n", "joints: none of them moves"),
        ("convention: dh\njoints: [{}]\npassive: {q1: 0}\n", "joints: all are passive; at least one must have a motor"),
        ("<robot/>", "must be a mapping"),
    ],
)
def test_files_that_are_no_table(tmp_path, text, fragment):
    assert fragment in refusal(tmp_path, text)


def test_a_name_that_means_two_joints_is_refused_where_it_is_used(tmp_path):
    """Joints called q0, q1, ... are common, and the first of them is at q1."""
    text = "convention: dh\njoints: [{name: q0, a: 1}, {name: q1, a: 1}]\n"
    (tmp_path / "fine.yaml").write_text(text + "limits: {q0: {velocity: 1}, q2: {velocity: 2}}\n")
    assert [joint.limits.velocity for joint in di.load_robot(tmp_path / "fine.yaml").joints] == [1, 2]
    message = refusal(tmp_path, text + "limits: {q1: {velocity: 1}}\n")
    assert "limits: 'q1' means both joint 1 ('q0') and joint 2 ('q1')" in message


class TestAbsurdSizes:
    def test_alias_bomb(self, tmp_path):
        letters = string.ascii_lowercase[:10]
        bomb = "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise(letters))
        assert "line 2: aliases (*name) are not allowed" in refusal(tmp_path, f"a: &a [1]\n{bomb}")

    @pytest.mark.parametrize("nested", ["[" * 20_000, "{a: " * 20_000, "- " * 20_000, "[" * 200 + "]" * 200])
    def test_deep_nesting(self, tmp_path, nested):
        assert "is nested more than 20 levels deep; flatten it" in refusal(tmp_path, f"joints:\n  {nested}")

    def test_long_file(self, tmp_path):
        message = refusal(tmp_path, TABLE + "#" * LIMITS.table_characters)
        assert f"more than the {LIMITS.table_characters} a table may have" in message

    @pytest.mark.parametrize(("n", "limit"), [(600, "more than 500")])
    def test_many_joints(self, tmp_path, n, limit):
        message = refusal(tmp_path, "convention: dh\njoints:\n" + "  - {a: 1}\n" * n)
        assert message.startswith("joints: ")
        assert limit in message

    def test_many_fixed_frames_take_no_time_to_speak_of(self):
        """Work grows with the rows, not with their square: 200 frames that carry 50 joints."""
        rows = [{"sigma": 2, "alpha": 0.1, "d": "L"}] * 200 + [{"antecedent": 200}] * 50
        evaluations = 0

        class Counted(dict):
            def __getitem__(self, key):
                nonlocal evaluations
                evaluations += 1
                return super().__getitem__(key)

        table = read_table({"convention": "modified-dh", "lengths": {"L": 0.1}, "joints": rows}, "test").geometry
        assert len(table.frames(Counted(L=0.1))) == 50
        assert evaluations <= 250

    def test_many_lengths(self, tmp_path):
        lengths = ", ".join(f"L{i}: 1" for i in range(101))
        message = refusal(tmp_path, f"convention: dh\nlengths: {{{lengths}}}\njoints: [{{}}]\n")
        assert "lengths: has 101 entries, more than 100" in message

    def test_many_elements(self, tmp_path):
        elements = ", ".join(f"{{label: e{i}, velocity: q1}}" for i in range(301))
        message = refusal(tmp_path, f"convention: dh\njoints: [{{}}]\nelements: [{elements}]\n")
        assert "elements: has 301 entries, more than 300" in message

    def test_long_values_are_cut_short_in_messages(self, tmp_path):
        assert len(refusal(tmp_path, changed("mass: 2", f"mass: {'x' * 50_000}"))) < 200
        assert len(refusal(tmp_path, changed("mass: 2", f"mass: [{'7, ' * 3000}]"))) < 200

    def test_chain_of_large_factors(self, tmp_path):
        message = refusal(tmp_path, "convention: dh\njoints: [{}, {}, {}]\npassive: {q2: 1e5*q1, q3: 1e5*q2}\n")
        assert "passive joint 'joint3': moves more than 1e+06 times as far" in message

    def test_tiny_coupling(self, tmp_path):
        message = refusal(tmp_path, "convention: dh\njoints: [{}, {}]\ncoupling: [[1e-320, 1e6], [0, 1]]\n")
        assert "coupling: the matrix has no inverse" in message


class TestOverlay:
    def test_without_its_base(self, tmp_path):
        message = refusal(tmp_path, "base: gone.urdf\n")
        assert message.startswith("base: there is neither a file 'gone.urdf' beside it nor a bundled robot")
        assert "did you mean 'puma560'?" in refusal(tmp_path, "base: puma650\n")

    @pytest.mark.parametrize("base", ["''", "[puma560]", "", "1.5"])
    def test_base_of_a_wrong_type(self, tmp_path, base):
        message = refusal(tmp_path, f"base: {base}\n")
        assert message.startswith("base: is ")
        assert "expected a name" in message

    def test_on_itself(self, tmp_path):
        assert refusal(tmp_path, "base: arm.yaml\n").startswith("base: overlays include each other in a circle; ")

    def test_in_a_circle(self, tmp_path):
        (tmp_path / "b.yaml").write_text("base: c.yaml\n")
        (tmp_path / "c.yaml").write_text("base: b.yaml\n")
        with pytest.raises(di.RobotFileError, match=r"b\.yaml: base: overlays include each other in a circle"):
            di.load_robot(tmp_path / "b.yaml")

    def test_in_a_tower(self, tmp_path):
        (tmp_path / "0.yaml").write_text("base: puma560\n")
        for i in range(1, 12):
            (tmp_path / f"{i}.yaml").write_text(f"base: {i - 1}.yaml\n")
        assert di.load_robot(tmp_path / "9.yaml").name == "puma560"
        with pytest.raises(di.RobotFileError, match="more than 10 overlays stand on one another; merge some"):
            di.load_robot(tmp_path / "11.yaml")

    def test_with_a_table_of_its_own(self, tmp_path):
        message = refusal(tmp_path, "base: puma560\njoints: []\n")
        assert message.startswith("unknown key 'joints'")

    def test_errors_name_the_file_they_are_in(self, tmp_path):
        assert refusal(tmp_path, "base: puma560\nfixed: {XX7: 0}\n").startswith("fixed: unknown parameter 'XX7'")
        (tmp_path / "broken.urdf").write_text("<robot>")
        (tmp_path / "over.yaml").write_text("base: broken.urdf\n")
        with pytest.raises(di.RobotFileError, match=r"broken\.urdf: is not well-formed XML"):
            di.load_robot(tmp_path / "over.yaml")


class TestReported:
    @pytest.mark.parametrize(
        ("old", "new", "warning"),
        [
            ("inertia: [0.1", "inertia: [-0.1", "link 1: inertia about the center of mass must not be negative"),
            ("inertia: [0.1", "inertia: [0.3", "link 1: triangle inequality"),
            ("alpha: pi/2}", "alpha: 90}", "joint 5: alpha is 90 rad, more than a turn; degrees are written deg(90)"),
        ],
    )
    def test_suspicious_values(self, tmp_path, old, new, warning):
        path = tmp_path / "arm.yaml"
        path.write_text(changed(old, new))
        assert any(text.startswith(warning) for text in di.load_robot(path).warnings)


ODD_TOKENS = [
    *(
        "nan",
        ".nan",
        "-1",
        "0",
        "1e400",
        "1e-320",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "*a",
        "&a",
        "null",
        "true",
        "\n",
        "  ",
    ),
    *(
        '"',
        "'",
        "!!int",
        "1_0",
        "0x10",
        "9" * 40,
        "?",
        "|",
        ">",
        "%",
        "#",
        "- ",
        "<<",
        "2020-01-01",
        "q1*q2",
        "\x00",
        "é",
    ),
]


@settings(max_examples=70, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_mutated_text_loads_or_is_refused(seed):
    rng = random.Random(seed)
    tokens = re.findall(r"\w+|\s+|[^\w\s]", TABLE)
    for _ in range(rng.choice([1, 1, 2, 4])):
        i = rng.randrange(len(tokens))
        step = rng.randrange(4)
        if step == 0:
            del tokens[i : i + rng.choice([1, 2, 10])]
        elif step == 1:
            tokens[i:i] = tokens[i : i + rng.choice([1, 2, 10])]
        else:
            tokens[i] = rng.choice(ODD_TOKENS) if step == 2 else rng.choice(tokens)
    loads_or_is_refused(lambda: read_table(parse_yaml("".join(tokens), "fuzz.yaml"), "fuzz.yaml").finish())


ODD_VALUES = [
    *(None, True, -1, 0, 1, 3, 99, 1e-320, 1e300, math.nan, math.inf, 10**30, 10**400),
    *("", "nan", "q1", "q1*q2", "q1 + q4", "pi/0", "x", "a\nb", "(-1)^0.5", "1e999", "j1", "1", "m1", "sin(q1)", "dh"),
    *([], [1], [1, 2, 3], [[1]], [None], {}, {"a": 1}, {1: 2}, {"mass": -1}, {"value": 1}, b"x", {1, 2}),
]


PARSED = yaml.safe_load(TABLE)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_mutated_values_load_or_are_refused(seed):
    rng = random.Random(seed)
    given = deepcopy(PARSED)
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = list(containers(given))
        if not places:
            break
        parent = rng.choice(places)
        key = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        step = rng.randrange(4)
        if step <= 1:
            parent[key] = deepcopy(rng.choice(ODD_VALUES))
        elif step == 2:
            del parent[key]
        elif isinstance(parent, list):
            parent.append(deepcopy(parent[key]))
        else:
            parent[rng.choice(["q1", "j2", "1", "mu", "sigma", "M1", "links", "value"])] = deepcopy(parent[key])
    loads_or_is_refused(lambda: read_table(given, "fuzz.yaml").finish())


def containers(value):
    """Every list and mapping that is not empty, from the top down."""
    if isinstance(value, dict | list) and value:
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def loads_or_is_refused(load):
    """Any exception but a DynidentError passes through and fails the test."""
    try:
        robot = load()
    except di.DynidentError as error:
        message = str(error)
    else:
        assert len(robot.joint_names) >= 1
        assert all(math.isfinite(value) for value in robot.value_set().values())
        return
    assert message.startswith("fuzz.yaml: ")
    assert "\n" not in message
