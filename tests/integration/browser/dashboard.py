# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a browser, and servers for it."""

import contextlib
from pathlib import Path

from browser.chromium import Page
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

from selenium.webdriver.common.keys import Keys

SHOTS = Path(weir_path()).parent / "screenshots" / "dashboard"
LIMITS = [
    {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "20/hour", "burst": 20},
    {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "3/hour"},
    {"name": "search", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "1000/hour"},
]


@contextlib.contextmanager
def start(browser, folder, limits=LIMITS, admin=None, env=None, **parts):
    """A server, which the browser leaves before it stops: else its console would say so."""
    admin = {"address": "127.0.0.1:0"} | (admin or {})
    with Weir(folder, rules_of(*limits, server={"admin": admin}, **parts), "--workers", "2",
              admin=None, env=env) as weir:
        try:
            yield weir
        finally:
            browser.get("about:blank")


def traffic(weir, times=5):
    """Some requests, of which three of ann's are denied at the login."""
    with weir.client() as client:
        for i in range(times):
            for user in ("ann", "bob", "<b>eve</b>"):
                client.check(path="/search/shoes", ip="192.0.2.1", attributes={"user": user})
        for _ in range(6):
            client.check(path="/login", ip="192.0.2.7", attributes={"user": "ann"})


class Dashboard(Page):
    """The dashboard in a browser, by what people see and press."""

    def __init__(self, browser, weir, address=None):
        super().__init__(browser, f"http://{address or weir.admin_address}/")

    def open(self, state=""):
        self.load(state)
        return self.wait_ready()

    def text(self, name):
        return self.run("return document.getElementById(arguments[0])?.textContent", name)

    def rows(self, name):
        return self.run("return [...document.querySelectorAll('#' + arguments[0] + ' tr')]"
                        ".map((row) => [...row.cells].map((cell) => cell.textContent))", name)

    def first(self, name, cells=1):
        """The beginning of a table's first row; while there is none, of an empty one."""
        return ([*self.rows(name), []][0] + [""] * cells)[:cells]

    def see(self, condition, what):
        wait_until(condition, what=f"{what}; the page has {self.text('main')!r}")


def press(page, name):
    page.run("arguments[0].scrollIntoView({block: 'center'})", page.find(name))
    page.find(name).click()


def fill(page, name, text):
    field = page.find(name)
    field.clear()
    field.send_keys(text)


def log_in(page, token="s3cret", name=None):
    page.see(lambda: page.text("token") is not None, "the login")
    if name:
        fill(page, "person", name)
    fill(page, "token", token + Keys.ENTER)
