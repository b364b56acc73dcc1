# SPDX-License-Identifier: Apache-2.0
"""What tests of several files start with."""

import pytest

from daemon.redis_server import RedisServer


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory):
    """One Redis for all tests of a file."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis
