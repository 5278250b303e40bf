"""`python -m course test --changed`: the tests that what was changed since `main` can reach. A plugin of pytest, too.

What a test imports comes from `ruff analyze graph`. But every test imports `engine`, and that imports all: so a package
(`__init__.py`) passes nothing on, and of the tests behind one only those are taken that name what was changed.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from course.base.environment import Problem
from course.base.notebooks import COMMAND, EXECUTED, ROOT, VALIDATE_ARGS

# What no import tells: paths, and the tests that read them (`documents` is any test_documents.py).
READ_BY = {
    "engine/*": ("layers", "documents"),
    "engine/core/*": ("autograd", "function", "views", "quick"),
    "engine/surface/*": ("arguments", "calls", "wrong_calls", "stubs"),
    "engine/help/*": ("help", "stubs"),
    "engine/*.pyi": ("stubs",),
    "course/authoring/template/*": ("new",),
    "course/jupyter/*": ("course_start", "packaging"),
    "docs/*": ("documents", "stubs"),
    "docs/teaching.md": ("teaching",),
    "*.md": ("documents",),
    "pyproject.toml": ("packaging", "layers"),
    "requirements/*": ("packaging",),
    "environment*.yml": ("packaging",),
    "benchmarks/*": ("benchmarks",),
    "deploy/*": ("deploy",),
}
TABLE_OF_ROWS = "rules"  # tests/**/test_rules.py has a table of the operations, and tests that import it run over it
# Tests that run over tables of all lessons, exercises, questions.
OVER_LESSONS = (
    *("build", "checks", "compile_lessons", "device_lessons", "exercises", "folds", "materials", "notebooks"),
    *("predictions", "slips", "teaching", "variants", "written"),
)
OF_A_FOLDER = ("widget", "style")  # a figure's front end in a folder of its own
COMMON = 30  # a word in more files than these, `sum` say, chooses by the names of tests alone
FEW = 3  # notebooks run in half a minute
LESSON = re.compile(r"(?:^|[/_])(\d\d)(?=[_./])")


class Choice(NamedTuple):
    """Tests and notebooks to run: whole files, and of others the tests that name one of the words."""

    changed: list[str]
    whole: list[str]
    partly: list[str]
    words: list[str]
    browser: list[str]  # `--deep` runs these

    def arguments(self) -> list[str]:
        """For pytest."""
        notebooks = VALIDATE_ARGS if any(file.endswith(".ipynb") for file in self.whole) else ()
        words = [f"--naming={word}" for word in self.words]
        partly = [f"--partly={file}" for file in self.partly]
        return [*notebooks, *self.whole, *self.partly, "-p", "course.commands.changed", *words, *partly]

    def __str__(self) -> str:
        if not self.changed:
            return "Nothing was changed since `main`."
        lines = [f"Changed since `main`: {some(self.changed)}."]
        if self.whole:
            lines.append(f"Run as a whole: {some(self.whole)}.")
        if self.partly:
            lines.append(f"In {len(self.partly)} other files of tests, what names {some(self.words)}.")
        if not (self.whole or self.partly):
            lines.append("No test reads that.")
        if self.browser:
            lines.append(f"In a browser, and not run now: {COMMAND} test -m browser {' '.join(self.browser)}")
        return "\n".join(lines)


def some(names: list[str], most: int = 8) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def choose(root: Path = ROOT) -> Choice:
    """Choose the tests that the changes since `main` can reach. Raises Problem where there is no git or no `main`."""
    base = merge_base(root)
    lines = changed_lines(root, base)
    graph = imports(root)
    tests = sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))
    whole = {test for path in lines for test in tests if reads(test, path)}
    names: dict[str, set[str]] = {}
    for path, changed in lines.items():
        modules = front_end_of(root, path)
        for module in modules or [path]:
            reach = direct if path.startswith("engine/") else reached
            whole |= reach(graph, module, tests)
            if module.startswith(("engine/", "course/")) and module.endswith(".py"):
                names[module] = touched(root, base, module, None if modules else changed)
    called = {(path, name) for path, name in spread(root, graph, names) if name in public(root, path.partition("/")[0])}
    words = {name for _, name in called}
    partly = naming(root, graph, tests, words)
    whole |= showing(root, {name for path, name in called if path.startswith("course/figures/")})

    lessons = {found[1] for path in lines if not path.startswith("tests/") and (found := LESSON.search(path))}
    if lessons:
        notebooks = [path for path in executed(root) if path.name[:2] in lessons]
        whole |= {path.relative_to(root).as_posix() for path in notebooks}
        whole |= {test for test in tests if (found := LESSON.search(test)) and found[1] in lessons}
        partly |= {test for test in tests if test_of(test) in OVER_LESSONS}
        words |= lessons | {path.stem for path in notebooks}
    browser = {test for test in whole if "/browser/" in test}
    return Choice(*map(sorted, (lines, whole - browser, partly - whole, words, browser)))


def reads(test: str, path: str) -> bool:
    """Tell whether a test is for a file, though it imports nothing of it."""
    if path.startswith("tests/") and path.endswith("conftest.py"):
        return test.startswith(path.removesuffix("conftest.py"))
    return named_after(test, path) or any(fnmatch(path, on) and test_of(test) in read for on, read in READ_BY.items())


def naming(root: Path, graph: dict[str, list[str]], tests: list[str], words: set[str]) -> set[str]:
    """Return the tests whose text has one of these words, unless it is common; for an operation, those of the table."""
    table = {test for test in tests if test_of(test) == TABLE_OF_ROWS}
    found = {test for test in tests if table & {test, *graph.get(test, ())}} if words & rows(root) else set()
    texts = {test: {*re.findall(r"\w+", read(root / test))} for test in tests if words and "/browser/" not in test}
    for word in words:
        named = {test for test, text in texts.items() if word in text}
        found |= named if len(named) <= COMMON else set()
    return found


def showing(root: Path, figures: set[str]) -> set[str]:
    """The notebooks that show one of these figures, if they are few: what all figures stand on has tests of its own."""
    texts = {path.relative_to(root).as_posix(): {*re.findall(r"\w+", read(path))} for path in executed(root) if figures}
    found = {path for path, text in texts.items() if text & figures}
    return found if len(found) <= FEW else set()


def executed(root: Path) -> list[Path]:
    return [path for folder in EXECUTED for path in (root / folder).glob("*.ipynb")]


# What was changed


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "core.quotepath=off", *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, encoding="utf-8").stdout
    except OSError as error:
        raise Problem(f"What was changed is asked of git, and it does not start: {error}.") from None


def merge_base(root: Path) -> str:
    """Return the commit at which this branch left `main`."""
    for main in ("main", "origin/main"):
        try:
            return git(root, "merge-base", "HEAD", main).strip()
        except subprocess.CalledProcessError:
            continue
    raise Problem("There is no branch `main` here to compare with.")


def changed_lines(root: Path, base: str) -> dict[str, tuple[set[int], set[int]]]:
    """Return the files that differ from a commit, new ones too, and which lines of them: before, and now."""
    lines: dict[str, tuple[set[int], set[int]]] = {}
    for path in filter(None, git(root, "diff", "--name-only", "--no-renames", "-z", base).split("\0")):
        lines[path] = (set(), set())
        for hunk in re.finditer(
            r"(?m)^@@ -(\S+) \+(\S+) @@", git(root, "diff", "-U0", "--no-renames", base, "--", path)
        ):
            for found, side in zip(hunk.groups(), lines[path], strict=True):
                first, _, count = found.partition(",")
                side.update(range(int(first), int(first) + int(count or 1)))
    for path in filter(None, git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")):
        lines[path] = (set(), {*range(1, 1 + (root / path).read_bytes().count(b"\n") + 1)})
    return lines


def touched(root: Path, base: str, path: str, lines: tuple[set[int], set[int]] | None) -> set[str]:
    """Return what a module defines on these lines, before and now; on all lines where none are given."""
    now = parsed(root / path)
    if lines is None:
        return {name for name, _ in definitions(now)}
    names = set()
    try:
        before = ast.parse(git(root, "show", f"{base}:{path}"))
    except (subprocess.CalledProcessError, SyntaxError):
        before = ast.Module([], [])
    for tree, changed in zip((before, now), lines, strict=True):
        for name, node in definitions(tree):
            if changed & {*range(first_line(node), (node.end_lineno or 0) + 1)}:
                names.add(name)
    return names


# What it reaches


def imports(root: Path) -> dict[str, list[str]]:
    """Return the files that a file of Python imports."""
    command = [sys.executable, "-m", "ruff", "analyze", "graph", "--quiet", "--preview"]
    folders = [folder for folder in ("engine", "course", "benchmarks", "tests") if (root / folder).is_dir()]
    answer = subprocess.run([*command, *folders], cwd=root, capture_output=True, text=True, encoding="utf-8")
    if answer.returncode:
        raise Problem(f"ruff does not say what imports what:\n{answer.stderr.strip()}")
    return {file.replace("\\", "/"): [one.replace("\\", "/") for one in found]
            for file, found in json.loads(answer.stdout).items()}  # fmt: skip


def importers(graph: dict[str, list[str]], path: str) -> set[str]:
    return {file for file, found in graph.items() if path in found}


def direct(graph: dict[str, list[str]], path: str, tests: Iterable[str]) -> set[str]:
    """Return the tests that are this file, or import it themselves."""
    return {test for test in tests if test == path or path in graph.get(test, ())}


def reached(graph: dict[str, list[str]], path: str, tests: Iterable[str]) -> set[str]:
    """Return the tests that are this file, or reach it by imports that lead through no package's `__init__.py`."""
    seen, waiting = {path}, [path]
    while waiting:
        for file in importers(graph, waiting.pop()) - seen:
            seen.add(file)
            if not file.endswith("__init__.py"):
                waiting.append(file)
    return seen & {*tests}


