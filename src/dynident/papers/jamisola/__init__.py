"""Jamisola, Dadios, Ang: masses and inertias from natural oscillations; Tables I to VI."""
