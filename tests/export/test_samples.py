"""Sampled models as files, events of simulators, and the verb that draws them."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import mujoco
import numpy as np
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from dynident.drives.sampling import sample_models
from dynident.drives.storage import save_drives
from dynident.errors import InputError
from dynident.export import samples as written_samples
from dynident.export.events import log_cholesky
from dynident.export.python_config import read_python
from dynident.export.samples import sample_model, write_samples
from dynident.export.verification import ExportError
from dynident.robot.parameters import LINK_SYMBOLS, from_classical
from dynident.robot.physicality import pseudo_inertia
from tests.drives.test_sampling import _robot, _torque_log
from tests.export.test_simulators import DELAY, FOUND, LEG, drives_of

VALIDATION = "examples/drives/validation.csv.gz"


@pytest.fixture(scope="module")
def drives():
    return drives_of(di.load_robot(LEG), np.full(3, 20.0), np.full(3, 1.0))


@pytest.fixture(scope="module")
def models(drives):
    return sample_models(drives, 12, seed=3)


@pytest.fixture(scope="module")
def fit():
    return di.identify(_robot(), _torque_log(_robot()), friction="basic", check="off")


@pytest.fixture(scope="module")
def bodies(fit):
    return sample_models(fit, 30, seed=1)


class TestFiles:
    def test_every_model_has_the_numbers_of_its_sample(self, models, tmp_path):
        done = write_samples(models, tmp_path / "out")
        assert done.models == 12
        table = np.load(tmp_path / "out/samples.npz")
        assert np.array_equal(table["values"], models.values)
        assert list(table["names"]) == list(models.names)
        for k in (0, 7, 11):
            own = mujoco.MjModel.from_xml_path(str(tmp_path / f"out/models/model_{k:04d}.xml"))
            assert own.dof_armature == pytest.approx([models[f"Ia{j}"][k] for j in (1, 2, 3)], rel=1e-12)
            assert own.dof_frictionloss == pytest.approx([models[f"Fc{j}"][k] for j in (1, 2, 3)], rel=1e-12)
            assert own.actuator_gainprm[:, 0] == pytest.approx([20.0] * 3)
            text = (tmp_path / f"out/models/model_{k:04d}.xml").read_text()
            assert f"delay of commands {models['delay'][k]:.6g} s" in text
            assert "guesses, as files have them" in text  # the user's own file

    def test_bodies_of_a_fit(self, bodies, tmp_path):
        write_samples(bodies, tmp_path, form="mjcf")
        one = mujoco.MjModel.from_xml_path(str(tmp_path / "models/model_0005.xml"))
        robot = bodies.robot
        for joint in robot.joints:
            assert one.body(joint.link).mass[0] == pytest.approx(bodies[f"M{joint.number}"][5], rel=1e-9)

    def test_ranges_and_seed(self, models, tmp_path):
        write_samples(models, tmp_path, form="none", level=0.8)
        data = yaml.safe_load((tmp_path / "ranges.yaml").read_text())
        low, high = np.quantile(models["Fv2"], [0.1, 0.9])
        assert (data["parameters"]["Fv2"]["low"], data["parameters"]["Fv2"]["high"]) == pytest.approx((low, high))
        assert (data["seed"], data["samples"], data["level"]) == (3, 12, 0.8)
        assert not list((tmp_path / "models").iterdir())

    def test_an_earlier_run_is_replaced_and_other_files_are_not(self, models, drives, tmp_path):
        write_samples(models, tmp_path)
        write_samples(sample_models(drives, 3), tmp_path, form="urdf")
        assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
            f"model_{k:04d}.urdf" for k in range(3)
        ]
        (tmp_path / "models/mine.xml").write_text("")
        with pytest.raises(InputError, match=r"has mine\.xml, which dynident did not write"):
            write_samples(models, tmp_path)
        assert (tmp_path / "models/model_0002.urdf").exists()

    def test_a_model_with_other_numbers_is_refused(self, models, tmp_path, monkeypatch):
        monkeypatch.setattr(written_samples, "_read_mjcf", lambda path: ({"hip": 1.0}, {}))
        with pytest.raises(ExportError, match=r"model_0001\.xml: Fv1 is not read back as"):
            write_samples(models, tmp_path)
        assert not (tmp_path / "models/model_0001.xml").exists()

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"form": "sdf"}, "expected one of mjcf, urdf, none"), ({"timestep": -1.0}, "timestep is -1 s")],
    )
    def test_bad_input(self, options, message, models, tmp_path):
        with pytest.raises(InputError, match=message):
            write_samples(models, tmp_path, **options)
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot be written"):
            write_samples(models, tmp_path / "file")

    def test_the_center_is_the_estimate(self, models, drives):
        center = sample_model(models, None)
        assert center.values["Ia2"] == FOUND["armature"][1]
        assert center.control is not None
        assert center.control.delay == DELAY


class TestEvents:
    def test_log_cholesky_parameters_give_the_bodies_back(self):
        rng = np.random.default_rng(0)
        center = from_classical(2.0, [0.1, -0.05, 0.2], np.diag([0.02, 0.03, 0.025]))
        chi = np.array(
            [
                from_classical(rng.uniform(1, 3), rng.uniform(-0.2, 0.2, 3), np.diag(rng.uniform(0.02, 0.03, 3)))
                for _ in range(5)
            ]
        )
        for own, (alpha, d1, d2, d3, s12, s13, s23, t1, t2, t3) in zip(chi, log_cholesky(center, chi), strict=True):
            U = np.exp(alpha) * np.array(
                [[np.exp(d1), s12, s13, t1], [0, np.exp(d2), s23, t2], [0, 0, np.exp(d3), t3], [0, 0, 0, 1]]
            )
            assert U @ pseudo_inertia(center) @ U.T == pytest.approx(pseudo_inertia(own), rel=1e-9, abs=1e-12)
        assert log_cholesky(center, 1.21 * center[None])[0] == pytest.approx([np.log(1.1)] + [0.0] * 9, abs=1e-12)

    def test_joints(self, models, tmp_path):
        write_samples(models, tmp_path, form="none", timestep=0.002)
        found = read_python((tmp_path / "events_mjlab.py").read_text())
        ranges = dict(zip(models.names, models.ranges(0.9).tolist(), strict=True))
        term = found["EVENTS"]["armature"].arguments
        assert str(term["func"]) == "dr.joint_armature"
        assert term["params"]["ranges"]["thigh"] == tuple(ranges["Ia2"])
        assert (found["DELAY_MIN_LAG"], found["DELAY_MAX_LAG"]) == (2, 3)
        assert found["JOINT_POSITION_BIAS"]["hip"] == tuple(ranges["bias1"])
        found = read_python((tmp_path / "events_isaaclab.py").read_text())
        low, high = found["EVENTS"]["friction_calf"].arguments["params"]["friction_distribution_params"]
        for name, value in (("Fc3", FOUND["frictionloss"][2]), ("Fv3", FOUND["damping"][2])):
            assert low * value <= ranges[name][0] * (1 + 1e-12)
            assert high * value >= ranges[name][1] * (1 - 1e-12)

    def test_bodies(self, bodies, tmp_path):
        write_samples(bodies, tmp_path, form="none")
        mjlab = read_python((tmp_path / "events_mjlab.py").read_text())["EVENTS"]
        isaac = read_python((tmp_path / "events_isaaclab.py").read_text())["EVENTS"]
        joint = bodies.robot.joints[-1]
        chi = np.array([bodies[f"{symbol}{joint.number}"] for symbol in LINK_SYMBOLS]).T
        body = (
            f"body_{joint.link}" if f"body_{joint.link}" in mjlab else next(k for k in mjlab if k.startswith("body_"))
        )
        low, high = mjlab[body].arguments["params"]["alpha_range"]
        assert low < 0.0 < high
        scales = [own for key, own in isaac.items() if key.startswith("mass_")]
        assert scales
        low, high = scales[-1].arguments["params"]["mass_distribution_params"]
        center = bodies.mapping()[f"M{joint.number}"]
        assert (low, high) == pytest.approx(tuple(np.quantile(chi[:, 9] / center, [0.05, 0.95])))

    @pytest.mark.parametrize("project", ["isaaclab", "mjlab"])
    def test_python_runs_them(self, project, bodies, tmp_path, monkeypatch):
        write_samples(bodies, tmp_path, form="none")
        calls = []

        def term(**arguments):
            calls.append(arguments)
            return arguments

        names = {
            "isaaclab": ["isaaclab", "isaaclab.envs", "isaaclab.envs.mdp", "isaaclab.managers"],
            "mjlab": [
                "mjlab",
                "mjlab.envs",
                "mjlab.envs.mdp",
                "mjlab.managers",
                "mjlab.managers.event_manager",
                "mjlab.managers.scene_entity_config",
            ],
        }[project]
        made = {name: ModuleType(name) for name in names}
        for name, module in made.items():
            monkeypatch.setitem(sys.modules, name, module)
            parent, _, last = name.rpartition(".")
            if parent:
                setattr(made[parent], last, module)
            module.EventTermCfg = module.SceneEntityCfg = term
        functions = ModuleType("functions")
        for key in (
            "randomize_joint_parameters",
            "randomize_rigid_body_mass",
            "randomize_rigid_body_com",
            "joint_armature",
            "joint_damping",
            "joint_friction",
            "pseudo_inertia",
        ):
            setattr(functions, key, key)
        if project == "mjlab":
            made["mjlab.envs.mdp"].dr = functions
        else:
            for key in vars(functions):
                if not key.startswith("_"):
                    setattr(made["isaaclab.envs.mdp"], key, key)
        found: dict[str, object] = {}
        exec((tmp_path / f"events_{project}.py").read_text(), found)
        assert calls
        assert found["EVENTS"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("drives")
    save_drives(drives_of(di.load_robot(LEG), np.full(3, 20.0), np.full(3, 1.0)), place)
    return place


class TestVerb:
    def test_json(self, place, tmp_path, capsys):
        words = ["sample", str(place), "-n", "5", "--validation", VALIDATION, "-o", str(tmp_path / "out"), "--json"]
        assert main(words) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["models"] == 5
        assert 0.0 <= answer["coverage"]["inside"] <= 1.0
        assert set(answer["ranges"]) >= {"Ia1", "Fv1", "Fc1", "bias1", "delay"}
        assert (tmp_path / "out/models/model_0004.xml").is_file()
        coverage = yaml.safe_load((tmp_path / "out/ranges.yaml").read_text())["coverage"]
        assert coverage["inside"] == answer["coverage"]["inside"]

    def test_the_way_to_the_robot_holds_in_another_folder(self, place, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["sample", str(place), "-n", "2", "-o", "out", "--seed", "7"]) == 0
        out = capsys.readouterr().out
        assert "2 samples of leg, seed 7" in out
        assert "read back by MuJoCo" in " ".join(out.split())

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ([], "needs a folder to write to"),
            (["-n", "0", "-o", "out"], "n is 0"),
            (["--level", "2", "-o", "out"], "level is 2"),
            (["--widen", "-1", "-o", "out"], "widen is -1"),
            (["--format", "sdf", "-o", "out"], "sdf"),
            (["--timestep", "0", "-o", "out"], "timestep is 0 s"),
            (["--validation", "no.csv"], "no.csv"),
        ],
    )
    def test_bad_input(self, words, message, place, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["sample", str(place), *words]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert "Traceback" not in captured.err
        assert main(["sample", str(place), *words, "--json"]) == 2
        assert "error" in json.loads(capsys.readouterr().out)

    def test_exports_of_drives(self, place, tmp_path, capsys):
        pytest.importorskip("pxr")
        words = ["export", str(place), "--mjcf", str(tmp_path / "a.xml"), "--mjlab", str(tmp_path / "m.py"), "--json"]
        assert main([*words, "--usd", str(tmp_path / "a.usda"), "--kp", "30"]) == 0
        files = json.loads(capsys.readouterr().out)["files"]
        assert [one["form"] for one in files] == ["MJCF", "mjlab", "USD"]
        assert "stiffness=30.0" in (tmp_path / "m.py").read_text()
        assert main(["export", str(place), "--urdf", str(tmp_path / "a.urdf"), "--kp", "30"]) == 2
        assert "--kp has no meaning without --mjcf or --isaaclab" in capsys.readouterr().err
