"""Every stored notebook: what it may hold, that a run compares it strictly, and that PyTorch prints the same."""

import os
import re
import subprocess
import symtable
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
import warm_kernels
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.base.notebooks import EXECUTED, ROOT, TARGETS, VALIDATE_ARGS, kernel_environment, validate_command
from course.kernel.outputs import PICTURE
from course.kernel.shell import ANSI

NOTEBOOKS = sorted(path for target in TARGETS for path in (ROOT / target.folder).glob("*.ipynb"))
COMPARED = [path for path in NOTEBOOKS if path.parent.name in EXECUTED]
LESSONS = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]

SANITIZE = ROOT / "tests/nbval_sanitize.cfg"
EXEMPT = "nbval-ignore-output"
EXEMPT_SHARE = 0.05  # of all code cells; timings are the one good reason so far

COMMENT_MARKER = re.compile(r"(?m)^\s*#\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$")
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u26ff\u2705\u270a-\u270d\u2728\u274c\u274e\u2753-\u2757\u2764\ufe0f]")
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:home|Users|root|tmp|var|private|opt|mnt|usr)/|\b[A-Z]:\\\w|site-packages")


@cache
def notebook(path: Path):
    """What is stored, read once: whoever changes it takes a copy."""
    return nbformat.read(path, as_version=4)


def identify(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# --- What a notebook may hold: one function a rule, each gives the reason why a cell breaks it, or None.


def exemption_without_a_reason(cell):
    tags = cell.metadata.get("tags", [])
    if marker := COMMENT_MARKER.search(cell.source):
        return f"the comment {marker[1]} hides from the audit: use the tag {EXEMPT} and the metadata exempt"
    if "nbval-skip" in tags:
        return "nbval-skip is not used here: the cell would not run"
    reason = cell.metadata.get("exempt", "")
    if EXEMPT in tags and len(reason.split()) < 4:
        return f"{EXEMPT} without a reason: say it in a sentence, in the metadata exempt"
    if reason and EXEMPT not in tags:
        return f"a reason to be exempt without the tag {EXEMPT}"
    return None


def error_without_its_tag(cell):
    raised = [output.ename for output in cell.get("outputs", []) if output.output_type == "error"]
    return f"{raised[0]} without the tag raises-exception" if raised and not _tagged(cell, "raises-exception") else None


def picture_without_words(cell):
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        page, words = data.get("text/html", ""), data.get("text/plain", "")
        if any(mime.startswith("image/") for mime in data) and "<img" not in page:
            return "a picture that no screen reader can read: course.pictures gives it words"
        if "<img" in page and (len(words.split()) < 3 or re.fullmatch(r"(?s)<.*>", words.strip())):
            return f"a picture whose text/plain, {words[:40]!r}, does not describe it"
        if "<svg" in page:
            return "an <svg> in HTML, which JupyterLab leaves out until the cell is run: use an <img>"
        if wrong := _img_without_alt(page):
            return wrong
    if cell.cell_type == "markdown" and re.search(r"!\[\s*\]", cell.source):
        return "a Markdown picture without a text between the brackets"
    return _img_without_alt(cell.source) if cell.cell_type == "markdown" else None


def _img_without_alt(html):
    tags = re.findall(r"(?is)<img\b[^>]*>", html)
    named = [re.search(r"""(?i)\balt\s*=\s*["']\s*[^"'\s]""", tag) for tag in tags]
    return None if all(named) else "an <img> without alt"


def path_of_a_machine(cell):
    text = _shown(cell)
    own = [place for place in (str(ROOT), str(Path.home()), sys.prefix) if len(place) > 1 and place in text]
    found = MACHINE_PATH.search(text)
    return f"an output shows the path {own[0] if own else found[0]!r}" if own or found else None


def emoji(cell):
    found = EMOJI.search(cell.source + _shown(cell))
    return f"the emoji {found[0]!r}" if found else None


def silenced_by_a_semicolon(cell):
    last = cell.source.rstrip().rpartition("\n")[2] if cell.cell_type == "code" else ""
    return "ends in a semicolon, which nbval's kernel does not honour: use `_ =`" if last.endswith(";") else None


def _tagged(cell, tag):
    return tag in cell.metadata.get("tags", [])


def _shown(cell):
    """Every text in a cell's outputs."""
    parts = []
    for output in cell.get("outputs", []):
        parts += [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
        parts += [str(data) for mime, data in output.get("data", {}).items() if mime != "image/png"]
    return PICTURE.sub("", ANSI.sub("", "\n".join(parts)))


RULES = (
    exemption_without_a_reason,
    error_without_its_tag,
    picture_without_words,
    path_of_a_machine,
    emoji,
    silenced_by_a_semicolon,
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=identify)
def test_no_cell_breaks_a_rule(path):
    cells = enumerate(notebook(path).cells, start=1)
    assert [f"cell {number}: {why}" for number, cell in cells for rule in RULES if (why := rule(cell))] == []


def test_few_cells_are_exempt_from_comparison():
    cells = [cell for path in COMPARED for cell in notebook(path).cells if cell.cell_type == "code"]
    exempt = [cell.source for cell in cells if _tagged(cell, EXEMPT)]
    assert len(exempt) <= EXEMPT_SHARE * len(cells), "\n\n".join(exempt)


@pytest.mark.parametrize("path", COMPARED, ids=identify)
def test_the_cells_were_run_once_in_order(path):
    counts = [cell.execution_count for cell in notebook(path).cells if cell.cell_type == "code" and cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))


def code_of(path: Path) -> str:
    return "\n".join(cell.source for cell in notebook(path).cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in COMPARED if "num_workers" in code_of(path)], ids=identify)
