"""Attacks in numbers: python benchmarks/attacks.py

The programs are those of the tests (`tests/test_archive.py`, `tests/estimators/test_all_or_nothing
.py`), run for longer: mutated model files, and Ctrl-C at random moments of a fit. Either ends with
an error at the first file that hangs, crashes or gives anything but a model, and at the first model
that has parts of two fits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _bench import show, write

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.estimators.test_all_or_nothing import CHILD  # noqa: E402
from tests.test_archive import FUZZ  # noqa: E402

from rflaf import RandomFeatures, save  # noqa: E402

FILES, SECONDS = 2000, 60
Row = dict[str, Any]


def run(code: str, *arguments: object) -> list[float]:
    """The numbers that a program of the tests prints at its end."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def row(what: str, figure: float, unit: str = "", target: str = "none") -> Row:
    return {"what": what, "figure": float(figure), "unit": unit, "target": target}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save(RandomFeatures(5, random_state=0).fit(np.eye(4)), path)
        refused, loaded, longest, grown = run(FUZZ, ROOT, path, 0, FILES)
    interrupts = sum(run(CHILD, 7, SECONDS)[:3])
    rows = [
        row(f"{FILES:,} mutated model files: refused", 100 * refused / FILES, "%"),
        row("still a valid model, and loaded", 100 * loaded / FILES, "%"),
        row("longest load of one", 1000 * longest, "ms", "< 10000"),
        row("extra memory compared with an intact file", grown, "MB", "< 200"),
        row(f"interrupts in {SECONDS} s of fits: estimators left intact", interrupts, "", ">= 50"),
    ]
    show(rows)
    write("attacks", rows)


if __name__ == "__main__":
    main()
