"""C code against the library: compile it, run it on random states along a motion, compare every function."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from dynident.arrays import Array
from dynident.display import brief
from dynident.dynamics.evaluate import gravity_torque, inverse_dynamics, joint_torque, mass_matrix, regressor
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import along_terms, resolve_terms, state_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.linearized import Zero
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.prediction import TorqueModel
from dynident.export.c_compensation import Compensation, compensation_limits, motion_of_log, random_motion
from dynident.export.c_files import MARK, CCode, counts_table
from dynident.export.c_functions import INERTIAL, CFunction, CNumber, Counts, record_functions
from dynident.export.c_model import VARIANTS, Exportable, Variant, model_to_export
from dynident.export.verification import ExportError
from dynident.files import write_together
from dynident.identifiability.states import random_states
from dynident.logs.log import LogSource

LIMITS: Mapping[CNumber, float] = {"double": 1e-12, "float": 1e-5}  # shares of the size of each output
REGROUPING = 1e-9  # share of torque that may be lost where base parameters are made of standard ones
FLAGS = ("-std=c99", "-O0", "-Wall", "-Wextra", "-pedantic")  # what is compiled once need not be fast
_COMPILERS = ("cc", "gcc", "clang")
_SAMPLES = 240
_FAINT = 1e-3  # an output smaller than this share of the largest one is evaluated beside that
_ROUNDING = 1e-15  # [rad] of positions in the library's stop operators, which subtract them from each other
_QUOTIENT = 3e-10  # share of a column that is a difference quotient in the library, and a derivative in C
_PATIENCE = 120.0  # [s]
_JOINT_TORQUE = "joint_torque"


@brief
@dataclass(frozen=True)
class CAgreement:
    """How well C code agrees with the library.

    Attributes:
        compiler: What compiled it.
        n_samples: States compared.
        deviations: Largest deviation of each function, as a share of the size of the output that deviates.
        limit: What is allowed.
        regrouping: How far the torque of the base parameters is from that of the standard ones, in the library.
        complaints: What the compiler said, empty without warnings.
    """

    compiler: str
    n_samples: int
    deviations: Mapping[str, float]
    limit: float
    regrouping: float
    complaints: str

    @property
    def worst(self) -> float:
        """The largest deviation of all."""
        return max(self.deviations.values())

    @property
    def passed(self) -> bool:
        """Whether all functions agree, and both kinds of parameters stand for the same robot."""
        return bool(self.worst <= self.limit and self.regrouping <= max(REGROUPING, self.limit))

    def words(self) -> str:
        """In a sentence."""
        worst = max(self.deviations, key=lambda name: self.deviations[name])
        return (
            f"Compiled with {self.compiler} and compared with the library on {self.n_samples} states: largest "
            f"deviation {self.worst:.1e} of the size of the output ({worst}), allowed {self.limit:.1e}; base against "
            f"standard parameters {self.regrouping:.1e}."
        )


def find_compiler() -> list[str] | None:
    """The command of the system's C compiler: CC where it is set, else cc, gcc or clang; None without one."""
    named = shlex.split(os.environ.get("CC", ""))
    if named and shutil.which(named[0]):
        return named
    found = next((name for name in _COMPILERS if shutil.which(name)), None)
    return None if found is None else [found]


def check_c(given: Exportable, folder: str | Path, *, number: CNumber = "double", name: str) -> CAgreement:
    """Compile exported code and compare it with the library.

    Args:
        given: What was exported.
        folder: Where `name`.h and `name`.c are.
        number: "double" or "float", as exported.
        name: Prefix of the export.

    Raises:
        InputError: Without a compiler, or without the files.
        ExportError: When the code does not compile or does not run.
    """
    model = model_to_export(given)
    code = CCode(name, number, model, record_functions(model))
    texts = []
    for path in (Path(folder) / f"{name}.h", Path(folder) / f"{name}.c"):
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; export it first")
        texts.append(path.read_text())
    compiler = find_compiler()
    if compiler is None:
        raise InputError(f"no C compiler was found ({', '.join(_COMPILERS)}, or CC); install one, or set CC")
    return compare_with_library(code, texts[0], texts[1], compiler)


