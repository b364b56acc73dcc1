# SPDX-License-Identifier: Apache-2.0
"""What the dashboard shows of time in a real Chromium: its zone, gaps, marks, the minute that runs, a clock that was
set, and a table that is full."""

import datetime
import json
import time
import zoneinfo
from pathlib import Path

import pytest

from browser.chromium import in_each_page, needs_chromium, set_screen, take_screenshot
from browser.dashboard import SHOTS, Dashboard, start, traffic
from daemon.nodes import FAKETIME, step_clock, stepped_clock
from daemon.stopped import stopped
from daemon.waiting import wait_until

from selenium.webdriver.common.keys import Keys

pytestmark = [needs_chromium, pytest.mark.usefixtures("clean")]

LEFT = 52  # of a chart's plot: chart.js
RED, AMBER = "b42318", "8a5a00"


def trouble(page):
    return page.text("trouble") or ""


def icon(page):
    return page.run("return document.getElementById('icon').getAttribute('href')")


def follow_trouble(page):
    """Presses on the first line; returns where that led."""
    page.run("document.querySelector('#trouble a').click()")
    return page.run("return location.hash")


def choose(page, name, value):
    page.run("const one = document.getElementById(arguments[0]); one.value = arguments[1]; one.dispatchEvent(new Event('change'))", name, value)


# --- The zone ------------------------------------------------------------------------------------

@pytest.fixture(name="zone")
def fixture_zone(browser):
    yield lambda name: browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": name})
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@pytest.mark.parametrize("name, offset", [("Asia/Kolkata", "+05:30"), ("Pacific/Marquesas", "-09:30"), ("UTC", "+00:00")])
def test_the_page_says_once_in_which_zone_its_times_are(tmp_path, browser, zone, name, offset):
    with start(browser, tmp_path) as weir:
        zone(name)
        page = Dashboard(browser, weir).open("#denials")
        traffic(weir)
        page.see(lambda: len(page.rows("denials")) == 3, "denials")
        with weir.admin() as client:
            denied = client.request("GET", "/v1/denials?count=1").json["denials"][0]["time"]
        at = datetime.datetime.fromisoformat(denied.replace("Z", "+00:00"))
        assert page.run("return document.getElementById('zone').selectedOptions[0].textContent").startswith(f"UTC{offset}")
        assert page.rows("denials")[0][0] == f"{at.astimezone(zoneinfo.ZoneInfo(name)):%Y-%m-%d %H:%M:%S}"
        choose(page, "zone", "utc")
        page.see(lambda: page.first("denials")[0] == f"{at.astimezone(datetime.timezone.utc):%Y-%m-%d %H:%M:%S}", "UTC")
        page.open("#denials")
        page.see(lambda: page.first("denials")[0] == f"{at.astimezone(datetime.timezone.utc):%Y-%m-%d %H:%M:%S}", "UTC, which is remembered")
        assert page.run("return document.getElementById('zone').value") == "utc"
        set_screen(browser, 360, 740)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        set_screen(browser, 1280, 900)


def test_a_time_with_another_offset_than_now_says_its_own(tmp_path, browser, zone):
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    now = datetime.datetime.now(berlin)
    with start(browser, tmp_path) as weir:
        zone("Europe/Berlin")
        page = Dashboard(browser, weir).open()
        seen = set()
        for month in (1, 7):
            at = datetime.datetime(2026, month, 5, 13, 0, 7, tzinfo=berlin)
            other = "" if at.utcoffset() == now.utcoffset() else f"+0{at.utcoffset().seconds // 3600}:00"
            text = page.run("return import('/dashboard/format.js').then((format) => format.dateTime(arguments[0]))", at.timestamp())
            assert text == f"2026-0{month}-05 13:00:07{other}"
            seen.add(other != "")
        assert seen == {True, False}


# --- Gaps and marks ------------------------------------------------------------------------------

def marks(page):
    return page.run("return document.querySelectorAll('#chart-traffic .mark').length")


def first_x(page):
    """Where the line of what was allowed begins; None: there is none."""
    path = page.run("return document.querySelector('#chart-traffic .line.good')?.getAttribute('d') ?? ''")
    return float(path[1:].split(",")[0]) if path else None


def test_what_was_before_a_restart_is_a_gap_and_the_restart_a_mark(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: first_x(page) is not None and marks(page) == 1, "the traffic since the start, and its mark")
        assert first_x(page) > LEFT + 100, "nothing is known of the minutes before the start: that is no line at zero"
        page.find("chart-traffic").send_keys(Keys.HOME)
        label = page.run("return document.getElementById('chart-traffic').getAttribute('aria-label')")
        assert "allowed unknown" in label and "refused unknown" in label
        page.find("chart-traffic").send_keys(Keys.END)
        assert "unknown" not in page.run("return document.getElementById('chart-traffic').getAttribute('aria-label')").split(" at ")[0]
        page.open("#limits/api")
        for name in ("Checks a second", "Distinct keys"):
            chart = f"[...document.querySelectorAll('figure')].find((one) => one.innerText.includes('{name}')).querySelector('svg')"
            page.see(lambda: page.run(f"return {chart}.querySelectorAll('path').length") > 0, name)
            press_home = f"{chart}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Home', bubbles: true }}))"
            page.see(lambda: page.run(f"{press_home}; return {chart}.getAttribute('aria-label').includes('unknown')"),
                     f"that nothing is known of the time before the start: {name}")