def test_a_notebook_with_workers_runs_where_they_are_not_forked(path):
    from course.authoring.build import execute

    nb = nbformat.from_dict(notebook(path))
    nb.cells.insert(0, code(source="import multiprocessing\nmultiprocessing.set_start_method('spawn')"))
    execute(nb, path.parent)


def picture(words, mime="image/png"):
    return new_output("display_data", {mime: "iVBORw0KGgo=", "text/plain": words})


def html(text, words="the same in words"):
    return new_output("display_data", {"text/html": text, "text/plain": words})


def code(*outputs, source="a", **metadata):
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


@pytest.mark.parametrize(
    ("rule", "cell"),
    [
        (exemption_without_a_reason, code(tags=[EXEMPT])),
        (exemption_without_a_reason, code(tags=[EXEMPT], exempt="timing")),
        (exemption_without_a_reason, code(exempt="how long a step takes differs")),
        (exemption_without_a_reason, code(tags=["nbval-skip"])),
        (exemption_without_a_reason, code(source="a\n# NBVAL_IGNORE_OUTPUT")),
        (error_without_its_tag, code(new_output("error", ename="ValueError", evalue="", traceback=[]))),
        (picture_without_words, code(picture("a curve that falls"))),
        (picture_without_words, code(picture("a graph of five nodes", "image/svg+xml"))),
        (picture_without_words, code(html('<img alt="a curve that falls">', "<IPython.core.display.HTML object>"))),
        (picture_without_words, code(html('<p><img src="a.png" alt=""></p>'))),
        (picture_without_words, code(html('<svg role="img"><title>a graph</title></svg>'))),
        (picture_without_words, new_markdown_cell("See ![](a.png)")),
        (picture_without_words, new_markdown_cell('See <img src="a.png">')),
        (path_of_a_machine, code(new_output("stream", text="saved to /home/ada/a.pt"))),
        (path_of_a_machine, code(new_output("stream", text="saved to C:\\Users\\ada"))),
        (path_of_a_machine, code(new_output("execute_result", {"text/plain": f"'{ROOT}'"}))),
        (
            path_of_a_machine,
            code(new_output("error", ename="E", evalue="", traceback=["\x1b[3mFile /tmp/\x1b[0ma.py"])),
        ),
        (emoji, new_markdown_cell("Well done \N{PARTY POPPER}")),
        (emoji, code(new_output("stream", text="\N{WHITE HEAVY CHECK MARK}"))),
        (silenced_by_a_semicolon, code(source="plt.plot(x);\n")),
    ],
)
def test_each_rule_finds_what_it_forbids(rule, cell):
    assert rule(cell)


