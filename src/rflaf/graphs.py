"""What a fitted model is written in to run elsewhere: standard operators, in the names of ONNX.

Forms, losses and the rest of a model have a method `export` that adds its steps to such a graph.
`rflaf.onnx` makes a file of them, and `to_torch` of the estimators a module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rflaf.arrays import Array


class Operators(ABC):
    """A graph under construction. Tensors have names; what is asked for twice is there once.

    A graph cannot raise for some rows: a row that the model would refuse has NaN for a result.
    """

    def __init__(self) -> None:
        self._known: dict[Any, str] = {}
        self._refused: list[str] = []

    @abstractmethod
    def _node(self, operator: str, names: list[str], attributes: dict[str, Any]) -> str:
        """A new node of one output, and the output's name."""

    @abstractmethod
    def _constant(self, values: Array | np.generic) -> str:
        """The name of a constant."""

    @abstractmethod
    def cast(self, x: str, dtype: Any) -> str:
        """`x` as numbers of another type, given as NumPy's."""

    def add(self, operator: str, *inputs: str | Array | np.generic, **attributes: Any) -> str:
        """A node of one output; arrays and NumPy's scalars among the inputs become constants."""
        names = [x if isinstance(x, str) else self._constant(x) for x in inputs]
        key = (operator, *names, *sorted(attributes.items()))
        if key not in self._known:
            self._known[key] = self._node(operator, names, attributes)
        return self._known[key]

    def columns(self, x: str, at: Any) -> str:
        """Some of the columns of a matrix."""
        return self.add("Gather", x, np.asarray(at, np.int64), axis=1)

    def rows(self, table: Array, codes: str) -> str:
        """The row of a table for each code, n × 1."""
        codes = self.add("Squeeze", codes, np.array([1]))
        return self.add("Gather", table.astype(np.float64), codes, axis=0)

    def joined(self, parts: list[str]) -> str:
        """Matrices side by side."""
        return self.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]

    def refuse(self, flag: str) -> None:
        """Have NaN for the result of rows whose flag, n × 1, is NaN and not 0."""
        if flag not in self._refused:
            self._refused.append(flag)

    def refuse_infinite(self, x: str) -> None:
        """The same for rows of a matrix with infinity: the models raise there."""
        flags = self.add("Where", self.add("IsInf", x), np.float64(np.nan), np.float64(0))
        self.refuse(self.add("ReduceSum", flags, np.array([1]), keepdims=1))

    def refused(self) -> str:
        """The sum of the flags so far, n × 1."""
        total, *others = self._refused
        for flag in others:
            total = self.add("Add", total, flag)
        return total

    def finite(self, x: str, width: int) -> str:
        """Inputs with zeros in place of what is not finite; such rows are refused.

        They go on, because no cell of a table could be found for NaN.
        """
        zero = self.add("Mul", x, np.float64(0))
        self.refuse(self.add("ReduceSum", zero, np.array([1]), keepdims=1))
        return self.add("Where", self.add("IsNaN", zero), np.zeros(width), x)
