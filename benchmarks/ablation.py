"""What each part of the default fit is worth: python benchmarks/ablation.py [KIND ...]

The tables of benchmarks/tables.py, thinned to 1,000 training rows. One part at a time is taken
away; the figure is the test loss over that of the whole, in the geometric mean over tables, and on
how many tables it is larger. Losses of a single split are noisy: read the means.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _bench import write
from sklearn.pipeline import make_pipeline
from tables import KINDS, measure, numbers, tables

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


VARIANTS: dict[str, tuple[dict[str, Any], Any]] = {
    "the default fit": ({}, nullcontext),
    "only the best form of the inputs": ({"n_members": 5}, nullcontext),
    "standardised columns only": ({"input_form": "raw"}, nullcontext),
    "form chosen on training rows": ({}, dishonest_choice),
    "one member": ({"n_members": 1}, nullcontext),
    "no local models": ({"local_models": False}, nullcontext),
    "activation: cosine": ({"activation": "cos"}, nullcontext),
    "activation: ReLU": ({"activation": "relu"}, nullcontext),
    "activation: tanh": ({"activation": "tanh"}, nullcontext),
    "activation: learned B-splines": ({"activation": "bspline"}, nullcontext),
    "cosine, no learned metric": ({"activation": "cos", "metric": "none"}, nullcontext),
    "no learned metric": ({"metric": "none"}, nullcontext),
    "no learning at all": ({"max_iter": 0}, nullcontext),
}


def main(kinds: list[str]) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    losses: dict[str, list[float]] = {name: [] for name in VARIANTS}
    names = []
    for kind in kinds or KINDS:
        estimator: Any = RFLAFClassifier if kind == "clf" else RFLAFRegressor
        for name, train, test in tables(folder, kind):
            names.append(f"{kind}/{name}")
            train = train.sample(min(len(train), MOST), random_state=0)
            for label, (given, changed) in VARIANTS.items():
                model = make_pipeline(numbers(), estimator(random_state=0, **given))
                with changed():
                    found = measure(model, train, test, kind == "clf")
                losses[label].append(found["loss"])
            print(names[-1], *(f"{each[-1]:.4f}" for each in losses.values()), flush=True)
    whole = np.array(losses["the default fit"])
    rows = []
    for label, each in losses.items():
        ratio = np.array(each) / whole
        rows.append({
            "what": label,
            "figure": float(np.exp(np.mean(np.log(ratio)))),
            "worse": int(np.sum(ratio > 1)),
            "tables": len(names),
            "losses": dict(zip(names, each)),
        })  # fmt: skip
        print(f"{label:45}{rows[-1]['figure']:8.3f}  worse on {rows[-1]['worse']}")
    write("ablation", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
