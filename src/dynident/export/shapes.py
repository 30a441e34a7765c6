"""Visual and collision shapes of a URDF, and the tool and motors of a robot, for a new MJCF file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element as Node, SubElement, tostring

from defusedxml import ElementTree as SafeTree

from dynident.arrays import Array
from dynident.plant.compiled_model import import_mujoco
from dynident.plant.mjcf_writer import quaternion
from dynident.robot.model import BASE, Robot, Transform
from dynident.robot.placeholders import believed_limits
from dynident.robot.rotations import rpy_matrix
from dynident.robot.urdf import UrdfReader
from dynident.schema import read_text

_MESHES = (".stl", ".obj", ".msh")  # that MuJoCo reads
_LOOKS = {  # how MuJoCo treats a shape: shown in its group, and whether it may touch others
    "visual": {"group": "2", "contype": "0", "conaffinity": "0"},
    "collision": {"group": "3"},
}


@dataclass
class Shapes:
    """Shapes on links.

    Attributes:
        geoms: Attributes of each shape, by the index of the link in the robot (or `BASE`).
        meshes: File of each mesh that they use, relative to the folder of the new file, with its scale, by name.
        lost: What is left out, in words.
    """

    geoms: dict[int, list[dict[str, str]]] = field(default_factory=dict)
    meshes: dict[str, dict[str, str]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


def urdf_shapes(robot: Robot, path: Path, target: Path) -> Shapes:
    """The shapes of a URDF that MuJoCo can show.

    Args:
        robot: The robot that was read from it.
        path: The URDF.
        target: The MJCF file that gets them.
    """
    text, found = read_text(path), Shapes()
    _, carrier = UrdfReader(text, str(path)).parts()
    places = {joint.name: j for j, joint in enumerate(robot.joints)}
    gone: dict[str, list[str]] = {}
    for link in SafeTree.fromstring(text.encode(), forbid_dtd=True).findall("link"):
        on, frame = carrier[link.get("name", "")]
        if on is not None and on not in places:
            continue
        for kind, look in _LOOKS.items():
            for shape in link.findall(kind):
                geom = _geom(shape, frame, path, target, found, gone)
                if geom is not None:
                    found.geoms.setdefault(BASE if on is None else places[on], []).append(geom | look)
    found.lost = [f"shapes: {reason} ({_few(names)})" for reason, names in gone.items()]
    return found


def _geom(
    shape: Node, frame: Transform, path: Path, target: Path, found: Shapes, gone: dict[str, list[str]]
) -> dict[str, str] | None:
    """Attributes of one shape; None where it is left out, with the reason in `gone`."""
    numbers = shape.find("origin")
    xyz, rpy = (_numbers("0 0 0" if numbers is None else numbers.get(key, "0 0 0")) for key in ("xyz", "rpy"))
    geometry = shape.find("geometry")
    own = next(iter(geometry), None) if geometry is not None else None
    if own is None or len(xyz) != 3 or len(rpy) != 3:
        return None
    place = frame @ Transform(rpy_matrix(*rpy), xyz)  # type: ignore[arg-type]  # three numbers
    geom = {"pos": _text(place.translation), "quat": _text(quaternion(place.rotation))}
    color = shape.find("material/color")
    if color is not None and len(_numbers(color.get("rgba", ""))) == 4:
        geom["rgba"] = color.get("rgba", "")
    if own.tag == "mesh":
        name = _mesh(own, path, target, found, gone)
        return None if name is None else geom | {"type": "mesh", "mesh": name}
    sizes = {
        "box": [0.5 * x for x in _numbers(own.get("size", ""))],
        "sphere": _numbers(own.get("radius", "")),
        "cylinder": _numbers(own.get("radius", "")) + [0.5 * x for x in _numbers(own.get("length", ""))],
    }
    size = sizes.get(own.tag, [])
    if len(size) != {"box": 3, "sphere": 1, "cylinder": 2}.get(own.tag) or min(size) <= 0.0:
        gone.setdefault("no shape that MuJoCo has", []).append(f"<{own.tag}>")
        return None
    return geom | {"type": own.tag, "size": _text(size)}


def _mesh(own: Node, path: Path, target: Path, found: Shapes, gone: dict[str, list[str]]) -> str | None:
    """Name of the mesh of a shape, added where it is new."""
    written = own.get("filename", "")
    file = mesh_file(written, path)
    if file is None:
        gone.setdefault("the mesh is not there", []).append(written)
        return None
    if file.suffix.lower() not in _MESHES:
        gone.setdefault(f"MuJoCo reads meshes in {', '.join(_MESHES)} only", []).append(written)
        return None
    scale = _numbers(own.get("scale", "1 1 1"))
    attributes = {"file": os.path.relpath(file, target.resolve().parent)}
    if len(scale) == 3 and scale != [1.0, 1.0, 1.0]:
        attributes["scale"] = _text(scale)
    for name, other in found.meshes.items():
        if {key: x for key, x in other.items() if key != "inertia"} == attributes:
            return name
    problem = _mesh_problem(file)
    if problem:  # of a mesh that is not closed MuJoCo cannot say a volume, and has no need to: inertias are given
        attributes["inertia"] = "shell"
        problem = _mesh_problem(file, inertia="shell")
    if problem:
        gone.setdefault(problem, []).append(written)
        return None
    stem = re.sub(r"\W+", "_", file.stem) or "mesh"
    name = next(x for x in (stem, *(f"{stem}_{k}" for k in range(2, 10_000))) if x not in found.meshes)
    found.meshes[name] = attributes
    return name


def mesh_file(written: str, path: Path) -> Path | None:
    """The file that a URDF names: relative to it, or in a package that one of the folders above it is, or holds."""
    if written.startswith("file://"):
        written = written.removeprefix("file://")
    elif written.startswith(("package://", "model://")):
        package, _, inside = written.split("://", 1)[1].partition("/")
        folders = path.resolve().parents
        tried = [folder / inside for folder in folders if folder.name == package]
        tried += [folder / package / inside for folder in folders]
        return next((one for one in tried if one.is_file()), None)
    file = (path.resolve().parent / written) if written else None
    return file if file is not None and file.is_file() else None


def _mesh_problem(file: Path, **how: str) -> str:
    """Why MuJoCo does not take a mesh; empty where it does."""
    mujoco = import_mujoco()
    root = Node("mujoco")
    SubElement(SubElement(root, "asset"), "mesh", {"name": "m", "file": str(file.resolve()), **how})
    SubElement(SubElement(root, "worldbody"), "geom", type="mesh", mesh="m")
    try:
        mujoco.MjModel.from_xml_string(tostring(root, encoding="unicode"))
    except ValueError as error:
        return f"MuJoCo cannot read the mesh: {str(error).splitlines()[0][:100]}"
    return ""


def add_shapes(root: Node, robot: Robot, shapes: Shapes) -> None:
    """Put shapes into a model's bodies, and their meshes among its assets."""
    if shapes.meshes:
        asset = Node("asset")
        root.insert(1, asset)
        for name, attributes in shapes.meshes.items():
            SubElement(asset, "mesh", {"name": name, **attributes})
    for link, geoms in shapes.geoms.items():
        body = _body(root, None if link == BASE else robot.joints[link].link)
        for attributes in geoms:
            SubElement(body, "geom", attributes)


