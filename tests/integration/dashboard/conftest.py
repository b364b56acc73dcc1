# SPDX-License-Identifier: Apache-2.0
"""A browser for each file of tests of the dashboard."""

import pytest


@pytest.fixture(scope="module", name="browser")
def fixture_browser(tmp_path_factory):
    from browser.chromium import open_browser  # which skips where there is no selenium
    browser = open_browser(tmp_path_factory.mktemp("chromium"), requests=True)
    yield browser
    browser.quit()


@pytest.fixture(name="clean")
def fixture_clean(browser):
    """Each test begins with the same screen, asks nobody but its server, and leaves a clean console, in which Chromium
    reports what a Content-Security-Policy has blocked."""
    from browser.chromium import complaints, requested, set_screen
    set_screen(browser, 1280, 900)
    complaints(browser)
    requested(browser)
    yield
    assert not [url for url in requested(browser)
                if not url.startswith(("http://127.0.0.1:", "data:", "about:", "chrome"))]
    assert not [text for text in complaints(browser) if "401" not in text and "403" not in text]
