"""Rows that come in blocks: from files, from functions, from arrays on disk.

A source gives its blocks as often as it is asked, and `fit` and `predict` of the estimators take it
in place of arrays. A block is X, (X, y) or (X, y, weight), of any number of rows, arrays or frames.
`Rows` is what fits need of rows, wherever they come from.
"""

from rflaf.rows.in_memory import ArrayRows
from rflaf.rows.parquet import Parquet
from rflaf.rows.protocol import Block, InUnits, Rows, Tally
from rflaf.rows.sample import Sample
from rflaf.rows.sources import Arrays, Blocks, Source
from rflaf.rows.streamed import SourceRows

__all__ = [
    "ArrayRows",
    "Arrays",
    "Block",
    "Blocks",
    "InUnits",
    "Parquet",
    "Rows",
    "Sample",
    "Source",
    "SourceRows",
    "Tally",
]
