# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real Chromium: every view, with screenshots in build/screenshots/dashboard."""

import signal
import subprocess

import pytest

from browser.chromium import complaints, needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, fill, log_in, press, start, traffic
from daemon.waiting import wait_until

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]


def test_the_overview_lives(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        set_screen(browser, 1280, 900)
        page = Dashboard(browser, weir).open()
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


VIEWS = ["overview", "limits", "limits/api", "denials", "key/user%3Dann", "standing", "health",
         "rules"]


def test_a_login_opens_and_a_logout_closes(tmp_path, browser):
    with start(browser, tmp_path, admin={"token": "s3cret"}) as weir:
        page = Dashboard(browser, weir).open()
        log_in(page, "wrong")
        page.see(lambda: "not the admin token" in (page.text("login-problem") or ""), "a refusal")
        take_screenshot(browser, SHOTS / "login.png")
        log_in(page)
        page.see(lambda: page.text("live") == "live", "a snapshot")
        assert page.run("return document.cookie") == ""  # HttpOnly
        browser.refresh()  # the session outlives the page
        page.see(lambda: page.text("live") == "live", "a snapshot after a reload of the page")
        press(page, "log-out")
        page.see(lambda: page.text("token") is not None, "the login")
        browser.refresh()
        page.see(lambda: page.text("token") is not None, "the login after a reload of the page")


def test_a_ban_is_set_and_cleared(tmp_path, browser):
    parts = {"standing": {"by": ["client.ip/64", "user"], "file": str(tmp_path / "standing.db")}}
    with start(browser, tmp_path, admin={"token": "s3cret"}, **parts) as weir:
        page = Dashboard(browser, weir).open("#standing/user%3Dann")
        log_in(page, name="Ann Lee")
        page.see(lambda: page.text("standing-set") is not None, "the form")
        page.run("document.querySelector('[name=reason]').value = 'tried passwords'")
        assert page.run("return document.querySelector('[name=kind]').value") == "user"
        assert page.run("return document.querySelector('[name=value]').value") == "ann"
        press(page, "standing-set")
        page.see(lambda: "spelt right" in (page.text("main") or ""), "a question: nobody has that name")
        take_screenshot(browser, SHOTS / "standing-asks.png")
        press(page, "standing-yes")
        page.see(lambda: page.first("standing", 4)
                 == ["user=ann", "suspended", "tried passwords", "Ann Lee"], "the ban")
        assert page.text("log-out") == "Log out Ann Lee"
        assert weir.check(ip="192.0.2.1", attributes={"user": "ann"}).json["denied_by"] == "standing"
        take_screenshot(browser, SHOTS / "standing.png")
        press(page, "log-out")
        log_in(page)
        page.see(lambda: page.first("standing")[0] == "user=ann", "the ban")
        page.run("document.querySelector('#standing button').click()")
        press(page, "standing-yes")
        page.see(lambda: "No operator or penalty" in page.first("standing")[0], "no ban")
        press(page, "standing-undo")
        page.see(lambda: page.first("standing", 3) == ["user=ann", "suspended", "tried passwords"],
                 "the ban, which is back")
        page.run("document.querySelector('#standing button').click()")
        press(page, "standing-no")
        page.run("document.querySelector('#standing button').click()")
        press(page, "standing-yes")
        page.see(lambda: "No operator or penalty" in page.first("standing")[0], "no ban")
        assert weir.check(ip="192.0.2.1", attributes={"user": "ann"}).status == 200
        page.see(lambda: [row[2] for row in page.rows("standing-history")[:2]]
                 == ["cleared", "suspended"], "the last changes")


def test_without_a_token_the_page_changes_nothing(tmp_path, browser):
    parts = {"standing": {"by": ["user"], "file": str(tmp_path / "standing.db")}}
    with start(browser, tmp_path, **parts) as weir:
        page = Dashboard(browser, weir).open("#standing")
        page.see(lambda: "read-only" in page.text("main"), "why it is read-only")
        assert page.text("standing-set") is None
        page.open("#rules")
        page.see(lambda: "read-only" in page.text("main"), "why it is read-only")
        assert page.text("reload") is None


def test_denials_are_filtered_and_a_key_says_why(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#denials")
        page.see(lambda: page.text("live") == "live", "a snapshot")
        traffic(weir)
        page.see(lambda: len(page.rows("denials")) == 3, "denials as they come")
        assert {tuple(row[1:5]) for row in page.rows("denials")} \
            == {("client.ip=192.0.2.7", "user=ann", "login", "/login")}
        fill(page, "denial-limit", "api" + Keys.ENTER)
        page.see(lambda: "Nothing was denied" in page.first("denials")[0], "none of that limit")
        fill(page, "denial-limit", "")
        fill(page, "denial-key", "192.0.2.7" + Keys.ENTER)
        page.see(lambda: len(page.rows("denials")) == 3, "those of the key")
        take_screenshot(browser, SHOTS / "denials.png")
        page.run("document.querySelector('#denials a').click()")
        page.see(lambda: [row[0] for row in page.rows("key-limits")] == ["login"],
                 "the key's limits")
        assert "3 of 3" in page.rows("key-limits")[0][2]
        assert len(page.rows("key-denials")) == 3
        take_screenshot(browser, SHOTS / "key.png")


def test_a_reload_with_an_error_says_where_it_is(tmp_path, browser):
    with start(browser, tmp_path, admin={"token": "s3cret"}) as weir:
        page = Dashboard(browser, weir).open("#rules")
        log_in(page)
        page.see(lambda: "file as it was loaded" in (page.text("rules") or ""), "the rules")
        good = weir.config.read_text(encoding="utf-8")
        weir.write_rules(good.replace('"gcra"', '"gcrb"'))
        press(page, "reload")
        press(page, "reload")  # it asks first
        page.see(lambda: "gcrb" in (page.text("rules-errors") or ""), "the error")
        assert f"{weir.config}:1:" in page.text("rules-errors")
        take_screenshot(browser, SHOTS / "rules.png")
        weir.write_rules(good)
        press(page, "reload")
        press(page, "reload")  # it asks first
        page.see(lambda: page.text("rules-errors") == "", "no error")


def test_the_rules_are_shown_and_what_a_reload_would_change(tmp_path, browser):
    with start(browser, tmp_path, admin={"token": "s3cret"}) as weir:
        text = ("version: 1\nserver:\n  admin:\n    address: " + weir.admin_address + "\n    token: s3cret\nlimits:\n"
                "  - name: api\n    key: [user]\n    rate: 20/hour\n  - name: login\n    key: [client.ip]\n    rate: 3/hour\n")
        weir.write_rules(text)
        weir.reload()
        page = Dashboard(browser, weir).open("#rules")
        log_in(page, name="Ann Lee")
        page.see(lambda: "rate: 20/hour" in (page.text("rules-text") or ""), "the text")

        def lines(name):
            return page.run("return [...document.querySelectorAll('#' + arguments[0] + ' > div')].map((line) => "
                            "[line.className, line.querySelector('.number')?.textContent, line.querySelector('code')?.textContent])",
                            name)

        assert lines("rules-text")[4] == ["line-same", "5", "    token: (hidden)"]
        assert len(lines("rules-text")) == 12
        press(page, "rules-compare")
        page.see(lambda: "Nothing: the file is as it was loaded" in page.text("rules-changes"), "no change")
        weir.write_rules(text.replace("20/hour", "30/hour").replace("  - name: login", "  - name: log-in"))
        press(page, "rules-compare")
        page.see(lambda: page.text("rules-difference"), "the change")
        assert [line for line in lines("rules-difference") if line[0] in ("line-gone", "line-new")] == [
            ["line-gone", "9", "    rate: 20/hour"], ["line-gone", "10", "  - name: login"],
            ["line-new", "9", "    rate: 30/hour"], ["line-new", "10", "  - name: log-in"]]
        set_screen(browser, 1280, 900)
        take_screenshot(browser, SHOTS / "rules-difference.png")
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        take_screenshot(browser, SHOTS / "rules-difference-phone.png")
        set_screen(browser, 1280, 900, dark=True)
        take_screenshot(browser, SHOTS / "rules-difference-dark.png")
        set_screen(browser, 1280, 900)
        press(page, "reload")
        press(page, "reload")
        page.see(lambda: "rate: 30/hour" in page.text("rules-text"), "the text as loaded now")
        assert "asked for by Ann Lee" in page.text("rules")


def test_every_view_has_contrast_and_fits_a_phone(tmp_path, browser):
    parts = {"standing": {"by": ["user"], "file": str(tmp_path / "standing.db")}}
    with start(browser, tmp_path, **parts) as weir:
        traffic(weir)
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        for view in VIEWS:
            page.run("location.hash = arguments[0]", view)
            page.see(lambda: page.run("return document.querySelector('[aria-current]')?.dataset.view "
                                      "=== arguments[0].split('/')[0] || arguments[0].startsWith('key')",
                                      view), view)
            name = view.replace("/", "-").replace("%3D", "-")
            for dark in (True, False):
                set_screen(browser, 1280, 900, dark=dark)
                take_screenshot(browser, SHOTS / f"{name}{'-dark' if dark else ''}.png")
                assert not page.run(CONTRAST), (name, dark)
            set_screen(browser, 360, 740)
            assert page.run("return document.documentElement.scrollWidth") == 360, name
            assert not page.run("return [...document.querySelectorAll('td[data-title]')].filter((cell) => cell.checkVisibility() && !cell.innerHTML).length"), name
            take_screenshot(browser, SHOTS / f"{name}-phone.png")
        set_screen(browser, 1280, 900)


# Texts whose contrast is below 4.5 to 1 (WCAG 2.1, 1.4.3), against the nearest background.
CONTRAST = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("body *")].filter((element) =>
  element.checkVisibility() && !element.disabled && [...element.childNodes].some((node) =>
    node.nodeType === 3 && node.textContent.trim())).filter((element) => {
      const ink = light(parse(element instanceof SVGElement ? getComputedStyle(element).fill : getComputedStyle(element).color));
      const paper = light(behind(element));
      return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05) < 4.5;
    }).map((element) => `${element.tagName} ${element.className}: ${element.textContent}`);