def compare_with_library(code: CCode, header: str, source: str, compiler: list[str]) -> CAgreement:
    """The agreement of the texts of a header and a source file with the model that they are of."""
    samples = _motion(code)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / f"{code.name}.h").write_text(header)
        (place / f"{code.name}.c").write_text(source)
        (place / "check_main.c").write_text(_main(code))
        command = [*compiler, *FLAGS, "-o", "check", f"{code.name}.c", "check_main.c", "-lm"]
        answer = _run(command, place, b"")
        given = np.hstack([samples.q, samples.dq, samples.ddq, samples.dddq])
        out = np.frombuffer(_run([str(place / "check")], place, given.tobytes()).stdout)
    sizes = {function.name: function.size for function in code.functions}
    if code.is_coupled:
        sizes[_JOINT_TORQUE] = samples.q.shape[1]
    n_samples = len(samples)
    if out.size != n_samples * sum(sizes.values()):
        raise ExportError(f"the code of {code.name} stopped before its last state; this is a fault of the export")
    parts = np.split(out.reshape(n_samples, -1), np.cumsum(list(sizes.values()))[:-1], axis=1)
    expected = _library_values(code, samples)
    scales = _scales(code, samples, expected)
    deviations = {name: _deviation(part, expected[name], scales[name]) for name, part in zip(sizes, parts, strict=True)}
    gap = _deviation(expected["inverse_dynamics"], expected["inverse_dynamics_standard"], scales["inverse_dynamics"])
    complaints = answer.stderr.decode(errors="replace").strip()
    return CAgreement(Path(compiler[0]).name, n_samples, deviations, LIMITS[code.number], gap, complaints)


