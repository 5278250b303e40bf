"""`python -m course site`: the course as a site of plain files, made and shown; its options, and the server."""

import argparse
import contextlib
import functools
import http.server
import sys
import webbrowser
from pathlib import Path
from typing import Any

from course.base.environment import Problem, ensure
from course.base.notebooks import COMMAND, ROOT

TARGET = Path("build/site")


def main(argv: list[str]) -> int:
    """Make the site, and show it until Ctrl-C; 1 where Sphinx warns of something. Raises Problem."""
    options = parse(argv)
    if not (ROOT / "README.md").is_file():
        raise Problem("The site is made of the course's repository, which this copy is not: get it by `git clone`.")
    ensure("site", ["site", *argv])
    from course.authoring.site import build

    target = ROOT / TARGET
    warnings = list(build(target, lite=options.lite))
    for line in warnings:
        print(line, file=sys.stderr)
    if options.lite:
        from course.authoring.site import lite

        lite.make(target / lite.FOLDER, options.pyodide)
    print(f"The site is in {target}.")
    if options.build:
        return int(bool(warnings))
    serve(target, options.port, options.no_browser)
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} site", description="Make the course's site in build/site, and show it on this computer."
    )
    parser.add_argument(
        "--lite", action="store_true", help="with the lessons to be run in the reader's browser, in lite/ (JupyterLite)"
    )
    parser.add_argument(
        "--pyodide",
        type=Path,
        help="with --lite: Pyodide's distribution, packed or unpacked, to lie beside it; without it the reader's "
        "browser fetches Pyodide from its own address",
    )
    parser.add_argument("--build", action="store_true", help="make it, and stop")
    parser.add_argument(
        "--port", type=int, default=8000, help="where it is shown: localhost:PORT (8000; 0: any free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    return parser.parse_args(argv)


def serve(folder: Path, port: int, no_browser: bool) -> None:
    """Show a folder to this computer alone, until Ctrl-C. Raises Problem."""
    with server_of(folder, port) as server:
        address = f"http://localhost:{server.server_address[1]}/"
        print(f"It is shown at {address}; Ctrl-C ends it.", flush=True)
        if not no_browser:
            webbrowser.open(address)
        server.serve_forever()


def server_of(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Serve a folder's files to this computer alone. Raises Problem."""
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Quiet, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise Problem(
            f"Port {port} cannot be had here ({error}). `{COMMAND} site --port 0` takes a free one."
        ) from None


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Tells of no request, nor of a browser that leaves before a page has come."""

    # What the system says of these is wrong on some, and a browser takes no program or machine code of another type.
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)

    def log_message(self, format: str, *args: object) -> None:
        pass
