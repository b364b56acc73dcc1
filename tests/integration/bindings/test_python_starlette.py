# SPDX-License-Identifier: Apache-2.0
"""Decorated endpoints of Starlette in the package weir for Python: what becomes of a response that is
copied, or never sent."""

import asyncio
import copy
import pickle
import threading

import pytest

from daemon.waiting import SECONDS_MAX
from python_package import load, needs_package
from test_python_middleware import RULES, Asgi, left

weir = load()
pytest.importorskip("starlette")
pytestmark = needs_package


@pytest.fixture(name="limiter")
def fixture_limiter(tmp_path):
    (tmp_path / "weir.yaml").write_text(RULES, encoding="utf-8")
    with weir.open(tmp_path / "weir.yaml", state_size=4 << 20) as limiter:
        yield limiter


async def answered(limiter):
    """What a decorated endpoint returns while its lease is held."""
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    @load("weir.starlette").Weir(limiter).limit
    async def slow(request):
        return PlainTextResponse("slow", 201)

    response = await slow(Request(Asgi(None, "/slow").scope))
    assert left(limiter, "/slow") == 0
    return response


def test_starlette_copies_a_response_and_not_its_request(limiter):

    async def run():
        response = await answered(limiter)
        for copied in (copy.copy(response), copy.deepcopy(response),
                       pickle.loads(pickle.dumps(response))):
            assert (copied.status_code, copied.body) == (201, b"slow")
        del copied
        assert left(limiter, "/slow") == 0  # the response itself holds the lease
        empty = type(response).__new__(type(response))
        assert not hasattr(empty, "response") and not hasattr(empty, "verdict")
        del empty, response
        assert left(limiter, "/slow") == 1

    asyncio.run(run())


def test_starlette_stops_a_timer_on_the_thread_of_its_loop(limiter):
    threads, stopped = [], asyncio.Event()

    class Timer:
        def cancel(self):
            threads.append(threading.get_ident())
            stopped.set()

    async def run():
        loop = asyncio.get_running_loop()
        real, loop.call_later = loop.call_later, lambda delay, renew: Timer()
        held = [await answered(limiter)]
        loop.call_later = real
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        assert left(limiter, "/slow") == 1
        await asyncio.wait_for(stopped.wait(), SECONDS_MAX)
        assert threads == [threading.get_ident()]

    asyncio.run(run())
