"""The knob between time and accuracy: loss and time of `effort` "fast" and "best".

    python benchmarks/effort.py [--quick] [--half find|check]

Losses and times are relative to the default's, on the tables of $RFLAF_DATA/suite with at most
25,000 rows. The numbers of `rules.EFFORTS` were found on every other table in the order of their
names, from the first one on ("find"); the others ("check") say what they are worth. Times are those
of an idle machine, and only compared with each other; processor times are there because they depend
less on what else runs. Fits are warm: a small one comes first.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _bench import best_seconds, show, write
from sklearn.datasets import make_friedman1
from tables import measure, tables

from rflaf import RFLAFClassifier, RFLAFRegressor

MOST_ROWS = 25_000
EFFORTS = ("default", "fast", "best")
TARGETS = {"fast": "<= 1.15", "best": "<= 0.97"}


def halves(kind: str) -> dict[str, list[tuple[str, Any, Any]]]:
    """The tables of a kind that choose, and those that judge."""
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    every = [each for each in tables(folder, kind) if len(each[1]) + len(each[2]) <= MOST_ROWS]
    return {"find": every[::2], "check": every[1::2]}


def compare(kind: str, train: Any, test: Any) -> dict[str, dict[str, float]]:
    """Loss, time and processor time of each effort."""
    estimator: Any = RFLAFClassifier if kind == "clf" else RFLAFRegressor
    found = {}
    for effort in EFFORTS:
        start = time.process_time()
        result = measure(estimator(effort=effort, random_state=0), train, test, kind == "clf")
        found[effort] = {**result, "processor": time.process_time() - start}
    return found


def small_fits(quick: bool) -> list[dict[str, Any]]:
    """Seconds of fast fits to 1,000 and 12,000 rows."""
    rows = []
    for count, target in ((1000, "<= 0.1"), (12_000, "<= 1")):
        x, y = make_friedman1(count, noise=1.0, random_state=0)
        model = RFLAFRegressor(effort="fast", random_state=0)
        (seconds,) = best_seconds(lambda m=model, x=x, y=y: m.fit(x, y), repeats=1 if quick else 5)
        rows.append(_row(f"fast, {count:,} rows × 10 columns", seconds, "s", target))
    return rows


def main(quick: bool, wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    rows = small_fits(quick)
    for half in wanted if not quick else ():
        ratios: dict[tuple[str, str], list[float]] = {}
        for kind in ("reg", "reg_extra", "clf", "mixed"):
            for name, train, test in halves(kind)[half]:
                found = compare(kind, train, test)
                for effort in EFFORTS[1:]:
                    for what in ("loss", "seconds", "processor"):
                        ratio = found[effort][what] / found["default"][what]
                        ratios.setdefault((effort, what), []).append(ratio)
                    shown = " ".join(f"{ratios[effort, w][-1]:.3f}" for w in ("loss", "processor"))
                    print(f"{half:6}{kind:10}{name:24}{effort:8}{shown}", flush=True)
        for (effort, what), values in ratios.items():
            mean = float(np.exp(np.mean(np.log(values))))
            target = TARGETS[effort] if what == "loss" else "<= 10" if effort == "best" else "-"
            text = f"{effort}, {what} relative to default, {len(values)} tables ({half})"
            rows.append(_row(text, mean, "", target))
    show(rows)
    if not quick:
        write("effort", rows, replace="what")


def _row(what: str, figure: float, unit: str, target: str) -> dict[str, Any]:
    return {"what": what, "figure": figure, "unit": unit, "target": target}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test, of the times alone")
    parser.add_argument("--half", choices=("find", "check"), help="only these tables")
    given = parser.parse_args()
    main(given.quick, [given.half] if given.half else ["find", "check"])
