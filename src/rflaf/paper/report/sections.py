"""What the page has: tables and panels, ready to be shown."""

from __future__ import annotations

from rflaf.pages import Cell, Section, Subsection, TableView
from rflaf.paper import curves, tables
from rflaf.paper.formats import HEADER, NOTES, cells_of
from rflaf.paper.printed import DATASETS, FIGURES, TITLES
from rflaf.paper.protocols import PROTOCOL_NAMES
from rflaf.paper.records import Record
from rflaf.paper.report.summary import CLOSE

_MANY_ROWS = 12  # longer tables are folded, but for the first
_MOST_OTHERS = 200


def sections_of(known: list[Record], other: list[Record]) -> list[Section]:
    """All sections, in their order; tables and figures also where there is nothing to show."""
    there = curves.datasets_in(known)
    always = [_table_section(tables.make_table(name, known)) for name in TITLES]
    always += [_figure1(known, there), *_recovery_sections(known)]
    more = [make(known, there) for make in (_activations, _losses, _more_datasets)]
    return [*always, *(section for section in (*more, _others(other)) if section.subsections)]


def _table_section(table: tables.PaperTable) -> Section:
    shown = [subtable for subtable in table.subtables if subtable.rows]
    missing = {each.dataset: each.reason for each in table.subtables if not each.rows}
    folded = any(len(subtable.rows) > _MANY_ROWS for subtable in shown)
    subsections = tuple(
        Subsection(grid.title, (grid,), folded=folded and k > 0)
        for k, grid in enumerate(map(_grid, shown))
    )
    notes: tuple[str, ...] = (NOTES,) if shown else ()
    for why in (tables.NO_RUNS, tables.NOT_AVAILABLE):
        if names := [name for name, reason in missing.items() if reason == why]:
            notes += (f"{', '.join(names)}: {why}.",)
    number = table.name.removeprefix("table")
    return Section(table.name, f"Table {number}", table.title, subsections, notes)


def _grid(subtable: tables.SubTable) -> TableView:
    """A subtable's cells, without the columns that are empty throughout."""
    best = subtable.best()
    rows = []
    for row in subtable.rows:
        paper, published, corrected = (
            (row.mean(column), "best" if row.model in best.get(column, ()) else "")
            for column in tables.COLUMNS
        )
        far = "far" if row.difference is not None and abs(row.difference) > CLOSE else ""
        marks = ((None, ""), paper, published, (row.difference, far), corrected, (None, ""))
        texts = cells_of(row, subtable.quantity)
        rows.append([Cell(text, *mark) for text, mark in zip(texts, marks)])
    kept = [k for k in range(len(HEADER)) if any(row[k].text for row in rows)]
    title = f"{subtable.dataset}, {tables.UNITS[subtable.quantity]}"
    header = tuple(HEADER[k] for k in kept)
    return TableView(title, header, [[row[k] for k in kept] for row in rows])


def _figure1(known: list[Record], there: list[str]) -> Section:
    subsections = tuple(
        Subsection(dataset, panels=tuple(panels))
        for dataset in sorted(there, key=lambda name: name != "workloads")
        if (panels := curves.figure1(known, dataset))
    )
    notes = ["The paper is dashed; bars are standard deviations over seeds."] if subsections else []
    if "workloads" not in there:
        notes.append(f"The paper shows workloads: {tables.NOT_AVAILABLE}.")
    return Section("figure1", "Figure 1", FIGURES["figure1"], subsections, tuple(notes))


def _recovery_sections(known: list[Record]) -> list[Section]:
    found = curves.recoveries(known)
    header = ("function", "method", "median error", "lowest", "highest", "median time (s)", "seeds")
    rows = []
    for each in found:
        errors = (each.error, each.runs[0]["error"], each.runs[-1]["error"])
        time = Cell("" if each.seconds is None else f"{each.seconds:.3g}", each.seconds)
        seeds = Cell(str(len(each.runs)), len(each.runs))
        shown = (Cell(f"{error:.3f}", error) for error in errors)
        rows.append((Cell(each.function), Cell(each.method), *shown, time, seeds))
    grid = TableView("Errors by function and method", header, rows)
    notes = (
        "Strong: the seed with the median error; others are faint. Errors are relative, in L2 on "
        "[-2, 2].",
    )
    second = [Subsection("f1", panels=(panel,)) for panel in curves.figure2(known)]
    third = []
    for function in dict.fromkeys(each.function for each in found):
        own = tuple(p for p in curves.figure3(known) if p.title.startswith(f"{function},"))
        third.append(Subsection(function, panels=own))
    if found:
        third.append(Subsection("Errors", (grid,)))
    without = (f"f1, f2, f3: {tables.NO_RUNS}.",)
    return [
        Section(name, f"Figure {name[-1]}", FIGURES[name], tuple(some), notes if some else without)
        for name, some in (("figure2", second), ("figure3", third))
    ]


def _activations(known: list[Record], there: list[str]) -> Section:
    subsections = [
        Subsection(dataset, panels=tuple(panels), folded=k > 0, legend="shared", small=True)
        for k, dataset in enumerate(there)
        if (panels := curves.learned_activations(known, dataset))
    ]
    note = (
        "The first seed of each protocol, and up to four more faintly. Scale and sign of an "
        "activation can be moved into the output weights, so each curve is divided by its largest "
        "value, with the sign that matches the first one best."
    )
    return Section("activations", "", "Learned activations", tuple(subsections), (note,))


def _losses(known: list[Record], there: list[str]) -> Section:
    subsections = [
        Subsection(dataset, panels=tuple(panels), folded=True)
        for dataset in there
        if (panels := curves.loss_curves(known, dataset))
    ]
    note = "Means over seeds. Test losses are solid, training losses dashed."
    return Section("losses", "", "Loss curves", tuple(subsections), (note,))


def _more_datasets(known: list[Record], there: list[str]) -> Section:
    """Data sets that the paper does not have."""
    subsections = []
    for dataset in (name for name in there if name not in DATASETS):
        grids = tuple(
            _grid(subtable)
            for name in ("table8", "table4", "table6", "table7", "table9")
            for subtable in tables.make_table(name, known, datasets=[dataset]).subtables
            if any(row.mean(name) is not None for row in subtable.rows for name in PROTOCOL_NAMES)
        )
        if grids:
            subsections.append(Subsection(dataset, grids))
    return Section("more", "", "Data sets that are not in the paper", tuple(subsections))


def _others(other: list[Record]) -> Section:
    """Whatever no table knows: shown, so that nothing is lost without a word."""
    rows = []
    for record in other[:_MOST_OTHERS]:
        given = record.get("spec")
        spec = given if isinstance(given, dict) else {}
        texts = [record.get("key"), record.get("kind"), spec.get("dataset"), spec.get("model")]
        texts += [record.get("status"), record.get("message") or record.get("error")]
        rows.append(tuple(Cell("" if text is None else str(text)[:300]) for text in texts))
    header = ("key", "kind", "data set", "model", "status", "message")
    grid = TableView("Other records", header, rows)
    notes = ["Failed runs, and records of unknown models or of another format."]
    if len(other) > _MOST_OTHERS:
        notes.append(f"The first {_MOST_OTHERS} of {len(other)}.")
    subsections = (Subsection("Records", (grid,)),) if rows else ()
    return Section("other", "", "Other records", subsections, tuple(notes))
