"""Tensors from data, constants and random numbers, and back to Python and NumPy."""
METHODS = IN_PLACE = FUNCTIONS = ""
