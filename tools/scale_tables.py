"""The tables of docs/scale.md: what was measured, and what tools/cost.py makes of it."""

from __future__ import annotations

import json
from typing import Any

from cost import RESULTS, Size, fit_model, runs

Table = tuple[list[str], list[list[str]]]
BILLION = 10**9
PARTITION = 10**6
CASES = (  # of a billion rows, with what differs from the first
    ("", Size(BILLION), 100, PARTITION),
    ("1 worker", Size(BILLION), 1, PARTITION),
    ("10 workers", Size(BILLION), 10, PARTITION),
    ("1,000 workers", Size(BILLION), 1000, PARTITION),
    ("100 million rows", Size(10**8), 100, PARTITION),
    ("two members", Size(BILLION, members=2), 100, PARTITION),
    ("100 columns", Size(BILLION, d=100), 100, PARTITION),
    ("3,000 features", Size(BILLION, m=3000), 100, PARTITION),
    ("partitions of 50,000 rows", Size(BILLION), 100, 50_000),
)


def measured() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]


def threads_of(run: dict[str, Any]) -> str:
    return "one thread" if run["threads"] == 1 else f"{run['threads']} threads"


def sizes() -> Table:
    """Fits from disk."""
    header = ["rows", "threads", "members", "fit time (s)", "CPU time (s)", "of it passes (s)"]
    header += ["rows per second", "predictions per second", "peak memory (MB)"]
    lines = []
    for run in runs(measured(), "disk"):
        seconds = run["seconds"], run["processor_seconds"], run["read_seconds"] + run["sum_seconds"]
        rates = run["figure"], run["predicted_per_second"]
        lines.append([f"{run[name]:,}" for name in ("n", "threads", "members")])
        lines[-1] += [f"{each:.3g}" for each in seconds] + [f"{each:,.0f}" for each in rates]
        lines[-1].append(f"{run['peak_bytes'] / 1e6:.0f}")
    return header, lines


def figures() -> Table:
    """Dask, the machine, and how time and memory grow."""
    rows = measured()
    found = [row for kind in ("passes", "dask", "machine") for row in runs(rows, kind)]
    found += [row for row in rows if row["kind"] == "derived"]
    return ["", "figure"], [
        [row["what"], f"{row['figure']:.3g} {row['unit']}".strip()] for row in found
    ]


def terms() -> Table:
    """The coefficients of the model, each with its unit."""
    model, _ = fit_model(measured())
    (read,), (sums, solve) = model.terms["read_seconds"], model.terms["sum_seconds"]
    learn, per_row = model.terms["learn_seconds"]
    fixed, held = model.terms["peak_bytes"]
    lines = [
        [
            "reading, to draw the sample",
            "bytes of the rows",
            f"{1e9 * read:.2g} s per GB" if read else "measured with the sums",
        ],
        ["sums over rows", "members · n · M · (M + d)", f"{1e12 * sums:.3g} s per 10¹²"],
        ["solutions for all penalties", "members · M³", f"{1e9 * solve:.2g} s per 10⁹"],
        [
            "learning, on the client",
            "1, and rows of the sample",
            f"{learn:.2g} s + {1e5 * per_row:.2g} s per 100,000",
        ],
        [
            "memory of learning",
            "1, and rows of the sample",
            f"{fixed / 1e6:.3g} MB + {held / 10:.2g} MB per 100,000",
        ],
        ["passes on threads", "CPU time / threads", f"{model.slower['disk']:.2f} ×"],
        ["passes with Dask", "CPU time / workers", f"{model.slower['dask']:.2f} ×"],
    ]
    return ["", "grows with", "coefficient"], lines


def check() -> Table:
    """Runs that the model has not seen."""
    model, unseen = fit_model(measured())
    lines = []
    for run in unseen:
        cost = model.of_run(run)
        pairs = [("fit time", "s", cost.seconds, run["seconds"])]
        pairs += [("passes", "s", cost.passes, run["pass_clock"])]
        if "peak_bytes" in run:
            pairs += [("peak memory", "MB", cost.held / 1e6, run["peak_bytes"] / 1e6)]
        if "sent_bytes" in run:
            pairs += [("sent, at most", "MB", cost.sent / 1e6, run["sent_bytes"] / 1e6)]
        for what, unit, predicted, found in pairs:
            figures = [f"{each:.3g} {unit}" for each in (predicted, found)]
            lines.append([run["what"], what, *figures, f"{predicted / found:.2f}"])
    return ["run", "", "model", "measured", "ratio"], lines


def costs() -> Table:
    """A billion rows."""
    model, _ = fit_model(measured())
    header = ["", "learning (s)", "passes (s)", "sending (s)", "fit time (s)", "client (MB)"]
    header += ["worker (MB)", "sent (GB)", "read by each (GB)"]
    lines = []
    for name, size, workers, partition in CASES:
        cost = model(size, workers, partition)
        read = 2 * 4 * (size.d + 1) * size.n / workers
        cells = [cost.learn, cost.passes, cost.send, cost.seconds]
        cells += [cost.held / 1e6, cost.worker / 1e6, cost.sent / 1e9, read / 1e9]
        lines.append([name or "100 workers", *(_short(each) for each in cells)])
    return header, lines


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def limits() -> str:
    """What the time of a billion rows goes to, and where that changes."""
    model, _ = fit_model(measured())
    cost = model(Size(BILLION), 100, PARTITION)
    even = 100 * cost.passes / (cost.learn + cost.send)
    small = next(
        rows
        for rows in range(PARTITION, 0, -1000)
        if model(Size(BILLION), 100, rows).send > cost.passes or rows == 1000
    )
    share = 100 * cost.passes / cost.seconds
    return (
        f"With 100 workers, passes take {share:.0f} % of the time. From about {even:,.0f} workers "
        "on, learning and sending take longer than the passes. With 100 workers and partitions of "
        f"{small:,} rows, sending takes as long as the passes."
    )
