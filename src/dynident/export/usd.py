"""`export_usd`: joints of an identified robot as USD physics, with the attributes that PhysX and Isaac Sim read.

Angles in USD are degrees: gains of revolute drives are per degree, `viscousFrictionCoefficient` of PhysX as well;
armature and dry friction are not.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, InputError
from dynident.export.identified import IdentifiedModel, JointActuator, joint_actuators
from dynident.export.source_files import check_export_target
from dynident.export.values import classical, with_all_joints_free
from dynident.export.verification import Exported, ExportError, ReadBack
from dynident.files import write_bytes
from dynident.plant.mjcf_writer import quaternion
from dynident.robot.model import BASE, Robot, Transform
from dynident.robot.physicality import link_label, violations

_DEGREE = math.pi / 180.0  # [rad]
_SINGLE = 1e-6  # share of a number that single precision, in which USD physics stores them, may lose
_BASE_MASS = 1.0  # [kg] of the base, which is fixed to the world: no torque depends on it
_SUFFIXES = (".usda", ".usd", ".usdc")


class MissingUsdError(DynidentError):
    """USD is needed and not installed."""

    def __init__(self) -> None:
        super().__init__("this needs USD, which is not installed: pip install 'dynident[usd]'")


def import_pxr() -> Any:
    """The `pxr` package, or an error that says how to get it."""
    try:
        import pxr
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics, Vt  # noqa: F401
    except ImportError:
        raise MissingUsdError from None
    return pxr


def export_usd(model: IdentifiedModel, path: str | Path, *, source: str | PathLike[str] | None = None) -> Exported:
    """Write joints with drives, armature and friction as USD and prove the file by reading it back with `pxr`.

    Args:
        model: The identified model.
        path: Where to, ending in .usda, .usd or .usdc.
        source: A USD file of the robot, such as the one that Isaac Sim made of its URDF: the new file is a layer over
            it that changes its joints; without, a stage with bodies and joints is made.

    Raises:
        ExportError: When a joint is not in the source, the robot has loops, or the file cannot be read back.
        InputError: When the target cannot be written, or the source is not there.
        MissingUsdError: Without `usd-core`.
    """
    import_pxr()
    from pxr import Usd

    target = check_export_target(path, _SUFFIXES, model.robot, None if source is None else Path(source))
    joints, lost = joint_actuators(model, "USD")
    if model.control is not None:
        lost = (*lost, *_not_held(model, joints))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    os.close(handle)
    trial = Path(name)
    trial.unlink()  # USD makes the file itself
    try:
        if source is None:
            _new_stage(model, joints, trial)
        else:
            lost = (*lost, "masses and inertias: the layer changes joints, bodies are those of the source")
            _layer_over(model, joints, trial, Path(source))
        stage = Usd.Stage.Open(str(trial))
        layer = stage.GetRootLayer()
        words = [f"dynident: identified values of {model.robot.name}. {model.note}"]
        layer.documentation = "\n".join([*words, *(f"Not in this file: {one}." for one in lost)])
        layer.Save()
        worst, count = _read_back(trial, joints)
        content = trial.read_bytes()
    finally:
        trial.unlink(missing_ok=True)
    if not worst <= _SINGLE:
        raise ExportError(f"{target}: was not written, because a number read back differs by {worst:.2g} of itself")
    write_bytes(target, content)
    warnings = () if source is None else _warnings(Path(source), target)
    return Exported(target, "USD", ReadBack("pxr", count, worst), lost, warnings)


def _not_held(model: IdentifiedModel, joints: tuple[JointActuator, ...]) -> list[str]:
    """What a drive of USD has no place for."""
    control, found = model.control, []
    assert control is not None
    if control.delay:
        found.append(f"delay of commands, {1e3 * control.delay:.3g} ms")
    biases = [f"{one.name} {one.bias:.4g}" for one in joints if one.bias]
    if biases:
        found.append(f"bias of logged positions [rad or m]: {', '.join(biases)}")
    return found


def _warnings(source: Path, target: Path) -> tuple[str, ...]:
    return (f"the layer stands on {os.path.relpath(source.resolve(), target.resolve().parent)}: keep both together",)


# ----------------------------------------------------------------------------------------------------------------------
# Joints: drives, and what PhysX adds.


def joint_numbers(joint: JointActuator) -> dict[str, float]:
    """Attributes of a joint by name, in units of USD."""
    axis, degree = ("linear", 1.0) if joint.prismatic else ("angular", _DEGREE)
    found = {
        f"drive:{axis}:physics:stiffness": (joint.kp or 0.0) * degree,
        f"drive:{axis}:physics:damping": (joint.kd or 0.0) * degree,
        "physxJoint:armature": joint.armature,
        "physxJoint:jointFriction": joint.frictionloss,
        f"physxJointAxis:{axis}:armature": joint.armature,
        f"physxJointAxis:{axis}:staticFrictionEffort": joint.frictionloss,
        f"physxJointAxis:{axis}:dynamicFrictionEffort": joint.frictionloss,
        f"physxJointAxis:{axis}:viscousFrictionCoefficient": joint.damping * degree,
    }
    if joint.effort:
        found[f"drive:{axis}:physics:maxForce"] = joint.effort
    if joint.velocity:
        found["physxJoint:maxJointVelocity"] = joint.velocity / degree
        found[f"physxJointAxis:{axis}:maxJointVelocity"] = joint.velocity / degree
    return found


def _write_joint(prim: Any, joint: JointActuator) -> None:
    from pxr import Sdf, UsdPhysics

    axis = "linear" if joint.prismatic else "angular"
    drive = UsdPhysics.DriveAPI.Apply(prim, axis)
    drive.CreateTypeAttr("force")
    for schema in ("PhysxJointAPI", f"PhysxJointAxisAPI:{axis}"):  # of PhysX: USD itself does not know them
        prim.AddAppliedSchema(schema)
    for name, number in joint_numbers(joint).items():
        prim.CreateAttribute(name, Sdf.ValueTypeNames.Float, custom=False).Set(float(number))


def _read_back(path: Path, joints: tuple[JointActuator, ...]) -> tuple[float, int]:
    """The largest difference of a number that a fresh stage has, as a share of it, and how many there are."""
    from pxr import Usd

    stage = Usd.Stage.Open(str(path))
    prims = _joint_prims(stage)
    worst, count = 0.0, 0
    for joint in joints:
        for name, number in joint_numbers(joint).items():
            found = float(prims[_identifier(joint.name)].GetAttribute(name).Get())
            worst = max(worst, abs(found - number) / abs(number) if number else abs(found))
            count += 1
    return worst, count


def _identifier(name: str) -> str:
    from pxr import Tf

    return str(Tf.MakeValidIdentifier(name))


def _joint_prims(stage: Any) -> dict[str, Any]:
    """Revolute and prismatic joints of a stage by name."""
    from pxr import UsdPhysics

    kinds = (UsdPhysics.RevoluteJoint, UsdPhysics.PrismaticJoint)
    return {prim.GetName(): prim for prim in stage.Traverse() if any(prim.IsA(kind) for kind in kinds)}


def _layer_over(model: IdentifiedModel, joints: tuple[JointActuator, ...], path: Path, source: Path) -> None:
    """A layer over the user's file that changes its joints and nothing else."""
    from pxr import Tf, Usd, UsdPhysics

    if not source.is_file():
        raise InputError(f"{source}: no such file; give the USD of the robot")
    try:
        below = Usd.Stage.Open(str(source))
    except Tf.ErrorException as error:
        raise ExportError(f"{source}: USD cannot read it: {' '.join(str(error).split())[:200]}") from None
    stage = Usd.Stage.CreateNew(str(path))
    stage.GetRootLayer().subLayerPaths.append(os.path.relpath(source.resolve(), path.resolve().parent))
    prims = _joint_prims(stage)
    for joint in joints:
        prim = prims.get(_identifier(joint.name))
        if prim is None:
            known = ", ".join(prims) or "none"
            raise ExportError(f"{source}: has no joint {joint.name}; its revolute and prismatic joints: {known}")
        if prim.IsA(UsdPhysics.PrismaticJoint) != joint.prismatic:
            raise ExportError(f"{source}: joint {joint.name} turns in one file and slides in the other")
        _write_joint(prim, joint)
    if below.GetDefaultPrim():
        stage.GetRootLayer().defaultPrim = below.GetRootLayer().defaultPrim
    stage.GetRootLayer().Save()


