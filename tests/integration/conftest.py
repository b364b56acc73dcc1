# SPDX-License-Identifier: Apache-2.0
"""What tests of several files start with."""

import pytest

from daemon.redis_server import RedisServer, server_program


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write what tests compare with what they see")


@pytest.fixture(scope="module", name="redis_program")
def fixture_redis_program():
    return server_program()


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory, redis_program):
    """One Redis for all tests of a file."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis
