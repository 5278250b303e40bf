"""Break lines of the engine or the course, one at a time, and see whether the tests notice it.

Run by hand, on a system that forks:

    python tests/mutation.py --count 100 --seed 1 --paths engine/core engine/ops engine/surface
    python tests/mutation.py --count 20 --paths course/judging --tests tests/course/judging/test_checks.py

It works in copies of the checkout.  First the tests run on it as it is, for what each file takes and what fails anyway;
then for each broken line the files that speak of what it is in, and after them the others, until one
fails or is still running after three times what all of them take.  It ends with the share noticed, and what was not.

(mutmut changes functions alone, and here most rules are rows outside of any; cosmic-ray runs one command, the whole
suite, for every change.)
"""

import argparse
import ast
import copy
import importlib
import importlib.util
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

LOADED = ("numpy", "scipy.special", "ml_dtypes", "pytest", "torch")  # once, and then forked
PARTS = (5, 15, None)  # how many of the files run in one process, those most likely to notice it first
SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.MatMult: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Lt: ast.GtE,
    ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Mutant(NamedTuple):
    """A changed line: where, what stood there and stands there now, and the names that it is about."""

    path: str
    line: int
    old: str
    new: str
    text: str  # of the whole file
    names: tuple[str, ...]


def broken(node):
    """What a node may be changed to."""
    new = copy.copy(node)
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPPED:
        new.op = SWAPPED[type(node.op)]()
        yield new
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        new.ops = [SWAPPED[type(node.ops[0])](), *node.ops[1:]]
        yield new
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and node.value is not ...:
        value = node.value
        new.value = (
            not value if isinstance(value, bool) else value + 1 if isinstance(value, int | float)
            else f"{value}X" if isinstance(value, str) else 0
        )  # fmt: skip
        yield new
    elif isinstance(node, ast.IfExp):
        new.body, new.orelse = node.orelse, node.body
        yield new
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args):
        new.args = [node.args[1], node.args[0], *node.args[2:]]
        yield new
    elif isinstance(node, ast.Return) and node.value is not None:
        new.value = None
        yield new
    elif isinstance(node, ast.Raise) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def mutants(path, root):
    """All changes of a file."""
    text = (root / path).read_bytes()
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def visit(node, names):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.arguments | ast.JoinedStr):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (*names, *(t.id for t in targets if isinstance(t, ast.Name)))
            if "__all__" in names or "__slots__" in names:
                return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = (*names, node.name)
        for new in broken(node):
            start, end = (starts[n - 1] + k for n, k in (
                (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))  # fmt: skip
            put = ast.unparse(new)
            put = f"({put})" if isinstance(new, ast.expr) and not isinstance(new, ast.Constant) else put
            changed = text[:start] + put.encode() + text[end:]
            yield Mutant(path, node.lineno, text[start:end].decode(), put, changed.decode(), names)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, names)

    yield from visit(tree, ())


def is_valid(mutant):
    try:
        compile(mutant.text, mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def drawn(paths, root, count, seed):
    """So many of all lines that can be broken, each in one of its ways."""
    files = [f for path in paths for f in ([path] if path.endswith(".py") else listed(root, path, ".py"))]
    lines = {}
    for path in sorted(set(files)):
        for mutant in mutants(path, root):
            lines.setdefault((path, mutant.line), []).append(mutant)
    chance = random.Random(seed)
    order = chance.sample(sorted(lines), len(lines))
    chosen = (mutant for line in order if is_valid(mutant := chance.choice(lines[line])))
    return list(itertools.islice(chosen, count))


def listed(root, folder, end):
    """The files under git, of a folder, that end so."""
    found = subprocess.run(["git", "ls-files", folder], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for path in found.splitlines() if path.endswith(end)]


OTHERS = re.compile(r"\bsubprocess\b|^\s*(?:from|import) course\b|thread_time", re.MULTILINE)


def tests_of(root, package):
    """{file: text} of a package's tests; of the engine's those that neither start processes nor need the course."""
    folders = {"engine": ["tests/engine"], "course": ["tests/course", "tests/lessons"]}[package]
    texts = {p: (root / p).read_text(encoding="utf-8") for f in folders for p in listed(root, f, ".py")}
    return {p: text for p, text in texts.items() if package == "course" or not OTHERS.search(text)}


def ordered(mutant, texts, seconds):
    """The files of tests, those that speak most of what is broken first, and quick ones before slow ones."""
    words = {name.strip("_").lower() for name in mutant.names} | {Path(mutant.path).stem}
    patterns = [re.compile(rf"\b{re.escape(word)}_?\b") for word in words if len(word) > 1]
    spoken = {p: sum(min(5, len(pattern.findall(text.lower()))) for pattern in patterns) for p, text in texts.items()}
    return sorted(texts, key=lambda p: (-spoken[p] / (1 + seconds.get(p, 0) / 5), seconds.get(p, 0)))


# ---- in a process of its own for each core


def prepare():
    for name in LOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"without {name}", file=sys.stderr)


