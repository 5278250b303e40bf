"""Files are written whole or not at all. The standard library alone."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> bool:
    """Write a file whole or not at all; False where it already held this text."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return True
