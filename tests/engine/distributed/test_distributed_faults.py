"""Ranks that raise, die, hang or leave: the others end, with an error that names the rank, and nothing stays behind."""

import contextlib
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from ranks import NO_MPI, PROGRAMS, ended, started

from engine.distributed import rank as rank_
from engine.distributed import run

pytestmark = [
    pytest.mark.skipif(bool(NO_MPI), reason=NO_MPI),
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]


def alive(folder):
    """The processes that still run of those that left their numbers."""
    running = []
    for file in (file for file in folder.iterdir() if file.name.isdecimal()):
        try:
            os.kill(int(file.name), 0)
            running.append(file.name)
        except ProcessLookupError:
            pass
    return running


def gone(folder, patience=240.0):
    """Whether all of them end."""
    end = time.monotonic() + patience
    while alive(folder) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(folder)


@pytest.mark.parametrize(
    "mode, code, words",
    [
        ("raises", 1, ["[rank1]: ValueError: something is wrong", "rank 1 failed with exit code 1; all other"]),
        ("exits", 3, ["rank 1 failed with exit code 3; all other processes were ended."]),
        ("vanishes", 1, ["1 ended (before its end); all other processes were ended."]),
        ("leaves", 1, ["[rank0]: ", "all_reduce cannot complete: rank 1 has ended and will not come to it."]),
        (
            "hangs", 1,
            [
                "Timed out waiting 1 s in all_reduce, call 1", "rank 1 has not come to it; rank 0 waits.",
                "[rank0]: ", "rank 1 waits in recv from rank 0",
            ],
        ),
    ],
)  # fmt: skip
def test_a_rank_that_goes_wrong_ends_all_and_is_named(mode, code, words, tmp_path):
    got, out, err = ended(started("faulty.py", 2, mode, tmp_path))
    assert all(word in err for word in words), err
    assert got == code and "done" not in out
    assert err.count("Traceback") <= 1
    assert "BAD TERMINATION" not in out + err
    assert gone(tmp_path)


def test_who_ended_first_is_named_where_mpi_names_one_that_it_ended(tmp_path, capsys):
    if sys.platform != "linux":
        pytest.skip("only Linux tells in which order processes ended")
    ends = run.Ends(tmp_path)
    program = "import launcher; from engine.distributed import rank; rank.connect(); print(flush=True); input()"
    start = partial(
        subprocess.Popen, [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROGRAMS
    )
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(start(env={**os.environ, rank_.FOLDER: str(tmp_path)})) for _ in range(3)]
        for number, process in enumerate(ranks):
            while not select.select([process.stdout], [], [], 0.01)[0]:  # it waits until it is seen
                assert ends.look() == []
            (tmp_path / str(process.pid)).write_text(str(number))
        assert ends.look() == []
        for process in ranks[1], ranks[2], ranks[0]:
            process.kill()
            process.wait()
    words = f"= PID {ranks[0].pid} RUNNING AT here\n= EXIT CODE: 9\n"
    with subprocess.Popen(["echo", words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        report = run.Report(process, tmp_path)
        report.end()
    assert report.correct(ends.look(), 9) == 1
    assert report.correct(ends.look(), 9) == 9  # now that it is named
    ends.close()
    report.tell(1)
    assert [int(number) for number in ends.order] == [ranks[i].pid for i in (1, 2, 0)]
    assert "rank 1 ended (before its end); all other" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells in which order processes ended")
def test_the_launcher_sees_an_end_before_mpi_does(tmp_path):
    ends, mpi = run.Ends(tmp_path), {}
    program = "import launcher; from engine.distributed import rank; rank.connect(); print(flush=True); input()"
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            ours, its = (stack.enter_context(one) for one in socket.socketpair())
            env = {**os.environ, rank_.FOLDER: str(tmp_path), "PMI_FD": str(its.fileno())}
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROGRAMS,
                    env=env, pass_fds=[its.fileno()],
                )
            )  # fmt: skip
            its.close()
            ends.ready.register(ours, select.EPOLLRDHUP | select.EPOLLONESHOT)
            mpi[ours.fileno()] = process
            while not select.select([process.stdout], [], [], 0.01)[0]:
                assert ends.look() == []
        for descriptor, process in mpi.items():
            process.kill()
            process.wait()
            told = [number for number, _ in ends.ready.poll(0)]
            assert len(told) == 3 and told.index(descriptor) > 0
    ends.close()


# An MPI that does not see that one of its processes has vanished, and waits for it.
WAITS = """
import os, subprocess, sys, time
rank = "import os, pathlib; pathlib.Path(os.environ['UNDERTORCH_RUN_FOLDER'], str(os.getpid())).write_text('3')"
subprocess.run([sys.executable, "-c", rank], check=True)
time.sleep(600)
"""


def test_who_vanishes_ends_all_even_where_mpi_does_not_see_it(monkeypatch, capsys):
    monkeypatch.setattr(run, "PATIENCE", 0.1)
    assert run.supervised([sys.executable, "-c", WAITS], {**os.environ}) == 1
    assert "rank 3 ended (before its end); all other processes were ended." in capsys.readouterr().err


@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_signal_ends_all(number, code, tmp_path):
    process = started("faulty.py", 2, "stays", tmp_path)
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    assert ended(process)[0] == code
    assert gone(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_nothing_stays_behind_a_launcher_that_is_killed(tmp_path):
    process = started("faulty.py", 2, "stays", tmp_path)
    process.stdout.readline()
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 2 and gone(tmp_path)


def undisturbed(folder, steps, pause):
    code, out, err = ended(started("resumes.py", 2, folder, steps, pause))
    assert code == 0, out + err
    return out.splitlines()[-1]


def killed_and_resumed(folder, steps, pause, moments, seed):
    """What the job prints at last, after a rank was killed at random moments of it."""
    choose = random.Random(seed)
    for _ in range(moments):
        process = started("resumes.py", 2, folder, steps, pause)
        process.stdout.readline()
        time.sleep(choose.random() * 3 * pause)
        if victims := ranks_below(process.pid):  # on a busy day the job may have ended meanwhile
            with contextlib.suppress(ProcessLookupError):
                os.kill(choose.choice(victims), signal.SIGKILL)
        ended(process)
    return undisturbed(folder, steps, pause)


def ranks_below(launcher):
    """The numbers of the ranks that a launcher has started, from /proc."""
    parents, words = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    below = {launcher}
    for _ in range(4):
        below |= {pid for pid, parent in parents.items() if parent in below}
    return sorted(p for p in below if words[p][0] == sys.executable and "engine.distributed.rank" in words[p])


def test_a_job_that_is_started_again_goes_on_from_its_last_checkpoint(tmp_path):
    code, out, err = ended(started("resumes.py", 2, tmp_path, 5, 0, 3, options=["--max-restarts=1"]))
    assert code == 0, out + err
    assert re.search(r"rank 1 ended \(.*; all other processes were ended\.\n.*start 2 of 2\n", err)
    assert "BAD TERMINATION" not in out + err
    steps, (resumed, whole) = re.findall(r"step (\d)", out), [line for line in out.splitlines() if "0x" in line]
    assert steps == [*"012", *"34", *"01234"] and resumed == whole


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the ranks in /proc")
def test_a_job_that_is_killed_goes_on_from_the_last_whole_checkpoint(tmp_path):
    moments, steps = 20, 84
    wanted = undisturbed(tmp_path / "whole", steps, 0.0)
    assert killed_and_resumed(tmp_path / "killed", steps, 0.1, moments, seed=20) == wanted
