"""A class's roster made into system accounts, by `newusers`; first passwords on slips to print and to cut.

As root, where install.sh put it: /opt/undertorch/bin/accounts ROSTER.csv [--teachers]. Who has an account of the class
already keeps it, and the password. An account that is not the class's is never touched.
"""

import argparse
import grp
import html
import pwd
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
GRADER = "undertorch-grader"
sys.path.insert(0, str(FOLDER / "course"))

from course.base.environment import Problem  # noqa: E402
from course.classroom.tables import Person, roster  # noqa: E402

SIGNS = "abcdefghijkmnpqrstuvwxyz23456789"  # none that is taken for another
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
SLIPS = """<!doctype html><meta charset="utf-8"><title>First passwords</title>
<style>body {{ font: 12pt sans-serif; display: grid; grid-template-columns: 1fr 1fr }}
div {{ border: 1px dashed; padding: 1em; break-inside: avoid }} b {{ font-family: monospace }}</style>
{}"""
SLIP = """<div><p>{name}<p>{address}<p>User: <b>{id}</b><br>Password: <b>{password}</b>
<p>For another password, type <b>passwd</b> in a terminal there.</div>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("roster", type=Path)
    parser.add_argument("--teachers", action="store_true", help="these people open the class and its grades")
    parser.add_argument("--address", default="", help="the server's, for the slips: https://hub.example.org")
    options = parser.parse_args()
    try:
        people = roster(options.roster)
        group = "undertorch-teachers" if options.teachers else "undertorch"
        new = [person for person in people if not known(person.id, group)]
    except Problem as problem:
        sys.exit(str(problem))
    passwords = {person.id: password() for person in new}
    make(new, passwords, group)
    print(f"{len(people)} people in {options.roster.name}; {len(new)} new accounts.")
    if new:
        print(f"Their first passwords: {slips(new, passwords, options.address)} (print it, then delete it)")
    if not options.teachers:
        enrol(options.roster)


def password() -> str:
    return "-".join("".join(secrets.choice(SIGNS) for _ in range(4)) for _ in range(3))


def known(id: str, group: str) -> bool:
    """Whether somebody has an account of the class. Raises Problem for an account that is somebody else's."""
    if not NAME.fullmatch(id):
        raise Problem(f"{id!r} cannot be an account (column `id`): small letters, digits, _ and -, a letter first.")
    try:
        pwd.getpwnam(id)
    except KeyError:
        return False
    if id not in grp.getgrnam(group).gr_mem:
        raise Problem(f"This computer has an account {id} that is not the class's: give that person another id.")
    return True


def make(people: list[Person], passwords: dict[str, str], group: str) -> None:
    lines = [f"{p.id}:{passwords[p.id]}:::{re.sub('[:,=]', ' ', p.name)}:/home/{p.id}:/bin/bash\n" for p in people]
    with (FOLDER / "state" / "made").open("a", encoding="utf-8") as made:  # remove.sh finds what is half done, too
        made.writelines(f"{person.id}\n" for person in people)
    if lines:
        subprocess.run(["newusers"], input="".join(lines), text=True, check=True)
    for person in people:
        subprocess.run(["usermod", "--append", "--groups", group, person.id], check=True)
        Path("/home", person.id).chmod(0o700)


def slips(people: list[Person], passwords: dict[str, str], address: str) -> Path:
    now = time.strftime("slips-%Y-%m-%d-%H%M%S-")  # two rosters may come in one second
    path = Path(tempfile.mkstemp(".html", now, FOLDER / "state")[1])  # for root's eyes alone
    cut = [
        SLIP.format(name=html.escape(p.name), address=html.escape(address), id=p.id, password=passwords[p.id])
        for p in people
    ]
    path.write_text(SLIPS.format("".join(cut)), encoding="utf-8")
    return path


def enrol(path: Path) -> None:
    """The same people, in the class's gradebook."""
    with tempfile.TemporaryDirectory() as folder:  # for the grader's eyes
        copy = shutil.copy(path, folder)
        for place in (folder, copy):
            shutil.chown(place, GRADER)
        command = ["runuser", "-u", GRADER, "--", str(FOLDER / "bin" / "undertorch"), "class", "new", "--roster", copy]
        subprocess.run(command, cwd="/", check=True)


if __name__ == "__main__":
    main()
