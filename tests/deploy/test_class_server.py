"""A class on one server, from the roster to the grades, by real HTTP; and what its people cannot do."""

import csv
import io
import re
import shutil
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from benchmarks import class_server
from benchmarks.class_server import Person, as_user
from course.judging import exercises

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(bool(class_server.why_not()), reason=class_server.why_not() or "."),
]
NAME = "05_graph"
NOTEBOOK = f"{NAME}/{NAME}.ipynb"
LEARNERS = [("uttanna", "Anna", "Müller"), ("uttbo", "Bo", "O'Neil"), ("uttchen", "Chen", "Li"),
            ("uttdora", "Dora", "Park"), ("uttevil", "Eve", "Ill")]  # fmt: skip
TEACHERS = [("uttteach", "Tea", "Cher")]
SOLVED = {key: exercises.cell(key, "solutions") for key in ("05.2", "05.3")}
ANNA, BO, CHEN, DORA, EVIL = (id for id, *_ in LEARNERS)


@pytest.fixture(scope="module")
def server():
    made = class_server.Server(LEARNERS, TEACHERS)
    try:
        made.start()
        yield made
    finally:
        made.stop()
    assert not made.folder.exists() and "uttanna" not in Path("/etc/passwd").read_text(encoding="utf-8")
    assert "undertorch" not in Path("/etc/group").read_text(encoding="utf-8") and not Path("/home/uttanna").exists()


@pytest.fixture(scope="module")
def people(server):
    """Everybody, logged in, each with a server of their own."""
    return {id: Person(server, id).open() for id, *_ in LEARNERS}


@pytest.fixture(scope="module")
def teacher(server):
    return Person(server, "uttteach").open("/services/class/")


@pytest.fixture(scope="module")
def released(people, teacher):
    """The assignment, in everybody's folder."""
    teacher.terminal('undertorch class release 05 --due 2099-01-31 --late "10% a day"')
    for person in people.values():
        assert person.assignment("fetch", NAME)["success"]
    return people


@pytest.fixture(scope="module")
def graded(server, released, teacher):
    """The whole round: work, submit, once more, collect, autograde, feedback."""
    attack(server)
    spy = SPY.replace("PORT", str(server.port))
    for id, answers in (
        (ANNA, SOLVED),
        (BO, {"05.2": SOLVED["05.2"]}),
        (CHEN, {}),
        (DORA, {"05.3": SOLVED["05.3"]}),
        (EVIL, {"05.2": spy, "05.3": SOLVED["05.3"]}),
    ):
        released[id].work(NOTEBOOK, answers)
        assert released[id].assignment("submit", NAME)["success"]
    speak(released[EVIL])
    released[DORA].work(NOTEBOOK, SOLVED)
    assert released[DORA].assignment("submit", NAME)["success"]
    said = teacher.terminal("undertorch class collect 05")
    return released, said + teacher.terminal("undertorch class grade 05", seconds=1500)


# What somebody hands in who is curious: as the answer of an exercise it runs in grading, and says what it reaches.
SPY = """
def count_nodes(node):
    import os, pathlib, socket
    found = [os.getuid()]
    for path in ("/opt", "/home", "/etc/shadow"):
        try:
            found.append(os.listdir(path) if os.path.isdir(path) else open(path).read()[:9])
        except OSError as error:
            found.append(type(error).__name__)
    for address in (("127.0.0.1", PORT), ("192.0.2.1", 80)):
        try:
            socket.create_connection(address, 1)
            found.append("connected")
        except OSError as error:
            found.append(type(error).__name__)
    print("REACHED", *found)
    return 0
"""
# What EVIL puts into the exchange by hand: under others' names, with links to the grader's files, and a later time.
ATTACK = """
import pathlib, sys
folder, name, *others = sys.argv[1:]
later = "2099-01-01 00:00:00.000000 UTC"
inbound = pathlib.Path(folder, "exchange/undertorch/inbound")
for number, odd in enumerate(["", "x", "no time", "2099-99-99 00:00:00 UTC", "\\n\\x1b[2J", "y" * 200]):
    (inbound / f"{others[0]}+{name}+{odd}+{number}").mkdir(mode=0o000 if number % 2 else 0o755)
(inbound / f"file+{name}+{later}+x").touch(0o000)
(inbound / f"link+{name}+{later}+x").symlink_to(pathlib.Path(folder, "grader/class"))
for other in others:
    forged = inbound / f"{other}+{name}+{later}+zzzzzzzz"
    forged.mkdir()
    forged.chmod(0o755)
    (forged / f"{name}.ipynb").symlink_to(pathlib.Path(folder, "grader/class/source", name, f"{name}.ipynb"))
    (forged / "timestamp.txt").write_text(later)
"""


