"""Rows that come in blocks: from files, from functions, from arrays on disk.

A source gives its blocks as often as it is asked, and `fit` and `predict` of the estimators take it
in place of arrays. A block is X, (X, y) or (X, y, weight), of any number of rows, arrays or frames.
"""

from rflaf.data.parquet import Parquet
from rflaf.data.sources import Arrays, Blocks, Source

__all__ = ["Arrays", "Blocks", "Parquet", "Source"]
