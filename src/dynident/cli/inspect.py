"""`dynident inspect --nearest`: the robot that could exist nearest to a set of values, and how far it is."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynident.physical.distance import NearestPhysical
    from dynident.robot import Robot

_SHOWN = 8  # values that moved most
_MATTERS = 0.01  # share of the squared distance below which a condition is not named


def run_nearest(options: Namespace, robot: Robot) -> int:
    """`dynident inspect --nearest`.

    Args:
        options: values, a set of standard or base values, or None for the robot's own; json.
        robot: The robot.
    """
    from dynident.physical.distance import nearest_physical

    near = nearest_physical(robot, options.values)
    name = robot.default_values if options.values is None else options.values
    if options.json:
        print(json.dumps(_answer(near, robot.name, name), allow_nan=False))
    else:
        _print(near, robot.name, name)
    return 0


def _answer(near: NearestPhysical, robot: str, name: str) -> dict[str, Any]:
    return {
        "robot": robot,
        "values": name,
        "feasible": near.feasible,
        "distance": near.distance,
        "metric": near.metric,
        "distances": dict(near.distances),
        "nearest": dict(near.values),
        "moved": dict(near.moved),
        "links": [vars(one) for one in near.links],
        "strains": dict(near.strains),
        "prior": near.prior,
    }


def _print(near: NearestPhysical, robot: str, name: str) -> None:
    from dynident.physical.result import link_table
    from dynident.report.text import print_prose

    if near.feasible:
        print_prose(f"Values '{name}' of {robot} belong to a robot that can exist; the nearest is the same.\n")
    else:
        away = f"The nearest that can exist is {near.distance:.3g} away ({near.metric})."
        print_prose(f"Values '{name}' of {robot} belong to no robot. {away}\n")
        total = max(sum(max(strain, 0.0) for strain in near.strains.values()), 1e-300)
        causes = [(strain / total, place) for place, strain in near.strains.items() if strain > _MATTERS * total]
        print_prose("Caused by " + ", ".join(f"{place} {100.0 * share:.0f} %" for share, place in sorted(causes)[::-1]))
        moved = sorted(near.moved.items(), key=lambda pair: -abs(pair[1]))[:_SHOWN]
        print_prose("Moved most: " + ", ".join(f"{key} {value:+.4g}" for key, value in moved) + "\n")
    print(link_table(near.links))
    print_prose(f"\nWhat the values leave open is settled by the {near.prior}.")
