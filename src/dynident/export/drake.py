"""`export_drake`: the URDF of an identified robot with rotor inertia and gear ratio, as Drake's parser reads them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import tree_motion
from dynident.dynamics.terms import TermsLike
from dynident.dynamics.terms.term import MotionSamples
from dynident.export.source_files import check_export_target, edited_file
from dynident.export.urdf import urdf_text
from dynident.export.values import Holding, text
from dynident.export.verification import Exported, ExportError, own_torque, write_proved
from dynident.export.xml_edit import Edits, Span, parse_spans, quoteattr
from dynident.robot.model import Robot

_NAMESPACE = "http://drake.mit.edu"
_TRANSMISSION = (
    "<transmission name={}><type>transmission_interface/SimpleTransmission</type><joint name={}/>"
    "<actuator name={}>{}</actuator></transmission>"
)


def export_drake(
    robot: Robot,
    values: Mapping[str, float],
    path: str | Path,
    *,
    source: str | Path | None = None,
    from_scratch: bool = False,
    limits: bool = False,
    terms: TermsLike = None,
    note: str = "",
) -> Exported:
    """Write a URDF for Drake and prove it by reading it back, with Drake where it is installed.

    The file is that of `export_urdf` with `drake:rotor_inertia` and `drake:gear_ratio` in a `<transmission>` of each
    joint; armature at the joint is rotor inertia times gear ratio squared. Drake has no dry friction of joints.

    Args, Raises: As of `export_urdf`.
    """
    kept = edited_file(robot, "robot", source, from_scratch)
    target = check_export_target(path, (".urdf",), robot, kept)
    plain = urdf_text(robot, values, target, kept, limits=limits, terms=terms, note=note, form="Drake", drives=True)
    held = {name: 0.0 if name.startswith("Fc") else value for name, value in plain.holding.values.items()}
    content = _with_rotors(plain.content, plain.robot, plain.holding)
    reader, torque = _reader()
    proved = write_proved(target, content, plain.robot, (held, plain.standard), torque, reader)
    usage = () if reader == "Drake" else ("Drake is not installed here and did not read the file",)
    return Exported(target, "Drake URDF", proved, plain.lost, plain.warnings, held, usage)


def _with_rotors(content: bytes, robot: Robot, holding: Holding) -> bytes:
    """The URDF with a transmission for every joint that has a motor, in the place of what the file had for it."""
    edits, root = Edits(content), parse_spans(content)
    if "xmlns:drake" not in root.attributes:
        edits.set(root, **{"xmlns:drake": _NAMESPACE})
    there = {
        span.attributes.get("name", ""): transmission
        for transmission in root.all("transmission")
        for span in transmission.all("joint")
        if _is_simple(transmission, content)
    }
    for i, j in enumerate(robot.active):
        name, ratio = robot.joints[j].name, float(abs(robot.drive.gear_ratios[i]))
        own = {"rotor_inertia": holding.inertia[i] / ratio**2, "gear_ratio": ratio}
        lines = "".join(f"<drake:{key} value={quoteattr(text(x))}/>" for key, x in own.items())
        transmission = there.get(name)
        actuator = None if transmission is None else transmission.first("actuator")
        if actuator is None:
            if transmission is not None:
                edits.remove(transmission)
            own_names = [quoteattr(words) for words in (f"{name} drive", name, f"{name} motor")]
            edits.insert(root, _TRANSMISSION.format(*own_names, lines), last=True)
            continue
        assert transmission is not None
        for key, x in own.items():
            old = actuator.first(f"drake:{key}")
            if old is None:
                edits.insert(actuator, f"<drake:{key} value={quoteattr(text(x))}/>", last=True)
            else:
                edits.set(old, value=text(x))
    return edits.result()


def _is_simple(transmission: Span, content: bytes) -> bool:
    """Whether Drake looks at a transmission: it knows simple ones."""
    kind = transmission.first("type")
    words = b"" if kind is None else content[kind.inner : kind.close]
    return b"SimpleTransmission" in words or "SimpleTransmission" in transmission.attributes.get("type", "")


def _reader() -> tuple[str, Any]:
    """Who reads the file back, and the torque that it finds."""
    try:
        import_module("pydrake.multibody.parsing")
    except ImportError:
        return "dynident", _own_torque
    return "Drake", drake_torque


def _own_torque(path: Path, robot: Robot, states: MotionSamples) -> Array:
    """Torque of the URDF by dynident's reader, with the rotors of its transmissions and without dry friction."""
    torque = own_torque(path, robot, states)
    root = parse_spans(path.read_bytes())
    dry = {span.attributes.get("name", ""): span.first("dynamics") for span in root.all("joint")}
    rotors = dict(_rotors(root))
    for k, name in enumerate(robot.joint_names):
        dynamics = dry.get(name)
        friction = 0.0 if dynamics is None else float(dynamics.attributes.get("friction", "0"))
        torque[:, k] += rotors.get(name, 0.0) * states.ddq[:, k] - friction * np.sign(states.dq[:, k])
    return torque


