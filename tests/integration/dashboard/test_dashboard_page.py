# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real Chromium: every view, with screenshots in build/screenshots/dashboard."""

from pathlib import Path

import pytest

from browser.chromium import (complaints, needs_chromium, open_browser, requested, set_screen,
                              take_screenshot)
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

pytestmark = needs_chromium

SHOTS = Path(weir_path()).parent / "screenshots" / "dashboard"
LIMITS = [
    {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "20/hour", "burst": 20},
    {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "3/hour"},
    {"name": "search", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "1000/hour"},
]


def start(folder, limits=LIMITS, admin=None, options=(), **parts):
    admin = {"address": "127.0.0.1:0"} | (admin or {})
    return Weir(folder, rules_of(*limits, server={"admin": admin}, **parts), "--workers", "2",
                *options, admin=None)


def traffic(weir, times=5):
    """Some requests, of which three of ann's are denied at the login."""
    with weir.client() as client:
        for i in range(times):
            for user in ("ann", "bob", "<b>eve</b>"):
                client.check(path="/search/shoes", ip="192.0.2.1", attributes={"user": user})
        for _ in range(6):
            client.check(path="/login", ip="192.0.2.7", attributes={"user": "ann"})


class Page:
    """The dashboard in a browser, by what people see and press."""

    def __init__(self, browser, weir):
        self.browser, self.url = browser, f"http://{weir.admin_address}/"

    def open(self, state=""):
        self.browser.get("about:blank")
        self.browser.get(self.url + state)
        wait_until(lambda: self.run("return document.documentElement.dataset.ready"),
                   what="the dashboard")
        return self

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, name):
        return self.browser.find_element("id", name)

    def text(self, name):
        return self.run("return document.getElementById(arguments[0])?.textContent", name)

    def rows(self, name):
        return self.run("return [...document.querySelectorAll('#' + arguments[0] + ' tr')]"
                        ".map((row) => [...row.cells].map((cell) => cell.textContent))", name)

    def see(self, condition, what):
        wait_until(condition, what=f"{what}; the page has {self.text('main')!r}")


@pytest.fixture(scope="module", name="browser")
def fixture_browser(tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("chromium"), requests=True)
    yield browser
    browser.quit()


@pytest.fixture(autouse=True)
def fixture_clean(browser):
    """Each test asks nobody but its server, and leaves a clean console, in which Chromium reports
    what a Content-Security-Policy has blocked."""
    complaints(browser)
    requested(browser)
    yield
    assert not [url for url in requested(browser)
                if not url.startswith(("http://127.0.0.1:", "data:", "about:", "chrome"))]
    assert not [text for text in complaints(browser) if "401" not in text and "403" not in text]


def test_the_overview_lives(tmp_path, browser):
    with start(tmp_path) as weir:
        set_screen(browser, 1280, 900)
        page = Page(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        traffic(weir)
        page.see(lambda: len(page.rows("busy-limits")) == 3, "the limits that were used")
        page.see(lambda: ["user=<b>eve</b>", "search"] in [row[:2] for row in page.rows("top-keys")],
                 "a key with markup, as text")
        page.see(lambda: [["client.ip=192.0.2.7", "login", "3", "100 %"]]
                 == page.rows("top-denied"), "who was denied")
        page.see(lambda: ["/login", "6", "3", "50 %"] in page.rows("top-routes"), "the routes")
        assert page.run("return document.querySelectorAll('#chart-traffic path.area').length") == 2
        assert page.run("return document.querySelector('main b, main script') === null "
                        "|| !document.querySelector('main b').textContent.includes('eve')")
        take_screenshot(browser, SHOTS / "overview.png")
