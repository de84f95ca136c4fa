"""Seconds of training and of testing, as multiples of ReLU's in the same run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from rflaf.paper.environment import stamp
from rflaf.paper.records import Record, Store
from rflaf.paper.runs import build, cached_load, part_of, protocol_of
from rflaf.paper.specs import Spec
from rflaf.runtime.callers import warn

REFERENCE = "rfmlp-relu"
ROWS = 4096  # to train on, and as many to test on: ratios need no more
REPEATS = 5


def measure_times(
    dataset: str,
    models: Sequence[str],
    store: Store,
    *,
    quick: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> list[Record]:
    """Time the models that have no record yet, each in turn, ReLU among them, the best of several.

    The seconds are those of an epoch of the published training on some of the rows, with Z = X W
    of frozen models computed before, as `train` does. Other work on the machine makes the
    ratios wrong; the load at the start is kept in the record, and warned about. What another
    process is timing in this folder is left to it.
    """
    with store.claim(f"timing/{dataset}") as mine:
        if not mine:
            return []
        there = store.keys()
        specs = {model: timing_spec(dataset, model, quick) for model in (REFERENCE, *models)}
        todo = [model for model in models if f"timing/{specs[model].key}" not in there]
        if not todo:
            return []
        load = _load()
        if load > 0.6:
            warn(f"The machine is busy (load {load:.1f}): ratios of times may be wrong.")
        best = dict.fromkeys((REFERENCE, *todo), (math.inf, math.inf))
        repeats = 1 if quick else REPEATS
        for k in range(repeats):
            for name, (train, test) in best.items():
                report(f"{dataset}, {name}, {k + 1} of {repeats}")
                again = _seconds(specs[name])
                best[name] = min(train, again[0]), min(test, again[1])
        records = []
        for name in todo:
            (train, test), (relu_train, relu_test) = best[name], best[REFERENCE]
            record = {
                "key": f"timing/{specs[name].key}",
                "kind": "timing",
                "spec": specs[name].to_dict(),
                "status": "finished",
                "train_seconds": train,
                "test_seconds": test,
                "train_time_ratio": train / relu_train,
                "test_time_ratio": test / relu_test,
                "load": load,
                "seconds": train + test,
                **stamp(),
            }
            store.append(record)
            records.append(record)
        return records


def timing_spec(dataset: str, model: str, quick: bool) -> Spec:
    """What is timed: one epoch of the published protocol."""
    spec = Spec.of(dataset, model, "published", 0)
    spec = spec.quick() if quick else spec
    return replace(spec, epochs=1, rows=spec.rows or ROWS)


def _seconds(spec: Spec) -> tuple[float, float]:
    """Of training and testing."""
    from rflaf.paper.training import Data, train

    data, rows = cached_load(spec.dataset, "published"), spec.rows or ROWS
    small = part_of(data, rows)
    arrays = Data(small.X_train, small.y_train, data.X_test[:rows], data.y_test[:rows])
    result = train(build(spec, data), arrays, protocol_of(spec, data), seed=spec.seed)
    return result.history[0].train_seconds, result.history[0].test_seconds


def _load() -> float:
    """Running processes per core, over the last minute."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (OSError, AttributeError):
        return 0.0
