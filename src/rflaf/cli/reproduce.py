"""`rflaf reproduce`, `rflaf tables` and `rflaf report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rflaf.cli.app import app
from rflaf.cli.console import complain, warnings_as_notes, watched, working

Names = Annotated[
    list[str], typer.Argument(help="table1 … table10, figure1 … figure3, or all.", metavar="NAME…")
]
_LONG = 3600.0  # seconds of runs that the time left is estimated from


@app.command()
def reproduce(
    targets: Names,
    datasets: Annotated[
        str, typer.Option(help="Only these data sets, separated by commas: protein,adult.")
    ] = "",
    models: Annotated[
        str, typer.Option(help="Only these models, separated by commas: rflaf-rbf-16,rfmlp-relu.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, max=10, help="Number of seeds.")] = 10,
    protocol: Annotated[
        Literal["published", "corrected", "both"], typer.Option(help="Training protocol.")
    ] = "both",
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel runs.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the records.")] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Smoke test: few rows and epochs, one seed.")
    ] = False,
) -> None:
    """Run tables or figures of the paper, and print them next to the paper's numbers.

    Finished runs are not repeated, so an interrupted command continues where it stopped. Several
    processes may share the folder.
    """
    from rflaf.paper.printed import FIGURES, TITLES
    from rflaf.paper.protocols import PROTOCOL_NAMES
    from rflaf.paper.records import Store
    from rflaf.paper.worklist import expand, work_for

    work = work_for(
        targets,
        datasets=_names(datasets),
        models=_names(models),
        protocols=PROTOCOL_NAMES if protocol == "both" else [protocol],
        n_seeds=seeds,
        quick=quick,
    )
    store = Store(out)
    absent = _run(work.runs, store, jobs) | _measure(work.timings, store, quick)
    for name in (each for each in expand(targets) if each in TITLES):
        asked = {"datasets": _names(datasets), "models": _names(models)}
        typer.echo("\n" + _formatted(name, store.read(), "text", quick=quick, **asked))
    figures = [name for name in expand(targets) if name in FIGURES]
    if figures and not quick:
        from rflaf.paper.figures import save_figures

        for path in save_figures(store.read(), out, figures):
            typer.echo(f"written: {path}")
    typer.echo(f"Records: {store.path}")
    for message in sorted(absent):
        complain(f"Data not available: {message}")
    if absent:
        raise typer.Exit(1)


@app.command()
def tables(
    results: Annotated[Path, typer.Argument(help="Folder written by `rflaf reproduce`.")],
    names: Annotated[
        str, typer.Option("--tables", help="Only these tables, separated by commas: table1,table8.")
    ] = "",
    style: Annotated[
        Literal["text", "markdown", "latex", "csv"], typer.Option("--format", help="Output format.")
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Output file; default: print.")
    ] = None,
) -> None:
    """Print the paper's tables next to ours, from the records of `rflaf reproduce`."""
    from rflaf.paper.printed import TITLES, check_name

    records = _records(results)
    left_out = _quick(records)
    if left_out:
        complain(f"Note: {left_out:,} records of --quick runs or other sizes are not shown.")
    chosen = [check_name(name) for name in _names(names) or TITLES]
    text = "\n".join(_formatted(name, records, style) for name in chosen)
    if out is None:
        typer.echo(text)
        return
    from rflaf.runtime.files import write_whole

    write_whole(out, text.encode())
    typer.echo(f"written: {out}")


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder written by `rflaf reproduce`.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Output path; overwritten if it exists.")
    ] = Path("report.html"),
) -> None:
    """Write the paper's tables and figures next to ours as one HTML page, from such records."""
    from rflaf.paper.report import write_report

    _records(results)
    typer.echo(f"written: {write_report(results, out)}")


def _names(text: str) -> list[str] | None:
    found = [name.strip() for name in text.split(",") if name.strip()]
    return found or None


def _records(folder: Path) -> list[dict[str, Any]]:
    from rflaf.paper.records import Store

    records = Store(folder).read()
    if not records:
        raise ValueError(f"There are no records of `rflaf reproduce` in '{folder}'.")
    return records


def _quick(records: list[dict[str, Any]]) -> int:
    """How many records are of quick runs, or of other sizes than the paper's."""
    from rflaf.paper.curves import sort_out
    from rflaf.paper.tables import is_full_size

    return sum(not is_full_size(record) for record in sort_out(records)[0])


def _formatted(name: str, records: list[dict[str, Any]], style: str, **asked: Any) -> str:
    from rflaf.paper.curves import sort_out
    from rflaf.paper.formats import FORMATS
    from rflaf.paper.tables import make_table

    known, _ = sort_out(records)  # a folder may have records of another form
    return FORMATS[style](make_table(name, known, **asked))


def _run(specs: Any, store: Any, jobs: int) -> set[str]:
    """Do the runs, with a bar and the time left. Returns what is said of data that is missing."""
    from rich.console import Console
    from rich.progress import Progress

    from rflaf.paper.runs import Event, missing, run_all

    todo = missing(specs, store)
    if not todo:
        return set()
    console = Console(stderr=True)
    hidden = not watched(console)
    with Progress(console=console, disable=hidden, speed_estimate_period=_LONG) as bar:
        task = bar.add_task("", total=len(todo))

        def show(event: Event) -> None:
            place = f"{event.done}/{event.total} {event.spec.key}"
            bar.update(task, completed=event.done, description=place)
            if event.kind == "done" and hidden:
                console.print(place, markup=False)

        skipped = run_all(todo, store, jobs=jobs, report=show)
    return {event.message for event in skipped}


def _measure(timings: Any, store: Any, quick: bool) -> set[str]:
    """Time the models. Returns what is said of data that is missing."""
    from rflaf.datasets import DataNotAvailable
    from rflaf.paper.timing import measure_times

    absent = set()
    for dataset, models in timings.items():
        text = f"Timing on {dataset}"
        try:
            with warnings_as_notes(), working(text) as tell:
                measure_times(dataset, models, store, quick=quick, report=tell)
        except DataNotAvailable as error:
            absent.add(str(error))
    return absent
