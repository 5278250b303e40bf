"""Entries on disk: files in the user's cache folder, each written at once and checked when it is read.

Nothing here raises: with a full or read-only disk, or a damaged entry, there is just nothing found.
"""

import contextlib
import os
import stat
import sys
import tempfile
import time
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ..arrays.warn import warn

LIMIT = 200_000_000  # bytes of all entries
OLD = 3600  # seconds after which nobody writes at a file any more
EVERY = 50  # entries that are written between two looks at their size
written = 0


def folder():
    """The folder of the entries, in UNDERTORCH_CACHE or where the system keeps a user's caches, or None."""
    get = os.environ.get
    if sys.platform == "win32":
        base = get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = "~/Library/Caches" if sys.platform == "darwin" else get("XDG_CACHE_HOME") or "~/.cache"
    return folder_in(get("UNDERTORCH_CACHE") or base + "/undertorch")


@lru_cache
def folder_in(where):
    """The folder of the entries there, made if need be; an entry is code, so that others must not write to it."""
    try:
        path = Path(where).expanduser() / "loops"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        about = path.stat()
    except (OSError, RuntimeError):  # RuntimeError: nobody's home
        return None
    if os.name == "posix" and (about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        warn(f"Machine code is not kept in {path}: it belongs to others, or they can write to it.", RuntimeWarning)
        return None
    return path


def read(name):
    """Return what was written under a name, or None."""
    if (where := folder()) is None:
        return None
    try:
        content = (where / name).read_bytes()
    except OSError:
        return None
    if sha256(content[32:]).digest() != content[:32]:  # damaged
        remove(name)
        return None
    with contextlib.suppress(OSError):
        os.utime(where / name)  # those that nobody reads go first
    return content[32:]


def remove(name):
    if (where := folder()) is not None:
        with contextlib.suppress(OSError):
            (where / name).unlink()


def write(name, content):
    """Keep bytes under a name; whoever reads meanwhile finds all of them or none."""
    global written
    if (where := folder()) is None:
        return
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=where, suffix=".tmp", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(sha256(content).digest() + content)
                file.close()
                temporary.replace(where / name)
            finally:
                temporary.unlink(missing_ok=True)  # what was not written in full, or not put in place
        if written % EVERY == 0:
            trim(where)
    written += 1


def trim(where, limit=LIMIT):
    """Remove what writers left who were killed, and above the limit the oldest entries, down to three quarters."""
    found = []
    for path in where.iterdir():
        with contextlib.suppress(OSError):  # another process has removed it
            found.append((path.stat().st_mtime, path.stat().st_size, path))
    size = sum(length for _, length, _ in found)
    above = size > limit
    for modified, length, path in sorted(found):
        above = above and size > limit * 3 // 4
        if above or (path.suffix == ".tmp" and modified < time.time() - OLD):
            with contextlib.suppress(OSError):
                path.unlink()
                size -= length
