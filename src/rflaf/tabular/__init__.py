"""Tables from files to models: reading, tasks, models, comparisons (extra `cli`).

The steps from a file to predictions, as the command `rflaf` takes them:

>>> import pandas as pd
>>> from rflaf.tabular import fit_table
>>> table = pd.DataFrame({"size": range(60), "town": ["Bern", "Uri", None] * 20})
>>> table["price"] = 3.0 * table["size"] + (table["town"] == "Uri")
>>> model = fit_table(table, "price", n_components=50, random_state=0)
>>> model.task, model.columns
('regression', {'size': 'number', 'town': 'category'})
>>> model.predict(table[["town", "size"]]).shape
(60,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rflaf.tabular.comparison import Comparison, compare_models
    from rflaf.tabular.model import TableModel, fit_table
    from rflaf.tabular.reading import TableError, check_output, read_table, write_table
    from rflaf.tabular.splitting import Task, choose_task, split_target

__all__ = [
    "Comparison",
    "TableError",
    "TableModel",
    "Task",
    "check_output",
    "choose_task",
    "compare_models",
    "fit_table",
    "read_table",
    "split_target",
    "write_table",
]

# Imported when first asked for: a command that has no table to read need not wait for scikit-learn.
_NAMES = {
    "comparison": ["Comparison", "compare_models"],
    "model": ["TableModel", "fit_table"],
    "reading": ["TableError", "check_output", "read_table", "write_table"],
    "splitting": ["Task", "choose_task", "split_target"],
}


def __getattr__(name: str) -> Any:
    for home, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"rflaf.tabular.{home}"), name)
    raise AttributeError(f"module 'rflaf.tabular' has no attribute {name!r}")
