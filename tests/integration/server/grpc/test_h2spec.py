# SPDX-License-Identifier: Apache-2.0
"""h2spec, the conformance tests of HTTP/2, against the gRPC listener.

From $H2SPEC or the path, else by the Go module proxy; where there is neither, it is skipped."""

import os
import re
import shutil
import subprocess

import pytest

from daemon.weir import Weir, rules_of

MODULE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
# Left out is what h2spec does in the midst of a request that is no gRPC, which weir answers, and
# resets, before it is whole: generic, http2/5.1.2, 6.1/3, 6.9, 6.9.1/3, 8.1, 8.1.2.1/3, 8.1.2.6.
SECTIONS = ["hpack", "http2/3", "http2/4", *(f"http2/5.1/{number}" for number in range(1, 14)),
            "http2/5.1.1", "http2/5.3", "http2/5.4", "http2/5.5", "http2/6.1/1", "http2/6.1/2",
            "http2/6.2", "http2/6.3", "http2/6.4", "http2/6.5", "http2/6.7", "http2/6.8",
            "http2/6.9.1/1", "http2/6.9.1/2", "http2/6.9.2", "http2/6.10", "http2/7",
            "http2/8.1.2.1/1", "http2/8.1.2.1/2", "http2/8.1.2.1/4", "http2/8.1.2.2",
            "http2/8.1.2.3", "http2/8.2"]


@pytest.fixture(scope="module", name="h2spec")
def fixture_h2spec(tmp_path_factory):
    found = os.environ.get("H2SPEC") or shutil.which("h2spec")
    if found:
        return found
    if not shutil.which("go"):
        pytest.skip("neither h2spec nor go is installed")
    folder = tmp_path_factory.mktemp("go")
    try:
        done = subprocess.run(["go", "install", MODULE], env=os.environ | {"GOBIN": str(folder)},
                              capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("go could not install h2spec in time")
    if done.returncode:
        pytest.skip(f"go could not install h2spec: {done.stderr[-200:]}")
    return str(folder / "h2spec")


def test_the_grpc_listener_conforms_to_http_2(tmp_path, h2spec):
    with Weir(tmp_path, rules_of(server={"grpc": "127.0.0.1:0"})) as weir:
        port = weir.grpc_address.rpartition(":")[2]
        done = subprocess.run([h2spec, "-h", "127.0.0.1", "-p", port, "-o", "60", *SECTIONS],
                              capture_output=True, text=True, timeout=580, check=False)
    counts = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert counts, done.stdout + done.stderr
    assert counts[4] == "0", done.stdout[done.stdout.find("Failures"):]
    assert int(counts[2]) >= 86