"""


def test_who_asked_is_a_line_each(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        Dashboard(browser, weir).open()
        heights = browser.execute_async_script("""
            const done = arguments[arguments.length - 1];
            import("/dashboard/names.js").then(({ callerCell }) => done([1, 2].map((count) => {
              const cell = callerCell({ values: [], caller: [{ kind: "org", value: "acme" }, { kind: "user", value: "ann" }].slice(0, count) });
              document.querySelector("main").replaceChildren(cell);
              return cell.getBoundingClientRect().height;
            })));""")
        assert heights[1] == 2 * heights[0] > 0


def test_times_without_requests_have_no_latency(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("tile-latency") == "–", "no request")
        blank = browser.execute_async_script("""
            const done = arguments[arguments.length - 1];
            import("/dashboard/series.js").then(({ blankUnknown }) => {
              const data = { from: 100, step: 1, gaps: [], values: { requests: [3, 0, 2], latency_p99_us: [50, 0, 20] } };
              blankUnknown(data, { snapshot: { started_s: 90 } });
              done(data.values);
            });""")
        assert blank == {"requests": [3, 0, 2], "latency_p99_us": [50, None, 20]}


def test_an_empty_page_says_what_to_type_and_it_works(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: "To see one, send a request: curl " in page.text("busy-limits"), "what to type")
        text = page.text("busy-limits")
        done = subprocess.run(["sh", "-c", text[text.index("curl "):]], capture_output=True, text=True, timeout=60, check=True)
        assert '"allowed":true' in done.stdout
        page.see(lambda: "api" in page.text("busy-limits"), "the limit")


# What a snapshot does whose second is far behind the series: [series asked for, points].
APPEND = """
const done = arguments[arguments.length - 1];
import("/dashboard/overview.js").then(({ Overview }) => {
  const view = new Overview({});
  let loads = 0;
  Object.assign(view, { load: () => { loads += 1; }, draw: () => {},
    data: { from: 0, step: 1, values: Object.fromEntries(["allowed", "denied", "edge_allowed", "edge_denied"]
      .map((field) => [field, Array(600).fill(0)])) } });
  view.append(1800000000, { allowed: 1, denied: 0 });
  done([loads, view.data.values.allowed.length]);
});
"""


def test_a_series_that_ends_long_ago_does_not_freeze_the_page(tmp_path, browser):
    """It was filled up second by second: since 1970, where the server had only just begun."""
    with start(browser, tmp_path) as weir:
        Dashboard(browser, weir).open()
        assert browser.execute_async_script(APPEND) == [1, 600]


def test_the_keyboard_reaches_every_view_and_reads_charts(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        traffic(weir)
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        press_keys = ActionChains(browser)
        seen = []
        for _ in range(14):
            press_keys.send_keys(Keys.TAB).perform()
            seen.append(page.run("return document.activeElement.textContent"))
        assert seen[0] == "Skip to the content"
        assert ["Overview", "Limits", "Denials", "Key", "Standing", "Health", "Rules"] \
            == [name for name in seen if name in
                ("Overview", "Limits", "Denials", "Key", "Standing", "Health", "Rules")]
        page.run("document.querySelector('nav a[data-view=limits]').focus()")
        press_keys.send_keys(Keys.ENTER).perform()
        page.see(lambda: len(page.rows("limits")) == 3, "the limits")
        assert page.run("return document.querySelector('nav [aria-current]').textContent") == "Limits"
        page.open()
        page.see(lambda: page.run("return document.querySelector('#chart-traffic .grid')"), "a chart")
        page.run("document.getElementById('chart-traffic').focus()")
        press_keys.send_keys(Keys.ARROW_LEFT).perform()
        page.see(lambda: "denied" in page.run(
            "return document.querySelector('#chart-traffic ~ .legend .reading').textContent"),
            "the numbers of a moment")
        label = page.run("return document.getElementById('chart-traffic').getAttribute('aria-label')")
        assert label.startswith("Requests a second: refused ")


def test_the_page_connects_again_after_a_restart(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        weir.reload()
        page.see(lambda: page.text("live") == "live", "a snapshot after a reload")
        weir.stop()
        page.see(lambda: page.text("live") == "no connection", "that the server is away")
        weir.command += ["--admin", weir.admin_address]
        weir.start()
        page.see(lambda: page.text("live") == "live", "a snapshot after a restart")
    complaints(browser)  # connections that were refused meanwhile


def test_more_tabs_than_connections_of_a_browser_stay_live(tmp_path, browser):
    """A browser opens six connections to a server. Tabs that are not seen need none, and go on where
    they are when they are seen again."""
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        first = browser.current_window_handle
        for _ in range(6):
            browser.switch_to.new_window("tab")
            page.open()
        page.see(lambda: page.text("live") == "live", "a snapshot in the seventh tab")
        wait_until(lambda: weir.metrics()["weir_dashboard_clients"] == 1, what="one stream")
        traffic(weir)
        for tab in [tab for tab in browser.window_handles if tab != first]:
            browser.switch_to.window(tab)
            browser.close()
        browser.switch_to.window(first)
        page.see(lambda: page.text("live") == "live", "a snapshot when it is seen again")
        page.see(lambda: len(page.rows("busy-limits")) == 3, "what was missed")


def test_a_limit_that_follows_health_says_why(tmp_path, browser):
    backend = {"signals": {"queue": "pushed"}, "table": [{"queue": 100, "x": "40%"}],
               "floor": "10%", "hysteresis": "1s"}
    limit = {"name": "api", "key": ["user"], "rate": "100/h", "algorithm": "fixed_window",
             "adaptive": "backend"}
    with start(browser, tmp_path, [limit], admin={"token": "s3cret"}, adaptive={"backend": backend}) as weir:
        page = Dashboard(browser, weir).open("#health")
        log_in(page)
        page.see(lambda: page.first("scales", 3)
                 == ["api", "backend", "100 %"], "the whole limit")
        with weir.admin() as client:
            assert client.post("/v1/health", {"signals": {"queue": 500}, "ttl": 3000}).status == 200
        page.see(lambda: page.first("scales", 3)[2] == "40 %", "a part of it")
        page.see(lambda: page.rows("signals") == [["backend (table)", "queue", "500", "40 %"]],
                 "its cause")
        assert "this node's own table" in page.text("store")
        take_screenshot(browser, SHOTS / "health-scaled.png")


def test_a_thousand_limits_with_long_names_stay_usable(tmp_path, browser):
    limits = [{"name": f"limit-{i:04}-" + "of-a-customer" * 3, "match": {"path": f"/{i}"},
               "key": ["user"], "rate": "2/hour"} for i in range(1000)]
    with start(browser, tmp_path, limits) as weir:
        with weir.client() as client:
            for i in range(0, 1000, 10):
                client.check(path=f"/{i}", attributes={"user": "ann" * 30})
        page = Dashboard(browser, weir).open("#limits")
        page.see(lambda: len(page.rows("limits")) == 200, "the first limits")
        assert "200 of 1000 are shown" in page.text("main")
        fill(page, "limit-filter", "0990-")
        page.see(lambda: len(page.rows("limits")) == 1, "the one that was looked for")
        assert page.rows("limits")[0][4] == "1"
        page.open("#overview")
        page.see(lambda: len(page.rows("busy-limits")) == 20, "the busiest of the last minute")
        take_screenshot(browser, SHOTS / "thousand-limits.png")
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        set_screen(browser, 1280, 900)


def test_what_is_wrong_is_on_top_and_in_the_title(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        assert page.run("return document.getElementById('trouble').hidden")
        good = weir.config.read_text(encoding="utf-8")
        weir.write_rules(good.replace('"gcra"', '"gcrb"'))
        weir.process.send_signal(signal.SIGHUP)
        page.see(lambda: f"{weir.config}:1:" in page.text("trouble"), "the error")
        assert page.run("return document.title").startswith("● weir ")
        take_screenshot(browser, SHOTS / "trouble.png")
        page.run("document.querySelector('#trouble a').click()")
        page.see(lambda: "gcrb" in (page.text("rules-errors") or ""), "the view that says more")
        weir.write_rules(good)
        weir.process.send_signal(signal.SIGHUP)
        page.see(lambda: page.run("return document.getElementById('trouble').hidden"), "no trouble")
        assert not page.run("return document.title").startswith("●")


def test_a_server_that_says_nothing_does_not_look_alive(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: page.text("live") == "live" and page.rows("top-keys"), "a snapshot")
        weir.process.send_signal(signal.SIGSTOP)
        try:
            page.see(lambda: (page.text("live") or "").startswith("last data "), "its age")
            assert page.run("return document.body.classList.contains('stale')")
            assert page.run("return document.title").endswith("no data")
            take_screenshot(browser, SHOTS / "stale.png")
        finally:
            weir.process.send_signal(signal.SIGCONT)
        page.see(lambda: page.text("live") == "live"
                 and not page.run("return document.body.classList.contains('stale')"), "life")


def test_a_limit_that_the_rules_do_not_have_is_said_to_be_unknown(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open("#limits/nope")
        page.see(lambda: "no limit" in (page.text("problem") or ""), "that it is unknown")
        complaints(browser)  # of the 404


def test_a_chosen_limit_freezes_no_chart(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: len(page.rows("busy-limits")) == 3, "the limits")
        page.run("const limit = document.getElementById('of-limit'); limit.value = 'login';"
                 "limit.dispatchEvent(new Event('change'))")

        def label(name):
            return page.run("return document.getElementById(arguments[0]).getAttribute('aria-label')",
                            name)

        page.see(lambda: "denied" in label("chart-traffic") or "refused" in label("chart-traffic"),
                 "the traffic of the limit")
        before = label("chart-fronts")
        page.see(lambda: label("chart-fronts") != before, "the next second of all fronts")
