"""Special experiments on a plant: free oscillation, voltage steps, quasi-static gravity, constant velocity."""

from importlib import import_module
from typing import Any

_MODULES = {  # each experiment is loaded when it is asked for
    "dynident.experiments.bench": "Bench Bounds",
    "dynident.experiments.friction": "VelocityFriction velocity_friction velocity_friction_from_logs",
    "dynident.experiments.gravity": "GravityMoments gravity_from_logs gravity_moments",
    "dynident.experiments.oscillation.procedure": "Oscillation oscillate",
    "dynident.experiments.oscillation.torque_sensitivity": "sensitivity",
    "dynident.experiments.options": "FrictionOptions GravityOptions OscillationOptions PlantOptions StepOptions",
    "dynident.experiments.step": "StepResult step_test",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = [*_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dynident.experiments' has no attribute '{name}'")
    return getattr(import_module(_MODULE_OF[name]), name)
