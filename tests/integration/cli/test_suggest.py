# SPDX-License-Identifier: Apache-2.0
"""`weir replay --suggest`: limits from recorded traffic, and that they are what they say."""

import json
import os
import random
import re
import subprocess

import pytest

from model.program import run_weir, weir_path

START = 1700000000


def line(t, ip="192.0.2.1", path="/", method="GET", **more):
    return json.dumps({"t": f"{t:.6f}", "ip": ip, "path": path, "method": method, **more})


def traffic(seed=1, requests=6000, keys=120):
    """Two hours; few clients ask for much, most for little, on some routes."""
    rng = random.Random(seed)
    lines = []
    for _ in range(requests):
        t = START + rng.random() * 7200
        ip = f"198.51.100.{int(keys * rng.random() ** 3)}"
        path = rng.choice(["/search", f"/users/{rng.randrange(1000)}",
                           f"/users/{rng.randrange(50)}/orders/{rng.randrange(9)}"])
        lines.append((t, line(t, ip, path, rng.choice(["GET", "GET", "POST"]))))
    return "".join(text + "\n" for _, text in sorted(lines))


def often(paths):
    """Each of them often enough to be a route of its own, and no page."""
    return "".join(line(START + i + j / 60, path=path, method="POST") + "\n"
                   for j in range(60) for i, path in enumerate(paths))


def suggest(trace, *options):
    done = run_weir("replay", "--suggest", *options, "-", stdin=trace)
    assert done.returncode == 0, done.stderr
    return done


def rates(rules):
    """name -> the text of its rate"""
    return dict(re.findall(r"- name: (\S+)\n(?:    match:.*\n)?    key:.*\n    rate: (.*)", rules))


def replay(tmp_path, rules, trace, *options):
    file = tmp_path / "trace"  # whose size says how much memory is needed
    file.write_text(trace, encoding="utf-8")
    return run_weir("replay", "-c", write(tmp_path, rules), *options, file)


def write(tmp_path, text):
    path = tmp_path / "suggested.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("options", [(), ("--percentile", "50"), ("--percentile", "99.9"),
                                     ("--key", "client.ip/24,method"), ("--top", "1")])
def test_what_is_printed_is_a_rules_file(tmp_path, options):
    done = suggest(traffic(), *options)
    checked = run_weir("validate", write(tmp_path, done.stdout))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "everything" in rates(done.stdout)


def test_the_highest_percentile_denies_nobody_and_one_less_somebody(tmp_path):
    trace = traffic()
    rules = suggest(trace, "--percentile", "100", "--margin", "0").stdout
    replayed = replay(tmp_path, rules, trace)
    assert "6000 allowed, 0 denied" in replayed.stdout
    for count, unit in re.findall(r"(\d+)/(\w+)", rates(rules)["everything"]):
        less = f"limits:\n- {{name: less, key: [client.ip], rate: {int(count) - 1}/{unit}}}\n"
        assert " 0 denied" not in replay(tmp_path, less, trace).stdout


def test_the_keys_of_repeated_requests_are_those_of_their_limits(tmp_path):
    trace = "".join(line(START + i, f"192.0.2.{i % 7}", idempotency_key=f"k{i // 14 * 7 + i % 7}")
                    + "\n" for i in range(700))
    rules = suggest(trace).stdout
    assert re.search(r"denies 0 of 700 requests .*,\n# and something to 0 of 7 keys", rules)
    assert "700 allowed, 0 denied" in replay(tmp_path, rules, trace).stdout