# ----------------------------------------------------------------------------------------------------------------------
# A stage made from a robot's tree.


def _new_stage(model: IdentifiedModel, joints: tuple[JointActuator, ...], path: Path) -> None:
    """Bodies with their masses at the zero position, joints between them, the base fixed to the world."""
    from pxr import Usd, UsdGeom, UsdPhysics

    robot = with_all_joints_free(model.robot)
    passive = [joint.name for j, joint in enumerate(robot.joints) if j not in robot.active]
    if robot.closure is not None or passive:
        named = f" ({', '.join(passive)})" if passive else ""
        raise ExportError(
            f"robot {robot.name}: has loops or joints that follow others{named}, which a new USD stage does not hold; "
            "give the robot's own USD with --source"
        )
    chi = robot.link_parameters({name: model.values.get(name, 0.0) for name in robot.parameter_names})
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    top = f"/{_identifier(robot.name)}"
    root = UsdGeom.Xform.Define(stage, top).GetPrim()
    stage.SetDefaultPrim(root)
    UsdPhysics.ArticulationRootAPI.Apply(root)
    paths = _body_paths(robot, top)
    base = _body(stage, paths[BASE], Transform.identity())
    base.CreateMassAttr(_BASE_MASS)
    fixed = UsdPhysics.FixedJoint.Define(stage, f"{top}/joints/base_to_world")
    fixed.CreateBody1Rel().SetTargets([paths[BASE]])
    poses = {BASE: Transform.identity()}
    own = {joint.name: joint for joint in joints}
    for j, joint in enumerate(robot.joints):
        broken = violations(chi[j], link_label(joint))
        if broken:
            raise ExportError(f"{broken[0]}; export values of a physically consistent fit")
        poses[j] = poses[joint.parent] @ joint.before @ joint.after
        _mass(_body(stage, paths[j], poses[j]), chi[j], link_label(joint))
        kind = UsdPhysics.PrismaticJoint if joint.kind == "prismatic" else UsdPhysics.RevoluteJoint
        made = kind.Define(stage, f"{top}/joints/{_identifier(joint.name)}")
        made.CreateAxisAttr("Z")
        made.CreateBody0Rel().SetTargets([paths[joint.parent]])
        made.CreateBody1Rel().SetTargets([paths[j]])
        _frame(made, 0, joint.before)
        _frame(made, 1, joint.after.inverse())
        degree = 1.0 if joint.kind == "prismatic" else _DEGREE
        if joint.limits.lower is not None and joint.limits.upper is not None:
            made.CreateLowerLimitAttr(joint.limits.lower / degree)
            made.CreateUpperLimitAttr(joint.limits.upper / degree)
        if joint.name in own:
            _write_joint(made.GetPrim(), own[joint.name])
    stage.GetRootLayer().Save()


