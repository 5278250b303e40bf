"""The line of the program that has called the engine: the innermost one that is not in this package."""

import os
import sys
import warnings
from pathlib import Path

ENGINE_FOLDER = str(Path(__file__).parents[1]) + os.sep
COMPILED_FILE_PREFIX = "<compiled "  # how the files begin that the compiler writes


def warn(message, category=UserWarning):
    """Warn at the line of the program, however many functions of the engine lie between it and here."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith((ENGINE_FOLDER, COMPILED_FILE_PREFIX)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
