"""The same commands give the same motion: an MJCF file with position actuators against the replay of `drives`.

No policy and no log is needed: sums of sines within the limits of the robot are commanded in both models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.drives.replay import STEP, replay_xml
from dynident.export.identified import PositionControl
from dynident.export.verification import ExportError
from dynident.identifiability.states import reach
from dynident.plant.compiled_model import import_mujoco
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_limits

MOTION_TOLERANCE = 1e-6  # [rad or m] between positions of both models
_DURATION = 2.0  # [s]
_AMPLITUDE = 0.1  # [rad], or share of the robot's length for slides
_RANGE_SHARE, _EFFORT_SHARE = 0.2, 0.2  # of the range, and of the effort, that a command asks for at most


@dataclass(frozen=True)
class MotionAgreement:
    """How near a file's motion is to that of the replay under the same commands.

    Attributes:
        largest: Largest difference of a position with the settings of the replay [rad or m].
        own_rms: RMS difference with the settings of the file [rad or m]; None where its simulation stops.
        timestep: Of the file [s].
    """

    largest: float
    own_rms: float | None
    timestep: float

    def __str__(self) -> str:
        """A sentence."""
        own = "stops" if self.own_rms is None else f"differs by {self.own_rms:.2g} rad or m RMS"
        return (
            f"the same commands give the same motion as replay to {self.largest:.1e} rad or m with its settings; with "
            f"those of the file (step {self.timestep:g} s, its contacts, stops and softness of friction) it {own}"
        )


def can_replay(robot: Robot) -> bool:
    """Whether the motion of the robot can be compared: a tree, every joint of which is driven and free."""
    return robot.closure is None and not robot.locked and len(robot.joint_names) == len(robot.joints)


def check_motion(
    path: Path, robot: Robot, values: Mapping[str, float], control: PositionControl
) -> MotionAgreement | str:
    """Compare the motion of a file with that of the replay; why it cannot be compared, in words.

    Args:
        path: MJCF file with a position actuator on every joint.
        robot: The robot, a tree.
        values: Standard values that the file holds.
        control: The controllers.

    Raises:
        ExportError: When the motion differs.
    """
    mujoco = import_mujoco()
    ours = mujoco.MjModel.from_xml_string(replay_xml(robot, values, control.kp, control.kd))
    try:
        theirs = held_model(path)
    except ValueError as error:
        return f"motion not compared with replay: MuJoCo does not compile the file ({' '.join(str(error).split())})"
    targets = check_commands(robot, control)
    expected = _simulate(ours, robot, targets)
    own = _simulate(theirs, robot, targets)
    timestep = float(theirs.opt.timestep)
    _take_settings(theirs, ours, robot)
    found = _simulate(theirs, robot, targets)
    largest = float(np.abs(found - expected).max())
    if not largest <= MOTION_TOLERANCE:
        name = robot.joint_names[int(np.argmax(np.abs(np.nan_to_num(found - expected, nan=np.inf)).max(axis=0)))]
        raise ExportError(
            f"the MJCF file was not written, because under the same commands joint {name} moves otherwise than in "
            f"replay, by up to {largest:.2g} rad or m; allowed is {MOTION_TOLERANCE:g}. Defaults of actuators or "
            "joints in the file may act on it; export with --from-scratch instead"
        )
    apart = float(np.sqrt(np.mean((own - expected) ** 2)))
    return MotionAgreement(largest, apart if np.isfinite(apart) else None, timestep)


def check_commands(robot: Robot, control: PositionControl) -> Array:
    """(n_steps, n_joints) position commands [rad or m], one for each step of the replay."""
    limits, time = believed_limits(robot), np.arange(round(_DURATION / STEP)) * STEP
    targets = np.zeros((len(time), len(limits)))
    for k, (joint, limit) in enumerate(zip(robot.moving_joints, limits, strict=True)):
        size, center = _AMPLITUDE * (reach(robot) if joint.kind == "prismatic" else 1.0), 0.0
        if limit.lower is not None and limit.upper is not None:
            center = 0.5 * (limit.lower + limit.upper)
            size = min(size, _RANGE_SHARE * (limit.upper - limit.lower))
        if limit.effort and control.kp[k] > 0.0:
            size = min(size, _EFFORT_SHARE * limit.effort / float(control.kp[k]))
        phase = 2.0 * np.pi * (0.7 + 0.13 * k) * time
        targets[:, k] = center + size * (0.7 * np.sin(phase) + 0.3 * np.sin(2.3 * phase))
    return targets


def held_model(path: Path) -> Any:
    """MuJoCo's model of a file with its free bases held, which is how drives are identified.

    Meshes that are not there are left out of bodies whose inertia the file states.

    Raises:
        ValueError: When MuJoCo does not compile it.
    """
    spec = _held_spec(path)
    try:
        return spec.compile()
    except ValueError:
        spec = _held_spec(path)
        for geom in [geom for geom in spec.geoms if geom.meshname and _needs_no_shape(geom.parent)]:
            spec.delete(geom)
        for item in [*spec.geoms, *spec.sites]:
            item.material = ""
        used = {geom.meshname for geom in spec.geoms}
        for item in [*spec.materials, *spec.textures, *(mesh for mesh in spec.meshes if mesh.name not in used)]:
            spec.delete(item)
        return spec.compile()


def _needs_no_shape(body: Any) -> bool:
    """Whether a body's inertia is stated, or stands still and does not matter."""
    if body.explicitinertial:
        return True
    while body is not None:
        if len(body.joints):
            return False
        body = body.parent
    return True


