"""The door of the course. It parses on any Python, so that one that is too old hears what is missing."""

import os
import subprocess
import sys

if sys.version_info < (3, 11):

    def starts(command):
        """Tell whether this Python starts: a file of that name may be a shim that only says it is not installed."""
        try:
            process = subprocess.Popen(command + ["-c", ""], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError:
            return False
        process.communicate()
        return process.returncode == 0

    versions = ["3.14", "3.13", "3.12", "3.11"]
    names = [["py", "-" + v] for v in versions] if os.name == "nt" else [["python" + v] for v in versions]
    newer = [" ".join(command) for command in names if starts(command)]
    sys.stderr.write(
        "Python 3.11 or newer is needed, this is {0}.{1} ({2}).\n{3} {4} -m course {5}\n".format(
            sys.version_info[0],
            sys.version_info[1],
            sys.executable,
            "This computer has one:" if newer else "Get it from python.org, your system or conda, then:",
            (newer + [" ".join(names[1])])[0],
            " ".join(sys.argv[1:]),
        )
    )
    sys.exit(1)

from course.commands.cli import main

if __name__ == "__main__":
    # A folder may have letters that the code page of a pipe or a console lacks: they are spelled out, as \u0141.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, as `head`, has seen enough; what is still to be written has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + 13  # as shells report SIGPIPE
    sys.exit(code)
