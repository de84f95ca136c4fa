"""A page as HTML that needs nothing else: no network, no file beside it."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from rflaf.pages import Page, Panel
from rflaf.pages.svg import COLORS, Chart
from rflaf.runtime.extras import needed


def render_page(page: Page) -> str:
    """The page as text.

    Examples
    --------
    >>> from rflaf.pages import Page
    >>> "<h1>a &lt; b</h1>" in render_page(Page("a < b", [], [], []))
    True
    """
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    given = {"page": page, "style": _resource("style.css"), "script": script}
    template = _environment().get_template("page.html.j2")
    return template.render(given, script_hash=f"sha256-{digest}")


def draw(panel: Panel) -> str:
    """A panel as an `svg` element; its legend is the page's.

    Examples
    --------
    >>> from rflaf.pages import Line, Panel
    >>> panel = Panel("a < b", (Line("tanh", (0, 1), (0.0, 0.76)),), "z")
    >>> draw(panel).startswith('<svg viewBox="0 0 330 230" role="img" aria-label="a &lt; b')
    True
    """
    return _environment().get_template("panel.svg.j2").render(chart=Chart(panel))


def encode(text: str) -> bytes:
    """UTF-8. Half a character, which JSON and frames can carry, cannot be written."""
    return text.encode("utf-8", "replace")


def require_jinja2() -> Any:
    """The module that fills the template, or an error that says what to install."""
    return needed("jinja2", "A report needs jinja2", "'rflaf[report]'")


@lru_cache(maxsize=1)
def _environment() -> Any:
    jinja2 = require_jinja2()
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["svg"] = lambda panel: Markup(draw(panel))
    environment.globals["colors"] = COLORS
    return environment


def _resource(name: str) -> str:
    return files("rflaf.pages").joinpath(name).read_text(encoding="utf-8")