def pytest_forked(folder, arguments, limit):
    """The exit code of pytest, and what it wrote; None where it was still running at the limit."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if not child:
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                os.chdir(folder)
                sys.path[:0] = [str(folder), str(folder / "tests")]
                import pytest

                os._exit(int(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments])))
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(99)
        end = time.monotonic() + limit
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done or time.monotonic() > end:
                break
            time.sleep(0.05)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not done:
            os.waitpid(child, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(status) if done else None, out.read().decode(errors="replace")


def tried(mutant, folder, files, deselected, limit):
    """Who noticed a change: the first test that fails; "" where none does."""
    path = folder / mutant.path
    was = path.read_bytes()
    cache = Path(importlib.util.cache_from_source(str(path)))
    cache.unlink(missing_ok=True)  # it is known by the time in seconds, and the size
    path.write_bytes(mutant.text.encode())
    end = time.monotonic() + limit
    try:
        for part in PARTS:
            now, files = files[:part], files[len(files) if part is None else part :]
            if not now:
                break
            code, said = pytest_forked(folder, ["-x", "--tb=no", *deselected, *now], end - time.monotonic())
            if code is None:
                return "the time limit"
            if code not in (0, 5):
                found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
                return found[1] if found else f"exit code {code}"
        return ""
    finally:
        path.write_bytes(was)
        cache.unlink(missing_ok=True)


_copy = None


def in_a_copy(root, function, *arguments):
    """Call it in this process's own copy of the checkout, which is made at the first call."""
    global _copy
    if _copy is None:
        _copy = tempfile.TemporaryDirectory(prefix="mutation-")
        names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
        command = ["tar", "--null", "-cf", "-", "-T", "-"]
        packed = subprocess.run(command, cwd=root, input=names, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-xf", "-"], cwd=_copy.name, input=packed, check=True)
    return function(Path(_copy.name), *arguments)


def clean_run(folder, file):
    """(file, seconds, what fails) without any change."""
    start = time.monotonic()
    _, said = pytest_forked(folder, ["--tb=no", "-rfE", file], 1200)
    failed = [line.split(" - ")[0].split(" ", 1)[1] for line in said.splitlines() if re.match(r"(FAILED|ERROR) ", line)]
    return file, time.monotonic() - start, failed


def one(folder, mutant, *arguments):
    start = time.monotonic()
    return mutant, tried(mutant, folder, *arguments), time.monotonic() - start


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paths", nargs="+", default=["engine/core", "engine/ops", "engine/surface"])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tests", nargs="+", help="files of tests, instead of all of the package")
    parser.add_argument("--limit", type=float, help="seconds for a mutant, instead of 3 times a clean run")
    parser.add_argument("--out", type=Path, help="a file for the results, as JSON lines")
    options = parser.parse_args(argv)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CI": "true"}
    root = options.root.resolve()
    chosen = drawn(options.paths, root, options.count, options.seed)
    tests = {m.path.partition("/")[0]: {} for m in chosen}
    for package in tests:
        found = tests_of(root, package).items()
        tests[package] = {p: t for p, t in found if not options.tests or p in options.tests}
    texts = {p: t for found in tests.values() for p, t in found.items()}
    print(f"{len(chosen)} lines of {', '.join(options.paths)}; {len(texts)} files of tests", flush=True)
    results = []
    pool = ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"), initializer=prepare)
    with pool:
        clean = [job.result() for job in [pool.submit(in_a_copy, root, clean_run, file) for file in sorted(texts)]]
        seconds, failed = {file: took for file, took, _ in clean}, [name for *_, names in clean for name in names]
        print(f"unchanged, they take {sum(seconds.values()):.0f} s; {len(failed)} fail and are left out", flush=True)
        limit = options.limit or 3 * sum(seconds.values()) + 60
        deselected = [f"--deselect={name}" for name in failed]
        order = [ordered(m, tests[m.path.partition("/")[0]], seconds) for m in chosen]
        jobs = [pool.submit(in_a_copy, root, one, m, o, deselected, limit) for m, o in zip(chosen, order, strict=True)]
        for k, job in enumerate(jobs, 1):
            mutant, who, took = job.result()
            results.append((mutant, who))
            old, new = (" ".join(text.split())[:60] for text in (mutant.old, mutant.new))
            print(
                f"{k:4} {took:5.0f} s  {mutant.path}:{mutant.line}: {old} -> {new}: {who or 'NOT NOTICED'}", flush=True
            )
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([*mutant[:4], who, round(took, 1)]) + "\n")
    noticed = sum(bool(who) for _, who in results)
    print(f"noticed: {noticed} of {len(results)}, {noticed / max(1, len(results)):.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
