"""Seconds and errors of default fits: python benchmarks/fit.py OTHER [PART ...]

OTHER is the `src` folder of another checkout of this project. Parts are tables (see TABLES), and
`busy`, `threads`, `growth` and `learning`. On a table this version, the other one, LightGBM (3,000
trees at a rate of 0.05, 63 leaves, early stopping on a tenth) and scikit-learn's MLPRegressor fit
the same rows in turn, each in a process of its own, with seed after seed; the least of the times
counts, and the mean of the losses.
Run it on a machine that does nothing else. Tables come from the folder that RFLAF_DATA names.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _bench import show, write
from _tables import adult, kin40k_or_bike, mnist, protein, suite_table
from sklearn.datasets import make_friedman1

HERE = Path(__file__).parent
NOW = str(HERE.parent / "src")

CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.metrics import log_loss
from rflaf import RFLAFClassifier, RFLAFRegressor
model, given = sys.argv[1], json.loads(sys.argv[3])
seed = given.setdefault("random_state", 0)
data = np.load(sys.argv[2])
x, y, x_test, y_test = (data[k] for k in ("x", "y", "x_test", "y_test"))
classes = y.dtype.kind in "US" or len(np.unique(y)) <= 10
def fitted(x, y):
    if model == "rflaf":
        return (RFLAFClassifier if classes else RFLAFRegressor)(**given).fit(x, y)
    if model == "mlp":
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        net = MLPRegressor(hidden_layer_sizes=(256, 256), early_stopping=True, random_state=seed)
        spread = y.std()
        return make_pipeline(StandardScaler(), net).fit(x, y / spread), spread
    import lightgbm
    held = np.arange(len(y)) % 10 == 0
    trees = lightgbm.LGBMRegressor(
        n_estimators=3000, learning_rate=0.05, num_leaves=63, n_jobs=2, verbose=-1,
        random_state=seed,
    )
    stop = [lightgbm.early_stopping(50, verbose=False)]
    return trees.fit(x[~held], y[~held], eval_set=[(x[held], y[held])], callbacks=stop)
if model == "rflaf":
    fitted(x[:1000], y[:1000])  # warm: what it needs is compiled and loaded then
start, work = time.perf_counter(), time.process_time()
found = fitted(x, y)
seconds, work = time.perf_counter() - start, time.process_time() - work
found, unit = found if isinstance(found, tuple) else (found, 1.0)
if classes:
    loss = log_loss(y_test, found.predict_proba(x_test), labels=found.classes_)
else:
    loss = np.mean((unit * found.predict(x_test) - y_test) ** 2) / np.var(y_test)
figures = {"seconds": seconds, "processor": work, "loss": float(loss)}
print(json.dumps({**figures, "learning": globals().get("learning", [0.0])[-1]}))
"""
# before the same: notes how long choosing and learning take
WATCH_LEARNING = """
import time
from importlib import import_module
steps, learning = import_module("rflaf.fitting.fit"), [0.0]
def watched(step, begins):
    def run(*given):
        start = time.perf_counter()
        found = step(*given)
        seconds = time.perf_counter() - start
        if begins:
            learning.append(seconds)
        else:
            learning[-1] += seconds
        return found
    return run
steps.choose_forms = watched(steps.choose_forms, True)
steps.learn_layers = watched(steps.learn_layers, False)
"""


def friedman(n: int = 1000) -> tuple[Any, ...]:
    x, y = make_friedman1(1500, noise=1.0, random_state=0)
    return x[:n], y[:n], x[1000:], y[1000:]


# rows, parameters, seeds; and whether LightGBM and the MLP are measured beside
TABLES: dict[str, tuple[Callable[[], tuple[Any, ...]], dict[str, Any], int, bool]] = {
    "small": (friedman, {}, 3, False),
    "few": (lambda: friedman(200), {"n_components": 3000}, 3, False),
    "kin40k": (lambda: kin40k_or_bike("kin40k"), {}, 3, True),
    "bike": (lambda: kin40k_or_bike("bike"), {}, 3, True),
    "house_8L": (lambda: suite_table("reg_extra", "house_8L"), {}, 3, True),
    "diamonds": (lambda: suite_table("mixed", "diamonds"), {}, 3, True),
    "german_credit": (lambda: suite_table("clf", "german_credit"), {}, 3, False),
    "segment": (lambda: suite_table("clf", "segment"), {}, 3, False),
    "phoneme": (lambda: suite_table("clf", "phoneme"), {}, 3, False),
    "protein": (protein, {"n_components": 3000}, 1, False),
    "adult": (adult, {}, 1, False),
    "mnist": (mnist, {"n_components": 1000}, 1, False),
}


def run(
    model: str, source: str, data: Path, given: dict[str, Any] | None = None, before: str = ""
) -> dict[str, float]:
    """One fit, in a process of its own, which runs the code `before` first."""
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", before + CHILD, model, str(data), json.dumps(given or {})]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def stored(rows: tuple[Any, ...]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.npz"
        np.savez(data, **dict(zip(("x", "y", "x_test", "y_test"), rows)))
        yield data


