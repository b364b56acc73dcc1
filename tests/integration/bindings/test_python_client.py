# SPDX-License-Identifier: Apache-2.0
"""weir.client: a Session over libweir-client, against servers of these tests."""

import ast
import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading

import pytest

from daemon.proxies import Application, Handler, free_port
from daemon.waiting import SECONDS_MAX, wait_until
from python_package import FOLDER, environment, load, needs_package

client = load("weir.client")
pytestmark = needs_package


class Server(Application):
    """Answers by path; `seen` has what was asked for, `held` those that wait for `go`."""

    def __init__(self):
        self.seen, self.held, self.go = seen, held, go = [], [], threading.Event()
        self.holding = holding = threading.Event()

        class Answers(Handler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append((self.command, self.path, dict(self.headers), body))
                status, fields = 200, {"RateLimit-Policy": '"a";q=1000;w=60',
                                       "RateLimit": '"a";r=999;t=60', "X-Odd": "a\x85b: c\x1cd"}
                if self.path in ("/failing", "/timeout") and len(seen) < 3:
                    status = 503 if self.path == "/failing" else 408
                elif self.path == "/limited":
                    status, fields = 429, {"Retry-After": "1000"}
                elif self.path == "/held":
                    held.append(self)
                    holding.set()
                    go.wait(SECONDS_MAX)
                self.send_response(status)
                for name, value in {**fields, "Content-Length": "9"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b'{"a": "b"}'[:9])

            do_GET = do_POST = do_PUT = answer

        super().__init__(Answers)

    def url(self, path):
        return f"http://{self.address}{path}"

    async def holds(self):
        """Waits for the first request that is held."""
        assert await asyncio.to_thread(self.holding.wait, SECONDS_MAX)


@pytest.fixture(name="server")
def fixture_server():
    with Server() as server:
        yield server
        server.go.set()


def test_an_answer_and_what_it_says_of_the_limit(server):
    with client.Session(headers={"X-One": "1"}) as session:
        answer = session.put(server.url("/"), json={"k": 1}, headers={"X-Two": "2"})
        assert answer.ok and answer.status == 200 and answer.tries == 1
        assert answer.content == b'{"a": "b"' and answer.text == '{"a": "b"'
        assert answer.headers["ratelimit"] == '"a";r=999;t=60'
        assert answer.headers["x-odd"] == "a\x85b: c\x1cd"  # line ends of Unicode, not of HTTP
        assert (answer.limit.limit, answer.limit.remaining) == (1000, 999)
        method, _, fields, body = server.seen[0]
        assert (method, body) == ("PUT", b'{"k": 1}')
        assert (fields["X-One"], fields["X-Two"]) == ("1", "2")
        assert fields["Content-Type"] == "application/json"
        assert session.known(server.url("/")).limit == 1000
        assert session.known("http://other.invalid/") is None
        session.expect(10)


def test_retries_and_their_hook(server):
    tries = []
    with client.Session(on_try=tries.append, backoff_base=0.001) as session:
        assert session.get(server.url("/failing")).tries == 3
        assert [(one.number, one.status) for one in tries] == [(1, 503), (2, 503), (3, 200)]
        assert tries[0].next_wait is not None and tries[2].next_wait is None
        server.seen.clear()
        answer = session.post(server.url("/failing"), data="x", idempotency_key=True)
        assert answer.tries == 3
        assert len({fields["Idempotency-Key"] for _, _, fields, _ in server.seen}) == 1
        server.seen.clear()
        with pytest.raises(client.GaveUp) as caught:
            session.post(server.url("/failing"), data="x")
        assert caught.value.tries == 1 and caught.value.response.status == 503


def test_statuses_that_are_retried_too(server):
    with client.Session(retry_on=[409, 408], backoff_base=0.001) as session:
        answer = session.get(server.url("/timeout"))
        assert (answer.status, answer.tries) == (200, 3)
    server.seen.clear()
    with client.Session() as session:
        answer = session.get(server.url("/timeout"))
        assert (answer.status, answer.tries) == (408, 1)
    with pytest.raises(TypeError):
        client.Session(retry_on=["408"])


def test_statuses_that_are_all_that_is_retried(server):
    with client.Session(retry_statuses=[408], backoff_base=0.001, backoff_factor=1.5, jitter="none") as session:
        assert session.get(server.url("/timeout")).tries == 3
        server.seen.clear()
        answer = session.get(server.url("/failing"))
        assert (answer.status, answer.tries) == (503, 1)


def test_a_rate_of_the_callers_own_is_kept_to(server, tmp_path):
    """Two sessions on one state file share it; a third without it has its own."""
    options = {"rate": f"1000/s, {server.address}=1/h burst 2", "time": 600}
    state = {"state": tmp_path / "limits", **options}
    with client.Session(**state) as one, client.Session(**state) as other, client.Session(**options) as alone:
        for session in (one, other):
            assert session.get(server.url("/")).status == 200
        for session in (one, other):
            with pytest.raises(client.Limited):
                session.get(server.url("/"))
        assert len(server.seen) == 2
        assert alone.get(server.url("/")).status == 200
        assert one.known(server.url("/")).interval == pytest.approx(3600)
        assert one.known("http://other.invalid/").interval == pytest.approx(0.001)


def test_requests_wait_for_a_rate_of_the_callers_own(server):
    with client.Session(rate="50/s") as session:
        assert [session.get(server.url("/")).status for _ in range(5)] == [200] * 5


def test_a_hook_can_neither_wait_for_its_session_nor_close_it(server):
    """Both would wait for the thread that runs the hook."""
    raised = []

    def hook(_):
        for call in (lambda: session.get(server.url("/")), session.close):
            try:
                call()
            except load("weir").StateError as error:
                raised.append(str(error))

    with client.Session(on_try=hook) as session:
        assert session.get(server.url("/")).ok
        assert len(raised) == 2 and all("another thread" in text for text in raised)
        assert session.get(server.url("/")).ok  # it is not closed


def test_failures_say_what_is_known(server):
    with client.Session() as session:
        with pytest.raises(client.Limited) as caught:
            session.get(server.url("/limited"))
        assert caught.value.response.status == 429 and caught.value.retry_after > 900
        with pytest.raises(client.Timeout):
            session.get(server.url("/held"), time=1, scope="other")
        with pytest.raises(client.GaveUp) as caught:
            session.get(f"http://127.0.0.1:{free_port()}/", tries=1)
        assert caught.value.response is None and "127.0.0.1" in str(caught.value)
        for wrong in ("ftp://host/", "no url"):
            with pytest.raises(ValueError, match="URL"):
                session.get(wrong)
        with pytest.raises(ValueError):
            session.get(server.url("/"), headers={"X-Bad": "a\0b"})
        with pytest.raises(ValueError):
            client.Session(jitter="some")
        for wrong in ({"retry_on": [200]}, {"retry_on": [0]}, {"retry_on": [70000]},
                      {"retry_on": [408] * 17}, {"retry_statuses": [200]},
                      {"retry_statuses": [408] * 17}, {"backoff_factor": 0.5}, {"rate": "ten"}, {"concurrency": 1001}, {"concurrency": 2**32 + 1}, {"tries": -1},
                      {"seed": 2**64}):
            with pytest.raises(ValueError):
                client.Session(**wrong)
        with pytest.raises(ValueError):
            session.expect(-1)


def test_asyncio_awaits_many(server):
    async def many(session):
        return await asyncio.gather(*(session.aget(server.url(f"/{i}")) for i in range(20)))

    with client.Session() as session:
        session.expect(20)
        assert [answer.status for answer in asyncio.run(many(session))] == [200] * 20


async def one_turn():
    """Lets the loop run what is ready."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_task_that_is_cancelled_cancels_its_request(server):
    """The only place in flight is free again, though the server has not answered."""
    tries = []

    async def run(session):
        first = asyncio.create_task(session.aget(server.url("/held")))
        await server.holds()
        await cancelled(first)
        assert (await session.aget(server.url("/"))).ok
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await session.aget(server.url("/held"))
        return (await session.arequest("POST", server.url("/"), data="x")).status

    with client.Session(concurrency=1, on_try=tries.append) as session:
        assert asyncio.run(asyncio.wait_for(run(session), SECONDS_MAX)) == 200
    assert [one.status for one in tries] == [200, 200]


def test_a_request_that_is_cancelled_at_once_is_cancelled(server):
    async def run(session):
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(300):
                task = asyncio.create_task(session.aget(server.url("/held")))
                await one_turn()  # it has begun
                await cancelled(task)
            return (await session.aget(server.url("/"))).status

    with client.Session(concurrency=1) as session:
        assert asyncio.run(run(session)) == 200


def test_failures_and_closing_reach_what_is_awaited(server):
    async def run(session):
        with pytest.raises(client.GaveUp):
            await session.aget(f"http://127.0.0.1:{free_port()}/", tries=1)
        with pytest.raises(ValueError, match="URL"):
            await session.aget("no url")
        task = asyncio.create_task(session.aget(server.url("/held")))
        await server.holds()
        session.close()
        with pytest.raises(client.Cancelled):
            await task
        with pytest.raises(load("weir").StateError, match="closed"):
            await session.aget(server.url("/"))

    asyncio.run(run(client.Session()))


def test_a_loop_that_ends_before_its_requests(server):
    """The last reference to the session is dropped on its own thread, with the answer."""
    program = (
        "import asyncio, gc, sys, threading, weakref, weir.client\n"
        "def forget():\n"
        "    session = weir.client.Session()\n"
        "    loop = asyncio.new_event_loop()\n"
        "    task = loop.create_task(session.aget(sys.argv[1]))\n"
        "    task._log_destroy_pending = False\n"
        "    loop.call_soon(loop.stop)\n"
        "    loop.run_forever()\n"
        "    loop.close()\n"
        "    gone = threading.Event()\n"
        "    weakref.finalize(session, gone.set)\n"
        "    return gone\n"
        "for _ in range(30):\n"
        "    gone = forget()\n"
        "    while not gone.wait(0.001):\n"
        "        gc.collect()\n"
        "print('ended')\n")
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program, server.url("/")],
                          env=environment(), capture_output=True, text=True, check=False,
                          timeout=2 * SECONDS_MAX)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_closing_cancels_requests_of_other_threads(server):
    session, raised = client.Session(), []

    def run():
        try:
            session.get(server.url("/held"))
        except client.Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: server.held, what="the request")
    session.close()
    session.close()
    thread.join(SECONDS_MAX)
    assert raised
    with pytest.raises(load("weir").StateError, match="closed"):
        session.get(server.url("/"))


def test_a_forked_process_has_a_client_of_its_own(server, tmp_path):
    with client.Session(state=tmp_path / "limits") as session:
        session.get(server.url("/"))
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                known = session.known(server.url("/"))  # by the file that both have
                status = 0 if known.limit == 1000 and session.get(server.url("/")).ok else 2
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert session.get(server.url("/")).ok


def program(server, text):
    return subprocess.Popen([sys.executable, "-c", "import weir.client\n" + text,
                             server.url("/held")], env=environment(), stderr=subprocess.PIPE,
                            text=True)


def test_an_interrupt_ends_a_wait(server):
    # Where the tests run in the background of a shell, programs begin with the signal ignored.
    process = program(server, "import signal, sys\n"
                      "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                      "weir.client.Session().get(sys.argv[1])\n")
    wait_until(lambda: server.held, what="the request")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=SECONDS_MAX)
    assert "KeyboardInterrupt" in said and process.returncode != 0


def test_a_program_may_end_without_closing(server):
    process = program(server, "import sys, threading\n"
                      "tried = threading.Event()\n"
                      "s = weir.client.Session(on_try=lambda one: tried.set())\n"
                      "threading.Thread(target=s.get, args=sys.argv[1:], daemon=True).start()\n"
                      "tried.wait()\n")
    wait_until(lambda: server.held, what="the request")
    server.go.set()
    _, said = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, said


def test_the_stubs_name_what_there_is():
    tree = ast.parse((FOLDER / "weir" / "client.pyi").read_text(encoding="utf-8"))
    stubs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert sorted(stubs) == sorted(client.__all__)
    for name in ("Session", "Response", "Stream", "AsyncStream"):
        named = {node.name for node in stubs[name].body
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        there = {member for kind in getattr(client, name).__mro__[:-1] for member in vars(kind)
                 if not member.startswith("_")}
        assert {member for member in named if not member.startswith("_")} == there, name
    stub, real = stubs["Session"].body[1], client.Session.__init__
    assert [argument.arg for argument in stub.args.kwonlyargs] == [
        name for name, one in inspect.signature(real).parameters.items()
        if one.kind is one.KEYWORD_ONLY]
