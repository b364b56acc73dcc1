# SPDX-License-Identifier: Apache-2.0
"""A real Chromium for tests of pages. Every host but this machine is unknown to it."""

import base64
import contextlib
import json
import shutil

import pytest

from daemon.waiting import SECONDS_MAX, wait_until

webdriver = pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402

needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="chromium and chromium-driver are not installed")


def open_browser(folder, javascript=True, requests=False):
    """A browser with its profile in a folder; the caller quits it. With `requests` it notes what the
    page requests."""
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--disable-component-update",
                     "--disable-default-apps", "--disable-quic", "--disable-sync", "--no-first-run",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                     f"--user-data-dir={folder}/profile"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs",
                           {"browser": "ALL"} | ({"performance": "ALL"} if requests else {}))
    if not javascript:
        options.add_experimental_option(
            "prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_page_load_timeout(SECONDS_MAX)
    driver.set_script_timeout(SECONDS_MAX)
    driver.javascript = javascript
    driver.lost = None
    return driver


@contextlib.contextmanager
def no_page_lost(browser, url):
    """A browser that has lost a page often loses those that follow, each after minutes. So the first
    one that does not come fails its test, and all later ones fail at once."""
    if browser.lost:
        pytest.fail(f"the browser was given up when it lost {browser.lost}")
    try:
        yield
    except (AssertionError, WebDriverException):
        browser.lost = url
        raise


class Page:
    """A page of weir in a browser; it marks its document when it is ready."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url

    def load(self, state=""):
        """Loads it anew, even if it is the page that is shown."""
        with no_page_lost(self.browser, self.url):
            self.browser.get("about:blank")
            self.browser.get(self.url + state)

    def wait_ready(self):
        with no_page_lost(self.browser, self.url):
            wait_until(lambda: self.run("return document.documentElement.dataset.ready"),
                       what=f"the page {self.url}")
        return self

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, name):
        return self.browser.find_element("id", name)


def complaints(browser):
    """What the console says, since it was last read."""
    return [entry["message"] for entry in browser.get_log("browser")
            if "favicon" not in entry["message"]]


def requested(browser):
    """The addresses that the pages of this window have requested, since they were last read. What
    Chromium requests on its own account has another target, or a page of its own."""
    found = []
    for entry in browser.get_log("performance"):
        entry = json.loads(entry["message"])
        event = entry["message"]
        if (event["method"] == "Network.requestWillBeSent"
                and entry["webview"] == browser.current_window_handle
                and not event["params"]["documentURL"].startswith("chrome")):
            found.append(event["params"]["request"]["url"])
    return found


def set_screen(browser, width, height, dark=False, reduced_motion=False):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1,
                             "mobile": width < 500})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}]})


@contextlib.contextmanager
def in_each_page(browser, script):
    """Runs a script in each page, before those that the page has."""
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def take_screenshot(browser, path):
    """The whole page, however long it is."""
    found = browser.execute_cdp_cmd("Page.captureScreenshot",
                                    {"format": "png", "captureBeyondViewport": True})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(found["data"]))
