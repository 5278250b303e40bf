"""Files take their places whole, on every system."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from over_tables import over

from course.base import files


@over("system, fails, written", [("nt", 3, True), ("nt", files.TRIES, False), ("posix", 1, False)])
def test_windows_waits_for_who_reads_the_file(system, fails, written, tmp_path, monkeypatch):
    """There a file that somebody has open cannot be replaced; elsewhere it can, and an error is one that stays."""
    replace, left = Path.replace, [PermissionError("somebody has it open")] * fails

    def refusing(self, to):
        if left:
            raise left.pop()
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", refusing)
    monkeypatch.setattr(files, "os", SimpleNamespace(name=system, getpid=os.getpid))
    monkeypatch.setattr(files, "PAUSE_S", 0)
    path = tmp_path / "a.json"
    path.write_text("old")
    if written:
        assert files.write_atomically(path, "new")
    else:
        with pytest.raises(PermissionError):
            files.write_atomically(path, "new")
    assert path.read_text() == ("new" if written else "old")
    assert [place.name for place in tmp_path.iterdir()] == ["a.json"]
