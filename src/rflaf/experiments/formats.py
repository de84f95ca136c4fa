"""Tables as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from rflaf.experiments.paper import Figure
from rflaf.experiments.tables import PRINTED_PLACES, UNITS, Block, Row, Summary, Table

HEADER = ("model", "paper", "published protocol", "difference", "corrected protocol", "seeds")
NOTES = (
    "Means ± population standard deviations over seeds; the difference is that of the published "
    "protocol from the paper, in standard errors; seeds: published / corrected."
)


def show_paper(figure: Figure | None, metric: str) -> str:
    """The paper's number, in its own digits."""
    if figure is None:
        return ""
    if figure.value is None:
        return "diverged"
    places = PRINTED_PLACES.get(metric, 2)
    spread = "" if figure.std is None else f" ± {figure.std:.{places}f}"
    return f"{figure.value:.{places}f}{spread}"


def show_ours(summary: Summary | None, metric: str) -> str:
    """Our number, with a digit more than the paper's."""
    if summary is None:
        return ""
    if summary.mean is None:
        return "diverged"
    places = {"epochs_to_best": 0, "test_loss": 4}.get(metric, 2)
    spread = ""
    if summary.std is not None and summary.seeds - summary.diverged > 1:
        spread = f" ± {summary.std:.{places}f}"
    mark = f" ({summary.diverged} of {summary.seeds} diverged)" if summary.diverged else ""
    return f"{summary.mean:.{places}f}{spread}{mark}"


def cells_of(row: Row, metric: str) -> list[str]:
    """A row of a block, under HEADER."""
    seeds = [str(row.ours[p].seeds) if p in row.ours else "–" for p in ("published", "corrected")]
    return [
        row.model,
        show_paper(row.paper, metric),
        show_ours(row.ours.get("published"), metric),
        "" if row.difference is None else f"{row.difference:+.1f}",
        show_ours(row.ours.get("corrected"), metric),
        " / ".join(seeds),
    ]


def as_text(table: Table) -> str:
    lines = [f"{table.name}: {table.title}"]
    for block in table.blocks:
        lines += ["", f"{block.dataset}, {UNITS[block.metric]}"]
        if not block.rows:
            lines.append(f"  {block.reason}")
            continue
        body = [list(HEADER), *(cells_of(row, block.metric) for row in block.rows)]
        widths = [max(map(len, column)) for column in zip(*body)]
        for cells in body:
            lines.append("  " + "  ".join(f"{c:<{w}}" for c, w in zip(cells, widths)).rstrip())
    return "\n".join([*lines, "", NOTES, ""])


def as_markdown(table: Table, notes: bool = True) -> str:
    lines = [f"### {table.name.replace('table', 'Table ')}: {table.title}"]
    for block in table.blocks:
        lines += ["", f"**{block.dataset}**, {UNITS[block.metric]}", ""]
        if not block.rows:
            lines.append(f"_{block.reason}_")
            continue
        lines += [_pipe(HEADER), _pipe(["---"] * len(HEADER))]
        lines += [_pipe(_bold(cells, row, block)) for row, cells in _body(block)]
    return "\n".join([*lines, *(["", NOTES] if notes else []), ""])


def as_latex(table: Table) -> str:
    lines = [
        f"% {table.name}: {table.title}",
        f"% {NOTES}",
        r"\begin{tabular}{llllrlr}",
        r"\toprule",
        " & ".join(["data set", *HEADER]) + r" \\",
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        name = _tex(f"{block.dataset} ({UNITS[block.metric]})")
        if not block.rows:
            lines.append(rf"{name} & \multicolumn{{6}}{{l}}{{{block.reason}}} \\")
        for _, cells in _body(block):
            lines.append(" & ".join([name, *map(_tex, cells)]) + r" \\")
            name = ""
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_csv(table: Table) -> str:
    """One line a model and data set, numbers unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f"{p}_{what}" for p in ("published", "corrected") for what in ("mean", "std", "seeds")]
    writer.writerow(
        ["table", "dataset", "metric", "model", "paper", "paper_std", *names, "difference"]
    )
    for block in table.blocks:
        for row in block.rows:
            paper = row.paper or Figure(None, None)
            value = "diverged" if row.paper and row.paper.value is None else paper.value
            ours: list[object] = []
            for protocol in ("published", "corrected"):
                s = row.ours.get(protocol)
                ours += [None] * 3 if s is None else [_or_diverged(s), s.std, s.seeds]
            writer.writerow(
                [table.name, block.dataset, block.metric, row.model, value, paper.std, *ours,
                 row.difference]
            )  # fmt: skip
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
}


def _body(block: Block) -> list[tuple[Row, list[str]]]:
    return [(row, cells_of(row, block.metric)) for row in block.rows]


def _bold(cells: list[str], row: Row, block: Block) -> list[str]:
    best = block.best()
    columns = {1: "paper", 2: "published", 4: "corrected"}
    return [
        f"**{cell}**" if k in columns and row.model in best.get(columns[k], ()) else cell
        for k, cell in enumerate(cells)
    ]


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _tex(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("–", "--")):
        text = text.replace(plain, escaped)
    return text


def _or_diverged(summary: Summary) -> float | str:
    return "diverged" if summary.mean is None else summary.mean
