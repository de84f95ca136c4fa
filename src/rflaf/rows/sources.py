"""Sources of blocks: what they promise, and those that need no library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_STEP = 65536  # rows of a block, where the source may choose,
_NUMBERS = 1 << 23  # and inputs in them at most


class Source(ABC):
    """Blocks of rows, the same in every iteration.

    A block is X, (X, y) or (X, y, weight); a tuple is always one of the last two. Blocks may have
    any number of rows, including zero.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Begin a pass over the blocks."""


class Blocks(Source):
    """Blocks from an iterable that can be started again, or from a function that starts one.

    Parameters
    ----------
    start : iterable or callable
        Such as a list of blocks, or a generator function without arguments. Not a generator itself,
        which can be read only once: a fit reads at least twice.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf import RFLAFRegressor
    >>> from rflaf.rows import Blocks
    >>> def read():
    ...     rng = np.random.default_rng(0)
    ...     for size in (300, 0, 200):
    ...         X = rng.uniform(-1, 1, (size, 2))
    ...         yield X, np.sin(3 * X[:, 0])
    >>> model = RFLAFRegressor(n_components=100, random_state=0).fit(Blocks(read))
    >>> model.predict(Blocks(read)).shape
    (500,)
    """

    def __init__(self, start: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(start) and not hasattr(start, "__iter__"):
            raise TypeError(
                "The 'start' parameter of Blocks must be an iterable or a function that returns "
                f"one. Got {type(start).__name__} instead."
            )
        if isinstance(start, Iterator):
            raise TypeError(
                "The 'start' parameter of Blocks must give the blocks more than once. Got "
                f"{type(start).__name__}, which can be read once; pass the function that makes it."
            )
        self.start = start

    def __iter__(self) -> Iterator[Any]:
        return iter(self.start() if callable(self.start) else self.start)


class Arrays(Source):
    """Rows of arrays, which may be on disk (`numpy.memmap`); blocks are read when needed.

    Parameters
    ----------
    X : array, n × d
    y : array, n or n × C, optional
    weight : array, n, optional

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.rows import Arrays
    >>> [len(X) for X, y in Arrays(np.zeros((100_000, 2)), np.zeros(100_000))]
    [65536, 34464]
    """

    def __init__(self, X: Any, y: Any = None, weight: Any = None) -> None:
        for name, other in (("y", y), ("weight", weight)):
            if other is not None and len(other) != X.shape[0]:
                raise ValueError(
                    f"The '{name}' parameter of Arrays must have {X.shape[0]} rows, as 'X' has. "
                    f"Got {len(other)} instead."
                )
        if y is None and weight is not None:
            raise ValueError("The 'weight' parameter of Arrays needs 'y'. Got None for 'y'.")
        self.parts = [part for part in (X, y, weight) if part is not None]

    def __iter__(self) -> Iterator[Any]:
        n, *columns = self.parts[0].shape
        step = min(_STEP, max(1, _NUMBERS // max(1, *columns)))
        for start in range(0, n, step):
            yield tuple(part[start : start + step] for part in self.parts)