def _run(command: list[str], folder: Path, given: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, cwd=folder, input=given, capture_output=True, timeout=_PATIENCE, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()[:2000]
        raise ExportError(f"{Path(command[0]).name} failed on exported code ({error.returncode}): {said}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExportError(f"{Path(command[0]).name} could not be run on exported code: {error}") from None


def _motion(code: CCode) -> MotionSamples:
    """States all over, then a creeping motion that winds springs up and lets them slip."""
    robot = code.model.robot
    q, dq, ddq = random_states(robot, _SAMPLES, seed=7)
    rng = np.random.default_rng(11)
    dq = dq * 10.0 ** rng.uniform(-3.0, 0.0, (_SAMPLES, 1))  # friction has its bends at low velocity
    half = _SAMPLES // 2
    stride = min((radius for _, radius in code.model.springs), default=1e-2)
    steps = rng.normal(0.0, stride, (_SAMPLES - half, q.shape[1]))
    q[half:] = 0.5 * q[half - 1] + np.cumsum(steps, axis=0)
    dddq = rng.normal(0.0, 30.0, q.shape)
    kind = np.float32 if code.number == "float" else np.float64  # both sides see the same digits
    q, dq, ddq, dddq = (x.astype(kind).astype(np.float64) for x in (q, dq, ddq, dddq))
    return MotionSamples(q, dq, ddq, dddq, restart=True)


def _main(code: CCode) -> str:
    """A program that reads states as doubles and writes what every function makes of them."""
    n, name, number = len(code.model.robot.moving), code.name, code.number
    states = ("q", "dq", "ddq", "dddq")
    largest = max(function.size for function in code.functions)
    lines = ["#include <stdio.h>", f'#include "{name}.h"', ""]
    lines += [f"static {number} {x}[{n}];" for x in states]
    lines += [f"static {number} out[{largest}];", f"static double wide[{largest}], given[{4 * n}];", ""]
    lines += [f"static void put(const {number} *x, int size)", "{"]
    lines += ["    for (int i = 0; i < size; i++) wide[i] = (double)x[i];"]
    lines += ["    fwrite(wide, sizeof(double), (size_t)size, stdout);", "}", "", "int main(void)", "{"]
    if code.model.springs:
        lines += [f"    {name}_memory memory;", f"    {name}_init(&memory);"]
    lines += [f"    while (fread(given, sizeof(double), {4 * n}, stdin) == {4 * n}) {{"]
    lines += [
        f"        for (int i = 0; i < {n}; i++) {x}[i] = ({number})given[{k * n} + i];" for k, x in enumerate(states)
    ]
    if code.model.springs:
        lines.append(f"        {name}_update(&memory, q);")
    for function in code.functions:
        lines += [f"        {_call(name, function)};", f"        put(out, {function.size});"]
    if code.is_coupled:
        lines += [f"        {_call(name, code.functions[0])};", f"        {name}_{_JOINT_TORQUE}(out, q);"]
        lines.append(f"        put(q, {n});")
    return "\n".join([*lines, "    }", "    return 0;", "}", ""])


def _call(name: str, function: CFunction) -> str:
    own = {"memory": "&memory", "p": f"{name}_{function.variant}"}
    return f"{name}_{function.name}({', '.join([*(own.get(x, x) for x in function.arguments), 'out'])})"


def _library_values(code: CCode, samples: MotionSamples) -> dict[str, Array]:
    """What the library says, (n_samples, size) for each function."""
    found: dict[str, Array] = {}
    for variant in VARIANTS:
        of_kind = _of_variant(code, variant, samples)
        own = [function for function in code.functions if function.variant == variant]
        found |= {function.name: of_kind[function.kind] for function in own}
    if code.is_coupled:
        found[_JOINT_TORQUE] = joint_torque(code.model.robot, found["inverse_dynamics"])
    return found


def _of_variant(code: CCode, variant: Variant, samples: MotionSamples) -> dict[str, Array]:
    model, robot = code.model.torque_model(variant), code.model.robot
    q, dq, ddq = samples.q, samples.dq, samples.ddq
    values = dict(zip((column.name for column in code.model.base.columns), model.chi, strict=True))
    inertial = np.array([values.get(c.name, 0.0) for term in resolve_terms(INERTIAL) for c in term.columns(robot)])
    rest = [term for term in model.terms if term.name not in INERTIAL]
    others = np.array([values[column.name] for term in rest for column in term.columns(robot)])
    found = {
        "inverse_dynamics": model.start().torque(samples),
        "friction": TorqueModel(robot, tuple(rest), others, model.reference).start().torque(samples),
        "gravity": gravity_torque(robot, q, inertial),
        "bias": inverse_dynamics(robot, q, dq, np.zeros_like(q), INERTIAL, inertial),
        "regressor": _regressor(code, variant, samples, ddq).reshape(len(q), -1),
    }
    if any(function.kind == "mass_matrix" for function in code.functions):
        found["mass_matrix"] = mass_matrix(robot, q, inertial).reshape(len(q), -1)
    return found


def _regressor(code: CCode, variant: Variant, samples: MotionSamples, ddq: Array) -> Array:
    """(n_samples, n_joints, n_columns)."""
    base, robot = code.model.base, code.model.robot
    of_state, along = state_terms(base.terms), along_terms(base.terms)
    W = np.zeros((len(ddq), len(robot.moving), len(base.columns)))
    n_state = 0
    if of_state:
        own = regressor(robot, samples.q, samples.dq, ddq, of_state)
        n_state = own.shape[2]
        W[:, :, :n_state] = own
    reference = None if code.model.reference is None else LinearizationPoint(robot, code.model.reference)
    values = TermCourse(robot, along, reference).columns_first(samples)
    for (row, column), line in zip(all_places(robot, along), values, strict=True):
        W[:, row, n_state + column] += line
    return W if variant == "standard" else W[:, :, list(base.independent)]


def _scales(code: CCode, samples: MotionSamples, expected: Mapping[str, Array]) -> dict[str, Array]:
    """The size of each output, beside which its deviations count, (size,).

    Torque counts beside the largest torque of its joint: the weight on an upright joint is zero but for rounding. An
    entry of the mass matrix counts beside those on the diagonal, one of a regressor beside the columns of its kind:
    the columns of parameters without effect are zero but for rounding, too. Where a column cannot be had more exactly
    (see `_doubts`), that is on top.
    """
    n = len(code.model.robot.moving)
    sizes = {name: np.abs(values).max(0) for name, values in expected.items()}
    scales: dict[str, Array] = {}
    for function in code.functions:
        size, doubts = sizes[function.name], _doubts(code, function.variant, samples) / LIMITS[code.number]
        columns = sizes["regressor" if function.variant == "base" else "regressor_standard"].reshape(n, -1)
        if function.output == "W":
            scales[function.name] = np.tile(_column_sizes(code, function.variant, columns.max(0)) * (1.0 + doubts), n)
        elif function.output == "M":
            diagonal = np.sqrt(size.reshape(n, n).diagonal())
            scales[function.name] = np.outer(diagonal, diagonal).ravel()
        else:
            values = np.abs(code.model.values(function.variant)[: len(doubts)])
            scales[function.name] = np.maximum(size, sizes["inverse_dynamics"]) + columns @ (doubts * values)
    if code.is_coupled:
        scales[_JOINT_TORQUE] = np.abs(code.model.robot.moving_coupling.T) @ scales["inverse_dynamics"]
    return {name: np.maximum(scale, _FAINT * scale.max(initial=0.0)) for name, scale in scales.items()}


def _doubts(code: CCode, variant: Variant, samples: MotionSamples) -> Array:
    """What rounding of positions alone does to each column, as a share of its size, (n_columns,)."""
    robot, base = code.model.robot, code.model.base
    digits = float(np.finfo(np.float32 if code.number == "float" else np.float64).eps)
    doubts: list[float] = []
    for term in base.terms:
        doubt = _QUOTIENT if isinstance(term, Zero) else 0.0
        if isinstance(term, FrictionTerm) and term.law.remembers:
            doubt = _ROUNDING / min(radius for _, radius in code.model.springs)
        if isinstance(term, FrictionTerm) and term.law.wavy:
            angles = np.abs(term.directions(robot)) @ np.abs(samples.q).max(0) / term.units(robot)
            doubt = digits * max(term.scales) * float(angles.max(initial=0.0))
        doubts += [doubt] * len(term.columns(robot))
    return np.array(doubts)[list(range(len(doubts)) if variant == "standard" else base.independent)]


def _column_sizes(code: CCode, variant: Variant, sizes: Array) -> Array:
    """The largest of the columns of each one's kind: of all MX, of all Fv, (n_columns,)."""
    base = code.model.base
    columns = base.columns if variant == "standard" else [base.columns[index] for index in base.independent]
    largest: dict[str, float] = {}
    for column, size in zip(columns, sizes, strict=True):
        largest[column.symbol] = max(largest.get(column.symbol, 0.0), float(size))
    return np.array([largest[column.symbol] for column in columns])


def _deviation(got: Array, expected: Array, scale: Array) -> float:
    """Largest deviation beside the size of each output."""
    with np.errstate(invalid="ignore"):
        share = np.abs(got - expected) / np.where(scale > 0.0, scale, 1.0)
    return float(np.nan_to_num(share, nan=np.inf).max(initial=0.0))


# ----------------------------------------------------------------------------------------------------------------------
# Export to C: dependency-free C99 that computes what the library computes, written once it has proved that.

_UNCHECKED = "Not compared with the library: no C compiler was found."


@brief
@dataclass(frozen=True, eq=False)
class CExport:
    """C code that was written.

    Attributes:
        folder: Where.
        name: Prefix of all names in C.
        number: "double" or "float".
        files: Header and source of the dynamics, then what stands beside them: header and source of the compensation,
            self-test, Python module and makefile.
        counts: Operations of each function; names that end in "_standard" are the variants for standard parameters.
        agreement: With the library; None where there is no compiler.
        notes: What a user should know, in words.
    """

    folder: Path
    name: str
    number: CNumber
    files: tuple[Path, ...]
    counts: Mapping[str, Counts]
    agreement: CAgreement | None
    notes: tuple[str, ...]

    def table(self) -> str:
        """Operations of all functions, and how the code was checked."""
        return "\n".join([*counts_table(self.counts), *self.notes])


def export_c(
    given: Exportable,
    folder: str | Path,
    *,
    number: CNumber = "double",
    name: str | None = None,
    selftest: LogSource | None = None,
) -> CExport:
    """Write the dynamics of a robot as C99: a header and a source file that need nothing but the maths library.

    Beside them stands a library for gravity and friction compensation: header and source, a Python module over ctypes,
    a self-test and a makefile.

    The code is compiled and compared with the library on random states first, and written only if it agrees to 1e-12
    (float: 1e-5) of the size of each output. Without a compiler it is written, and says that it was not compared.

    Args:
        given: An estimate, a model with values, or a robot with its own values.
        folder: Where to; made if it does not exist.
        number: Precision.
        name: Prefix of all names in C, and name of the files; default the robot's name.
        selftest: A log whose motion and torque the self-test has; default random states.

    Raises:
        InputError: For what C cannot express, an unusable name, or a file that the export did not write.
        ExportError: When the code disagrees with the library; nothing is written.
    """
    if number not in get_args(CNumber):
        raise UnknownNameError("C number type", str(number), get_args(CNumber))
    model = model_to_export(given)
    prefix = _identifier(model.robot.name) if name is None else _check_name(name)
    code = CCode(prefix, number, model, record_functions(model))
    motion = random_motion(model) if selftest is None else motion_of_log(given, model, selftest)
    beside = Compensation(code, compensation_limits(given, model), motion).files()
    files = tuple(Path(folder) / file for file in (f"{prefix}.h", f"{prefix}.c", *beside))
    _check_folder(Path(folder), files)
    source, compiler = code.source(), find_compiler()
    agreement = None if compiler is None else compare_with_library(code, code.header(""), source, compiler)
    if agreement is not None and not agreement.passed:
        raise ExportError(f"C code of {model.robot.name} is wrong and was not written. {agreement.words()}")
    verdict = _UNCHECKED if agreement is None else agreement.words()
    texts = (code.header(verdict), source, *beside.values())
    if compiler is not None:
        _run_selftest(prefix, dict(zip((path.name for path in files), texts, strict=True)), compiler)
    notes = [verdict, *model.remarks]
    if model.robot.locked_motors_move:
        notes.append("No mass matrix: the motor of a locked joint also drives a moving one.")
    _write_files(files, texts)
    return CExport(Path(folder), prefix, number, files, code.counts, agreement, tuple(notes))


def _run_selftest(name: str, texts: Mapping[str, str], compiler: list[str]) -> None:
    """Compile the compensation library with its self-test and run it.

    Raises:
        ExportError: When it fails; nothing is written then.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for file, text in texts.items():
            (place / file).write_text(text)
        sources = [f"{name}_selftest.c", f"{name}.c", f"{name}_compensation.c"]
        _run([*compiler, *FLAGS, "-o", "selftest", *sources, "-lm"], place, b"")
        _run([str(place / "selftest")], place, b"")


def _write_files(files: tuple[Path, ...], texts: tuple[str, ...]) -> None:
    """All files or none."""
    write_together(files[0].parent, {path.name: text.encode() for path, text in zip(files, texts, strict=True)})


def _identifier(name: str) -> str:
    """A robot's name as a name in C."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return plain if re.match(r"[a-z]", plain) else f"robot_{plain}".rstrip("_")


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII):
        raise InputError(f"name '{name}' cannot begin names in C; expected a letter, then letters, digits, underscores")
    return name


def _check_folder(folder: Path, files: tuple[Path, ...]) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    for path in files:
        if path.exists() and not (path.is_file() and MARK in path.read_text(errors="replace")[:200]):
            raise InputError(f"{path}: exists and was not written by this export; choose another name or folder")
