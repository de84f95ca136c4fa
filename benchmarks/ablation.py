"""What each part of the default fit is worth: python benchmarks/ablation.py [KIND or TABLE ...]

The tables of benchmarks/tables.py (`reg`, or `reg/yacht`), thinned to 1,000 training rows, as the
frames that they are. One part at a time is taken away, or another activation is used, with a
learned metric and without one. Each row has the test losses on a table, and is written as soon as
it is known; tools/docs_tables.py makes geometric means of the losses over that of the default fit.
Losses of a single split are noisy: read the means.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _bench import write
from tables import KINDS, parts, scores, tables

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.fitting.trials import Trials
from rflaf.solvers.sketches import Sketch

MOST = 1000


def dishonest_choice() -> AbstractContextManager[Any]:
    """Forms are judged on the rows that they were learned from."""
    honest = Trials._trial

    def trial(self: Any, form: Any) -> Any:
        found = honest(self, form)
        seen = found.sketch.fit
        return replace(found, sketch=Sketch(seen, seen, found.sketch.projection))

    return patch.object(Trials, "_trial", trial)


ACTIVATIONS = {"cosine": "cos", "ReLU": "relu", "tanh": "tanh", "learned B-splines": "bspline"}
NO_METRIC = {"metric": "none"}
VARIANTS: dict[str, tuple[dict[str, Any], Any]] = {
    "the default fit": ({}, nullcontext),
    "only the best form of the inputs": ({"n_members": 5}, nullcontext),
    "standardised columns only": ({"input_form": "raw"}, nullcontext),
    "form chosen on training rows": ({}, dishonest_choice),
    "one member": ({"n_members": 1}, nullcontext),
    "no local models": ({"local_models": False}, nullcontext),
    "no learning at all": ({"max_iter": 0}, nullcontext),
    "no learned metric": (NO_METRIC, nullcontext),
}
for label, name in ACTIVATIONS.items():
    VARIANTS |= {
        f"activation: {label}": ({"activation": name}, nullcontext),
        f"activation: {label}, no learned metric": ({"activation": name, **NO_METRIC}, nullcontext),
    }


def losses(train: Any, test: Any, classes: bool) -> dict[str, float]:
    """The test loss of each variant."""
    estimator: Any = RFLAFClassifier if classes else RFLAFRegressor
    found = {}
    for label, (given, changed) in VARIANTS.items():
        with changed():
            model = estimator(random_state=0, **given).fit(*parts(train, classes))
        found[label] = scores(model, test, classes)["loss"]
    return found


def main(kinds: list[str]) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    for kind in KINDS:
        for name, train, test in tables(folder, kind):
            table = f"{kind}/{name}"
            if kinds and not {kind, table} & set(kinds):
                continue
            train = train.sample(min(len(train), MOST), random_state=0)
            start = time.perf_counter()
            found = losses(train, test, kind == "clf")
            seconds = time.perf_counter() - start
            print(f"{table} {seconds:.0f} s", *(f"{each:.4g}" for each in found.values()))
            write("ablation", [{"table": table, "losses": found}], replace="table")


if __name__ == "__main__":
    main(sys.argv[1:])
