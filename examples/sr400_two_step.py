"""The two-step identification of Gautier, Khalil, Restrepo 1995: wrist first, then the arm with the wrist locked.

Step 1 takes the rows of motors 4, 5, 6 while all joints move, step 2 those of motors 1, 2, 7 with 4, 5, 6 locked;
parameters whose relative standard deviation stays above 15 % are left out. Replace `record_runs` with logs of your own
robot (`di.read_log`), and the names of joints with yours. The whole paper: `dynident papers gautier`.

Run: python examples/sr400_two_step.py
"""

import dynident as di
from dynident.papers.gautier.experiments import ARM, SIGNALS, TERMS, WRIST, WRIST_LOCKED, record_runs, true_values


def two_steps(runs: tuple[di.Log, di.Log]) -> di.estimate.StagedEstimate:
    """Both experiments, one after the other; the first one's parameters are known in the second."""
    robot = di.load_robot("sr400")
    wrist = di.estimate.experiment("wrist", robot, runs[0], TERMS, outputs=WRIST, signals=SIGNALS)
    arm = di.estimate.experiment("arm", robot.lock(**WRIST_LOCKED), runs[1], TERMS, outputs=ARM, signals=SIGNALS)
    return di.estimate.solve_in_steps([wrist, arm], essential=0.15)


if __name__ == "__main__":
    truth = true_values()
    found = two_steps(record_runs(truth))
    print(found.stage_table(), "\n")
    for name in found.essential:
        std = found.std[found.names.index(name)]
        print(f"{name:6} {found[name]:9.4f} +- {2 * std:.4f}   true {truth.get(name, 0.0):g}")
