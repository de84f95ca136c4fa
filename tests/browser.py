"""A real browser for pages, where there is one."""

import os
import shutil
from contextlib import contextmanager

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")  # fmt: skip  # noqa: E501
DRIVER = shutil.which("chromedriver")
PHONE, DESKTOP = (360, 740), (1280, 900)

needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed"
)


@contextmanager
def started_browser(profile):
    """The browser, with a folder for its profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # the driver's own log would be an open file when the tests end
    driver = webdriver.Chrome(options, Service(DRIVER, log_output=os.devnull))
    try:
        yield driver
    finally:
        driver.quit()


def emulate(browser, size, scheme):
    """A screen of this size, with the system's light or dark mode."""
    size = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def brightness(browser):
    """Of the page's ground, from 0 to 255."""
    color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in color.strip("rgb()").split(",")) / 3
