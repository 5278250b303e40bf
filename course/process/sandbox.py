"""What a process gives up before it runs a program that somebody has handed in; nothing of it can be taken back.

On every system: time and memory (`course.process.worker`). Where root grades: the user, for one that owns nothing. On
Linux, since 5.13, by Landlock: every file but those of Python and the engine (to read) and its own folder, TCP, and
signals to others. Elsewhere a submission can read and write what the user can who grades: `docs/teaching.md` says so.
"""

import ctypes
import os
import struct
import sys
from pathlib import Path

# <linux/landlock.h>, <linux/prctl.h>, <linux/capability.h>; the three system calls have one number on all processors.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_LIST = 1 << 3  # a folder
_READ = 1 << 0 | 1 << 2 | _LIST  # execute, read a file
_READ_AND_WRITE = _READ | 1 << 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}  # how many there are, from this version on
_NET_RIGHTS, _SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
_DUMPABLE, _KEEP_CAPABILITIES, _NO_NEW_PRIVILEGES = 4, 8, 38
_CAPSET_VERSION, _READ_EVERYTHING = 0x20080522, 1 << 2
_MOST_PROCESSES = 256
_NOBODY = 65534


class NoSandbox(Exception):
    """Raised where rights that have to be given up could not be; the message says why."""


def locks_files() -> bool:
    """Tell whether this system can close files to a process."""
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION) > 0


def unseen(closed: bool = True) -> None:
    """Linux: this process's memory and descriptors are closed to others of the same user, or no longer."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DUMPABLE, not closed, 0, 0, 0)


def enter(folder: Path, readable: list[Path], listed: list[Path] | None = None) -> None:
    """Keep this process to `folder`, and what it reads to that and `readable`. Raises NoSandbox.

    Of what is `listed` it sees the names: imports ask which files a folder has.
    """
    os.chdir(folder)
    if sys.platform == "win32":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    linux, root = sys.platform == "linux", os.geteuid() == 0
    if root:
        if linux:
            libc.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
        _become_another(folder)
    closed = [path for path in readable if not os.access(path, os.R_OK)]
    if linux:
        # The user is another already. Of root's powers, reading stays where Python needs it, and files are locked.
        if root:
            _keep(libc, _READ_EVERYTHING)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        locked = _lock(libc, folder, readable, listed or [])
        if root and not (closed and locked):
            _keep(libc, 0)
        closed = [] if root and locked else closed
    if closed:
        raise NoSandbox(
            f"Only root can read {closed[0]}: grade as another user, or have Python and the course elsewhere."
        )


def _keep(libc: ctypes.CDLL, powers: int) -> None:
    """Have these of root's powers, and no others."""
    if libc.capset(struct.pack("Ii", _CAPSET_VERSION, 0), struct.pack("6I", powers, powers, 0, 0, 0, 0)):
        raise NoSandbox("The powers of root could not be given up.")


def _become_another(folder: Path) -> None:
    """Be a user whom nobody else is, not even another submission's process; `folder` is theirs."""
    if sys.platform == "win32":
        return
    import resource

    try:
        user = 2**30 + os.getpid()
        try:
            os.chown(folder, user, user)
        except OSError:  # a container may know few users
            user = _NOBODY
            os.chown(folder, user, user)
        resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_PROCESSES, _MOST_PROCESSES))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    except OSError as error:
        raise NoSandbox(f"Root's process could not become another user's ({error}).") from None


def _lock(libc: ctypes.CDLL, folder: Path, readable: list[Path], listed: list[Path]) -> bool:
    """Landlock; whether this Linux has it."""
    if sys.platform != "linux":
        return False
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    everything = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= version)) - 1
    parts = [everything] + [_NET_RIGHTS] * (version >= 4) + [_SCOPES] * (version >= 6)
    rules = libc.syscall(_CREATE_RULESET, struct.pack(f"{len(parts)}Q", *parts), 8 * len(parts), 0)
    allowed = dict.fromkeys(listed, _LIST) | dict.fromkeys(readable, _READ)
    allowed |= {Path("/dev/null"): _READ_AND_WRITE, Path("/dev/urandom"): _READ}
    for path, rights in (allowed | {Path("/dev/shm"): everything, folder: everything}).items():
        if path.exists():
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            beneath = rights if path.is_dir() else rights & ~_LIST
            libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", beneath, place), 0)
            os.close(place)
    if rules < 0 or libc.syscall(_RESTRICT_SELF, rules, 0):
        raise NoSandbox("Landlock is there, and refused.")
    os.close(rules)
    return True
