# SPDX-License-Identifier: Apache-2.0
"""What tests of several files start with."""

import shutil
from pathlib import Path

import pytest

from daemon.redis_server import RedisServer, server_program


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write what tests compare with what they see")


# --- The disk: what tests that passed made is removed (a run makes 15 GB of states), what failed stays

BROKEN = pytest.StashKey[bool]()  # of a test
BASE = pytest.StashKey[Path]()    # of the session: the folder of all
FAILED = pytest.StashKey[bool]()  # of the session: a test of this file has failed
KEPT = pytest.StashKey[set]()     # of the session: what was there when such a file ended


@pytest.fixture(scope="session", autouse=True, name="base")
def fixture_base(request, tmp_path_factory):
    request.session.stash[BASE] = tmp_path_factory.getbasetemp()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        item.stash[BROKEN] = True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item, nextitem):
    folders = item.funcargs
    outcome = yield
    session = item.session.stash
    if item.stash.get(BROKEN, False) or outcome.excinfo:
        session[FAILED] = True
    elif "tmp_path" in folders:
        shutil.rmtree(folders["tmp_path"], ignore_errors=True)
    if (nextitem is None or nextitem.path != item.path) and BASE in session:
        end_of_file(session, set(session[BASE].iterdir()))


def end_of_file(session, there):
    """Removes also what the file's fixtures made."""
    kept = session.setdefault(KEPT, set())
    if session.get(FAILED, False):
        kept |= there
    for one in there:
        if one.is_symlink():  # of pytest, to the last folder of a name
            one.unlink()
        elif one not in kept:
            shutil.rmtree(one, ignore_errors=True)
    session[FAILED] = False


@pytest.fixture(scope="module", name="redis_program")
def fixture_redis_program():
    return server_program()


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory, redis_program):
    """One Redis for all tests of a file."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis
