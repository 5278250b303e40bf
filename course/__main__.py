"""The door of the course. It parses on any Python, so that one that is too old hears what is missing."""

import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "Python 3.11 or newer is needed, this is {0}.{1} ({2}).\n"
        "Get it from python.org, your system's packages or conda, and start again with it: "
        "python3.13 -m course ...\n".format(sys.version_info[0], sys.version_info[1], sys.executable)
    )
    sys.exit(1)

from course.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