def attack(server):
    said, complained = as_user(EVIL, "/usr/bin/python3", "-c", ATTACK, str(server.folder), NAME, ANNA, BO)
    assert not complained


def speak(person):
    """Somebody's words, with what would act on the page of who marks them."""
    notebook = person.file(NOTEBOOK)
    words = next(
        cell for cell in notebook["cells"] if cell["cell_type"] == "markdown" and "nbgrader" in cell["metadata"]
    )
    words["source"] = f"MARKED <script>{WORDS}</script> <img src=x onerror={WORDS}> <b onclick={WORDS}>bold</b>"
    person.write(NOTEBOOK, notebook)
    assert person.assignment("submit", NAME)["success"]


WORDS = "typed_into_the_terminal()"


def table(text, first):
    """The CSV that a terminal shows, from its first heading on."""
    return list(csv.DictReader(io.StringIO(text[text.rindex(f"\n{first}") + 1 :])))


def test_accounts_come_from_the_roster_and_once(server):
    before = Path("/etc/shadow").read_bytes()
    said = server.accounts(server.folder / "state" / "roster.csv")
    assert "0 new accounts" in said and before == Path("/etc/shadow").read_bytes()
    slips = list((server.folder / "state").glob("slips-*.html"))
    assert len(slips) == 2 and all(path.stat().st_mode & 0o777 == 0o600 for path in slips)
    assert Path("/home", ANNA).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("id", ["root", "Anna", "a:b", "x" * 40])
def test_an_account_that_is_not_the_classs_is_not_touched(server, tmp_path, id):
    roster = tmp_path / "list.csv"
    roster.write_text(f"id,first_name\n{id},X\n", encoding="utf-8")
    before = Path("/etc/passwd").read_bytes()
    with pytest.raises(AssertionError, match=r"another id|account's name|somebody's id"):
        server.accounts(roster)
    assert Path("/etc/passwd").read_bytes() == before


def test_a_wrong_password_and_a_stranger_do_not_come_in(server):
    assert Person(server, ANNA, "wrong").login().status_code == 403
    assert Person(server, "root", "root").login().status_code == 403
    assert Person(server, "undertorch-grader", "x").login().status_code == 403


def test_a_learner_finds_the_lessons_and_works_in_them(released):
    anna = released[ANNA]
    assert anna.file("my_lessons/05_graph.ipynb")["cells"]
    said = anna.run("my_lessons/x.ipynb", ["import engine, os", "print(os.getcwd(), engine.tensor([2.0]) * 3)",
                                           "print(os.environ['OMP_NUM_THREADS'])"])  # fmt: skip
    assert "tensor([6.])" in said and "\n1\n" in said


@pytest.mark.browser
def test_a_learner_logs_in_runs_a_cell_and_finds_the_assignments_in_a_browser(server):
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no browser: Chromium is not on the PATH")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=120_000)
        page = browser.new_page()
        page.set_default_timeout(240_000)
        page.goto(server.address)
        page.locator("#username_input").fill(DORA)
        page.locator("#password_input").fill(server.passwords[DORA])
        with page.expect_websocket(lambda line: "/channels" in line.url):  # before it, the page has an empty notebook
            page.locator("#login_submit").click()
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.locator(".jp-Notebook.jp-mod-editMode").first.wait_for()
        page.keyboard.press("Shift+Enter")
        page.locator(".jp-CodeCell .jp-InputPrompt", has_text="[1]:").first.wait_for()
        page.locator(".lm-TabBar-tabLabel", has_text="00_welcome.ipynb").first.wait_for()
        assert not page.locator(".jp-toastContainer").count()
        page.get_by_role("menuitem", name="Nbgrader").click()
        page.get_by_role("menuitem", name="Assignment List").click()
        page.get_by_text("Released assignments").first.wait_for()
        browser.close()


def test_a_learner_chooses_another_password_in_a_terminal(server, people):
    chen, new = people[CHEN], "a-word-of-my-own-7"
    chen.terminal(f"(echo {chen.password}; sleep 1; echo {new}; sleep 1; echo {new}) | passwd")
    assert Person(server, CHEN).login().status_code == 403
    assert Person(server, CHEN, new).login().ok


