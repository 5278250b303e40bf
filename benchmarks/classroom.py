"""A class at work on a server of its own, learners that come by HTTP: what each takes, and what a hundred would.

    python -m benchmarks.classroom --students 5             as root, where deploy/server/install.sh works
    python -m benchmarks.classroom --students 5 --kills 20  besides, `kill -9` at random moments: is anything lost?

A learner opens the server, fetches the assignment, runs every cell, changes an answer and runs its check, and submits
in the last part of the time. Memory is what a process has for itself (Pss), computing is the processes' own count.
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
    figures = {"students": len(ids), "opened": [], "idle": [], "work": [], "at work": [], "computed": []}
    people, answered = {id: Person(server, id) for id in ids}, {}
    with concurrent.futures.ThreadPoolExecutor(len(ids)) as pool:
        figures["opened"] = list(pool.map(lambda person: timed(person.open), people.values()))
        time.sleep(5)
        figures["idle"] = [memory(id) for id in ids]
        figures["computed"] = [computed(id) for id in ids]
        stop = threading.Event()
        works = [pool.submit(work, person, answered, kills, stop) for person in people.values()]
        done = harm(server, ids, kills, chance, works, stop)
        figures["work"] = [each.result()[0] for each in works]
        figures["at work"] = [each.result()[1] for each in works]
    figures["hub"] = own_memory(server)
    teacher = Person(server, "utbteach").open("/services/class/")
    figures["collect"] = timed(lambda: teacher.terminal("undertorch class collect 05", 600))
    if "grader" in done:  # it is killed in the middle, and begins again
        with contextlib.suppress(AssertionError):
            teacher.terminal("timeout -s KILL 20 undertorch class grade 05", 600)
    figures["grade"] = timed(lambda: teacher.terminal("undertorch class grade 05", 3600)) / len(ids)
    submitted = server.folder / "grader/class/submitted"
    kept = {id: number(submitted / id / NOTEBOOK) for id in ids}
    graded = {id for id in ids if (server.folder / "grader/class/autograded" / id / NOTEBOOK).exists()}
    figures |= {"kills": done, "submitted": sum(answered.values())}
    figures["lost"] = [id for id in ids if kept[id] < answered.get(id, 0) or id not in graded]
    return figures


def work(person, answered, kills, stop):
    """What a learner does; seconds by the clock, and the most memory. Submits again while things are killed."""
    began = time.monotonic()
    patient(lambda: person.assignment("fetch", NAME)["success"] or person.file(NOTEBOOK), person)
    code = ["".join(cell["source"]) for cell in person.file(NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    most = 0

    def look():
        nonlocal most
        most = max(most, memory(person.id))

    with watching(look):
        patient(lambda: [person.run(NOTEBOOK, [*code, "check('05.2', count_nodes)"])], person)
    count = 0
    while count == 0 or (kills and not stop.is_set()):
        count += 1
        patient(functools.partial(hand_in, person, count), person)
        answered[person.id] = count  # the server has said so
        stop.wait(1)
    return time.monotonic() - began, most


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
        while not over.wait(1):
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


def memory(id):
    """Megabytes that somebody's processes have for themselves."""
    return sum(pss(place) for place in processes(id)) / MB


def pss(place):
    with contextlib.suppress(OSError):
        for line in (place / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def computed(id):
    """Seconds of computing of somebody's processes."""
    total = 0
    for place in processes(id):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / 100


def own_memory(server):
    return sum(pss(Path("/proc", str(process.pid))) for process in server.running.values()) / MB


def table(figures):
    """The figures in Markdown, and what more people would take: what was measured, times their number."""
    middle = {key: statistics.median(figures[key]) for key in ("opened", "idle", "computed", "at work", "work")}
    rows = [
        ("learners", f"{figures['students']}"),
        ("hub, proxy, teachers' server", f"{figures['hub']:.0f} MB"),
        ("a learner's server", f"{middle['idle']:.0f} MB, {middle['computed']:.1f} s of a core to start"),
        ("  all at once, the middle and the last", f"{middle['opened']:.0f} and {max(figures['opened']):.0f} s"),
        ("a learner at work, at most", f"{middle['at work']:.0f} MB"),
        ("a submission to grade", f"{figures['grade']:.1f} s"),
        ("killed", f"{len(figures['kills'])} times"),
        ("submissions, lost", f"{figures['submitted']}, {len(figures['lost'])}"),
    ]
    for people in (100, 1000, 10000):
        gigabytes = (figures["hub"] + people * middle["at work"]) / 1024
        rows.append((f"{people} at work: memory, one core's time to start, to grade",
                     f"{gigabytes:.0f} GB, {people * middle['computed'] / 60:.0f} min, "
                     f"{people * figures['grade'] / 60:.0f} min"))  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows)])


if __name__ == "__main__":
    sys.exit(main())
