"""What is wrong with a table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any


class TableError(ValueError):
    """A table that cannot be used as it is: the `message` explains why.

    Attributes
    ----------
    columns : list of str
        The columns that leaving out would help; may be empty.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


def pandas() -> Any:
    """The module, or an error that says what to install."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError("Tables need pandas: pip install 'rflaf[cli]'.") from error


def listed(names: Sequence[str]) -> str:
    """Columns by their names."""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
