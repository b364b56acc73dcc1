# SPDX-License-Identifier: Apache-2.0
"""The challenge in a real Chromium: it solves the puzzle under the page's policy and comes back."""

import pytest

from browser.chromium import complaints, needs_chromium, open_browser
from daemon.challenge import PATH, ChallengeWeir
from daemon.proxies import Application, Handler
from daemon.waiting import SECONDS_MAX

from selenium.webdriver.support.ui import WebDriverWait

pytestmark = needs_chromium

COOKIE = "weir-test"


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
                for name in ("Accept", "Content-Type", "Cookie"):
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
