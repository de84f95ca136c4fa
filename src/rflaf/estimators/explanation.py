"""What `explain` returns: attributions with their rows, and plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rflaf.activation import current_axes
from rflaf.arrays import Array
from rflaf.runtime.extras import needed

_COLOURS = "C0", "C3"  # of attributions that lower a score, and that raise it


@dataclass(frozen=True)
class Explanation:
    """Attributions of rows: `values` sum over columns to the scores minus `base_values`.

    Attributes
    ----------
    values : array, n × d or n × d × C
    base_values : array of n, or n × C
        The mean score of the background rows, the same for each row.
    data : array, n × d, or None
        The rows as they were given; None for a source.
    feature_names : list of str
    output_names : list of str or None
        Names of the C outputs, if they are classes.
    """

    values: Array
    base_values: Array
    data: Array | None
    feature_names: list[str]
    output_names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_shap(self) -> Any:
        """The same as `shap.Explanation`, for `shap.plots`."""
        shap = needed("shap", "to_shap needs shap", "shap")
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names,
        )

    def plot(
        self, row: int | None = None, *, output: int = 0, top: int = 10, ax: Any = None
    ) -> Any:
        """Plot one row as bars, or all rows as a beeswarm.

        Parameters
        ----------
        row : int, optional
            Default: all rows, or the only one.
        output : int
            Which output, if there are several.
        top : int
            Number of columns: those with the largest mean |attribution|.
        ax : matplotlib axes, optional
            Default: the current axes.

        Returns
        -------
        The axes.
        """
        ax = current_axes() if ax is None else ax
        values = self.values if self.values.ndim == 2 else self.values[:, :, output]
        row = 0 if row is None and len(values) == 1 else row
        if row is not None and not -len(values) <= row < len(values):
            raise ValueError(f"'row' must be one of the {len(values)} rows. Got {row}.")
        shown = values if row is None else values[row][None]
        order = np.argsort(-np.abs(shown).mean(axis=0), kind="stable")[:top][::-1]
        names = [self.feature_names[j] for j in order]
        ax.axvline(0, color="0.6", lw=0.8, zorder=0)
        if row is None:
            self._draw_swarm(ax, values, order)
        else:
            numbers = shown[0, order]
            ax.barh(range(len(order)), numbers, color=[_COLOURS[int(v > 0)] for v in numbers])
            if self.data is not None:
                names = [f"{name} = {_text(self.data[row, j])}" for name, j in zip(names, order)]
        ax.set_yticks(range(len(order)), names)
        ax.set_xlabel("attribution to the score")
        if self.output_names is not None:
            ax.set_title(self.output_names[output])
        return ax

    def _draw_swarm(self, ax: Any, values: Array, order: Array) -> None:
        """A point for each row, coloured by the rank of its value in the column."""
        for place, j in enumerate(order):
            numbers = values[:, j]
            # rows with nearly equal attributions are spread above and below the line
            bins = np.round(60 * (numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300))
            height = np.zeros(len(numbers))
            for each in np.unique(bins):
                at = np.flatnonzero(bins == each)
                height[at] = (np.arange(len(at)) - (len(at) - 1) / 2) / max(len(at), 12)
            colour = _ranks(None if self.data is None else self.data[:, j])
            given: Any = {"color": "0.5"} if colour is None else {"c": colour, "cmap": "coolwarm"}
            ax.scatter(numbers, place + 0.8 * height, s=8, lw=0, **given)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _ranks(column: Array | None) -> Array | None:
    """The rank of each number, from 0 to 1; None if the column is not numeric."""
    try:
        numbers = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        return None
    if column is None or np.isnan(numbers).all():
        return None
    return np.searchsorted(np.sort(numbers), np.nan_to_num(numbers)) / len(numbers)
