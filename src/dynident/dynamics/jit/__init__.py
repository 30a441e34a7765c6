"""Recorded straight-line programs and the machine code made from them."""
