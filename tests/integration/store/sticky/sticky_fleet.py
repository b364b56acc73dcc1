# SPDX-License-Identifier: Apache-2.0
"""A fleet without Redis: weir nodes with `sticky`, of which one counts each user. Windows outlive the
test, so that what is used is a sum."""

import json
from contextlib import ExitStack

from daemon.proxies import free_port
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import run_weir

RATE = 30
NAMES = ("a", "b", "c")
USERS = [f"user{i}" for i in range(12)]
TOKEN = "0123456789abcdef0123456789abcdef"


def limit(**parts):
    return {"name": "per-user", "key": ["user"], "algorithm": "fixed_window",
            "rate": f"{RATE}/300d"} | parts


class Fleet:
    """`with Fleet(folder, limit()) as fleet`: fleet["a"].check(...), fleet.admitted("a", "user1")."""

    def __init__(self, folder, *limits, tls=None, names=NAMES, options=(), **sticky):
        self.folder, self.limits = folder, limits or (limit(),)
        self.sticky = {"by": "user", "deadline": "5s", "token": TOKEN} | sticky
        self.tls, self.names, self.options = tls, names, options
        self.ports = {name: free_port() for name in names}
        self.stack = ExitStack()

    def peers(self, **other):
        scheme, host = ("rediss", "localhost") if self.tls else ("redis", "127.0.0.1")
        ports = self.ports | other
        return "".join(f"{name} {scheme}://{host}:{port}  # one\n" for name, port in ports.items())

    def rules(self, name, peers=None, **parts):
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "peers").write_text(peers or self.peers(), encoding="utf-8")
        redis = {"address": f"127.0.0.1:{self.ports[name]}", "token": TOKEN}
        if self.tls:
            cert, key = self.tls.sign("node")
            redis["tls"] = {"cert": str(cert), "key": str(key)}
            self.sticky["tls"] = {"ca": str(self.tls.cert)}
        return json.dumps({"version": 1, "server": {"redis": redis}, "limits": self.limits,
                           "sticky": self.sticky | {"self": name, "peers": "peers"}} | parts)

    def __enter__(self):
        with ExitStack() as stack:
            self.nodes = {}
            self.stack = stack
            for name in self.names:
                self.start(name)
            for name in self.names:
                self.wait_up(name)
            self.stack = stack.pop_all()
        return self

    def start(self, name, **parts):
        self.nodes[name] = self.stack.enter_context(
            Weir(self.folder / name, self.rules(name, **parts), "--workers", 2, *self.options))

    def __exit__(self, *_):
        self.stack.close()

    def __getitem__(self, name):
        return self.nodes[name]

    def up(self, name, peer):
        return self.nodes[name].metrics().get(f'weir_peer_up{{peer="{peer}"}}') == 1

    def wait_up(self, name, peers=None):
        for peer in peers or self.names:
            if peer != name:
                wait_until(lambda peer=peer: self.up(name, peer), what=f"{peer} of {name}")

    def home(self, user, by="a"):
        done = run_weir("explain", "--config", str(self.nodes[by].config), "--attribute", f"user={user}")
        (line,) = (line for line in done.stdout.splitlines() if line.startswith("    node "))
        return line.split()[1]

    def user_of(self, home):
        return next(user for user in (f"of-{home}-{i}" for i in range(1000)) if self.home(user) == home)

    def statuses(self, name, user, requests, **fields):
        with self.nodes[name].client() as client:
            return [client.check(attributes={"user": user}, **fields).status for _ in range(requests)]
