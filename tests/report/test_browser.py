"""The report in a real browser."""

import base64
import io
import itertools
import re

import numpy as np
import pandas as pd
import pytest

from polymargin import ProximalSVC, report
from polymargin.cli.costs import read_costs
from polymargin.report.evidence import Evidence
from tests.report import browser
from tests.report.models import COMMON, NAMES, OWN, fitted, page_of, wine
from tests.simulate import blobs

if browser.missing():
    pytest.skip(browser.missing(), allow_module_level=True)


@pytest.fixture(scope="module")
def driver():
    with browser.chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def opened(driver, folder):
    """Open the report of a family in a window of this width."""

    def show(family, width=1000):
        path = folder / f"{family}.html"
        if not path.exists():
            path.write_text(page_of(family), "utf-8")
        browser.resize(driver, width, 900)
        browser.open_page(driver, path)
        return driver

    return show


def bayes(costs, probabilities):
    """Decide by rule (4) of Lee, Lin & Wahba, summing in the order in which the page does."""
    expected = np.zeros(probabilities.shape)
    for true, row in enumerate(costs):
        expected += row * probabilities[:, [true]].astype(np.float64)
    return expected.argmin(axis=1)


def decided(costs, evidence):
    """The model's own decision stands where the costs do not change what the rule says."""
    rule, given = bayes(costs, evidence.probabilities), bayes(evidence.costs, evidence.probabilities)
    return np.where((rule == given) & evidence.accepted, evidence.predicted, rule)


def confusion_of(labels, decisions, k):
    table = np.zeros((k, k), dtype=int)
    np.add.at(table, (labels, decisions), 1)
    return table


def explored(driver):
    """Return the confusion matrix of the explorer, and its four numbers."""
    cells = driver.execute_script(
        "return [...document.querySelectorAll('#explored [data-cell]')].map(cell => +cell.dataset.value)"
    )
    k = round(np.sqrt(len(cells)))
    names = ("explored-cost", "model-cost", "explored-errors", "explored-changes")
    values = [float(driver.find_element("id", name).get_attribute("data-value")) for name in names]
    return np.reshape(cells, (k, k)), values


def set_costs(driver, costs):
    driver.execute_script(
        "for (const field of document.querySelectorAll('[data-cost]')) {"
        "  const [i, j] = field.dataset.cost.split(',').map(Number); field.value = arguments[0][i][j]; }"
        "document.getElementById('cost-form').dispatchEvent(new Event('input'));",
        costs.tolist(),
    )


@pytest.mark.parametrize("family", OWN)
def test_every_family_shows_its_sections_and_nothing_overflows_a_phone(opened, family):
    driver = opened(family, width=400)
    assert browser.console(driver) == []
    for section in (*COMMON, *OWN[family]):
        assert driver.find_element("id", section).is_displayed()
    widths = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, shown = driver.execute_script(widths)
    assert scrolled <= shown == 400
    outside = driver.execute_script(
        "return [...document.querySelectorAll('body *')].filter(element =>"
        " !element.closest('.scroll, .unseen, .skip') && element.getBoundingClientRect().right > 400.5)"
        ".map(element => element.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_editing_a_cost_changes_decisions_confusion_and_cost(opened):
    driver = opened("sparse")
    evidence = Evidence.of(fitted("sparse"), *wine()[2:])
    before = explored(driver)
    costs = evidence.costs.copy()
    np.testing.assert_array_equal(before[0], confusion_of(evidence.labels, evidence.predicted, 3))
    field = driver.find_element("css selector", "[data-cost='0,1']")
    field.clear()
    field.send_keys("40")
    costs[0, 1] = 40.0
    decisions = decided(costs, evidence)
    after = explored(driver)
    np.testing.assert_array_equal(after[0], confusion_of(evidence.labels, decisions, 3))
    assert (after[0] != before[0]).any()
    expected = [
        costs[evidence.labels, decisions].mean(),
        costs[evidence.labels, evidence.predicted].mean(),
        np.sum(decisions != evidence.labels),
        np.sum(decisions != evidence.predicted),
    ]
    np.testing.assert_allclose(after[1], expected, rtol=1e-12)
    assert "40" in driver.find_element("id", "python-costs").text
    driver.find_element("id", "reset-costs").click()
    np.testing.assert_array_equal(explored(driver)[0], before[0])
    assert explored(driver)[1] == before[1]
    assert browser.console(driver) == []


def test_the_rule_of_the_page_is_that_of_numpy(opened):
    driver = opened("multicategory")
    evidence = Evidence.of(fitted("multicategory"), *wine()[2:])
    weakest = np.argsort(-evidence.losses, kind="stable")
    rng = np.random.default_rng(0)
    for _ in range(20):
        costs = np.round(10.0 ** rng.uniform(-2, 2, (3, 3)), 3) * (rng.uniform(size=(3, 3)) > 0.1)
        np.fill_diagonal(costs, 0.0)
        set_costs(driver, costs)
        decisions = decided(costs, evidence)
        confusion, (cost, model_cost, errors, _) = explored(driver)
        np.testing.assert_array_equal(confusion, confusion_of(evidence.labels, decisions, 3))
        assert cost == pytest.approx(costs[evidence.labels, decisions].mean(), rel=1e-12)
        assert model_cost == pytest.approx(costs[evidence.labels, evidence.predicted].mean(), rel=1e-12)
        assert errors == np.sum(decisions != evidence.labels)
        listed = driver.execute_script(
            "return [...document.querySelectorAll('td.edited')].map(cell => cell.textContent)"
        )
        assert listed == [evidence.names[decision] for decision in decisions[weakest]]


@pytest.mark.parametrize("wrong", ["-1", "", "1e999"])
def test_no_cost_is_not_computed_with(opened, wrong):
    driver = opened("sparse")
    before = explored(driver)
    field = driver.find_element("css selector", "[data-cost='0,1']")
    driver.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        field,
        wrong,
    )
    assert field.get_attribute("aria-invalid") == "true"
    assert "must be a number" in driver.find_element("id", "cost-problem").text
    np.testing.assert_array_equal(explored(driver)[0], before[0])


