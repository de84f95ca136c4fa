"""Figures of matplotlib as files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rflaf.runtime.extras import needed
from rflaf.runtime.files import write_whole


@contextmanager
def picture(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """A figure of a size in inches, which is written as PNG at the end of the block."""
    # without pyplot, which has state and may want a screen
    pages = needed("matplotlib.figure", "Plots need matplotlib", "'rflaf[plot]'")
    figure = pages.Figure(figsize=size, layout="constrained", facecolor="white")
    yield figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    write_whole(path, buffer.getvalue())
