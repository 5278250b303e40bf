"""What may be in an archive or a folder, how much of it, and the times in it."""

import datetime
import os
import stat
import struct
import zipfile

import pytest
from over_tables import over

from course.base.environment import Problem
from course.classroom import arriving

WHEN = (2027, 1, 1, 0, 0, 0)


def archive(path, *entries, **about):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, WHEN)
            for field, value in about.items():
                setattr(entry, field, value)
            file.writestr(entry, content)
    return path


@over("packed", [True, False])
def test_a_large_file_is_named_and_what_systems_add_is_not(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(arriving, "MOST_BYTES", 3000)
    files = {"a.ipynb": b"{}" * 1500, "b/b.ipynb": os.urandom(3001), "__MACOSX/a.ipynb": b"{}", "c/.DS_Store": b""}
    place = tmp_path / ("a.zip" if packed else "a")
    if packed:
        archive(place, *files.items())
    for name, content in files.items() if not packed else ():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    found, refused = arriving.pieces(place)
    assert [(piece.name, piece.data) for piece in found] == [("a.ipynb", files["a.ipynb"])]
    assert refused == [("b/b.ipynb", "it has 0 MB")]


def test_a_folder_has_a_limit_too(tmp_path, monkeypatch):
    monkeypatch.setattr(arriving, "MOST_BYTES_IN_ALL", 5)
    for name in ("a.ipynb", "b.ipynb", "c.ipynb"):
        (tmp_path / name).write_bytes(b"{}")
    found, refused = arriving.pieces(tmp_path)
    assert [piece.name for piece in found] == ["a.ipynb", "b.ipynb"] and [name for name, _ in refused] == ["c.ipynb"]


def locked(path):
    data = bytearray(archive(path, ("a.ipynb", b"{}")).read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    return path


@over(
    "make, says",
    [
        (locked, "asks for a password"),
        (lambda path: archive(path, ("a.ipynb", ""), external_attr=stat.S_IFIFO << 16), "is a link"),
        (lambda path: archive(path, *((name, b"{}") for name in "abc")), "holds more than 2 files"),
    ],
)
def test_an_archive_that_no_platform_makes_is_refused(tmp_path, monkeypatch, make, says):
    monkeypatch.setattr(arriving, "MOST_FILES", 2)
    with pytest.raises(Problem, match=says):
        arriving.pieces(make(tmp_path / "a.zip"))


@over(
    "about, at",
    [
        ({}, datetime.datetime(*WHEN).astimezone()),
        ({"extra": struct.pack("<HHHHHBi", 1, 2, 0, 0x5455, 5, 1, 1_800_000_001)},
         datetime.datetime.fromtimestamp(1_800_000_001, datetime.UTC)),
        ({"extra": struct.pack("<HHBi", 0x5455, 5, 2, 1_800_000_001)}, datetime.datetime(*WHEN).astimezone()),
        ({"date_time": (1980, 1, 1, 0, 0, 0)}, None),
    ],
)  # fmt: skip
def test_a_time_is_exact_where_the_archive_says_so(tmp_path, about, at):
    ((piece,), _) = arriving.pieces(archive(tmp_path / "a.zip", ("a.ipynb", b"{}"), **about))
    assert piece.at == at