def test_the_round_ends_with_everybodys_points(graded, teacher):
    _, said = graded
    assert "5 graded now" in said
    moodle = table(teacher.terminal("undertorch class export 05 --moodle; cat exports/*moodle.csv"), "First name")
    points = {row["ID number"]: row["Assignment: 05_graph (Real)"] for row in moodle if row["ID number"]}
    both, one, third = float(points[ANNA]), float(points[BO]), float(points[EVIL])
    assert both == float(points[DORA]) == one + third and one > 0 and third > 0 and float(points[CHEN]) == 0
    canvas = table(teacher.terminal("undertorch class export 05 --canvas; cat exports/*canvas.csv"), "Student,ID")
    assert {row["SIS Login ID"]: row[NAME] for row in canvas}[ANNA] == points[ANNA]


def test_feedback_reaches_its_learner_and_shows_no_hidden_test(graded):
    people, _ = graded
    assert people[ANNA].assignment("fetch_feedback", NAME)["success"]
    (page,) = Path("/home", ANNA, "undertorch", NAME, "feedback").glob("*/*.html")
    text = page.read_text(encoding="utf-8")
    assert "correct" in text and "BEGIN HIDDEN" not in text and "HIDDEN TESTS" not in text


def test_formgrader_opens_for_teachers_alone(teacher, people):
    page = teacher.get("/services/class/formgrader/gradebook")
    assert page.ok and "formgrader" in page.url
    for path in ("/services/class/lab", "/services/class/formgrader/api/assignments", "/services/class/api/contents"):
        assert people[EVIL].get(path).status_code == 403
    grades = teacher.get("/services/class/formgrader/api/assignments").json()
    assert isinstance(grades, list)


def test_what_a_learner_has_written_acts_on_no_page_of_the_teachers(server, graded, teacher):
    with sqlite3.connect(server.folder / "grader" / "class" / "gradebook.db") as book:
        query = ("select submitted_notebook.id from submitted_notebook join submitted_assignment on "
                 "submitted_assignment.id = submitted_notebook.assignment_id where student_id = ?")  # fmt: skip
        ((number,),) = book.execute(query, [EVIL]).fetchall()
    page = teacher.get(f"/services/class/formgrader/submissions/{number}/").text
    feedback = next(server.folder.glob(f"grader/class/feedback/{EVIL}/{NAME}/*.html")).read_text(encoding="utf-8")
    for text in (page, feedback):
        assert f"&lt;script&gt;{WORDS}" in text and "<b>bold</b>" in text
        assert f"<script>{WORDS}" not in text and not re.search(rf"<[^>]* on\w+=[^>]*{re.escape(WORDS)}", text)


# Safe: what the fifth of them tries, as that system user.


@pytest.mark.parametrize(
    "path",
    [
        f"/home/{ANNA}/undertorch/{NOTEBOOK}",
        f"/home/{ANNA}/.local/share/jupyter/nbgrader_cache",
        "/home/uttteach",
        "FOLDER/exchange/undertorch/inbound",
        "FOLDER/exchange/undertorch/feedback",
        "FOLDER/grader/class/source/05_graph/05_graph.ipynb",
        "FOLDER/grader/class/bank/05_graph.json",
        "FOLDER/grader/class/gradebook.db",
        f"FOLDER/grader/class/autograded/{ANNA}/{NOTEBOOK}",
        "FOLDER/state/jupyterhub.sqlite",
        "FOLDER/state/cookie_secret",
        "FOLDER/state/proxy.env",
        "FOLDER/state/teacher.env",
        "FOLDER/state/roster.csv",
    ],
)
def test_a_learner_cannot_read_what_is_not_theirs(server, graded, path):
    path = path.replace("FOLDER", str(server.folder))
    assert Path(path).exists()
    said, complained = as_user(EVIL, "sh", "-c", f"cat '{path}' || ls '{path}'")
    assert not said and complained.count("Permission denied") == 2


@pytest.mark.parametrize(
    "path",
    [
        "FOLDER/course/engine/__init__.py",
        "FOLDER/course/solutions/05_graph.ipynb",
        "FOLDER/exchange/undertorch/outbound/05_graph/05_graph.ipynb",
        "FOLDER/etc/jupyterhub_config.py",
        "FOLDER/etc/learner/jupyter_server_config.py",
        "FOLDER/bin/undertorch",
        f"FOLDER/grader/class/submitted/{EVIL}/{NOTEBOOK}",
    ],
)
def test_a_learner_cannot_alter_what_is_not_theirs(server, graded, path):
    path = Path(path.replace("FOLDER", str(server.folder)))
    before = path.read_bytes()
    _, complained = as_user(EVIL, "sh", "-c", f"echo >> '{path}'; rm -f '{path}'; mv '{path.parent}' /tmp/taken")
    assert path.read_bytes() == before and len(complained.splitlines()) == 3


