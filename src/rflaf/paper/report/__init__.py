"""Records as one HTML page. Knows no model: it reads what runs have left behind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rflaf.pages import Page
from rflaf.pages.html import encode, render_page
from rflaf.paper.curves import sort_out
from rflaf.paper.records import Record, Store
from rflaf.paper.report.sections import sections_of
from rflaf.paper.report.summary import facts, sentences
from rflaf.runtime.files import write_whole

__all__ = ["write_report"]


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
        Of the page, which is returned. A file that is there is replaced.
    title : str

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
    write_whole(path, encode(render(records, title)))
    return path


def render(records: Sequence[Record], title: str) -> str:
    known, other = sort_out(records)
    note = "In the tables the best of a column is marked. Click a column's name to sort by it."
    return render_page(
        Page(title, facts(known, other), sentences(known), sections_of(known, other), note=note)
    )
