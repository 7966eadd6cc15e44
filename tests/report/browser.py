"""Headless Chromium for the tests of the report, and for the screenshots of the documentation."""

import shutil
from contextlib import contextmanager
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def missing():
    """Return why no browser can be driven here, or None."""
    if not any(map(shutil.which, BROWSERS)):
        return f"no browser: none of {', '.join(BROWSERS)} is installed"
    if shutil.which("chromedriver") is None:
        return "no chromedriver is installed"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    return None


@contextmanager
def chromium():
    """Start a headless browser, and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BROWSERS)))
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--disable-gpu",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def resize(driver, width, height, *, dark=False, scale=1.0):
    """Show pages in a window of this size, in the light or the dark colours."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def open_page(driver, path):
    """Open a file; what other pages wrote to the console is forgotten."""
    driver.get_log("browser")
    driver.get(Path(path).resolve().as_uri())


def console(driver):
    """Return what the page wrote to the console, or could not load."""
    return [entry["message"] for entry in driver.get_log("browser")]
