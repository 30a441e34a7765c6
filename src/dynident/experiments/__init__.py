"""Special experiments on a plant: oscillation, step voltage, gravity moments and constant velocity."""
