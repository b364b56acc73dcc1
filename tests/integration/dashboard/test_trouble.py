# SPDX-License-Identifier: Apache-2.0
"""The first line of the dashboard in a real Chromium: what is wrong, in the title and the icon, and where
it leads."""

import pytest

from browser.chromium import needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, log_in, start, traffic

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]

RED, AMBER, GREEN = "b42318", "8a5a00", "17693f"


def icon(page):
    return page.run("return document.getElementById('icon').getAttribute('href')")


def links(page):
    return page.run("return [...document.querySelectorAll('#trouble a')].map((link) => link.getAttribute('href'))")


def test_without_trouble_the_icon_is_green(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: GREEN in icon(page), "a green icon")
        assert page.run("return document.getElementById('trouble').hidden")
        assert not page.run("return document.title").startswith("●")


def test_a_store_that_is_away_is_urgent_and_leads_to_health(tmp_path, browser):
    with start(browser, tmp_path, store={"redis": {"url": "redis://127.0.0.1:1"}}, on_store_error="open") as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: "The store is not reached by" in (page.text("trouble") or ""), "the store")
        assert page.run("return document.title").startswith("● weir ") and RED in icon(page)
        assert "#health" in links(page)
        page.run("document.querySelector('#trouble a[href=\"#health\"]').click()")
        page.see(lambda: "reached by" in (page.text("store") or ""), "the view that says more")


def test_a_state_file_that_was_removed_is_urgent(tmp_path, browser):
    state = tmp_path / "state"
    with start(browser, tmp_path, state={"file": str(state)}) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: GREEN in icon(page), "no trouble")
        state.unlink()
        page.see(lambda: "The state file is gone" in (page.text("trouble") or ""), "the state file")
        assert RED in icon(page) and links(page) == ["#health"]


def test_a_scale_and_a_ban_in_force_are_said_in_amber(tmp_path, browser):
    backend = {"signals": {"queue": "pushed"}, "table": [{"queue": 100, "x": "40%"}],
               "floor": "10%", "hysteresis": "1s"}
    limit = {"name": "api", "key": ["user"], "rate": "100/h", "algorithm": "fixed_window", "adaptive": "backend"}
    parts = {"adaptive": {"backend": backend}, "standing": {"by": ["user"], "file": str(tmp_path / "standing.db")}}
    with start(browser, tmp_path, [limit], admin={"token": "s3cret"}, **parts) as weir:
        page = Dashboard(browser, weir).open()
        log_in(page)
        page.see(lambda: page.text("live") == "live", "a snapshot")
        with weir.admin() as client:
            assert client.post("/v1/health", {"signals": {"queue": 500}, "ttl": 3000}).status == 200
        page.see(lambda: "The limit api is scaled to 40 %" in page.text("trouble"), "the scale")
        assert AMBER in icon(page) and page.run("return document.title").startswith("○ weir ")
        assert page.run("return document.title").endswith(": The limit api is scaled to 40 %")
        with weir.admin() as client:
            ban = b'{"kind": "user", "value": "ann", "level": "suspended"}'
            assert client.request("PUT", "/v1/standing", body=ban).status == 200
        traffic(weir, 1)
        page.see(lambda: "Bans and penalties in force refused" in page.text("trouble"), "the ban")
        assert links(page) == ["#health", "#standing"]
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        take_screenshot(browser, SHOTS / "trouble-amber-phone.png")
        set_screen(browser, 1280, 900)
