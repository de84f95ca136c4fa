"""Parquet files as a source, through pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rflaf.rows.sources import Source
from rflaf.runtime.extras import needed


class Parquet(Source):
    """The rows of a Parquet file, or of all Parquet files of a folder in the order of their names.

    Parameters
    ----------
    path : str or path
        A file or a folder.
    target : str or list of str, optional
        The target column, or a list of several. Without it the blocks have X only.
    columns : list of str, optional
        The inputs, in this order. By default all columns except `target` and `weight`.
    weight : str, optional
        The column of sample weights.
    batch_rows : int
        The maximum number of rows to read at a time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, pyarrow, pyarrow.parquet
    >>> from rflaf import RFLAFRegressor
    >>> from rflaf.rows import Parquet
    >>> a = np.linspace(-1, 1, 500)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.parquet"
    ...     pyarrow.parquet.write_table(pyarrow.table({"a": a, "y": np.sin(3 * a)}), path)
    ...     model = RFLAFRegressor(n_components=50, random_state=0).fit(Parquet(path, target="y"))
    >>> model.feature_names_in_.tolist()
    ['a']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        target: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = 65536,
    ) -> None:
        dataset = needed("pyarrow.dataset", "Parquet files need pyarrow", "'rflaf[parquet]'")
        self._dataset = dataset.dataset(os.fspath(path), format="parquet")
        self._target = target
        self._targets = [target] if isinstance(target, str) else list(target or ())
        self._weight = weight
        if weight is not None and not self._targets:
            raise ValueError("The 'weight' parameter of Parquet needs 'target'. Got None for it.")
        others = {*self._targets, weight}
        names = self._dataset.schema.names
        every = [name for name in names if name not in others]
        self._columns = every if columns is None else list(columns)
        if not isinstance(batch_rows, (int, np.integer)) or batch_rows < 1:
            raise ValueError(
                f"The 'batch_rows' parameter of Parquet must be an int of at least 1. "
                f"Got {batch_rows!r}."
            )
        self._batch_rows = int(batch_rows)
        wanted = [*self._columns, *self._targets, *([] if weight is None else [weight])]
        missing = sorted(set(wanted) - set(names))
        if missing:
            raise ValueError(
                f"'{path}' has no column {', '.join(map(repr, missing))}. It has: "
                f"{', '.join(map(repr, names))}."
            )
        if not self._columns:
            raise ValueError(f"'{path}' has no input columns.")
        self._wanted = list(dict.fromkeys(wanted))

    def __iter__(self) -> Iterator[Any]:
        # one file and one batch ahead: enough to read while the last batch is worked on
        batches = self._dataset.to_batches(
            columns=self._wanted,
            batch_size=self._batch_rows,
            batch_readahead=1,
            fragment_readahead=1,
        )
        for batch in batches:
            if batch.num_rows:
                yield self._block(batch)

    def _block(self, batch: Any) -> Any:
        import pyarrow

        table = pyarrow.Table.from_batches([batch])
        parts: list[Any] = [table.select(self._columns)]
        if isinstance(self._target, str):
            parts.append(np.asarray(table.column(self._target)))
        elif self._targets:
            parts.append(np.column_stack([np.asarray(table.column(t)) for t in self._targets]))
        if self._weight is not None:
            parts.append(np.asarray(table.column(self._weight)))
        return tuple(parts) if len(parts) > 1 else parts[0]
