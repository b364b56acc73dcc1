#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a limit costs a Flask application: weir beside flask-limiter (memory), CPU time of a request.

    bench/bindings/python.py [--build build] [--requests 2000] [--runs 9]

Calls the applications as a WSGI server does, in one process for each of them, all with the same view
and one limit by address that denies nobody. The applications take turns; the cost is what a request
takes beside the application without a limit: the median of the runs. Also prints what a check alone
takes. flask-limiter comes from PyPI into a virtual environment, beside Debian's Flask; where there is
no registry, weir is measured alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLASK_LIMITER = "flask-limiter==4.1.1"
RULES = """
version: 1
on_store_error: open
limits:
  - { name: api, match: { path: /hello }, key: [client.ip], rate: 1000000000/h, algorithm: %s }
"""
ENVIRON = {"REQUEST_METHOD": "GET", "PATH_INFO": "/hello", "REMOTE_ADDR": "192.0.2.1",
           "HTTP_HOST": "localhost", "SERVER_NAME": "localhost", "SERVER_PORT": "80",
           "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http", "wsgi.version": (1, 0),
           "wsgi.multithread": False, "wsgi.multiprocess": True, "wsgi.run_once": False,
           "wsgi.errors": sys.stderr}


# --- In a process of an application --------------------------------------------------------------


def application(name, rules):
    import flask
    app = flask.Flask("app")
    app.get("/hello")(lambda: "hello")
    if name.startswith("flask-limiter"):
        from flask_limiter import Limiter
        from flask_limiter.util import get_remote_address
        Limiter(get_remote_address, app=app, default_limits=["1000000000/hour"],
                storage_uri="memory://", headers_enabled=True, strategy=name.split()[1])
    elif name.startswith("weir"):
        import weir
        import weir.flask
        import weir.wsgi
        limiter = weir.open(rules, state=str(rules) + ".state")
        if "WSGI" in name:
            return weir.wsgi.Middleware(app, limiter)
        weir.flask.Weir(limiter, app)
    return app


def serve(name, rules, requests):
    """For each line of the input: one run, its microseconds of CPU for each request."""
    app = application(name, Path(rules))

    def start(status, _headers, _exc_info=None):
        assert status == "200 OK", status

    def run():
        for _ in range(requests):
            body = app(dict(ENVIRON), start)
            b"".join(body)
            if hasattr(body, "close"):
                body.close()

    run()
    for _ in sys.stdin:
        began = time.process_time()
        run()
        print((time.process_time() - began) / requests * 1e6, flush=True)


def check_alone(rules):
    import weir
    limiter = weir.open(rules)
    attributes = {"method": "GET", "path": "/hello"}
    runs, count = [], 100000
    for _ in range(9):
        began = time.process_time()
        for _ in range(count):
            limiter.check(attributes, client="192.0.2.1")
        runs.append((time.process_time() - began) / count * 1e6)
    print(statistics.median(runs))


# --- The comparison ------------------------------------------------------------------------------


def flask_limiter(folder):
    """A python3 that has it; None: there is no registry."""
    python = f"{folder}/venv/bin/python3"
    for command in ([sys.executable, "-m", "venv", "--system-site-packages", f"{folder}/venv"],
                    [python, "-m", "pip", "install", "--quiet", "--no-input", "--timeout=20",
                     "--only-binary=:all:", "--disable-pip-version-check", FLASK_LIMITER]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"SKIPPED flask-limiter: {(done.stderr.strip() or 'no word').splitlines()[-1]}")
            return None
    return python


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(Path(options.build) / "bindings" / "python")}

    with tempfile.TemporaryDirectory() as folder:
        rules = {}
        for algorithm in "fixed_window", "sliding_window":
            rules[algorithm] = Path(folder) / f"{algorithm}.yaml"
            rules[algorithm].write_text(RULES % algorithm, encoding="utf-8")
        alone = subprocess.run([sys.executable, __file__, "--check", rules["fixed_window"]],
                               env=environment, stdout=subprocess.PIPE, check=True, text=True)
        python = flask_limiter(folder)
        names = {"no limit": sys.executable, "weir, WSGI middleware": sys.executable,
                 "weir, fixed_window": sys.executable, "weir, sliding_window": sys.executable}
        if python:
            names["flask-limiter fixed-window"] = python
            names["flask-limiter moving-window"] = python
        processes = {
            name: subprocess.Popen(
                [program, __file__, "--serve", name,
                 rules["sliding_window" if "sliding" in name else "fixed_window"],
                 str(options.requests)],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for name, program in names.items()}
        runs = {name: [] for name in processes}
        for _ in range(options.runs):
            for name, process in processes.items():
                process.stdin.write("\n")
                process.stdin.flush()
                runs[name].append(float(process.stdout.readline()))
        for process in processes.values():
            process.stdin.close()
            process.wait()
    print(f"a check alone: {float(alone.stdout):.2f} us")
    base = statistics.median(runs["no limit"])
    print(f"{'application':<30} {'us/request':>10} {'of it the limit':>16}")
    for name, each in runs.items():
        median = statistics.median(each)
        print(f"{name:<30} {median:>10.1f} {median - base:>16.1f}")


if sys.argv[1:2] == ["--serve"]:
    serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
elif sys.argv[1:2] == ["--check"]:
    check_alone(sys.argv[2])
else:
    main()
