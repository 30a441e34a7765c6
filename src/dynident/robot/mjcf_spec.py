"""An MJCF file before MuJoCo compiles it: what has no weight goes, a free base is held, the rest is refused by name.

Nothing is compiled before every element has been looked at, so a file that is refused is refused at once, and no
message of MuJoCo's names an element that was deleted here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynident.robot.notices import Notices
from dynident.schema import LocatedReader

_IGNORED = ("sensors", "keys", "pairs", "excludes", "skins", "cameras", "lights", "texts", "tuples", "numerics")
_PASSIVE = ("stiffness", "damping", "frictionloss", "armature")  # of a tendon
_POLYNOMIAL = "has a spring or damping that is curved, for which a robot's equations have no term; remove it"


class SpecPreparation:
    """Takes out of a parsed MJCF file what a `Robot` does not hold.

    Attributes:
        free_bases: Bodies whose free joint was taken away.
        mocap: Names of bodies that users move.
        motors: Name, kind of transmission, target, gear and force range of the actuators.
        driven: Names of the joints that an actuator drives alone.
        rotors: Armature and damping that actuators add to a joint or tendon, by kind and name.
    """

    def __init__(self, mujoco: Any, spec: Any, reader: LocatedReader, notices: Notices) -> None:
        self.mujoco, self.spec, self.reader, self.notices = mujoco, spec, reader, notices
        self.free_bases: list[str] = []
        self.mocap = {body.name for body in spec.bodies if body.mocap}
        self.motors = [(a.name, a.trntype, a.target, float(a.gear[0]), np.array(a.forcerange)) for a in spec.actuators]
        kinds = mujoco.mjtTrn
        self._joint_kinds = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
        self.driven = {target for _, kind, target, *_ in self.motors if int(kind) in self._joint_kinds}
        self.rotors: dict[tuple[str, str], tuple[float, float]] = {}

    def prepare(self) -> None:
        """Refuse and delete.

        Raises:
            RobotFileError: With the element that cannot be held, and what to do.
        """
        spec = self.spec
        if len(spec.flexes):
            raise self.reader.error("<flex>", "soft bodies have no place in a robot of rigid links; remove them")
        if spec.option.density or spec.option.viscosity:
            medium = "a fluid around the robot (density or viscosity)"
            problem = f"has {medium}, for which a robot's equations have no term; set both to 0 to leave its drag out"
            raise self.reader.error("<option>", problem)
        self._joints()
        self._tendons()
        self._actuators()
        self._plugins()
        for names in _IGNORED:
            for item in list(getattr(spec, names)):
                self._delete(item)
        self._meshes()
        self._settings()

    # --- joints -----------------------------------------------------------------------------------------------------

    def _joints(self) -> None:
        kinds = self.mujoco.mjtJoint
        for joint in list(self.spec.joints):
            if joint.type == kinds.mjJNT_FREE:
                self.free_bases.append(joint.parent.name or joint.name or f"body {len(self.free_bases) + 1}")
                self._delete(joint)
            elif joint.type == kinds.mjJNT_BALL:
                where = f"joint '{joint.name}'" if joint.name else f"joint of body '{joint.parent.name}'"
                problem = "is a ball joint; dynident knows hinge and slide joints, describe it by three hinges"
                raise self.reader.error(where, problem)

    # --- tendons and actuators --------------------------------------------------------------------------------------

    def _tendons(self) -> None:
        """Spatial tendons that act on the motion are refused, others deleted: nothing else in the file needs them."""
        targets = {target for _, kind, target, *_ in self.motors if int(kind) == int(self.mujoco.mjtTrn.mjTRN_TENDON)}
        targets |= {name for e in self.spec.equalities for name in (e.name1, e.name2) if self._of_tendon(e)}
        for t, tendon in enumerate(list(self.spec.tendons)):
            where = f"tendon '{tendon.name or t + 1}'"
            path = list(tendon.path)
            if path and path[0].type == self.mujoco.mjtWrap.mjWRAP_JOINT:
                continue
            acts = [name for name in _PASSIVE if np.any(getattr(tendon, name))]
            if self._is_limited(tendon):
                acts.append("a longest or shortest length")
            if acts or tendon.name in targets:
                round_what = self._wrapped(path)
                how = f"has {' and '.join(acts)}" if acts else "pulls on the robot"
                raise self.reader.error(
                    where,
                    f"is a spatial tendon{round_what} that {how}: its lever arms change with the pose, for which a "
                    "robot's equations have no term; dynident knows fixed tendons, which are sums of joints",
                )
            self.notices.add(where, "has no effect: a spatial tendon that nothing pulls")
            self._delete(tendon)

    def _is_limited(self, tendon: Any) -> bool:
        given, kinds = int(tendon.limited), self.mujoco.mjtLimited
        automatic = given == int(kinds.mjLIMITED_AUTO) and bool(self.spec.compiler.autolimits) and np.any(tendon.range)
        return given == int(kinds.mjLIMITED_TRUE) or bool(automatic)

    def _of_tendon(self, equality: Any) -> bool:
        return bool(equality.type == self.mujoco.mjtEq.mjEQ_TENDON)

    def _wrapped(self, path: list[Any]) -> str:
        shapes = (self.mujoco.mjtWrap.mjWRAP_SPHERE, self.mujoco.mjtWrap.mjWRAP_CYLINDER)
        names = [getattr(item.target, "name", "") for item in path if item.type in shapes]
        named = [name for name in names if name]
        return f" around geom '{named[0]}'" if named else ""

    def _actuators(self) -> None:
        """Forces of actuators are commands, no part of a robot; armature and damping of their own are."""
        for a, actuator in enumerate(list(self.spec.actuators)):
            own = [np.atleast_1d(getattr(actuator, name, 0.0)).astype(float) for name in ("armature", "damping")]
            if any(np.any(x) for x in own):
                where, kind = f"actuator '{actuator.name or a + 1}'", int(actuator.trntype)
                if kind not in (*self._joint_kinds, int(self.mujoco.mjtTrn.mjTRN_TENDON)):
                    problem = (
                        "has armature or damping of its own, but turns neither a joint nor a fixed tendon; remove it"
                    )
                    raise self.reader.error(where, problem)
                if any(np.any(x[1:]) for x in own):
                    raise self.reader.error(where, _POLYNOMIAL)
                place = ("joint" if kind in self._joint_kinds else "tendon", str(actuator.target))
                before, gear = self.rotors.get(place, (0.0, 0.0)), float(actuator.gear[0])
                self.rotors[place] = (
                    before[0] + gear * gear * float(own[0][0]),
                    before[1] + gear * gear * float(own[1][0]),
                )
            self._delete(actuator)

    def _plugins(self) -> None:
        """Plugins of actuators and sensors go with them; those of bodies and shapes act."""
        for body in self.spec.bodies:
            plugin = getattr(body, "plugin", None)
            if plugin is not None and plugin.active:
                problem = "has a plugin, for which a robot's equations have no term; remove it"
                raise self.reader.error(f"body '{body.name}'", problem)

    # --- shapes -----------------------------------------------------------------------------------------------------

    def _meshes(self) -> None:
        spec = self.spec
        self.total = float(spec.compiler.settotalmass) > 0.0
        self._drop_meshes(spec.worldbody, True)
        used = {geom.meshname: body.name for body in spec.bodies for geom in body.geoms}
        self._weighed = {Path(mesh.file).name: used[mesh.name] for mesh in spec.meshes if mesh.name in used}
        for item in [*spec.geoms, *spec.sites, *spec.tendons]:
            item.material = ""
        meshes = [mesh for mesh in spec.meshes if mesh.name not in used]
        for item in [*spec.materials, *spec.textures, *spec.hfields, *meshes]:
            self._delete(item)
        if not self.total:  # for which bodies that are fused with the world do not count
            spec.compiler.fusestatic = False

    def _drop_meshes(self, body: Any, still: bool) -> None:
        """Meshes and height fields that add nothing to a mass that matters; other shapes need no file.

        Args:
            body: The body, with all it carries.
            still: Whether what carries it stands still.
        """
        still = still and not len(body.joints)
        compiler = getattr(body, "compiler", self.spec.compiler)  # that of an attached file is its own
        kind, kinds = int(compiler.inertiafromgeom), self.mujoco.mjtInertiaFromGeom
        auto = kind == int(kinds.mjINERTIAFROMGEOM_AUTO) and not body.explicitinertial
        matters = (auto or kind == int(kinds.mjINERTIAFROMGEOM_TRUE)) and (self.total or not still)
        for geom in list(body.geoms):
            if geom.hfieldname or (geom.meshname and not (matters and _has_weight(geom, compiler))):
                self._delete(geom)
        for child in body.bodies:
            self._drop_meshes(child, still)

    def mesh_hint(self, error: str) -> str:
        """What to do where a mesh is missing that has weight."""
        if self.total:
            return "; settotalmass weighs the shapes of every body: remove it, or give the files"
        if int(self.spec.compiler.inertiafromgeom) == int(self.mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE):
            return '; inertiafromgeom="true" weighs shapes even beside an <inertial>: set it to "auto"'
        weighed = [body for file, body in self._weighed.items() if file in error]
        if not weighed:
            return "; bodies with an <inertial> need no mesh"
        return (
            f"; body '{weighed[0]}' has no <inertial>, so that the mesh gives its inertia: put the file there, or give "
            "the body an <inertial> (bodies with one need no mesh)"
        )

    # --- settings ---------------------------------------------------------------------------------------------------

    def _settings(self) -> None:
        """What the file says of a simulation and no robot is made of."""
        for body in self.spec.bodies:
            if body.gravcomp:
                self.notices.add(
                    f"body '{body.name}'",
                    "has gravity compensation (gravcomp), which is a controller's torque and was not used",
                )
                body.gravcomp = 0.0
        for geom in self.spec.geoms:
            geom.fluid_ellipsoid = 0.0  # without a fluid around it

    def _delete(self, item: Any) -> None:
        if hasattr(self.spec, "delete"):
            self.spec.delete(item)
        else:
            item.delete()


def _has_weight(geom: Any, compiler: Any) -> bool:
    """Whether MuJoCo weighs a shape of a body whose inertia it takes from shapes."""
    first, last = compiler.inertiagrouprange
    heavy = geom.density if np.isnan(geom.mass) else geom.mass
    return bool(first <= geom.group <= last and heavy)
