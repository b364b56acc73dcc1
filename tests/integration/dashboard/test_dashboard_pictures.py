# SPDX-License-Identifier: Apache-2.0
"""Pictures of the dashboard in each state that its readers meet, on each screen: build/screenshots/states.

The load is mixed: plans, searches, logins that fail, a limit that only counts, a caller who is suspended,
names of all scripts. WEIR_LOAD_SECONDS says how long it runs before a picture of normal load: script/figures
asks for ten minutes, which fill the charts. Without it the load is short, and not every view is taken."""

import contextlib
import json
import math
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from browser.chromium import Page, complaints, needs_chromium, open_browser, set_screen, take_screenshot
from daemon.redis_server import RedisServer
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

from selenium.webdriver.common.keys import Keys

pytestmark = needs_chromium

SHOTS = Path(weir_path()).parent / "screenshots" / "states"
SECONDS = int(os.environ.get("WEIR_LOAD_SECONDS", "0"))
SCREENS = {"desktop-light": (1280, 900, False), "desktop-dark": (1280, 900, True),
           "phone-light": (390, 844, False), "phone-dark": (390, 844, True)}
TOKEN = "operator0123456789"
VIEWS = ["overview", "limits", "limits/api", "denials", "standing", "health", "rules"]
if not SECONDS:
    SCREENS = {name: SCREENS[name] for name in ("desktop-light", "phone-dark")}
    VIEWS = ["overview"]
PEOPLE = ["ann", "bob", "carol", "dave", "علي", "Søren", "小林", "a-name-of-a-service-account-that-is-very-long-indeed"]
LIMITS = [
    {"name": "api", "key": ["user"], "rate": "600/min", "algorithm": "token_bucket", "burst": 60},
    {"name": "search", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "120/min"},
    {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "10/min"},
    {"name": "acme", "match": {"org": "acme"}, "key": ["org"], "rate": "900/min"},
    {"name": "search-to-be", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "60/min", "shadow": True},
]

# Bars that cut their numbers.
CUT = "return [...document.querySelectorAll('.bar')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"


class Load(threading.Thread):
    """Mixed requests, in a wave: some thirty a second. `attack` adds a hundred logins from one network."""

    def __init__(self, weir):
        super().__init__(daemon=True)
        self.weir, self.attack, self.ended, self.sent = weir, False, threading.Event(), 0

    def one(self, client, dice):
        user = PEOPLE[min(int(dice.expovariate(0.6)), len(PEOPLE) - 1)]
        path = dice.choice(["/search/shoes", "/search/hats", "/orders", "/orders/17", "/account"])
        org = {"org": "acme"} if user in ("ann", "carol") else {}
        client.check(path=path, ip=f"192.0.2.{1 + PEOPLE.index(user)}", attributes={"user": user, **org})
        if dice.random() < 0.05:
            client.check(path="/login", ip=f"198.51.100.{dice.randrange(20)}", attributes={"user": user})
        if dice.random() < 0.03:
            client.check(path="/account", ip="203.0.113.66", attributes={"user": "mallory"})

    def run(self):
        dice, began = random.Random(7), time.monotonic()
        with self.weir.client() as client, contextlib.suppress(OSError, EOFError):
            while not self.ended.wait(0.1):
                wave = 1 + 0.6 * math.sin((time.monotonic() - began) / 40)
                for _ in range(round(3 * wave)):
                    self.one(client, dice)
                for _ in range(10 if self.attack else 0):
                    client.check(path="/login", ip=f"203.0.113.{dice.randrange(4)}", attributes={"user": "root"})
                self.sent += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(SECONDS_MAX)


@pytest.fixture(scope="module", name="browser")
def fixture_browser(tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.quit()


class Dashboard(Page):
    def __init__(self, browser, weir):
        super().__init__(browser, f"http://{weir.admin_address}/")
        self.load()
        self.wait_ready()
        wait_until(lambda: browser.find_elements("id", "token"), what="the login")
        self.find("token").send_keys(TOKEN + Keys.ENTER)
        self.live()

    def live(self):
        wait_until(lambda: self.find("live").text == "live", what="a snapshot")

    def view(self, name):
        self.run("location.hash = arguments[0]", name)
        wait_until(lambda: self.run("return document.querySelector('main').children.length"), what=name)
        self.next_second()

    def next_second(self):
        second = self.run("return document.documentElement.dataset.second")
        wait_until(lambda: self.run("return document.documentElement.dataset.second") != second, what="a second")

    def take(self, state, fresh=True):
        for name, (width, height, dark) in SCREENS.items():
            set_screen(self.browser, width, height, dark)
            if fresh:
                self.next_second()
            assert self.run("return document.documentElement.scrollWidth <= innerWidth"), (state, name)
            assert self.run(CUT) == [], (state, name)
            take_screenshot(self.browser, SHOTS / f"{state}-{name}.png")
        set_screen(self.browser, 1280, 900)


@contextlib.contextmanager
def server(folder, browser, **parts):
    admin = {"admin": {"listen": "127.0.0.1:0", "token": TOKEN}}
    with Weir(folder, rules_of(*LIMITS, server=admin, **parts), "--workers", "2", admin=None) as weir:
        yield weir
        browser.get("about:blank")
    complaints(browser)


def shown(page):
    return page.run("return document.querySelector('main').innerText")


def test_empty(tmp_path, browser):
    with server(tmp_path, browser) as weir:
        page = Dashboard(browser, weir)
        page.take("empty")
        assert "None" in shown(page) or "Nothing" in shown(page) or "No " in shown(page)


def suspend(weir, user):
    with weir.admin() as admin:
        body = json.dumps({"kind": "user", "value": user, "level": "suspended", "for_ms": 3_600_000,
                           "reason": "reads the whole catalogue", "by": "zoe"})
        assert admin.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, body.encode()).status == 200


def test_load_attack_and_troubles(tmp_path, browser):
    standing = {"by": ["user", "client.ip"], "file": str(tmp_path / "standing.db")}
    with server(tmp_path, browser, standing=standing) as weir, Load(weir) as load:
        suspend(weir, "mallory")
        page = Dashboard(browser, weir)
        until = time.monotonic() + SECONDS
        wait_until(lambda: load.sent > 20, what="load")
        while time.monotonic() < until:  # what a picture shows needs that long to happen
            load.ended.wait(1)
        for view in VIEWS:
            page.view(view)
            page.take("load-" + view.replace("/", "-"))
        page.view("overview")
        assert "search" in shown(page) and "acme" in shown(page)
        load.attack = True
        wait_until(lambda: "203.0.113" in shown(page), what="the attack")
        page.take("attack")
        good = weir.config.read_text(encoding="utf-8")
        weir.write_rules(good.replace('"token_bucket"', '"tokenbucket"'))
        weir.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "tokenbucket" in page.find("trouble").text, what="the trouble")
        page.take("reload-failed")
        weir.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: page.run("return document.body.classList.contains('stale')"), what="old data")
            page.take("stale", fresh=False)
        finally:
            weir.process.send_signal(signal.SIGCONT)
        page.live()


def test_store_down(tmp_path, browser):
    (tmp_path / "weir").mkdir()
    with RedisServer(tmp_path / "redis") as redis, \
            server(tmp_path / "weir", browser, store={"redis": {"url": redis.url}, "nodes": 2}) as weir, \
            Load(weir) as load:
        page = Dashboard(browser, weir)
        wait_until(lambda: load.sent > 20, what="load")
        redis.kill()
        wait_until(lambda: "store" in page.find("trouble").text.lower(), what="the trouble")
        page.take("store-down")
        page.view("health")
        page.take("store-down-health")
