"""Starts a program in several processes: ``python -m engine.distributed.run --nproc-per-node 4 program.py``.

The arguments and the environment of the processes are torchrun's.  MPI starts them: here its ``mpiexec`` is called;
where ``srun`` or ``mpiexec`` has started this already, in each of its processes, they are the processes.
"""

import argparse
import contextlib
import itertools
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from . import launch, rank

WINDOWS = os.name == "nt"
SYNCHRONIZE, STILL_RUNNING = 0x00100000, 0x102  # of Windows: the right to wait for a process, and that it goes on
PATIENCE = 5.0  # seconds for MPI to end its processes, before they are killed
MOMENT = 0.02
THREADS = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMBA_NUM_THREADS"


def parser():
    p = argparse.ArgumentParser(
        prog="python -m engine.distributed.run", description="Start a program in several processes, by MPI.",
        allow_abbrev=False,
    )  # fmt: skip
    add = lambda *names, **how: p.add_argument(  # noqa: E731  torchrun takes both forms
        *names, *(n.replace("-", "_").replace("__", "--", 1) for n in names if n.count("-") > 2), **how
    )
    add("--nnodes", default="1", help="how many computers (with --hostfile, or in a job of Slurm or PBS)")
    add("--nproc-per-node", default="1", help="processes on each: a number, cpu, gpu or auto")
    add("--hostfile", help="a file with the names of the computers, as the MPI has it")
    add("--node-rank", type=int, default=0, help="taken as torchrun takes it; MPI numbers the computers itself")
    add("--master-addr", default="127.0.0.1", help="MASTER_ADDR of the processes; MPI needs none")
    add("--master-port", type=int, default=29500, help="MASTER_PORT of the processes; MPI needs none")
    add("--rdzv-backend", default="static", help="not needed: MPI brings the processes together")
    add("--rdzv-endpoint", default="", help="not needed")
    add("--rdzv-id", default="none", help="TORCHELASTIC_RUN_ID of the processes")
    add("--rdzv-conf", default="", help="not needed")
    add("--standalone", action="store_true", help="one computer alone: what is done anyway")
    add("--max-restarts", type=int, default=0, help="how often all processes are started again after one failed")
    add("--monitor-interval", type=float, default=0.1, help="not needed: MPI tells at once")
    add("--start-method", default="spawn", help="not needed: MPI starts the processes")
    add("--role", default="default", help="not needed")
    add("--local-addr", help="not needed")
    p.add_argument("-m", "--module", action="store_true", help="the program is a module, as in python -m")
    p.add_argument("program", help="a file, or with -m a module")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return p


def number_of(word, name):
    """Return the number of processes that a word stands for."""
    if word.isdecimal() and int(word):
        return int(word)
    if name == "--nproc-per-node" and word in ("cpu", "gpu", "auto"):
        from ..arrays import devices  # noqa: PLC0415  a number needs none of this

        if word != "cpu" and devices.has_cuda():
            return devices.backend_of("cuda").count()
        if word == "gpu":
            raise SystemExit("--nproc-per-node gpu: no GPU is available here")
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if ":" in word:  # torchrun's least and most
        return number_of(word.partition(":")[2], name)
    raise SystemExit(f"{name}: a number of at least 1 is needed, not {word!r}")


