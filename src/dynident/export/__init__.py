"""Files that other tools accept, each proved by reading it back: URDF, MJCF, YAML and C."""