def _rotors(root: Any) -> list[tuple[str, float]]:
    """Rotor inertia at each joint, as the transmissions have it."""
    found = []
    for transmission in root.all("transmission"):
        joint, actuator = transmission.first("joint"), transmission.first("actuator")
        inertia = None if actuator is None else actuator.first("drake:rotor_inertia")
        ratio = None if actuator is None else actuator.first("drake:gear_ratio")
        if joint is not None and inertia is not None:
            turns = 1.0 if ratio is None else float(ratio.attributes["value"])
            found.append((joint.attributes["name"], float(inertia.attributes["value"]) * turns**2))
    return found


def drake_torque(path: Path, robot: Robot, states: MotionSamples) -> Array:
    """Drake's torque at the joints, (n_states, n_joints): M ddq + C dq - tau_g + damping dq, reflected rotors in M.

    Raises:
        ExportError: When Drake cannot read the file, or it has other joints.
    """
    from pydrake.multibody import parsing, plant as plants

    plant: Any = plants.MultibodyPlant(0.0)
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of dry friction, which is among what is lost
    try:
        parser: Any = parsing.Parser(plant)
        (model,) = parser.AddModelsFromString(_without_shapes(path.read_bytes()), "urdf")
        for index in plant.GetBodyIndices(model):
            body = plant.get_body(index)
            if not any(plant.get_joint(own).child_body().index() == index for own in plant.GetJointIndices(model)):
                plant.WeldFrames(plant.world_frame(), body.body_frame())
        plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
        plant.Finalize()
    except RuntimeError as error:
        raise ExportError(
            f"the URDF was not written, because Drake cannot read it: {' '.join(str(error).split())[:300]}"
        ) from None
    finally:
        log.setLevel(level)
    names = [plant.get_joint(index).name() for index in plant.GetJointIndices()]
    missing = [joint.name for joint in robot.joints if joint.name not in names]
    if missing:
        raise ExportError(f"the URDF was not written, because Drake finds no joint {missing[0]} in it")
    joints = [plant.GetJointByName(joint.name) for joint in robot.joints]
    places = [joint.velocity_start() for joint in joints]
    damping = np.array([float(joint.default_damping_vector()[0]) for joint in joints])
    tree = tree_motion(robot, states.q, states.dq, states.ddq)  # joints that follow others are free in Drake's tree
    context, torque = plant.CreateDefaultContext(), np.zeros_like(states.q)
    for k in range(len(states.q)):
        position, velocity, acceleration = (np.zeros(plant.num_velocities()) for _ in range(3))
        position[places], velocity[places], acceleration[places] = tree.q[k], tree.dq[k], tree.ddq[k]
        plant.SetPositions(context, position)
        plant.SetVelocities(context, velocity)
        full = plant.CalcMassMatrix(context) @ acceleration + plant.CalcBiasTerm(context)
        full -= plant.CalcGravityGeneralizedForces(context)
        torque[k] = tree.G[k].T @ (full[places] + damping * tree.dq[k])
    return torque


def _without_shapes(content: bytes) -> str:
    """The text without visuals and collisions, whose meshes need not be there for dynamics."""
    edits, root = Edits(content), parse_spans(content)
    for span in root.walk():
        if span.tag in ("visual", "collision"):
            edits.replace(span, "")
    return edits.result().decode()
