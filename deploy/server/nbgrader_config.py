"""nbgrader on a class's server: the exchange, and what is taken out of it. For learners and teachers alike."""

import contextlib
import datetime
import os
import pwd
import re
import stat
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect, ExchangeSubmit

MOST_FILES, MOST_BYTES = 20, 5_000_000
NOTEBOOK = re.compile(r"[\w(][\w ().,@+-]*\.ipynb")
CLOCK = datetime.timedelta(minutes=2)  # how far a claimed time may be from that of the file system


class Submit(ExchangeSubmit):
    """Leaves a submission to its owner alone to change: nbgrader lets everybody who knows its name."""

    def copy_files(self):
        super().copy_files()
        Path(self.inbound_path, self.assignment_filename).chmod(0o755)


class Collect(ExchangeCollect):
    """Takes whose a submission is, and when it came, from the file system; and files alone, never what a link names."""

    def _path_to_record(self, path):
        about, none = os.lstat(path), datetime.datetime(1970, 1, 1)
        record = {"username": str(about.st_uid), "filename": Path(path).name, "timestamp": none}
        with contextlib.suppress(KeyError):
            record["username"] = pwd.getpwuid(about.st_uid).pw_name
        with contextlib.suppress(Exception):  # no folder, closed, a time that is none: the others are collected
            files = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(path)}
            if "submission_secret.txt" in files and stat.S_ISDIR(about.st_mode):  # the last written: it is whole
                came = max(each.st_ctime for each in (about, *files.values()))  # altered later, it came later
                record["timestamp"] = datetime.datetime.fromtimestamp(came, datetime.UTC).replace(tzinfo=None)
            claimed = super()._path_to_record(path)["timestamp"]
            if abs(record["timestamp"] - claimed) <= CLOCK:
                record["timestamp"] = claimed
        return record

    def do_copy(self, src, dest, log=None):
        try:
            folder = os.open(src, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            return self.log.error("%r was left out: %s", Path(src).name, error.strerror)
        Path(dest).mkdir()
        wanted = {f"{self.coursedir.assignment_id}.ipynb", "submission_secret.txt"}
        for file in sorted(os.listdir(folder), key=lambda file: (file not in wanted, file))[:MOST_FILES]:  # noqa: PTH208  a descriptor
            if file in wanted or NOTEBOOK.fullmatch(file):
                try:
                    Path(dest, file).write_bytes(own(file, folder))
                except OSError as error:
                    self.log.error("%s of %r was left out: %s", file, Path(src).name, error.strerror or error)
        os.close(folder)
        record = self._path_to_record(src)  # now: what was altered in between came later
        who, when = record["username"], f"{record['timestamp']:%Y-%m-%d %H:%M:%S.%f} UTC"
        if not record["filename"].startswith(f"{who}+{self.coursedir.assignment_id}+{when}"):
            self.log.warning("Handed in by %s at %s, whatever its name says: %r", who, when, record["filename"])
        Path(dest, "timestamp.txt").write_text(when, encoding="utf-8")


def own(name, folder):
    """The bytes of a regular file of the folder's owner. Raises OSError for anything else."""
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.fstat(folder).st_uid:
            raise OSError("it is no file of theirs")
        if len(data := file.read(MOST_BYTES + 1)) > MOST_BYTES:
            raise OSError(f"it is larger than {MOST_BYTES} bytes")
        return data


c = get_config()  # noqa: F821 - given by nbgrader
c.CourseDirectory.course_id = "undertorch"
c.CourseDirectory.include = ["*.ipynb", "*.txt"]
c.CourseDirectory.max_file_size = MOST_BYTES // 1000
c.CourseDirectory.max_dir_size = MOST_FILES * MOST_BYTES // 1000
c.Exchange.root = str(Path(__file__).resolve().parents[1] / "exchange")
c.ExchangeFactory.collect = Collect
c.ExchangeFactory.submit = Submit
