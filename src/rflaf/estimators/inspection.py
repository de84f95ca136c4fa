"""Looking at a fitted model."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.fitting import Member

_INSIDE = ("rflaf", "sklearn")
_LEAST_COVERAGE = 0.8  # of the grid; with less the activation says little about the rows


def caller_level() -> int:
    """The `stacklevel` of a warning that points at the first line outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level


def warn_of_coverage(share: float, basis: Basis) -> None:
    """Warn where much of Z lies outside the grid."""
    if share >= _LEAST_COVERAGE:
        return
    low, high = basis.grid
    warnings.warn(
        f"Only {int(100 * share)}% of the projected inputs lie inside the grid "
        f"[{low:g}, {high:g}], where the activation can be shaped. A wider 'grid' and more "
        "'n_basis' may help.",
        UserWarning,
        stacklevel=caller_level(),
    )


class InspectionMixin:
    """Importances, the activation's picture, a summary."""

    activation_: Any
    members_: list[Member]
    components_: NDArray[Any]
    feature_importances_: NDArray[Any]
    scale_: NDArray[Any]
    z_sample_: NDArray[Any]

    def plot_activation(self, ax: Any = None) -> Any:
        """Draw the learned activation, and under it the histogram of what it is applied to.

        Those of several members are thin, scaled to one height and sign, with their mean.
        """
        check_is_fitted(self)
        if len(self.members_) == 1:
            ax = self.activation_.plot(ax, color="C3", lw=2)
        else:
            activations = _alike([member.layer.activation for member in self.members_])
            mean = sum(activations[1:], activations[0]) / len(activations)
            ax = mean.plot(ax, color="C3", lw=2)
            z = ax.lines[-1].get_xdata()
            for each in activations:
                ax.plot(z, each(z), color="C3", lw=0.7, alpha=0.5)
        below = ax.twinx()
        below.hist(self.z_sample_, bins=60, range=ax.get_xlim(), color="0.6", alpha=0.35)
        below.set_yticks([])
        below.set_ylim(0, 3 * max(below.get_ylim()[1], 1))
        ax.set_zorder(below.get_zorder() + 1)
        ax.patch.set_visible(False)
        ax.set_title("learned activation" if self.activation_.basis.learnable else "activation")
        return ax

    def summary(self) -> str:
        """A few lines on what was fitted."""
        check_is_fitted(self)
        model: Any = self
        losses = [record["loss"] for record in model.history_]
        members, forms = len(self.members_), {"both": "standardised, and ranks", "ranks": "ranks"}
        lines = [
            f"{type(self).__name__}: {self.components_.shape[1]} random features of "
            f"{len(self.scale_)} inputs{f', {members} members' if members > 1 else ''}",
            f"  input form     {forms.get(model.input_form_, 'standardised')}",
            f"  activation     {self.activation_.basis!r}",
            f"  metric         {model.metric_kind_}",
            f"  alpha          {model.alpha_:.3g}",
            f"  grid coverage  {model.grid_coverage_:.1%}",
        ]
        if losses:
            edge = max(1, len(losses) // 10)
            lines.append(
                f"  learned in     {model.n_iter_} steps; held-out loss of the sketches "
                f"{np.mean(losses[:edge]):.4g} -> {np.mean(losses[-edge:]):.4g}"
            )
        names = getattr(self, "feature_names_in_", None)
        shares = self.feature_importances_
        shown = ", ".join(
            f"{names[i] if names is not None else f'x{i}'} {shares[i]:.0%}"
            for i in np.argsort(shares)[::-1][:5]
        )
        return "\n".join([*lines, f"  inputs         {shown}"])


def _alike(activations: list[Activation]) -> list[Activation]:
    """Activations of the first one's height and sign: f does not change if V does the reverse."""
    first = activations[0]
    z = np.linspace(*first.basis.grid, 257)
    found = []
    for each in activations:
        overlap, size = float(first(z) @ each(z)), float(each(z) @ each(z))
        factor = np.sqrt(float(first(z) @ first(z)) / max(size, 1e-300))
        found.append(each * float(np.copysign(factor, overlap)))
    return found