def main(argv=None):
    options = parser().parse_args(argv)
    words = [*["-m"] * options.module, options.program, *options.arguments]
    if rank.is_one():
        rank.run(words[options.module :], options.module)
        return 0
    per_node = number_of(options.nproc_per_node, "--nproc-per-node")
    processes = per_node * number_of(options.nnodes, "--nnodes")
    environment = os.environ | {
        "MASTER_ADDR": options.master_addr, "MASTER_PORT": str(options.master_port),
        "TORCHELASTIC_RUN_ID": options.rdzv_id if options.rdzv_id != "none" else uuid.uuid4().hex[:8],
        "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts),
    }  # fmt: skip
    for name in THREADS.split():
        environment.setdefault(name, environment.get("OMP_NUM_THREADS", "1"))
    here = str(Path(__file__).parents[2])  # so that the processes find the engine wherever they run
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [here, environment.get("PYTHONPATH")]))
    start = []
    if processes > 1:
        try:
            start, more = launch.command(launch.found(), processes, per_node, options.hostfile)
        except launch.NoMPI as e:
            print(f"{parser().prog}: {e}", file=sys.stderr)
            return 1
        environment |= more
    command = [*start, sys.executable, "-m", "engine.distributed.rank", *words]
    for attempt in range(options.max_restarts + 1):
        environment["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        code = supervised(command, environment)
        if code in (0, 130, 143) or attempt == options.max_restarts:
            break
        print(f"{parser().prog}: start {attempt + 2} of {options.max_restarts + 1}", file=sys.stderr, flush=True)
    return code


def supervised(command, environment):
    """Run a command of MPI's until it ends; what ends this process ends it too.  Its exit code."""
    stopped = []

    def stop(number, _):
        stopped.append(number)
        pass_on(process, number)

    with tempfile.TemporaryDirectory(prefix="undertorch-", ignore_cleanup_errors=True) as folder:
        posix = os.name == "posix"
        process = subprocess.Popen(
            command, env=environment | {rank.FOLDER: folder}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=posix, preexec_fn=rank.die_with_parent if posix else None,
        )  # fmt: skip
        numbers = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
        before = {number: signal.signal(number, stop) for number in numbers}
        report, ends = Report(process, Path(folder)), Ends(Path(folder))
        try:
            lost, limit, killed = [], None, False
            for look in itertools.count():
                if process.poll() is not None:
                    break
                time.sleep(MOMENT)
                ends.look()
                if not lost and look % 25 == 0 and (lost := report.vanished()):
                    limit = time.monotonic() + PATIENCE  # for MPI, which ends the others by itself, if not always
                if stopped or limit is not None and time.monotonic() > limit:
                    killed = end(process)
            report.end()
            code = report.correct(ends.look(), process.returncode)
        finally:
            ends.close()
            for number, handler in before.items():
                signal.signal(number, handler)
            kill(process)
        if stopped:
            return 128 + stopped[0]
        if limit is not None and killed:
            code = report.lose(lost)
        else:
            code = code or report.unfinished()
        if code:
            report.tell(code)
        return code if code >= 0 else 128 - code


def pass_on(process, number):
    """Let a command know of a signal.  On Windows Ctrl-C reaches all programs of a console, and cannot be sent."""
    if process.poll() is None and not (WINDOWS and number == signal.SIGINT):
        process.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)


def end(process):
    """Give MPI time to end its processes.  Whether it did not, so that they were killed."""
    for _ in range(int(PATIENCE / MOMENT)):
        if process.poll() is None:
            time.sleep(MOMENT)
    late = process.poll() is None
    kill(process)
    return late


def kill(process):
    """End what is left of a command and of what it has started in its session."""
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    elif process.poll() is None:
        process.kill()
    process.wait()


def is_alive(number):
    """Tell whether the process of this number is still running."""
    if WINDOWS:  # where a signal of 0 is Ctrl-C
        import ctypes  # noqa: PLC0415  there alone

        return is_waited_for(ctypes.windll.kernel32, number)
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def is_waited_for(kernel32, number):
    """`is_alive` as Windows tells it: a process that goes on can be waited for, and that takes longer than no time."""
    process = kernel32.OpenProcess(SYNCHRONIZE, False, number)
    if not process:
        return False
    try:
        return kernel32.WaitForSingleObject(process, 0) == STILL_RUNNING
    finally:
        kernel32.CloseHandle(process)


class Ends:
    """In which order the processes of a job end on this computer: each is connected with this one until it ends."""

    def __init__(self, folder):
        self.order, self.open, self.door, self.ready = [], [], None, None
        if sys.platform != "linux":  # whose queue is in order, however late one looks
            return
        with contextlib.suppress(OSError):  # a name too long
            self.door = socket.socket(socket.AF_UNIX)
            self.door.bind(str(folder / rank.DOOR))
            self.door.listen(1024)
            self.door.setblocking(False)
            self.ready = select.epoll()

    def look(self):
        """Add who has come and who has ended; return the numbers of those that ended, the first first."""
        if self.ready is None:
            return self.order
        with contextlib.suppress(BlockingIOError):
            while True:
                self.open.append(self.door.accept()[0])
                self.ready.register(self.open[-1], select.EPOLLRDHUP | select.EPOLLONESHOT)
                with contextlib.suppress(OSError):  # it has ended already
                    self.open[-1].send(rank.SEEN)
        for descriptor, _ in self.ready.poll(0):
            one = next(s for s in self.open if s.fileno() == descriptor)
            with contextlib.suppress(OSError):
                self.order += {one.recv(32).decode()} - {*self.order}  # it has two connections
        return self.order

    def close(self):
        for one in filter(None, (*self.open, self.door, self.ready)):
            one.close()


