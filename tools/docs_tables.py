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
from pathlib import Path
from typing import Any

from rflaf.experiments.formats import NOTES, as_markdown
from rflaf.experiments.paper import TITLES
from rflaf.experiments.records import Record, Store
from rflaf.experiments.specs import RECOVERY
from rflaf.experiments.tables import make_table
from rflaf.report.summary import facts, sentences

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def load(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def measured_on(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return f"Measured {machine['date']} on {machine['cores']} cores of {machine['processor']}."


def figures(name: str) -> str:
    result = load(name)
    rows = [
        [row["what"], f"{row['figure']:.3g} {row['unit']}", row["target"].replace("none", "")]
        for row in result["rows"]
        if "series" not in row
    ]
    return markdown(["", "figure", "target"], rows) + f"\n\n{measured_on(result)}"


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
        rows.append([row["what"], loss, percent, row["target"]])
    variance = next(r["target_variance"] for r in result["rows"] if "target_variance" in r)
    note = f"The variance of protein's target is {variance:.3f} on the test rows."
    table = markdown(["", "test loss", "accuracy", "target"], rows)
    return f"{table}\n\n{note} {measured_on(result)}"


@lru_cache(maxsize=1)
def records() -> list[Record]:
    return Store(ROOT / "results").read()


def paper_table(name: str) -> str:
    # the page has its own heading
    return as_markdown(make_table(name, records())).partition("\n")[2].strip()


def reproduction_summary() -> str:
    lines = [f"- {name}: {text}" for name, text in facts(records(), ())]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in sentences(records()))])


def recovery() -> str:
    rows = []
    for model in RECOVERY:
        cells = [model.removeprefix("recovery-")]
        for dataset in ("f1", "f2", "f3"):
            found = [
                record
                for record in records()
                if (record["spec"]["dataset"], record["spec"]["model"]) == (dataset, model)
                and record["spec"]["rows"] is None
            ]
            errors = sorted(record["error"] for record in found)
            text = f"{statistics.median(errors):.3f} ({errors[0]:.3f} to {errors[-1]:.3f}), "
            cells.append(f"{text}{len(errors)} seeds" if errors else "not run")
        rows.append(cells)
    return markdown(["method", "f1", "f2", "f3"], rows)


TABLES = {
    **{name: partial(paper_table, name) for name in TITLES},
    "reproduction_summary": reproduction_summary,
    "reproduction_notes": lambda: NOTES,
    "recovery": recovery,
    "fused": partial(figures, "fused"),
    "nn": partial(figures, "nn"),
    "nn_accuracy": nn_accuracy,
    "theory": partial(figures, "theory"),
    "theory_series": theory_series,
    "estimators": partial(figures, "estimators"),
}
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        old = path.read_text()
        new = MARKED.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}\n{m[3]}", old)
        if new != old:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new)
    if stale and "--check" in sys.argv:
        print(f"not as the results have it: {', '.join(stale)}. Run `make docs-tables`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
