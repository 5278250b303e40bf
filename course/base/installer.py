"""An installer at work: its lines kept and one of them shown, and what it means where it fails.

The standard library alone.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import TextIO

# What a failed installation's log says, and what to tell the reader. The first that matches is told.
FAILURES = (
    (
        r"No space left on device|\[Errno 28\]|WinError 112|not enough space on the disk|Disk quota exceeded",
        "The disk is full: free about {mb} MB, or set {variable} to a folder on a larger disk; then start again.",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A package arrived damaged or altered, and was not installed. Start the same command again;\n"
        "if it happens again, your network replaces downloads: try another.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "Your network shows a certificate that Python does not know (often a school's or company's proxy).\n"
        "Ask who runs it for the certificate file, set PIP_CERT to its path, and start the same command again.",
    ),
    (
        r"connection broken by|NewConnectionError|NameResolutionError|ConnectTimeoutError|Max retries exceeded"
        r"|Read timed out|ReadTimeoutError|ProxyError|IncompleteRead|Network is unreachable|Connection refused",
        "The packages could not be downloaded: is this computer online? Start the same command again when it is;\n"
        "what has arrived is kept. (Behind a proxy: set HTTPS_PROXY first.)",
    ),
    (
        r"Permission denied|\[Errno 13\]|Read-only file system|\[Errno 30\]|WinError 5\b",
        "{folder} cannot be written to. Close programs that use it, or set {variable} to a folder of yours.",
    ),
    (
        r"Windows Long Path|WinError 206|file ?name or extension is too long",
        "The path of {folder} is too long for Windows: move the course to a short path, or set {variable} to one.",
    ),
    (
        r"No matching distribution found|Could not find a version that satisfies",
        "A package has no ready build for this system and Python {python}. Use Python 3.11 to 3.14, or conda:\n"
        "conda env create -f environment.yml, conda activate undertorch, and the same command again.",
    ),
)


def run_showing(command: list[str], log: TextIO, pins: int, unpacking: Callable[[], None]) -> int:
    """Run pip or uv, keeping every line it prints and showing where it is; its exit code.

    `unpacking` is called when pip has downloaded all and the environment begins to change.
    """
    environment = os.environ | {"PIP_USER": "0"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
    )
    assert process.stdout is not None
    done = 0
    with LiveLine() as live:
        try:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if line.startswith("Ignoring "):  # a pin for other systems
                    pins -= 1
                elif match := re.match(r"(?:Collecting|Processing|Requirement already satisfied:) (\S+)", line):
                    done += 1
                    live.show(f"fetching {done} of {pins}: {re.split('==|-[0-9]', PurePath(match[1]).name)[0]}")
                elif match := re.match(r"Resolved (\d+) packages", line):  # by uv
                    live.show(f"fetching {match[1]} packages")
                elif line.startswith(
                    "Prepared "
                ):  # by uv, which has downloaded all; where all was in its cache, it is silent
                    unpacking()
                elif line.startswith("Installing collected packages"):
                    unpacking()
                    live.show(f"unpacking {done} packages (no news for a minute is normal)")
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise


class LiveLine:
    """One line, rewritten, with what is going on and for how long; without a terminal, a line now and then."""

    PERIOD_S = 10.0

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file or sys.stderr
        self.live = self.file.isatty()
        self.text = ""
        self.start = time.monotonic()
        self.closed = threading.Event()
        self.ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "LiveLine":
        self.ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self.ticker.join()
        if self.live:
            self._write("\r" + " " * self._width() + "\r")

    def show(self, text: str) -> None:
        self.text = text

    def _tick(self) -> None:
        while not self.closed.wait(0.5 if self.live else self.PERIOD_S):
            minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
            line = f"  {minutes}:{seconds:02}  {self.text}"
            width = self._width()
            self._write("\r" + line[:width].ljust(width) if self.live else line + "\n")

    def _width(self) -> int:
        return shutil.get_terminal_size().columns - 1

    def _write(self, text: str) -> None:
        self.file.write(text)
        self.file.flush()


def meaning(text: str) -> str:
    """Return what to tell the reader of a failed installation with this log, to be filled in by `format`."""
    if told := next((told for pattern, told in FAILURES if re.search(pattern, text)), None):
        return told
    errors = [line for line in text.splitlines() if re.match(r"(?i)\s*(error|\w*error:)", line)]
    last = (errors or text.splitlines() or ["no reason given"])[-1].strip()
    return "Installing failed: " + last.replace("{", "{{").replace("}", "}}")
