"""Exported C is what the library computes: every function, every friction term, both precisions, without warnings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.jit.program import LEAVES
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, FrictionLaw
from dynident.dynamics.terms.term import MotionSamples
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.prediction import TorqueModel
from dynident.export import CExport, ExportError, c_export as writing, check_c, export_c
from dynident.export.c_export import compare_with_library, find_compiler
from dynident.export.c_files import CCode
from dynident.export.c_functions import record_functions
from dynident.export.c_model import model_to_export
from tests.export.c_library import CLibrary, with_everything
from tests.loops import FOUR_BAR, load
from tests.robots import PinocchioOracle, random_urdf

compiling = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
WRIST = {"q1": 0.2, "q2": 0.3, "q3": 0.4, "q4": 0.1}  # what is locked of a TX40 to leave its coupled wrist


@pytest.fixture
def own_urdf(tmp_path):
    path = tmp_path / "own.urdf"
    path.write_text(random_urdf(1))
    return path


@compiling
@pytest.mark.parametrize(
    ("name", "number"),
    [*((name, "double") for name in ("ur10e", "panda", "tx40", "sr400", "puma560")), ("sr400", "float")],
)
def test_bundled_robots_agree(name, number, tmp_path):
    export = export_c(di.load_robot(name), tmp_path, number=number)
    assert export.agreement.passed
    assert export.agreement.complaints == ""
    assert export.agreement.worst < (1e-13 if number == "double" else 1e-6)
    assert set(export.agreement.deviations) >= set(export.counts)
    assert ("joint_torque" in export.agreement.deviations) == (name in ("tx40", "sr400"))


@compiling
@pytest.mark.parametrize(("name", "number"), [("wrist", "double"), ("wrist", "float"), ("cylindrical", "float")])
def test_every_friction_term_agrees_along_a_motion(name, number, tmp_path):
    robot = di.load_robot("tx40").lock(**WRIST) if name == "wrist" else di.load_robot(name)
    export = export_c(with_everything(robot), tmp_path, number=number, name="full")
    assert export.agreement.passed
    assert export.agreement.complaints == ""
    CLibrary(export)  # without a warning, conversions included


@compiling
@pytest.mark.parametrize("number", ["double", "float"])
def test_a_law_may_use_every_function(number, tmp_path, monkeypatch):
    def formula(c, x, scale):
        f, share = x.functions, x.velocity / x.unit / scale
        size = f.log(1.0 + abs(share)) + f.exp(-(share * share)) * f.cos(x.position)
        return c * (f.sign(x.velocity) * size + x.sign * f.sin(x.position) + f.tanh(share))

    words = {"words": "made up", "formula": "made up", "helps": "never"}
    law = FrictionLaw("made", {"": formula}, "made up", **words, dissipation="dry", scale="velocity")
    monkeypatch.setitem(FRICTION_LAWS, "made", law)
    model = with_everything(di.load_robot("pendulum-2"), (*resolve_terms("rigid,Fv"), FrictionTerm("made", 0.2)))
    export = export_c(model, tmp_path, number=number, name="made")
    assert export.agreement.passed
    assert "sign_of(" in export.files[1].read_text()
    CLibrary(export)


@compiling
def test_a_robot_of_ones_own_against_pinocchio(own_urdf, tmp_path):
    robot = di.load_robot(own_urdf)
    model = TorqueModel(robot, resolve_terms("rigid"), di.parameters(robot, "rigid"))
    library = CLibrary(export_c(model, tmp_path / "c", name="own"))
    oracle = PinocchioOracle(own_urdf.read_text(), robot.joint_names)
    n = len(robot.joint_names)
    rng = np.random.default_rng(2)
    q, dq, ddq = rng.normal(size=(3, 1, n))
    beta = model_to_export(model).beta
    tau = library.call("inverse_dynamics", q, dq, ddq, beta, size=n)
    np.testing.assert_allclose(tau, oracle.torque(q, dq, ddq)[0], atol=1e-10)
    tau = library.call("inverse_dynamics_standard", q, dq, ddq, model.chi, size=n)
    np.testing.assert_allclose(tau, oracle.torque(q, dq, ddq)[0], atol=1e-10)
    M = library.call("mass_matrix", q, beta, size=n * n).reshape(n, n)
    np.testing.assert_allclose(M, oracle.mass(q)[0], atol=1e-10)
    bias = library.call("bias", q, dq, beta, size=n)
    np.testing.assert_allclose(bias, oracle.torque(q, dq, 0 * ddq)[0], atol=1e-10)
    gravity = library.call("gravity", q, beta, size=n)
    np.testing.assert_allclose(gravity, oracle.torque(q, 0 * dq, 0 * ddq)[0], atol=1e-10)


@compiling
def test_springs_wind_up_slip_and_are_forgotten(tmp_path):
    robot = di.load_robot("pendulum-1")
    terms = resolve_terms("rigid,Fv,stop(0.001)")
    model = TorqueModel(robot, terms, np.array([*np.zeros(10), 0.0, 5.0]))
    library = CLibrary(export_c(model, tmp_path, name="pendulum"))
    p = library.values("base", len(model_to_export(model).beta))
    memory, still = library.memory(), np.zeros(1)
    path = np.array([0.7, 0.7005, 0.703, 0.7025, 0.69, 0.6902])
    wound = [0.0, 0.5, 1.0, 0.5, -1.0, -0.8]

    def torque(q):
        library.call("update", memory, np.array([q]))
        return library.call("friction", np.array([q]), still, still, memory, p, size=1)[0]

    np.testing.assert_allclose([torque(q) for q in path], 5.0 * np.array(wound), atol=1e-10)
    library.call("init", memory)
    assert torque(2.0) == 0.0


@compiling
def test_parameters_can_be_swapped(tmp_path):
    robot = di.load_robot("ur10e")
    library, model = CLibrary(export_c(robot, tmp_path)), model_to_export(robot)
    np.testing.assert_array_equal(library.values("base", len(model.beta)), model.beta)
    np.testing.assert_array_equal(library.values("standard", len(model.chi)), model.chi)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 6))
    other = rng.normal(size=len(model.beta))
    W = library.call("regressor", q, dq, ddq, size=6 * len(other)).reshape(6, -1)
    tau = library.call("inverse_dynamics", q, dq, ddq, other, size=6)
    np.testing.assert_allclose(W @ other, tau, atol=1e-12 * np.abs(tau).max())


@compiling
def test_an_estimate_is_exported_as_it_predicts(tmp_path):
    robot = di.load_robot("examples/demo/arm.yaml")
    fit = di.identify(robot, [di.read_log("examples/demo/fourier_1.csv.gz", robot)], friction="stop(0.0003)@1|2,load")
    export = export_c(fit, tmp_path, name="arm")
    assert export.agreement.passed
    assert check_c(fit, tmp_path, name="arm").deviations == export.agreement.deviations
    library, p = CLibrary(export), model_to_export(fit).values("base")
    np.testing.assert_array_equal(p[: len(fit.beta)], fit.beta)
    rng = np.random.default_rng(4)
    q, dq, ddq = np.cumsum(rng.normal(0, 2e-4, (50, 6)), axis=0), rng.normal(size=(50, 6)), rng.normal(size=(50, 6))
    memory, found = library.memory(), []
    for sample in zip(q, dq, ddq, strict=True):
        library.call("update", memory, sample[0])
        found.append(library.call("inverse_dynamics", *sample, memory, p, size=6))
    expected = fit.parameter_model.start().torque(MotionSamples.of_stretch(q, dq, ddq))
    np.testing.assert_allclose(np.array(found), expected, atol=1e-11 * np.abs(expected).max())
    if fit.undetermined:
        assert fit.undetermined[0] in export.files[0].read_text()


@compiling
@pytest.mark.parametrize("function", ["gravity", "friction_standard", "mass_matrix", "regressor", "update"])
def test_a_fault_in_any_function_is_noticed(function):
    model = model_to_export(with_everything(di.load_robot("pendulum-2"), "rigid,Ia,Fv,Fc,Fo,stop(0.001)"))
    code = CCode("arm", "double", model, record_functions(model))
    before, name, after = code.source().partition(f"void arm_{function}(")
    body, end, rest = after.partition("\n}\n")
    old, new = ("? q[i]", "? 1.000001 * q[i]") if function == "update" else ("] = x", "] = 1.000001 * x")
    wrong = body.replace(old, new, 1)
    assert wrong != body
    agreement = compare_with_library(code, code.header(""), before + name + wrong + end + rest, find_compiler())
    assert not agreement.passed


@compiling
def test_wrong_code_is_not_written(tmp_path, monkeypatch):
    robot = di.load_robot("pendulum-2")
    good = CCode.source
    monkeypatch.setattr(CCode, "source", lambda self: good(self).replace("tau[0] = ", "tau[0] = 2.0 * "))
    with pytest.raises(ExportError, match=r"is wrong and was not written.*largest deviation 1.0e\+00"):
        export_c(robot, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    monkeypatch.setattr(CCode, "source", lambda self: "int main(")
    with pytest.raises(ExportError, match="failed on exported code"):
        export_c(robot, tmp_path / "c")


def test_without_a_compiler_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_compiler", lambda: None)
    export = export_c(di.load_robot("pendulum-2"), tmp_path)
    assert export.agreement is None
    assert "no C compiler was found" in export.table()
    assert "no C compiler was found" in export.files[0].read_text()
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in export.files}
    assert {"pendulum_2.c", "pendulum_2.h"} < {path.name for path in export.files}


def test_a_compiler_is_named_or_found(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler() is None
    with pytest.raises(InputError, match="there is no such file"):
        check_c(di.load_robot("pendulum-1"), "nowhere", name="x")


def test_base_parameters_cost_less():
    model = model_to_export(di.load_robot("ur10e"))
    functions = {function.name: function for function in record_functions(model)}
    counts = CCode("ur10e", "double", model, tuple(functions.values())).counts
    for name in ("inverse_dynamics", "gravity", "bias", "mass_matrix", "regressor"):
        assert counts[name].multiplications < counts[f"{name}_standard"].multiplications
    own, program = counts["inverse_dynamics"], functions["inverse_dynamics"].program
    whole = own.additions + own.multiplications + own.divisions + own.functions + own.signs
    assert whole == sum(op not in LEAVES for op, _, _ in program.instructions) == program.n_operations
    assert own.functions == 10  # sine and cosine of five joints: the first turns about gravity


def test_numeric_loops_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"closed numerically.*straight-line code cannot search"):
        export_c(load(FOUR_BAR, tmp_path), tmp_path / "c")


def test_bad_arguments_are_named(tmp_path):
    robot = di.load_robot("pendulum-1")
    with pytest.raises(UnknownNameError, match=r"C number type 'half'.*double, float"):
        export_c(robot, tmp_path, number="half")
    with pytest.raises(InputError, match="name '1st' cannot begin names in C"):
        export_c(robot, tmp_path, name="1st")
    with pytest.raises(InputError, match="list cannot be exported; expected a Fit"):
        export_c([], tmp_path)
    model = with_everything(robot, "rigid,Fv,load")
    with pytest.raises(InputError, match="term load is linear around a reference; give the 10 parameters"):
        export_c(TorqueModel(robot, model.terms, model.chi), tmp_path)
    with pytest.raises(InputError, match="not a finite number"):
        export_c(TorqueModel(robot, resolve_terms("Fv"), np.array([np.nan])), tmp_path)


def test_files_of_others_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_compiler", lambda: None)
    robot = di.load_robot("pendulum-1")
    export_c(robot, tmp_path)
    export_c(robot, tmp_path)  # its own files may be replaced
    (tmp_path / "pendulum_1.c").write_text("int precious;")
    with pytest.raises(InputError, match=r"pendulum_1\.c: exists and was not written by this export"):
        export_c(robot, tmp_path)
    assert (tmp_path / "pendulum_1.c").read_text() == "int precious;"
    with pytest.raises(InputError, match="is a file; give the name of a folder"):
        export_c(robot, tmp_path / "pendulum_1.c")


def test_both_files_or_none(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_compiler", lambda: None)
    good = Path.open

    def full_disk(path, *args, **kwargs):
        if path.suffix == ".c":
            raise OSError(28, "No space left on device")
        return good(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        export_c(di.load_robot("pendulum-1"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_held_motor_leaves_the_mass_matrix_out(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_compiler", lambda: None)
    export: CExport = export_c(di.load_robot("tx40").lock(q6=0.0), tmp_path)
    assert "mass_matrix" not in export.counts
    assert "inverse_dynamics" in export.counts
    assert "No mass matrix" in export.table()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_header_is_good_for_cpp(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_compiler", lambda: None)
    export = export_c(with_everything(di.load_robot("pendulum-2")), tmp_path, name="arm")
    command = ["g++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c++"]
    assert subprocess.run([*command, str(export.files[0])], check=False).returncode == 0