def _body_paths(robot: Robot, top: str) -> Mapping[int, str]:
    """Where each link's body is; the base is one of them."""
    names = [_identifier(joint.link if not joint.link.isdigit() else f"link{joint.link}") for joint in robot.joints]
    if len(set(names)) < len(names):
        names = [f"link{joint.number}" for joint in robot.joints]
    base = "base"
    while base in names:
        base += "_link"
    return {BASE: f"{top}/{base}"} | {j: f"{top}/{name}" for j, name in enumerate(names)}


def _body(stage: Any, path: str, pose: Transform) -> Any:
    from pxr import Gf, UsdGeom, UsdPhysics

    xform = UsdGeom.Xform.Define(stage, path)
    xform.AddTranslateOp().Set(Gf.Vec3d(*pose.translation.tolist()))
    xform.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(*_quaternion(pose.rotation)))
    UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
    return UsdPhysics.MassAPI.Apply(xform.GetPrim())


def _mass(body: Any, chi: Array, label: str) -> None:
    """Mass, center, principal moments and their axes."""
    from pxr import Gf

    mass, center, inertia = classical(chi, label, "USD")
    principal, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    body.CreateMassAttr(mass)
    body.CreateCenterOfMassAttr(Gf.Vec3f(*center.tolist()))
    body.CreateDiagonalInertiaAttr(Gf.Vec3f(*principal.tolist()))
    body.CreatePrincipalAxesAttr(Gf.Quatf(*_quaternion(axes)))


def _frame(joint: Any, side: int, frame: Transform) -> None:
    from pxr import Gf

    place, turn = Gf.Vec3f(*frame.translation.tolist()), Gf.Quatf(*_quaternion(frame.rotation))
    (joint.CreateLocalPos1Attr if side else joint.CreateLocalPos0Attr)(place)
    (joint.CreateLocalRot1Attr if side else joint.CreateLocalRot0Attr)(turn)


def _quaternion(rotation: Array) -> list[float]:
    return [float(x) for x in quaternion(rotation)]