def test_static_files_pages_and_rare_routes_are_left_to_everything(tmp_path):
    reads = [line(START + i, f"198.51.100.{i % 90}", path)
             for i in range(900) for path in ("/logo.PNG", "/docs/intro", "/x/app.v2.js")]
    posts = [line(START + i, f"198.51.100.{i % 90}", "/login", "POST") for i in range(90)]
    polls = [line(START + i, f"198.51.100.{i % 3}", "/poll") for i in range(90)]
    rare = [line(START, path="/rare", method="POST")] * 49
    rules = suggest("\n".join(rare + reads + posts + polls), "--allow-disorder").stdout
    assert set(rates(rules)) == {"get-docs-intro", "post-login", "get-poll", "everything"}
    hour_long = [line(START + i * 60, f"198.51.100.{i % 90}", "/docs/intro") for i in range(900)]
    rules = suggest("\n".join(rare + hour_long + posts), "--allow-disorder").stdout
    assert set(rates(rules)) == {"post-login", "everything"}
    assert "routes of 0 static files, 1 pages" in rules and "1 others with fewer" in rules


def noisy_routes(routes=8, keys=400, loud=4):
    """On each route other keys are loud: one percent of the keys, and all others whisper."""
    lines = []
    for i in range(keys):
        for route in range(routes):
            count = 40 if i // loud == route else 1 + i % 2
            lines += [(START + i * 3 + j / 50, f"203.0.{i // 200}.{i % 200}", f"/r{route}")
                      for j in range(count)]
    return "".join(line(t, ip, path, "POST") + "\n" for t, ip, path in sorted(lines))


@pytest.mark.parametrize("percentile", ["90", "95", "99", "99.5"])
@pytest.mark.parametrize("margin", ["0", "50"])
def test_the_percentile_is_of_the_file_as_a_whole(tmp_path, percentile, margin):
    trace = noisy_routes()
    rules = suggest(trace, "--percentile", percentile, "--margin", margin).stdout
    assert len(rates(rules)) == 9
    result = re.search(r"denies (\d+) of (\d+) requests .*,\n# and something to (\d+) of (\d+) keys",
                     rules)
    denied, requests, denied_keys, keys = map(int, result.groups())
    assert keys == 400 and denied_keys <= 400 * (100 - float(percentile)) / 100
    replayed = replay(tmp_path, rules, trace)
    assert f"{requests} requests: {requests - denied} allowed, {denied} denied" in replayed.stdout


def test_a_margin_stands_on_top_in_round_numbers():
    lines = [line(START + i / 100, f"192.0.2.{key}") for i in range(111) for key in range(50)]
    trace = "\n".join(lines + [line(START + 7200)])
    assert rates(suggest(trace, "--margin", "0", "--top", "0").stdout) == {
        "everything": "[101/s, 111/h]"}
    assert rates(suggest(trace, "--top", "0").stdout) == {"everything": "[160/s, 170/h]"}
    assert rates(suggest(trace, "--top", "0", "--margin", "100").stdout) == {
        "everything": "[210/s, 230/h]"}


def test_addresses_of_one_network_are_one_key():
    rules = suggest("\n".join(line(START + i, f"2001:db8::{i}") for i in range(60))).stdout
    assert "everything: 60 requests, 1 keys" in rules
    assert "key: [client.ip/64]" in rules


def test_a_trace_without_clients_is_counted_together(tmp_path):
    trace = "".join(json.dumps({"t": START + i / 10, "cost": 1000 + i}) + "\n" for i in range(900))
    rules = suggest(trace).stdout
    assert rates(rules).keys() == {"everything"} and "key: []" in rules
    assert "denies 0 of 900 requests" in rules
    file = tmp_path / "trace"
    file.write_text(trace, encoding="utf-8")
    assert run_weir("replay", "--suggest", file).stdout == rules
    with open(file, encoding="utf-8") as standard_input:  # and can be read again unchanged
        done = subprocess.run([weir_path(), "replay", "--suggest", "-"], stdin=standard_input,
                              capture_output=True, text=True, check=True)
    assert done.stdout == rules


