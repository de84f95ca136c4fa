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
    from rflaf.tabular.columns import TableError
    from rflaf.tabular.comparison import Comparison, compare_models
    from rflaf.tabular.model import TableModel, fit_table
    from rflaf.tabular.reading import check_output, read_table, write_table
    from rflaf.tabular.splitting import split_target
    from rflaf.tabular.task import Task, choose_task

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
_HOMES = {
    "Comparison": "comparison",
    "TableError": "columns",
    "TableModel": "model",
    "Task": "task",
    "check_output": "reading",
    "choose_task": "task",
    "compare_models": "comparison",
    "fit_table": "model",
    "read_table": "reading",
    "split_target": "splitting",
    "write_table": "reading",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rflaf.tabular.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rflaf.tabular' has no attribute {name!r}")
