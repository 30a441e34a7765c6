"""`SimulateOptions`: what shapes a simulated log. Importable without NumPy, for `dynident simulate --help`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.motion.options import ENCODER_COUNTS, LOG_RATE, NOISE_SHARE
from dynident.options import Options, option

if TYPE_CHECKING:
    from dynident.payload.body import Payload

BANDWIDTH = 30.0  # [rad/s] of the feedback, unless given


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Options):
    """What shapes a simulated log; the defaults are those of an ordinary industrial arm."""

    values: str | Mapping[str, float] | None = option(
        None, "what the machine really is: a value set of the robot, or values", metavar="SET", shown="the robot's own"
    )
    controller: str = option(
        "feedforward",
        "feedforward (with feedback), computed-torque or pd",
        choices=("feedforward", "computed-torque", "pd"),
        metavar="NAME",
    )
    bandwidth: float = option(BANDWIDTH, "bandwidth of the feedback", unit="rad/s", minimum=0.0, metavar="RAD/S")
    rate: float = option(LOG_RATE, "samples per second of the log", unit="Hz", minimum=0.0, metavar="HZ")
    kinds: Sequence[str] | None = option(
        None,
        "channels of the log: q, dq, tau, qm, dqm, taum, i, temp",
        metavar="q,tau",
        shown="q and i where the robot has drive gains, else tau",
    )
    relative_noise: float = option(
        NOISE_SHARE, "standard deviation of the torque noise over each joint's RMS torque", least=0.0, metavar="SHARE"
    )
    bias: float = option(0.0, "constant torque error over each joint's RMS torque", metavar="SHARE")
    encoder: float = option(ENCODER_COUNTS, "counts per turn or meter; 0: exact positions", least=0.0, metavar="COUNTS")
    delay: float = option(0.0, "time by which torque is stamped late", unit="s", least=0.0, metavar="SECONDS")
    jitter: float = option(
        0.0,
        "readings are taken up to this much before their time; stamps say when",
        unit="s",
        least=0.0,
        metavar="SECONDS",
    )
    breakaway: float = option(1.0, "static over kinetic friction", metavar="RATIO")
    effects: Mapping[str, float] | None = option(
        None,
        "friction of real gears, tilt and joint offsets by parameter name, or a YAML file of them",
        metavar="stop0.3_1=4,..",
    )
    warm_up: float = option(
        0.0,
        "rise of the joints' temperature from 20 °C, most of it within the motion; viscous friction falls by 2 % per "
        "kelvin, and the log has temp1, temp2, ..",
        unit="K",
        least=0.0,
        metavar="KELVIN",
    )
    payload: Payload | None = option(None, "body on the tool", unit="kg, m, kg·m²", metavar="MASS[,CX,CY,CZ[,..]]")
    payload_at: float = option(0.0, "time at which it is attached", unit="s", least=0.0, metavar="SECONDS")
    seed: int = option(0, "of the noise", least=0, metavar="N")
