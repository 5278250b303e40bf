"""What learning platforms provide: files from zip archives that others have made, and who sent each.

Nothing is unpacked under a name from the archive: a file is read into memory, up to a limit. The standard library
alone.
"""

import datetime
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course.base.environment import Problem

MOST_FILES = 20_000
MOST_BYTES = 50_000_000  # of one file
MOST_BYTES_IN_ALL = 2_000_000_000
SQUEEZED = 200  # times smaller, and more than a tenth of the limit: no notebook shrinks like that
UNSEEN = ("__MACOSX", ".DS_Store", ".ipynb_checkpoints", "Thumbs.db", "desktop.ini")
CLOSE = datetime.timedelta(minutes=10)
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)_(?P<rest>.*)")
CANVAS = re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE))?_(?P<number>\d+)_(?P<file>\d+)_(?P<rest>.+)")
CANVAS_ANONYMOUS = re.compile(r"(?:(?P<late>LATE)_)?(?P<name>anon)_(?P<number>\w+?)_(?P<file>\d+)_(?P<rest>.+)")
CANVAS_TEXT = re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE))?_(?P<number>\d+)_(?P<rest>(?:text|link)\.html)")
COPY = re.compile(r"(?:-| ?\()(\d+)\)?(?=\.[^.]*$|\.ipynb\.\w+$)")  # "x-1.ipynb", "x (1).ipynb"


class Piece(NamedTuple):
    """One file, its path in what was given, and the time given for it there."""

    name: str
    data: bytes
    at: datetime.datetime | None


class Sender(NamedTuple):
    """The sender of a file, as far as its name tells."""

    platform: str  # "moodle", "canvas", or ""
    name: str
    number: str  # Moodle's is for this person in this assignment, Canvas's for this person everywhere
    late: bool
    order: tuple[int, int]  # of several files by one person: Canvas's number for the file, and for the copy
    folder: str = ""  # Moodle's, for feedback

    @property
    def label(self) -> str:
        return f"{self.name}_{self.number}" if self.number else self.name


def sender(path: str) -> Sender:
    """Read from a file's name who sent it, as Moodle and Canvas name files."""
    parts = PurePosixPath(path).parts
    copy = COPY.search(parts[-1])
    again = int(copy[1]) if copy else 0
    for part in parts:
        if match := MOODLE.fullmatch(part):
            folder = part[: match.start("rest")]
            return Sender("moodle", match["name"], match["number"], False, (0, again), folder)
    for pattern in (CANVAS_ANONYMOUS, CANVAS, CANVAS_TEXT):
        if match := pattern.fullmatch(parts[-1]):
            number = int(match["file"]) if "file" in pattern.groupindex else 0
            return Sender("canvas", match["name"], match["number"], bool(match["late"]), (number, again))
    return Sender("", path, "", False, (0, again))


def pieces(path: Path) -> tuple[list[Piece], list[tuple[str, str]]]:
    """Return the files in an archive or a folder, or the one file, and the names of unreadable ones, with reasons.

    Raises Problem if there is none, or if an archive is dangerous as a whole.
    """
    refused = list[tuple[str, str]]()
    try:
        if path.is_dir():
            found = list(_of_folder(path, refused))
        elif path.suffix.casefold() == ".zip":
            found = list(_of_zip(path.name, path.read_bytes(), refused))
        else:
            at = datetime.datetime.fromtimestamp(path.stat().st_mtime).astimezone()
            found = [Piece(path.name, path.read_bytes(), at)]
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}.") from None
    whole = list[Piece]()
    for piece in found:
        if not piece.name.casefold().endswith(".zip"):
            whole.append(piece)
            continue
        try:  # somebody has packed their notebook
            left = MOST_BYTES_IN_ALL - sum(len(part.data) for part in [*found, *whole])
            inner = list(_of_zip(piece.name, piece.data, refused, min(MOST_BYTES, left)))
        except Problem as problem:
            refused.append((piece.name, str(problem)))
            continue
        whole += [Piece(f"{piece.name}/{part.name}", part.data, piece.at) for part in inner]
    return whole, refused


def _of_folder(folder: Path, refused: list[tuple[str, str]]) -> Iterator[Piece]:
    total = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part in UNSEEN for part in path.parts) or path.is_dir() and not path.is_symlink():
            continue
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            refused.append((name, "it is a link"))
            continue
        about = path.stat()
        total += about.st_size
        if about.st_size > MOST_BYTES or total > MOST_BYTES_IN_ALL:
            refused.append((name, f"it has {about.st_size / 1e6:.0f} MB"))
            continue
        yield Piece(name, path.read_bytes(), datetime.datetime.fromtimestamp(about.st_mtime).astimezone())


def _of_zip(label: str, data: bytes, refused: list[tuple[str, str]], most: int = MOST_BYTES_IN_ALL) -> Iterator[Piece]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, struct.error) as error:
        raise Problem(f"{label} is no whole zip archive ({error}): download it once more.") from None
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:
        if danger := _danger(entry):
            raise Problem(f"{label} was not opened: {entry.filename!r} {danger}. No platform makes such an archive.")
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > most:
        size = f"{max(most, 0) / 1e6:.0f} MB"
        raise Problem(f"{label} was not opened: it holds more than {MOST_FILES} files, or than {size}.")
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        if any(part in UNSEEN for part in PurePosixPath(name).parts):
            continue
        if entry.file_size > MOST_BYTES:
            refused.append((name, f"it has {entry.file_size / 1e6:.0f} MB"))
            continue
        try:
            with archive.open(entry) as file:
                content = file.read(MOST_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            refused.append((name, f"it is damaged in the archive ({error})"))
            continue
        yield Piece(name, content, _time(entry))


def _danger(entry: zipfile.ZipInfo) -> str:
    name = entry.filename.replace("\\", "/")
    mode = entry.external_attr >> 16
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        return "leads out of its folder"
    if stat.S_ISLNK(mode) or mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link"
    if entry.flag_bits & 1:
        return "asks for a password"
    if entry.file_size > max(MOST_BYTES // 10, SQUEEZED * max(entry.compress_size, 1)):
        return f"grows from {entry.compress_size} to {entry.file_size} bytes"
    return ""


def _time(entry: zipfile.ZipInfo) -> datetime.datetime | None:
    """Return when an archive's file was changed: exactly where the archive says so, else by this computer's clock."""
    extra = entry.extra
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == 0x5455 and size >= 5 and extra[4] & 1 and len(extra) >= 9:
            return datetime.datetime.fromtimestamp(struct.unpack("<i", extra[5:9])[0], datetime.UTC)
        extra = extra[4 + size :]
    try:
        when = datetime.datetime(*entry.date_time)
    except ValueError:
        return None
    return when.astimezone() if when.year > 1980 else None


def are_of_the_download(found: list[Piece]) -> bool:
    """Tell whether all times in an archive are the same: that of the download, not of sending each file."""
    times = [piece.at for piece in found if piece.at]
    return len({sender(piece.name).label for piece in found}) > 1 and bool(times) and max(times) - min(times) < CLOSE
