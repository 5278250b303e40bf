"""The site's server: files for this computer alone, of the types that browsers ask for."""

import io
import threading
import urllib.request

import pytest

from course.base.environment import Problem
from course.commands import site


def test_a_site_is_shown_to_this_computer_alone_and_nothing_is_told_of_it(tmp_path, capfd):
    for name in ("a.mjs", "a.wasm", "a.html"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    with site.server_of(tmp_path, 0) as server:
        host, port = server.server_address
        assert host == "127.0.0.1"
        with pytest.raises(Problem, match="site --port 0` takes a free one"):
            site.server_of(tmp_path, port)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        for name, kind in (("a.mjs", "text/javascript"), ("a.wasm", "application/wasm"), ("a.html", "text/html")):
            with ask(f"http://{host}:{port}/{name}", timeout=60) as answer:
                assert (answer.headers["Content-Type"], answer.read().decode()) == (kind, name)
        server.shutdown()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(Problem, match="cannot be had"):
        site.server_of(tmp_path, 70_000)


def test_a_browser_that_leaves_is_no_error():
    class Gone(io.BytesIO):
        def write(self, data):
            raise BrokenPipeError

    site.Quiet.copyfile(object.__new__(site.Quiet), io.BytesIO(b"a page"), Gone())
