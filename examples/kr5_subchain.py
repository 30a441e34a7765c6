"""A sub-chain of a six-joint arm: move joints 2, 3 and 5 of a KUKA KR5, learn about the whole arm.

    python examples/kr5_subchain.py

Joints 1, 4 and 6 are braked; the others move in a vertical plane (Abhishek et al.). Prints each parameter of their log,
a combination of the whole arm's, next to that of a run of all joints; then what both logs give together.

To adapt it, put your robot file for "kr5", your braked joints for LOCKED and your logs for SUBCHAIN and WHOLE, with
columns t, q2, q3, q5, tau2, tau3, tau5 for the joints that move.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import dynident as di

HERE = Path(__file__).parent / "subchain"
SUBCHAIN, WHOLE = HERE / "joints_2_3_5.csv.gz", HERE / "all_joints.csv.gz"
LOCKED = {"q1": 0.0, "q4": 0.0, "q6": 0.0}  # [rad]
TERMS = "rigid,Ia,Fv,Fc"


def over_whole_arm(own: di.BaseParameters, whole: di.BaseParameters) -> np.ndarray:
    """Base parameters of the sub-chain over those of the whole arm: beta = X beta_whole, (n, n_whole)."""
    X = own.K[:, list(whole.independent)]  # whole.K is the identity on its independent columns
    assert np.allclose(X @ whole.K, own.K), "the sub-chain sees something that the whole arm does not"
    return X


def text(names: tuple[str, ...], row: np.ndarray) -> str:
    """Such as `MXR3 + MX4`."""
    used = [(name, x) for name, x in zip(names, row, strict=True) if x]
    parts = [f"{'+' if x > 0 else '-'} {'' if abs(x) == 1 else f'{abs(x):.4g} '}{name}" for name, x in used]
    return " ".join(parts).removeprefix("+ ")


def main() -> None:
    """Identify the sub-chain, carry it over to the arm, and merge it with a run of all joints."""
    arm = di.load_robot("kr5")
    part = arm.lock(**LOCKED)
    with tempfile.TemporaryDirectory() as store:  # what each log said, in kilobytes
        fit = di.identify(part, di.read_log(SUBCHAIN, part), terms=TERMS, store=store)
        all_joints = di.identify(arm, di.read_log(WHOLE, arm), terms=TERMS, store=store)
        factors = [di.load_information(path) for path in Path(store).glob("*.npz")]

    assert fit.nominal is not None
    print(f"Joints {', '.join(part.joint_names)}: {fit.rank} parameters, none undetermined: {not fit.undetermined}.")
    print(f"Torque error {100 * fit.nominal.relative:.2f} % before, {100 * fit.train.relative:.2f} % after.\n")
    print("Each is a combination of the whole arm's base parameters; a run of all six joints agrees:")
    X = over_whole_arm(fit.base, all_joints.base)
    others, spread = X @ all_joints.beta, np.sqrt(np.diag(X @ all_joints.covariance @ X.T))
    for i, (name, row) in enumerate(zip(fit.names, X, strict=True)):
        both = f"{fit.beta[i]:8.3f} ± {fit.std[i]:.3f}   {others[i]:8.3f} ± {spread[i]:.3f}"
        print(f"  {name:5} {both}   {text(all_joints.names, row)}")

    # Standard parameters of the whole arm that agree with the sub-chain and are otherwise near the description.
    chi = fit.base.standard_values(fit.beta, prior="plant")
    known = arm.with_values("identified", {c.name: x for c, x in zip(fit.base.columns, chi, strict=True)})
    mass = known.value_set()["M3"]
    print(f"\nStandard values for the whole arm that agree, near its description: M3 = {mass:.2f} kg is one choice.")

    # Factors hold the delay of the torque beside the parameters; simulated torque is not late.
    factors = [one.restrict(name for name in one.names if name != "delay") for one in factors]
    merged = di.estimators.WeightedLeastSquares().fit(sum(factors))
    narrower = merged.std_ / all_joints.white_std
    print(f"Both logs together: {merged.rank_} of {len(merged.names_)} parameters of the whole arm, std of")
    for name in ("ZZR2", "MXR2", "MZR3", "Fv2"):
        print(f"  {name:5} {100 * narrower[merged.names_.index(name)]:3.0f} % of those without the sub-chain's log")


if __name__ == "__main__":
    main()
