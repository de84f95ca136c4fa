"""Looking at a fitted model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rflaf.activation import alike, current_axes
from rflaf.bases import Basis
from rflaf.estimators.explanation import Explanation
from rflaf.fitting import attribution, describe_members, leading_team
from rflaf.fitting.changed_rows import ChangedRows
from rflaf.inputs.forms import Binned
from rflaf.inputs.opening import column_names
from rflaf.rows import Source
from rflaf.runtime.callers import warn
from rflaf.runtime.threads import use_threads
from rflaf.solvers.features import as_array

_LEAST_COVERAGE = 0.8  # of Z inside the grid; with less, the activation tells little about the rows


def warn_of_coverage(share: float, basis: Basis) -> None:
    if share >= _LEAST_COVERAGE:
        return
    low, high = basis.grid
    warn(
        f"Only {int(100 * share)}% of the projected inputs lie inside the grid "
        f"[{low:g}, {high:g}], where the activation is learned. A wider 'grid' and more "
        "'n_basis' may help."
    )


class InspectionMixin(BaseEstimator):
    """Plots, a summary, explanations and a report."""

    def plot_activation(self, ax: Any = None) -> Any:
        """Plot the learned activation, over a histogram of the projected inputs.

        The dashed line is the closest formula of `Activation.describe` on these inputs. Thin lines
        are the activations of single members, scaled to the same height and sign; the thick line is
        their mean. Only members with the form of the first one are shown.
        """
        check_is_fitted(self)
        activations, mean = self._activations()
        ax = mean.plot(ax, color="C3", lw=2)
        z = ax.lines[-1].get_xdata()
        for each in activations if len(activations) > 1 else []:
            ax.plot(z, each(z), color="C3", lw=0.7, alpha=0.5)
        for formula in self._formula():
            left, right = ax.get_xlim()
            z = np.linspace(left, right, 500)
            bottom, top = ax.get_ylim()
            ax.plot(z, np.clip(formula(z), bottom, top), "k--", lw=1, label=str(formula))
            ax.legend(loc="best")
        below = ax.twinx()
        below.hist(self.z_sample_, bins=60, range=ax.get_xlim(), color="0.6", alpha=0.35)
        below.set_yticks([])
        below.set_ylim(0, 3 * max(below.get_ylim()[1], 1))
        ax.set_zorder(below.get_zorder() + 1)
        ax.patch.set_visible(False)
        ax.set_title("learned activation" if self.activation_.basis.learnable else "activation")
        return ax

    def _activations(self) -> tuple[list[Any], Any]:
        """Activations of the leading team, scaled alike in height and sign, and their mean."""
        activations = alike([each.layer.activation for each in leading_team(self.members_)])
        return activations, sum(activations[1:], activations[0]) / len(activations)

    def _formula(self) -> list[Any]:
        """The best formula for the mean activation on the fit's inputs; none for a fixed one."""
        _, mean = self._activations()
        return mean.describe(self.z_sample_, 1) if mean.basis.learnable else []

    def plot_importances(self, ax: Any = None, top: int = 15) -> Any:
        """Plot the importances of the `top` columns, with their standard deviation over members."""
        check_is_fitted(self)
        ax = current_axes() if ax is None else ax
        names, order = column_names(self), np.argsort(self.feature_importances_)[-top:]
        spread = self.feature_importances_std_[order]
        ax.barh(range(len(order)), self.feature_importances_[order], xerr=spread, color="C0")
        ax.set_yticks(range(len(order)), [names[j] for j in order])
        ax.set_xlabel("importance")
        return ax

    def plot_warps(self, columns: Any = None, axes: Any = None) -> Any:
        """Plot the learned transformation of binned columns, one curve per column.

        A curve is steep where the model distinguishes values closely, and flat where they count as
        equal: it is the sum of the learned scales of the bins, averaged over members.

        Parameters
        ----------
        columns : list of str or int, optional
            Names or positions of inputs, after the encoding of a frame. Default: the six most
            important ones.
        axes : list of Axes, optional
            One per column.

        Returns
        -------
        list of Axes
        """
        check_is_fitted(self)
        layers = [(m.layer.form, m.layer.metric) for m in self.members_]
        cut_ones = [(form, metric) for form, metric in layers if isinstance(form, Binned)]
        if not cut_ones:
            raise ValueError("plot_warps needs binned inputs; this model has none.")
        cut = cut_ones[0][0].bins.columns
        names, origin = self._input_names()
        if columns is None:
            order = np.argsort(-self.feature_importances_[origin], kind="stable")
            columns = [j for j in order.tolist() if j in cut][:6]
        columns = [names.index(j) if j in names else j for j in columns]
        unknown = [j for j in columns if j not in cut.tolist()]
        if unknown:
            known = [names[j] for j in cut]
            raise ValueError(f"'columns' must be binned columns: {known}. Got {unknown}.")
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.subplots(1, len(columns), figsize=(3 * len(columns), 2.4))[1]
        axes = np.atleast_1d(axes).ravel().tolist()
        for j, ax in zip(columns, axes, strict=True):
            curves = [form.warp(m, j) for form, m in cut_ones if j in form.bins.columns]
            # members with means of the target have edges of their own
            edges = np.unique(np.concatenate([edges for edges, _ in curves]))
            ax.plot(edges, np.mean([np.interp(edges, *curve) for curve in curves], axis=0))
            ax.set_xlabel(names[j])
            ax.set_ylabel("learned scale, summed")
        return axes

    def _input_names(self) -> tuple[list[str], NDArray[np.intp]]:
        """The inputs of the first member's form by name, and the column each comes from."""
        encoder, layer, origin = self.encoder_, self.members_[0].layer, self._origin
        names = column_names(self) if encoder is None else encoder.get_feature_names_out()
        if layer.means is not None:  # codes of levels have become means of the target
            given = layer.means.origin
            names, origin = [names[k] for k in given], origin[given]
        return [str(name) for name in names], origin

    def explain(self, X: Any, background: Any = None) -> Explanation:
        """Attribute the score of each row to the columns, compared with background rows.

        The attributions of a row sum to its score minus the mean score of the background rows. For
        squared error, scores are predictions; for other losses they are on the scale of the link;
        for classes they are those of `decision_function`: log-odds of the second of two classes, or
        one score per class.

        Parameters
        ----------
        X : array or frame, n × d
        background : array or frame, optional
            Rows to compare with, such as those of a group. A hundred are plenty; the time depends
            on their number for few rows X only. Default: `background_`, at most 64 training rows.

        Returns
        -------
        Explanation
            With `values`, n × d, or n × d × C for several outputs.

        Notes
        -----
        Attributions are integrated gradients, in closed form, along straight lines from each
        background row in the space of a member's inputs: standardised columns, ranks, bins,
        levels. Those of one column are added up. For many rows, means over the background are
        interpolated between nodes, with an error of less than 1e-4 standard deviations of y. Local
        models are followed in 32 steps from one background row, that whose local score is nearest
        to the mean. Outside the training range, the straight line that continues a column belongs
        to that column; if the score reaches its bounds, the attributions of the row are scaled
        down. Rounding errors, and changes by `monotonic_cst`, are distributed over the columns in
        proportion to their attributions.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from rflaf import RFLAFRegressor
        >>> X, y = make_friedman1(600, random_state=0)
        >>> model = RFLAFRegressor(100, n_members=2, random_state=0).fit(X, y)
        >>> why = model.explain(X[:3])
        >>> why.values.shape
        (3, 10)
        >>> sums = why.values.sum(axis=1) + why.base_values
        >>> bool(abs(sums - model.predict(X[:3])).max() < 1e-6)
        True
        """
        check_is_fitted(self)
        if background is None:
            if self.background_ is None:
                raise ValueError("This model has no background rows: pass 'background'.")
            others = self.background_
        else:
            others = self._dense_inputs(background)
        values, base = [], self._block_scores(others).mean(axis=0)
        for x in self._input_blocks(X):
            wanted = self._block_scores(x) - base  # outside `use_threads`: rounds as predictions
            given = as_array(x), others, wanted, self._origin, self.n_features_in_
            with use_threads(self.n_jobs):
                values.append(attribution.attributions(self.members_, self.outside_, *given))
        found = np.concatenate(values)
        single = found.shape[2] == 1 and self.loss_.single
        labels = None if single else getattr(self, "classes_", None)
        base = np.broadcast_to(base, (len(found), len(base)))
        data = None  # of a source, which may be read only in blocks
        if not isinstance(X, Source):
            data = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return Explanation(
            values=found[:, :, 0] if single else found,
            base_values=base[:, 0] if single else base,
            data=data,
            feature_names=column_names(self),
            output_names=None if labels is None else [str(label) for label in labels],
        )

    def gradient(self, X: Any) -> NDArray[Any]:
        """Derivative of each row's score in each column, n × d, or n × d × C.

        Scores are those of `explain`. Non-numeric columns of a frame have NaN, and so have missing
        values; where the fit had none, it is the derivative at the median. At the kinks of ranks
        and bins it is one-sided. Outside the training range it is the slope of the line that
        continues the model, and 0 where the score has reached its bounds. With `monotonic_cst` it
        is that of the constrained score.

        Examples
        --------
        >>> import numpy as np
        >>> from rflaf import RFLAFRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> model = RFLAFRegressor(100, n_members=1, random_state=0).fit(X, X @ [2.0, -1.0])
        >>> model.gradient([[0.1, 0.2]]).round(1).tolist()
        [[2.0, -1.0]]
        """
        check_is_fitted(self)
        found, encoder = [], self.encoder_
        with use_threads(self.n_jobs):
            for x in map(as_array, self._input_blocks(X)):
                steps = attribution.gradient(self.members_, self.outside_, x)
                found.append(steps if encoder is None else encoder.slopes(steps, x))
        steps = np.concatenate(found)
        return steps[:, :, 0] if steps.shape[2] == 1 and self.loss_.single else steps

    def to_torch(self) -> Any:
        """The fitted model as an `nn.Module`: the same predictions, differentiable, trainable.

        It takes a tensor of rows, n × d, and returns what `predict` does, or `predict_proba` for
        classes; `module.scores(x)` returns the scores, such as logits. NaN is a missing value; rows
        that the model would refuse give NaN. A model of a frame with non-numeric columns takes the
        output of `encoder_.transform`.

        The parameters of each member are the output weights `V`, their `bias`, the coefficients of
        the activation, and `W`, which is frozen until you call `requires_grad_`. Local models stay
        as they were fitted: `local_models=False` gives a module that is trained as a whole.
        `.float()` and `.double()` change the precision of the parameters only. Needs PyTorch.

        Examples
        --------
        >>> import numpy as np
        >>> import torch
        >>> from rflaf import RFLAFRegressor
        >>> X = np.random.default_rng(0).normal(size=(80, 3))
        >>> model = RFLAFRegressor(20, random_state=0).fit(X, X[:, 0] * X[:, 1])
        >>> module = model.to_torch()
        >>> x = torch.tensor(X, requires_grad=True)
        >>> bool(abs(module(x).detach().numpy() - model.predict(X)).max() < 1e-5)
        True
        >>> module(x).sum().backward()
        >>> bool(abs(x.grad.numpy() - model.gradient(X)).max() < 1e-3)
        True
        """
        check_is_fitted(self)
        from rflaf.nn.fitted import FittedModule

        return FittedModule(self)

    def _dense_inputs(self, X: Any) -> NDArray[Any]:
        """All rows, in the form that members take."""
        return np.concatenate([as_array(x) for x in self._input_blocks(X)])

    def _changed_rows(self, X: Any) -> ChangedRows | None:
        """Rows whose columns can be changed one by one; None if scores are constrained."""
        if self.outside_.monotone is not None:
            return None
        tied = () if self.encoder_ is None else self.encoder_.tied
        x = self._dense_inputs(X)
        return ChangedRows(self.members_, self.outside_, x, self._origin, tied)

    @property
    def _origin(self) -> NDArray[np.intp]:
        """The column that each input comes from."""
        return np.arange(self.n_features_in_) if self.encoder_ is None else self.encoder_.origin_

    def outside_share(self, X: Any) -> float:
        """Share of rows more than a standard deviation outside the range of the training rows.

        >>> import numpy as np
        >>> from rflaf import RFLAFRegressor
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> RFLAFRegressor(20, random_state=0).fit(x, x[:, 0]).outside_share([[0.5], [9.0]])
        0.5
        """
        found = [(self.outside_.far(x)[-1], x.shape[0]) for x in self._input_blocks(X)]
        far, count = np.sum(found, axis=0)
        return float(far / count)

    def summary(self) -> str:
        """Score, members, chosen parameters and importances, as text."""
        check_is_fitted(self)
        inputs, columns = len(self.scale_), len(np.unique(self._origin))
        metrics = len(self.members_[0].layer.metrics)
        lines = [
            f"{type(self).__name__}: {self._score_line()}",
            *(f"  members        {text}" for text in describe_members(self.members_)),
            f"  features       {self.components_.shape[1]} per member, {inputs} inputs"
            f"{f' from {columns} columns' if columns != inputs else ''}",
            f"  activation     {self.activation_.basis!r}",
            *(f"  looks like     {each} (R² {each.r2:.3f})" for each in self._formula()),
            f"  metric         {self.metric_kind_}{f', {metrics} metrics' if metrics > 1 else ''}",
            f"  alpha          {self.alpha_:.3g}",
            f"  grid coverage  {self.grid_coverage_:.1%}",
            f"  effort         {self.effort_}",
            *(f"  skipped        {text} (time limit)" for text in self.left_out_),
            *(f"  constraint     {text}" for text in self._constraints()),
        ]
        if self.history_:
            lines.append(f"  learned in     {self.n_iter_} steps")
        names, shares = column_names(self), self.feature_importances_
        spread = self.feature_importances_std_
        shown = ", ".join(
            f"{names[i]} {shares[i]:.0%}{f' ± {spread[i]:.0%}' if spread.any() else ''}"
            for i in np.argsort(shares)[::-1][:5]
        )
        return "\n".join([*lines, f"  importances    {shown}"])

    def _constraints(self) -> list[str]:
        if self.outside_.monotone is None:
            return []
        names, words = column_names(self), {1: "never falls", -1: "never rises"}
        axes = self.outside_.monotone.axes
        return [f"{words[axis.sign]} in {names[self._origin[axis.column]]}" for axis in axes]

    def _score_line(self) -> str:
        members, score = len(self.members_), getattr(self, "oof_score_", np.nan)
        count = f"{members} member{'s' if members > 1 else ''}"
        if not np.isfinite(score):
            return f"{count}, no rows held out"
        metrics = getattr(self, "oof_metrics_", {})
        if not metrics:
            return f"oof {self.loss_.score_name} {score:.2f} ({count})"
        each = [f"{name} {ours:.3g} ({other:.3g})" for name, (ours, other) in metrics.items()]
        return f"oof {', '.join(each)}; in parentheses: constant model ({count})"

    def report(
        self,
        path: str | os.PathLike[str],
        X_test: Any = None,
        y_test: Any = None,
        *,
        X_train: Any = None,
        y_train: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a model report: one self-contained HTML file. Returns its path.

        `path` is overwritten if it exists. `X_test` and `y_test` are rows that the model was not
        trained on, `X_train` and `y_train` those of the fit. `title` is the title of the page. See
        `rflaf.report.write_report`.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import load_iris
        >>> from rflaf import RFLAFClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = RFLAFClassifier(50, n_members=1, random_state=0).fit(X[::2], y[::2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = model.report(f"{folder}/iris.html", X[1::2], y[1::2])
        ...     "Confusion of classes" in page.read_text(encoding="utf-8")
        True
        """
        from rflaf.report import write_report

        check_is_fitted(self)
        return write_report(
            self, path, X_test, y_test, X_train=X_train, y_train=y_train, title=title
        )
