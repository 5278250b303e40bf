"""`python -m course class`: a class from its list of people to its grades, in five verbs on top of nbgrader."""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

from course.base.environment import Problem, ensure
from course.base.notebooks import COMMAND

EXAMPLES = """\
in this order:
  new ~/my_class --roster students.csv            once
  release 05 --due 2027-01-31 --late "10% a day"  then hand out the zip file that it names
  collect submissions.zip                         what Moodle or Canvas gives, or files and folders;
                                                  --who NAME=ID and --at TIME where a name or a time is not known
  grade 05                                        points, feedback, a report; --again what is graded already
  export 05 --moodle                              the points for Moodle, or --canvas
Which class: the last one that was named, or --class FOLDER after the verb.
"""


def main(argv: list[str]) -> int:
    """Carry out one verb; return 0, or 2 for a wrong command line. Raises Problem."""
    options = _parser().parse_args(argv)
    ensure("teach", ["class", *argv])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="nbgrader")  # of its own way with its database
        for sentence in options.answer(options):
            print(sentence, flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} class",
        description="For those who teach: hand out, collect and grade a class's exercises (docs/teaching.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    new = verbs.add_parser("new", help="make the folder of a class, or bring its list of people up to date")
    new.add_argument("folder", type=Path, help="outside of the course's own folder")
    new.add_argument("--roster", type=Path, metavar="FILE.csv", help="the people: your own table, Moodle's or Canvas'")

    release = verbs.add_parser("release", help="make the assignment of a lesson, and the zip file to hand out")
    release.add_argument("lesson", metavar="NN", help="a lesson's number")
    release.add_argument("--due", metavar="DATE", help='2027-01-31 (until midnight) or "2027-01-31 18:00"')
    release.add_argument("--late", metavar="POLICY", help='"none" (costs nothing), "zero", or a share: "10%% a day"')

    release.add_argument("--solutions", metavar="DATE", help="when `solution` shows them (default: when it is due)")
    release.add_argument("--numbers", choices=("own", "course"),
                         help="questions with one right value: numbers of this class's own (default), or the "
                         "course's, whose solutions are public")  # fmt: skip

    collect = verbs.add_parser("collect", help="take what came back")
    collect.add_argument("files", type=Path, nargs="+", metavar="FILE",
                         help="zip files of Moodle or Canvas, folders, notebooks; also Moodle's grading worksheet, "
                         "for the times of submission")  # fmt: skip
    collect.add_argument("--who", action="append", default=[], metavar="NAME=ID", help="whose a name is; repeatable")
    collect.add_argument("--at", metavar="DATE TIME", help="when these files were handed in")

    grade = verbs.add_parser("grade", help="judge, count the points, write feedback and a report")
    grade.add_argument("lesson", metavar="NN", help="a lesson's number")
    grade.add_argument("--again", action="store_true", help="also what is graded already")

    export = verbs.add_parser("export", help="the points as a table for Moodle or Canvas")
    export.add_argument("lesson", metavar="NN", help="a lesson's number")
    to = export.add_mutually_exclusive_group(required=True)
    to.add_argument("--moodle", nargs="?", const="", metavar="WORKSHEET.csv",
                    help="for Moodle's gradebook, or filled into the assignment's grading worksheet")  # fmt: skip
    to.add_argument("--canvas", nargs="?", const="", metavar="GRADEBOOK.csv",
                    help="for Canvas, or filled into its exported gradebook")  # fmt: skip

    for verb in (release, collect, grade, export):
        verb.add_argument("--class", dest="course", metavar="FOLDER", help="the class (default: the last one named)")
    for verb, answer in ((new, _new), (release, _release), (collect, _collect), (grade, _grade), (export, _export)):
        verb.set_defaults(answer=answer)
    return parser


def _new(options: argparse.Namespace) -> list[str]:
    from course.base.notebooks import COMMAND
    from course.classroom import folder, tables

    people = tables.roster(options.roster) if options.roster else []  # with a broken list, no class is made
    place = options.folder.expanduser()
    there = (place / folder.NOTES).is_file()
    made = folder.Class(place) if there else folder.Class.make(place)
    folder.remember(made)
    says = [f"The class in {made.folder} is there already." if there else f"Made a class in {made.folder}"]
    new, gone = made.enrol(people)
    if options.roster:
        says.append(f"{len(people)} people in {options.roster.name}, {len(new)} of them new.")
        if gone:
            says.append(f"Not in the list, and kept: {', '.join(f'{p.name} ({p.id})' for p in gone)}.")
    elif not made.people():
        says.append(f'It has no people yet: {COMMAND} class new "{made.folder}" --roster FILE.csv')
    says.append(f"Next: {COMMAND} class release 05 --due 2027-01-31 (the lesson and day that you want)")
    return says


def _release(options: argparse.Namespace) -> list[str]:
    from course.classroom import folder, late
    from course.classroom.releasing import release

    due = late.moment(options.due, "--due") if options.due else None
    if options.late is not None:
        late.policy(options.late)
    solutions = None
    if options.solutions:  # the day itself, from its beginning on
        solutions = late.moment(options.solutions, "--solutions", end=False)
    return release(folder.opened(options.course), options.lesson, due, options.late, solutions, options.numbers)


def _collect(options: argparse.Namespace) -> list[str]:
    from course.classroom import folder, late
    from course.classroom.collecting import collect, told

    if missing := [path for path in options.files if not path.exists()]:
        raise Problem(f"There is no {missing[0]}.")
    at = late.moment(options.at, "--at") if options.at else None
    return collect(folder.opened(options.course), options.files, told(options.who), at)


def _grade(options: argparse.Namespace) -> Iterator[str]:
    from course.classroom import folder
    from course.classroom.grades import grade

    return grade(folder.opened(options.course), options.lesson, options.again)


def _export(options: argparse.Namespace) -> list[str]:
    from course.classroom import folder
    from course.classroom.exporting import export

    platform = "moodle" if options.moodle is not None else "canvas"
    given = options.moodle if platform == "moodle" else options.canvas
    return export(folder.opened(options.course), options.lesson, platform, Path(given) if given else None)
