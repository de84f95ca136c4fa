"""Tables with columns of any kind: reading, column kinds, models, comparisons (extra `cli`).

The steps from a file to predictions, as the command `rflaf` takes them:

>>> import pandas as pd
>>> from rflaf.tabular import fit_table
>>> table = pd.DataFrame({"size": range(60), "town": ["Bern", "Uri", None] * 20})
>>> table["price"] = 3.0 * table["size"] + (table["town"] == "Uri")
>>> model = fit_table(table, "price", n_components=50, seed=0)
>>> model.task, model.columns
('regression', {'size': 'number', 'town': 'category'})
>>> model.predict(table[["town", "size"]]).shape
(60,)
"""

from rflaf.tabular.columns import TableError, column_kind, column_kinds
from rflaf.tabular.comparison import Comparison, compare_models
from rflaf.tabular.model import TableModel, fit_table, table_pipeline
from rflaf.tabular.reading import check_output, read_table, write_table
from rflaf.tabular.task import Task, choose_task

__all__ = [
    "Comparison",
    "TableError",
    "TableModel",
    "Task",
    "check_output",
    "choose_task",
    "column_kind",
    "column_kinds",
    "compare_models",
    "fit_table",
    "read_table",
    "table_pipeline",
    "write_table",
]
