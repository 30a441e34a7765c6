"""The demo's run with 2 kg on the tool: does the identification find what was fastened, and are the drive gains right?

The arm of examples/demo is identified without and with the load. What a body of known mass, center and inertia must
change in the base parameters stands beside what the second identification found. Then the same logs, with the mass as
the only known value, tell the drive gains, which stand in the robot file.
Run: python examples/demo_payload.py
"""

from pathlib import Path

import dynident as di

DEMO = Path(__file__).parent / "demo"
LOAD = di.payload.Payload(
    mass=2.0, com=(0.01, 0.02, 0.06), inertia=(0.004, 0.0, 0.0, 0.004, 0.0, 0.002)
)  # weighed, measured


def logs(robot: di.Robot) -> tuple[list[di.Log], di.Log]:
    """The logs without the load, and the one with it."""
    first, second, loaded = (
        di.read_log(DEMO / f"{name}.csv.gz", robot) for name in ("fourier_1", "fourier_2", "payload")
    )
    return [first, second], loaded


def side_by_side() -> di.payload.PayloadComparison:
    """Identify without and with the load, and compare."""
    robot = di.load_robot(DEMO / "arm.yaml")
    without, loaded = logs(robot)
    fits = [di.identify(robot, logs, friction="basic") for logs in (without, loaded)]
    return di.payload.compare_payload(*fits, LOAD)


def drive_gains() -> di.payload.DriveGains:
    """Gains of the drives, [N·m/A], from the weight of the load alone."""
    robot = di.load_robot(DEMO / "arm.yaml")
    runs = [
        di.estimate.experiment(name, robot, run) for name, run in zip(("without", "loaded"), logs(robot), strict=True)
    ]
    return di.identify_drive_gains(robot, *runs, {"M": LOAD.mass}, nominal=robot.drive.gains)


if __name__ == "__main__":
    found = side_by_side()
    print("What 2 kg on the tool changes:")
    print(di.payload.PayloadComparison(found.changed).table())
    print(f"{100 * found.agreeing:.0f} % of all parameters agree within two standard deviations of the difference\n")
    print("Drive gains by the weight of the load, [N·m/A]; factor 1 is what the robot file says:")
    print(drive_gains().table())
