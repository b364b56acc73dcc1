# SPDX-License-Identifier: Apache-2.0
"""`weir fetch` against weir itself, nginx's limit_req, and servers that count, lie and fail."""

import collections
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon.proxies import LIES, REFUSALS_MAX, Counting, Proxy, draft, free_port
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path


def fetch(*arguments, urls=None, env=None):
    if urls is not None:
        arguments = ("--input", "-", *arguments)
        return run_weir("fetch", *arguments, stdin="".join(f"{url}\n" for url in urls), env=env)
    return run_weir("fetch", *arguments, env=env)


def test_a_url_goes_to_stdout_as_with_curl():
    with Counting() as server:
        done = fetch(f"http://{server.address}/a?b=c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "/a?b=c\n", "")


def test_all_are_fetched_under_a_limit_that_is_reported(tmp_path):
    """Three windows' worth, 16 at a time."""
    with Counting(limit=20, fields=draft) as server:
        done = fetch("--output-dir", tmp_path / "out", "--retry", "50", urls=server.urls(60))
        assert done.returncode == 0, done.stderr
        assert server.statuses[200] == 60
        assert server.statuses[429] <= REFUSALS_MAX
        assert sorted(set(server.paths)) == sorted(f"/thing/{number}" for number in range(60))
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 60
    assert sorted(file.read_text() for file in files) == sorted(
        f"/thing/{number}\n" for number in range(60))
    assert not [file for file in files if file.name.startswith(".")]


@pytest.mark.parametrize("fields", LIES)
def test_a_server_that_says_nothing_or_lies_is_fetched_too(fields):
    with Counting(limit=20, fields=fields) as server:
        done = fetch("--json", "--retry", "50", urls=server.urls(60))
        assert done.returncode == 0, done.stderr
        assert server.statuses[200] == 60
        assert server.statuses[429] <= REFUSALS_MAX


def test_a_storm_of_429s_is_waited_out():
    with Counting(limit=10**9, storm=5) as server:
        done = fetch("--json", "--retry", "20", urls=server.urls(50))
        assert done.returncode == 0, done.stderr
        assert server.statuses == {200: 50, 429: 5}


def test_weir_itself_is_kept_to(tmp_path):
    rules = rules_of({"name": "api", "key": [], "algorithm": "gcra", "rate": "20/s", "burst": 5})
    with Weir(tmp_path, rules) as weir:
        urls = [f"http://{weir.http_address}/v1/auth/{number}" for number in range(60)]
        done = fetch("--json", "--retry", "50", urls=urls)
        assert done.returncode == 0, done.stderr
        counts = {result: sum(value for name, value in weir.metrics().items()
                              if name.startswith("weir_decisions_total") and f'"{result}"' in name)
                  for result in ("allowed", "denied")}
        assert counts["allowed"] == 60
        assert counts["denied"] <= REFUSALS_MAX


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_limit_req_is_learned(tmp_path):
    """It says nothing but 429."""
    port, log = free_port(), tmp_path / "access.log"
    config = tmp_path / "nginx.conf"
    config.write_text(f"""
daemon off; worker_processes 1; pid {tmp_path}/nginx.pid; error_log stderr;
events {{ worker_connections 256; }}
http {{
    log_format status $status;
    client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;
    fastcgi_temp_path {tmp_path}/fastcgi; uwsgi_temp_path {tmp_path}/uwsgi;
    scgi_temp_path {tmp_path}/scgi;
    limit_req_zone $server_name zone=one:1m rate=50r/s;
    server {{
        listen 127.0.0.1:{port};
        access_log {log} status;
        location / {{
            limit_req zone=one burst=5 nodelay;
            limit_req_status 429;
            try_files /none @answer;
        }}
        location @answer {{ return 200 "hello\\n"; }}
    }}
}}
""", encoding="utf-8")
    with Proxy(["nginx", "-p", str(tmp_path), "-c", str(config)], tmp_path / "nginx.log",
               f"127.0.0.1:{port}"):
        urls = [f"http://127.0.0.1:{port}/{number}" for number in range(200)]
        done = fetch("--json", "--retry", "50", urls=urls)
    assert done.returncode == 0, done.stderr
    statuses = collections.Counter(log.read_text().split())
    assert statuses["200"] == 200
    assert statuses["429"] <= REFUSALS_MAX, statuses


def test_json_lines_say_what_came_of_each_url():
    with Counting(limit=20, fields=draft) as server:
        done = fetch("--json", f"http://{server.address}/a", f"http://{server.address}/status/404",
                     "gopher://x/")
    lines = {line["url"]: line for line in map(json.loads, done.stdout.splitlines())}
    good = lines[f"http://{server.address}/a"]
    assert (good["outcome"], good["status"], good["tries"]) == ("answered", 200, 1)
    assert good["limit"] == 20 and good["remaining"] < 20
    assert lines[f"http://{server.address}/status/404"]["status"] == 404
    assert lines["gopher://x/"]["outcome"] == "refused"
    assert done.returncode == 15


@pytest.mark.parametrize("path, options, status, text", [
    ("/status/404", [], 10, "status 404"),
    ("/status/503", ["--retry", "1"], 11, "gave up after 2 tries"),
    ("/status/429", ["--retry", "0"], 12, "limited after 1 try"),
])
def test_the_exit_status_says_what_failed(path, options, status, text):
    with Counting() as server:
        done = fetch(*options, f"http://{server.address}{path}")
    assert done.returncode == status
    assert text in done.stderr


def test_nobody_there_and_wrong_urls():
    assert fetch("--retry", "0", f"http://127.0.0.1:{free_port()}/").returncode == 11
    assert fetch("file:///etc/passwd").returncode == 14
    assert fetch().returncode == 2
    assert fetch("--continue", "http://x/").returncode == 2
    assert fetch("--header", "none", "http://x/").returncode == 2
    assert fetch("--input", "/nonexistent").returncode == 1


def test_post_is_retried_only_with_a_key():
    with Counting() as server:
        url = f"http://{server.address}/once/503"
        assert fetch("--data", "x", url + "a").returncode == 11
        assert fetch("--data", "x", "--idempotency-key", url + "b").returncode == 0
        assert server.paths == ["/once/503a", "/once/503b", "/once/503b"]
        assert server.keys[0] is None
        assert re.fullmatch(r'"[0-9a-f]{32}"', server.keys[1]) and server.keys[1] == server.keys[2]


def test_named_statuses_are_retried():
    with Counting() as server:
        url = f"http://{server.address}/once/409"
        assert fetch(url + "a").returncode == 10
        assert fetch("--retry-on", "408,409", url + "b").returncode == 0
        assert server.paths == ["/once/409a", "/once/409b", "/once/409b"]
    for wrong in ("200", "408,", "", "4081", "408;409", ",".join(["408"] * 17)):
        done = fetch("--retry-on", wrong, url)
        assert done.returncode == 2 and "400 to 599" in done.stderr, wrong


def test_a_list_of_statuses_may_be_all_that_is_retried():
    with Counting(limit=10**9, storm=5) as server:
        done = fetch("--json", "--retry-statuses", "503", f"http://{server.address}/")
    assert (done.returncode, server.statuses) == (10, {429: 1}), done.stderr  # an answer as any other


def test_attempts_and_waits_are_as_stated():
    with Counting(limit=10**9, storm=5) as server:
        done = fetch("--json", "--attempts", "3", "--base", "0.001", "--factor", "1.5", "--cap", "0.01", "--jitter", "none",
                     f"http://{server.address}/")
    assert json.loads(done.stdout)["tries"] == 3 and server.statuses == {429: 3}
    for wrong in (["--factor", "0.9"], ["--jitter", "some"], ["--attempts", "0"], ["--rate", "10"],
                  ["--retry-statuses", "503", "--retry-on", "408"]):
        assert fetch(*wrong, "http://127.0.0.1:1/").returncode == 2


def test_a_rate_of_ones_own_is_shared_by_processes(tmp_path):
    """Two processes with 15 requests each: together they send the burst and no more, as no unit comes for an hour."""
    with Counting(limit=10**9) as server:
        options = ("--rate", f"1000/s, {server.address}=1/h burst 20", "--state", tmp_path / "state", "--max-time", "600")
        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(lambda _: fetch(*options, urls=server.urls(15)).returncode, range(2)))
        assert 12 in ended
        assert server.statuses == {200: 20}


