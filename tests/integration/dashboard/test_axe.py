# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing in any page that weir serves: the dashboard's views, its login, the playground
and the challenge, in light and dark, on a desktop and a phone."""

import signal

import pytest

from browser.axe import axe_source, violations
from browser.chromium import Page, in_each_page, needs_chromium, open_browser, set_screen
from browser.playground import StaticFiles, needs_playground
from daemon.challenge import PATH, ChallengeWeir
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

pytestmark = needs_chromium

LIMITS = [
    {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "20/hour", "burst": 20},
    {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "3/hour"},
    {"name": "tried", "key": ["user"], "rate": "1/hour", "shadow": True},
    {"name": "healthy", "key": [], "rate": "1000/hour", "adaptive": "backend"},
]
BACKEND = {"signals": {"queue": "pushed"}, "table": [{"queue": 100, "x": "50%"}]}
EXPLAINED = "rules?path=/login&attribute=user%3Dann&header=user-agent%3A%20curl"
VIEWS = ["overview", "limits", "limits/login", "denials", "key/user%3Dann", "standing", "standing/user%3Dbob",
         "health", "rules", EXPLAINED]
SCREENS = [(1280, 900, False), (1280, 900, True), (390, 844, False), (390, 844, True)]
TOKEN = "operator0123456789"


@pytest.fixture(scope="module", name="axe")
def fixture_axe(tmp_path_factory):
    return axe_source(tmp_path_factory.mktemp("axe"))


@pytest.fixture(scope="module", name="browser")
def fixture_browser(tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.quit()


def found(browser, axe, what):
    """Looks at the page on each screen."""
    all_found = []
    for width, height, dark in SCREENS:
        set_screen(browser, width, height, dark, reduced_motion=True)
        all_found += [f"{what}, {width}{', dark' if dark else ''}: {one}" for one in violations(browser, axe)]
    return all_found


def traffic(weir):
    with weir.client() as client:
        for user in ("ann", "bob", "علي", "x" * 120):
            for _ in range(3):
                client.check(path="/search/shoes", ip="192.0.2.1", attributes={"user": user})
        for _ in range(6):
            client.check(path="/login", ip="192.0.2.7", attributes={"user": "ann"})


@pytest.fixture(name="weir")
def fixture_weir(tmp_path, browser):
    parts = {"standing": {"by": ["user", "client.ip"], "file": str(tmp_path / "standing.db")},
             "adaptive": {"backend": BACKEND}}
    with Weir(tmp_path, rules_of(*LIMITS, server={"admin": {"listen": "127.0.0.1:0", "token": TOKEN}}, **parts),
              admin=None) as weir:
        yield weir
        browser.get("about:blank")


def log_in(browser, weir):
    """Opens the dashboard, and looks at nothing before it is live."""
    page = Page(browser, f"http://{weir.admin_address}/")
    page.load()
    page.wait_ready()
    wait_until(lambda: browser.find_elements("id", "token"), what="the login")
    return page


def test_the_dashboard(weir, browser, axe):
    traffic(weir)
    with weir.admin() as admin:
        assert admin.post("/v1/health", {"signals": {"queue": 150}, "ttl": 600}).status == 200
        assert admin.request("PUT", "/v1/standing", {"Content-Type": "application/json"},
                             b'{"kind": "user", "value": "bob", "level": "suspended", "for_ms": 600000, "yes": true}').status < 300
    page = log_in(browser, weir)
    problems = found(browser, axe, "login")
    browser.find_element("id", "token").send_keys(TOKEN + "\ue007")
    wait_until(lambda: browser.find_element("id", "live").text == "live", what="a snapshot")
    for view in VIEWS:
        page.run("location.hash = arguments[0]", view)
        wait_until(lambda: page.run("return document.querySelector('main').children.length"), what=view)
        wait_until(lambda: page.run("return document.documentElement.dataset.second"), what="a snapshot")
        if view == EXPLAINED:
            wait_until(lambda: page.run("return document.getElementById('explain-verdict')"), what="the explanation")
            page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        problems += found(browser, axe, view)
    page.run("location.hash = 'overview'")
    weir.write_rules(weir.config.read_text(encoding="utf-8").replace('"gcra"', '"gcrb"'))
    weir.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "gcrb" in page.find("trouble").text, what="the trouble")
    problems += found(browser, axe, "overview with trouble")
    weir.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: "last data" in page.find("live").text, what="that the page is old")
        problems += found(browser, axe, "overview without data")
    finally:
        weir.process.send_signal(signal.SIGCONT)
    assert problems == [], "\n".join(problems)


@needs_playground
@pytest.mark.parametrize("view", ["play", "compare", "break", "choose", "adapt"])
def test_the_playground(browser, axe, view):
    with StaticFiles() as files:
        page = Page(browser, files.url)
        page.load(f"#v={view}&a=strict&p=border&t=zzzz")
        page.wait_ready()
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        problems = found(browser, axe, view)
        assert problems == [], "\n".join(problems)
        browser.get("about:blank")


@pytest.mark.parametrize("language", ["en", "ar", "ja"])
def test_the_challenge(tmp_path, browser, axe, language):
    browser.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "test", "acceptLanguage": language})
    # A page whose puzzle is solved stays, so that what is looked at is the page that was asked for.
    with ChallengeWeir(tmp_path, difficulty=26, cookie="weir-test", secure=False,
                       server={"trusted_proxies": ["127.0.0.1"]}) as weir, \
            in_each_page(browser, "HTMLFormElement.prototype.submit = () => {};"):
        pages = []
        for target in (PATH, f"{PATH}?to=evil", "/nowhere"):
            browser.get(f"http://{weir.challenge_address}{target}")
            assert browser.find_element("tag name", "html").get_attribute("lang") == language
            pages += found(browser, axe, target)
        browser.get("about:blank")
    assert pages == [], "\n".join(pages)
