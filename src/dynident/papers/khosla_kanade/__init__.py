"""Khosla, Kanade 1987: estimation joint by joint, around nominal values; Tables 2 to 6."""
