"""Draw the screenshots of report and studio that the documentation shows: ``python -m docs.screenshots``.

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
from tests.studio import conftest as studio_tests
from tests.studio import test_browser as steps

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
    picture.save(FOLDER / f"{name}.png", optimize=True)


def scroll_to(driver, section):
    """Show a section at the top of the window."""
    driver.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)


def draw_report(driver, folder):
    """Draw the report, light and dark, wide and on a telephone."""
    page = folder / "report.html"
    wine_report(page)
    browser.resize(driver, 1040, 1180, scale=1.5)
    browser.open_page(driver, page)
    save(driver, "report-top")
    browser.resize(driver, 1040, 860, dark=True, scale=1.5)
    field = driver.find_element("css selector", "[data-cost='2,1']")
    field.clear()
    field.send_keys("20")
    scroll_to(driver, "costs")
    save(driver, "report-explorer")
    browser.resize(driver, 400, 820, scale=1.5)
    browser.open_page(driver, page)
    scroll_to(driver, "variables")
    save(driver, "report-phone")


def draw_studio(driver, folder):
    """Draw the studio at work on the trees of its tests."""
    path = folder / "trees.csv"
    studio_tests.trees().to_csv(path, index=False)
    studio, end = studio_tests.serve(path)
    try:
        steps.open_studio(driver, studio, 1040)
        browser.resize(driver, 1040, 1000, scale=1.5)
        steps.find(driver, "#impute").click()
        save(driver, "studio-columns")
        field = steps.find(driver, "[data-cost='2,1']")
        field.clear()
        field.send_keys("5")
        steps.train(driver, "20s")
        steps.wait_for(lambda: int(steps.text_of(driver, "#tried").split(",")[0]) >= 10)
        scroll_to(driver, "classes")
        save(driver, "studio-training")
        steps.done(driver)
        steps.tab(driver, "predictions")
        steps.wait_for(lambda: steps.text_of(driver, "#predictions-shown"))
        scroll_to(driver, "results")
        browser.resize(driver, 1040, 860, dark=True, scale=1.5)
        save(driver, "studio-predictions")
        browser.resize(driver, 400, 820, scale=1.5)
        steps.tab(driver, "summary")
        scroll_to(driver, "results")
        save(driver, "studio-phone")
    finally:
        end()


def main():
    """Draw all."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as driver:
        draw_report(driver, Path(folder))
        draw_studio(driver, Path(folder))


if __name__ == "__main__":
    main()
