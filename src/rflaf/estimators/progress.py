"""A progress bar where tqdm is installed, else lines."""

from __future__ import annotations

from typing import Any


class Progress:
    """Shows steps and the held-out loss while `verbose` is true."""

    def __init__(self, title: str, total: int, verbose: int) -> None:
        self._title, self._total, self._done = title, total, 0
        self._bar: Any = None
        self._verbose = bool(verbose)
        if self._verbose:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=total, desc=title, leave=True)

    def step(self, record: dict[str, float]) -> None:
        """Count a step, and show its loss."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix(held_out_loss=f"{record['loss']:.4g}", refresh=False)
            self._bar.update()
        elif self._verbose and self._done % 10 == 0:
            print(f"{self._title}: {self._done}/{self._total}, loss {record['loss']:.4g}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
