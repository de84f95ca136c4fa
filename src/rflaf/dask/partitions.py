"""Dask collections as partitions that fit together, and these as one more kind of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from typing import Any

import dask
import distributed
import numpy as np
from dask import array as da

from rflaf.rows import ArrayRows, Block, Blocks, Rows, Sample, SourceRows
from rflaf.rows.protocol import BlockTask, Combine, MakeTally, Result, SampleSize
from rflaf.rows.sample import SampleDraw
from rflaf.rows.streamed import BlockCheck
from rflaf.runtime.threads import use_threads

_FAN_IN = 8  # results that one task puts together
_KEYS = 2**64
_LOOK_EVERY = 5.0  # seconds between looks at the workers
_PATIENCE = 12  # looks in a row at which no worker takes work
_ASKED = 10  # times, for answers that leave the workers out


@dataclass(frozen=True)
class Partitions:
    """Partitions of inputs, targets and weights, not yet computed, and what is known of them."""

    parts: list[Any]  # delayed tuples (X, y, weight) or (X, y), or (X,)
    rows: list[int] | None  # of each, where known without looking
    like: Any  # inputs with the same columns, without rows


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or frame."""
    return dask.is_dask_collection(X) and hasattr(X, "to_delayed")


def partition(X: Any, y: Any = None, weight: Any = None) -> Partitions:
    """The partitions of X, with those of y and weight that have the same rows."""
    if not is_dask(X) or X.ndim != 2:
        raise TypeError(
            "The 'X' parameter must be a Dask array or frame with two dimensions. "
            f"Got {type(X).__name__} instead."
        )
    if isinstance(X, da.Array) and X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    chunks = _known_rows(X)
    columns = [X.to_delayed().ravel() if isinstance(X, da.Array) else X.to_delayed()]
    for name, other in (("y", y), ("sample_weight", weight)):
        if other is not None:
            columns.append(_beside(name, other, chunks, len(columns[0])))
    parts = [dask.delayed(tuple)(list(row)) for row in zip(*columns)]
    like = np.zeros((0, X.shape[1]), X.dtype) if isinstance(X, da.Array) else X._meta
    return Partitions(parts, chunks, like)


def _known_rows(X: Any) -> list[int] | None:
    if not isinstance(X, da.Array) or np.isnan(X.chunks[0]).any():
        return None
    return [int(rows) for rows in X.chunks[0]]


def _beside(name: str, other: Any, chunks: list[int] | None, count: int) -> Any:
    """The partitions of `other`, cut as those of X are where both are known."""
    if not is_dask(other):
        raise TypeError(
            f"The '{name}' parameter must be a Dask array or frame, as 'X' is. "
            f"Got {type(other).__name__} instead."
        )
    if isinstance(other, da.Array):
        wanted = dict.fromkeys(range(1, other.ndim), -1)
        known = _known_rows(other)
        if known is not None and chunks is not None and known != chunks:
            if sum(known) != sum(chunks):
                raise ValueError(
                    f"'{name}' must have {sum(chunks)} rows, as 'X' has. Got {sum(known)}."
                )
            wanted[0] = tuple(chunks)  # type: ignore[assignment]
        parts = (other.rechunk(wanted) if wanted else other).to_delayed().ravel()
    else:
        parts = other.to_delayed()
    if len(parts) != count:
        raise ValueError(
            f"'{name}' must have {count} partitions, as 'X' has. Got {len(parts)}. If chunk sizes "
            "are unknown, call 'compute_chunk_sizes' first."
        )
    return parts


class PartitionRows(Rows):
    """The partitions of Dask collections.

    `parts` are what `open_partition` makes of each: checked rows, delayed. `starts` has the number
    of the first row of each, and at the end that of all rows; `like` are inputs without rows.
    """

    def __init__(self, client: Any, parts: list[Any], starts: list[int], like: Any) -> None:
        self.client, self.parts, self.starts, self.like = client, parts, starts, like

    @classmethod
    def of(cls, client: Any, found: Partitions, check: BlockCheck) -> PartitionRows:
        """Partitions that are checked where they are; counts their rows if need be."""
        counts = found.rows
        if counts is None:
            count = dask.delayed(lambda part: len(part[0]), pure=False)
            counts = run(client, dask.delayed(list)([count(part) for part in found.parts]))
        if not sum(counts):
            raise ValueError("Found no rows: a minimum of 1 is required.")
        starts = np.cumsum([0, *counts]).tolist()
        shared = dask.delayed(check, pure=False, traverse=False)
        open_one = dask.delayed(open_partition, pure=False)
        parts = [
            open_one(shared, part, start, rows)
            for part, start, rows in zip(found.parts, starts, counts)
        ]
        return cls(client, parts, starts, floats_like(found.like))

    def sample(self, size: SampleSize, seed: int, tally: MakeTally | None = None) -> Sample:
        """The sample comes to the client; no other rows do."""
        wanted = size(self.like)
        # Keys are uniform: with this limit there are enough below it, unless many weights are zero.
        enough = min(1.0, (wanted + 8 * wanted**0.5) / self.starts[-1])
        draw = dask.delayed(draw_rows, pure=False)
        for share in (enough, 1.0):
            limit = min(int(share * _KEYS), _KEYS - 1)
            drawn = [draw(part, wanted, seed, tally, limit) for part in self.parts]
            found: SampleDraw = run(self.client, tree(drawn, merge_draws))
            if found.count >= min(wanted, found.used):
                break
        return found.result()

    def reduce(self, task: BlockTask[Result], combine: Combine[Result], size: int) -> Result:
        check_workers(self.client, task(iter(())), len(self.parts))
        shared = dask.delayed(task, pure=False, traverse=False)
        run_one = dask.delayed(run_task, pure=False)
        found = [run_one(shared, part, size) for part in self.parts]
        return run(self.client, tree(found, lambda results: reduce(combine, results)))

    def held(self, room: int) -> Rows:
        """The checked rows stay on the workers: `room` is the client's, not theirs."""
        return PartitionRows(self.client, self.client.persist(self.parts), self.starts, self.like)


