# SPDX-License-Identifier: Apache-2.0
"""The view of standing in a real Chromium: by pages, by filters, and its list files."""

import pytest

from browser.chromium import needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, fill, log_in, press, start

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]


def test_standing_is_shown_by_pages_and_filtered_by_the_server(tmp_path, browser):
    parts = {"standing": {"by": ["user", "client.ip"], "file": str(tmp_path / "standing.db")}}
    with start(browser, tmp_path, admin={"token": "s3cret"}, **parts) as weir:
        with weir.admin() as client:
            for i in range(130):
                level = "warned" if i < 5 else "throttled"
                body = f'{{"kind": "user", "value": "user{i:03}", "level": "{level}"}}'
                assert client.request("PUT", "/v1/standing", body=body.encode()).status == 200
        page = Dashboard(browser, weir).open("#standing")
        log_in(page)
        page.see(lambda: len(page.rows("standing")) == 100, "the first page")
        first = {row[0] for row in page.rows("standing")}
        press(page, "standing-after")
        page.see(lambda: len(page.rows("standing")) == 30, "the second page")
        second = {row[0] for row in page.rows("standing")}
        assert len(first | second) == 130 and page.text("standing-place") == "101 to 130"
        assert not page.find("standing-after").is_enabled()
        page.run("const level = document.getElementById('standing-level'); level.value = 'warned';"
                 "level.dispatchEvent(new Event('change'))")
        page.see(lambda: len(page.rows("standing")) == 5, "those of one level")
        take_screenshot(browser, SHOTS / "standing-filtered.png")


LISTED = {"networks.txt": "203.0.113.0/24\n2001:db8:bad::/48\n", "users.txt": "".join(f"user{i:03}\n" for i in range(130))}


def start_with_lists(browser, folder):
    for name, text in LISTED.items():
        (folder / name).write_text(text, encoding="utf-8")
    lists = [{"file": "networks.txt", "by": "client.ip", "level": "suspended", "reason": "<b>listed</b>"},
             {"file": "users.txt", "by": "user", "level": "throttled"}]
    return start(browser, folder, standing={"by": ["client.ip/64", "user"], "file": str(folder / "standing.db"), "lists": lists})


def test_list_files_say_what_is_in_force_and_their_last_error(tmp_path, browser):
    with start_with_lists(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#standing")
        page.see(lambda: len(page.rows("lists")) == 2, "the lists")
        networks, users = page.rows("lists")
        assert networks[:4] == ["networks.txt", "client.ip suspended", "<b>listed</b>", "2"]
        assert users[:4] == ["users.txt", "user throttled", "\u2013", "130"] and users[5] == networks[5] == "none"
        (tmp_path / "users.txt").write_text("\x01\n", encoding="utf-8")
        assert "reload_failed" in weir.reload()
        page.see(lambda: page.rows("lists")[1][5] == "line 1: control characters are not allowed", "the error")
        assert page.rows("lists")[1][3] == "130", "what is in force stays"
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        outside = "return [...document.querySelectorAll('main td > *')].filter((one) => one.getBoundingClientRect().left < 0).map((one) => one.textContent)"
        assert page.run(outside) == []
        take_screenshot(browser, SHOTS / "standing-lists-phone.png")
        set_screen(browser, 1280, 900)


def test_entries_of_list_files_are_searched_and_come_by_pages(tmp_path, browser):
    with start_with_lists(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#standing")
        page.see(lambda: len(page.rows("lists")) == 2, "the lists")
        press(page, "list-search")
        page.see(lambda: len(page.rows("list-entries")) == 100, "the first page")
        assert page.rows("list-entries")[0] == ["client.ip=203.0.113.0/24", "suspended", "<b>listed</b>", "networks.txt:1"]
        press(page, "list-entries-after")
        page.see(lambda: len(page.rows("list-entries")) == 32, "the second page")
        assert page.text("list-entries-place") == "101 to 132" and not page.find("list-entries-after").is_enabled()
        fill(page, "list-value", "203.0.113.77")
        press(page, "list-search")
        page.see(lambda: len(page.rows("list-entries")) == 1, "the network of an address")
        page.run("document.getElementById('list-file').value = arguments[0]", str(tmp_path / "users.txt"))
        press(page, "list-search")
        page.see(lambda: page.rows("list-entries") == [["No entry of these files has that."]], "nothing in another file")
        fill(page, "list-value", "user12")
        press(page, "list-search")
        page.see(lambda: len(page.rows("list-entries")) == 10, "a part of a name")
        take_screenshot(browser, SHOTS / "standing-lists.png")
        (tmp_path / "users.txt").write_text("user129\n", encoding="utf-8")
        press(page, "list-search")
        page.see(lambda: "Changed since it was read" in page.text("list-note"), "that the file is another one")
