"""Seconds of a default fit against another version: python benchmarks/fit.py OTHER [NAME ...]

OTHER is the `src` folder of another checkout of this project. Both versions fit the same rows in
turn, each in a process of its own, three times; the best counts. Run it on a machine that does
nothing else. Tables come from the folder that RFLAF_DATA names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _bench import show, write

HERE = Path(__file__).parent
NAMES = ("small", "kin40k", "bike", "protein", "adult")
REPEATS = 3

CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
sys.path.insert(0, sys.argv[2])
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss
from rflaf import RFLAFClassifier, RFLAFRegressor
name = sys.argv[1]
data = np.load(sys.argv[3])
x, y, x_test, y_test = (data[k] for k in ("x", "y", "x_test", "y_test"))
kind = RFLAFClassifier if name == "adult" else RFLAFRegressor
kind(50, random_state=0).fit(x[:300], y[:300])
start, work = time.perf_counter(), time.process_time()
model = kind(random_state=0).fit(x, y)
seconds, work = time.perf_counter() - start, time.process_time() - work
if name == "adult":
    loss = log_loss(y_test, model.predict_proba(x_test))
else:
    loss = np.mean((model.predict(x_test) - y_test) ** 2) / np.var(y_test)
print(json.dumps({"seconds": seconds, "processor": work, "loss": float(loss)}))
"""


def rows_of(name: str) -> tuple[Any, ...]:
    from _tables import adult, kin40k_or_bike, protein
    from sklearn.datasets import make_friedman1

    if name == "small":
        x, y = make_friedman1(1500, noise=1.0, random_state=0)
        return x[:1000], y[:1000], x[1000:], y[1000:]
    if name in ("protein", "adult"):
        return {"protein": protein, "adult": adult}[name]()
    return kin40k_or_bike(name)


def run(name: str, source: str, data: Path) -> dict[str, float]:
    """One fit of one version, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", CHILD, name, str(HERE), str(data)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    import tempfile

    import numpy as np

    if not arguments:
        raise SystemExit(__doc__)
    before, *names = arguments
    now = str(HERE.parent / "src")
    found = []
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "rows.npz"
            np.savez(data, **dict(zip(("x", "y", "x_test", "y_test"), rows_of(name))))
            runs = [[run(name, source, data) for source in (before, now)] for _ in range(REPEATS)]
        old, new = (min(each["seconds"] for each in side) for side in zip(*runs))
        losses = [side[0]["loss"] for side in zip(*runs)]
        shape = f"{len(rows_of(name)[0]):,} rows"
        rows = [
            {"what": f"{name}, {shape}: times as fast as before", "figure": old / new, "unit": "×",
             "target": ">= 4", "seconds": new, "seconds_before": old},
            {"what": f"{name}: test loss over that before", "figure": losses[1] / losses[0],
             "unit": "×", "target": "<= 1", "loss": losses[1], "loss_before": losses[0]},
        ]  # fmt: skip
        show(rows)
        found += [{"part": name, **row} for row in rows]
    write("fit", found, replace="part")


if __name__ == "__main__":
    main(sys.argv[1:])
