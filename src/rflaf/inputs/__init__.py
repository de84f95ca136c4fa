"""Frames with columns of any kind, and what becomes of them.

The estimators take such frames by themselves; `ColumnEncoder` is what they do first.

>>> import pandas as pd
>>> from rflaf.inputs import column_kind
>>> column_kind(pd.Series([True, None, False]))
'boolean'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rflaf.inputs.encoder import ColumnEncoder
    from rflaf.inputs.kinds import column_kind

__all__ = ["ColumnEncoder", "column_kind"]

# Imported when first asked for: to know what a column is takes no scikit-learn.
_HOMES = {"ColumnEncoder": "encoder", "column_kind": "kinds"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rflaf.inputs.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rflaf.inputs' has no attribute {name!r}")
