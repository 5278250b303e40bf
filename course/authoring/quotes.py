"""Lines of the engine that a lesson quotes: the file must hold them word for word, and the link must lead to them.

In a lesson's text, a block of Python below a line that ends with a link to a file of the engine and a colon:

    Four lines do it, in [`engine/core/record.py`](../engine/core/record.py):

    ```python
    ...
    ```
"""

import re
import textwrap
from pathlib import Path

QUOTE = re.compile(r"\((\.\./engine/[\w/]+\.py)(?:#L\d+)?\)([^\n()]{0,40}:\n\n```python\n)(.*?)(?=\n```)", re.DOTALL)


def with_lines(text: str, root: Path) -> str:
    """Return the text, its links pointing to the lines quoted.  ValueError where the engine has no such lines."""

    def found(quote: re.Match[str]) -> str:
        return f"({quote[1]}#L{line_of(quote[3], root / quote[1].removeprefix('../'))}){quote[2]}{quote[3]}"

    return QUOTE.sub(found, text)


def line_of(quoted: str, path: Path) -> int:
    """Find these lines in a file, whatever their indentation there.  ValueError where they are missing."""
    wanted = quoted.split("\n")
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    for first in range(len(lines) - len(wanted) + 1):
        if textwrap.dedent("\n".join(lines[first : first + len(wanted)])).split("\n") == wanted:
            return first + 1
    raise ValueError(f"{path.name} has no such lines any more (quote them anew, and read the words around):\n{quoted}")