def _held_spec(path: Path) -> Any:
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_file(str(path))
    free = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    for joint in free:
        spec.delete(joint)
    if free:
        for key in list(spec.keys):  # they have positions of the base
            spec.delete(key)
    return spec


def _take_settings(theirs: Any, ours: Any, robot: Robot) -> None:
    """Simulate a file's model as the replay is simulated."""
    flags = import_mujoco().mjtDisableBit
    for name in ("timestep", "integrator", "solver", "tolerance", "iterations", "ls_iterations", "gravity"):
        setattr(theirs.opt, name, getattr(ours.opt, name))
    theirs.opt.noslip_iterations, theirs.opt.enableflags = 0, 0
    theirs.opt.disableflags = int(flags.mjDSBL_CONTACT) | int(flags.mjDSBL_LIMIT)
    theirs.body_gravcomp[:] = 0.0
    for name in robot.joint_names:
        there, here = (int(one.joint(name).dofadr[0]) for one in (theirs, ours))
        theirs.dof_solref[there], theirs.dof_solimp[there] = ours.dof_solref[here], ours.dof_solimp[here]


def _simulate(model: Any, robot: Robot, targets: Array) -> Array:
    """(n_steps, n_joints) positions under commands that come once a step of the replay."""
    mujoco = import_mujoco()
    data = mujoco.MjData(model)
    ids = [int(model.joint(name).id) for name in robot.joint_names]
    places = model.jnt_qposadr[ids]
    drives = [int(np.flatnonzero(_driven(model) == number)[0]) for number in ids]
    data.qpos[places] = targets[0]
    found = np.zeros_like(targets)
    step = float(model.opt.timestep)
    for k, target in enumerate(targets):
        data.ctrl[drives] = target
        while data.time < (k + 1) * STEP - 1e-9 and step <= STEP + 1e-12:
            mujoco.mj_step(model, data)
        if step > STEP + 1e-12 and data.time + step <= (k + 1) * STEP + 1e-9:
            mujoco.mj_step(model, data)
        found[k] = data.qpos[places]
    return found


def _driven(model: Any) -> Array:
    """(n_actuators,) joint that each actuator drives, -1 for none."""
    kinds = import_mujoco().mjtTrn
    of_joint = np.isin(model.actuator_trntype, (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)))
    return np.asarray(np.where(of_joint, model.actuator_trnid[:, 0], -1))
