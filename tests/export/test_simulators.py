"""Files for simulators, from drives and from fits: MuJoCo, USD, Drake, Isaac Lab and mjlab."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.drives.linear import with_gains
from dynident.drives.replay import STEP, ClosedLoopReplay, Commands, DriveValues
from dynident.drives.storage import FORMAT, load_drives
from dynident.errors import InputError
from dynident.export import drake as drake_file
from dynident.export.drake import export_drake
from dynident.export.fit_export import export_fit
from dynident.export.identified import IdentifiedModel, PositionControl, joint_actuators, model_of_drives
from dynident.export.mjcf import drives_mjcf, export_mjcf
from dynident.export.python_config import Call, Keyword, python_text, read_python, schema_problems
from dynident.export.simulator_configs import ISAACLAB, MJLAB, export_isaaclab, export_mjlab
from dynident.export.verification import ExportError
from dynident.robot.storage import robot_to_data, yaml_text
from tests.export.made import ARM as URDF, other_values

LEG = "examples/drives/leg.xml"
KP, KD = np.array([20.0, 25.0, 30.0]), np.array([1.0, 1.2, 0.8])
FOUND = {"armature": (0.016, 0.021, 0.034), "damping": (0.21, 0.34, 0.27), "frictionloss": (0.27, 0.16, 0.55)}
BIAS, DELAY = (0.008, -0.004, 0.0), 0.0043


def drives_of(robot, kp=KP, kd=KD):
    """Drives as `identify_drives` gives them, without identifying any."""
    names = [f"{symbol}{k}" for k in (1, 2, 3) for symbol in ("Ia", "Fv", "Fc", "bias")]
    columns = (*FOUND.values(), BIAS)
    values = [float(column[k]) for k in range(3) for column in columns]
    error = {key: [1e-3] * 3 for key in ("rms", "mad")}
    n = len(names) + 1
    data = {
        "format": FORMAT,
        "names": [*names, "delay"],
        "units": [""] * n,
        "values": [*values, DELAY],
        "determined": [True] * n,
        "kp": kp.tolist(),
        "kd": kd.tolist(),
        "replay": {"held_out": False, "logs": ["log"], "before": error, "after": error},
        "notes": [],
        "warnings": [],
        "covariance": np.diag(np.full(n, 1e-8)).tolist(),
        "robot": robot_to_data(with_gains(robot, kp, kd)),
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "drives.yaml").write_text(f"# Drives.\n{yaml_text(data)}")
        return load_drives(folder)


@pytest.fixture(scope="module")
def leg():
    return di.load_robot(LEG)


@pytest.fixture(scope="module")
def drives(leg):
    return drives_of(leg)


@pytest.fixture(scope="module")
def model(drives):
    return model_of_drives(drives)


def replayed(robot, parameters, commands, delay, bias):
    return ClosedLoopReplay(robot, [commands]).positions([DriveValues(parameters, bias, delay)])[0][0]


def sines(seconds=2.0, rate=200.0):
    t = np.arange(0.0, seconds, 1.0 / rate)
    swing = np.sin(2 * np.pi * 1.3 * t[:, None] + np.array([0.0, 1.0, 2.0])) * np.minimum(t, 1.0)[:, None]
    targets = np.array([0.0, 0.8, -1.7]) + 0.2 * swing
    return Commands("sines", t, targets, np.zeros_like(targets), targets, KP, KD)


class TestMjcf:
    @pytest.mark.parametrize("from_scratch", [False, True])
    def test_the_same_commands_give_the_motion_of_the_replay(self, model, leg, from_scratch, tmp_path):
        """By plain steps of MuJoCo, with the delay that the file states."""
        export_mjcf(model.robot, model.values, tmp_path / "leg.xml", control=model.control, from_scratch=from_scratch)
        commands = sines()
        expected = replayed(model.robot, model.values, commands, DELAY, np.array(BIAS))
        own = mujoco.MjModel.from_xml_path(str(tmp_path / "leg.xml"))
        own.opt.timestep, own.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        own.opt.tolerance, own.dof_solref[:] = 1e-10, (2 * STEP, 1.0)
        own.dof_solimp[:] = 0.9999, 0.9999, 0.001, 0.5, 2.0
        data, every = mujoco.MjData(own), round(1.0 / 200.0 / STEP)
        data.qpos[:] = expected[0] + BIAS
        # A velocity at the first sample, as the replay takes it from a parabola through the first ones.
        data.qvel[:] = np.linalg.lstsq(np.vander(commands.time[:6], 3), commands.positions[:6])[0][1]
        data.qpos[:] = np.linalg.lstsq(np.vander(commands.time[:6], 3), commands.positions[:6])[0][2] + BIAS
        found = np.zeros_like(expected)
        for k in range(len(found)):
            found[k] = data.qpos - BIAS
            for step in range(every):
                # The command is held between samples; a step that a new one falls into gets the mean of both.
                begin = (k * every + step) * STEP - DELAY
                share = np.clip(np.ceil(begin * 200.0 - 1e-9) / 200.0 - begin, 0.0, STEP) / STEP
                now, then = (max(0, int(np.floor(at * 200.0 + 1e-9))) for at in (begin, begin + STEP - 1e-12))
                held = commands.targets[[now, min(then, len(found) - 1)]]
                data.ctrl[:] = held[0] if now == then else share * held[0] + (1.0 - share) * held[1]
                mujoco.mj_step(own, data)
        assert np.ptp(found, axis=0).min() > 0.1
        assert np.abs(found - expected).max() < 1e-6

    def test_the_file_has_drives_and_states_what_it_lacks(self, model, tmp_path):
        done = export_mjcf(model.robot, model.values, tmp_path / "leg.xml", note=model.note, control=model.control)
        own = mujoco.MjModel.from_xml_path(str(done.path))
        for name, numbers in FOUND.items():
            assert getattr(own, f"dof_{name}") == pytest.approx(numbers)
        assert own.actuator_gainprm[:, 0] == pytest.approx(KP)
        assert own.actuator_biasprm[:, 1] == pytest.approx(-KP)
        assert own.actuator_biasprm[:, 2] == pytest.approx(-KD)
        text = done.path.read_text()
        assert "delay of commands 0.0043 s" in text
        assert "hip 0.008, thigh -0.004, calf 0" in text
        assert "guesses, as files have them" in text  # the comment of the user

    def test_motors_of_the_file_become_position_actuators_in_their_places(self, leg, tmp_path):
        motors = """<actuator><motor name="first" joint="calf" ctrlrange="-1 1" gear="2"/>
          <motor name="second" joint="hip"/></actuator><sensor><actuatorfrc actuator="second"/></sensor>"""
        text = Path(LEG).read_text().replace("</mujoco>", f"{motors}</mujoco>")
        (tmp_path / "own.xml").write_text(text)
        found = model_of_drives(drives_of(di.load_robot(tmp_path / "own.xml")))
        done = export_mjcf(found.robot, found.values, tmp_path / "leg.xml", control=found.control)
        own = mujoco.MjModel.from_xml_path(str(done.path))
        assert [own.actuator(k).name for k in range(own.nu)] == ["first", "second", "thigh"]
        assert own.actuator_gainprm[:, 0] == pytest.approx(KP[[2, 0, 1]])
        assert any("joint calf: its <motor> became a position actuator" in words for words in done.warnings)

    def test_a_default_that_changes_the_motion_is_found(self, tmp_path):
        text = Path(LEG).read_text().replace("<default>", '<default><position timeconst="0.05"/>')
        (tmp_path / "own.xml").write_text(text)
        found = model_of_drives(drives_of(di.load_robot(tmp_path / "own.xml")))
        with pytest.raises(ExportError, match=r"moves otherwise than in replay, by up to .* --from-scratch"):
            export_mjcf(found.robot, found.values, tmp_path / "leg.xml", control=found.control)
        assert not (tmp_path / "leg.xml").exists()

    def test_a_free_base_is_held_for_the_comparison_alone(self, tmp_path):
        text = Path(LEG).read_text().replace('pos="0 0 0.6">', 'pos="0 0 0.6"><freejoint name="free"/>')
        text = text.replace("</mujoco>", '<keyframe><key qpos="0 0 1 1 0 0 0 0 0 -1"/></keyframe></mujoco>')
        (tmp_path / "own.xml").write_text(text)
        found = model_of_drives(drives_of(di.load_robot(tmp_path / "own.xml")))
        done = export_mjcf(found.robot, found.values, tmp_path / "leg.xml", control=found.control)
        assert any("the same motion as replay" in words for words in done.usage)
        assert mujoco.MjModel.from_xml_path(str(done.path)).nq == 10

    def test_the_model_of_the_verb_is_that_of_the_replay(self, drives):
        text = drives_mjcf(drives)
        own = mujoco.MjModel.from_xml_string(text)
        assert own.dof_armature == pytest.approx(FOUND["armature"])
        assert own.actuator_biasprm[:, 2] == pytest.approx(-KD)
        assert "delay of commands 0.0043 s" in text


class TestConfiguration:
    def test_isaac_lab(self, model, tmp_path):
        done = export_isaaclab(model, tmp_path / "actuators.py", timestep=0.004)
        found = read_python(done.path.read_text())
        group = found["ACTUATORS"]["identified"]
        assert group.name == "DelayedPDActuatorCfg"
        assert group.arguments["joint_names_expr"] == ["hip", "thigh", "calf"]
        assert list(group.arguments["damping"].values()) == list(KD)  # friction of the joint is not among them
        assert list(group.arguments["viscous_friction"].values()) == list(FOUND["damping"])
        assert group.arguments["friction"] == group.arguments["dynamic_friction"]
        assert list(group.arguments["armature"].values()) == list(FOUND["armature"])
        assert (group.arguments["min_delay"], group.arguments["max_delay"]) == (1, 1)
        assert found["JOINT_POSITION_BIAS"] == dict(zip(("hip", "thigh", "calf"), BIAS, strict=True))
        assert any("counted as 4 ms" in words for words in done.lost)

    def test_mjlab(self, model, tmp_path):
        done = export_mjlab(model, tmp_path / "actuators.py", timestep=0.002)
        hip, thigh, _ = read_python(done.path.read_text())["ACTUATORS"]
        assert hip.name == "BuiltinPositionActuatorCfg"
        assert (hip.arguments["stiffness"], hip.arguments["viscous_damping"]) == (KP[0], FOUND["damping"][0])
        assert thigh.arguments["frictionloss"] == FOUND["frictionloss"][1]
        assert (hip.arguments["delay_min_lag"], hip.arguments["delay_max_lag"]) == (2, 2)
        assert "hip" in hip.arguments["target_names_expr"]

    @pytest.mark.parametrize(
        ("write", "module", "kinds"), [(export_isaaclab, "isaaclab", ISAACLAB), (export_mjlab, "mjlab", MJLAB)]
    )
    @pytest.mark.parametrize("actuators", ["implicit", "delayed", "dc_motor"])
    def test_python_runs_the_file(self, write, module, kinds, actuators, model, tmp_path, monkeypatch):
        """With classes that take the keywords of the schema and no others, as dataclasses do."""
        limited = _with_velocity(model)
        done = write(limited, tmp_path / "actuators.py", actuators=actuators)
        package = module if module == "mjlab" else "isaaclab"
        place = f"{package}.actuator" if module == "mjlab" else f"{package}.actuators"
        stub = ModuleType(place)
        for name, fields in kinds.items():
            needed = [(key, object) for key, own in fields.items() if own.required]
            other = [(key, object, None) for key, own in fields.items() if not own.required]
            setattr(stub, name, dataclasses.make_dataclass(name, [*needed, *other], kw_only=True))
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
        monkeypatch.setitem(sys.modules, place, stub)
        names: dict[str, object] = {}
        exec(compile(done.path.read_text(), str(done.path), "exec"), names)
        made = names["ACTUATORS"]
        assert len(list(made)) in (1, 3)

    @pytest.mark.parametrize("write", [export_isaaclab, export_mjlab])
    def test_the_project_itself_takes_it(self, write, model, tmp_path):
        pytest.importorskip("isaaclab.actuators" if write is export_isaaclab else "mjlab.actuator")
        names: dict[str, object] = {}
        exec(write(model, tmp_path / "actuators.py").path.read_text(), names)
        assert names["ACTUATORS"]

    def test_a_dc_motor_needs_its_limits(self, model, tmp_path):
        with pytest.raises(InputError, match=r"joint hip: its largest velocity is not known.*overlay"):
            export_isaaclab(model, tmp_path / "a.py", actuators="dc_motor")
        done = export_isaaclab(_with_velocity(model), tmp_path / "a.py", actuators="dc_motor")
        (group,) = read_python(done.path.read_text())["ACTUATORS"].values()
        assert group.arguments["saturation_effort"] == 30.0
        assert group.arguments["velocity_limit"] == {"hip": 12.0, "thigh": 12.0, "calf": 12.0}
        assert any("actuators of the kind dc_motor have none" in words for words in done.lost)

    def test_names_are_no_patterns(self, model, tmp_path):
        joints = tuple(dataclasses.replace(one, name=f"{one.name}.1") for one in model.robot.joints)
        named = dataclasses.replace(model, robot=dataclasses.replace(model.robot, joints=joints))
        found = read_python(export_isaaclab(named, tmp_path / "a.py").path.read_text())
        assert found["ACTUATORS"]["identified"].arguments["joint_names_expr"][0] == "hip\\.1"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"timestep": 0.0}, "timestep is 0 s"),
            ({"timestep": float("nan")}, "timestep is nan s"),
            ({"actuators": "servo"}, "expected one of implicit, delayed, dc_motor"),
        ],
    )
    def test_bad_input(self, options, message, model, tmp_path):
        with pytest.raises(InputError, match=message):
            export_mjlab(model, tmp_path / "a.py", **options)
        with pytest.raises(InputError, match=r"must end in \.py"):
            export_mjlab(model, tmp_path / "a.txt")

    def test_gains_are_needed(self, leg, tmp_path):
        plain = IdentifiedModel(leg, dict(leg.value_set()), "file")
        with pytest.raises(InputError, match=r"mjlab needs the gains of position controllers.*--kp"):
            export_mjlab(plain, tmp_path / "a.py")

    def test_the_schema_says_what_is_wrong(self):
        schema = {"Cfg": {"names": Keyword("names", True), "size": Keyword("number"), "steps": Keyword("count")}}
        bad = (Call("Cfg", {"size": 1, "steps": -1, "other": 2}), Call("Cgf", {}))
        words = " ".join(schema_problems(bad, schema))
        for expected in ("has no other", "lacks names", "size of Cfg is 1", "steps of Cfg is -1", "Cgf is not known"):
            assert expected in words

    @pytest.mark.parametrize("value", ['it\'s "so"', "a\\b", "ünï", ("one",), (1.5, 2), {"k": [1.0, "x"]}])
    def test_literals_are_read_back(self, value):
        assert read_python(f"X = {python_text(value)}\n")["X"] == value


def _with_velocity(model):
    joints = tuple(
        dataclasses.replace(one, limits=dataclasses.replace(one.limits, velocity=12.0)) for one in model.robot.joints
    )
    return dataclasses.replace(model, robot=dataclasses.replace(model.robot, joints=joints))


class TestUsd:
    @pytest.fixture(autouse=True)
    def _usd(self):
        pytest.importorskip("pxr")

    def test_degrees_and_efforts(self, model, tmp_path):
        from pxr import Usd, UsdPhysics

        from dynident.export.usd import export_usd

        done = export_usd(model, tmp_path / "leg.usda")
        stage = Usd.Stage.Open(str(done.path))
        prim = stage.GetPrimAtPath("/leg/joints/thigh")
        drive = UsdPhysics.DriveAPI(prim, "angular")
        assert drive.GetStiffnessAttr().Get() == pytest.approx(np.radians(KP[1]), rel=1e-6)
        assert drive.GetDampingAttr().Get() == pytest.approx(np.radians(KD[1]), rel=1e-6)
        assert drive.GetMaxForceAttr().Get() == pytest.approx(30.0)
        limit = UsdPhysics.RevoluteJoint(prim).GetUpperLimitAttr().Get()
        assert limit == pytest.approx(np.degrees(3.5), rel=1e-6)

        def number(name):
            return prim.GetAttribute(name).Get()

        assert number("physxJoint:armature") == pytest.approx(FOUND["armature"][1], rel=1e-6)
        assert number("physxJoint:jointFriction") == pytest.approx(FOUND["frictionloss"][1], rel=1e-6)
        viscous = number("physxJointAxis:angular:viscousFrictionCoefficient")
        assert np.degrees(viscous) == pytest.approx(FOUND["damping"][1], rel=1e-6)
        assert "delay of commands, 4.3 ms" in stage.GetRootLayer().documentation

    def test_bodies_and_joints_have_the_robots_dynamics(self, tmp_path):
        """Mass matrix and gravity at the zero position, from what a reader of USD finds alone."""
        from dynident.export.usd import export_usd

        (tmp_path / "arm.urdf").write_text(URDF)
        robot = di.load_robot(tmp_path / "arm.urdf")
        values = other_values(robot)
        export_usd(IdentifiedModel(robot, values, "made"), tmp_path / "arm.usda")
        M, gravity, armature = _dynamics_of_stage(tmp_path / "arm.usda", robot)
        zero = np.zeros(len(robot.joint_names))
        expected = di.mass_matrix(robot, zero, values=values)
        assert np.abs(M + np.diag(armature) - expected).max() < 1e-6 * np.abs(expected).max()
        expected = di.gravity_torque(robot, zero, values=values)
        assert np.abs(gravity - expected).max() < 1e-6 * np.abs(expected).max()

    def test_a_layer_changes_joints_of_the_users_file_alone(self, model, tmp_path):
        from pxr import Usd, UsdGeom

        from dynident.export.usd import export_usd

        plain = dataclasses.replace(model, control=None, values=dict(model.robot.value_set()))
        export_usd(plain, tmp_path / "own.usda")
        (tmp_path / "deep").mkdir()
        before = (tmp_path / "own.usda").read_bytes()
        done = export_usd(model, tmp_path / "deep/new.usda", source=tmp_path / "own.usda")
        stage = Usd.Stage.Open(str(done.path))
        assert (tmp_path / "own.usda").read_bytes() == before
        assert stage.GetDefaultPrim().GetName() == "leg"
        armature = stage.GetPrimAtPath("/leg/joints/calf").GetAttribute("physxJoint:armature").Get()
        assert armature == pytest.approx(FOUND["armature"][2], rel=1e-6)
        assert "def " not in done.path.read_text()
        assert UsdGeom.Xform(stage.GetPrimAtPath("/leg/calf"))

    def test_bad_input(self, model, tmp_path):
        from dynident.export.usd import export_usd

        with pytest.raises(InputError, match="no such file; give the USD of the robot"):
            export_usd(model, tmp_path / "a.usda", source=tmp_path / "no.usd")
        joints = tuple(dataclasses.replace(one, name=f"own_{one.name}") for one in model.robot.joints)
        other = dataclasses.replace(model, robot=dataclasses.replace(model.robot, joints=joints))
        export_usd(other, tmp_path / "other.usda")
        with pytest.raises(ExportError, match="has no joint hip; its revolute and prismatic joints: own_hip"):
            export_usd(model, tmp_path / "a.usda", source=tmp_path / "other.usda")
        (tmp_path / "broken.usda").write_text("no USD")
        with pytest.raises(ExportError, match="USD cannot read it"):
            export_usd(model, tmp_path / "a.usda", source=tmp_path / "broken.usda")
        with pytest.raises(InputError, match=r"must end in \.usda"):
            export_usd(model, tmp_path / "a.xml")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.usda", "other.usda"]


def _dynamics_of_stage(path, robot):
    """Mass matrix without rotors, gravity torque and armature from world poses, masses and joint frames of a stage."""
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    cache = UsdGeom.XformCache()

    def pose(prim):
        matrix = np.array(cache.GetLocalToWorldTransform(prim))  # rows
        return matrix[:3, :3].T, matrix[3, :3]

    def turned(quaternion):
        w, (x, y, z) = quaternion.GetReal(), quaternion.GetImaginary()
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )

    joints = {prim.GetName(): prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)}
    axes, parents, children, armature = [], {}, [], []
    for name in robot.joint_names:
        joint = UsdPhysics.Joint(joints[name])
        (above,), (below,) = joint.GetBody0Rel().GetTargets(), joint.GetBody1Rel().GetTargets()
        rotation, origin = pose(stage.GetPrimAtPath(above))
        rotation2, origin2 = pose(stage.GetPrimAtPath(below))
        axis = rotation @ turned(joint.GetLocalRot0Attr().Get())[:, 2]
        place = origin + rotation @ np.array(joint.GetLocalPos0Attr().Get())
        assert place == pytest.approx(origin2 + rotation2 @ np.array(joint.GetLocalPos1Attr().Get()), abs=1e-6)
        assert axis == pytest.approx(rotation2 @ turned(joint.GetLocalRot1Attr().Get())[:, 2], abs=1e-6)
        axes.append((axis, place, joints[name].IsA(UsdPhysics.PrismaticJoint)))
        parents[str(below)] = str(above)
        children.append(str(below))
        armature.append(joints[name].GetAttribute("physxJoint:armature").Get())
    n = len(children)
    M, gravity = np.zeros((n, n)), np.zeros(n)
    for body in children:
        prim = stage.GetPrimAtPath(body)
        mass = UsdPhysics.MassAPI(prim)
        rotation, origin = pose(prim)
        axis = rotation @ turned(mass.GetPrincipalAxesAttr().Get())
        inertia = axis @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axis.T
        center = origin + rotation @ np.array(mass.GetCenterOfMassAttr().Get())
        linear, angular, link = np.zeros((3, n)), np.zeros((3, n)), body
        while link in parents:
            k = children.index(link)
            direction, place, slides = axes[k]
            linear[:, k] = direction if slides else np.cross(direction, center - place)
            angular[:, k] = 0.0 if slides else direction
            link = parents[link]
        weight = mass.GetMassAttr().Get()
        M += weight * linear.T @ linear + angular.T @ inertia @ angular
        gravity -= weight * linear.T @ robot.gravity
    return M, gravity, np.array(armature)


class TestDrake:
    def test_drake_finds_the_rotors_and_the_ratio(self, tmp_path):
        pytest.importorskip("pydrake")
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        (tmp_path / "arm.urdf").write_text(URDF.replace("meshes/upper.stl", ""))
        robot = di.load_robot(tmp_path / "arm.urdf")
        ratios = np.array([80.0, -50.0, 1.0])
        robot = dataclasses.replace(robot, drive=dataclasses.replace(robot.drive, gear_ratios=ratios))
        values = other_values(robot)
        done = export_drake(robot, values, tmp_path / "drake.urdf")
        assert done.agreement.reader == "Drake"
        assert done.agreement.relative < 1e-12
        plant = MultibodyPlant(0.0)
        Parser(plant).AddModels(str(done.path))
        plant.Finalize()
        drives = {
            str(plant.get_joint_actuator(k).joint().name()): plant.get_joint_actuator(k)
            for k in plant.GetJointActuatorIndices()
        }
        for k, name in enumerate(robot.joint_names):
            drive = drives[name]
            assert drive.default_gear_ratio() == abs(ratios[k])
            reflected = drive.default_rotor_inertia() * drive.default_gear_ratio() ** 2
            assert reflected == pytest.approx(values[f"Ia{k + 1}"], rel=1e-12)
        context = plant.CreateDefaultContext()
        q = np.array([0.3, -0.4, 0.1])
        order = [plant.GetJointByName(name).position_start() for name in robot.joint_names]
        plant.SetPositions(context, q[np.argsort(order)])
        M = plant.CalcMassMatrix(context)[np.ix_(order, order)]
        expected = di.mass_matrix(robot, q, values=values)
        assert np.abs(M - expected).max() < 1e-12 * np.abs(expected).max()
        assert "Kept by hand: do not lose this" in done.path.read_text()
        assert done.path.read_text().count("<mechanicalReduction>80</mechanicalReduction>") == 1

    def test_without_drake_the_file_is_read_by_dynident(self, model, tmp_path, monkeypatch):
        monkeypatch.setattr(drake_file, "import_module", _absent)
        done = export_drake(model.robot, model.values, tmp_path / "leg.urdf")
        assert done.agreement.reader == "dynident"
        assert any("Drake is not installed" in words for words in done.usage)
        assert any("Coulomb friction Fc1, Fc2, Fc3" in words for words in done.lost)
        monkeypatch.setattr(
            drake_file, "_TRANSMISSION", drake_file._TRANSMISSION.replace("{}</actuator>", "</actuator>")
        )
        with pytest.raises(ExportError, match="torque differs"):
            export_drake(model.robot, model.values, tmp_path / "leg.urdf")


def _absent(name):
    raise ImportError(name)


class TestEveryFormat:
    def test_of_drives(self, drives, tmp_path):
        pytest.importorskip("pxr")
        names = {
            "urdf": "a.urdf",
            "mjcf": "a.xml",
            "yaml": "a.yaml",
            "isaaclab": "i.py",
            "mjlab": "m.py",
            "usd": "a.usda",
            "drake": "d.urdf",
        }
        done = export_fit(drives, **{form: tmp_path / name for form, name in names.items()})
        assert [one.form for one in done.files] == [
            "URDF",
            "MJCF",
            "YAML",
            "Isaac Lab",
            "mjlab",
            "USD",
            "Drake URDF",
        ]
        assert done.bodies is None
        assert 'damping="0.34" friction="0.16"' in (tmp_path / "a.urdf").read_text()
        again = di.load_robot(tmp_path / "a.yaml").value_set()
        assert (again["Ia3"], again["Fc3"]) == (FOUND["armature"][2], FOUND["frictionloss"][2])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"c": "code"}, "--c needs a fit of identify"),
            ({"prior": "plausible", "mjcf": "a.xml"}, "--prior needs a fit of identify"),
            ({"actuators": "implicit", "mjcf": "a.xml"}, "--actuators has no meaning without --isaaclab or --mjlab"),
            ({"timestep": 0.01, "usd": "a.usda"}, "--timestep has no meaning without --isaaclab or --mjlab"),
            ({"urdf": "a.urdf", "drake": "b.urdf", "source": LEG}, "export --urdf and --drake one after the other"),
            ({"urdf": "a.urdf", "drake": "a.urdf"}, "is also the file of --urdf"),
            ({}, "export needs at least one of --urdf F, .*--drake F"),
        ],
    )
    def test_bad_input(self, options, message, drives, tmp_path):
        places = {key: tmp_path / x if key in ("mjcf", "urdf", "drake", "usd") else x for key, x in options.items()}
        with pytest.raises(InputError, match=message):
            export_fit(drives, **places)
        assert not list(tmp_path.iterdir())

    def test_a_torque_offset_of_a_fit_is_the_bias_of_its_controller(self, leg):
        from dynident.export.identified import control_of

        robot = with_gains(leg, KP, KD)
        control = control_of(robot, {"Fo1": 0.4, "Fo3": -0.3}, None)
        assert control is not None
        assert control.bias == pytest.approx([0.4 / KP[0], 0.0, -0.3 / KP[2]])
        model = IdentifiedModel(robot, {"Ia1": 0.1, "Fo1": 0.4}, "made", control=control)
        joints, lost = joint_actuators(model, "mjlab")
        assert (joints[0].armature, joints[0].bias, lost) == (0.1, 0.4 / KP[0], ())

    def test_gains_may_be_given(self, drives, tmp_path):
        export_fit(drives, mjlab=tmp_path / "m.py", gains=(2.0 * KP, KD))
        hip = read_python((tmp_path / "m.py").read_text())["ACTUATORS"][0]
        assert hip.arguments["stiffness"] == 2.0 * KP[0]

    def test_position_control_is_read_only(self):
        control = PositionControl(KP.copy(), KD.copy(), np.zeros(3))
        with pytest.raises(ValueError, match="read-only"):
            control.kp[0] = 1.0
