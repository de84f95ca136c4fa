"""Write the tables of README and docs from the committed results: docs_tables.py [--check]

A document marks the place of a table by two comments, `<!-- table: NAME -->` and `<!-- end -->`;
what stands between them is replaced by what the function NAME below makes of benchmarks/results,
or of the records in results/.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import scale_tables
from cost import runs
from measured import code, stamped, when_and_where
from scale_tables import threads_of
from standings import NAMES, by_table, large, standings, which_tables

from rflaf.paper.curves import FUNCTIONS, recoveries, sort_out
from rflaf.paper.formats import NOTES, as_markdown
from rflaf.paper.printed import TITLES
from rflaf.paper.records import Record, Store
from rflaf.paper.report.summary import facts, sentences
from rflaf.paper.specs import RECOVERY
from rflaf.paper.tables import make_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def load(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def measured_on(name: str, kind: str | None = None) -> str:
    """When, where and with which versions; and whether the code that it measures has changed.

    With `kind`, only of rows of that kind.
    """
    rows = [row for row in stamped(load(name)) if kind in (None, row.get("kind"))]
    peers = sorted({row["package"] for row in rows if "package" in row})
    others = f" Other models: {', '.join(peers)}." if peers else ""
    return f"Measured {when_and_where(rows)}.{others}{changed(name)}"


def changed(name: str) -> str:
    own = [row for row in load(name)["rows"] if row.get("model", OWN[0]) in OWN]  # peers are not
    now = {row.get("code") for row in own} == {code(name)}
    return "" if now else " The code that it measures has changed since."


def figures(name: str, targets: bool = False) -> str:
    """What a benchmark measured; for benchmarks/README.md also the targets."""
    result = load(name)
    shown = [row for row in result["rows"] if "series" not in row]
    rows = [[row["what"], f"{row['figure']:.3g} {row['unit']}".strip()] for row in shown]
    header = ["", "figure"]
    if targets:
        header.append("target")
        for cells, row in zip(rows, shown):
            cells.append(row["target"].replace("none", ""))
    return markdown(header, rows) + f"\n\n{measured_on(name)}"


def nn(targets: bool = False) -> str:
    """Training with PyTorch, with each number of threads; for benchmarks/README.md also targets."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in load("nn")["rows"]:
        found.setdefault(row["what"], {})[row["threads"]] = row
    threads = sorted({count for row in found.values() for count in row})
    header = ["", *(f"{count} threads" if count > 1 else "one thread" for count in threads)]
    lines = []
    for what, row in found.items():
        cells = [f"{row[k]['figure']:.3g} {row[k]['unit']}" if k in row else "" for k in threads]
        lines.append([what, *cells])
        if targets:
            lines[-1].append(next(iter(row.values()))["target"].replace("none", ""))
    return markdown(header + ["target"] * targets, lines) + f"\n\n{measured_on('nn')}"


def many_tables() -> str:
    """Ranks, relative losses and fit times of all models, for regression and classification."""
    parts = [
        ("regression", standings(classes=False)),
        ("classification", standings(classes=True)),
        (
            f"classification without `{DOMINANT}`",
            standings(classes=True, without=f"clf/{DOMINANT}"),
        ),
    ]
    lines = [
        [
            f"{title}, {each.tables} tables",
            NAMES[each.model],
            f"{each.rank:.2f}",
            "" if each.error_rank is None else f"{each.error_rank:.2f}",
            f"{each.over_best:.2f}",
            f"{each.seconds:.2g} s",
        ]
        for title, found in parts
        for each in found
    ]
    by_error = "mean rank by error rate"
    header = ["", "model", "mean rank", by_error, "loss relative to the best", "fit time"]
    return markdown(header, lines) + f"\n\n{measured_on('tables')}"


def fit_seconds() -> str:
    """Fit times with the defaults on real tables, by number of rows, and of rows from disk."""
    ours = [row for row in stamped(load("tables")) if row["model"] == "rflaf"]
    disk = runs(stamped(load("scale")), "disk")
    lines = []
    for low, high in pairwise((0, 1000, 2000, 5000, 10_000, 20_000)):
        taken = [row["seconds"] for row in ours if low < row["rows"] <= high]
        if taken:
            span = f"{low:,} to {high:,}" if low else f"up to {high:,}"
            times = [f"{value:.2g} s" for value in (statistics.median(taken), max(taken))]
            lines.append([span, str(len(taken)), *times])
    for row in disk:
        time = f"{row['seconds']:.0f} s"
        lines.append([f"{row['n']:,}, from disk, {threads_of(row)}", "1", time, time])
    header = ["rows", "tables", "median", "longest"]
    notes = (
        f"Tables: measured {when_and_where(ours)}.{changed('tables')}",
        (f"From disk: measured {when_and_where(disk)}.{changed('scale')}"),
    )
    return f"{markdown(header, lines)}\n\n{' '.join(notes)}"


def ablation() -> str:
    """Losses without each part of the default fit, relative to the whole."""
    rows = load("ablation")["rows"]
    tasks = [[row["losses"] for row in rows if row["table"].startswith("clf/") == classes]
             for classes in (False, True)]  # fmt: skip
    lines = []
    for what in dict.fromkeys(what for row in rows for what in row["losses"]):
        cells = [what]
        for losses in tasks:
            over = [each[what] / each["the default fit"] for each in losses if what in each]
            worse = f"{sum(ratio > 1 for ratio in over)} of {len(over)}"
            cells += [f"{statistics.geometric_mean(over):.3f}", worse] if over else ["", ""]
        lines.append(cells)
    header = ["", "regression", "worse on", "classification", "worse on"]
    return markdown(header, lines) + f"\n\n{measured_on('ablation')}"


def few() -> str:
    """Losses on tables reduced to few rows, next to models that suit so few."""
    result = load("few")
    rows = result["rows"]
    titles = {"numbers": "regression", "classes": "classification"}
    models = list(dict.fromkeys(row["model"] for row in rows))
    losses = {(row["task"], row["rows"], row["model"]): f"{row['figure']:.3f}" for row in rows}
    lines = [
        [titles[task], str(n), *(losses[task, n, model] for model in models)]
        for task, n in dict.fromkeys((row["task"], row["rows"]) for row in rows)
    ]
    return markdown(["", "rows", *models], lines) + f"\n\n{measured_on('few')}"


def starts() -> str:
    """Losses of several seeds where few inputs matter, and only together."""
    rows = [
        [
            row["problem"],
            f"{row['rows']:,}",
            *(f"{row[k]:.3f}" for k in ("best", "middle", "worst")),
        ]
        for row in load("starts")["rows"]
    ]
    header = ["problem", "rows", "best seed", "median", "worst seed"]
    return f"{markdown(header, rows)}\n\n{measured_on('starts')}"


def first() -> str:
    """What a fresh process waits for and holds, with an empty cache of kernels and a full one."""
    if not (RESULTS / "first.json").exists():
        return "Not measured yet."
    found = {(row["what"], row["cache"]): row for row in load("first")["rows"]}
    caches = list(dict.fromkeys(cache for _, cache in found))
    lines = []
    for what in dict.fromkeys(what for what, _ in found):
        figures = [found[what, cache] for cache in caches]
        lines.append([what, *(f"{row['figure']:.3g} {row['unit']}" for row in figures)])
    header = ["", *(f"{cache} cache" for cache in caches)]
    return markdown(header, lines) + f"\n\n{measured_on('first')}"


def honesty() -> str:
    """Out-of-fold scores minus those on new rows."""
    result = load("honesty")
    rows = [
        [row["what"], f"{row['figure']:+.3f} ± {row['standard_error']:.3f}", str(row["tables"])]
        for row in result["rows"]
    ]
    header = ["", "`oof_score_` minus the score on new rows", "tables"]
    return markdown(header, rows) + f"\n\n{measured_on('honesty')}"


def outside() -> str:
    """Errors outside the range of the training rows: each table and each known function."""
    result = load("outside")
    texts = {"find": "table", "check": "table, held back", "known": "function"}
    rows = [
        [texts[row["group"]], row["name"]]
        + [f"{row[name]:.3f}" for name in ("error", "boosting", "ridge")]
        + [f"{row['covered']:.0%}"]
        for row in result["rows"]
    ]
    header = ["", "", "rflaf", "boosting", "ridge", "coverage of 90 % intervals"]
    return markdown(header, rows) + "\n\n" + measured_on("outside")


def uncertainty() -> str:
    """Predictive distributions on the standard splits, next to the best published figures."""
    result = load("uncertainty")
    rows = [
        [row["set"], row["model"], str(row["splits"])]
        + [f"{row[name]:.3g} ({row[f'published_{name}']:g})" for name in ("nll", "rmse")]
        + [f"{row['coverage']:.1%}", f"{row['crps']:.3g}"]
        for row in result["rows"]
    ]
    header = ["set", "model", "splits", "NLL (published)", "RMSE (published)", "coverage", "CRPS"]
    return markdown(header, rows) + "\n\n" + measured_on("uncertainty")


def between() -> str:
    """Predictive distributions for rows between those of the fit."""
    rows = [
        [row["set"], row["model"], str(row["splits"])]
        + [f"{row[name]:.3g}" for name in ("nll", "rmse")]
        + [f"{row['coverage']:.1%}", f"{row['crps']:.3g}"]
        for row in load("between")["rows"]
    ]
    header = ["set", "model", "columns", "NLL", "RMSE", "coverage", "CRPS"]
    return markdown(header, rows) + "\n\n" + measured_on("between")


def rules_tried() -> str:
    """Losses and times with another value of a rule, relative to its own value."""
    result = load("rules")
    rows = [
        [
            f"`{row['rule']}`",
            f"`{row['is']}`",
            f"`{row['value']}`",
            f"{row['loss']:.3f}",
            f"{row['seconds']:.2f}",
            f"{row['worse']} of {row['tables']}",
            row["half"],
        ]
        for row in sorted(result["rows"], key=lambda row: (row["rule"], row["value"]))
    ]
    header = ["rule", "value", "tried", "relative loss", "relative CPU time", "worse on", "half"]
    return markdown(header, rows) + f"\n\n{measured_on('rules')}"


def theory_series() -> str:
    rows = [row for row in load("theory")["rows"] if "series" in row]
    errors: dict[tuple[str, float], list[str]] = {}
    for row in rows:
        case = row["series"]
        key = case["activation"], case["norm"]
        errors.setdefault(key, []).append(f"{row['figure']:.0e}")
    terms = sorted({row["series"]["n_hermite"] for row in rows})
    header = ["activation", "norm of x", *(f"{n} terms" for n in terms)]
    return markdown(header, [[name, f"{norm:g}", *found] for (name, norm), found in errors.items()])


def nn_accuracy() -> str:
    result = load("nn_accuracy")
    rows = []
    for row in result["rows"]:
        loss, percent = "diverged", ""
        if "test_loss" in row:
            loss = f"{row['test_loss']:.4f} ± {row['test_loss_std']:.4f}"
        if "test_accuracy_pct" in row:
            percent = f"{row['test_accuracy_pct']:.2f} ± {row['test_accuracy_pct_std']:.2f} %"
        rows.append([row["what"], loss, percent])
    variance = next(r["target_variance"] for r in result["rows"] if "target_variance" in r)
    note = f"The variance of protein's target is {variance:.3f} on the test rows."
    table = markdown(["", "test loss", "accuracy"], rows)
    return f"{table}\n\n{note} {measured_on('nn_accuracy')}"