@pytest.mark.parametrize(
    "cell",
    [
        new_markdown_cell("A slope \u2192 a step; a ![hill](a.png), and `/` and `https://a.org/home/x`."),
        code(tags=[EXEMPT], exempt="how long a step takes differs from run to run"),
        code(new_output("error", ename="ValueError", evalue="", traceback=["Cell In[1]"]), tags=["raises-exception"]),
        code(html('<p><img src="a" alt="a curve"></p>', "a curve that falls from 3 to 0")),
        code(html("<table></table>", "<a.Table object>")),
        code(source="a = 1; b = 2"),
    ],
)
def test_the_rules_leave_good_cells_alone(cell):
    assert [rule.__name__ for rule in RULES if rule(cell)] == []


# --- Lessons lead to each other

LESSON_LINK = re.compile(r"\]\((?:notebooks/)?(\d\d_\w+\.ipynb)\)")


def links(text: str) -> list[str]:
    """The lessons that a text links to, in order."""
    return LESSON_LINK.findall(text)


def words_of(path: Path) -> str:
    return "\n".join(cell.source for cell in notebook(path).cells if cell.cell_type == "markdown")


def test_the_readme_and_the_first_lesson_list_every_lesson_in_order():
    names = [path.name for path in LESSONS]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert links(readme.partition("## The lessons")[2].partition("\n## ")[0]) == names
    assert links(words_of(LESSONS[0]).partition("## The lessons")[2].partition("\n## ")[0]) == names


@pytest.mark.parametrize("path", LESSONS, ids=identify)
def test_a_lesson_links_to_the_next_and_only_to_lessons_that_exist(path):
    names, words = [path.name for path in LESSONS], words_of(path)
    assert set(links(words)) <= set(names)
    following = names[names.index(path.name) + 1 :]
    assert links(words.partition("**Next:**")[2])[:1] == following[:1]


@pytest.mark.parametrize("path", LESSONS, ids=identify)
def test_a_figure_computes_with_names_that_no_later_cell_changes(path):
    """A slider calls the functions of its figure when all cells have run."""
    sources = [cell.source for cell in notebook(path).cells if cell.cell_type == "code"]
    python = [source for source in sources if not re.search(r"(?m)^[%!]", source)]
    tables = [symtable.symtable(source, "cell", "exec") for source in python]
    for number, source in enumerate(python):
        if "from course.figures" in source:
            functions = [t for t in tables[number].get_children() if t.get_name() == "lambda"]
            used = {name for t in functions for name in t.get_globals()}
            later = {s.get_name() for t in tables[number + 1 :] for s in t.get_symbols() if s.is_assigned()}
            assert used & later == set()


# --- The outputs


def run_validate(root):
    command = [sys.executable, "-m", "pytest", "-c", root / "empty.ini", "--color=no", *validate_command(root)]
    environment = kernel_environment(root)
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(ROOT)])
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


IMAGE = '<img alt="a" width="{}" style="max-width: 100%" src="data:image/png;base64,{}">'
DISPLAY = f"""display({{"text/html": '{IMAGE.format(20, "AAA=")}', "text/plain": "words"}}, raw=True)"""