def spread(root: Path, graph: dict[str, list[str]], names: dict[str, set[str]]) -> set[tuple[str, str]]:
    """(module, name) of these, and of what is written with them, there and in modules that import them."""
    seen = {(path, name) for path, found in names.items() for name in found}
    waiting = [*seen]
    while waiting:
        path, name = waiting.pop()
        for file in (path, *importers(graph, path)):
            if file.startswith("tests/") or file.endswith((".pyi", "__init__.py")):
                continue
            for other, used in uses(root / file):
                if name in used and (file, other) not in seen:
                    seen.add((file, other))
                    waiting.append((file, other))
    return seen


@cache
def uses(path: Path) -> list[tuple[str, set[str]]]:
    """Return what a module defines, each with the names that stand in it."""
    return [(name, {*names_in(node)}) for name, node in definitions(parsed(path))]


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions, classes and values of a module, by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from ((name.id, node) for name in ast.walk(target) if isinstance(name, ast.Name))


def names_in(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


@cache
def parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(read(path))
    except (OSError, SyntaxError):  # deleted; or half written, and pytest will say so
        return ast.Module([], [])


@cache
def public(root: Path, package: str) -> frozenset[str]:
    """Return what users and tests call by name: what the engine's stubs define, or the course's packages import."""
    if package == "engine":
        return frozenset(re.findall(r"(?:def|class) (\w+)", "".join(map(read, (root / package).rglob("*.pyi")))))
    trees = map(parsed, (root / package).rglob("__init__.py"))
    nodes = (node for tree in trees for node in tree.body if isinstance(node, ast.ImportFrom))
    return frozenset(alias.asname or alias.name for node in nodes for alias in node.names)


@cache
def rows(root: Path) -> frozenset[str]:
    """Return what the files of the operations define."""
    return frozenset(name for file in (root / "engine/ops").glob("*.py") for name, _ in definitions(parsed(file)))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def front_end_of(root: Path, path: str) -> list[str]:
    """Return the modules of a style sheet or script: `explorer.py` for `explorer.js`; in a figure's folder, all."""
    file = Path(path)
    if not path.startswith("course/") or file.suffix not in (".js", ".css"):
        return []
    beside = sorted((root / file.parent).glob("*.py"))
    modules = [module for module in beside if module.stem.startswith(file.stem)]
    return [f"{file.parent.as_posix()}/{module.name}" for module in (beside if file.stem in OF_A_FOLDER else modules)]


def test_of(test: str) -> str:
    return Path(test).stem.removeprefix("test_")


def named_after(test: str, path: str) -> bool:
    """Tell whether a test is named after a module or its folder: test_optim_loops.py, test_stepper.py."""
    parts = Path(path).with_suffix("").parts
    if len(parts) < 2 or parts[0] not in ("engine", "course"):
        return False
    names = {parts[-1].removesuffix("_widget"), *parts[1 if parts[0] == "engine" else 2 : -1]}
    return any(re.fullmatch(rf"{re.escape(name)}s?(_figures?|_loops|_in_browser)?", test_of(test)) for name in names)


# The plugin: of some files only the tests that name one of the words


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--naming", action="append", default=[], help="a word that a test is to name")
    parser.addoption("--partly", action="append", default=[], help="a file of which other tests are left out")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what names none of the words: neither in its own name nor, where that has no table, in its text."""
    words = config.getoption("--naming")
    files = {config.rootpath / file for file in config.getoption("--partly")}
    word = re.compile(r"(?<![A-Za-z0-9.])(" + "|".join(map(re.escape, words)) + r")(?![A-Za-z0-9])")
    function = {item: (item.path, getattr(item, "originalname", item.name)) for item in items if item.path in files}
    named = {item for item in function if word.search(item.name)}
    tables = {function[item] for item in named}
    left_out = {
        item
        for item, (path, name) in function.items()
        if item not in named and ((path, name) in tables or name not in tests_naming(path, tuple(words)))
    }
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


@cache
def tests_naming(path: Path, words: tuple[str, ...]) -> frozenset[str]:
    """Return the tests of a file whose text, or whose helpers' text, has one of the words."""
    text = read(path)
    word = re.compile(
        r"\b(" + "|".join(re.escape(word) for word in words if not word.isdigit()) + r")\b"
        if any(not word.isdigit() for word in words)
        else "(?!)"
    )
    parts = dict(definitions(parsed(path)))
    used = {name: {*names_in(node)} | {*fixtures_of(node)} for name, node in parts.items()}
    lines = text.splitlines()  # of a test with its decorators: they may have its table
    found = {n for n, node in parts.items() if word.search("\n".join(lines[first_line(node) - 1 : node.end_lineno]))}
    while more := {name for name in parts if name not in found and used[name] & found}:
        found |= more
    return frozenset(found)


def fixtures_of(node: ast.AST) -> Iterator[str]:
    return (inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg))