def test_requests_wait_for_a_rate_of_ones_own():
    with Counting(limit=10**9) as server:
        assert fetch("--rate", "50/s", urls=server.urls(15)).returncode == 0
        assert server.statuses == {200: 15}


def test_each_scope_has_its_own_rate(tmp_path):
    """A host whose hour is used up has nothing left for the same scope, and all for another."""
    with Counting(limit=10**9) as server:
        url, options = f"http://{server.address}/", ("--rate", "1/h", "--state", tmp_path / "state", "--max-time", "600", "--json")
        began = time.monotonic()
        assert fetch(*options, "--scope", "a", url).returncode == 0
        assert fetch(*options, "--scope", "b", url).returncode == 0
        refused = fetch(*options, "--scope", "a", url)
        passed = time.monotonic() - began  # so much less may the wait be
        assert refused.returncode == 12
        line = json.loads(refused.stdout)
        assert line["outcome"] == "limited" and 3599 - passed <= line["retry_after_s"] <= 3600
        assert server.statuses == {200: 2}


def test_an_interrupted_run_continues_where_it_was(tmp_path):
    out = tmp_path / "out"

    def fields(limit, left, reset, _):
        return {"RateLimit": f'"a";r={left};t=3600', "RateLimit-Policy": f'"a";q={limit};w=3600'}

    with Counting(limit=10, seconds=10**6, fields=fields) as server:
        command = [weir_path(), "fetch", "--input", "-", "--output-dir", str(out)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdin.write("".join(f"{url}\n" for url in server.urls(30)).encode())
            process.stdin.close()
            wait_until(lambda: out.exists() and any(not f.name.startswith(".") for f in out.iterdir()))
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS_MAX) == 130
    kept = len(list(out.iterdir()))
    assert 1 <= kept <= 10 and not [file for file in out.iterdir() if file.name.startswith(".")]
    address = server.address
    with Counting(limit=10**9) as again:
        urls = [url.replace(again.address, address) for url in again.urls(30)]
        done = fetch("--output-dir", out, "--continue", urls=urls,
                     env={"http_proxy": f"http://{again.address}", "no_proxy": ""})
        assert done.returncode == 0, done.stderr
        assert len(again.paths) == 30 - kept
        assert f"{kept} skipped" in done.stderr
    assert len(list(out.iterdir())) == 30


