"""Kim 1990: steps of voltage on the Minnesota arm; Table 1, Figures 4 to 6, equations (A-1) to (A-6)."""
