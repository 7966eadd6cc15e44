"""Draw the screenshots of the report that the documentation shows: ``python -m docs.screenshots``.

They come from the browser that the tests use, so that what is shown is what is tested.
"""

import io
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import SparseSVC, report
from tests.report import browser

FOLDER = Path(__file__).parent / "_static"
COMMAND = "polymargin fit wine.csv --target cultivar --method sparse --costs costs.csv --report report.html"


def wine_report(path):
    """Write a report about wine: three cultivars, half of the rows held out."""
    wine = load_wine(as_frame=True)
    cultivars = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    X_train, X_test, y_train, y_test = train_test_split(
        wine.data, cultivars, test_size=0.5, stratify=cultivars, random_state=0
    )
    model = make_pipeline(StandardScaler(), SparseSVC(C=0.1)).fit(X_train, y_train)
    report.build(model, X_test, y_test, title="Three wines of Piedmont", path=path, command=COMMAND)


def save(driver, name):
    """Save what is seen with as few colours as look the same: pages are flat."""
    from PIL import Image

    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    picture = picture.quantize(colors=200, dither=Image.Dither.NONE)
    picture.save(FOLDER / f"report-{name}.png", optimize=True)


def scroll_to(driver, section):
    """Show a section at the top of the window."""
    driver.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)


def main():
    """Draw all."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as driver:
        page = Path(folder) / "report.html"
        wine_report(page)
        browser.resize(driver, 1040, 1180, scale=1.5)
        browser.open_page(driver, page)
        save(driver, "top")
        browser.resize(driver, 1040, 860, dark=True, scale=1.5)
        field = driver.find_element("css selector", "[data-cost='2,1']")
        field.clear()
        field.send_keys("20")
        scroll_to(driver, "costs")
        save(driver, "explorer")
        browser.resize(driver, 400, 820, scale=1.5)
        browser.open_page(driver, page)
        scroll_to(driver, "variables")
        save(driver, "phone")


if __name__ == "__main__":
    main()