def run(client: Any, work: Any) -> Any:
    """The result of delayed work. The scheduler repeats what a lost worker had done.

    Workers that have too little memory are restarted over and over, or stop taking work and wait
    for room that nobody makes; either way this ends with an error.
    """
    future = client.compute(work, sync=False)
    waiting = 0.0
    try:
        while waiting < _PATIENCE:
            try:
                return future.result(timeout=_LOOK_EVERY)
            except distributed.TimeoutError:
                if future.done():  # the error of the work itself
                    raise
            states = {worker["status"] for worker in workers_of(client).values()}
            # a cluster that grows by itself may have none yet, and takes its time
            waiting = waiting + (1 if states else 0.2) if states <= {"paused"} else 0.0
    except distributed.KilledWorker as error:
        raise MemoryError(
            "Workers of the Dask cluster died repeatedly while reading rows, usually for lack of "
            f"memory. {_limits(client)} Use more memory, or fewer 'n_components'."
        ) from error
    finally:
        future.release()
    raise MemoryError(
        "The Dask cluster has no worker available: all are out of memory, or could not start. "
        f"{_limits(client)} Use more memory, or fewer 'n_components'."
    )


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler knows of each worker.

    The client itself asks for the number of workers alone, every few seconds, and keeps the answer
    in the same place; where that has come between, it is asked once more.
    """
    for _ in range(_ASKED):
        try:
            info = client.scheduler_info(n_workers=-1)
        except TypeError:  # before this had to be asked for
            info = client.scheduler_info()
        if len(info["workers"]) >= info.get("n_workers", 0):
            break
    return dict(info["workers"])


def check_workers(client: Any, empty: Any, parts: int) -> None:
    """Whether workers have room for results like `empty`, as many as one puts together."""
    each = held_bytes(empty)
    needed = each * (min(_FAN_IN, parts) + 1 if parts > 1 else 1)
    for name, worker in workers_of(client).items():
        limit = worker.get("memory_limit") or 0
        if limit and needed > limit:
            raise MemoryError(
                f"The sums over the rows of a partition take {_megabytes(each)}, and a worker must "
                f"hold {_megabytes(needed)} to add them up. The worker {name} has "
                f"{_megabytes(limit)} in all: use more memory, or fewer "
                "'n_components' or 'n_members'."
            )


def held_bytes(result: Any) -> int:
    if isinstance(result, np.ndarray):
        return int(result.nbytes)
    if is_dataclass(result):
        return sum(held_bytes(getattr(result, field.name)) for field in fields(result))
    return sum(map(held_bytes, result)) if isinstance(result, list | tuple) else 0


def _limits(client: Any) -> str:
    found = sorted({worker.get("memory_limit") or 0 for worker in workers_of(client).values()})
    return f"Their limits are {', '.join(map(_megabytes, found))}." if found else "None is left."


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def tree(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Delayed results, put together by `join` a few at a time, in their order."""
    found = list(parts)
    together = dask.delayed(join, pure=False)
    while len(found) > 1:
        groups = [found[k : k + _FAN_IN] for k in range(0, len(found), _FAN_IN)]
        found = [together(group) if len(group) > 1 else group[0] for group in groups]
    return found[0]


def open_partition(
    check: BlockCheck, part: tuple[Any, ...], start: int, rows: int
) -> ArrayRows | None:
    """A partition as checked arrays; None if it has no rows."""
    if len(part[0]) != rows:
        raise ValueError(
            f"A partition had {rows} rows at first, and {len(part[0])} later. Expected the same "
            "rows every time it is computed."
        )
    for name, other in zip(("y", "sample_weight"), part[1:]):
        if len(other) != rows:
            raise ValueError(
                f"A partition of '{name}' must have {rows} rows, as that of 'X' from row {start} "
                f"on has. Got {len(other)}."
            )
    source = SourceRows(Blocks([part]), check, start=start)
    block = next(source.blocks(max(rows, 1)), None)
    return None if block is None else ArrayRows(block.x, block.y, block.weights, start)


def draw_rows(
    rows: ArrayRows | None, size: int, seed: int, tally: MakeTally | None, limit: int
) -> SampleDraw:
    """The rows of a partition that may be in the sample."""
    draw = SampleDraw(size, seed, tally, limit)
    for block in _blocks(rows, 1 << 62):
        draw.add(block)
    return draw


def merge_draws(draws: list[SampleDraw]) -> SampleDraw:
    """What was drawn of partitions in their order; the draws stay as they are."""
    merged = draws[0].empty()
    for draw in draws:
        merged.merge(draw)
    return merged


def run_task(task: BlockTask[Result], rows: ArrayRows | None, size: int) -> Any:
    with use_threads(None):
        return task(_blocks(rows, size))


def _blocks(rows: ArrayRows | None, size: int) -> Iterator[Block]:
    return iter(()) if rows is None else rows.blocks(min(size, max(len(rows.weights), 1)))


def floats_like(like: Any) -> Any:
    """No rows, in the precision that they are read in."""
    kinds = [like.dtype] if hasattr(like, "dtype") else list(like.dtypes)
    single = all(kind == np.float32 for kind in kinds)
    return np.zeros((0, like.shape[1]), np.float32 if single else np.float64)
