"""The process in which a submission's answer runs, and the one form in which anything comes back from it.

It gets the steps of one check without the oracle, gives up all it can (`course.process.sandbox`), runs the cells by
IPython, as a kernel does, and sends what came of each step: numbers, texts, arrays, as JSON. What is right is decided
elsewhere, by `course.classroom.grading`.
"""

import base64
import builtins
import contextlib
import io
import json
import os
import pickle
import sys
import types
from collections.abc import Iterable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from traitlets import Type
from traitlets.config import Config

from course.base.notebooks import INSTALLED, ROOT
from course.judging.exercises import Trial
from course.judging.judge import Tried, tried
from course.judging.plain import Plain, Raised, Seen, raised
from course.process import attempts, sandbox, worker

BROKEN = "broken"


class Request(NamedTuple):
    """A request to run the cells one after the other, then the trial with what `expression` is afterwards."""

    trial: bytes  # pickled, by value
    function: bool  # the expression is to be one
    cells: list[tuple[str, str]]  # the name in tracebacks, the source
    answer: list[str]  # the names of the cells whose output is told: the answer's own
    expression: str
    seconds: float
    folder: str


class Reply(NamedTuple):
    """The reply to a request: what came of it, and of the answer's cell where that stopped with an error."""

    attempt: Tried | Raised  # Raised: there is no such name, or its cell did not come to its end
    cell: Raised | None
    printed: str


# There and back


def written(reply: Reply) -> bytes:
    """Write a reply as JSON."""
    attempt = reply.attempt
    tried = {"raised": attempt} if isinstance(attempt, Raised) else attempt._asdict() | {"seen": _seen(attempt.seen)}
    return json.dumps({"attempt": tried, "cell": reply.cell, "printed": reply.printed}).encode()


def read(data: bytes) -> Reply:
    """Read a reply from JSON, whoever wrote it: plain data alone. Raises ValueError where it is none."""
    try:
        reply = json.loads(data)
        attempt, cell = reply["attempt"], reply["cell"]
        return Reply(
            _raised(attempt["raised"]) if "raised" in attempt else _tried(attempt),
            None if cell is None else _raised(cell),
            attempts.beginning(_text(reply["printed"])),
        )
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"no reply: {error!r:.200}") from None


def _seen(seen: list[Seen] | None) -> list[Any] | None:
    if seen is None:
        return None
    held = [({k: _plain(v) for k, v in s.before.items()}, {k: _plain(v) for k, v in s.after.items()}) for s in seen]
    return [
        [{"raised": s.result} if isinstance(s.result, Raised) else _plain(s.result), *both, s.names, s.direct, s.gave]
        for s, both in zip(seen, held, strict=True)
    ]


def _plain(plain: Plain) -> list[Any]:
    value: Any = plain.value
    if isinstance(value, np.ndarray):
        known = value.dtype.kind in "biufc" and value.dtype.isbuiltin == 1
        value = [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()] if known else None
    elif plain.kind == "list":
        value = [_plain(part) for part in value]
    elif plain.kind in ("dict", "module"):
        value = {key: _plain(part) for key, part in value.items()}
    elif isinstance(value, complex):
        value = [value.real, value.imag]
    elif value is ...:
        value = None
    return [plain.kind, value, plain.text, plain.shape, plain.dtype, plain.device, plain.tracked]


def _tried(data: dict[str, Any]) -> Tried:
    seen = data["seen"]
    steps = None if seen is None else [_one(*s) for s in seen]
    return Tried(_text(data["kind"]), steps, _texts(data["hidden_names"]), _text(data["remembers"]))


def _one(result: Any, before: dict[str, Any], after: dict[str, Any], names: list[str], direct: bool, gave: str) -> Seen:
    found = _raised(result["raised"]) if isinstance(result, dict) else _value(*result)
    held = [{key: _value(*plain) for key, plain in each.items()} for each in (before, after)]
    return Seen("", found, held[0], held[1], _texts(names), direct is True, _text(gave))


