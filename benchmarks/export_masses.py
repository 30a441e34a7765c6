"""Export that a designer believes: masses that torque leaves open against CAD, and files that other tools move.

    python benchmarks/export_masses.py [--robots scara,ur10e] [--write docs/reference/export-files.md]

Machines whose masses and inertias are 15 to 20 % off their description are simulated and identified with basic
friction (strangers of the tests; robot files of others at DYNIDENT_ROBOTS or in ../shared/robots, with torque noise of
1 % on random states), and real arms from their logs (DYNIDENT_DATA or ../shared/data). For each: the worst relative
error against CAD of a mass that torque leaves open, by the log-det distance alone and as exported; the smallest share
of its CAD inertia about the center of mass that a link has, where all such masses stay and as exported; the torque of
the exported URDF in Pinocchio (with the armature line that the export prints) and of the new MJCF in MuJoCo against
the identified model; and how many of the actuators of the MJCF move their joint.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import mujoco
import numpy as np
import pinocchio as pin

import dynident as di
import friction
from dynident.dynamics.evaluate import inverse_dynamics, joint_torque, tree_motion
from dynident.errors import DynidentError
from dynident.estimate.fit import Fit
from dynident.export.urdf import armature_lines
from dynident.export.values import on_joints
from dynident.export.verification import states_within_limits
from dynident.physical.fitting import rows_of
from dynident.physical.inertia import inertia_share
from dynident.physical.prior import physical_prior
from dynident.physical.problem import PhysicalProblem, link_columns
from dynident.physical.result import PhysicalParameters
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.robot.parameters import LINK_SYMBOLS

FILES = Path(os.environ.get("DYNIDENT_ROBOTS", Path(__file__).parents[2] / "shared" / "robots"))
OTHERS = ("solo12.urdf", "so_arm100.xml", "leap_right_hand.xml")
BEGIN, END = "<!-- table: benchmarks/export_masses.py -->", "<!-- end of masses -->"
HEAD = (
    "| robot | masses left open | log-det distance alone | exported | inertia, masses kept | exported "
    "| total mass, CAD | Pinocchio | MuJoCo | motors |\n" + "|---" * 10 + "|"
)
PUSHED, SECONDS = 5.0, 0.05  # [rad/s² or m/s²] and [s] that a motor pushes


@dataclass(frozen=True)
class Masses:
    """Masses that torque leaves open.

    Attributes:
        n: How many.
        alone: Worst relative error against CAD of the log-det distance alone.
        exported: The same as exported.
        thin: Smallest share of its described inertia about the center of mass that a link has where masses are kept at
            any price.
        inertia: The same as exported.
    """

    n: int
    alone: float
    exported: float
    thin: float
    inertia: float


def stranger(name: str) -> Fit:
    """A stranger of the tests, identified from one log."""
    from tests.strangers import ROBOTS
    from tests.strangers.runs import ARMS, measured, run

    if name in ROBOTS:
        arm = ROBOTS[name]()
        return di.identify(arm.described, arm.log(0), friction="basic")
    arm = ARMS[name]()
    return di.identify(arm.described, measured(arm, run(name, 1, 12.0, 0.02), 500, 1, 3), friction="basic")


def other(name: str) -> di.information.Information:
    """A robot file of others; every link 15 % lighter or 18 % heavier than described."""
    from tests.physical.physical_cases import information

    robot = di.load_robot(FILES / name)
    rng, truth = np.random.default_rng(1), dict(robot.value_set())
    for joint, factor in zip(robot.joints, rng.choice([0.85, 1.18], robot.n_links), strict=True):
        truth |= {f"{s}{joint.number}": factor * truth.get(f"{s}{joint.number}", 0.0) for s in LINK_SYMBOLS}
    return information(robot, truth, noise=0.01)


def real(name: str) -> Fit:
    """A real arm, from the training logs of the first fold."""
    robot, folds = friction.ARMS[name][2]()
    return di.identify(robot, folds[0].train, friction="basic")


STRANGERS = ("scara", "skewed_arm", "pinocchio_arm", "sr400", "gantry_arm", "light_arm")
ROBOTS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(STRANGERS, stranger),
    **dict.fromkeys((*OTHERS,), other),
    **dict.fromkeys(friction.ARMS, real),
}


def masses(evidence: Fit | di.information.Information, found: PhysicalParameters) -> Masses:
    """Masses that torque leaves open, as exported and by the log-det distance alone."""
    rows, robot = rows_of(evidence), found.base.robot
    A, y = rows.R @ rows.base.K, rows.R @ rows.estimate.values
    prior = physical_prior(robot, rows.base.columns, A, y, None)
    problem = PhysicalProblem(
        robot, rows.base.columns, rows.base.terms, A, y, prior, (), THRESHOLDS.prior_shift_std, deviations=True
    )
    kept = problem.kept_masses
    bare = replace(problem, prior=replace(prior, described=np.zeros(robot.n_links, dtype=bool)), deviations=False)
    alone = bare.solve().chi
    worst = [max((abs(chi[i] / m - 1.0) for i, m in kept.items()), default=0.0) for chi in (alone, found.chi)]
    thin = replace(problem, inertia_share=0.0).solve().chi
    places = link_columns(robot, rows.base.columns)
    shares = [
        min((inertia_share(chi[places[i]], prior.bodies[i]) for i in problem.described_links), default=np.nan)
        for chi in (thin, found.chi)
    ]
    return Masses(len(kept), *worst, *shares)


def pinocchio_error(robot: Robot, values: Mapping[str, float], path: Path) -> float:
    """Relative error of Pinocchio's torque of a URDF, with the armature line of the export and its friction by hand."""
    model = pin.buildModelFromUrdf(str(path))
    for line in armature_lines(robot, values):
        exec(line[line.index("model.armature") :], {"model": model})
    data, states = model.createData(), states_within_limits(robot)
    place = [int(model.joints[model.getJointId(name)].idx_v) for name in robot.joint_names]
    torque = np.zeros_like(states.q)
    for k in range(len(states.q)):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for j, name in enumerate(robot.joint_names):
            joint = model.joints[model.getJointId(name)]
            x = states.q[k, j]
            q[joint.idx_q : joint.idx_q + joint.nq] = [x] if joint.nq == 1 else [np.cos(x), np.sin(x)]
        v[place], a[place] = states.dq[k], states.ddq[k]
        torque[k] = pin.rnea(model, data, q, v, a)[place]
    carried = on_joints(robot, values, "Pinocchio", rotors=True).values  # rotors of several joints have no armature
    links = {name: x for name, x in carried.items() if name.startswith((*LINK_SYMBOLS, "Ia"))}
    ours = joint_torque(robot, inverse_dynamics(robot, states.q, states.dq, states.ddq, values=links))
    return float(np.linalg.norm(torque - ours) / np.linalg.norm(ours))


