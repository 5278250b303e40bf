"""A class at work on a server of its own, learners that come by HTTP: what each takes, and what a hundred would.

    python -m benchmarks.classroom --students 5             as root, where deploy/server/install.sh works
    python -m benchmarks.classroom --students 5 --kills 20  besides, `kill -9` at random moments: is anything lost?

A learner opens the server, fetches the assignment, runs every cell, checks an answer, and submits in the last part of
the time. All kernels stay open while one learner checks, then two, four, ... all at once: how long a check takes.
Memory is what a process has for itself (Pss), computing is what the system has counted, also where others compute.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import json
import pwd
import random
import re
import statistics
import sys
import threading
import time
from pathlib import Path

from benchmarks import class_server
from benchmarks.class_server import Person
from course.judging import exercises

NAME = "05_graph"
NOTEBOOK = f"{NAME}/{NAME}.ipynb"
CHECKED, CHECKS = "05.2", 3
CHECK = f"check({CHECKED!r}, count_nodes)"
UNITS = ("hub", "proxy", "teacher", "learner", "grader")  # what is killed
MB = 2**20


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.classroom", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--students", type=int, default=5, help="how many learners (5)")
    parser.add_argument("--kills", type=int, default=0, help="how often something is killed while they work (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments (0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if why := class_server.why_not():
        sys.exit(f"This {why}.")
    learners = [(f"utb{number:03}", "Learner", str(number)) for number in range(options.students)]
    server = class_server.Server(learners, [("utbteach", "Tea", "Cher")])
    try:
        server.start()
        figures = session(server, [id for id, *_ in learners], options.kills, random.Random(options.seed))
    finally:
        server.stop()
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if figures["lost"] else 0


def session(server, ids, kills, chance):
    """A class from the first login to the grades; its figures."""
    teacher = Person(server, "utbteach").open("/services/class/")
    teacher.terminal("undertorch class release 05 --due 2099-01-31")
    figures = {"students": len(ids), "checks": []}
    people, answered = {id: Person(server, id) for id in ids}, {}
    with concurrent.futures.ThreadPoolExecutor(len(ids)) as pool:
        figures["opened"] = list(pool.map(lambda person: timed(lambda: person.open(seconds=3600)), people.values()))
        time.sleep(5)
        figures["idle"] = list(memories(ids).values())
        figures["computed"] = [computed(id) for id in ids]
        stop = threading.Event()
        steps = [] if kills else [Step(count, len(ids)) for count in counts(len(ids))]
        most = dict.fromkeys(ids, 0.0)

        def look():
            for id, now in memories(ids).items():
                most[id] = max(most[id], now)

        with watching(look):
            works = [pool.submit(work, person, place, answered, kills, stop, steps)
                     for place, person in enumerate(people.values())]  # fmt: skip
            done = harm(server, ids, kills, chance, works, stop)
        figures["at work"] = list(most.values())
        figures["work"], figures["run all"] = zip(*(each.result() for each in works), strict=True)
        figures["checks"] = [(step.count, statistics.median(step.waited), statistics.fmean(step.computed))
                             for step in steps]  # fmt: skip
    figures["hub"] = own_memory(server)
    teacher = Person(server, "utbteach").open("/services/class/")
    figures["collect"] = timed(lambda: teacher.terminal("undertorch class collect 05", 600))
    if "grader" in done:  # it is killed in the middle, and begins again
        with contextlib.suppress(AssertionError):
            teacher.terminal("timeout -s KILL 20 undertorch class grade 05", 600)
    meter = Meter(server.running["teacher"].pid)
    figures["grade, by the clock"] = timed(lambda: teacher.terminal("undertorch class grade 05", 3600)) / len(ids)
    figures["grade"] = meter.seconds() / len(ids)
    submitted = server.folder / "grader/class/submitted"
    kept = {id: number(submitted / id / NOTEBOOK) for id in ids}
    graded = {id for id in ids if (server.folder / "grader/class/autograded" / id / NOTEBOOK).exists()}
    figures |= {"kills": done, "submitted": sum(answered.values())}
    figures["lost"] = [id for id in ids if kept[id] < answered.get(id, 0) or id not in graded]
    return figures


def counts(people):
    """1, 2, 4, ... and all."""
    return sorted({people, *(2**power for power in range(people.bit_length()))})


class Step:
    """So many of the learners check at once; all wait for each other before."""

    def __init__(self, count, people):
        self.count, self.waited, self.computed = count, [], []
        self.meet = threading.Barrier(people, timeout=1200)

    def take(self, person, place, run):
        self.meet.wait()
        if place >= self.count:
            return
        before = computed(person.id)
        self.waited += [timed(lambda: run(CHECK)) for _ in range(CHECKS)]
        self.computed.append((computed(person.id) - before) / CHECKS)


class Meter:
    """What a process, and all that it starts from now on, computes: by a control group of the kernel's."""

    def __init__(self, pid):
        old = Path("/sys/fs/cgroup/cpuacct")
        self.folder = (old if old.is_dir() else old.parent) / f"undertorch-{pid}"
        self.folder.mkdir()
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def seconds(self):
        """Seconds so far; the group ends."""
        old, new = self.folder / "cpuacct.usage", self.folder / "cpu.stat"
        found = int(old.read_text()) / 1e9 if old.exists() else int(new.read_text().split()[1]) / 1e6
        for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                (self.folder.parent / "cgroup.procs").write_text(pid, encoding="ascii")
        with contextlib.suppress(OSError):  # one was just started
            self.folder.rmdir()
        return found


