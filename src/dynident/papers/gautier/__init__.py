"""Gautier, Khalil, Restrepo 1995: the SR400 in two steps; Tables 1 to 4, Figures 2 and 3, energy, known load."""