def mujoco_error(robot: Robot, held: Mapping[str, float], path: Path) -> float:
    """Relative error of MuJoCo's torque of the file as it stands, friction included."""
    from dynident.export.verification import agreement, mujoco_torque

    states = states_within_limits(robot, seed=4)
    return agreement(robot, held, held, mujoco_torque(path, robot, states), states, "MuJoCo").relative


def motors_that_move(robot: Robot, path: Path) -> str:
    """How many actuators of a file turn their joint the way they push, gravity aside, within their limits."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.gravity[:] = 0.0
    limits = [(joint.limits.lower, joint.limits.upper) for joint in robot.moving_joints]
    middle = np.array([[0.0 if None in pair else sum(pair) / 2.0 for pair in limits]])  # of every range
    own = tree_motion(robot, middle, 0.0 * middle, 0.0 * middle).q[0]
    tree = dict(zip((joint.name for joint in robot.joints), own, strict=True))
    good = 0
    for i in range(model.nu):
        data = mujoco.MjData(model)
        for name, x in tree.items():
            data.qpos[model.joint(name).qposadr] = x
        mujoco.mj_forward(model, data)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        joint = int(model.actuator_trnid[i, 0])
        dof = int(model.jnt_dofadr[joint])
        # What overcomes dry friction and gives the joint PUSHED [rad/s²] with all others free.
        dry = float(model.dof_frictionloss[dof] + model.tendon_frictionloss.sum())
        wanted = 2.0 * dry + PUSHED / float(np.linalg.inv(full)[dof, dof])
        limited = bool(model.actuator_ctrllimited[i])
        data.ctrl[i] = min(wanted, model.actuator_ctrlrange[i, 1]) if limited else wanted
        while data.time < SECONDS:
            mujoco.mj_step(model, data)
        good += bool(np.isfinite(data.qvel).all() and data.qvel[dof] > 1e-3)
    return f"{good} of {model.nu}"


def exported(found: PhysicalParameters, folder: Path) -> tuple[str, str, str]:
    """Cells of the torque in Pinocchio and MuJoCo, and of the motors."""
    robot = found.base.robot
    values: dict[str, float] = dict(found.robot_values)
    cells = []
    try:
        done = di.export_urdf(robot, values, folder / "new.urdf", from_scratch=True)
        cells.append(f"{pinocchio_error(robot, values, done.path):.0e}")
    except DynidentError as error:
        cells.append(f"no URDF: {str(error).split('.')[0].split(': ')[-1]}")
    done = di.export_mjcf(robot, values, folder / "new.xml", from_scratch=True)
    return *cells, f"{mujoco_error(robot, done.held, done.path):.0e}", motors_that_move(robot, done.path)


def row(name: str) -> str:
    """A row of the table."""
    evidence = ROBOTS[name](name)
    found = di.physical_fit(evidence)
    one = masses(evidence, found)
    described = found.described_total_mass
    total = f"{found.total_mass:.4g} kg, " + ("not known" if described is None else f"{described:.4g} kg")
    with tempfile.TemporaryDirectory() as folder:
        cells = exported(found, Path(folder))
    shares = [f"{100.0 * x:.2g} %" if x > 1e-6 else "0" for x in (one.alone, one.exported)]
    shares += [f"{x:.2g}" for x in (one.thin, one.inertia)]
    return f"| {name} | {one.n} | {' | '.join(shares)} | {total} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", default=",".join(ROBOTS))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a document with the marks of this table")
    given = parser.parse_args()
    rows = [HEAD]
    print(HEAD)
    for name in given.robots.split(","):
        if (name in OTHERS and not (FILES / name).exists()) or (
            name in friction.ARMS and not (friction.DATA / friction.ARMS[name][0]).exists()
        ):
            print(f"{name}: skipped, not there", file=sys.stderr)
            continue
        rows.append(row(name))
        print(rows[-1], flush=True)
    if given.write:
        text = given.write.read_text()
        before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
        given.write.write_text(f"{text[:before]}\n\n" + "\n".join(rows) + f"\n\n{text[after:]}")


if __name__ == "__main__":
    main()