def test_processes_share_a_state_file(tmp_path):
    """The second knows the limit that the first has used up, and sends nothing."""
    def fields(limit, left, reset, _):
        return {"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left,
                "X-RateLimit-Reset": int(time.time()) + 3600}

    state = tmp_path / "state"
    with Counting(limit=3, seconds=10**6, fields=fields) as server:
        assert fetch("--state", state, "--json", urls=server.urls(3)).returncode == 0
        done = fetch("--state", state, "--json", "--max-time", "5", f"http://{server.address}/")
        assert done.returncode == 12
        line = json.loads(done.stdout)
        assert (line["outcome"], line["tries"], line["remaining"]) == ("limited", 0, 0)
        assert 3000 < line["retry_after_s"] <= 3600
        assert len(server.paths) == 3
        # Another API key has a limit of its own.
        fetch("--state", state, "--scope", "key", "--retry", "0", f"http://{server.address}/")
        assert len(server.paths) == 4
    assert state.stat().st_mode & 0o777 == 0o600


def test_the_progress_is_for_terminals_only():
    with Counting(limit=20, fields=draft) as server:
        done = fetch(urls=server.urls(5))
        assert "\r" not in done.stderr and "5 of 5 fetched" in done.stderr
        leader, follower = pty.openpty()
        with subprocess.Popen([weir_path(), "fetch", "--json", "--retry", "50", *server.urls(60)], stderr=follower,
                              stdout=subprocess.DEVNULL) as process:
            os.close(follower)
            text = b""
            while True:
                try:
                    piece = os.read(leader, 4096)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            assert process.wait(SECONDS_MAX) == 0
        os.close(leader)
    assert re.search(rb"\r\[[#.]{20}\] \d+/60  [\d.]+/s  limit: \d+ of 20 left", text), text


def test_a_hostile_file_name_stays_in_the_folder(tmp_path):
    with Counting() as server:
        done = fetch("--output-dir", tmp_path / "out",
                     f"http://{server.address}/../../../../{tmp_path.name}/stolen",
                     f"http://{server.address}/%2e%2e/.hidden")
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_full_disk_is_a_failure():
    with Counting() as server, open("/dev/full", "wb") as full:
        done = subprocess.run([weir_path(), "fetch", f"http://{server.address}/"], stdout=full,
                              stderr=subprocess.PIPE, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr
