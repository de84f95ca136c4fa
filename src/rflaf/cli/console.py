"""What a command says: results to stdout; notes, progress and errors to stderr.

Names and values come from files, so nothing is read as rich's markup, and characters that would
steer a terminal are shown as escapes.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text


def plain(value: object) -> str:
    """Text that a terminal shows and does not obey."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(value))


def say(text: str = "") -> None:
    """A line of the result."""
    Console().print(Text(plain(text)), soft_wrap=True)


def complain(text: str) -> None:
    """A line on stderr."""
    Console(stderr=True).print(Text(plain(text)), soft_wrap=True)


def show_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table whose first column is text, and the others figures."""
    say(title)  # in a line of its own: rich would break it at the table's width
    table = Table(box=box.SIMPLE_HEAD)
    for number, name in enumerate(header):
        table.add_column(Text(plain(name)), justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: nothing is cut there
        console = Console(width=200)
    console.print(table)


def watched(console: Console) -> bool:
    """Whether progress is shown: in a terminal, unless this is a background job of its shell.

    Progress hides the cursor, and would draw over what is typed there meanwhile.
    """
    try:
        foreground = os.tcgetpgrp(console.file.fileno()) == os.getpgrp()
    except (AttributeError, OSError):  # Windows, or not the terminal of this session
        foreground = True
    return console.is_terminal and foreground


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the time, while something runs; nothing where nobody watches stderr.

    What it gives puts another text in the place of `text`.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not watched(console)
    ) as progress:
        task = progress.add_task(plain(text))
        yield lambda other: progress.update(task, description=plain(other))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings of the libraries, each once, in a line of their own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [in_options(" ".join(str(w.message).split())) for w in caught]
    # several fits say the same of other numbers of rows: the last one stands for all
    for text in {re.sub(r"('[^']*')|\d+", r"\1", text): text for text in texts}.values():
        complain(f"Note: {text}")


# Parameters of Python, and what the command line has in their place
_OPTIONS = {
    "name it in 'categorical_features' or make it a category": "name it with --categorical",
    "name the columns of categories in 'categorical_features'": "use --categorical",
    "The 'categorical_features' must be": "--categorical must be",
    "A wider 'grid' and more 'n_basis' may help.": "More --basis-functions may help.",
    " Pass 'groups' if other rows belong together too.": "",
    "predict_interval widens": "--std grows",
    "The 'activation' parameter of fit_table": "--activation",
    "'strict' allows": "--strict allows",
    "oof_score_": "the out-of-fold score",
}


def in_options(text: str) -> str:
    """A message with options of the command line in place of parameters."""
    for given, option in _OPTIONS.items():
        text = text.replace(given, option)
    text = re.sub(r"\bactivation='(\w+)'", r"--activation \1", text)
    text = re.sub(r"\bn_components=(\d+)", r"--components \1", text)
    return re.sub(r"\bn_basis=(\d+)", r"--basis-functions \1", text)
