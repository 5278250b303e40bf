"""A line on stderr while machine code is written for more than two seconds; in a terminal it is kept up to date."""

import os
import sys
import threading
import time
from weakref import WeakSet

LONG = 2.0  # seconds after which somebody wonders
PAUSE = 1.0  # seconds after which a loop is not of the same call any more
AGAIN = 1.0  # seconds between two words


class Progress:
    """Loops that are compiled one soon after the other, and those that wait for their first call."""

    def __init__(self):
        self.waiting: WeakSet = WeakSet()
        self.done, self.spent, self.ended, self.shown = 0, 0.0, 0.0, ""
        self.watcher = None

    def wanted(self, loop):
        self.waiting.add(loop)

    def begin(self):
        """A loop is being compiled from here on."""
        if self.watcher is not None:  # it is, and once more in another way
            return
        self.began = time.monotonic()
        if self.began - self.ended > PAUSE:
            self.done, self.spent, self.shown = 0, 0.0, ""
        self.stop = threading.Event()
        self.watcher = threading.Thread(target=self.watch, name="engine", daemon=True)
        self.watcher.start()

    def end(self, loop):
        """A loop has its machine code, written just now or before."""
        self.waiting.discard(loop)
        if self.watcher is None:
            return
        self.stop.set()
        self.watcher.join()
        self.watcher = None
        self.ended = time.monotonic()
        self.spent += self.ended - self.began
        self.done += 1
        if self.shown and is_terminal(sys.stderr):
            say("\r" + " " * len(self.shown) + "\r")

    def watch(self):
        if os.environ.get("UNDERTORCH_COMPILE_PROGRESS") == "0":
            return
        delay = max(LONG - self.spent, 0)
        while not self.stop.wait(delay):
            seconds = self.spent + time.monotonic() - self.began
            number, about = self.done + 1, self.done + max(len(self.waiting), 1)
            line = f"compile: writing machine code, loop {number} of about {about} ... {seconds:.0f} s"
            if is_terminal(sys.stderr):
                say("\r" + line)
            elif not self.shown:
                say(line + "\n")
            self.shown = line
            delay = AGAIN


progress = Progress()  # of all loops of the process


def is_terminal(stream):
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def say(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, ValueError, OSError):
        pass
