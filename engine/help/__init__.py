"""The texts of help() and Shift-Tab for the public names: the files in this folder, one for each module.

``nn.functional.md`` holds those of ``engine.nn.functional``, ``Tensor.md`` those of methods alone,
``engine-shape.md`` is part of ``engine.md``.  "## abs, absolute" begins the text of these names; its first paragraph
says in a sentence what they do.  What the names under a heading "# ..." have in common (shapes, dtypes, errors)
stands once, below that heading, and comes after that sentence.  A text ``= amp.autocast`` is that of the name in
another file.  Examples are run by tests, under PyTorch too.  A name is public if it has a text: ``dir()`` shows these
alone.
"""

from functools import cache
from inspect import getattr_static
from pathlib import Path

HERE = Path(__file__).parent


@cache
def texts(module):
    """{name: text} of ``"nn.functional"``, of ``"Tensor"``, or of ``"engine"``."""
    return {name: followed(text) for name, text in as_written(module).items()}


def followed(text):
    """A text, for "= amp.autocast" that of the other file, which may have such lines for this one."""
    if not text.startswith("= "):
        return text
    other, _, name = text[2:].rpartition(".")
    return followed(as_written(other)[name])


@cache
def as_written(module):
    """{name: text} as the files have it."""
    found = {}
    files = [*HERE.glob(f"{module}.md"), *HERE.glob(f"{module}-*.md")]
    for family in "\n".join(["", *(f.read_text("utf-8") for f in files)]).split("\n# "):
        common, *blocks = family.split("\n## ")
        common = common.partition("\n")[2].strip()
        for block in blocks:
            names, _, text = block.partition("\n")
            sentence, _, rest = text.strip().partition("\n\n")
            common_too = "" if sentence.startswith("= ") else common
            found |= dict.fromkeys(names.split(", "), "\n\n".join(filter(None, (sentence, common_too, rest))))
    return found


def public(module, namespace):
    """Hangs the texts on what a module holds (its ``globals()``); gives what dir() shows of it."""
    for name, text in texts(module).items():
        owner, _, own = name.rpartition(".")
        if not owner:
            describe(namespace.get(name), text)
        elif owner in namespace:
            describe(getattr_static(namespace[owner], own, None), text)  # a base class may have it
    return lambda: [name for name in texts(module) if "." not in name]


def describe(what, text):
    what = getattr(what, "__func__", what)  # of a static or class method
    if callable(what) or isinstance(what, property):  # what only has a value has no place for a text
        what.__doc__ = text


@cache
def of_methods():
    """{name: text} for the methods of Tensor: its own, its function's, or what writes into the tensor in its place."""
    found = texts("engine") | texts("Tensor")
    written = "`{}` in place: writes the result into this tensor, and returns it.\n\n{}".format
    return {n + "_": written(n, text) for n, text in found.items()} | found
