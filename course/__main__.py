"""The door of the course. It parses on any Python, so that one that is too old hears what is missing."""

import os
import shutil
import sys

if sys.version_info < (3, 11):
    find = getattr(shutil, "which", lambda name: None)
    newer = [name for name in ("python3.14", "python3.13", "python3.12", "python3.11") if find(name)]
    sys.stderr.write(
        "Python 3.11 or newer is needed, this is {0}.{1} ({2}).\n{3} {4} -m course {5}\n".format(
            sys.version_info[0],
            sys.version_info[1],
            sys.executable,
            "This computer has one:" if newer else "Get it from python.org, your system or conda, then:",
            (newer + ["python3.13"])[0],
            " ".join(sys.argv[1:]),
        )
    )
    sys.exit(1)

from course.cli import main

if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, as `head`, has seen enough; what is still to be written has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + 13  # as shells report SIGPIPE
    sys.exit(code)