def test_a_named_pipe_is_not_run(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([weir_path(), "replay", "--suggest", str(fifo)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        fifo.write_text(line(START) + "\n", encoding="utf-8")
        rules = process.communicate()[0]
    assert process.returncode == 0 and "Not run on its own trace" in rules


@pytest.mark.parametrize("percentile", ["50", "90", "95", "99"])
def test_as_many_keys_are_denied_as_it_says(tmp_path, percentile):
    trace = traffic(seed=3)
    rules = suggest(trace, "--percentile", percentile).stdout
    result = re.findall(r"# (\d+)/(\w+) would have denied (\d+) of (\d+) keys", rules)[-1]
    alone = f"limits:\n- {{name: all, key: [client.ip], rate: {result[0]}/{result[1]}}}\n"
    replayed = replay(tmp_path, alone, trace, "--top", "10000")
    denied = re.findall(r"^all +\d+ +\d+ +client", replayed.stdout, re.MULTILINE)
    assert len(denied) == int(result[2])
    assert len(denied) <= int(result[3]) * (100 - int(percentile)) / 100


def test_who_asked_for_most_is_named():
    lines = [line(START + i, f"192.0.2.{i % 200}") for i in range(400)]
    lines += [line(START + 400 + i / 100, "203.0.113.9") for i in range(50)]
    rules = suggest("\n".join(lines)).stdout
    assert re.search(r"would have denied 1 of 201 keys \(0\.50 %\):\n  #   "
                     r"client\.ip=203\.0\.113\.9 \(50\)", rules)


def test_numbers_and_uuids_are_one_route():
    paths = ["/users/1", "/users/22/orders/3", "/users/4/orders/5/", "/users/alice",
             "/files/6ba7b810-9dad-11d1-80b4-00c04fd430c8?x=1", "/files/77",
             "/objects/507f1f77bcf86cd799439011", "/facade", "/:odd/*", "//users/./9"]
    rules = suggest(often(paths)).stdout
    found = re.findall(r'path: "(.*)"', rules)
    assert sorted(found) == ["/:id/:id2", "/facade", "/files/:id", "/objects/:id", "/users/:id",
                             "/users/:id/orders/:id2", "/users/:id/orders/:id2/", "/users/alice"]


def test_names_are_different_where_routes_are(tmp_path):
    paths = ["/a-b", "/a/b", "/a.b", "/a_b", "/A/B", "/" + "x" * 150, "/" + "x" * 151,
             "/everything", "/é"]
    trace = often(paths).replace('"path": "/everything", "method": "POST"',
                                 '"path": "/everything", "method": ""')
    rules = suggest(trace).stdout
    assert len(rates(rules)) == len(paths) + 1
    assert run_weir("validate", write(tmp_path, rules)).returncode == 0


def test_requests_without_a_route_count_in_everything(tmp_path):
    trace = "\n".join([line(START, path="/" + "y" * 500), line(START + 1, method="ODD*"),
                       json.dumps({"t": START + 2, "ip": "192.0.2.1"})])
    rules = suggest(trace).stdout
    assert "3 requests had no route" in rules
    assert "everything: 3 requests, 1 keys" in rules
    assert run_weir("validate", write(tmp_path, rules)).returncode == 0


def test_costs_are_what_is_counted():
    trace = "\n".join(line(START + 10 * i, cost=700) for i in range(5))
    rules = suggest(trace, "--top", "0", "--margin", "0").stdout
    assert "rates are in their units" in rules
    assert rates(rules) == {"everything": "700/s"}


def test_a_window_longer_than_the_trace_is_left_out():
    def trace(seconds):
        return "\n".join(line(START + i * 7 % seconds, f"192.0.2.{i}") for i in range(200))
    assert "/h" not in rates(suggest(trace(300), "--allow-disorder").stdout)["everything"]
    assert suggest(trace(300), "--allow-disorder").stdout.count("most in 1 h") > 0


def test_dry_runs_and_requests_without_the_key_are_left_out():
    trace = "\n".join([line(START, dry_run=True), line(START),
                       line(START, attributes={"user": "alice"})])
    rules = suggest(trace, "--key", "user").stdout
    assert "from 2 requests" in rules
    assert "1 requests had no such key" in rules
    done = run_weir("replay", "--suggest", "--key", "org", "-", stdin=trace)
    assert done.returncode == 1
    assert "no request of the trace has the key org" in done.stderr


def test_the_same_trace_gives_the_same_output():
    first, second = suggest(traffic()), suggest(traffic())
    assert (first.stdout, first.stderr) == (second.stdout, second.stderr)


def test_more_keys_than_fit_become_a_sample():
    lines = []
    for i in range(8000):
        lines.append(line(START + i, f"10.{i // 256}.{i % 256}.1"))
        lines += [line(START + i, f"10.{i // 256}.{i % 256}.1")] * (i % 10 == 0)
    rules = suggest("\n".join(lines), "--max-keys", "2000", "--top", "1").stdout
    share = int(re.search(r"a sample, one of (\d+)", rules).group(1))
    keys = int(re.search(r"everything: \d+ requests, (\d+) keys", rules).group(1))
    assert share in (8, 16)  # each key is there twice: for its route and for everything
    assert abs(keys * share - 8000) < 1600
    over = re.search(r"most in 1 h .*\n.*keys denied +(\d+)", rules).group(1)
    assert abs(int(over) / keys - 0.1) < 0.05


def test_a_histogram_stands_on_standard_error():
    lines = [line(START + i, "192.0.2.1") for i in range(30)]
    lines += [line(START + i * 60, f"192.0.2.{10 + i}") for i in range(20)]
    bars = suggest("\n".join(lines), "--top", "0", "--margin", "0").stderr
    found = re.findall(r"(\d+) \.\. (\d+) +([|>])(#*) +(\d+)", bars)
    assert ("1", "1", "|", "#" * 40, "20") in found
    assert ("16", "31", ">", "##", "1") in found


def test_malformed_lines_are_reported_and_left_out():
    done = run_weir("replay", "--suggest", "-", stdin=line(START) + "\n{bad\n")
    assert done.returncode == 1
    assert "(standard input):2:" in done.stderr
    assert "everything: 1 requests" in done.stdout
    assert suggest(line(START) + "\n{bad\n", "--skip-bad").returncode == 0


def test_an_access_log_gives_names_back():
    log = 'a.example.org - - [07/Mar/2004:16:05:49 -0800] "GET /x HTTP/1.1" 200 1\n'
    quiet = "".join(log.replace("a.", f"b{i}.") for i in range(150))
    rules = suggest(log * 9 + quiet).stdout
    assert "client.ip=a.example.org/64 (9)" in rules


@pytest.mark.parametrize("options, text", [
    (("--percentile", "49"), "--percentile"), (("--percentile", "100.1"), "--percentile"),
    (("--percentile", "9x"), "--percentile"), (("--percentile", "99.99"), "--percentile"),
    (("--margin", "1001"), "--margin"), (("--margin", "x"), "--margin"),
    (("--key", "a]"), "--key"), (("--key", ""), "--key"), (("--max-keys", "0"), "--max-keys"),
    (("--config", "x"), "--suggest takes no rules"), (("--compare",), "--suggest takes no rules"),
])
def test_options_that_make_no_sense_are_refused(options, text):
    done = run_weir("replay", "--suggest", *options, "-", stdin="")
    assert done.returncode == 2
    assert text in done.stderr


def test_its_options_want_suggest(tmp_path):
    done = run_weir("replay", "-c", write(tmp_path, "limits: []\n"), "--key", "user", "-", stdin="")
    assert done.returncode == 2
    assert "go with --suggest" in done.stderr


def test_a_key_that_is_none_is_an_error():
    done = run_weir("replay", "--suggest", "--key", "path.id", "-", stdin=line(START))
    assert done.returncode == 1
    assert "--key path.id" in done.stderr