def add_tool(root: Node, robot: Robot) -> None:
    """A site at the tool frame, where the robot has one."""
    if robot.tool is not None:
        link, frame = robot.tool
        place = {"pos": _text(frame.translation), "quat": _text(quaternion(frame.rotation))}
        SubElement(_body(root, robot.joints[link].link), "site", {"name": "tool", **place})


def add_motors(root: Node, robot: Robot) -> None:
    """A torque motor for every joint with a motor, limited where a limit is known."""
    actuator = SubElement(root, "actuator")
    limits = believed_limits(robot)
    for joint, limit in zip(robot.moving_joints, limits, strict=True):
        SubElement(actuator, "motor", motor_attributes(joint.name, limit.effort))


def motor_attributes(joint: str, effort: float | None) -> dict[str, str]:
    """Of a motor whose control is the torque at the joint [N·m or N]."""
    attributes = {"name": f"motor {joint}", "joint": joint, "gear": "1"}
    if effort:
        attributes |= {"ctrllimited": "true", "ctrlrange": _text([-effort, effort])}
    return attributes


def _body(root: Node, name: str | None) -> Node:
    return next(x for x in root.iter("worldbody" if name is None else "body") if name is None or x.get("name") == name)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split()]
    except ValueError:
        return []


def _text(numbers: Sequence[float] | Array) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _few(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:3]) + (f" and {len(unique) - 3} more" if len(unique) > 3 else "")