def _value(kind: str, value: Any, text: str, shape: list[int], dtype: str, device: str, tracked: bool = False) -> Plain:
    if kind in ("tensor", "array"):
        layout, size, content = value
        array = np.frombuffer(base64.b64decode(content), np.dtype(_text(layout))).reshape([int(n) for n in size])
        if array.dtype.kind not in "biufc":
            raise ValueError("an array of something else")
        value = array
    elif kind == "list":
        value = [_value(*part) for part in value]
    elif kind in ("dict", "module"):
        value = {key: _value(*part) for key, part in value.items()}
    elif kind == "complex":
        value = complex(*value)
    elif kind == "ellipsis":
        value = ...
    elif kind == "set":
        value = _texts(value)
    elif kind in ("int", "float", "bool", "str", "NoneType") and type(value).__name__ != kind:
        raise ValueError(f"{type(value).__name__} for {kind}")
    elif not isinstance(value, int | float | str | None):
        raise ValueError("a value of no known kind")
    return Plain(
        _text(kind), value, _text(text), tuple(int(n) for n in shape), _text(dtype), _text(device), tracked is True
    )


def _raised(data: Any) -> Raised:
    name, message, at, gave = data
    return Raised(_text(name), _text(message), None if at is None else (_text(at[0]), int(at[1])), _text(gave))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value


def _texts(values: Iterable[Any]) -> list[str]:
    return [_text(value) for value in values]


# In the process itself


def own(folder: str) -> dict[str, str]:
    """Return what the environment says of places, for a process that has this folder alone."""
    names = ("HOME", "TMPDIR", "TEMP", "TMP", "IPYTHONDIR", "MPLCONFIGDIR", "USERPROFILE", "LOCALAPPDATA", "APPDATA")
    return dict.fromkeys(names, folder) | {"PIP_RETRIES": "0"}  # there is no network, and no answer waits for one


def serve() -> None:
    """Answer one request, and end."""
    reply, own_id = os.fdopen(os.dup(1), "wb"), os.getpid()
    os.dup2(2, 1)
    worker.send(reply, worker.READY)
    data = worker.received(sys.stdin.buffer)
    if not data:
        return
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # whoever waits for more would wait for ever
    request = Request(*pickle.loads(data))
    trial = pickle.loads(request.trial)
    os.environ.update(own(request.folder))
    sandbox.unseen(False)
    worker.limit(request.seconds)
    try:
        sandbox.enter(Path(request.folder), *_readable())
    except sandbox.NoSandbox as error:
        worker.send(reply, json.dumps({BROKEN: str(error)}).encode())
        os._exit(0)
    _forget_the_course()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            answer = _run(request, trial, printed)
            message = written(answer._replace(printed=attempts.beginning(printed.getvalue())))
        except BaseException as error:  # SystemExit and its like too
            message = written(Reply(raised(error), None, ""))
    if os.getpid() != own_id:  # the answer forked, and both have come here
        os._exit(0)
    worker.send(reply, message)
    worker.kill_all_of(own_id)
    os._exit(0)


def _readable() -> tuple[list[Path], list[Path]]:
    """Return where Python, its packages and the engine are; and folders in which imports may see names alone."""
    python = [sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), *sys.path]
    system = ["/usr", "/lib", "/lib64", "/bin", "/proc", "/sys"]
    settings = ["ld.so.cache", "localtime", "timezone", "passwd", "group", "nsswitch.conf", "hosts", "fonts"]
    named = [*filter(None, python), *system, *(f"/etc/{name}" for name in settings), str(ROOT / "engine")]
    places = dict.fromkeys(Path(name).resolve() for name in named)
    known = [place for place in places if place.exists() and (INSTALLED or not ROOT.is_relative_to(place))]
    # Where pip has installed the course, its checks and solutions lie among what is installed.
    packed = [Path(place).resolve() for place in sys.path if (Path(place) / "undertorch" / "files").is_dir()]
    return _around(known, [place / name for place in packed for name in ("course", "undertorch")])


