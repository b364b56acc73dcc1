# SPDX-License-Identifier: Apache-2.0
"""The store's tests run with every server of the Redis protocol that is installed."""

import shutil

import pytest

from daemon.redis_server import running

SERVERS = [name for name in ("redis-server", "valkey-server") if shutil.which(name)]


@pytest.fixture(scope="module", name="redis_program", params=SERVERS or ["redis-server"], autouse=True)
def fixture_redis_program(request):
    """What RedisServer starts. A fixture of a file that keeps a server for several tests takes it, so
    that each program has a server of its own."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("REDIS_SERVER", request.param)
        yield request.param
    assert not running, "a fixture that keeps a server has to take redis_program"
