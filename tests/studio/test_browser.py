"""The studio in a real browser, from the file to exported predictions: by mouse, by keyboard, on a telephone."""

import time

import pandas as pd
import pytest

from tests.report import browser
from tests.studio.conftest import HANGING, serve, trees

if browser.missing():
    pytest.skip(browser.missing(), allow_module_level=True)


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads):
    with browser.chromium() as driver:
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )
        yield driver


@pytest.fixture(scope="module")
def studio(tree_file):
    studio, end = serve(tree_file)
    yield studio
    end()


def find(driver, selector):
    return driver.find_element("css selector", selector)


def wait_for(test, what="the page"):
    """Wait for a state, however busy the machine is; the limit is for what never comes."""
    until = time.monotonic() + HANGING
    while not (found := test()):
        assert time.monotonic() < until, f"no sign of {what} within {HANGING:.0f} s"
        time.sleep(0.05)
    return found


def downloaded(folder, name):
    """Return a file that the browser has saved, once it is complete."""
    path = folder / name
    wait_for(lambda: path.exists() and not list(folder.glob("*.crdownload")), what=name)
    return path


def text_of(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def open_studio(driver, studio, width=1100):
    browser.resize(driver, width, 900)
    driver.get_log("browser")
    driver.get("about:blank")
    driver.get(studio.address)
    wait_for(lambda: find(driver, "#work").get_attribute("aria-busy") == "false", what="the file and its runs")
    wait_for(lambda: text_of(driver, "#costs-table tbody"), what="the classes")


def choose(driver, selector, value):
    from selenium.webdriver.support.select import Select

    Select(find(driver, selector)).select_by_value(value)


def train(driver, budget="4s"):
    field = find(driver, "#budget")
    field.clear()
    field.send_keys(budget)
    wait_for(lambda: find(driver, "#train").is_enabled(), what="a plan without problems")
    find(driver, "#train").click()
    wait_for(lambda: not find(driver, "#train").is_enabled() or "Done" in text_of(driver, "#progress-words"))


def results(driver):
    """Wait until all that is shown is of one run."""
    shown = find(driver, "#results")
    wait_for(lambda: shown.is_displayed() and shown.get_attribute("aria-busy") == "false", what="results")


def done(driver):
    wait_for(lambda: "Done" in text_of(driver, "#progress-words"), what="a model")
    results(driver)


def tab(driver, name):
    find(driver, f"#tab-{name}").click()
    wait_for(lambda: find(driver, f"#panel-{name}").is_displayed())


def quiet(driver):
    """Nothing was blocked, refused or thrown."""
    assert browser.console(driver) == []


def test_from_the_file_to_exported_predictions(driver, studio, downloads):
    open_studio(driver, studio)
    assert find(driver, "h1").text == "trees.csv"
    assert "token" not in driver.current_url
    assert "160 rows, 6 columns" in text_of(driver, "#size")
    problems = text_of(driver, "#columns-table")
    for words in ("tells every row apart", "160 different texts", "has a missing value"):
        assert words in problems
    assert find(driver, "#target").get_attribute("value") == "kind"
    wait_for(lambda: "missing values in: girth (1)" in text_of(driver, "#plan-problems"))
    assert not find(driver, "#train").is_enabled()
    find(driver, "#impute").click()
    train(driver)
    done(driver)
    assert float(text_of(driver, "#objective")) > 0
    assert 0 <= float(text_of(driver, "#gap")) < 1
    tab(driver, "predictions")
    wait_for(lambda: "of 40" in text_of(driver, "#predictions-shown"))
    header = [cell.text for cell in driver.find_elements("css selector", "#predictions-table thead th")]
    assert header[:2] == ["row", "tree ID"]
    find(driver, "#only-held-out").click()
    wait_for(lambda: "of 160" in text_of(driver, "#predictions-shown"))
    find(driver, "#next").click()
    wait_for(lambda: "rows 51 to 100" in text_of(driver, "#predictions-shown"))
    find(driver, "[data-export=csv]").click()
    table = pd.read_csv(downloaded(downloads, "trees-predictions.csv"))
    assert table["tree ID"].tolist() == trees()["tree ID"].tolist()
    assert table["remark"].tolist() == trees()["remark"].tolist()
    shown = float(text_of(driver, "#runs-table tbody td.number"))
    held_out = table[table["part"] == "held out"]
    assert shown == pytest.approx((held_out["prediction"] != held_out["true class"]).mean(), abs=1e-4)
    quiet(driver)


def test_costs_are_edited_and_the_model_trained_again(driver, studio):
    open_studio(driver, studio)
    before = len(driver.find_elements("css selector", "#runs-table tbody tr"))
    field = find(driver, "[data-cost='2,1']")
    field.clear()
    field.send_keys("-1")
    assert "at least 0" in text_of(driver, "#costs-problem")
    field.clear()
    field.send_keys("25")
    assert text_of(driver, "#costs-problem") == ""
    find(driver, "#impute").click()
    train(driver)
    done(driver)
    wait_for(lambda: len(driver.find_elements("css selector", "#runs-table tbody tr")) == before + 1)
    results(driver)
    last = driver.find_elements("css selector", "#runs-table tbody tr")[-1]
    assert "edited" in last.text
    assert last.get_attribute("aria-current") == "true"
    tab(driver, "code")
    assert "--costs costs.csv" in text_of(driver, "#command")
    assert "np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 25.0, 0.0]])" in text_of(driver, "#script")
    quiet(driver)


def test_the_pages_of_the_report_and_its_explorer_work_inside(driver, studio, downloads):
    open_studio(driver, studio)
    results(driver)
    tab(driver, "report")
    wait_for(lambda: find(driver, "#report-frame").get_attribute("srcdoc"), what="the report")
    driver.switch_to.frame(find(driver, "#report-frame"))
    try:
        wait_for(lambda: driver.find_elements("css selector", "#explored [data-cell]"), what="the explorer")
        assert find(driver, "h1").text == "trees.csv"
        field = find(driver, "[data-cost='2,1']")
        field.clear()
        field.send_keys("50")
        wait_for(lambda: "edited" in field.get_attribute("class"), what="the report's own script")
        with pytest.raises(Exception, match=r"(?i)sessionStorage|denied|insecure"):
            driver.execute_script("return sessionStorage.length")
    finally:
        driver.switch_to.default_content()
    find(driver, "#save-report").click()
    assert "<title>trees.csv</title>" in downloaded(downloads, "trees-report.html").read_text("utf-8")
    quiet(driver)


def test_variables_the_script_and_the_model_can_be_taken_away(driver, studio, downloads):
    open_studio(driver, studio)
    results(driver)
    tab(driver, "variables")
    wait_for(lambda: "height" in text_of(driver, "#variables-table tbody"))
    find(driver, "#variables-search").send_keys("bar")
    wait_for(lambda: "1 of 3 variables" in text_of(driver, "#variables-shown"))
    find(driver, "#save-variables").click()
    assert set(pd.read_csv(downloaded(downloads, "trees-variables.csv"))["variable"]) == {
        "height",
        "girth",
        "bark",
    }
    tab(driver, "code")
    find(driver, "#save-script").click()
    compile(downloaded(downloads, "trees.py").read_text("utf-8"), "trees.py", "exec")
    tab(driver, "summary")
    find(driver, "#save-model").click()
    assert downloaded(downloads, "trees.skops").stat().st_size > 1000
    quiet(driver)


def test_training_is_cancelled(driver, studio, until_cancelled):
    open_studio(driver, studio)
    find(driver, "#impute").click()
    train(driver, "10m")
    wait_for(lambda: text_of(driver, "#best")[:1].isdigit(), what="a first setting")
    find(driver, "#cancel").click()
    wait_for(lambda: "Ended by you" in text_of(driver, "#progress-words"), what="the end")
    wait_for(lambda: "ended early" in text_of(driver, "#runs-table"))
    assert find(driver, "#train").is_enabled()


def test_a_page_loaded_again_goes_on(driver, studio, until_cancelled):
    open_studio(driver, studio)
    find(driver, "#impute").click()
    train(driver, "10m")
    driver.refresh()
    wait_for(lambda: "Training" in text_of(driver, "#progress-words"), what="the run under way")
    find(driver, "#cancel").click()
    wait_for(lambda: "Ended by you" in text_of(driver, "#progress-words"), what="the end")


def test_the_keyboard_alone_is_enough(driver, studio):
    from selenium.webdriver.common.keys import Keys

    def focused():
        return driver.switch_to.active_element

    def tab_to(identity):
        for _ in range(120):
            if focused().get_attribute("id") == identity:
                return
            focused().send_keys(Keys.TAB)
        raise AssertionError(f"{identity} is not reached by the tab key")

    open_studio(driver, studio)
    tab_to("impute")
    focused().send_keys(Keys.SPACE)
    tab_to("budget")
    focused().send_keys(Keys.HOME, Keys.SHIFT, Keys.END)
    focused().send_keys("3s")
    wait_for(lambda: find(driver, "#train").is_enabled())
    tab_to("train")
    focused().send_keys(Keys.ENTER)
    done(driver)
    tab_to("tab-summary")
    focused().send_keys(Keys.ARROW_LEFT)  # round to the last
    assert focused().get_attribute("id") == "tab-code"
    focused().send_keys(Keys.ARROW_LEFT)
    assert focused().get_attribute("id") == "tab-predictions"
    wait_for(lambda: find(driver, "#predictions-table tbody").text)
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    quiet(driver)


@pytest.mark.parametrize("width", [360, 800])
def test_nothing_sticks_out_on_small_screens(driver, studio, width):
    open_studio(driver, studio, width)
    results(driver)
    for name in ("summary", "report", "variables", "predictions", "code"):
        tab(driver, name)
        seen = driver.execute_script("return document.documentElement.scrollWidth")
        assert seen <= width, f"{name} is {seen} wide"


def test_controls_have_names(driver, studio):
    open_studio(driver, studio)
    nameless = driver.execute_script(
        "return [...document.querySelectorAll('input, select, button')].filter(field => field.offsetParent &&"
        " !(field.labels?.length || field.ariaLabel || field.textContent.trim())).map(field => field.outerHTML)"
    )
    assert nameless == []


def test_without_the_token_the_page_asks_for_it(driver, studio):
    driver.get("about:blank")
    driver.switch_to.new_window("tab")  # a tab of its own knows no token
    driver.get(f"http://127.0.0.1:{studio.port}/")
    wait_for(lambda: find(driver, "#token-form").is_displayed(), what="the form")
    assert "token of the studio is needed" in text_of(driver, "#trouble")
    assert "trees" not in driver.page_source
    find(driver, "#token").send_keys(studio.token)
    find(driver, "#token-form button").click()
    wait_for(lambda: find(driver, "#work").is_displayed(), what="the file")
    driver.get_log("browser")


def test_a_page_of_another_origin_cannot_read_or_drive(driver, studio, tmp_path):
    """Another server of this machine, whose page even knows the token, gets nothing out of the browser."""
    import http.server
    import threading

    (tmp_path / "evil.html").write_text("<!doctype html><title>evil</title>", "utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(tmp_path))

        def log_message(self, *given):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        driver.get(f"http://127.0.0.1:{other.server_address[1]}/evil.html")
        runs = len(studio.session.runs)
        tried = driver.execute_async_script(
            """
            const [base, token, done] = arguments;
            const attempt = (path, options) => fetch(base + path, options).then((r) => r.text(), (e) => "refused");
            const headers = {"X-Polymargin-Token": token};
            Promise.all([
              attempt("/api/overview", {headers}),
              attempt("/api/train", {method: "POST", headers, body: '{"target": "kind"}'}),
              attempt("/api/train", {method: "POST", mode: "no-cors", body: '{"target": "kind"}'}),
              attempt("/studio.js", {}),
              new Promise((resume) => {
                const frame = document.createElement("iframe");
                frame.src = base + "/#token=" + token;
                frame.onload = () => resume(frame.contentDocument ? "readable" : "refused");
                document.body.append(frame);
              }),
            ]).then(done);
            """,
            f"http://127.0.0.1:{studio.port}",
            studio.token,
        )
        other.shutdown()
    assert tried[0] == tried[1] == tried[3] == tried[4] == "refused"
    assert tried[2] in ("", "refused")  # an answer that cannot be read
    assert len(studio.session.runs) == runs
    driver.get_log("browser")
