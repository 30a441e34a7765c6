"""The factors of the paper, eq. (23) to (25): fm1.. on the weights and on the lumped inertias of a planar chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import columns, parameters
from dynident.experiments.oscillation.model import ParameterGroup, SwingModel, swing_model
from dynident.identifiability.base import base_parameters
from dynident.robot.model import Robot

_Vector = Callable[..., Array]
_MOST = 3  # links of the paper


def paper_model(robot: Robot, values: str | Mapping[str, float] | None = None) -> SwingModel:
    """The model of the paper with a factor for each of its groups, all one for the description's values.

    Chains of one to three parallel joints have the paper's lumps; any other robot has a factor for each of its base
    parameters that is not zero.
    """
    model = swing_model(robot, values)
    if not is_paper_chain(robot):
        return SwingModel(
            *(robot, model.terms, model.chi),
            tuple(_factor(f"f_{one.name}", one.nominal * one.direction) for one in model.gravity if one.nominal),
            tuple(_factor(f"f_{one.name}", one.nominal * one.direction) for one in model.inertia if one.nominal),
        )
    names = [column.name for column in columns(robot, model.terms)]
    base = base_parameters(robot, "rigid")
    lumped = dict(zip(base.names, (base.K @ parameters(robot, "rigid", values)).tolist(), strict=True))

    def vector(**parts: float) -> Array:
        found = np.zeros(len(names))
        for name, value in parts.items():
            found[names.index(name)] = value
        return found

    n = len(robot.moving)
    known = {symbol + str(i): _lump(lumped, symbol, i) for symbol in ("ZZ", "MX") for i in range(1, n + 1)}
    gravity = [_factor(f"fm{i}", vector(**{f"MX{i}": known[f"MX{i}"]})) for i in range(1, n + 1)]
    chi = vector(**known)
    carried = model.chi[names.index("M2")] * _length(robot) ** 2 if n == 2 else 0.0
    inertia = _inertias(n, known, carried, vector)
    return SwingModel(robot, model.terms, chi, tuple(gravity), inertia, lumped=True)


def is_paper_chain(robot: Robot) -> bool:
    """Whether it is a chain of one to three parallel joints with gravity along its links."""
    n = len(robot.moving)
    straight = all(
        joint.kind == "revolute"
        and abs(joint.before.rotation[2, 2]) > 1.0 - 1e-9
        and abs(joint.after.rotation[2, 2]) > 1.0 - 1e-9
        for joint in robot.joints
    )
    return n <= _MOST and n == len(robot.joints) and robot.is_serial and straight and not robot.locked


def _inertias(n: int, known: Mapping[str, float], carried: float, vector: _Vector) -> tuple[ParameterGroup, ...]:
    if n == 1:
        return (_factor("fm2", vector(ZZ1=known["ZZ1"])),)
    if n == 2:  # fm3 is all of link 2, carried by link 1 too; fm4 is link 1 alone
        return (
            _factor("fm3", vector(ZZ2=known["ZZ2"], MX2=known["MX2"], ZZ1=carried)),
            _factor("fm4", vector(ZZ1=known["ZZ1"] - carried)),
        )
    third, second = known["ZZ3"], known["ZZ2"] + known["ZZ3"]
    return (
        _factor("fm4", vector(ZZ3=third, ZZ2=-third, MX3=known["MX3"])),
        _factor("fm5", vector(MX2=known["MX2"])),
        _factor("fm6", vector(ZZ2=second, ZZ1=-second)),
        _factor("fm7", vector(ZZ1=known["ZZ1"] + second)),
    )


def _factor(name: str, direction: Array) -> ParameterGroup:
    return ParameterGroup(name, "", 1.0, direction)


def _lump(lumped: Mapping[str, float], symbol: str, number: int) -> float:
    return lumped.get(f"{symbol}R{number}", lumped.get(f"{symbol}{number}", 0.0))


def _length(robot: Robot) -> float:
    return float(np.linalg.norm(robot.joints[1].before.translation))
