"""The report in a real browser."""

import pytest

from tests.browser import DESKTOP, PHONE, brightness, emulate, needs_browser, started_browser
from tests.paper.report.made_records import HOSTILE

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
pytestmark = needs_browser
FIRST_TABLE = "#table1 table"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser, page_path):
    """The page, as somebody sees it who has never been there."""
    emulate(browser, DESKTOP, "light")
    browser.get(page_path.as_uri())
    browser.execute_script("try { localStorage.clear() } catch {}")
    browser.refresh()
    return browser


def column(browser, number):
    script = """return [...document.querySelector(arguments[0]).tBodies[0].rows]
                .map(row => row.cells[arguments[1]].dataset.value
                            ?? row.cells[arguments[1]].textContent)"""
    return browser.execute_script(script, FIRST_TABLE, number)


def head(browser, number):
    return browser.find_elements("css selector", f"{FIRST_TABLE} thead th")[number]


def press(browser, element, key):
    browser.execute_script("arguments[0].focus({preventScroll: true})", element)
    browser.switch_to.active_element.send_keys(key)


def test_renders_without_errors_requests_or_scripts_from_data(page):
    assert page.find_element("css selector", "h1").text.startswith("Random feature models")
    assert len(page.find_elements("css selector", "figure svg[role=img]")) > 20
    assert page.get_log("browser") == []
    entries = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert page.execute_script(entries) == []
    assert page.execute_script("return window.hostile ?? null") is None
    assert page.find_elements("css selector", "img, iframe, object") == []
    text = page.execute_script("return document.getElementById('other').textContent")
    assert all(name in text for name in HOSTILE[:3])


def test_headers_sort_by_click(page):
    before = column(page, 2)
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", head(page, 2))
    for direction in ("ascending", "descending"):
        head(page, 2).find_element("css selector", "button").click()
        assert head(page, 2).get_attribute("aria-sort") == direction
        found = column(page, 2)
        numbers = [float(text) for text in found if text]
        assert len(numbers) >= 7
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert found[len(numbers) :] == [""] * (len(found) - len(numbers)), "empty ones last"
        assert found != before


def test_headers_sort_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    button = head(page, 0).find_element("css selector", "button")
    press(page, button, Keys.ENTER)
    names = column(page, 0)
    assert head(page, 0).get_attribute("aria-sort") == "ascending"
    assert names == sorted(names), "no two of these differ in a number alone"
    press(page, button, Keys.SPACE)
    assert column(page, 0) == names[::-1]
    press(page, head(page, 1).find_element("css selector", "button"), Keys.ENTER)
    assert head(page, 0).get_attribute("aria-sort") == "none"


def test_names_sort_by_their_numbers(page):
    page.execute_script("document.querySelector('#table8 thead button').click()")
    script = (
        "return [...document.querySelector('#table8 tbody').rows].map(r => r.cells[0].innerText)"
    )
    names = [name for name in page.execute_script(script) if name.startswith("rflaf-rbf")]
    assert names == [f"rflaf-rbf-{n}" for n in (8, 16, 32, 64, 128)]


def test_fits_a_phone(page):
    emulate(page, PHONE, "light")
    page.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    width, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert inner == PHONE[0]
    assert width <= inner
    inside, outside = page.execute_script(
        "const box = document.querySelector('#table1 .scroll');"
        "return [box.scrollWidth, box.clientWidth]"
    )
    assert inside > outside, "a wide table scrolls in its own box"


def test_dark_by_the_system_and_by_the_button(page):
    def line():
        script = "return getComputedStyle(document.querySelector('figure .c0 .line')).stroke"
        return page.execute_script(script)

    button = page.find_element("id", "theme")
    assert brightness(page) > 200
    light_line = line()
    emulate(page, DESKTOP, "dark")
    assert brightness(page) < 60
    assert line() != light_line
    page.execute_script("scrollTo(0, 0)")
    button.click()
    assert brightness(page) > 200
    assert line() == light_line
    page.refresh()
    assert brightness(page) > 200, "the choice is remembered"
    page.find_element("id", "theme").click()
    emulate(page, DESKTOP, "light")
    assert brightness(page) < 60
