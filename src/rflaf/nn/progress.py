"""A progress bar where tqdm is there, and lines where it is not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rflaf.nn.protocols import EpochRecord


@contextmanager
def progress_bar(epochs: int, done: int, wanted: bool) -> Iterator[Callable[[EpochRecord], None]]:
    def losses(record: EpochRecord) -> dict[str, str]:
        named = {
            "train": record.train_loss,
            "validation": record.validation_loss,
            "test": record.test_loss,
        }
        return {name: f"{loss:.4g}" for name, loss in named.items() if loss is not None}

    if not wanted:
        yield lambda record: None
        return
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        yield lambda record: print(f"epoch {record.epoch}: {losses(record)}", file=sys.stderr)
        return
    with tqdm(total=epochs, initial=done, unit="epoch") as bar:

        def report(record: EpochRecord) -> None:
            bar.set_postfix(losses(record), refresh=False)
            bar.update()

        yield report
