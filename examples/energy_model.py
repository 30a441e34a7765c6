"""Links 5 and 6 of the SR400 by the energy model, the power model and the dynamic model, from one log.

Energy and power need positions and velocities, the dynamic model accelerations as well; that they agree is a check of
the filters and of the model (Gautier, Khalil, Restrepo 1995, section 4.4). The whole paper: `dynident papers gautier`.
Run: python examples/energy_model.py
"""

from dynident.papers.gautier.experiments import three_models, true_base

if __name__ == "__main__":
    base, energy, fits = three_models()
    print(energy)
    for name, fit in fits.items():
        print(f"{name:8} {fit.n_rows_:6.0f} rows, rank {fit.rank_} of {base.n}, condition {fit.condition_:.3g}")
    print(f"\n{'':6} {'true':>8}", *(f"{name:>9}" for name in fits))
    for i, (name, truth) in enumerate(zip(base.names, true_base(base), strict=True)):
        print(f"{name:6} {truth:8.4f}", *(f"{fit.values_[i]:9.4f}" for fit in fits.values()))
