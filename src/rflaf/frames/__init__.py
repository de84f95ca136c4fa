"""Frames of pandas and polars with columns of any kind, and what becomes of them.

The estimators take such frames by themselves; `ColumnEncoder` is what they do first.
"""

from rflaf.frames.column import Column, columns_of, is_frame
from rflaf.frames.encoder import ColumnEncoder
from rflaf.frames.kinds import LEFT_OUT, column_kind, explain, kind_of

from rflaf.frames.opening import count_rows, has_columns, is_listed, opened, some_rows

__all__ = [
    "LEFT_OUT",
    "Column",
    "ColumnEncoder",
    "column_kind",
    "columns_of",
    "count_rows",
    "explain",
    "has_columns",
    "is_frame",
    "is_listed",
    "kind_of",
    "opened",
    "some_rows",
]