def measure_table(name: str, before: str) -> list[dict[str, Any]]:
    make, given, repeats, peers = TABLES[name]
    rows = make()
    with stored(rows) as data:
        who = {"now": ("rflaf", NOW), "before": ("rflaf", before)}
        if peers and find_spec("lightgbm"):
            who["lightgbm"] = ("lightgbm", NOW)
        if peers:
            who["mlp"] = ("mlp", NOW)
        runs = [
            {
                label: run(*what, data, {**given, "random_state": seed})
                for label, what in who.items()
            }
            for seed in range(repeats)
        ]
    best = {label: min(each[label]["seconds"] for each in runs) for label in who}
    loss = {label: statistics.mean(each[label]["loss"] for each in runs) for label in who}
    text = f"{name}, {len(rows[0]):,} rows"
    found = [
        {"what": f"{text}: fit time", "figure": best["now"], "unit": "s", "target": "",
         "loss": loss["now"], "seeds": repeats},
        {"what": f"{text}: speed relative to b4040f8", "figure": best["before"] / best["now"],
         "unit": "×", "target": "", "seconds_before": best["before"]},
        {"what": f"{text}: loss relative to b4040f8", "figure": loss["now"] / loss["before"],
         "unit": "×", "target": "", "loss_before": loss["before"]},
    ]  # fmt: skip
    for peer in ("lightgbm", "mlp"):
        if peer in who:
            found += [
                {"what": f"{text}: time relative to {peer}", "unit": "×", "target": "",
                 "figure": best["now"] / best[peer], "seconds_peer": best[peer]},
                {"what": f"{text}: loss relative to {peer}", "unit": "×", "target": "",
                 "figure": loss["now"] / loss[peer], "loss_peer": loss[peer]},
            ]  # fmt: skip
    return found


def measure_busy() -> list[dict[str, Any]]:
    """The same fit beside two endless loops per core."""
    cores = len(os.sched_getaffinity(0))
    loop = [sys.executable, "-c", "while True: pass"]
    with stored(suite_table("clf", "phoneme")) as data:
        idle = min(run("rflaf", NOW, data)["seconds"] for _ in range(3))
        loops = [subprocess.Popen(loop) for _ in range(2 * cores)]
        try:
            busy = min(run("rflaf", NOW, data)["seconds"] for _ in range(3))
        finally:
            for each in loops:
                each.kill()
    what = "phoneme: time with two busy loops per core, relative to an idle machine"
    return [{"what": what, "figure": busy / idle, "unit": "×", "target": "<= 3.5"}]


def measure_threads() -> list[dict[str, Any]]:
    """Processor seconds and seconds on two threads over those on one."""
    found = []
    for name in ("small", "house_8L"):
        with stored(TABLES[name][0]()) as data:
            runs = [[run("rflaf", NOW, data, {"n_jobs": k}) for k in (1, 2)] for _ in range(3)]
        for key, title, target in (("processor", "CPU time", "<= 1.2"), ("seconds", "time", "")):
            one, two = (min(side[key] for side in sides) for sides in zip(*runs))
            what = f"{name}: {title} on 2 threads relative to 1"
            found.append({"what": what, "figure": two / one, "unit": "×", "target": target})
    return found


def measure_growth() -> list[dict[str, Any]]:
    """Seconds for 10,000 to 1,000,000 rows at M = 1000."""
    seconds = {}
    for n in (10_000, 100_000, 1_000_000):
        x, y = make_friedman1(n + 1000, noise=1.0, random_state=0)
        with stored((x[:n], y[:n], x[n:], y[n:])) as data:
            seconds[n] = run("rflaf", NOW, data, {"n_components": 1000, "n_members": 1})["seconds"]
    slope = np.log10(seconds[1_000_000] / seconds[100_000])
    return [
        *({"what": f"friedman1, {n:,} rows, M = 1000: seconds", "figure": s, "unit": "s",
           "target": ""} for n, s in seconds.items()),
        {"what": "growth from 100,000 to 1,000,000 rows: slope", "figure": float(slope),
         "unit": "", "target": "<= 1"},
    ]  # fmt: skip


def measure_learning() -> list[dict[str, Any]]:
    """Seconds of choosing and learning on protein over those of the rest, the last solve."""
    make, given, *_ = TABLES["protein"]
    with stored(make()) as data:
        runs = [run("rflaf", NOW, data, given, WATCH_LEARNING) for _ in range(3)]
    figure = min(each["learning"] / (each["seconds"] - each["learning"]) for each in runs)
    what = "protein, M = 3000: time of learning relative to the last solve"
    return [{"what": what, "figure": figure, "unit": "×", "target": "<= 1.5"}]


PARTS = {
    "busy": measure_busy,
    "threads": measure_threads,
    "growth": measure_growth,
    "learning": measure_learning,
}


def main(arguments: list[str]) -> None:
    if not arguments:
        raise SystemExit(__doc__)
    before, *names = arguments
    for name in names or (*TABLES, *PARTS):
        rows = PARTS[name]() if name in PARTS else measure_table(name, before)
        show(rows)
        write("fit", [{"part": name, **row} for row in rows], replace="part")


if __name__ == "__main__":
    main(sys.argv[1:])
