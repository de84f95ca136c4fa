"""Standardised columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rflaf.inputs.forms.base import Array, Form, Places, export_standardised, scale_slopes
from rflaf.inputs.scaling import column_moments, standardise


@dataclass(frozen=True)
class Standardised(Form):
    """(x - mean) / scale of each column."""

    mean: Array
    scale: Array

    name = "raw"
    text = "standardised columns"

    @classmethod
    def learn(cls, x: Any, weights: Array) -> Standardised:
        return cls(*column_moments(x, weights))

    @property
    def origin(self) -> Places:
        return np.arange(len(self.mean))

    @property
    def stays_sparse(self) -> bool:
        return not self.mean.any()

    def dense(self, x: Array, dtype: Any) -> Any:
        return standardise(x, self.mean, self.scale, dtype)

    def derivative(self, x: Array) -> Array:
        return scale_slopes(x, self.mean, self.scale)

    def export(self, graph: Any, x: str) -> tuple[str, Places]:
        return export_standardised(graph, self, x, self.origin), self.origin
