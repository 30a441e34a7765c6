"""Arguments of verbs that have no options record yet."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser

_TERMS = "comma-separated: rigid, Ia, Fv, Fc (or Fc(0.02), smoothed below 0.02 rad/s, a tenth in m/s on slides), Fo"


def plant_arguments(verb: ArgumentParser) -> None:
    """Which machine, how it is disturbed, and where the runs go."""
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name")
    help_output = "folder for the runs (OUT/runs), answer.json and report.html (default: nothing is written)"
    verb.add_argument("-o", "--output", default=None, metavar="OUT", help=help_output)
    help_plant = "a machine of your own: a Python file and the name of its Plant, or of a function robot -> Plant"
    verb.add_argument("--plant", default=None, metavar="FILE.py:NAME", help=help_plant)
    help_values = "what the simulated machine really is (default: the robot's plant values, else its own)"
    verb.add_argument("--values", default=None, metavar="SET", help=help_values)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help="of commands and readings")
    verb.add_argument("--noise", type=float, default=None, metavar="TORQUE", help="deviation of the torque noise")
    verb.add_argument("--encoder", type=float, default=None, metavar="COUNTS", help="per turn or metre (0: exact)")
    verb.add_argument("--breakaway", type=float, default=None, metavar="RATIO", help="static over kinetic friction")
    help_effects = "friction of real gears, tilt and joint offsets by parameter name, or a YAML file of them"
    verb.add_argument("--effects", default=None, metavar="stop0.3_1=4,..", help=help_effects)
    verb.add_argument("--payload", default=None, metavar="MASS[,CX,CY,CZ[,..]]", help="body on the tool")
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="of the noise (default 0)")
    verb.add_argument("--fresh", action="store_true", help="remove the runs that OUT has from an earlier experiment")
    verb.add_argument("--quiet", action="store_true", help="no progress and nothing on the terminal")


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident gravity`.


def gravity_arguments(verb: ArgumentParser) -> None:
    """Machine or logs, what to sweep and how, and what to compare with."""
    plant_arguments(verb)
    help_from = "logs of slow runs of one joint at a time, instead of a machine"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    help_joints = "only these joints, by name or variable (default: all that feel weight)"
    verb.add_argument("--joints", default=None, metavar="q2,q3", help=help_joints)
    help_pose = "where joints are held, again for a further pose (default: where every moment shows)"
    verb.add_argument("--pose", action="append", default=[], metavar="q2=-1.2,..", help=help_pose)
    help_poses = "sweeps of each joint at different poses, at least (default 1)"
    verb.add_argument("--poses", type=int, default=None, metavar="N", help=help_poses)
    help_span = "half the range of a joint that turns, in degrees (default 60; joints that slide go 0.2 m)"
    verb.add_argument("--span", type=float, default=None, metavar="DEGREES", help=help_span)
    help_speed = "of the sweeps [rad/s] (default 0.2; joints that slide have a quarter of it, in m/s)"
    verb.add_argument("--speed", type=float, default=None, metavar="SPEED", help=help_speed)
    help_order = "of the Fourier series, 1 to 3, or auto: by the residual (default 1, that of rigid links)"
    verb.add_argument("--order", default="1", metavar="N", help=help_order)
    help_fit = "folder that identify wrote, whose mass moments are put beside (Table 5 of the paper)"
    verb.add_argument("--fit", default=None, metavar="FIT", help=help_fit)
    verb.add_argument("--plan", action="store_true", help="tell what would be swept and move nothing")


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident live`.


def live_arguments(verb: argparse.ArgumentParser) -> None:
    """Of `dynident live`."""
    terms = _TERMS
    help_source = (
        "udp://127.0.0.1:9870 or tcp://127.0.0.1:9870 (JSON, one sample each), - (JSON lines on standard input), a log "
        "or a ROS 2 bag (several follow each other), or plant:MOTION (the simulated robot)"
    )
    verb.add_argument("sources", nargs="+", metavar="SOURCE", help=help_source)
    verb.add_argument("--robot", default=None, metavar="ROBOT", help="robot file or bundled name")
    help_fit = "an identification of the robot instead: its links are known, and the payload is found"
    verb.add_argument("--fit", default=None, metavar="FIT", help=help_fit)
    help_find = "parameters or payload (default: payload with --fit, else parameters)"
    verb.add_argument("--find", default=None, choices=("parameters", "payload"), metavar="WHAT", help=help_find)
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    _estimator_arguments(verb, terms)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for senders or logs with other names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    help_speed = "of a log or the plant: 1 as it was, 10 ten times as fast, or max (default)"
    verb.add_argument("--speed", default=None, metavar="X", help=help_speed)
    help_listen = "let other machines send too (default: this one only, unless SOURCE names another address)"
    verb.add_argument("--listen-all", action="store_true", help=help_listen)
    _plant_arguments(verb)
    help_checkpoint = "file that keeps the estimate; if it exists, go on from it"
    verb.add_argument("--checkpoint", default=None, metavar="F.npz", help=help_checkpoint)
    help_every = "real time between checkpoints (default 5)"
    verb.add_argument("--checkpoint-every", type=float, default=5.0, metavar="SECONDS", help=help_every)
    verb.add_argument("--fresh", action="store_true", help="do not go on from an earlier checkpoint")
    help_timeout = "without a sample after which to give up (default 30; 0: wait for ever)"
    verb.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help=help_timeout)
    verb.add_argument(
        "--duration", type=float, default=None, metavar="SECONDS", help="end after so much time of stamps"
    )
    verb.add_argument("--count", type=int, default=None, metavar="N", help="end after so many samples")
    verb.add_argument("--quiet", action="store_true", help="only what is known at the end")


def _estimator_arguments(verb: argparse.ArgumentParser, terms: str) -> None:
    verb.add_argument("--terms", default=None, help=f"{terms} (default: those of the fit, or all)")
    help_band = "band in which motion and torque are compared (default: that of the fit, or 10)"
    verb.add_argument("--band", type=float, default=None, metavar="HZ", help=help_band)
    help_forgetting = "directional (default), exponential or none"
    verb.add_argument("--forgetting", default=None, metavar="HOW", help=help_forgetting)
    help_memory = "time of motion after which old samples count a third (default 60)"
    verb.add_argument("--memory", type=float, default=None, metavar="SECONDS", help=help_memory)


def _plant_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--values", default=None, metavar="SET", help="plant: what the machine really is")
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help="plant: samples per second (default 500)")
    verb.add_argument("--noise", type=float, default=None, metavar="SHARE", help="plant: torque noise (default 0.01)")
    help_payload = "plant: body on the tool [kg, m, kg·m²]"
    verb.add_argument("--payload", default=None, metavar="MASS[,CX,CY,CZ[,..]]", help=help_payload)
    help_at = "plant: when it is attached (default 0)"
    verb.add_argument("--payload-at", type=float, default=None, metavar="SECONDS", help=help_at)
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="plant: of the noise (default 0)")


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident oscillate`.


def oscillate_arguments(verb: ArgumentParser) -> None:
    """Which stage, how it is searched, and the paper's own way."""
    plant_arguments(verb)
    help_stage = "gravity, inertia or both (default), the weight first"
    verb.add_argument("--stage", default="both", choices=("both", "gravity", "inertia"), help=help_stage)
    help_search = "of the weight: extrapolate (default), or as in the paper creep or walk"
    verb.add_argument("--search", default=None, choices=("extrapolate", "creep", "walk"), help=help_search)
    verb.add_argument("--nominal", default=None, metavar="SET", help="what is known before (default: the robot's own)")
    verb.add_argument(
        "--factor", type=float, default=None, metavar="F", help="over-estimate to begin with (default 1.5)"
    )
    help_amplitude = "of the starts (default: small, but many steps of the encoder)"
    verb.add_argument("--amplitude", type=float, default=None, metavar="DEG", help=help_amplitude)
    verb.add_argument("--reach", type=float, default=None, metavar="DEG", help="beyond which it falls (default 12)")
    verb.add_argument("--periods", type=float, default=None, metavar="N", help="of the slowest mode (default 4)")
    verb.add_argument("--rounds", type=int, default=None, metavar="N", help="of runs, at most (default 2)")
    verb.add_argument("--kp", type=float, default=None, metavar="1/S2", help="proportional gain (default 100)")
    help_pose = "where to look for the upright pose, or where the sensitivity is wanted"
    verb.add_argument("--pose", default="", metavar="q1=0,..", help=help_pose)
    help_points = "set-point of the inertia stage, other joints at 0; may be repeated"
    verb.add_argument("--set-point", action="append", default=[], metavar="q2=1.2,..", help=help_points)
    help_paper = "as in the paper: alternating starts of 15 deg, periods counted; Tables I to VI for pendulum-1 to -3"
    verb.add_argument("--paper", action="store_true", help=help_paper)
    help_updates = "with --paper: update cycles of a run (default 5000 for gravity, 20000 for inertia)"
    verb.add_argument("--updates", type=int, default=None, metavar="N", help=help_updates)
    help_factors = "with --paper: factors of the rows (default: the paper's)"
    verb.add_argument("--factors", default=None, metavar="F,F..", help=help_factors)
    help_combinations = "with --paper: factors that every parameter takes, in all combinations"
    verb.add_argument("--combinations", default=None, metavar="F,F..", help=help_combinations)
    help_resolution = "with --paper: periods that counting tells apart (default 0.5)"
    verb.add_argument("--resolution", type=float, default=None, metavar="N", help=help_resolution)
    help_sensitivity = "torque errors from errors of weight and inertia instead, eq. (28) and (30); nothing moves"
    verb.add_argument("--sensitivity", action="store_true", help=help_sensitivity)
    help_error = "with --sensitivity: position error (default 1)"
    verb.add_argument("--error", type=float, default=None, metavar="DEG", help=help_error)


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident step`.


def step_arguments(verb: ArgumentParser) -> None:
    """Machine, motors, steps, poses, how they are fitted, payload and check."""
    plant_arguments(verb)
    help_from = "recorded steps instead of a machine: logs with t, q1.. and the voltage u of the driven motor"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    help_window = "only this part of every log, by its own stamps [s]"
    verb.add_argument("--window", default=None, metavar="START:STOP", help=help_window)
    _motor_arguments(verb)
    verb.add_argument("--joints", default=None, metavar="q1,q2,..", help="joints to test (default: all that can be)")
    help_volts = (
        "steps for all joints, or by joint: q1=0.8:0.5,q2=0.8:0.4 (default: what the robot's own values suggest, of "
        "both signs where gravity acts)"
    )
    verb.add_argument("--volts", default=None, metavar="V,V", help=help_volts)
    verb.add_argument("--duration", type=float, default=None, metavar="SECONDS", help="of a step (default 1.2)")
    verb.add_argument("--settle", type=float, default=None, metavar="SECONDS", help="before it (default 0.02 or 0.3)")
    help_configurations = "joints and poses together (default: two more than there are combinations)"
    verb.add_argument("--configurations", type=int, default=None, metavar="N", help=help_configurations)
    help_pose = "where to lock the others, instead of chosen poses; may be repeated"
    verb.add_argument("--pose", action="append", default=[], metavar="q1=0,q2=0.5,..", help=help_pose)
    help_hold = "bandwidth of what holds the others (default: what the rate allows)"
    verb.add_argument("--hold", type=float, default=None, metavar="RAD/S", help=help_hold)
    help_still = "by how much a locked joint may move (default 0.005 rad or m)"
    verb.add_argument("--still", type=float, default=None, metavar="RAD", help=help_still)
    help_nominal = (
        "what the controller knows of the robot: inertia for the hold, weight to carry (default: its own values)"
    )
    verb.add_argument("--nominal", default=None, metavar="SET", help=help_nominal)
    help_weight = (
        "relative standard deviation of the masses, centers and inertias that it knows (default 0.2; 0: exact)"
    )
    verb.add_argument("--weight-std", type=float, default=None, metavar="SHARE", help=help_weight)
    help_unbounded = "let a simulated machine run beyond its position limits; speed limits stay"
    verb.add_argument("--unbounded", action="store_true", help=help_unbounded)
    help_taylor = "A and U by Taylor's series with N terms, as in the paper (default: the exact solution)"
    verb.add_argument("--taylor", type=int, default=None, metavar="N", help=help_taylor)
    help_solve = "combinations joint by joint from the tip (sequential, default), or all together"
    verb.add_argument("--solve", default="sequential", choices=("sequential", "together"), help=help_solve)
    help_more = "add poses that tell a payload, for an unloaded test whose loaded repeat follows"
    verb.add_argument("--for-payload", action="store_true", help=help_more)
    help_unloaded = (
        "folder of the same test without payload: its poses and voltages are repeated, the difference is the payload"
    )
    verb.add_argument("--unloaded", default=None, metavar="OUT", help=help_unloaded)
    help_track = "then follow a cubic of 30 degrees in 0.3 s by feedforward alone, joint by joint and all together"
    verb.add_argument("--track", action="store_true", help=help_track)
    help_computed = "with --track: a set of parameters computed before, to compare with"
    verb.add_argument("--computed", default=None, metavar="SET", help=help_computed)


def _motor_arguments(verb: ArgumentParser) -> None:
    one = "one number, or one per joint"
    verb.add_argument("--motors", default=None, metavar="FILE.yaml", help="the numbers below, by their long names")
    help_gain = f"torque per voltage K = Kt/Ra at the joint [N·m/V], {one} (default: the effort limit at 10 V)"
    verb.add_argument("--gain", default=None, metavar="X[,X..]", help=help_gain)
    verb.add_argument("--kt", default=None, metavar="X[,X..]", help=f"torque constant [N·m/A], {one}")
    verb.add_argument("--ra", default=None, metavar="X[,X..]", help=f"resistance [Ohm], {one}")
    verb.add_argument("--ke", default=None, metavar="X[,X..]", help=f"back-EMF constant [V·s/rad], {one}")
    verb.add_argument("--inductance", default=None, metavar="X[,X..]", help=f"[H], {one}")
    verb.add_argument("--voltage-limit", default=None, metavar="X[,X..]", help=f"[V], {one}")
    verb.add_argument("--shaft", action="store_true", help="these numbers are at the motor shaft, not at the joint")


# ----------------------------------------------------------------------------------------------------------------------
# Arguments of `dynident friction`.


def friction_arguments(verb: ArgumentParser) -> None:
    """What to run at which speeds, and where gravity comes from."""
    plant_arguments(verb)
    help_joints = "joints to test (default: all with friction); coupled ones are tested together"
    verb.add_argument("--joints", default=None, metavar="q5,q6", help=help_joints)
    help_speeds = "speeds of every joint, each run in both directions, or by joint (default: shares of the fastest)"
    verb.add_argument("--speeds", default=None, metavar="0.1,0.5,1|q5=1:2:3,..", help=help_speeds)
    help_range = "positions between which joints may move (default: their limits)"
    verb.add_argument("--range", default=None, metavar="q5=-1:1,..", help=help_range)
    help_at = "where other joints are held (default: where gravity does least, by the robot's own values)"
    verb.add_argument("--at", default="", metavar="q2=0.5,..", help=help_at)
    help_gravity = "cancel (default: by both directions), model (the robot's own values) or none"
    verb.add_argument("--gravity", default="cancel", choices=("cancel", "model", "none"), help=help_gravity)
    verb.add_argument("--fit", default=None, metavar="FIT", help="gravity and inertia from what identify wrote")
    help_from = "logs in which joints move alone, instead of runs on a machine"
    verb.add_argument("--from", dest="logs", nargs="+", default=[], metavar="LOG", help=help_from)
    help_friction = "laws beside viscous and Coulomb: stribeck(0.2), sign(0.2), quadratic, cubic"
    verb.add_argument("--friction", default=None, metavar="WHICH", help=help_friction)
    help_cruise = "longest time at a speed (default 1)"
    verb.add_argument("--cruise", type=float, default=None, metavar="SECONDS", help=help_cruise)
    verb.add_argument("--ramp", type=float, default=None, metavar="SECONDS", help="from rest to a speed (default 0.3)")
    help_settle = "at a speed before it is measured (default 0.2)"
    verb.add_argument("--settle", type=float, default=None, metavar="SECONDS", help=help_settle)
    help_bandwidth = "of the feedback that moves and holds the joints (default 30)"
    verb.add_argument("--bandwidth", type=float, default=None, metavar="RAD/S", help=help_bandwidth)
    verb.add_argument("--columns", default=None, metavar="FILE", help="YAML file for logs with other column names")
    verb.add_argument("--window", default=None, metavar="START:STOP", help="only this part of every log [s]")


def excite_arguments(verb: argparse.ArgumentParser) -> None:
    """Of `dynident excite`."""
    verb.add_argument("robot", metavar="ROBOT", help="robot file or bundled name; its limits are respected")
    verb.add_argument("-o", "--output", required=True, metavar="F.yaml", help="file for the motion")
    verb.add_argument("--duration", type=float, default=None, metavar="SECONDS", help="of the motion (default 10)")
    help_frequency = "base frequency of the series (default: one period in the duration)"
    verb.add_argument("--frequency", type=float, default=None, metavar="HZ", help=help_frequency)
    verb.add_argument("--harmonics", type=int, default=None, metavar="N", help="of the series (default 5)")
    help_criterion = "determinant (default), condition, smallest or interval"
    verb.add_argument("--criterion", default=None, metavar="NAME", help=help_criterion)
    verb.add_argument("--model", default=None, metavar="NAME", help="dynamic (default) or energy")
    verb.add_argument("--terms", default=None, help=f"{_TERMS} (default: all)")
    verb.add_argument("--locked", default="", metavar="q4=0.5,..", help="joints held at a position [rad or m]")
    verb.add_argument("--start", default="", metavar="q1=0,..", help="pose at which it starts and ends (default: free)")
    help_noise = (
        "deviation of the torque, one number, one per joint or q1=X,.. (default: 1 %% of effort limits, else 1)"
    )
    verb.add_argument("--noise", default=None, metavar="X[,X..]", help=help_noise)
    help_rest = "speed at which a joint's row counts half (default: 2 %% of the velocity limits; 0: all alike)"
    verb.add_argument("--rest-speed", type=float, default=None, metavar="SPEED", help=help_rest)
    help_acceleration = "limit, one number, one per joint in their order or q1=X,.. (default: none)"
    verb.add_argument("--acceleration", default=None, metavar="X[,X..]", help=help_acceleration)
    by_joint = "of all joints (smaller ones of the robot stay), or by joint (in place of the robot's)"
    help_velocity = f"velocity limit {by_joint} [rad/s or m/s]"
    verb.add_argument("--max-velocity", default=None, metavar="X|q1=X,..", help=help_velocity)
    help_effort = f"torque limit {by_joint} [N·m or N]"
    verb.add_argument("--max-effort", default=None, metavar="X|q1=X,..", help=help_effort)
    help_range = f"position limits {by_joint}: LOWER:UPPER, or X for -X:X [rad or m]"
    verb.add_argument("--position-range", default=None, metavar="X|q1=A:B,..", help=help_range)
    help_safety = "share of every joint limit that is used (default 0.95)"
    verb.add_argument("--safety", type=float, default=None, metavar="SHARE", help=help_safety)
    verb.add_argument("--floor", type=float, default=None, metavar="Z", help="height that all links stay above [m]")
    help_box = "box to stay out of: its lower and its upper corner in the base frame [m]; may be repeated"
    verb.add_argument("--box", action="append", default=[], metavar="x,y,z,x,y,z", help=help_box)
    help_clearance = "least distance between links that are not neighbours [m]"
    verb.add_argument("--clearance", type=float, default=None, metavar="M", help=help_clearance)
    verb.add_argument("--radius", type=float, default=None, metavar="M", help="of the links (default 0.05 m)")
    help_extend = "data that is there already: the folder that identify wrote, or information (.npz)"
    verb.add_argument("--extend", default=None, metavar="FIT", help=help_extend)
    verb.add_argument("--starts", type=int, default=None, metavar="N", help="random starts (default 16)")
    help_kicks = "pushes of each of the three best motions, each followed by a search (default 2)"
    verb.add_argument("--kicks", type=int, default=None, metavar="N", help=help_kicks)
    verb.add_argument("--seed", type=int, default=None, metavar="N", help="of the random starts (default 0)")
    help_rate = "samples per second of the CSV and ROS files, and of the identification (default 100)"
    verb.add_argument("--rate", type=float, default=None, metavar="HZ", help=help_rate)
    verb.add_argument("--csv", default=None, metavar="F.csv", help="samples as t,q1..,dq1..,ddq1..")
    verb.add_argument("--ros", default=None, metavar="F.json", help="samples as a ROS 2 JointTrajectory message")
    verb.add_argument("--report", default=None, metavar="F.html", help="page with limits, curves, space and deviations")
    verb.add_argument("--quiet", action="store_true", help="no progress and no page")