def test_seconds_that_a_page_missed_are_a_gap_until_the_server_tells(tmp_path, browser):
    """A chart does not join what it knows over what it does not."""
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: first_x(page) is not None, "the traffic")
        drawn = page.run("""return import('/dashboard/chart.js').then(({ Chart }) => {
            const chart = new Chart('test', [{ field: 'a', name: 'a', kind: 'good' }]);
            document.getElementById('main').append(chart.element);
            chart.set({ from: 100, step: 1, values: { a: [5, 5, null, null, 5, 5] } });
            const path = chart.drawing.querySelector('.line.good').getAttribute('d');
            chart.read(2);
            return [path, chart.drawing.getAttribute('aria-label')];
        })""")
        assert drawn[0].count("M") == 2 and ",0" not in drawn[0] and "a unknown at" in drawn[1]
        alone = page.run("""return import('/dashboard/chart.js').then(({ Chart }) => {
            const chart = new Chart('test', [{ field: 'a', name: 'a', kind: 'good' }]);
            document.getElementById('main').append(chart.element);
            chart.set({ from: 100, step: 1, values: { a: [null, null, 5, null] } });
            return chart.drawing.querySelector('.line.good').getTotalLength();
        })""")
        assert alone > 0, "a point that stands alone is seen"


def test_a_server_that_was_suspended_leaves_a_gap(tmp_path, browser):
    def runs(page):
        return page.run("return document.querySelector('#chart-traffic .line.good').getAttribute('d')").count("M")

    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: first_x(page) is not None, "the traffic")
        before = runs(page)  # 1, unless this machine stood still
        with stopped(weir.process):
            page.see(lambda: page.run("return document.body.classList.contains('stale')"), "silence")
        page.see(lambda: page.text("live") == "live" and runs(page) > before, "two runs with a gap between them")
        take_screenshot(browser, SHOTS / "gap.png")
        page.open()
        page.see(lambda: first_x(page) is not None and runs(page) > 1, "the gap, which the server tells of")
        with weir.admin() as client:
            answer = client.request("GET", "/v1/series?count=600").json
        assert answer["gaps"]
        for first, end in answer["gaps"]:
            assert end - first >= 2 and not any(answer["values"]["requests"][first - answer["from_s"]:end - answer["from_s"]])


def test_each_reload_is_a_mark(tmp_path, browser):
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: marks(page) == 1, "the start")
        for count in (2, 3):
            second = page.run("return document.documentElement.dataset.second")
            wait_until(lambda: int(page.run("return document.documentElement.dataset.second")) > int(second) + 1, what="another second")
            assert "event=reloaded" in weir.reload()
            page.see(lambda: marks(page) == count, f"{count} marks")
        take_screenshot(browser, SHOTS / "marks.png")


# --- The day -------------------------------------------------------------------------------------

# What a page asks of minutes is answered by this: 600 a minute, and 7 in the minute that runs. A minute
# passes in half a second.
MINUTES = """
const real = window.fetch, later = window.setTimeout, from = 1795392000;
window.setTimeout = (then, ms) => later(then, ms === 60000 ? 500 : ms);
window.asked = 0;
window.fetch = async (path, options) => {
  if (!String(path).includes('resolution=1min')) return real(path, options);
  window.asked++;
  const whole = await (await real('/v1/series?count=1')).json();
  const minutes = 100 + window.asked;
  const values = Object.fromEntries(Object.keys(whole.values).map((field) => [field, Array(minutes).fill(0)]));
  values.allowed = [...Array(minutes - 1).fill(600), 7];
  values.requests = values.allowed;
  return new Response(JSON.stringify({ resolution_s: 60, from_s: from, count: minutes, until_s: from + (minutes - 1) * 60 + 2, gaps: [], values }));
};
"""


def test_the_day_refreshes_and_the_running_minute_is_not_drawn_as_a_fall(tmp_path, browser):
    with in_each_page(browser, MINUTES), start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        choose(page, "range", "1min")

        def label():
            return page.run("return document.getElementById('chart-traffic').getAttribute('aria-label')")

        page.see(lambda: "allowed 10" in label(), "the last whole minute: 600 requests are 10 a second")
        first = label()
        page.see(lambda: page.run("return window.asked") > 3 and label() != first, "the minutes that came since")
        assert "allowed 10" in label() and "allowed 0.1" not in label()


def test_the_newest_point_of_a_series_says_how_far_it_is_whole(tmp_path, browser):
    with start(browser, tmp_path) as weir, weir.admin() as client:
        traffic(weir)
        for path in ("/v1/series?count=5", "/v1/series?count=5&resolution=1min"):
            answer = client.request("GET", path).json
            step, end = answer["resolution_s"], answer["from_s"] + answer["count"] * answer["resolution_s"]
            assert end - step < answer["until_s"] <= end


