# SPDX-License-Identifier: Apache-2.0
"""`weir replay` as a program: formats, malformed lines, reports, and outputs that fail."""

import fcntl
import json
import os
import pty
import random
import re
import signal
import subprocess
import termios
import time

import pytest

from daemon.waiting import wait_until
from model.program import run_weir, weir_path

RULES = """\
version: 1
limits:
  - name: api
    key: [user]
    algorithm: fixed_window
    rate: 2/min
  - name: all
    key: []
    algorithm: token_bucket
    rate: 10/s
    burst: 100
    shadow: true
"""

LOG_LINE = '192.0.2.1 - - [07/Mar/2004:16:05:49 -0800] "GET / HTTP/1.1" 200 1'


@pytest.fixture(name="rules")
def rules_fixture(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


def requests(*times, user="alice"):
    return "".join(f'{{"t": {t}, "attributes": {{"user": "{user}"}}}}\n' for t in times)


def replay(rules, trace, *options):
    return run_weir("replay", "--config", rules, *options, "-", stdin=trace)


def decisions(rules, trace, *options):
    done = replay(rules, trace, "--decisions", "-", *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_decision_is_written_as_documented(rules):
    done = replay(rules, requests("1700000000.5"), "--decisions", "-")
    assert done.returncode == 0
    assert done.stdout == (
        '{"n":1,"allowed":true,"limits":['
        '{"name":"api","allowed":true,"remaining":1,"retry_after_ns":0,'
        '"reset_after_ns":39500000000,"delay_ns":0},'
        '{"name":"all","allowed":true,"remaining":99,"retry_after_ns":0,'
        '"reset_after_ns":100000000,"delay_ns":0}]}\n')
    assert "api" in done.stderr  # the report makes room for the decisions


def test_a_denial_charges_nothing_and_tells_when_to_come_back(rules):
    found = decisions(rules, requests(60, 60, 60, "119.999999999", 120))
    assert [decision["allowed"] for decision in found] == [True, True, False, False, True]
    assert [d["limits"][0]["retry_after_ns"] for d in found] == [0, 0, 60 * 10**9, 1, 0]
    assert [d["limits"][1]["remaining"] for d in found[:3]] == [99, 98, 98]


def test_never_is_minus_one(rules):
    found = decisions(rules, '{"t":1,"cost":3,"attributes":{"user":"a"}}\n')
    assert found[0]["limits"][0]["retry_after_ns"] == -1


def test_unlimited_has_no_remaining(tmp_path):
    path = tmp_path / "unlimited.yaml"
    path.write_text("version: 1\nlimits:\n  - {name: free, key: [], rate: unlimited}\n",
                    encoding="utf-8")
    done = replay(path, '{"t":1}\n', "--decisions", "-")
    assert done.stdout == ('{"n":1,"allowed":true,"limits":[{"name":"free","allowed":true,'
                           '"remaining":null,"retry_after_ns":0,"reset_after_ns":0,'
                           '"delay_ns":0}]}\n')


def test_a_request_that_no_limit_meets_is_allowed(tmp_path):
    path = tmp_path / "none.yaml"
    path.write_text("version: 1\nlimits: []\n", encoding="utf-8")
    done = replay(path, '{"t":1}\n', "--decisions", "-")
    assert done.stdout == '{"n":1,"allowed":true,"limits":[]}\n'


def test_time_never_goes_back(rules):
    found = decisions(rules, requests(60, 60, 30, 60))
    assert [decision["allowed"] for decision in found] == [True, True, False, False]
    assert found[2]["limits"][0]["retry_after_ns"] == 60 * 10**9
    assert "1 lines stood after later ones" in replay(rules, requests(60, 30)).stdout


def test_a_dry_run_sees_the_verdict_and_charges_nothing(rules):
    peek = '{"t": 60, "dry_run": true, "attributes": {"user": "alice"}}\n'
    trace = peek * 3 + requests(60, 60) + peek
    found = decisions(rules, trace)
    assert [d["allowed"] for d in found] == [True] * 5 + [False]
    assert [d["limits"][0]["remaining"] for d in found] == [2, 2, 2, 1, 0, 0]
    report = replay(rules, trace).stdout
    assert "2 requests: 2 allowed" in report and "4 dry runs" in report


def test_times_are_exact_to_the_nanosecond_as_numbers_and_as_strings(rules):
    for form in ("{}", '"{}"'):
        found = decisions(rules, requests(form.format("1700000000.123456789")))
        assert found[0]["limits"][0]["reset_after_ns"] == 40 * 10**9 - 123456789


def test_the_report_tells_requests_verdicts_keys_and_the_most_denied(rules):
    done = replay(rules, requests(60, 60, 61, 62) + requests(62, 62, 62, user="bob")
                  + requests(62, user="carol"), "--utc")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "8 requests: 5 allowed, 3 denied (37.50%)"
    assert lines[1] == "from 1970-01-01T00:01:00Z to 1970-01-01T00:01:02Z"
    rows = [line.split() for line in lines]
    assert ["api", "8", "5", "3", "3"] in rows
    assert ["all*", "8", "8", "0", "1"] in rows
    assert rows.index(["api", "2", "4", "user=alice"]) < rows.index(["api", "1", "3", "user=bob"])
    assert "carol" not in done.stdout
    assert "user=bob" not in replay(rules, requests(60, 60, 61, 62), "--top", "1").stdout
    assert "MOST DENIED" not in replay(rules, requests(60, 60, 61, 62), "--top=0").stdout


def test_malformed_lines_are_named_and_counted_and_the_rest_is_replayed(rules, tmp_path):
    trace = tmp_path / "trace.jsonl"
    bad = ['{"t": 1, "typo": 2}', "{", '{"cost": 1}', '{"t": 1, "ip": "here"}',
           '{"t": 1, "path": "/%zz", "attributes": {"user": "a"}}', '{"t": 4611686018.427387904}']
    trace.write_text("\n".join(['{"t": 1}', *bad, "", '{"t": 2}'] + ["x"] * 20) + "\n",
                     encoding="utf-8")
    done = run_weir("replay", "--config", rules, "--decisions", tmp_path / "out", trace)
    assert done.returncode == 1
    result = done.stderr.splitlines()
    assert len(result) == 11
    for number, line in enumerate(result[:6], start=2):
        assert line.startswith(f"weir: {trace}:{number}: ")
    assert result[10] == "weir: 16 more lines were malformed"
    assert "2 requests: 2 allowed, 0 denied" in done.stdout
    assert "26 lines were malformed and left out" in done.stdout
    written = [json.loads(line)["n"] for line in (tmp_path / "out").read_text().splitlines()]
    assert written == [1, 8]  # malformed lines have a number; blank ones have none
    assert run_weir("replay", "--config", rules, "--skip-bad", trace).returncode == 0


def test_a_line_longer_than_a_mebibyte_is_malformed_and_costs_no_memory(rules):
    done = replay(rules, requests(1) + "y" * 10_000_000 + "\n" + requests(2))
    assert done.returncode == 1
    assert "(standard input):2: line: longer than 1 MiB" in done.stderr
    assert "2 requests" in done.stdout


def test_a_first_line_that_is_too_long_still_tells_the_format(rules):
    done = replay(rules, '{"t":1,"path":"/' + "y" * 2_000_000 + '"}\n' + requests(2))
    assert done.returncode == 1
    assert done.stderr == "weir: (standard input):1: line: longer than 1 MiB\n"
    assert "1 requests" in done.stdout


def test_decisions_never_overwrite_what_is_read(rules, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text(requests(1), encoding="utf-8")
    (tmp_path / "link").symlink_to(trace)
    for out, read in ((trace, trace), (tmp_path / "link", trace), (rules, rules)):
        before = read.read_bytes()
        done = run_weir("replay", "--config", rules, "--decisions", out, trace)
        assert done.returncode == 1
        assert done.stderr == f"weir: {read}: the decisions would overwrite it\n"
        assert read.read_bytes() == before


def test_several_files_of_different_formats_are_one_trace(rules, tmp_path):
    (tmp_path / "a.log").write_text(LOG_LINE + "\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(requests("1078704350"), encoding="utf-8")
    done = run_weir("replay", "--utc", "--config", rules, tmp_path / "a.log", tmp_path / "b.jsonl")
    assert done.returncode == 0
    assert "from 2004-03-08T00:05:49Z to 2004-03-08T00:05:50Z\n" in done.stdout
    forced = run_weir("replay", "--config", rules, "--format", "jsonl", tmp_path / "a.log")
    assert forced.returncode == 1 and "a.log:1: " in forced.stderr
    assert run_weir("replay", "--config", rules, "-f", "common", tmp_path / "a.log").returncode == 0


def test_a_host_name_in_a_log_is_a_client_of_its_own_and_is_shown(tmp_path):
    rules = tmp_path / "hosts.yaml"
    rules.write_text("version: 1\nlimits:\n"
                     "  - {name: host, key: [client.ip], rate: 1/min}\n"
                     "  - {name: net, key: [client.ip/64], rate: 1/min}\n", encoding="utf-8")
    named = LOG_LINE.replace("192.0.2.1", "one.example.org")
    other = LOG_LINE.replace("192.0.2.1", "two.example.org")
    done = replay(rules, f"{named}\n{other}\n{named}\n")
    assert done.returncode == 0
    assert "3 requests: 2 allowed, 1 denied" in done.stdout
    assert "client.ip=one.example.org\n" in done.stdout
    assert "one.example.org/64\n" in done.stdout
    assert "two" not in done.stdout


def test_a_table_that_is_too_small_is_reported(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("version: 1\nlimits:\n  - {name: k, key: [user], rate: 5/d}\n",
                     encoding="utf-8")
    trace = "".join(requests(1, user=f"u{i}") for i in range(20000))
    assert "Not exact" in replay(rules, trace, "--state-size", "256KiB").stdout
    assert "Not exact" not in replay(rules, trace).stdout
    bounded = replay(rules, trace, "--max-keys", "100").stdout
    assert ["k", "20000", "20000", "0", ">=100"] in [row.split() for row in bounded.splitlines()]


GROWING = """\
version: 1
limits:
  - {name: bucket, key: [user], algorithm: token_bucket, rate: 2/min, burst: 3}
  - {name: log, key: [client.ip], algorithm: sliding_log, rate: 3/min}
  - {name: parts, key: [client.ip, method], rate: [5/min, 20/h], segments: 6}
  - {name: flight, key: [user, method], algorithm: concurrency, limit: 2, life: 30s}
"""


def test_a_table_that_grows_decides_as_a_large_one(tmp_path):
    rules, trace = tmp_path / "rules.yaml", tmp_path / "trace"
    rules.write_text(GROWING, encoding="utf-8")
    rng = random.Random(3)
    with open(trace, "w", encoding="utf-8") as out:
        for i in range(150_000):
            key = rng.randrange(300) if i % 3 else i
            out.write(f'{{"t":{1700000000 + i / 1000},"method":"M{i % 2}","ip":"10.{key >> 16}.'
                      f'{key >> 8 & 255}.{key & 255}","attributes":{{"user":"u{key}"}}}}\n')
    found = []
    for size in [], ["--state-size=1GiB"]:
        done = run_weir("replay", "-c", rules, "-d", tmp_path / "out", *size, trace)
        assert done.returncode == 0 and "Not exact" not in done.stdout, done.stdout
        found.append(((tmp_path / "out").read_bytes(), done.stdout))
    assert found[0] == found[1]
    assert b'"allowed":false' in found[0][0]


def test_hundreds_of_limits_fit_without_a_size(tmp_path):
    rules = tmp_path / "rules.yaml"
    limits = "".join(f"  - {{name: l{i}, key: [user], rate: {i + 1}/min}}\n" for i in range(3000))
    rules.write_text("version: 1\nlimits:\n" + limits.replace("key:", "match: {path: /x}, key:"),
                     encoding="utf-8")
    done = replay(rules, '{"t":1,"path":"/"}\n')
    assert done.returncode == 0, done.stderr


class Fed:
    """weir that reads what is written to it, with its standard error on a terminal."""

    def __init__(self, *arguments):
        self.terminal, child = pty.openpty()
        self.process = subprocess.Popen([weir_path(), *arguments, "-"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=child)
        os.close(child)
        os.set_blocking(self.terminal, False)
        self.shown = b""

    def feed(self, first, count=20_000):
        self.process.stdin.write(requests(*range(first, first + count)).encode())
        self.process.stdin.flush()

    def look(self):
        try:
            self.shown += os.read(self.terminal, 65536)
        except BlockingIOError:
            pass
        return self.shown

    def wait_until_read(self):
        unread = bytearray(4)
        def empty():
            fcntl.ioctl(self.process.stdin, termios.FIONREAD, unread)
            return not any(unread)
        wait_until(empty, what="the reader")

    def end(self, number):
        self.process.send_signal(number)
        out = self.process.stdout.read().decode()
        status = self.process.wait()
        self.process.stdin.close()
        os.close(self.terminal)
        return out, status


def test_a_terminal_shows_progress_and_ctrl_c_ends_with_a_partial_report(rules):
    fed, first = Fed("replay", "--config", rules), 0
    while b" lines  " not in fed.look():
        fed.feed(first)
        first += 20_000
    assert re.search(rb"\r\x1b\[Kreplay: [0-9,]+ lines  [0-9.]+ [kM]/s", fed.look())
    fed.wait_until_read()
    out, status = fed.end(signal.SIGINT)
    assert status == 130
    partial = re.match(r"Partial: the reading was ended after (\d+) lines\.\n(\d+) requests: ", out)
    assert partial and partial[1] == partial[2] and 0 < int(partial[1]) <= first, out[:200]
    assert "api " in out


def test_sigterm_ends_a_suggestion_with_what_was_read(rules):
    fed = Fed("replay", "--suggest", "--key", "user", "--config", rules)
    assert fed.process.wait() == 2  # --suggest takes no rules
    fifo = rules.parent / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([weir_path(), "replay", "--suggest", "--key", "user", fifo], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process, open(fifo, "w", encoding="utf-8") as pipe:
        pipe.write(requests(*range(1000)))
        pipe.flush()
        unread = bytearray(4)
        def empty():
            fcntl.ioctl(pipe, termios.FIONREAD, unread)
            return not any(unread)
        wait_until(empty, what="the reader")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    assert process.returncode == 143
    assert out.startswith(b"# Partial: the reading was ended after 1000 lines.\n# read as jsonl, 1000 lines\n")
    assert b"limits:" in out and out.endswith(b"# Not run on its own trace: the reading was ended early.\n")


def test_without_a_terminal_there_is_no_progress(rules):
    assert replay(rules, requests(*range(50_000))).stderr == ""


def test_compare_puts_each_algorithm_beside_the_exact_log(rules):
    # 2/min: two at the end of a minute, two at the start of the next, one in its middle.
    trace = requests(119, 119, 120, 120, 150)
    done = replay(rules, trace, "--compare")
    assert done.returncode == 0
    rows = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert "api: 2 in any 1min, 1 keys" in done.stdout
    # allowed, denied, wrong allows of exact denials, wrong denials of exact allows, worst window
    assert ("sliding_log", "(exact)", "2", "3", "0", "(0.00%)", "0", "(0.00%)", "2") in rows
    assert ("*", "fixed_window", "4", "1", "2", "(66.67%)", "0", "(0.00%)", "4") in rows
    assert ("sliding_window", "3", "2", "1", "(33.33%)", "0", "(0.00%)", "3") in rows
    assert "all: 10 in any 1s" in done.stdout


def test_compare_judges_limits_by_plan_apart_and_leaves_out_what_has_no_rate(tmp_path):
    rules = tmp_path / "plans.yaml"
    rules.write_text("version: 1\nidentify: [client.ip]\ndefault_plan: free\n"
                     "plans: { free: { api: 7/min } }\n"
                     "limits:\n  - {name: api, key: [user], rate: plan}\n"
                     "  - {name: busy, key: [], algorithm: concurrency, limit: 2, life: 5s}\n"
                     "  - {name: free, key: [], rate: unlimited}\n", encoding="utf-8")
    done = replay(rules, '{"t": 1, "ip": "192.0.2.1"}\n', "--compare")
    assert done.returncode == 0, done.stderr
    assert "api: 7 in any 1min" in done.stdout
    assert "busy:" not in done.stdout and "free:" not in done.stdout


REPEATS = "".join(f'{{"t": {t}, "attributes": {{"user": "a"}}, "status": {status}, '
                  f'"latency_ms": 5, "idempotency_key": "{key}"}}\n'
                  for t, key, status in [(60, "A", 200), (61, "A", 200), (62, "B", 503),
                                         (63, "C", 200), (64, "A", 401), (65, "B", 200)])


def test_a_repeated_request_is_no_limit_in_decisions_and_charges_nothing(rules):
    found = decisions(rules, REPEATS)
    assert [decision["allowed"] for decision in found] == [True, True, True, False, True, True]
    assert {tuple(limit["name"] for limit in d["limits"]) for d in found} == {("api", "all")}
    assert [d["limits"][0]["remaining"] for d in found] == [1, 1, 0, 0, 0, 0]


def test_compare_gives_each_algorithm_a_repeated_request_once(rules):
    report = replay(rules, REPEATS, "--compare").stdout
    rows = {tuple(line.split()) for line in report.splitlines()}
    assert "6 requests: 5 allowed, 1 denied" in report
    assert ("*", "fixed_window", "2", "1", "0", "(0.00%)", "0", "(0.00%)", "2") in rows


def test_repeated_requests_meet_penalties_refunds_candidates_and_limits_that_follow(tmp_path):
    rules = tmp_path / "all.yaml"
    rules.write_text("""\
version: 1
standing: { by: [user], file: standing.db }
penalties:
  - { name: guessing, key: [user], strikes: 3/h, for: [api], outcomes: [401, 503],
      ladder: [throttle 1h], forgive: 1d }
adaptive:
  backend: { signals: { p99: outcomes }, table: [{ p99: 1s, x: 80% }] }
limits:
  - { name: spare, match: { plan: none }, key: [], rate: 1/min, borrow: true }
  - { name: api, key: [user], rate: 3/min, refund_on: [503], refund_cap: 100%,
      adaptive: backend, candidate: 1/min, pool: spare }
""", encoding="utf-8")
    done = replay(rules, REPEATS, "--compare")
    assert done.returncode == 0, done.stderr
    assert "6 requests: 6 allowed, 0 denied" in done.stdout


@pytest.mark.parametrize("options", [[], ["--decisions", "-"], ["--compare"]])
def test_an_output_that_cannot_be_written_is_a_failure(rules, options):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([weir_path(), "replay", "--config", rules, *options, "-"],
                              input=requests(1, 2).encode(), stdout=full, stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr


def test_decisions_to_a_full_disk_are_a_failure(rules):
    done = replay(rules, requests(1), "--decisions", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == "weir: /dev/full: No space left on device\n"


def test_a_reader_that_goes_away_ends_the_replay(rules):
    with subprocess.Popen([weir_path(), "replay", "--config", rules, "--decisions", "-", "-"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as program:
        program.stdout.close()
        try:
            program.stdin.write(requests(*range(1, 50000)).encode())
            program.stdin.close()
        except BrokenPipeError:
            pass
        assert program.wait(60) in (-signal.SIGPIPE, 1)


def test_what_cannot_be_opened_is_reported(rules, tmp_path):
    missing = tmp_path / "missing"
    done = run_weir("replay", "--config", rules, missing)
    assert (done.returncode, done.stderr) == (1, f"weir: {missing}: No such file or directory\n")
    done = run_weir("replay", "--config", missing, "-", stdin="")
    assert done.returncode == 1 and str(missing) in done.stderr
    done = replay(rules, "", "--decisions", tmp_path / "no" / "folder")
    assert done.returncode == 1 and "No such file or directory" in done.stderr


def test_rules_with_errors_replay_nothing(tmp_path):
    rules = tmp_path / "bad.yaml"
    rules.write_text("version: 1\nlimits:\n  - {name: a, key: [], rate: 1/min, typo: 1}\n",
                     encoding="utf-8")
    done = replay(rules, requests(1))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"{rules}:3:")


def test_the_same_trace_always_gives_the_same_result(rules):
    trace = "".join(requests(60 + i / 100, user=f"u{i % 7}") for i in range(500))
    first, second = (replay(rules, trace, "--decisions", "-", "--compare") for _ in range(2))
    assert (first.stdout, first.stderr) == (second.stdout, second.stderr)


def test_whole_seconds_of_a_log_are_spread_and_deny_as_the_true_times_do(tmp_path):
    """Four clients with three requests a second each: under a limit of 15 a second for all nobody
    is denied. Their log says whole seconds, as if they all came at once when one begins."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("limits:\n- {name: all, key: [], rate: 15/s}\n"
                     "- {name: one, key: [client.ip], rate: 5/s, algorithm: sliding_log}\n",
                     encoding="utf-8")
    times = sorted((i / 3 + ip / 13, ip) for i in range(300) for ip in range(4))
    exact = "".join(json.dumps({"t": f"{1078704349 + t:.9f}", "ip": f"192.0.2.{ip}"}) + "\n"
                    for t, ip in times)
    log = "".join(LOG_LINE.replace("192.0.2.1", f"192.0.2.{ip}").replace(
        "16:05:49", f"16:{5 + (49 + int(t)) // 60:02d}:{(49 + int(t)) % 60:02d}") + "\n"
        for t, ip in times)
    assert "1200 allowed, 0 denied" in replay(rules, exact).stdout
    found = replay(rules, log, "--utc").stdout
    assert "1200 allowed, 0 denied" in found
    assert "from 2004-03-08T00:05:49Z to 2004-03-08T00:07:28Z\n" in found


def test_an_empty_trace_is_a_report_of_nothing(rules):
    done = replay(rules, "", "--compare")
    assert done.returncode == 0
    assert done.stdout.startswith("0 requests: 0 allowed, 0 denied\n")
    assert "nothing to compare" in done.stdout
    assert os.linesep + "api" in done.stdout


def clf(client, t):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(t))
    return f'{client} - - [{stamp}] "POST /login HTTP/1.1" 200 1\n'


PER_CLIENT = """\
version: 1
limits:
  - {name: login, key: [client.ip], algorithm: sliding_log, rate: [5/min, 92/h]}
"""


def test_a_file_that_is_given_twice_is_an_error(tmp_path):
    log, other, link = tmp_path / "access.log", tmp_path / "other.log", tmp_path / "link.log"
    rules = tmp_path / "rules.yaml"
    rules.write_text(PER_CLIENT, encoding="utf-8")
    for each in (log, other):
        each.write_text(clf("192.0.2.1", 1_700_000_000), encoding="ascii")
    link.symlink_to(log)
    for twice in log, link:
        for mode in ("-c", rules), ("--suggest",):
            done = run_weir("replay", *mode, log, other, twice)
            assert done.returncode == 1
            assert done.stderr.strip() == f"weir: {twice}: the same file as {log}: give it once"
    assert run_weir("replay", "-c", rules, log, other).stdout.startswith("2 requests: 2 allowed")


def test_rotated_files_in_the_order_of_the_shell_are_read_in_the_order_of_time(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(PER_CLIENT, encoding="utf-8")
    start, names = 1_700_000_000, ["access.log", "access.log.1", "access.log.2"]
    for i, name in enumerate(reversed(names)):
        (tmp_path / name).write_text("".join(clf("192.0.2.1", start + i * 24000 + j * 40) for j in range(600)),
                                     encoding="ascii")
    found = []
    for order in names, names[::-1]:
        files = [tmp_path / name for name in order]
        done = run_weir("replay", "-c", rules, *files)
        suggested = run_weir("replay", "--suggest", *files).stdout
        assert done.returncode == 0 and done.stdout.startswith("1800 requests: 1800 allowed, 0 denied")
        lines = done.stdout.splitlines()
        assert lines[2:5] == [f"read {tmp_path / name}: common, 600 lines" for name in names[::-1]]
        note = "the files were read in the order of their first times, not in the order given"
        assert (note in lines) == (order is names) == (f"# {note}" in suggested.splitlines())
        found.append(suggested.replace(f"# {note}\n", ""))
    assert found[0] == found[1]
    one = tmp_path / "one.log"
    one.write_text("".join((tmp_path / name).read_text(encoding="ascii") for name in names), encoding="ascii")
    done = run_weir("replay", "-c", rules, one)
    assert done.returncode == 1 and done.stdout == ""
    assert "line 601 was written" in done.stderr and "--allow-disorder" in done.stderr
    done = run_weir("replay", "-c", rules, "--allow-disorder", one)
    assert done.returncode == 0 and "1200 lines of the trace stand below ones that were written later" in done.stdout


def test_ports_brackets_and_lists_make_no_new_callers(tmp_path):
    rules, log = tmp_path / "rules.yaml", tmp_path / "access.log"
    rules.write_text(PER_CLIENT, encoding="utf-8")
    clients = [f"203.0.113.9:{40000 + i}" for i in range(100)] + ["203.0.113.9", "203.0.113.9, 10.0.0.2"]
    clients += ["[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1", "198.51.100.7_1", "name.example.org"]
    log.write_text("".join(clf(client, 1_700_000_000 + i) for i, client in enumerate(clients)), encoding="ascii")
    report = run_weir("replay", "-c", rules, log).stdout
    assert re.search(r"^login +107 +\d+ +\d+ +4$", report, re.M), report
    assert "1 of these names look like addresses: 198.51.100.7_1\n" in report
    assert "2 clients are names of hosts" in report and "1 clients are from lists of addresses" in report


def test_a_format_that_weir_does_not_know_is_refused_with_the_list(rules):
    done = replay(rules, "", "--format", "iis")
    assert done.returncode == 2
    assert "auto, jsonl, combined, common, vhost_combined, nginx-main, ingress-nginx, traefik-clf, traefik-json, " \
        "caddy-json or haproxy, not 'iis'" in done.stderr


def test_standard_input_is_one_trace(rules):
    done = run_weir("replay", "--config", rules, "-", "-", stdin=requests(1))
    assert done.returncode == 2 and "standard input" in done.stderr
