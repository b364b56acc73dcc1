# SPDX-License-Identifier: Apache-2.0
"""A request is explained in the view of the rules, in a real Chromium: the form, its link, and the link of a denial."""

import pytest
from selenium.webdriver.common.keys import Keys

from browser.chromium import complaints, needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, fill, press, start, traffic

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]

ORDERS = {"name": "orders", "match": {"path": "/orders/:id"}, "key": ["path.id", "header.x-shop"], "rate": "2/hour"}


def verdict(page):
    return page.text("explain-verdict") or ""


def test_a_request_is_explained_by_keyboard_and_its_link_shows_the_same(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        traffic(weir)
        page = Dashboard(browser, weir).open("#rules")
        page.see(lambda: page.text("explain-show"), "the form")
        fill(page, "explain-path", "/login")
        fill(page, "explain-ip", "192.0.2.7")
        fill(page, "explain-header", "User-Agent: curl/8\nAuthorization: Bearer s3cret-s3cret")
        fill(page, "explain-attribute", "user=<b>ann</b>")
        page.find("explain-attribute").send_keys(Keys.TAB, Keys.ENTER)
        page.see(lambda: verdict(page).startswith("The request is denied by login, retry after "), "the verdict")
        told = page.text("explain-answer")
        assert "api: applies" in told and "user=<b>ann</b>" in told and "search: path is `/login`" in told
        assert "s3cret" not in told
        press(page, "explain-share")
        page.see(lambda: page.find("explain-link").is_displayed(), "the link")
        link = page.find("explain-link").get_attribute("value")
        assert "s3cret" not in link and "curl" in link and link == browser.current_url
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        assert page.run("const panel = document.getElementById('explain-panel').getBoundingClientRect();"
                        "return [...document.querySelectorAll('#explain-panel input, #explain-panel textarea, #explain-panel pre')]"
                        ".every((one) => one.getBoundingClientRect().right < panel.right && (one.tagName === 'INPUT' || one.scrollWidth <= one.clientWidth))")
        take_screenshot(browser, SHOTS / "explain-phone.png")
        set_screen(browser, 1280, 900, dark=True)
        take_screenshot(browser, SHOTS / "explain-dark.png")
        set_screen(browser, 1280, 900)
        take_screenshot(browser, SHOTS / "explain.png")
        browser.get("about:blank")
        browser.get(link)
        page.see(lambda: verdict(page).startswith("The request is denied by login"), "the same by the link")
        assert page.find("explain-attribute").get_attribute("value") == "user=<b>ann</b>"
        assert page.find("explain-header").get_attribute("value") == "User-Agent: curl/8"


@pytest.mark.parametrize("field, text, says", [
    ("header", "a: 1\nnothing", 'Header fields, line 2: "nothing" has no ":"'), ("attribute", "user=a\nuser=b", "Attributes: user is given twice"),
    ("cost", "much", 'Cost: a whole number, not "much"'), ("ip", "192.0.2.300", "ip"), ("path", "/%zz", "path")], ids=range(5))
def test_what_cannot_be_explained_says_what_and_where(tmp_path, browser, field, text, says):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#rules?path=/login")
        page.see(lambda: "allowed" in verdict(page), "the verdict")
        fill(page, f"explain-{field}", text)
        press(page, "explain-show")
        page.see(lambda: says in (page.text("explain-problem") or ""), "the problem")
        assert verdict(page) == "" and page.run("return location.hash") == "#rules?path=%2Flogin"
        complaints(browser)  # of the 400


def test_a_denial_leads_to_its_explanation(tmp_path, browser):
    with start(browser, tmp_path, limits=[ORDERS, {"name": "all", "key": ["user"], "rate": "100/s"}]) as weir:
        with weir.client() as client:
            for _ in range(3):
                client.check(path="/orders/17", ip="192.0.2.1", headers={"x-shop": "a&b=%c"}, attributes={"user": "علي"})
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: len(page.rows("denials")) == 1, "the denial")
        page.run("document.querySelector('#denials a[href^=\"#rules?\"]').click()")
        page.see(lambda: verdict(page).startswith("The request is denied by orders"), "the explanation")
        assert [page.find(f"explain-{name}").get_attribute("value") for name in ("path", "header", "attribute", "ip")] \
            == ["/orders/17", "x-shop: a&b=%c", "user=علي", "192.0.2.1"]
