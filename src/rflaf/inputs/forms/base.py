"""What a form of the inputs is: a transformation of numeric columns before W."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.inputs.scaling import FARTHEST, standardise

Array = NDArray[Any]
Places = NDArray[np.intp]


class Form(ABC):
    """Numeric columns transformed for a layer.

    A form is final and frozen, and is learned from rows without their targets. Each of its results
    is a function of one column, which `origin` names.
    """

    name: ClassVar[str]  # as in the parameter `input_form`
    text: ClassVar[str]  # for people
    smooth: ClassVar[bool] = True  # whether a small step of a column is a small step everywhere

    mean: Array  # of the d columns
    scale: Array  # of each; 0 for a column that does not vary

    @classmethod
    @abstractmethod
    def learn(cls, x: Any, weights: Array) -> Form | None:
        """The form learned from x, dense or sparse; None where it adds nothing for these rows."""

    @property
    @abstractmethod
    def origin(self) -> Places:
        """The column that each result comes from."""

    @property
    def scales(self) -> Array:
        """What each result was divided by, in the unit of its column."""
        return self.scale[self.origin]

    @property
    def along(self) -> Array:
        """Parts of the results in directions that follow a single column each, of unit spread."""
        return np.ones(len(self.origin))

    @property
    def stays_sparse(self) -> bool:
        """Whether sparse rows stay so."""
        return False

    @abstractmethod
    def dense(self, x: Array, dtype: Any) -> Any:
        """The results for dense rows: an array or a `BinnedMatrix`."""

    @abstractmethod
    def derivative(self, x: Array) -> Array:
        """The derivative of each result in its column, n × d'."""

    @abstractmethod
    def export(self, graph: Any, x: str) -> tuple[str, Places]:
        """The results as part of an ONNX graph, for a float64 tensor x; and their order there."""

    def __call__(self, x: Any, dtype: Any) -> Any:
        """Rows as the layer takes them."""
        if sparse.issparse(x):
            if self.stays_sparse:
                return standardise(x, self.mean, self.scale, dtype)
            x = x.toarray()
        return self.dense(x, dtype)

    def names(self, columns: list[str]) -> list[str]:
        """Names of the results, for those of the columns; results with one name belong together."""
        return [columns[j] for j in self.origin]

    def back(self, x: Array, slopes: Array) -> Array:
        """Derivatives in the columns, n × d, from those in the results, n × d'."""
        into = np.zeros((len(x), len(self.mean)))
        product = slopes * self.derivative(x)
        np.add.at(into.T, self.origin, product.T)
        return into


def scale_slopes(x: Array, mean: Array, scale: Array) -> Array:
    """The derivative of standardised columns; 0 where they are cut off, or do not vary."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    with np.errstate(over="ignore"):
        return np.where(np.abs((x - mean) * inverse) < FARTHEST, inverse, 0.0)


def export_standardised(graph: Any, form: Form, x: str, at: Places) -> str:
    """Some of the columns, standardised, as part of a graph; x is finite."""
    mean, scale = form.mean[at], form.scale[at]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    x = x if len(at) == len(form.mean) else graph.columns(x, at)
    x = graph.add("Mul", graph.add("Sub", x, mean), inverse)
    return str(graph.add("Clip", x, np.float64(-FARTHEST), np.float64(FARTHEST)))
