"""Ranges of samples as domain randomization: events of Isaac Lab and mjlab.

Both draw every number of its own; the joint distribution is in the samples alone. Links go to mjlab as ranges of the
log-Cholesky parameters of their pseudo-inertias (Rucker & Wensing 2022), within which every body is physically
consistent; Isaac Lab scales masses with their inertias and moves centers of mass.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.drives.linear import DriveElement, drive_elements
from dynident.drives.sampling import SampledModels
from dynident.errors import InputError
from dynident.export.python_config import OPTIONAL, REQUIRED, Call, Keyword, Name, Schema, write_python
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.physicality import pseudo_inertia

_TERM = {
    "func": Keyword("any", REQUIRED),
    "mode": Keyword("text", REQUIRED),
    "params": Keyword("any", REQUIRED),
}
_ENTITY = {"joint_names": Keyword("any", OPTIONAL), "body_names": Keyword("any", OPTIONAL)}
_LOG_CHOLESKY = ("alpha", "d1", "d2", "d3", "s12", "s13", "s23", "t1", "t2", "t3")
ISAACLAB_EVENTS: Schema = {
    "EventTermCfg": _TERM,
    "SceneEntityCfg": {"name": Keyword("text", REQUIRED), **_ENTITY},
    "mdp.randomize_joint_parameters": {
        "asset_cfg": Keyword("any", REQUIRED),
        "friction_distribution_params": Keyword("any"),
        "armature_distribution_params": Keyword("any"),
        "operation": Keyword("text"),
        "distribution": Keyword("text"),
    },
    "mdp.randomize_rigid_body_mass": {
        "asset_cfg": Keyword("any", REQUIRED),
        "mass_distribution_params": Keyword("any", REQUIRED),
        "operation": Keyword("text", REQUIRED),
        "distribution": Keyword("text"),
        "recompute_inertia": Keyword("any"),
    },
    "mdp.randomize_rigid_body_com": {
        "asset_cfg": Keyword("any", REQUIRED),
        "com_range": Keyword("any", REQUIRED),
    },
}
_RANGES = {
    "ranges": Keyword("any", REQUIRED),
    "asset_cfg": Keyword("any"),
    "operation": Keyword("text"),
    "distribution": Keyword("text"),
}
MJLAB_EVENTS: Schema = {
    "EventTermCfg": _TERM,
    "SceneEntityCfg": {"name": Keyword("text", REQUIRED), **_ENTITY},
    "dr.joint_armature": _RANGES,
    "dr.joint_damping": _RANGES,
    "dr.joint_friction": _RANGES,
    "dr.pseudo_inertia": {
        **{f"{key}_range": Keyword("any") for key in _LOG_CHOLESKY},
        "asset_cfg": Keyword("any"),
        "distribution": Keyword("text"),
    },
}
_HEAD = """Ranges of {robot} that hold {percent:.3g} % of {n} samples of each parameter, drawn by dynident, seed {seed}.
{notes}
Numbers drawn one by one from these ranges are further apart than the samples, whose covariance is that of the data:
samples.npz and the models beside this file have it.
{more}"""
_ISAACLAB_MORE = """Use: for name, term in EVENTS.items(): setattr(cfg.events, name, term)
Isaac Lab draws static, dynamic and viscous friction of a joint in one range: that of friction holds the factors of
Coulomb and of viscous friction.
Fields are those of Isaac Lab 2.3.2, which was not loaded."""
_MJLAB_MORE = """Use: cfg.events.update(EVENTS)
Fields are those of mjlab 1.6.0, which was not loaded."""
_DELAY_WORDS = {
    "isaaclab": "\nMIN_DELAY and MAX_DELAY are those of DelayedPDActuatorCfg, in steps of TIMESTEP.",
    "mjlab": "\nDELAY_MIN_LAG and DELAY_MAX_LAG are those of actuators (delay_min_lag, ..), in steps of TIMESTEP.",
}
_BIAS_WORDS = """
JOINT_POSITION_BIAS is added to logged positions to get those that the controller sees; events for the bias of encoders
move commands as well, so that its ranges stand here as numbers."""


def write_events(models: SampledModels, ranges: Array, folder: Path, level: float, timestep: float) -> list[Path]:
    """Write both files of events; a robot whose drives turn several joints has none.

    Args:
        models: The samples.
        ranges: (p, 2) of their parameters.
        folder: Where to.
        level: Share of the samples in the ranges.
        timestep: In which delays are counted [s].
    """
    try:
        drives = drive_elements(models.robot)
    except InputError:
        return []
    of = dict(zip(models.names, ranges.tolist(), strict=True))
    links = _links(models)
    written = []
    for project, terms, schema, imports, more in (
        ("isaaclab", _isaaclab(models, drives, of, links, level), ISAACLAB_EVENTS, _ISAACLAB_IMPORTS, _ISAACLAB_MORE),
        ("mjlab", _mjlab(models, drives, of, links, level), MJLAB_EVENTS, _MJLAB_IMPORTS, _MJLAB_MORE),
    ):
        assigned: dict[str, Any] = {"EVENTS": terms}
        if "delay" in of:
            low, high = math.floor(of["delay"][0] / timestep), math.ceil(of["delay"][1] / timestep)
            keys = ("MIN_DELAY", "MAX_DELAY") if project == "isaaclab" else ("DELAY_MIN_LAG", "DELAY_MAX_LAG")
            assigned |= {"TIMESTEP": float(timestep), keys[0]: low, keys[1]: high}
            more += _DELAY_WORDS[project]
        biases = {drive.joint: tuple(of[f"bias{drive.number}"]) for drive in drives if f"bias{drive.number}" in of}
        if biases:
            assigned["JOINT_POSITION_BIAS"] = biases
            more += _BIAS_WORDS
        head = _HEAD.format(
            robot=models.robot.name,
            percent=100.0 * level,
            n=len(models),
            seed=models.seed,
            notes="\n".join(f"{note}." for note in models.notes),
            more=more,
        )
        path = folder / f"events_{project}.py"
        write_python(path, head, imports, assigned, schema)
        written.append(path)
    return written


_ISAACLAB_IMPORTS = (
    "import isaaclab.envs.mdp as mdp",
    "from isaaclab.managers import EventTermCfg, SceneEntityCfg",
)
_MJLAB_IMPORTS = (
    "from mjlab.envs.mdp import dr",
    "from mjlab.managers.event_manager import EventTermCfg",
    "from mjlab.managers.scene_entity_config import SceneEntityCfg",
)


def _term(function: str, params: Mapping[str, Any], **entity: Any) -> Call:
    scene = Call("SceneEntityCfg", {"name": "robot", **entity})
    return Call("EventTermCfg", {"func": Name(function), "mode": "startup", "params": {"asset_cfg": scene, **params}})


def _varies(pair: Sequence[float]) -> bool:
    return pair[1] > pair[0]


def _isaaclab(
    models: SampledModels,
    drives: Sequence[DriveElement],
    of: Mapping[str, list[float]],
    links: Mapping[str, Array],
    level: float,
) -> dict[str, Call]:
    """Events of Isaac Lab, joint by joint and body by body."""
    terms: dict[str, Call] = {}
    center = models.mapping()
    for drive in drives:
        joint, key = [re.escape(drive.joint)], _key(drive.joint)
        armature = tuple(of[drive.name("Ia")])
        if _varies(armature):
            params = {"armature_distribution_params": armature, "operation": "abs", "distribution": "uniform"}
            terms[f"armature_{key}"] = _term("mdp.randomize_joint_parameters", params, joint_names=joint)
        names = [drive.name(symbol) for symbol in ("Fc", "Fv")]
        factors = [np.array(of[name]) / center[name] for name in names if _varies(of[name]) and center[name] > 0.0]
        if factors:
            both = (float(np.min(factors)), float(np.max(factors)))
            params = {"friction_distribution_params": both, "operation": "scale", "distribution": "uniform"}
            terms[f"friction_{key}"] = _term("mdp.randomize_joint_parameters", params, joint_names=joint)
    for body, chi in links.items():
        mass, middle = chi[0, 9], chi[0, 6:9] / chi[0, 9]
        low, high = _interval(chi[1:, 9] / mass, level)
        names_of_body = [re.escape(body)]
        if high > low:
            scale = {"mass_distribution_params": (low, high), "operation": "scale", "distribution": "uniform"}
            terms[f"mass_{_key(body)}"] = _term("mdp.randomize_rigid_body_mass", scale, body_names=names_of_body)
        moved = chi[1:, 6:9] / chi[1:, 9:] - middle
        com = {axis: _interval(moved[:, k], level) for k, axis in enumerate("xyz")}
        if any(_varies(pair) for pair in com.values()):
            terms[f"center_{_key(body)}"] = _term(
                "mdp.randomize_rigid_body_com", {"com_range": com}, body_names=names_of_body
            )
    return terms


def _mjlab(
    models: SampledModels,
    drives: Sequence[DriveElement],
    of: Mapping[str, list[float]],
    links: Mapping[str, Array],
    level: float,
) -> dict[str, Call]:
    """Events of mjlab: one for each kind of number of the joints, one for each body."""
    terms: dict[str, Call] = {}
    for key, function, symbol in (
        ("armature", "dr.joint_armature", "Ia"),
        ("damping", "dr.joint_damping", "Fv"),
        ("frictionloss", "dr.joint_friction", "Fc"),
    ):
        ranges: dict[str, tuple[float, float]] = {}
        for drive in drives:
            low, high = of[drive.name(symbol)]
            if high > low:
                ranges[re.escape(drive.joint)] = low, high
        if ranges:
            joints: dict[str, Any] = {"ranges": ranges, "operation": "abs", "distribution": "uniform"}
            terms[key] = _term(function, joints, joint_names=tuple(ranges))
    for body, chi in links.items():
        found = log_cholesky(chi[0], chi[1:])
        params = {
            f"{name}_range": _interval(found[:, k], level)
            for k, name in enumerate(_LOG_CHOLESKY)
            if np.ptp(found[:, k]) > _ROUNDING
        }
        if params:
            terms[f"body_{_key(body)}"] = _term("dr.pseudo_inertia", params, body_names=(re.escape(body),))
    return terms


_ROUNDING = 1e-12


def _key(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def _interval(numbers: Array, level: float) -> tuple[float, float]:
    low, high = np.quantile(numbers, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def _links(models: SampledModels) -> dict[str, Array]:
    """(1 + n, 10) standard parameters of each link that varies, of the center first, by the name of its body."""
    found = {}
    for joint in models.robot.joints:
        names = [f"{symbol}{joint.number}" for symbol in LINK_SYMBOLS]
        if not set(names) <= set(models.names):
            continue
        chi = np.array([models[name] for name in names]).T
        center = np.array([models.mapping()[name] for name in names])
        if center[9] > 0.0 and np.any(np.ptp(chi, axis=0) > 0.0):
            found[joint.link] = np.vstack([center, chi])
    return found


def log_cholesky(center: Array, chi: Array) -> Array:
    """(n, 10) parameters alpha, d1 .. d3, s12, s13, s23, t1 .. t3 of U with J = U J_0 U', U upper triangular.

    With U = exp(alpha) times the rows (exp d1, s12, s13, t1), (0, exp d2, s23, t2), (0, 0, exp d3, t3), (0, 0, 0, 1).

    Args:
        center: (10,) standard parameters with pseudo-inertia J_0.
        chi: (n, 10) those with J.

    References:
        Rucker & Wensing 2022, Smooth parameterization of rigid-body inertia.
    """
    first, others = _upper(pseudo_inertia(center)), _upper(pseudo_inertia(chi))
    U = others @ np.linalg.inv(first)
    scale = U[:, 3, 3]
    shape = U / scale[:, None, None]
    diagonal = np.log(np.diagonal(shape, axis1=1, axis2=2)[:, :3])
    corner = [shape[:, i, j] for i, j in ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))]
    return np.column_stack([np.log(scale), diagonal, *corner])


def _upper(J: Array) -> Array:
    """Upper triangular C with J = C C', by the Cholesky factor of the matrix turned about."""
    return np.asarray(np.linalg.cholesky(J[..., ::-1, ::-1])[..., ::-1, ::-1])