def _around(places: list[Path], closed: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return what can be read around the closed parts of some places, and the folders above them, to be listed."""
    readable, listed, waiting = [], [], list(places)
    while waiting:
        place = waiting.pop()
        if place in closed:
            continue
        if any(part.is_relative_to(place) for part in closed):
            listed.append(place)
            waiting += [inside for inside in place.iterdir() if not inside.is_symlink()]  # a link is another way in
        else:
            readable.append(place)
    return readable, listed


def _forget_the_course() -> None:
    """`import course` finds what does nothing: cells may ask for a hint, and there is nobody to give one."""
    sys.path[:] = [place for place in sys.path if place and Path(place).resolve() != ROOT]
    for name in [name for name in sys.modules if name.partition(".")[0] == "course"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Nothing())


class _Nothing(MetaPathFinder, Loader):
    """Finds every module of the course, and in none of them anything."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.partition(".")[0] == "course" else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Silent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _Silent(types.ModuleType):
    """Has whatever is asked of it, and does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Silent(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self


class _Unseen(DisplayHook):
    """Keeps the last value of a cell (`_`, `Out`), and shows it to nobody."""

    def compute_format_data(self, result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def _nothing(self, *_: Any, **__: Any) -> None:
        pass

    write_output_prompt = write_format_data = finish_displayhook = _nothing


class _Nowhere(DisplayPublisher):
    def publish(self, *_: Any, **__: Any) -> None:
        pass

    def clear_output(self, *_: Any, **__: Any) -> None:
        pass


class _Shell(InteractiveShell):
    """IPython as in a kernel, but that it shows nothing: an error is kept."""

    displayhook_class = Type(_Unseen)
    display_pub_class = Type(_Nowhere)
    failed: BaseException | None = None
    # A kernel's `!ls` wants a terminal, which there is none of here.
    system = InteractiveShell.system_raw

    def enable_gui(self, gui: Any = None) -> None:
        pass

    def showtraceback(self, *_: Any, **__: Any) -> None:
        self.failed = sys.exc_info()[1]

    showsyntaxerror = showindentationerror = showtraceback


# What `ipykernel` adds, for the page before a learner alone.
_OF_KERNELS = ("autosave", "clear", "connect_info", "edit", "less", "man", "more", "qtconsole", "subshell")


def _shell(main: types.ModuleType) -> _Shell:
    settings = Config()
    settings.HistoryManager.enabled = False
    shell = _Shell.instance(config=settings, user_module=main)
    for name in _OF_KERNELS:
        shell.magics_manager.register_function(lambda line: None, "line", name)
    for name in ("open", "exit", "quit"):  # IPython's own, which differ from Python's in what they say
        main.__dict__.pop(name, None)
    vars(builtins).update(display=display, get_ipython=lambda: shell, input=_nobody)
    sys.path.insert(0, "")  # its own folder, for what `%%writefile` has left there
    return shell


def _nobody(*_: Any) -> str:
    raise EOFError("nobody answers `input` where this is graded: write the value into the cell.")


def _run(request: Request, trial: Trial, printed: io.StringIO) -> Reply:
    main = types.ModuleType("__main__")
    shell, names = _shell(main), main.__dict__
    failed = None
    for name, source in request.cells:
        before = printed.tell()
        error = _error(shell, name, source)
        if name in request.answer:
            failed = raised(error) if error else failed
        else:  # what others print is not told as this one's
            printed.seek(before)
            printed.truncate()
    try:
        attempt = eval(request.expression, names)
    except Exception as error:
        return Reply(raised(error), failed, "")
    return Reply(tried(trial, attempt, request.function), failed, "")


def _error(shell: _Shell, name: str, source: str) -> BaseException | None:
    """Run a cell; what it stopped with."""
    shell.failed = None
    shell.compile.get_code_name = lambda *_: name
    try:
        result = shell.run_cell(source, store_history=True)
    except BaseException as error:
        return error
    return result.error_before_exec or result.error_in_exec or shell.failed


if __name__ == "__main__":
    serve()
