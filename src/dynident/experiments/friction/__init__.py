"""Friction from constant velocities: one joint, or two coupled ones, at stepped velocities in both directions.

Gautier, Khalil, Restrepo 1995, section 3: eq. (7) for one joint, the six parameters of eq. (8) for two coupled ones.
"""

from dynident.experiments.friction.procedure import velocity_friction, velocity_friction_from_logs
from dynident.experiments.friction.result import VelocityFriction

__all__ = ["VelocityFriction", "velocity_friction", "velocity_friction_from_logs"]
