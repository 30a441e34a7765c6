"""Whether gravity points along another axis of the base, as for an arm on a wall whose file says that it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.check.explain import GAIN, SURE, Explained
from dynident.check.explanations import Wiring
from dynident.check.finding import Finding, percent
from dynident.check.sample import Sample
from dynident.check.trial import Left, Trial
from dynident.checks import Array
from dynident.identifiability.base import base_parameters

_WELL = 0.15  # share of its torque: where less is left of every joint, nothing needs to be explained


def gravity_finding(
    trial: Trial, samples: Sequence[Sample], wirings: Sequence[Wiring], explained: Explained
) -> Finding | None:
    """Gravity along another axis, if that explains logs better than all mistakes that were found in their columns.

    Args:
        trial: The robot's equations.
        samples: Moments of the logs.
        wirings: What their channels are.
        explained: The mistakes found in them.
    """
    before = explained.mistakes[0].before if explained.mistakes else explained.left
    if not explained.mistakes and before.shares.max() < _WELL:
        return None
    gravity, after = _best(trial, samples, wirings)
    gain = before.score - after.score
    if gain < GAIN or after.score > explained.left.score:
        return None
    joint = int(np.argmax(before.shares / after.shares))
    seen = f"read so, joint {trial.robot.joint_names[joint]} keeps {percent(after.shares[joint])} of its torque"
    words = f"gravity points along {_axis(gravity)} of the base, not {_axis(np.asarray(trial.robot.gravity))}"
    message = f"{words}: {seen} unexplained instead of {percent(before.shares[joint])}"
    return Finding("gravity", "stop" if gain > SURE else "warn", message, {"gravity": [float(x) for x in gravity]})


def _best(trial: Trial, samples: Sequence[Sample], wirings: Sequence[Wiring]) -> tuple[Array, Left]:
    """The axis that explains most beside gravity as given and its opposite, and what it leaves."""
    found = []
    for gravity in _directions(np.asarray(trial.robot.gravity)):
        # Other base parameters are felt then, so that the equations are made anew.
        other = Trial(base_parameters(replace(trial.robot, gravity=gravity), trial.base.terms))
        one = np.eye(len(other.robot.joint_names))
        left = other.left([(other.seen(x, one, w.zero), one) for x, w in zip(samples, wirings, strict=True)])
        found.append((gravity, left))
    return min(found, key=lambda one: one[1].score)


def _directions(gravity: Array) -> list[Array]:
    """Axes of the base other than the given one, both ways, with the size of gravity."""
    size = float(np.linalg.norm(gravity))
    axes = [sign * size * axis for axis in np.eye(3) for sign in (1.0, -1.0)]
    return [axis + 0.0 for axis in axes if abs(axis @ gravity) < 0.9 * size**2]


def _axis(gravity: Array) -> str:
    """The axis that a vector points along, such as -z."""
    place = int(np.argmax(np.abs(gravity)))
    return f"{'-' if gravity[place] < 0.0 else ''}{'xyz'[place]}"
