"""Identification through natural oscillations (Jamisola, Dadios, Ang): the weight first, then the inertia."""
