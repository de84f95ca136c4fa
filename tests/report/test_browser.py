"""The page about a model in a real browser."""

import pytest

from tests.browser import DESKTOP, PHONE, brightness, emulate, needs_browser, started_browser
from tests.report.made_models import CLASSES, HOSTILE

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
pytestmark = needs_browser
KINDS = ("numbers", "classes")
# visible elements whose text is wider than their box, and those that leave the window
CUT = """
  const wide = [...document.querySelectorAll('h1, h2, h3, p, li, dd, figcaption, .bars span')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline');
  const out = [...document.querySelectorAll('main > section > *, figure')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  return [...wide, ...out].map(e => e.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def show(browser, path, size=DESKTOP, scheme="light"):
    emulate(browser, size, scheme)
    browser.get(path.as_uri())
    return browser


@pytest.mark.parametrize("kind", KINDS)
def test_no_errors_no_requests_and_names_stay_text(browser, pages, kind):
    page = show(browser, pages[kind])
    assert page.get_log("browser") == []
    entries = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert page.execute_script(entries) == []
    assert page.execute_script("return window.hostile ?? null") is None
    assert page.find_elements("css selector", "img, iframe, object, main script") == []
    assert len(page.find_elements("css selector", "figure svg[role=img]")) >= 5
    text = page.execute_script("return document.querySelector('#importances').textContent")
    assert all(name in text for name in HOSTILE)
    if kind == "classes":
        text = page.execute_script("return document.querySelector('#confusion').textContent")
        assert all(name in text for name in CLASSES)


@pytest.mark.parametrize("kind", KINDS)
def test_fits_a_phone_and_nothing_is_cut(browser, pages, kind):
    page = show(browser, pages[kind], PHONE)
    page.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    width, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert inner == PHONE[0]
    assert width <= inner
    assert page.execute_script(CUT) == []
    boxes = page.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(b => "
        "[b.scrollWidth, b.clientWidth, getComputedStyle(b).overflowX])"
    )
    assert any(inside > outside for inside, outside, _ in boxes), "the widest tables do not fit"
    assert {overflow for _, _, overflow in boxes} == {"auto"}


@pytest.mark.parametrize("kind", KINDS)
def test_light_and_dark_with_readable_text(browser, pages, kind):
    contrast = """
      const parts = c => { const g = document.createElement('canvas').getContext('2d');
        g.fillStyle = c; g.fillRect(0, 0, 1, 1); return [...g.getImageData(0, 0, 1, 1).data]; };
      const light = c => parts(c).slice(0, 3).map(v => v / 255)
        .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
      const style = getComputedStyle(document.querySelector(arguments[0]));
      const ground = light(getComputedStyle(document.body).backgroundColor);
      const [a, b] = [light(style[arguments[1]]), ground].sort((x, y) => y - x);
      return (a + .05) / (b + .05)"""
    for scheme in ("light", "dark"):
        page = show(browser, pages[kind], DESKTOP, scheme)
        assert (brightness(page) > 200) == (scheme == "light")
        for place, part in ((".note", "color"), (".figures strong", "color"), ("dd", "color"),
                            ("svg text", "fill")):  # fmt: skip
            assert page.execute_script(contrast, place, part) > 4.5, (scheme, place)
        assert page.execute_script(contrast, "figure .c0 path", "stroke") > 3


def test_tables_sort(browser, pages):
    page = show(browser, pages["numbers"])
    page.execute_script("document.querySelectorAll('#rows thead button')[3].click()")
    found = page.execute_script(
        "return [...document.querySelectorAll('#rows tbody tr')]"
        ".map(row => +row.cells[3].dataset.value)"
    )
    assert len(found) == 15
    assert found == sorted(found)
