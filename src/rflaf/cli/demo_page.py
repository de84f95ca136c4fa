"""The page of `rflaf demo`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rflaf.files import write_whole

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError as error:
    raise ImportError("Pages need jinja2: pip install 'rflaf[report]'.") from error

WIDTH, HEIGHT, MARGIN = 420, 200, 28


def write_demo_page(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write one self-contained page; all text in the data stays text.

    Parameters
    ----------
    path : str or path
    data : dict
        "version", "splits", "components", and "sets": a list of dicts with "name", "about",
        "score_name", "scores" (dicts of "model", "score", "seconds", "best"), "summary", and the
        learned activation: "z" and "sigma" (floats, of one length) with "density" (counts in
        equal steps of z).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rflaf.cli.demo_page import write_demo_page
    >>> line = {"model": "a < b", "score": "0.9", "seconds": "1", "best": True}
    >>> one = {"name": "x", "about": "", "score_name": "R²", "scores": [line], "summary": "",
    ...        "z": [-1.0, 0.0, 1.0], "sigma": [0.0, 1.0, 0.0], "density": [1, 2]}
    >>> page = {"version": "1", "splits": 3, "components": 500, "sets": [one]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_demo_page(Path(folder) / "report.html", page)
    ...     "a &lt; b" in (Path(folder) / "report.html").read_text(encoding="utf-8")
    True
    """
    environment = Environment(
        loader=PackageLoader("rflaf.cli", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sets = [{**one, "picture": _picture(one)} for one in data["sets"]]
    page = environment.get_template("demo.html.j2").render({**data, "sets": sets})
    write_whole(path, page.encode())


def _picture(one: dict[str, Any]) -> dict[str, Any]:
    """Coordinates for the SVG: the curve, the bars of the density, the line of zero, labels."""
    z, sigma, density = one["z"], one["sigma"], one["density"]
    low, high = min(*sigma, 0.0), max(*sigma, 0.0)
    inner_width, inner_height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def across(value: float) -> float:
        return round(MARGIN + inner_width * (value - z[0]) / (z[-1] - z[0]), 1)

    def down(value: float) -> float:
        return round(MARGIN + inner_height * (high - value) / ((high - low) or 1.0), 1)

    return {
        "width": WIDTH,
        "height": HEIGHT,
        "curve": " ".join(f"{across(x)},{down(y)}" for x, y in zip(z, sigma)),
        "bars": _bars(density, inner_width / max(len(density), 1), inner_height),
        "zero": {"left": MARGIN, "right": WIDTH - MARGIN, "y": down(0.0)},
        "ticks": [
            {"x": across(value), "y": HEIGHT - 8, "text": f"{value:g}"}
            for value in (z[0], (z[0] + z[-1]) / 2, z[-1])
        ],
    }


def _bars(density: Sequence[float], step: float, height: float) -> list[dict[str, float]]:
    """A third of the picture's height for the highest."""
    top = max([*density, 1])
    return [
        {
            "x": round(MARGIN + i * step, 1),
            "y": round(HEIGHT - MARGIN - height / 3 * count / top, 1),
            "width": round(step, 1),
            "height": round(height / 3 * count / top, 1),
        }
        for i, count in enumerate(density)
    ]
