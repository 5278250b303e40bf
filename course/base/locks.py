"""The locks in requirements/, and what of them this Python's environment has. The standard library alone."""

import hashlib
import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

from course.base.notebooks import ROOT

# The locks in requirements/, and the extras of pyproject.toml that each holds beside the engine's own dependencies.
LOCKS = {
    "course": ("compile", "course"),
    "teach": ("compile", "course", "teach"),
    "site": ("compile", "course", "teach", "site"),
    "test": ("compile", "course", "teach", "site", "test"),
    "dev": ("compile", "course", "teach", "site", "test", "dev"),
    "machines": ("compile", "course", "machines"),
    "hub": ("compile", "course", "teach", "hub"),
    "validate": ("validate",),
    "browser": ("browser",),
    "lite": ("lite",),
    "bench": ("compile", "course", "teach", "site", "test", "bench"),
    "cuda12": ("compile", "course", "cuda12"),
    "cuda13": ("compile", "course", "cuda13"),
}


def missing(lock: str) -> list[str]:
    """Return the requirements behind a lock that the running Python's environment does not meet."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ["packaging"]  # one of the requirements itself, and what the others are compared with
    unmet = []
    for text in requirements(lock):
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate():
            continue
        version = installed_version(requirement.name)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            unmet.append(text)
    return unmet


def requirements(lock: str) -> list[str]:
    """Return what pyproject.toml asks for: the engine's dependencies and those of the lock's extras."""
    asked = project()["dependencies"] + [text for extra in LOCKS[lock] for text in extras()[extra]]
    return [text for text in asked if not text.startswith("undertorch[")]  # an extra in an extra: the lock names both


def extras() -> dict[str, list[str]]:
    """Return the extras of pyproject.toml, by name."""
    return dict(project()["optional-dependencies"])


def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        # None, against its annotation, where an installation that was killed left no metadata.
        return importlib.metadata.version(distribution) or None
    except (importlib.metadata.PackageNotFoundError, KeyError):
        return None


def lock_file(lock: str) -> Path:
    return ROOT / "requirements" / f"{lock}.txt"


def lock_hash(lock: str) -> str:
    return hashlib.sha256(lock_file(lock).read_bytes()).hexdigest()
