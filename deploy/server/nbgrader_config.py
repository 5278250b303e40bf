"""nbgrader on a class's server: the exchange, and what is taken out of it. For learners and teachers alike."""

import datetime
import os
import pwd
import re
import stat
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect, ExchangeSubmit

MOST_FILES, MOST_BYTES = 20, 5_000_000
SHOWN = ("username", "timestamp", "filename")
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
        record, about = super()._path_to_record(path), os.lstat(path)
        came = datetime.datetime.fromtimestamp(about.st_ctime, datetime.UTC).replace(tzinfo=None)
        if abs(came - record["timestamp"]) > CLOCK:
            record["timestamp"] = came
        if not Path(path, "submission_secret.txt").is_file():  # nbgrader writes it last: this one broke off
            record["timestamp"] = datetime.datetime(1970, 1, 1)
        try:
            record["username"] = pwd.getpwuid(about.st_uid).pw_name
        except KeyError:
            record["username"] = str(about.st_uid)
        return record

    def do_copy(self, src, dest, log=None):
        record, claimed = self._path_to_record(src), super()._path_to_record(src)
        if claimed != record:
            self.log.warning("Handed in by %s at %s, whatever its name says: %s", *map(record.get, SHOWN))
        folder = os.open(src, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        Path(dest).mkdir()
        wanted = {f"{self.coursedir.assignment_id}.ipynb", "submission_secret.txt"}
        for name in sorted(os.listdir(folder), key=lambda name: (name not in wanted, name))[:MOST_FILES]:  # noqa: PTH208  a descriptor
            if name in wanted or NOTEBOOK.fullmatch(name):
                try:
                    Path(dest, name).write_bytes(own(name, folder))
                except OSError as error:
                    self.log.error("%s of %s was left out: %s", name, record["username"], error.strerror or error)
        os.close(folder)
        Path(dest, "timestamp.txt").write_text(f"{record['timestamp']:%Y-%m-%d %H:%M:%S.%f} UTC", encoding="utf-8")


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