class Report:
    """Hands on what the processes print, without MPI's own words on which of them ended, and how."""

    PATTERNS = (
        rb"=+$", rb"= +BAD TERMINATION", rb"= +(?:KILLED BY SIGNAL|EXIT CODE): (?P<code>\d+)",
        rb"= +(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)", rb"= +(?:CLEANING|YOU CAN IGNORE)",
        rb"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: (?P<how>.*)", rb"This typically refers to a problem with",
        rb"Please see the FAQ page for debugging suggestions",
        rb"Abort\((?P<abort>-?\d+)\) on node \d+ \(rank (?P<by>\d+) in comm", rb"application called MPI_Abort",
        rb"\[\S+\] (?:Sending|Press) Ctrl-C",
    )  # fmt: skip

    def __init__(self, process, folder):
        self.folder, self.facts = folder, {}
        pairs = (process.stdout, sys.stdout), (process.stderr, sys.stderr)
        self.threads = [threading.Thread(target=self.hand_on, args=pair, daemon=True) for pair in pairs]
        for thread in self.threads:
            thread.start()

    def hand_on(self, source, to):
        to = getattr(to, "buffer", to)
        with source:
            for line in source:
                found = next((m for p in self.PATTERNS if (m := re.match(p, line.strip()))), None)
                if found is None:
                    to.write(line)
                    to.flush()
                for name, value in (found.groupdict() if found else {}).items():
                    if value is not None:
                        self.facts.setdefault(name, value.decode(errors="replace"))

    def end(self):
        for thread in self.threads:
            for _ in range(int(PATIENCE / MOMENT)):  # counted: beside other programs, what is read late is read as well
                thread.join(MOMENT)
        first = self.folder / rank.FIRST
        if first.exists():
            print(first.read_text(encoding="utf-8"), end="", file=sys.stderr, flush=True)

    def ranks(self):
        """{process number: [rank, what it has said of its end]} of the processes on this computer."""
        files = {file.name: file.read_text(encoding="utf-8").split() for file in self.folder.glob("[0-9]*")}
        return {name: words for name, words in files.items() if words}

    def vanished(self):
        """The ranks on this computer that are there no more and have said nothing of their end."""
        if os.name != "posix":
            return []
        return sorted(rank for number, (rank, *said) in self.ranks().items() if not said and not is_alive(int(number)))

    def unfinished(self):
        """1 where a process has vanished although MPI says that all is well."""
        lost = sorted(rank for rank, *said in self.ranks().values() if said != ["finished"])
        return self.lose(lost) if lost else 0

    def correct(self, ends, code):
        """Name the process that ended first where MPI names another: one that it ended itself for that.

        Returns MPI's exit code, or 1 where that is the other's.
        """
        ranks = self.ranks()
        first = next((n for n in ends if n in ranks and len(ranks[n]) == 1), None)
        if first and self.facts.get("pid") in ranks and self.facts["pid"] != first:
            self.facts |= {"pid": first, "how": "before its end"}
            self.facts.pop("rank", None)
            return 1
        return code

    def lose(self, ranks):
        """Remember which process vanished, for `tell`; return its exit code, 1."""
        who = ranks[0] if len(ranks) == 1 else f"{', '.join(ranks[:-1])} or {ranks[-1]}"
        self.facts |= {"rank": who, "how": "before its end"}
        return 1

    def tell(self, code):
        """One sentence on which rank ended the job."""
        facts = self.facts
        for number, *said in self.ranks().values():
            if said[:1] == ["failed"] and not facts.keys() & {"by", "rank", "pid"}:
                facts |= {"by": number, "abort": said[1]}
        who, how = facts.get("by") or facts.get("rank"), ""
        if "pid" in facts and who is None:
            who = self.ranks().get(facts["pid"], (None,))[0] or f"with process number {facts['pid']} on {facts['host']}"
        if "by" not in facts:
            how = f" ({facts['how']})" if facts.get("how") else f" (exit code {facts.get('code', code)})"
        who = "a rank" if who is None else f"rank {who}"
        said = f"{who} failed with exit code {facts['abort']}" if "abort" in facts else f"{who} ended{how}"
        print(f"{parser().prog}: {said}; all other processes were ended.", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
