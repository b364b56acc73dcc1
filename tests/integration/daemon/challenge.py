# SPDX-License-Identifier: Apache-2.0
"""A weir with a challenge, and a client that solves its puzzles."""

import hashlib
import html
import itertools
import re
import urllib.parse

from daemon.http import Client
from daemon.weir import Weir, rules_of

PATH = "/.weir/challenge"
PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = "application/x-www-form-urlencoded"
KEY = "0123456789abcdef" * 4

# Who has passed meets one limit, who has not the other.
LIMITS = [
    {"name": "passed", "match": {"challenge": "passed"}, "key": ["client.ip"], "rate": "1000/h"},
    {"name": "unproven", "unless": ["passed"], "key": ["client.ip"], "rate": "1/h"},
]


class ChallengeWeir(Weir):
    """Its challenge listener is at `challenge_address`."""

    def __init__(self, folder, keys=KEY, limits=None, store=None, server=None, state=None,
                 score=None, **section):
        folder.mkdir(exist_ok=True)
        self.key_file = folder / "challenge.key"
        self.key_file.write_text(keys + "\n", encoding="ascii")
        self.section = {"listen": "127.0.0.1:0", "secret_file": "challenge.key", "difficulty": 8,
                        **section}
        self.limits = LIMITS if limits is None else limits
        self.challenge_address = None
        parts = {"challenge": self.section} | ({"store": store} if store else {})
        parts |= {"score": score} if score else {}
        parts |= {"server": server} if server else {}
        parts |= {"state": state} if state else {}
        http = None if server and "http" in server else "127.0.0.1:0"
        super().__init__(folder, rules_of(*self.limits, **parts), http=http)

    def start(self):
        super().start()
        self.challenge_address = self.front_address("challenge")

    def front_address(self, front):
        return re.search(rf"event=listening front={front} address=(\S+)", self.text())[1]

    def forget(self, limit):
        """Removes the state of a limit whose key is []."""
        with self.admin() as client:
            assert client.request("DELETE", f"/v1/limits/{limit}/state").status in (200, 404)

    def challenge(self, method="GET", target=PATH, fields=None, body=b""):
        with Client(self.challenge_address) as client:
            return client.request(method, target, fields or {}, body)

    def post(self, values, fields=None):
        return self.challenge("POST", PATH, {"Content-Type": FORM, **(fields or {})},
                              urllib.parse.urlencode(values).encode())

    def auth(self, fields=None):
        with self.client() as client:
            return client.request("GET", "/v1/auth", fields or {})


def solves(puzzle, solution, difficulty):
    digest = hashlib.sha256(f"{puzzle}:{solution}".encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - difficulty) == 0


def solve(puzzle, difficulty, right=True):
    """The first number that is a solution, or is none."""
    return next(number for number in itertools.count()
                if solves(puzzle, number, difficulty) == right)


def form_of(page):
    """What the form of a page says: its fields and its difficulty."""
    text = page.decode()
    values = {name: html.unescape(value) for name, value in
              re.findall(r'name="(\w+)" value="([^"]*)"', text)}
    return values, int(re.search(r'data-difficulty="(\d+)"', text)[1])
