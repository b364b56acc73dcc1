# SPDX-License-Identifier: Apache-2.0
"""The snippets of docs/languages/python.md run as they are written."""

import importlib.util
import re
import subprocess
import sys

import pytest

from daemon.proxies import App
from daemon.waiting import SECONDS_MAX
from model.program import ROOT
from python_package import Server, environment, load, needs_package

weir = load()
pytestmark = needs_package

TEXT = (ROOT / "docs" / "languages" / "python.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.M | re.S)


PYTHON, YAML, SHELL = blocks("python"), blocks("yaml"), blocks("sh")


def needed(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.fixture(name="folder")
def fixture_folder(tmp_path, monkeypatch):
    """With the page's rules, in a window that ends within no test."""
    monkeypatch.chdir(tmp_path)
    assert "5/min" in YAML[0]
    (tmp_path / "weir.yaml").write_text(YAML[0].replace("5/min", "5/day"), encoding="utf-8")
    return tmp_path


def run(block):
    names = {"__name__": "app"}
    exec(compile(PYTHON[block], f"python.md, block {block}", "exec"), names)
    return names


def test_the_blocks_are_those_that_the_tests_know():
    assert len(PYTHON) == 15 and len(YAML) == 2 and len(SHELL) == 2
    assert SHELL[0].splitlines()[1:] == ["meson setup build && ninja -C build",
                                         "export PYTHONPATH=$PWD/build/bindings/python"]


def test_the_first_429(folder):
    needed("flask")
    (folder / "app.py").write_text(PYTHON[0], encoding="utf-8")
    with Server(folder, "flask", "--app", "app", "run", "--port", "PORT") as server:
        replies = [server.request("POST", "/login") for _ in range(6)]
    assert [reply.status for reply in replies] == [200] * 5 + [429]
    (shown,) = re.findall(r"^```\n(\$ curl -i.*?)^```", TEXT, re.M | re.S)
    for line in shown.splitlines()[2:]:
        name = line.partition(":")[0]
        assert line == "..." or replies[-1][name], line
    assert replies[-1]["RateLimit-Policy"] == '"login";q=5;w=86400'


def test_flask(folder):
    needed("flask")
    client = run(1)["app"].test_client()
    answers = [client.post("/login") for _ in range(6)]
    assert answers[0].text == "4 left\n" and answers[5].status_code == 429
    assert client.post("/import", json={"rows": [1, 2]}).text == "done\n"


@pytest.mark.parametrize("block", [2, 3, 4])
def test_fastapi_and_starlette(folder, block):
    needed("fastapi", "httpx")
    client = load("fastapi.testclient").TestClient(
        load("weir.testing").peer(run(block)["app"], "192.0.2.1"))
    statuses = [client.post("/login").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]


@pytest.mark.parametrize("by", ["middleware", "decorator"])
def test_django(folder, by):
    needed("django")
    settings = PYTHON[5]
    if by == "decorator":
        settings = settings.replace('"weir.django.Middleware", ', "")
        assert settings != PYTHON[5]
    (folder / "settings.py").write_text(
        settings + "ROOT_URLCONF = 'urls'\nALLOWED_HOSTS = ['*']\nSECRET_KEY = 'test'\n",
        encoding="utf-8")
    (folder / "urls.py").write_text(
        "from django.http import HttpResponse\nfrom django.urls import path\n"
        + (PYTHON[6] if by == "decorator" else
           "login = lambda r: HttpResponse(r.weir_answer.remaining)\n")
        + "urlpatterns = [path('login', login)]\n",
        encoding="utf-8")
    program = ("import django; django.setup()\nfrom django.test import Client\n"
               "print([Client().post('/login').status_code for _ in range(6)])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False, timeout=SECONDS_MAX, cwd=folder,
                          env=environment(DJANGO_SETTINGS_MODULE="settings"))
    assert done.stdout == "[200, 200, 200, 200, 200, 429]\n", done.stderr


def test_wsgi(folder):
    app, seen = run(7)["app"], []
    for _ in range(6):
        app({"REQUEST_METHOD": "POST", "PATH_INFO": "/login", "REMOTE_ADDR": "192.0.2.1"},
            lambda status, headers: seen.append(status[:3]))
    assert seen == ["200"] * 5 + ["429"]


def test_plans(folder):
    needed("flask")
    (folder / "weir.yaml").write_text(YAML[1], encoding="utf-8")
    app = run(8)["app"]
    app.get("/")(lambda: "hello")
    left = {}
    for user in None, "ann", "bob":
        with app.test_client() as client:
            with client.session_transaction() as session:
                session["user"] = user
            policy = client.get("/").headers["RateLimit-Policy"]
            left[user] = int(re.search(r"q=(\d+)", policy)[1])
    assert left == {None: 100, "ann": 10000, "bob": 100}


def test_the_api(folder, capsys):
    for _ in range(6):
        run(9)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "allowed, 4 left" and lines[5].startswith("denied by login for ")


def test_the_client(folder, monkeypatch, capsys):
    with App() as server:
        monkeypatch.setattr(sys, "argv", ["client.py", f"http://{server.address}/"])
        run(10)
    assert capsys.readouterr().out == "200 None\n"


def test_httpx(folder, monkeypatch, capsys):
    needed("httpx")
    with App() as server:
        monkeypatch.setattr(sys, "argv", ["client.py", f"http://{server.address}/"])
        run(11)
    assert capsys.readouterr().out == "200\n"


def test_requests(folder, monkeypatch, capsys):
    needed("requests")
    with App() as server:
        monkeypatch.setattr(sys, "argv", ["client.py", f"http://{server.address}/"])
        run(12)
    assert capsys.readouterr().out == "200\n"


@pytest.mark.parametrize("block", [13, 14])
def test_the_tests(tmp_path, block):
    """As they are written, with the rules as they are written: they wait for nothing."""
    if block == 14:
        needed("fastapi", "httpx")
    (tmp_path / "weir.yaml").write_text(YAML[0], encoding="utf-8")
    (tmp_path / "test_limits.py").write_text(PYTHON[block], encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path],
                          capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=tmp_path,
                          env=environment())
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("command", SHELL[1].splitlines())
def test_workers(folder, command):
    words = command.split()
    needed(words[0], "flask" if words[0] == "gunicorn" else "fastapi")
    (folder / "app.py").write_text(PYTHON[0 if words[0] == "gunicorn" else 2], encoding="utf-8")
    place = ["--bind", "127.0.0.1:PORT"] if words[0] == "gunicorn" else ["--port", "PORT"]
    with Server(folder, words[0], *place, *words[1:]) as server:
        assert [server.request("POST", "/login").status for _ in range(6)] == [200] * 5 + [429]


def test_the_page_says_when_a_lease_outlives_its_client():
    """As test_a_handler_that_does_not_receive_keeps_its_lease_while_it_works shows."""
    assert "handler that does neither keeps its lease until it ends" in " ".join(TEXT.split())


def test_the_tables_name_what_there_is():
    for name in re.findall(r"`limiter\.(\w+)", TEXT.split("\n## API")[1]):
        assert hasattr(weir.Limiter, name), name
    fields = TEXT.split("It has `allowed`", 1)[1].split(" as [the whole answer]", 1)[0]
    named = {"allowed", *re.findall(r"`(\w+)`", fields)}
    assert named == {name for name in vars(weir.Answer) if not name.startswith("__")}
    rows = re.findall(r"^\| (`[^|]*`) \| (?:none|1|`False`|`\"closed\"`|30)", TEXT, re.M)
    options = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    import inspect
    assert options == list(inspect.signature(load("weir._guard").Guard).parameters)[1:]
