"""The page: records in, one file out."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rflaf.files import write_whole
from rflaf.paper.curves import sort_out
from rflaf.paper.records import Record, Store
from rflaf.paper.report.sections import sections_of
from rflaf.paper.report.summary import facts, sentences
from rflaf.paper.report.svg import COLORS, draw


def write_report(
    results_folder: str | os.PathLike[str],
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str = "Random feature models with learned activations: results",
) -> Path:
    """Write all records of a folder as one page that needs nothing else.

    Parameters
    ----------
    results_folder : path
        As `rflaf reproduce` writes it.
    path : path
        Of the page. A file that is there is replaced.
    title : str

    Returns
    -------
    Path
        Of the page.

    Examples
    --------
    >>> import tempfile
    >>> spec = {"dataset": "protein", "model": "rfmlp-relu", "protocol": "published", "seed": 72,
    ...         "n_components": 3000, "epochs": 30, "rows": None}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = {"key": "a", "spec": spec, "status": "finished", "test_loss": 0.24}
    ...     Store(folder).append(record)
    ...     page = write_report(folder, f"{folder}/report.html").read_text(encoding="utf-8")
    >>> "On protein, 1 of 1 models are within 3 standard errors of the paper" in page
    True
    """
    records = Store(results_folder).read()
    if not records:
        raise ValueError(
            f"The 'results_folder' parameter of write_report must be a folder with records of "
            f"runs. Got '{os.fspath(results_folder)}', in which there are none."
        )
    path = Path(path)
    # half a character, which JSON can carry, cannot be written
    data = render(records, title).encode("utf-8", "replace")
    write_whole(path, data)
    return path


def render(records: Sequence[Record], title: str) -> str:
    """The page as text."""
    known, other = sort_out(records)
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html.j2").render(
        title=title,
        facts=facts(known, other),
        sentences=sentences(known),
        sections=sections_of(known, other),
        style=_resource("style.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        colors=COLORS,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("A report needs jinja2: pip install 'rflaf[report]'.") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["svg"] = lambda panel: Markup(draw(panel))
    return environment


def _resource(name: str) -> str:
    return files("rflaf.paper.report").joinpath(name).read_text(encoding="utf-8")
