"""Tables as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from rflaf.paper.printed import PaperNumber
from rflaf.paper.tables import PRINTED_PLACES, UNITS, PaperTable, Row, SubTable, Summary

HEADER = ("model", "paper", "published protocol", "difference", "corrected protocol", "seeds")
NOTES = (
    "Means ± population standard deviations over seeds; the difference is that of the published "
    "protocol from the paper, in standard errors; seeds: published / corrected."
)


def show_paper(number: PaperNumber | None, quantity: str) -> str:
    """The paper's number, in its own digits."""
    if number is None:
        return ""
    if number.value is None:
        return "diverged"
    places = PRINTED_PLACES.get(quantity, 2)
    spread = "" if number.std is None else f" ± {number.std:.{places}f}"
    return f"{number.value:.{places}f}{spread}"


def show_ours(summary: Summary | None, quantity: str) -> str:
    """Our number, with a digit more than the paper's."""
    if summary is None:
        return ""
    if summary.mean is None:
        return "diverged"
    places = {"epochs_to_best": 0, "test_loss": 4}.get(quantity, 2)
    spread = ""
    if summary.std is not None and summary.seeds - summary.diverged > 1:
        spread = f" ± {summary.std:.{places}f}"
    mark = f" ({summary.diverged} of {summary.seeds} diverged)" if summary.diverged else ""
    return f"{summary.mean:.{places}f}{spread}{mark}"


def cells_of(row: Row, quantity: str) -> list[str]:
    """A row of a subtable, under HEADER."""
    seeds = [str(row.ours[p].seeds) if p in row.ours else "–" for p in ("published", "corrected")]
    return [
        row.model,
        show_paper(row.paper, quantity),
        show_ours(row.ours.get("published"), quantity),
        "" if row.difference is None else f"{row.difference:+.1f}",
        show_ours(row.ours.get("corrected"), quantity),
        " / ".join(seeds),
    ]


def as_text(table: PaperTable) -> str:
    lines = [f"{table.name}: {table.title}"]
    for subtable in table.subtables:
        lines += ["", f"{subtable.dataset}, {UNITS[subtable.quantity]}"]
        if not subtable.rows:
            lines.append(f"  {subtable.reason}")
            continue
        body = [list(HEADER), *(cells_of(row, subtable.quantity) for row in subtable.rows)]
        widths = [max(map(len, column)) for column in zip(*body)]
        for cells in body:
            lines.append("  " + "  ".join(f"{c:<{w}}" for c, w in zip(cells, widths)).rstrip())
    return "\n".join([*lines, "", NOTES, ""])


def as_markdown(table: PaperTable, notes: bool = True) -> str:
    lines = [f"### {table.name.replace('table', 'Table ')}: {table.title}"]
    for subtable in table.subtables:
        lines += ["", f"**{subtable.dataset}**, {UNITS[subtable.quantity]}", ""]
        if not subtable.rows:
            lines.append(f"_{subtable.reason}_")
            continue
        lines += [_pipe(HEADER), _pipe(["---"] * len(HEADER))]
        lines += [_pipe(_bold(cells, row, subtable)) for row, cells in _body(subtable)]
    return "\n".join([*lines, *(["", NOTES] if notes else []), ""])


def as_latex(table: PaperTable) -> str:
    lines = [
        f"% {table.name}: {table.title}",
        f"% {NOTES}",
        r"\begin{tabular}{llllrlr}",
        r"\toprule",
        " & ".join(["data set", *HEADER]) + r" \\",
    ]
    for subtable in table.subtables:
        lines.append(r"\midrule")
        name = _tex(f"{subtable.dataset} ({UNITS[subtable.quantity]})")
        if not subtable.rows:
            lines.append(rf"{name} & \multicolumn{{6}}{{l}}{{{subtable.reason}}} \\")
        for _, cells in _body(subtable):
            lines.append(" & ".join([name, *map(_tex, cells)]) + r" \\")
            name = ""
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_csv(table: PaperTable) -> str:
    """One line per model and data set, numbers unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f"{p}_{what}" for p in ("published", "corrected") for what in ("mean", "std", "seeds")]
    writer.writerow(
        ["table", "dataset", "quantity", "model", "paper", "paper_std", *names, "difference"]
    )
    for subtable in table.subtables:
        for row in subtable.rows:
            paper = row.paper or PaperNumber(None, None)
            value = "diverged" if row.paper and row.paper.value is None else paper.value
            ours: list[object] = []
            for protocol in ("published", "corrected"):
                s = row.ours.get(protocol)
                ours += [None] * 3 if s is None else [_or_diverged(s), s.std, s.seeds]
            what = [table.name, subtable.dataset, subtable.quantity, row.model]
            writer.writerow([*what, value, paper.std, *ours, row.difference])
    return out.getvalue()


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
}


def _body(subtable: SubTable) -> list[tuple[Row, list[str]]]:
    return [(row, cells_of(row, subtable.quantity)) for row in subtable.rows]


def _bold(cells: list[str], row: Row, subtable: SubTable) -> list[str]:
    best = subtable.best()
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
