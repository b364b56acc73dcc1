# SPDX-License-Identifier: Apache-2.0
"""The challenge in a real Chromium: it solves the puzzle under the page's policy and comes back."""

import json
import re
from pathlib import Path

import pytest

from browser.chromium import complaints, in_each_page, needs_chromium, open_browser, set_screen, take_screenshot
from daemon.challenge import PATH, ChallengeWeir
from daemon.proxies import Application, Handler
from daemon.waiting import SECONDS_MAX
from model.program import weir_path

from selenium.webdriver.support.ui import WebDriverWait

pytestmark = needs_chromium

SHOTS = Path(weir_path()).parent / "screenshots" / "challenge"
COOKIE = "weir-test"
TEXTS = json.loads((Path(__file__).parents[4] / "src/feature/challenge/server/texts.json").read_text("utf-8"))


class Site(Application):
    """One origin, as a reverse proxy makes it: the challenge, and a page that says which limit the
    browser met. Notes every request."""

    def __init__(self, weir):
        self.seen = seen = []

        class Front(Handler):
            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                seen.append((self.command, self.path))
                fields = {"X-Forwarded-For": self.client_address[0]}
                for name in ("Accept", "Accept-Language", "Content-Type", "Cookie", "Host"):
                    if self.headers.get(name):
                        fields[name] = self.headers[name]
                if self.path.partition("?")[0] == PATH:
                    reply = weir.challenge(self.command, self.path, fields, body)
                    self.reply(reply.status, reply.pairs, reply.body)
                else:
                    limit = weir.auth(fields)["ratelimit"].split('"')[1]
                    if limit == "unproven" and self.path.startswith("/instead"):
                        reply = weir.challenge("GET", PATH, fields)
                        self.reply(429, reply.pairs, reply.body)
                        return
                    self.reply(200, [("Content-Type", "text/html")],
                               f"<title>{limit}</title>".encode())

            def reply(self, status, pairs, body):
                self.send_response(status)
                for name, value in pairs:
                    if name.lower() not in ("date", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

        super().__init__(Front)


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    with ChallengeWeir(tmp_path, difficulty=12, cookie=COOKIE, secure=False) as weir:
        with Site(weir) as site:
            site.weir = weir
            yield site


@pytest.fixture(name="browser", params=[True, False], ids=["javascript", "no-javascript"])
def fixture_browser(request, tmp_path):
    driver = open_browser(tmp_path, javascript=request.param)
    yield driver
    driver.quit()


def test_a_browser_solves_the_puzzle_and_returns(site, browser):
    browser.get(f"http://{site.address}{PATH}?to=/shop?a=1%26b")
    if not browser.javascript:
        assert site.address in browser.find_element("tag name", "main").text
        assert "JavaScript is off" in browser.find_element("tag name", "noscript").text
        assert "Allow JavaScript" in browser.find_element("tag name", "body").text
        assert [path for method, path in site.seen if method == "POST"] == []
        return
    WebDriverWait(browser, SECONDS_MAX).until(lambda driver: driver.title == "passed")
    assert browser.current_url == f"http://{site.address}/shop?a=1%26b"
    cookie = browser.get_cookie(COOKIE)
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax" and len(cookie["value"]) == 64
    assert complaints(browser) == []  # of the policy, above all
    asked = [entry for entry in site.seen if "favicon" not in entry[1]]
    assert asked == [("GET", f"{PATH}?to=/shop?a=1%26b"), ("POST", PATH), ("GET", "/shop?a=1%26b")]
    assert site.weir.metrics()["weir_challenges_solved_total"] == 1


@pytest.mark.parametrize("browser", [True], indirect=True)
def test_a_page_in_place_of_another_returns_there(site, browser):
    browser.get(f"http://{site.address}/instead?a=1")
    WebDriverWait(browser, SECONDS_MAX).until(lambda driver: driver.title == "passed")
    assert browser.current_url == f"http://{site.address}/instead?a=1"


@pytest.fixture(name="hard")
def fixture_hard(tmp_path):
    """A site whose check takes so long that a test can look at it."""
    with ChallengeWeir(tmp_path, difficulty=26, cookie=COOKIE, secure=False) as weir:
        with Site(weir) as site:
            yield site


def read_in(browser, language):
    browser.execute_cdp_cmd("Emulation.setUserAgentOverride",
                            {"userAgent": "test", "acceptLanguage": language})


def take(browser, name):
    for dark, (kind, width) in [(False, ("phone", 390)), (True, ("phone", 390)), (False, ("desktop", 1280)),
                                (True, ("desktop", 1280))]:
        set_screen(browser, width, 844, dark)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        take_screenshot(browser, SHOTS / f"{name}-{kind}-{'dark' if dark else 'light'}.png")


def wait_text(browser, name, condition):
    WebDriverWait(browser, SECONDS_MAX).until(
        lambda driver: condition(driver.find_element("id", name).text))


@pytest.mark.parametrize("browser", [True], indirect=True)
@pytest.mark.parametrize("language, words, direction", [
    ("de-AT", "Minuten?|Sekunden", "ltr"), ("ar", "ثانية|دقيقة|دقائق|دقيقتان", "rtl")])
def test_a_person_sees_which_site_asks_and_how_long_it_takes(hard, browser, language, words,
                                                            direction):
    read_in(browser, language)
    browser.get(f"http://{hard.address}{PATH}?to=/")
    wait_text(browser, "time", lambda text: re.search(words, text))
    assert browser.find_element("id", "site").text == hard.address
    bar = browser.find_element("id", "progress")
    assert bar.accessible_name == TEXTS[language[:2]]["progress"] and bar.is_displayed()
    assert browser.find_element("id", "status").text == TEXTS[language[:2]]["what"]
    assert browser.execute_script("return getComputedStyle(document.body).direction") == direction
    WebDriverWait(browser, SECONDS_MAX).until(lambda driver: float(bar.get_attribute("value")) > 0)
    take(browser, language[:2])
    assert complaints(browser) == []


@pytest.mark.parametrize("browser", [True], indirect=True)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_page_of_what_went_wrong_leads_on(hard, browser, language):
    read_in(browser, language)
    browser.get(f"http://{hard.address}{PATH}?to=/shop")
    browser.execute_script("const form = document.getElementById('form');"
                           "form.elements.solution.value = '1'; form.submit()")
    WebDriverWait(browser, SECONDS_MAX).until(lambda driver: driver.title == TEXTS[language]["refused"])
    assert TEXTS[language]["unsolved"] in browser.find_element("tag name", "main").text
    take(browser, f"refused-{language}")
    link = browser.find_element("tag name", "a")
    assert link.text == TEXTS[language]["again"] and link.get_attribute("href").endswith("/shop")


@pytest.mark.parametrize("browser", [True], indirect=True)
def test_what_stops_a_check_is_said_in_the_readers_language(hard, browser):
    read_in(browser, "fr")
    for name, script in (
            ("no_cookies", "Object.defineProperty(navigator, 'cookieEnabled', {value: false})"),
            ("too_old", "window.Worker = undefined"),
            ("failed", "window.Worker = function () {"
                       " setTimeout(() => this.onerror()); this.postMessage = () => {}; }"),
            ("slow", "window.Worker = function () {"
                     " setTimeout(() => this.onmessage({data: {tried: 2 ** 28}}));"
                     " this.postMessage = () => {}; }")):
        with in_each_page(browser, script):
            browser.get(f"http://{hard.address}{PATH}?to=/")
            wait_text(browser, "status", lambda text: text == TEXTS["fr"][name])
            assert browser.find_element("id", "work").is_displayed() == (name == "slow")