def networks() -> str:
    """Errors of whole networks by activation."""
    result = load("networks")
    found = {
        ((row["data"], row["network"], row["budget"]), row["activation"]): row
        for row in result["rows"]
    }
    places, names = (list(dict.fromkeys(pair[k] for pair in found)) for k in (0, 1))
    order = list(dict.fromkeys(place[:2] for place in places))
    rows = []
    for data, network, budget in sorted(places, key=lambda place: order.index(place[:2])):
        epochs = budget.removeprefix("time of ").removesuffix(" with ReLU")
        cells = [found.get(((data, network, budget), name)) for name in names]
        cells[names.index("ReLU")] = found[(data, network, epochs), "ReLU"]  # both budgets are its
        shown = ["" if cell is None else _spread(cell) for cell in cells]
        rows.append([f"{data}, {network}", budget, *shown])
    firsts = {row["data"]: row for row in found.values()}
    notes = [
        f"{data}: {row['measure']}, {row['train_rows']:,} training and {row['test_rows']:,} test "
        f"rows, {len(row['errors'])} seeds."
        for data, row in firsts.items()
    ]
    table = markdown(["", "budget", *names], rows)
    return f"{table}\n\n{' '.join(notes)} {measured_on('networks')}"


def _spread(row: dict[str, Any]) -> str:
    digits = 2 if row["measure"].endswith("%") else 3
    return f"{row['error']:.{digits}f} ± {row['error_std']:.{digits}f}"


@lru_cache(maxsize=1)
def records() -> list[Record]:
    return sort_out(Store(ROOT / "results").read())[0]


def paper_table(name: str) -> str:
    # the page has its own heading
    return as_markdown(make_table(name, records()), notes=False).partition("\n")[2].strip()


def reproduction_summary() -> str:
    lines = [f"- {name}: {text}" for name, text in facts(records(), ())]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in sentences(records()))])


def recovery() -> str:
    found = {(each.function, each.method): each for each in recoveries(records())}
    rows = []
    for model in RECOVERY:
        cells = [model.removeprefix("recovery-")]
        for function in FUNCTIONS:
            if (each := found.get((function, model))) is None:
                cells.append("not run")
                continue
            first, last = each.runs[0]["error"], each.runs[-1]["error"]
            cells.append(f"{each.error:.3f} ({first:.3f} to {last:.3f}), {len(each.runs)} seeds")
        rows.append(cells)
    return markdown(["method", *FUNCTIONS], rows)


OWN = "rflaf", "without local models", "rflaf with AVX-512"
DOMINANT = "mushroom"  # relative losses there are so large that they decide the mean
FIGURES = (*("attacks", "effort", "estimators", "fused", "load", "theory", "trust", "wide"),)
TABLES = {
    **{name: partial(paper_table, name) for name in TITLES},
    "reproduction_summary": reproduction_summary,
    "reproduction_notes": lambda: NOTES,
    "recovery": recovery,
    "scale": lambda: f"{markdown(*scale_tables.sizes())}\n\n{measured_on('scale', 'disk')}",
    "scale_figures": lambda: f"{markdown(*scale_tables.figures())}\n\n{measured_on('scale')}",
    "scale_terms": lambda: markdown(*scale_tables.terms()),
    "scale_check": lambda: markdown(*scale_tables.check()),
    "scale_cost": lambda: f"{markdown(*scale_tables.costs())}\n\n{scale_tables.limits()}",
    **{name: partial(figures, name) for name in FIGURES},
    **{f"{name}_targets": partial(figures, name, targets=True) for name in FIGURES},
    "nn": nn,
    "nn_targets": partial(nn, targets=True),
    "nn_accuracy": nn_accuracy,
    "networks": networks,
    "theory_series": theory_series,
    "tables": many_tables,
    "tables_note": lambda: f"{which_tables()} {measured_on('tables')}",
    "by_table": lambda: markdown(*by_table()),
    "large": lambda: f"{markdown(*large())}\n\n{measured_on('large')}",
    "ablation": ablation,
    "few": few,
    "starts": starts,
    "first": first,
    "honesty": honesty,
    "outside": outside,
    "uncertainty": uncertainty,
    "between": between,
    "rules": rules_tried,
    "fit_seconds": fit_seconds,
}
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    stale = []
    for path in DOCUMENTS:
        old = path.read_text(encoding="utf-8")
        new = MARKED.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}\n{m[3]}", old)
        if new != old:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}. Run `make docs-tables`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
