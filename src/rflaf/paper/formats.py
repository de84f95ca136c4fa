"""Tables as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from rflaf.paper.printed import Number
from rflaf.paper.protocols import PROTOCOL_NAMES
from rflaf.paper.tables import COLUMNS, PRINTED_PLACES, UNITS, PaperTable, Row, SubTable

HEADER = ("model", "paper", "published protocol", "difference", "corrected protocol", "seeds")
_COLUMN_OF = {1: "paper", 2: "published", 4: "corrected"}  # where HEADER has numbers
_OUR_PLACES = {"epochs_to_best": 0, "test_loss": 4}  # 2 for others
NOTES = (
    "Means ± population standard deviations over seeds; the difference is that of the published "
    "protocol from the paper, in standard errors; seeds: published / corrected."
)


def show(number: Number | None, quantity: str) -> str:
    """A number; the paper's in its own digits, test losses of ours with a digit more."""
    if number is None:
        return ""
    if number.mean is None:
        return "diverged"
    printed, finished = number.seeds == 0, number.seeds - number.diverged
    places = (PRINTED_PLACES if printed else _OUR_PLACES).get(quantity, 2)
    text = f"{number.mean:.{places}f}"
    if number.std is not None and (printed or finished > 1):
        text += f" ± {number.std:.{places}f}"
    if number.diverged:
        text += f" ({number.diverged} of {number.seeds} diverged)"
    return text


def cells_of(row: Row, quantity: str) -> list[str]:
    """A row of a subtable, under HEADER."""
    paper, published, corrected = (row.numbers.get(column) for column in COLUMNS)
    return [
        row.model,
        show(paper, quantity),
        show(published, quantity),
        "" if row.difference is None else f"{row.difference:+.1f}",
        show(corrected, quantity),
        " / ".join(str(ours.seeds) if ours else "–" for ours in (published, corrected)),
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
        lines += [_pipe(_bold(row, subtable)) for row in subtable.rows]
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
        for row in subtable.rows:
            cells = cells_of(row, subtable.quantity)
            lines.append(" & ".join([name, *map(_tex, cells)]) + r" \\")
            name = ""
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_csv(table: PaperTable) -> str:
    """One line per model and data set, numbers unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f"{p}_{what}" for p in PROTOCOL_NAMES for what in ("mean", "std", "seeds")]
    first = ("table", "dataset", "quantity", "model", "paper", "paper_std")
    writer.writerow([*first, *names, "difference"])
    for subtable in table.subtables:
        for row in subtable.rows:
            cells: list[object] = [table.name, subtable.dataset, subtable.quantity, row.model]
            for column in COLUMNS:
                cells += _unrounded(row.numbers.get(column), counted=column != "paper")
            writer.writerow([*cells, row.difference])
    return out.getvalue()


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
}


def _unrounded(number: Number | None, counted: bool) -> list[object]:
    if number is None:
        return [None] * (3 if counted else 2)
    mean = "diverged" if number.mean is None else number.mean
    return [mean, number.std, number.seeds] if counted else [mean, number.std]


def _bold(row: Row, subtable: SubTable) -> list[str]:
    """The cells, the best of a column in bold."""
    best = subtable.best()
    return [
        f"**{cell}**" if row.model in best.get(_COLUMN_OF.get(k, ""), ()) else cell
        for k, cell in enumerate(cells_of(row, subtable.quantity))
    ]


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _tex(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("–", "--")):
        text = text.replace(plain, escaped)
    return text