def work(person, place, answered, kills, stop, steps):
    """What a learner does; seconds by the clock, and the computing of running all.

    Submits again while things are killed.
    """
    began = time.monotonic()
    patient(lambda: person.assignment("fetch", NAME)["success"] or person.file(NOTEBOOK), person)
    code = ["".join(cell["source"]) for cell in person.file(NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    ran = 0.0

    def run_all():
        nonlocal ran
        before = computed(person.id)
        with person.kernel(NOTEBOOK) as run:
            for source in [*code, str(exercises.cell(CHECKED, "solutions")), CHECK]:
                run(source)
            ran = computed(person.id) - before
            for step in steps:
                step.take(person, place, run)
        return True

    patient(run_all, person) if kills else run_all()
    count = 0
    while count == 0 or (kills and not stop.is_set()):
        count += 1
        patient(functools.partial(hand_in, person, count), person)
        answered[person.id] = count  # the server has said so
        stop.wait(1)
    return time.monotonic() - began, ran


def hand_in(person, count):
    """Submit the notebook with the number of this submission in an answer."""
    person.work(NOTEBOOK, {"05.3": f"{exercises.cell('05.3', 'solutions')}\n# submission {count}\n"})
    return person.assignment("submit", NAME)["success"]


def number(path):
    """Which submission a notebook is."""
    found = re.search(r"# submission (\d+)", path.read_text(encoding="utf-8")) if path.exists() else None
    return int(found[1]) if found else 0


def patient(attempt, person):
    """Until it succeeds: a learner who sees an error opens the page once more."""
    for _ in range(60):
        try:
            if attempt():
                return
            time.sleep(1)
        except Exception:
            time.sleep(1)
            with contextlib.suppress(Exception):
                person.open()
    raise RuntimeError(f"{person.id} has given up.\n{person.server.log('hub')[-2000:]}")


def harm(server, ids, kills, chance, works, stop):
    """Kill something at each of so many random moments; what it was. What systemd restarts is started again."""
    done = []
    for _ in range(kills):
        time.sleep(chance.uniform(0.5, 5))
        what = chance.choice(UNITS)
        if what in ("hub", "proxy", "teacher"):
            server.kill(what)
            time.sleep(chance.uniform(0, 1))
            server.start(what)
        elif what == "learner":
            server.kill_all_of(chance.choice(ids))
        done.append(what)
    stop.set()
    concurrent.futures.wait(works)
    return done


@contextlib.contextmanager
def watching(look):
    over = threading.Event()

    def again():
        while not over.wait(3):
            look()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def timed(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began


def processes(id):
    user = pwd.getpwnam(id).pw_uid
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if place.stat().st_uid == user:
                yield place


def memories(ids):
    """Megabytes that each one's processes have for themselves, by id."""
    users, found = {pwd.getpwnam(id).pw_uid: id for id in ids}, dict.fromkeys(ids, 0.0)
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if id := users.get(place.stat().st_uid):
                found[id] += pss(place) / MB
    return found


def pss(place):
    with contextlib.suppress(OSError):
        for line in (place / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def computed(id):
    """Seconds of computing of somebody's processes, and of those that they have started and waited for."""
    total = 0
    for place in processes(id):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / 100


def own_memory(server):
    return sum(pss(Path("/proc", str(process.pid))) for process in server.running.values()) / MB


def table(figures):
    """The figures in Markdown, and what more people would take: what was measured, times their number."""
    middle = {
        key: statistics.median(figures[key]) for key in ("opened", "idle", "computed", "at work", "work", "run all")
    }
    rows = [
        ("learners", f"{figures['students']}"),
        ("hub, proxy, teachers' server", f"{figures['hub']:.0f} MB"),
        ("a learner's server", f"{middle['idle']:.0f} MB, {middle['computed']:.1f} s of a core to start"),
        ("  all at once, the middle and the last", f"{middle['opened']:.0f} and {max(figures['opened']):.0f} s"),
        ("a learner at work, at most", f"{middle['at work']:.0f} MB"),
        ("  to fetch the exercises and run all cells", f"{middle['run all']:.1f} s of a core"),
        *(
            (f"  a check, {count} at once", f"{seconds:.1f} s of a core, answered after {waited:.1f} s")
            for count, waited, seconds in figures["checks"]
        ),
        ("a submission to grade", f"{figures['grade']:.1f} s of a core"),
        ("killed", f"{len(figures['kills'])} times"),
        ("submissions, lost", f"{figures['submitted']}, {len(figures['lost'])}"),
    ]
    for people in (100, 1000, 10000):
        gigabytes = (figures["hub"] + people * middle["at work"]) / 1024
        rows.append((f"{people} at work: memory, one core's time to start, to grade",
                     f"{gigabytes:.0f} GB, {people * middle['computed'] / 60:.0f} min, "
                     f"{people * figures['grade'] / 60:.0f} min"))  # fmt: skip
        if figures["checks"]:
            rows.append((f"{people} who check once a minute", f"{people * figures['checks'][0][2] / 60:.1f} cores"))
    return "\n".join(["| | |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows)])


if __name__ == "__main__":
    sys.exit(main())
