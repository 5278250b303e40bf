"""Files are written whole or not at all. The standard library alone."""

import os
import time
from pathlib import Path

TRIES, PAUSE_S = 40, 0.05  # two seconds


def write_atomically(path: Path, text: str) -> bool:
    """Write a file whole or not at all; False where it already held this text."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        put_in_place(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return True


def put_in_place(new: Path, path: Path) -> None:
    """`new.replace(path)`, which on Windows has to wait for whoever reads `path`: another notebook, a virus scanner."""
    for _ in range(TRIES - 1):
        try:
            new.replace(path)
            return
        except PermissionError:
            if os.name != "nt":
                raise
        time.sleep(PAUSE_S)
    new.replace(path)