def test_a_run_evens_out_addresses_pictures_and_the_file_of_a_warning_and_wants_all_else_as_stored(tmp_path):
    pytest.importorskip("nbval")
    warning = new_output("stream", name="stderr", text='<cell>:2: UserWarning: mind\n  warnings.warn("mind")\n')
    error, raises = new_output("error", ename="ValueError", evalue="this", traceback=[]), ["raises-exception"]
    cells = [
        code(new_output("stream", text="<object object at 0x7f0000000010>\n"), source="print(object())"),
        code(warning, source='import warnings\nwarnings.warn("mind")'),
        code(html(IMAGE.format(21, "iVB+"), "words"), source=DISPLAY),
        code(html(IMAGE.format(21, "iVB+").replace('alt="a"', 'alt="b"'), "words"), source=DISPLAY),
        code(new_output("stream", text="0.30\n"), source="print(0.31)"),
        code(new_output("stream", text="a\n"), source="print('a')\nprint('b')"),
        code(source="print('unexpected')"),
        code(error, source="raise ValueError('this')"),
        code(error, source="raise ValueError('this')", tags=raises),
        code(error, source="raise ValueError('that')", tags=raises),
        code(error, source="raise TypeError('this')", tags=raises),
        code(error, source="a = 1", tags=raises),
    ]
    for count, cell in enumerate(cells, start=1):
        cell.execution_count = count
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/nbval_sanitize.cfg").write_bytes(SANITIZE.read_bytes())
    (tmp_path / "empty.ini").write_text("[pytest]\n")
    (tmp_path / "notebooks").mkdir()
    nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks/00_a.ipynb")
    done = run_validate(tmp_path)
    failed = re.findall(r"^FAILED notebooks/00_a.ipynb::cell (\d+)", done.stdout, flags=re.MULTILINE)
    assert failed == ["4", "5", "6", "7", "8", "10", "11", "12"], done.stdout + done.stderr


def test_the_command_asks_for_every_notebook_that_stores_outputs():
    (options,) = [option for option in VALIDATE_ARGS if option.startswith("--undertorch-options=")]
    assert "--undertorch" in VALIDATE_ARGS and f"--sanitize-with {identify(SANITIZE)}" in options
    assert options.endswith(" --brief") and options.removesuffix(" --brief") in validate_command(brief=False)
    assert set(validate_command()) - set(VALIDATE_ARGS) == {path.parent.name for path in COMPARED}


# --- The same under `import torch as engine`

IMPORTS = (
    (re.compile(r"(?m)^(\s*)import engine$"), r"\1import torch as engine"),
    (re.compile(r"(?m)^(\s*)(import|from) engine(?=[. ])"), r"\1\2 torch"),
)


def under_torch(source: str) -> str:
    """A cell's source with PyTorch in the engine's place."""
    for pattern, replacement in IMPORTS:
        source = pattern.sub(replacement, source)
    return source


def printed(cell) -> str:
    """What a cell printed, returned and raised, addresses evened out as nbval does."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue.partition(chr(10))[0]}")
        elif "text/plain" in output.get("data", {}):
            parts.append(output.data["text/plain"])
    return re.sub(r"\b0x[0-9a-fA-F]{6,16}\b", "ADDRESS", "\n".join(parts))


def torch_differences(nb, folder: Path, root: Path = ROOT) -> list[str]:
    """The cells that print something else once PyTorch stands in the engine's place, engine-only ones left out."""
    from course.authoring.build import execute

    again = nbformat.from_dict(nb)
    for cell in again.cells:
        if cell.cell_type == "code":
            cell.outputs = []
            cell.source = "" if _tagged(cell, "engine-only") else under_torch(cell.source)
    execute(again, folder, root, allow_errors=True)
    found = []
    for number, (stored, new) in enumerate(zip(nb.cells, again.cells, strict=True), start=1):
        if stored.cell_type != "code" or _tagged(stored, "engine-only"):
            continue
        if _tagged(stored, EXEMPT):
            failed = [output for output in new.outputs if output.output_type == "error"]
            ours, theirs = "", "".join(f"{output.ename}: {output.evalue}" for output in failed)
        else:
            ours, theirs = printed(stored), printed(new)
        if ours != theirs:
            found.append(f"cell {number}\n--- stored\n{ours}\n--- under PyTorch\n{theirs}\n")
    return found


