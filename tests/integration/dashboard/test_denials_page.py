# SPDX-License-Identifier: Apache-2.0
"""The view of denials in a real Chromium: its histogram, groups, links and pages."""

import pytest

from browser.chromium import needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, fill, press, start, traffic

from selenium.webdriver.common.keys import Keys

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]


def bars(page):
    """Heights of the histogram that are not zero."""
    return page.run("return [...document.querySelectorAll('#chart-denials rect.column')]"
                    ".map((bar) => Number(bar.getAttribute('height'))).filter((height) => height > 0)")


def test_the_view_says_when_by_whom_and_what(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        set_screen(browser, 1280, 900)
        traffic(weir)
        with weir.client() as client:  # of bob, five are denied by the limit "api"
            for _ in range(20):
                client.check(path="/search/shoes", ip="192.0.2.1", attributes={"user": "bob"})
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: dict(row[:2] for row in page.rows("denials-by-limit")) == {"api": "5", "login": "3"},
                 "groups by limit")
        assert dict(row[:2] for row in page.rows("denials-by-caller")) \
            == {"user=bob": "5", "user=ann": "3"}
        assert dict(row[:2] for row in page.rows("denials-by-route")) == {"/search/:what": "5", "/login": "3"}
        assert page.rows("denials-by-cause") == [["a limit", "8", "100 %"]]
        assert len(page.rows("denials")) == 8
        assert page.text("denial-note").startswith("8 denials, of which 8 are kept one by one.")
        page.open("#denials?last=10min")
        page.see(lambda: bars(page), "the histogram, by the counters")
        take_screenshot(browser, SHOTS / "denials-groups.png")
        page.run("[...document.querySelectorAll('#denials-by-route a')].find((link) => link.textContent === '/login').click()")
        page.see(lambda: len(page.rows("denials")) == 3, "those of one route")
        assert page.run("return location.hash") == "#denials?last=10min&route=%2Flogin"
        page.run("document.querySelector('#denials-by-caller a').click()")
        page.see(lambda: page.run("return document.getElementById('denial-key').value") == "user=ann", "ann")


def test_a_link_shows_the_same_to_somebody_else(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        traffic(weir)
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: len(page.rows("denials")) == 3, "the denials")
        fill(page, "denial-limit", "login" + Keys.ENTER)
        page.see(lambda: "limit=login" in page.run("return location.hash"), "the choice in the address")
        page.see(lambda: len(page.rows("denials")) == 3, "the denials of the limit")
        press(page, "denial-share")
        link = page.run("return document.getElementById('denial-link').value")
        assert link.startswith(page.url + "#denials?limit=login&from=")
        shown = page.rows("denials")
        traffic(weir)  # later than the link says
        page.open("#overview")
        page.open(link.removeprefix(page.url))
        page.see(lambda: page.rows("denials") == shown, "what was shown before")
        assert page.run("return document.getElementById('denial-limit').value") == "login"
        assert " to " in page.run("return document.getElementById('denial-since').selectedOptions[0].textContent")


def test_more_than_a_page_of_denials_is_turned(tmp_path, browser):
    with start(browser, tmp_path, denials={"sample": 1000}) as weir:
        with weir.client() as client, weir.admin() as admin:
            for i in range(450 + 20):
                client.check(path="/search/x", attributes={"user": "ann"})
                if i % 100 == 0:  # a worker has room for 256 that were not looked at
                    admin.request("GET", "/v1/denials?count=1")
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: len(page.rows("denials")) == 200, "the newest")
        assert not page.find("denial-newer").is_enabled()
        seen = set()
        for rows in (200, 200, 50):
            page.see(lambda: len(page.rows("denials")) == rows, f"a page of {rows}")
            ids = page.run("return [...document.querySelectorAll('#denials tr')].map((row) => Number(row.dataset.id))")
            assert ids == sorted(ids, reverse=True) and not seen & set(ids)
            seen |= set(ids)
            if rows == 200:
                press(page, "denial-older")
                page.see(lambda: page.run("return Number(document.querySelector('#denials tr').dataset.id)") != ids[0],
                         "the next page")
        assert len(seen) == 450 and not page.find("denial-older").is_enabled()
        press(page, "denial-newer")
        page.see(lambda: len(page.rows("denials")) == 200, "the page before")
        set_screen(browser, 390, 844)
        page.open("#denials")
        page.see(lambda: len(page.rows("denials")) == 30, "as many cards as a phone can scroll")
        press(page, "denial-older")
        page.see(lambda: len(page.rows("denials")) == 30 and page.find("denial-newer").is_enabled(), "older ones")
        set_screen(browser, 1280, 900)


def test_names_are_shown_as_they_are_unless_they_hide_something(tmp_path, browser):
    names = {"100% sure, indeed": "user=100% sure, indeed", "o\u202ekcab": "user=o%e2%80%aekcab", "علي": "user=علي"}
    with start(browser, tmp_path) as weir:
        with weir.client() as client:
            for name in names:
                for _ in range(25):
                    client.check(path="/search/x", attributes={"user": name})
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: {row[0] for row in page.rows("denials-by-caller")} == set(names.values()), "the callers")
        assert {row[1] for row in page.rows("denials")} == set(names.values())


def test_a_limit_that_no_rule_has_is_said_to_be_unknown(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#denials?limit=logni")
        page.see(lambda: 'The rules have no limit "logni"; did you mean "login"?' in page.text("denial-note"), "that it is unknown")
        page.open("#denials?limit=login")
        page.see(lambda: "0 denials" in page.text("denial-note"), "that nothing was denied")
        assert "no limit" not in page.text("denial-note")
