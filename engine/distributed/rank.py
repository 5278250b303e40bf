"""One process of a job: its environment as torchrun's, the program in it, and an end of all where it fails.

``python -m engine.distributed.rank PROGRAM ...`` is what the launcher lets MPI start.
"""

import atexit
import contextlib
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

# What launchers call the rank, the number of processes, and both for this computer alone.
RANK = "PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK PALS_RANKID SLURM_PROCID"
SIZE = "PMI_SIZE OMPI_COMM_WORLD_SIZE PALS_SIZE SLURM_NTASKS"
LOCAL_RANK = "MPI_LOCALRANKID OMPI_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID SLURM_LOCALID"
LOCAL_SIZE = "MPI_LOCALNRANKS OMPI_COMM_WORLD_LOCAL_SIZE PALS_LOCAL_SIZE"
FOLDER = "UNDERTORCH_RUN_FOLDER"  # where each process leaves a file with its number, for the launcher
FIRST = "first"  # and the first that fails what it has to say
DOOR = "door"  # and is connected until it ends
SEEN = b"!"  # what the launcher answers once it would see that end
ARRIVAL = 0.5  # seconds that the last words of a process may take to the launcher


def first(names, default=None):
    return next((os.environ[name] for name in names.split() if name in os.environ), default)


def is_one():
    """Tell whether this process is one of several that MPI, srun or the like started."""
    return first(RANK) is not None and int(first(SIZE, "1")) > 1


def environment():
    """The variables that torchrun sets, for this process."""
    rank, size = int(first(RANK, "0")), int(first(SIZE, "1"))
    local, beside = int(first(LOCAL_RANK, str(rank))), int(first(LOCAL_SIZE, str(size)))
    node = int(os.environ.get("SLURM_NODEID", rank // beside))
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(beside),
        "GROUP_RANK": str(node), "GROUP_WORLD_SIZE": str(-(-size // beside)), "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(size), "ROLE_NAME": "default",
    }  # fmt: skip


def defaults():
    """Return the variables that are the same for all ranks, unless they are set."""
    given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
    given |= {"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "OMP_NUM_THREADS": "1"}
    return {name: value for name, value in given.items() if name not in os.environ}


def die_with_parent(number=signal.SIGTERM):
    """On Linux: a process whose parent is killed gets a signal, so that nothing stays behind."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  there alone

        ctypes.CDLL(None).prctl(1, int(number))  # PR_SET_PDEATHSIG


def run(words, module=False):
    """Run a program as ``__main__``; where it fails, all processes of the job end."""
    os.environ.update(environment() | defaults())
    for stream in sys.stdout, sys.stderr:  # whole lines at once: in pieces, those of several ranks would mix
        stream.reconfigure(line_buffering=True, write_through=False)
    if hasattr(signal, "SIGKILL"):
        die_with_parent(signal.SIGKILL)
    note()
    connect()
    atexit.register(note, "finished")
    program, sys.argv = words[0], list(words)
    try:
        if module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(program).resolve().parent))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
        if code:
            if not isinstance(e.code, int):
                print(e.code, file=sys.stderr)
            fail(code)
        raise
    except BaseException as e:
        if is_first():
            told(e, program)
        fail(130 if isinstance(e, KeyboardInterrupt) else 1)


def note(*words):
    """Tell the launcher what has become of this process."""
    if folder := os.environ.get(FOLDER):
        with contextlib.suppress(OSError):
            file = Path(folder) / str(os.getpid())
            file.write_text(" ".join((os.environ["RANK"], *words)), encoding="utf-8")


def connect():
    """Stay connected with the launcher until this process ends, so that it sees which one ends first.

    Where two could end before it has looked, it could not tell: each waits until it has been seen.

    MPI ends the others when its own connection closes.  Linux lets go of a process's files by their numbers, up, and
    then closes those that nobody else has: in that order, or the last first.  So there is a connection on either side
    of MPI's, and the first of them to close tells.
    """
    if sys.platform != "linux":
        return
    import fcntl  # noqa: PLC0415  not on Windows

    def connected():
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(Path(os.environ[FOLDER]) / DOOR))
        one.send(str(os.getpid()).encode())
        return one

    kept = []
    with contextlib.suppress(KeyError, OSError, ValueError), connected() as one, connected() as other:
        for end in one, other:
            end.recv(len(SEEN))
        for file, least in (one, 100), (other, 200):
            kept.append(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, least))
        kept.append(fcntl.fcntl(int(os.environ["PMI_FD"]), fcntl.F_DUPFD_CLOEXEC, 101))
    os.register_at_fork(after_in_child=lambda: [os.close(number) for number in kept])


def is_first():
    """Tell whether this is the first process on this computer to fail; those that wait for it fail soon after."""
    if folder := os.environ.get(FOLDER):
        try:
            (Path(folder) / FIRST).touch(exist_ok=False)
        except FileExistsError:
            time.sleep(2 * ARRIVAL)
            return False
        except OSError:  # on another computer than the launcher's there is no such folder
            pass
    return True


def told(error, program):
    """Give the launcher the traceback, from the program on, each line with the rank."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != str(program) and frames.tb_next:
        frames = frames.tb_next
    at = frames if frames is not None and frames.tb_frame.f_code.co_filename == str(program) else error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, at))
    rank = os.environ["RANK"]
    text = "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())
    try:
        # By MPI it may take longer to the launcher than until all are ended: beside other programs, or a slow network.
        with (Path(os.environ[FOLDER]) / FIRST).open("r+", encoding="utf-8") as file:
            file.write(text)
    except (KeyError, OSError):
        print(text, end="", file=sys.stderr, flush=True)


def fail(code):
    """End all processes of the job."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.environ["WORLD_SIZE"] == "1":
        sys.exit(code)
    from ..collectives import mpi  # noqa: PLC0415  a process alone needs none

    atexit.unregister(note)
    note("failed", str(code))
    time.sleep(ARRIVAL)  # MPI ends all at once: what was on its way from here to the launcher would be lost
    mpi.abort(code)


def main():
    words = sys.argv[1:]
    module = words[0] == "-m"
    run(words[module:], module)


if __name__ == "__main__":
    main()
