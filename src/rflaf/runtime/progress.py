"""A progress bar where tqdm is installed, else lines; both with the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

_LINES = 20  # about this many lines for any number of steps


class Progress:
    """Shows steps, their losses and the time left while `verbose` is true.

    `done` are steps of the `total` that were done before, in a run that resumes from a checkpoint.

    Examples
    --------
    >>> with Progress("learning", 2, verbose=0) as progress:
    ...     progress.step({"loss": 0.5})
    ...     progress.step({"loss": 0.25})
    """

    def __init__(self, title: str, total: int, verbose: int, done: int = 0) -> None:
        self._title, self._total, self._verbose = title, total, bool(verbose)
        self._done = self._first = done
        self._start = time.perf_counter()
        self._bar: Any = None
        if self._verbose:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=total, initial=done, desc=title)

    def step(self, record: Mapping[str, Any]) -> None:
        """Count a step, and show its losses: "loss", which is held out, and "…_loss"."""
        self._done += 1
        if not self._verbose:
            return
        losses = {
            "held_out_loss" if name == "loss" else name: f"{value:.4g}"
            for name, value in record.items()
            if name.endswith("loss") and value is not None
        }
        if self._bar is not None:
            self._bar.set_postfix(losses, refresh=False)
            self._bar.update()
        elif self._done % max(1, self._total // _LINES) == 0 or self._done == self._total:
            passed = time.perf_counter() - self._start
            left = passed / (self._done - self._first) * max(self._total - self._done, 0)
            shown = "".join(f", {name.replace('_', ' ')} {text}" for name, text in losses.items())
            print(
                f"{self._title}: {self._done}/{self._total}{shown}, {duration(passed)} so far, "
                f"about {duration(left)} left",
                file=sys.stderr,
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()


def duration(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