def test_what_another_has_handed_in_cannot_be_taken_away(server, graded):
    inbound = server.folder / "exchange" / "undertorch" / "inbound"
    (theirs,) = (folder for folder in inbound.glob(f"{BO}+*") if folder.owner() == BO)
    _, complained = as_user(EVIL, "sh", "-c", f"rm -rf '{theirs}'; mv '{theirs}' '{inbound}/{EVIL}+x'")
    assert (theirs / f"{NAME}.ipynb").exists() and complained


def test_forged_submissions_count_for_nobody_else_and_their_links_are_not_followed(server, graded):
    _, said = graded
    submitted = server.folder / "grader" / "class" / "submitted"
    for id in (ANNA, BO, EVIL):
        assert "HIDDEN TESTS" not in (submitted / id / NOTEBOOK).read_text(encoding="utf-8")
        assert not (submitted / id / NAME / "timestamp.txt").read_text(encoding="utf-8").startswith("2099")
    assert "count_nodes" in (submitted / BO / NOTEBOOK).read_text(encoding="utf-8")


@pytest.mark.parametrize("way", ["class grade", "formgrader's button"])
def test_an_answer_that_is_graded_is_run_by_one_who_owns_nothing_and_reaches_nothing(server, graded, teacher, way):
    if way != "class grade":
        before = (server.folder / "grader" / "class" / "autograded" / EVIL / NOTEBOOK).stat().st_mtime_ns
        done = teacher.ask("POST", f"/services/class/formgrader/api/submission/{NAME}/{EVIL}/autograde").json()
        assert done["success"], done
        assert (server.folder / "grader" / "class" / "autograded" / EVIL / NOTEBOOK).stat().st_mtime_ns > before
    text = (server.folder / "grader" / "class" / "autograded" / EVIL / NOTEBOOK).read_text(encoding="utf-8")
    user, *found = re.search(r"REACHED (\d+) ([\w ]+)", text).expand(r"\1 \2").split()
    assert user == "65534" and found[:3] == ["PermissionError"] * 3
    assert len(found) == 5 and "connected" not in found


@pytest.mark.parametrize("process", ["hub", "teacher", "proxy", "another's server"])
def test_the_tokens_in_the_environment_of_a_process_are_closed(server, people, process):
    pid = server.running[process].pid if process in server.running else server_of(server, ANNA)
    said, complained = as_user(EVIL, "cat", f"/proc/{pid}/environ")
    assert not said and "Permission denied" in complained
    said, _ = as_user(EVIL, "ps", "-ww", "-o", "args", "-p", str(pid))
    assert not re.search(r"[0-9a-f]{32}", said)


def server_of(server, id):
    """The process of somebody's server, by the hub's own book."""
    with sqlite3.connect(server.folder / "state" / "jupyterhub.sqlite") as book:
        query = "select spawners.state from spawners join users on users.id = spawners.user_id where users.name = ?"
        return int(re.search(r'"pid": (\d+)', book.execute(query, [id]).fetchone()[0])[1])


@pytest.mark.parametrize(
    "path",
    [
        f"/user/{ANNA}/api/contents",
        f"/user/{ANNA}/lab",
        f"/hub/api/users/{ANNA}",
        f"/hub/api/users/{ANNA}/tokens",
        "/hub/api/users",
        "/hub/api/proxy",
        "/hub/admin",
    ],
)
def test_a_learners_session_opens_nobody_elses_door(people, path):
    assert people[EVIL].get(path).status_code in (403, 404)