def test_the_predictions_sort_by_every_column_and_filter(opened):
    driver = opened("reject")

    def column(at):
        return driver.execute_script(
            "return [...document.querySelectorAll('#predictions-table tbody tr')].map(row => {"
            " const cell = row.children[arguments[0]]; return cell.dataset.value ?? cell.textContent; })",
            at,
        )

    headers = driver.find_elements("css selector", "#predictions-table thead th")
    assert [header.get_attribute("aria-sort") for header in headers] == ["none"] * len(headers)
    for at, header in enumerate(headers):
        button = header.find_element("tag name", "button")
        for order in ("ascending", "descending"):
            button.send_keys("\ue007")  # Enter
            assert header.get_attribute("aria-sort") == order
            values = column(at)
            if header.get_attribute("data-kind") == "number" or at == 0:
                known = [float(value) for value in values if value]
                assert known == sorted(known, reverse=order == "descending")
                assert all(values[: len(known)])
            else:
                runs = 1 + sum(first != second for first, second in itertools.pairwise(values))
                assert runs == len(set(values))
        assert sum(other.get_attribute("aria-sort") != "none" for other in headers) == 1
    assert len(set(column(0))) == len(wine()[3])
    driver.find_element("id", "only-wrong").click()
    shown = [
        row for row in driver.find_elements("css selector", "#predictions-table tbody tr") if row.is_displayed()
    ]
    evidence = Evidence.of(fitted("reject"), *wine()[2:])
    assert len(shown) == evidence.wrong.sum()
    assert browser.console(driver) == []


def saved_by(driver, button):
    """Return the text of the file that a button hands over."""
    driver.execute_script("URL.createObjectURL = blob => { window.saved = blob; return 'data:,'; }")
    driver.find_element("id", button).click()
    return driver.execute_async_script("window.saved.text().then(arguments[arguments.length - 1])")


def test_variables_are_searched_sorted_and_saved(opened):
    driver = opened("sparse")
    machine, columns = fitted("sparse")[-1], wine()[0].columns

    def listed():
        rows = driver.find_elements("css selector", "#variables-table tbody tr")
        return [row.find_element("tag name", "th").text for row in rows if row.is_displayed()]

    selected = {columns[j] for j in machine.selected_features_}
    assert set(listed()) == selected
    name, *spread = driver.find_elements("css selector", "#variables-table thead button")[::2]
    name.click()
    assert listed() == sorted(selected, key=str.lower)
    spread[0].click()
    ranges = dict(zip(columns, np.ptp(machine.coef_, axis=0), strict=True))
    assert [ranges[one] for one in listed()] == sorted(ranges[one] for one in selected)
    saved = pd.read_csv(io.StringIO(saved_by(driver, "save-variables")), index_col="Variable")
    assert list(saved.index) == listed()
    expected = pd.DataFrame(machine.coef_.T, index=columns, columns=machine.classes_).loc[saved.index]
    np.testing.assert_array_equal(saved[list(machine.classes_)], expected)
    driver.find_element("id", "find-variable").send_keys("FLAVA")
    found = [one for one in selected if "flava" in one]
    assert 0 < len(found) < len(selected)
    assert sorted(listed()) == sorted(found)
    assert driver.find_element("id", "found-variables").text == f"{len(found)} of {len(selected)} variables"
    assert list(pd.read_csv(io.StringIO(saved_by(driver, "save-variables")))["Variable"]) == listed()
    assert browser.console(driver) == []


def test_printing_does_not_fill_pages_with_rows(driver, folder):
    X, y = blobs(np.random.default_rng(0), 600, 3, 3)
    pages = {}
    for n in (31, 600):
        path = folder / f"{n}.html"
        path.write_text(report.build(ProximalSVC().fit(X, y), X[:n], y[:n]), "utf-8")
        browser.resize(driver, 1000, 900)
        browser.open_page(driver, path)
        pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
        pages[n] = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 0 < pages[600] <= pages[31] + 1


def test_every_field_and_button_has_a_name_and_is_reached_by_the_keyboard(opened):
    driver = opened("multicategory")
    unnamed = driver.execute_script(
        "return [...document.querySelectorAll('input, button')].filter(element =>"
        " !(element.ariaLabel || element.textContent.trim() || element.labels?.length) || element.tabIndex < 0)"
        ".length"
    )
    assert unnamed == 0
    assert driver.execute_script("return document.querySelectorAll('[data-cost]').length") == 6


def test_dark_and_light_differ_and_pictures_follow(opened):
    driver = opened("sparse")
    colour = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    seen = {}
    for dark in (False, True):
        browser.resize(driver, 1000, 900, dark=dark)
        seen[dark] = [
            driver.execute_script(colour, "body", "backgroundColor"),
            driver.execute_script(colour, "#variables svg text", "fill"),
        ]
    assert all(light != dark for light, dark in zip(*seen.values(), strict=True))


def test_saved_costs_are_what_the_command_line_reads(opened, tmp_path):
    driver = opened("sparse")
    costs = np.array([[0, 1.5, 2], [3, 0, 4e-3], [5, 6, 0]])
    set_costs(driver, costs)
    path = tmp_path / "costs.csv"
    path.write_text(saved_by(driver, "save-costs"), "utf-8")
    np.testing.assert_array_equal(read_costs(path, np.array(sorted(NAMES))), costs)
