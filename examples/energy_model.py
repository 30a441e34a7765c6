"""Links 5 and 6 of the SR400 by the energy model, the power model and the dynamic model, from one log.

Energy and power need positions and speeds, the dynamic model accelerations as well; that they agree is a check of the
filters and of the model (Gautier, Khalil, Restrepo 1995, section 4.4).
Run: python examples/energy_model.py
"""

import numpy as np
from known_load import loaded_values
from sr400_two_step import TERMS, record, true_values

import dynident as di

SIGNALS = di.SignalOptions(band=20.0, differentiator="central", rest_speed=0.0)


def three_models(
    seed: int = 3, **options
) -> tuple[di.BaseParameters, di.estimate.EnergyRows, dict[str, di.estimators.Estimator]]:
    """The base parameters of links 5 and 6, the energy rows, and the fit of each model."""
    robot = di.load_robot("sr400")
    wrist = robot.lock(q1=0.0, q2=-1.57, q4=0.0, q7=0.0)
    log = record(wrist, loaded_values(robot, true_values(robot)), seed, **options)
    observations = di.observe(log, wrist, SIGNALS)
    energy = di.estimate.observed_energy(observations, TERMS, length=0.4, overlap=0.5)
    power = di.estimate.observed_power(observations, TERMS)
    dynamic = di.estimate.experiment("dynamic", wrist, log, TERMS, signals=SIGNALS)
    data = {"energy": energy.information, "power": power.information, "dynamic": dynamic.information}
    fits = {name: di.estimators.WeightedLeastSquares().fit(information) for name, information in data.items()}
    return di.base_parameters(wrist, TERMS), energy, fits


def true_base(base: di.BaseParameters) -> np.ndarray:
    """The truth over the base parameters of the locked robot."""
    robot = di.load_robot("sr400")
    whole = di.base_parameters(robot, TERMS)
    values = loaded_values(robot, true_values(robot))
    return base.K @ whole.standard_values(values, "regrouped zero")


if __name__ == "__main__":
    base, energy, fits = three_models()
    print(energy)
    for name, fit in fits.items():
        print(f"{name:8} {fit.n_rows_:6.0f} rows, rank {fit.rank_} of {base.n}, condition {fit.condition_:.3g}")
    print(f"\n{'':6} {'true':>8}", *(f"{name:>9}" for name in fits))
    for i, (name, truth) in enumerate(zip(base.names, true_base(base), strict=True)):
        print(f"{name:6} {truth:8.4f}", *(f"{fit.values_[i]:9.4f}" for fit in fits.values()))