# --- The table -----------------------------------------------------------------------------------

def test_an_estimate_of_keys_says_no_more_than_its_sample_knows(tmp_path, browser):
    """Of a large table a sample is counted, which often has none of a few keys: that is not 0 keys."""
    with start(browser, tmp_path) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        end = int(time.time())
        page.see(lambda: page.run("return Number(document.documentElement.dataset.second ?? 0)") >= end and page.text("tile-keys"),
                 "a second that ended after the traffic")
        assert page.text("tile-keys").startswith("below ")
        page.run("location.hash = 'health'")
        page.see(lambda: "below 1.0 % of" in (page.text("store") or ""), "the same in the view of health")


def test_of_a_small_table_every_key_is_counted(tmp_path, browser):
    with start(browser, tmp_path, state={"size": "1MiB"}) as weir:
        page = Dashboard(browser, weir).open()
        traffic(weir)
        page.see(lambda: page.text("tile-keys") == "7", "three users of two limits, and an address")


# --- Troubles ------------------------------------------------------------------------------------

@pytest.mark.skipif(not Path(FAKETIME).exists(), reason="libfaketime is not installed")
@pytest.mark.parametrize("step, said, shown", [(7200, r"The clock of the machine is 7", "ahead of"), (-7200, r"The clock of the machine is -7", "behind")])
def test_a_clock_that_was_set_is_said_in_amber_and_leads_to_health(tmp_path, browser, step, said, shown):
    step_clock(tmp_path, 0)
    with start(browser, tmp_path, env=stepped_clock(tmp_path)) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        assert page.run("return document.getElementById('trouble').hidden")
        step_clock(tmp_path, step)
        page.see(lambda: said in trouble(page), "the clock")
        assert AMBER in icon(page) and page.run("return document.title").startswith("○ weir ")
        second = page.run("return document.documentElement.dataset.second")
        page.see(lambda: int(page.run("return document.documentElement.dataset.second")) > int(second), "the next second")
        assert int(page.run("return document.documentElement.dataset.second")) - int(second) < 3600, "charts go on by the time of decisions"
        assert follow_trouble(page) == "#health"
        page.see(lambda: f"{shown} the time that decisions use" in (page.text("store") or ""), "the place that says more")
        step_clock(tmp_path, 0)
        page.see(lambda: page.run("return document.getElementById('trouble').hidden"), "no trouble")
        page.see(lambda: "agrees with the time" in (page.text("store") or ""), "the clock that agrees")
        assert page.run("return document.title").startswith("weir ")


def test_a_table_that_is_full_is_urgent_and_leads_to_health(tmp_path, browser):
    limit = {"name": "few", "key": ["client.ip"], "algorithm": "gcra", "rate": "2/day"}
    with start(browser, tmp_path, [limit], state={"size": "256KiB"}) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")
        checks = [{"ip": f"10.0.{i // 250}.{i % 250}", "cost": 2} for i in range(5000)]
        with weir.client() as client:
            for i in range(0, len(checks), 1000):
                client.post("/v1/check", checks[i:i + 1000])
        page.see(lambda: "The table is full: no room for all keys" in trouble(page), "the table")
        assert "(few " in trouble(page), "whose keys"
        assert RED in icon(page) and page.run("return document.title").startswith("● weir ")
        take_screenshot(browser, SHOTS / "trouble-table-full.png")
        assert follow_trouble(page) == "#health"
        page.see(lambda: "without room" in (page.text("store") or ""), "the place that says more")


def test_a_state_file_that_is_gone_is_said_in_health_too(tmp_path, browser):
    state = tmp_path / "state"
    with start(browser, tmp_path, state={"file": str(state)}) as weir:
        page = Dashboard(browser, weir).open("#health")
        page.see(lambda: "in its file" in (page.text("store") or ""), "the file")
        state.unlink()
        page.see(lambda: "The state file is gone" in trouble(page), "the trouble")
        page.see(lambda: "its file is gone from its path" in page.text("store"), "the place that says more")


def test_penalties_in_force_lead_to_standing(tmp_path, browser):
    limit = {"name": "login", "key": ["user"], "rate": "1/day", "algorithm": "fixed_window"}
    penalties = [{"name": "floods", "key": ["user"], "strikes": "3/h", "for": ["login"], "ladder": ["suspend 1h"]}]
    parts = {"standing": {"by": ["user"], "file": str(tmp_path / "standing.db")}, "penalties": penalties}
    with start(browser, tmp_path, [limit], **parts) as weir:
        page = Dashboard(browser, weir).open()
        page.see(lambda: page.text("live") == "live", "a snapshot")

        def refused():
            return weir.check(attributes={"user": "ann"}).json.get("denied_by") == "standing"

        wait_until(refused, what="the penalty")
        page.see(lambda: "Bans and penalties in force refused" in trouble(page), "the penalty")
        assert AMBER in icon(page) and "Bans and penalties" in page.run("return document.title")
        assert follow_trouble(page) == "#standing"
        page.see(lambda: json.dumps(page.rows("standing")).count("user=ann") == 1, "the place that says more")
