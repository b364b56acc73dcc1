# SPDX-License-Identifier: Apache-2.0
"""A real `weir serve` for a test: free ports, its own folder, ended by its process id."""

import json
import os
import re
import resource
import signal
import subprocess
import threading
from pathlib import Path

from daemon.http import Client
from daemon.waiting import SECONDS_MAX
from model.program import weir_path


class Weir:
    """Starts on entering; SIGKILLs what still runs on leaving.

    `rules` is the text of the rules file (None: no file). What it logs is read by a thread, so that
    a test waits for an event, never for a time."""

    def __init__(self, folder, rules=None, *options, env=None, http="127.0.0.1:0",
                 admin="127.0.0.1:0", wait=True, prefix=(), fds=()):
        self.folder = Path(folder)
        self.config = self.folder / "weir.yaml"
        self.admin_token = None  # of the rules, where rules_of has made them
        self.lines, self.changed = [], threading.Condition()
        command = [*prefix, weir_path(), "serve"]
        if rules is not None:
            self.write_rules(rules)
            command += ["--config", str(self.config)]
        if http:
            command += ["--http", http]
        if admin:
            command += ["--admin", admin]
        self.command = command + list(map(str, options))
        self.env = None if env is None else os.environ | env
        self.wait_for_start = wait
        self.fds = fds  # that it inherits
        self.process = self.reader = None
        self.http_address = self.admin_address = self.grpc_address = None

    def write_rules(self, rules):
        """Replaces the file as deployment tools do: written beside it, then renamed."""
        beside = self.config.with_suffix(".new")
        beside.write_text(rules, encoding="utf-8")
        beside.rename(self.config)
        match = re.search(r'"admin": {[^}]*"token": "(\w+)"', rules)
        self.admin_token = match and match[1]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.lines.clear()
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True,
                                        env=self.env, pass_fds=self.fds)
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        if self.wait_for_start:
            self.wait_event("started")
            addresses = {front: address for front, address in re.findall(
                r"event=listening front=(\w+) address=(\S+)", self.text())}
            self.http_address = addresses.get("http")
            self.admin_address = addresses.get("admin")
            self.grpc_address = addresses.get("grpc")

    def _read(self, process):
        for line in process.stderr:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.lines.append("")  # the end
            self.changed.notify_all()

    def text(self):
        with self.changed:
            return "".join(self.lines)

    def wait_event(self, event, count=1):
        """Waits until the log has `count` lines of an event; returns the last of them."""
        pattern = re.compile(rf'(event={event}\b|"event":"{event}")')

        def found():
            return [line for line in self.lines if pattern.search(line)]

        with self.changed:
            done = self.changed.wait_for(
                lambda: len(found()) >= count or (self.lines and self.lines[-1] == ""),
                timeout=SECONDS_MAX)
            lines = found()
            assert done and len(lines) >= count, f"no {event}: {''.join(self.lines)}"
            return lines[count - 1]

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=SECONDS_MAX):
        """The exit status, once it has ended by itself."""
        status = self.process.wait(timeout)
        self.reader.join(timeout)
        return status

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            self.reader.join()
        assert not self.reports(), "\n".join(self.reports())

    def reports(self):
        """What sanitizers have found, where weir was built with them."""
        return [line for line in self.lines if "runtime error: " in line or "Sanitizer: " in line]

    def reload(self):
        """SIGHUP; returns the line that tells how it went."""
        before = self.text()
        done = len(re.findall(r"event=(?:reloaded|reload_failed)\b", before))
        self.signal(signal.SIGHUP)
        return self.wait_event("(?:reloaded|reload_failed)", done + 1)

    # --- Asking it -------------------------------------------------------------------------------

    def client(self, **options):
        return Client(self.http_address, **options)

    def admin(self, **options):
        """A client of the admin listener, with its token."""
        fields = {"Authorization": "Bearer " + self.admin_token} if self.admin_token else None
        return Client(self.admin_address, fields=fields, **options)

    def check(self, **fields):
        """One check over a connection of its own; the answer, with `body` parsed."""
        with self.client() as client:
            return client.check(**fields)

    def metrics(self):
        """All metrics: {name{labels}: value}."""
        with self.admin() as client:
            lines = client.request("GET", "/metrics").body.decode().splitlines()
        return {name: float(value) for name, _, value in
                (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def memory_bytes(weir):
    """What a running server has in memory."""
    with open(f"/proc/{weir.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def rules_of(*limits, server=None, **parts):
    """The text of a rules file; JSON is YAML."""
    document = {"version": 1, "limits": list(limits), **parts}
    if server is not None:
        document["server"] = server
    return json.dumps(document)
