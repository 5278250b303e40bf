"""Kernels for speed: functions of plain arrays, which may ask for an array's type so that no operation has to."""