def compared_and_exempt(nb) -> tuple[int, int]:
    """How many cells of code must print the same under PyTorch, and how many need not."""
    exempt = [_tagged(cell, "engine-only") or _tagged(cell, EXEMPT) for cell in nb.cells if cell.cell_type == "code"]
    return exempt.count(False), exempt.count(True)


@pytest.mark.parametrize(
    "path",
    # These two train for a minute.
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.stem in ("14_training_loop", "22_capstone")))
        for path in LESSONS
    ],
    ids=identify,
)
def test_a_lesson_prints_the_same_under_pytorch(path, record_property, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(warm_kernels, "with_pytorch", True)
    nb = notebook(path)
    assert "\n".join(torch_differences(nb, path.parent)) == ""
    record_property("compared with PyTorch", compared_and_exempt(nb))  # conftest.py adds them up


def test_cells_of_the_engine_alone_and_those_that_differ_from_run_to_run_are_exempt_from_comparison_with_pytorch():
    cells = [code(), code(tags=["engine-only"]), code(tags=[EXEMPT]), code(tags=["engine-only", EXEMPT]), code()]
    assert compared_and_exempt(new_notebook(cells=[new_markdown_cell("a"), *cells])) == (2, 3)


@pytest.mark.parametrize("path", LESSONS, ids=identify)
def test_a_lesson_imports_the_engine_outside_the_cells_that_pytorch_skips(path):
    cells = [cell for cell in notebook(path).cells if cell.cell_type == "code" and not _tagged(cell, "engine-only")]
    assert sum(under_torch(cell.source) != cell.source for cell in cells) >= 1
    helpers = [cell.source for cell in cells if re.search(r"(?m)^\s*(from|import) (course\b|engine\.viz)", cell.source)]
    assert helpers == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import engine", "import torch as engine"),
        ("a = 1\nimport engine\nb", "a = 1\nimport torch as engine\nb"),
        ("import engine.nn.functional as F", "import torch.nn.functional as F"),
        ("from engine import nn", "from torch import nn"),
        ("from engine.utils.data import DataLoader", "from torch.utils.data import DataLoader"),
        ("engine.tensor(1)  # import engine", "engine.tensor(1)  # import engine"),
        ("import engineering", "import engineering"),
    ],
)
def test_pytorch_takes_the_engines_place_in_imports(source, expected):
    assert under_torch(source) == expected


def test_the_comparison_with_pytorch_names_the_cells_that_differ(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(warm_kernels, "with_pytorch", True)
    stdout = "tensor([0.5000, 1.0000], grad_fn=<MulBackward0>)\n"
    source = "w = engine.tensor([1.0, 2.0], requires_grad=True)\nprint(w * 0.5)"
    node = new_output("execute_result", {"text/plain": "<MulBackward0 at 0x7f0000000010>"})
    error = new_output("error", ename="RuntimeError", evalue="grad can be implicitly created only for scalar outputs")
    error.traceback = []
    nb = new_notebook(
        cells=[
            new_markdown_cell("# Lesson"),
            code(source="import engine"),
            code(new_output("stream", text=stdout), source=source),
            code(new_output("stream", text="tensor([0.5, 1.0])\n"), source="print(w.detach() * 0.5)"),
            code(node, source="(w * 0.5).grad_fn"),
            code(error, source="w.backward()", tags=["raises-exception"]),
            code(new_output("stream", text="a graph\n"), source="import no_such_helper", tags=["engine-only"]),
            code(new_output("stream", text="1 ms"), source="print('2 ms')", tags=[EXEMPT]),
            code(source="engine.no_such_name", tags=[EXEMPT]),
            code(source="raise ValueError"),
        ]
    )
    before = nbformat.from_dict(nb)
    found = torch_differences(nb, tmp_path, tmp_path)
    assert [line.partition("\n")[0] for line in found] == ["cell 4", "cell 9", "cell 10"], "\n".join(found)
    assert "--- under PyTorch\ntensor([0.5000, 1.0000])" in found[0]
    assert nb == before