def test_a_kernel_listens_to_its_own_learner_alone(people):
    session = people[ANNA].ask("POST", f"/user/{ANNA}/api/sessions", json={
        "path": "y.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}).json()  # fmt: skip
    file = next(Path("/home", ANNA, "undertorch/.run").glob(f"kernel-{session['kernel']['id']}.json"))
    assert file.parent.stat().st_mode & 0o077 == 0 and '"ipc"' in file.read_text(encoding="utf-8")  # files, no ports
    people[ANNA].ask("DELETE", f"/user/{ANNA}/api/kernels/{session['kernel']['id']}")


def test_requests_from_other_sites_are_refused(server, people):
    anna, address = people[ANNA], server.address
    other = {"Origin": "https://evil.example", "Referer": "https://evil.example/x", "Sec-Fetch-Site": "cross-site",
             "Sec-Fetch-Mode": "no-cors"}  # fmt: skip
    for path in (f"/user/{ANNA}/api/contents", f"/user/{ANNA}/api/terminals", f"/user/{ANNA}/assignments/submit",
                 f"/hub/api/users/{ANNA}/tokens", f"/hub/api/users/{ANNA}/server"):  # fmt: skip
        assert anna.session.post(address + path, json={}, headers=other).status_code == 403, path
        assert anna.session.post(address + path, data="x=1", headers=other).status_code in (400, 403), path
    with pytest.raises(Exception, match="403"):
        anna.socket(f"/user/{ANNA}/api/events/subscribe", "https://evil.example")
    form = {"username": ANNA, "password": server.passwords[ANNA]}
    assert Person(server, ANNA).session.post(f"{address}/hub/login", data=form).status_code == 403
    frames = anna.get(f"/user/{ANNA}/lab").headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in frames or "frame-ancestors 'self'" in frames


def test_cookies_are_for_the_server_alone_and_by_https_once_there_is_https(server):
    anna = Person(server, ANNA)
    anna.session.headers["X-Forwarded-Proto"] = "https"
    anna.get("/hub/login")
    form = {"username": ANNA, "password": server.passwords[ANNA], "_xsrf": anna.xsrf("/hub/login")}
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in anna.session.cookies)
    page = anna.session.post(
        f"{server.address}/hub/login", data=form, headers={"Cookie": cookies}, allow_redirects=False
    )
    set_ = [text for text in page.raw.headers.getlist("Set-Cookie") if text.startswith("jupyterhub-hub-login=")]
    assert set_ and all("HttpOnly" in text and "SameSite=Lax" in text and "Secure" in text for text in set_)


def test_an_upload_has_a_limit(people):
    model = {"type": "file", "format": "text", "content": "x" * 21 * 2**20}
    try:
        answer = people[EVIL].ask("PUT", f"/user/{EVIL}/api/contents/big.txt", json=model)
        assert not answer.ok
    except OSError:  # the server hangs up
        pass
    assert not Path("/home", EVIL, "undertorch", "big.txt").exists()


def test_a_learner_has_limits(people):
    said = people[EVIL].run("z.ipynb", [
        "import numpy; numpy.ones(4 * 2**30, 'u1').sum()",
        "import os\nwith open('big', 'wb') as f:\n    os.posix_fallocate(f.fileno(), 0, 2**29)",
        "import subprocess\nmany = []\ntry:\n    for _ in range(300): many.append(subprocess.Popen(['sleep', '60']))\n"
        "except OSError as error:\n    print('STOPPED', len(many))\nfor one in many: one.kill(); one.wait()",
    ])  # fmt: skip
    assert "Unable to allocate" in said and "File too large" in said and "STOPPED" in said


def test_with_a_wildcard_domain_each_has_an_address_of_their_own(server, people, teacher, monkeypatch):
    """The last: it starts the server anew, with other addresses."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **named: resolve(
        "127.0.0.1" if host.endswith("hub.example") else host, *more, **named))  # fmt: skip
    host = f"hub.example:{server.port}"
    with (server.folder / "state" / "ports.env").open("a", encoding="ascii") as settings:
        settings.write(f"UNDERTORCH_HOST=http://{host}\n")
    class_server.command(["bash", class_server.DEPLOY / "install.sh", server.folder])
    for unit in class_server.UNITS:
        server.kill(unit)
    for id in people:
        server.kill_all_of(id)
    server.start()
    monkeypatch.setattr(server, "address", f"http://{host}")
    evil, tea = Person(server, EVIL), Person(server, "uttteach")
    assert evil.login().ok and tea.login().ok
    until = time.monotonic() + 240
    while not (page := evil.get("/hub/spawn")).url.startswith(f"http://{EVIL}.{host}/user/{EVIL}/lab"):
        assert time.monotonic() < until, (page.url, page.text[-2000:])
        time.sleep(1)
    assert page.ok
    assert evil.get(f"/user/{EVIL}/lab").url.startswith(f"http://{EVIL}.{host}/")  # not at the hub's address
    (hubs,) = (cookie for cookie in evil.session.cookies if cookie.name == "jupyterhub-hub-login")
    assert not hubs.domain_specified  # it goes to no learner's address
    asked = {"Origin": f"http://{EVIL}.{host}", "Referer": page.url, "Sec-Fetch-Site": "same-site"}
    for path in (f"/hub/api/users/{EVIL}/tokens", f"/hub/api/users/{EVIL}/server"):
        assert evil.session.post(server.address + path, json={}, headers=asked).status_code == 403, path
    page = tea.session.get(f"http://class--service.{host}/services/class/lab", timeout=120)
    assert page.ok and page.url.startswith(f"http://class--service.{host}/services/class/lab")
