"""Abhishek, Hayat, Udai, Saha: joints 2, 3 and 5 of a KUKA KR5 as a planar arm; Tables 2 to 5, Figures 4 to 7."""
