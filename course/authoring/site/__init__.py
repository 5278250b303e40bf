"""The course as a site of plain files, made from what is in the repository; nothing in it needs a network.

``pages`` says which documents are pages, ``links`` where a link leads there, ``lessons`` what becomes of a notebook's
cells; ``conf`` tells Sphinx how to make them, ``extension`` adds to it. Their sources lie in ``build/``, never edited.
``lite`` makes the lessons that run in the reader's browser.
"""

import io
from collections.abc import Iterator
from pathlib import Path

from course.authoring.site.pages import owner, write
from course.base.environment import Problem, workers
from course.base.notebooks import ROOT

FOLDER = ROOT / "build"


def build(target: Path, sources: Path = FOLDER / "site-sources", lite: bool = False) -> Iterator[str]:
    """Make the site in a folder, and return Sphinx's warnings, of which there should be none. Raises Problem."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.docutils import docutils_namespace

    beside = sources.with_name(f"{sources.name}-beside")
    linked = write(sources, beside)
    told = io.StringIO()
    with docutils_namespace():
        try:
            app = Sphinx(
                sources,
                Path(__file__).parent,
                target,
                sources.with_name(f"{sources.name}-read"),
                "html",
                {
                    "site_linked": sorted(linked),
                    "site_lite": lite,
                    "site_owner": owner(),
                    "html_extra_path": [str(beside.resolve())],
                },
                status=None,
                warning=told,
                parallel=workers(),
            )
            app.build()
        except SphinxError as error:
            raise Problem(f"The site was not made: {error}") from error
    yield from filter(None, told.getvalue().splitlines())
