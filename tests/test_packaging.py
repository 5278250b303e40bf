"""pyproject.toml, the locks and the conda environments say the same; the locks name no host and pin everything."""

import itertools
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from over_tables import over
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from course.base.environment import OLDEST_PYTHON
from course.base.locks import LOCKS, lock_file, requirements

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# conda-forge's names where they are not the registry's.
CONDA_NAMES = {"graphviz": "python-graphviz", "playwright": "playwright-python"}
BROUGHT_ALONG = {"mpich"}  # by mpi4py of conda-forge, or another MPI in its place
PIN = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,-]+\])?==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
SYSTEMS = {
    "linux": {"sys_platform": "linux", "platform_machine": "x86_64", "os_name": "posix", "platform_system": "Linux"},
    "macos": {"sys_platform": "darwin", "platform_machine": "arm64", "os_name": "posix", "platform_system": "Darwin"},
    "intel mac": {
        "sys_platform": "darwin",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "platform_system": "Darwin",
    },
    "windows": {"sys_platform": "win32", "platform_machine": "AMD64", "os_name": "nt", "platform_system": "Windows"},
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


Environment = tuple[tuple[str, str], ...]  # marker values


@cache
def listed(lock: str) -> list[tuple[str, Version, str]]:
    """The pins of a lock: a name, its version, a marker or nothing."""
    lines = lock_file(lock).read_text(encoding="utf-8").splitlines()
    found = [pin for pin in map(PIN.fullmatch, lines) if pin]
    return [(canonicalize_name(pin["name"]), Version(pin["version"]), pin["marker"] or "") for pin in found]


@cache
def holds(marker: str, environment: Environment) -> bool:
    return not marker or Marker(marker).evaluate(dict(environment))


def pins(lock: str, environment: Environment) -> dict[str, Version]:
    """What a lock installs in an environment described by marker values."""
    found: dict[str, Version] = {}
    for name, version, marker in listed(lock):
        if holds(marker, environment):
            assert name not in found, f"{lock} pins {name} twice in {environment}"
            found[name] = version
    return found


def marker_values(system: str, python: str, **other: str) -> Environment:
    values = {"python_version": python, "python_full_version": f"{python}.6", "extra": ""}
    return tuple((SYSTEMS[system] | values | other).items())


def test_every_extra_has_a_lock_and_every_lock_is_a_file():
    extras = {extra for held in LOCKS.values() for extra in held}
    assert extras == set(PROJECT["optional-dependencies"])
    assert {path.stem for path in (ROOT / "requirements").glob("*.txt")} == set(LOCKS)


def brought(extra: str) -> set[str]:
    """What `pip install "undertorch[extra]"` asks for, with the extras that an extra names."""
    found = set(PROJECT["dependencies"])
    for text in PROJECT["optional-dependencies"][extra]:
        inner = Requirement(text)
        found |= set[str]().union(*map(brought, inner.extras)) if inner.name == PROJECT["name"] else {text}
    return found


@over("extra", ["course", "validate"])
def test_the_one_extra_that_readers_are_told_brings_all_that_its_commands_need(extra):
    assert brought(extra) == set(requirements(extra))


@over("lock", LOCKS)
def test_a_lock_holds_pins_with_hashes_and_nothing_else(lock):
    lines = lock_file(lock).read_text(encoding="utf-8").splitlines()
    pinned = hashed = 0
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("#"):
            continue
        if PIN.fullmatch(line):
            assert not before.endswith("\\"), f"{before} has no hash"
            pinned += 1
        else:
            assert HASH.fullmatch(line), line
            assert before.endswith("\\"), line
            hashed += 1
    assert not lines[-1].endswith("\\")
    assert hashed >= pinned > 20


@over("lock", LOCKS)
def test_a_lock_names_no_host_and_no_path(lock):
    text = lock_file(lock).read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index-url|--find-links|\bfile:|(?m:^/)|\w\.(org|com|net|io)\b", text)


@over("lock, system, python", itertools.product(LOCKS, SYSTEMS, PYTHONS))
def test_a_lock_meets_pyproject(lock, system, python):
    environment = marker_values(system, python)
    locked = pins(lock, environment)
    for text in requirements(lock):
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(dict(environment)):
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), text


@over("lock, system, python", itertools.product(LOCKS, SYSTEMS, PYTHONS))
def test_what_two_locks_share_has_one_version(lock, system, python):
    environment = marker_values(system, python)
    developer = pins("dev", environment)
    assert len(developer) > 100
    assert {
        name: version for name, version in pins(lock, environment).items() if version != developer.get(name, version)
    } == {}


def test_pygraphviz_is_locked_where_it_has_wheels_and_nowhere_else():
    wheels = {
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("macos", "arm64"),
        ("intel mac", "x86_64"),
        ("windows", "AMD64"),
    }
    others = {("linux", "ppc64le"), ("linux", "armv7l"), ("windows", "ARM64")}
    for system, machine in wheels | others:
        environment = marker_values(system, "3.12", platform_machine=machine)
        assert ("pygraphviz" in pins("course", environment)) == ((system, machine) in wheels), (system, machine)


def test_the_oldest_python_is_said_once():
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={'.'.join(map(str, OLDEST_PYTHON))}")


def conda_specifiers(name: str) -> dict[str, SpecifierSet]:
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert content["channels"] == ["conda-forge", "nodefaults"]
    entries = [entry for entry in content["dependencies"] if entry != "pip"]
    listed = [name for entry in entries for name in (entry["pip"] if isinstance(entry, dict) else [entry])]
    parts = [re.fullmatch(r"([\w.-]+)(.*)", entry) for entry in listed]
    return {part[1]: SpecifierSet(part[2]) for part in parts if part}


def test_the_conda_environment_agrees_with_pyproject():
    wanted = {"python": SpecifierSet(PROJECT["requires-python"]), "graphviz": SpecifierSet()}  # the system's `dot`
    for requirement in map(Requirement, requirements("test")):
        if requirement.name in BROUGHT_ALONG:
            continue
        wanted[CONDA_NAMES.get(requirement.name, requirement.name)] = requirement.specifier
    assert conda_specifiers("environment.yml") == wanted


@over("extra", ["cuda12", "cuda13"])
def test_the_gpu_environment_adds_cupy_and_nothing_else(extra):
    (cupy,) = map(Requirement, PROJECT["optional-dependencies"][extra])
    assert cupy.name.removesuffix("x").startswith("cupy-cuda")
    assert conda_specifiers("environment-gpu.yml") == conda_specifiers("environment.yml") | {"cupy": cupy.specifier}


def test_a_package_that_several_extras_name_has_one_range():
    ranges = {}
    for text in (text for extra in PROJECT["optional-dependencies"].values() for text in extra):
        requirement = Requirement(text)
        assert ranges.setdefault(requirement.name, requirement.specifier) == requirement.specifier, text
