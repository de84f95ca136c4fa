"""RFLAFClassifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.estimators.base import FEW_ROWS, Array, BaseRFLAF, quiet_blas
from rflaf.estimators.classes import ClassTally, class_codes
from rflaf.estimators.memory import kept_bytes
from rflaf.estimators.reading import is_streamed
from rflaf.estimators.rows import ArrayRows, CheckedRows
from rflaf.estimators.sample import Sample, fold_cuts, fold_numbers
from rflaf.estimators.scaling import column_moments
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import check_finite
from rflaf.solvers.softmax import Rows, StreamedRows, fit_few, fit_softmax
from rflaf.solvers.varpro import features

_FEW_ROWS_PENALTY = 1e-4  # of the features' total variance, where no rows can be held out
_LEAST_HELD = 100  # rows that choose the penalty, or a third of all


class RFLAFClassifier(ClassifierMixin, BaseRFLAF):
    """Random feature classification that learns its activation function. No tuning needed.

    The activation and the metric are learned on the classes as numbers, as RFLAFRegressor learns
    them; then comes multinomial logistic regression on the features, with the penalty chosen on
    held-out rows, and a refinement of activation and weights together.

    Parameters
    ----------
    n_components, activation, n_basis, grid, metric, fit_intercept, validation_fraction, max_iter,
    tol, l1, smoothness, projection, memory, warm_start, random_state, verbose
        As for RFLAFRegressor.
    alpha : "auto" or float
        Penalty: mean cross-entropy plus alpha |v|².
    solver : {"auto", "softmax", "adam"}
        "auto" and "softmax": as above. "adam": the paper's training, as for RFLAFRegressor.
    class_weight : dict, "balanced" or None
        Weights of the classes, times `sample_weight`.

    Attributes
    ----------
    classes_ : array
    activation_, coef_, intercept_, metric_, alpha_, history_, n_iter_, grid_coverage_,
    feature_importances_
        As for RFLAFRegressor. With two classes there is one output, the log-odds of the second.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rflaf import RFLAFClassifier
    >>> X, y = make_moons(600, noise=0.2, random_state=0)
    >>> model = RFLAFClassifier(n_components=200, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseRFLAF._parameter_constraints,
        "solver": [StrOptions({"auto", "softmax", "adam"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        n_components: int = 1000,
        *,
        activation: str | Basis | Activation = "rbf",
        n_basis: int = 32,
        grid: tuple[float, float] = (-2.0, 2.0),
        metric: str = "auto",
        alpha: float | str = "auto",
        solver: str = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        validation_fraction: float = 0.1,
        max_iter: int = 140,
        tol: float = 1e-3,
        l1: float = 0.0,
        smoothness: float = 0.0,
        projection: str = "gaussian",
        memory: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            activation=activation,
            n_basis=n_basis,
            grid=grid,
            metric=metric,
            alpha=alpha,
            solver=solver,
            fit_intercept=fit_intercept,
            validation_fraction=validation_fraction,
            max_iter=max_iter,
            tol=tol,
            l1=l1,
            smoothness=smoothness,
            projection=projection,
            memory=memory,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RFLAFClassifier:
        """Learn from rows X, n × d (dense or sparse), and their classes y.

        X may also be a source of `rflaf.data`, whose blocks have the classes and weights. It is
        never held whole; where the features of all rows do not fit `memory`, each step of the last
        fit reads it once.
        """
        with self._unfitted_on_error(is_streamed(X)):
            return self._fit(self._open(X, y, sample_weight))

    def _fit(self, rows: ArrayRows | CheckedRows) -> RFLAFClassifier:
        self._begin()
        tally = ClassTally()
        sample = self._draw_sample(rows, lambda block: tally.add(block.y, block.weights))
        weight = self._set_classes(tally)
        if self.solver == "adam":
            assert isinstance(rows, ArrayRows)
            v = self._train_with_adam(rows.x, *self._encode(rows.y, rows.weights), "classification")
            self.coef_ = v[:, 1:] - v[:, :1] if len(self.classes_) == 2 else v
            self.intercept_ = np.zeros(self.coef_.shape[1])
            return self

        def again() -> Iterator[tuple[Any, Array, Array]]:
            return (block[:3] for block in self._blocks_again(rows, self._encode))

        def every() -> Rows:
            kept = kept_bytes(self.memory)
            return StreamedRows(again, self.components_, sample.used, weight, kept)

        self._fit_sample(sample, None if sample.whole else every)
        return self

    def _set_classes(self, tally: ClassTally) -> float:
        """What is known of the classes after the first pass; returns the weight of all rows."""
        self.classes_ = tally.classes
        self._class_weights = tally.check(self.class_weight, type(self).__name__)
        return float(tally.weights @ self._class_weights)

    def _encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        codes = class_codes(self.classes_, y)
        return codes, weights * self._class_weights[codes]

    def _fit_sample(self, sample: Sample, every: Callable[[], Rows] | None) -> None:
        """Learn on the sample; fit the weights to `every` row, where they are more."""
        sample.y, sample.weights = self._encode(sample.y, sample.weights)
        with quiet_blas(sample.used, self.n_components):
            self._fit_classes(sample.where(sample.weights > 0), every)

    def _fit_classes(self, sample: Sample, every: Callable[[], Rows] | None) -> None:
        target, weights = sample.y, sample.weights
        x, _ = self._learn(sample.x, self._as_numbers(target, weights), weights)
        if every is None and len(target) < FEW_ROWS:
            _, phi = features(self._sigma(), x, self.components_)
            alpha = self.alpha
            if alpha == "auto":  # nothing can be held out
                spread = column_moments(phi[:, :-1], weights)[1]
                check_finite(float(spread @ spread))
                alpha = max(_FEW_ROWS_PENALTY * float(spread @ spread), 1e-6)
            solution = fit_few(
                phi[:, :-1], target, weights, len(self.classes_), float(alpha), self.fit_intercept
            )
        else:
            solution = self._fit_softmax(x, sample, every)
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.alpha_, self.alpha_path_ = solution.alpha, solution.path

    def _fit_softmax(self, x: Any, sample: Sample, every: Callable[[], Rows] | None) -> Solution:
        """Weights for the classes, and the activation refined with them."""
        w, kept = self.components_, kept_bytes(self.memory)
        target, weights = sample.y, sample.weights
        fit, held = Rows(x, w, target, weights, kept), Rows(x[:0], w, target[:0], weights[:0])
        all_rows = fit if every is None else every()
        if self.alpha == "auto":
            share = max(self.validation_fraction, min(1 / 3, _LEAST_HELD / len(target)))
            chosen = fold_numbers(fold_cuts(sample.keys, [1 - share, share]), sample.keys) == 1
            fit, held = (Rows(x[at], w, target[at], weights[at], kept) for at in (~chosen, chosen))
        solution, sigma = fit_softmax(
            self._sigma(),
            all_rows,
            fit,
            held,
            len(self.classes_),
            alpha=None if self.alpha == "auto" else float(self.alpha),
            fit_intercept=self.fit_intercept,
            refine=not isinstance(self.activation, Activation),
        )
        self.activation_ = Activation(self.activation_.basis, sigma.coefficients)
        self._table = None
        return solution

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, n × C, or with two classes the log-odds of the second, n."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, n × C."""
        scores = self._scores(X)
        if len(self.classes_) == 2:
            p = np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        else:
            p = softmax(scores, axis=1)
        return np.maximum(p, np.finfo(p.dtype).tiny)  # never 0, so that logarithms stay finite

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        return self._decide(self._scores(X))

    def _decide(self, scores: Array) -> Array:
        chosen = scores[:, 0] > 0 if len(self.classes_) == 2 else scores.argmax(axis=1)
        return self.classes_[chosen.astype(int)]

    def _as_numbers(self, target: Array, weights: Array) -> Array:
        """One column a class (one for two), centred and of unit variance on the whole."""
        numbers = np.eye(len(self.classes_))[target]
        if numbers.shape[1] == 2:
            numbers = numbers[:, 1:]
        share = weights / weights.sum()
        numbers -= share @ numbers
        spread = float(np.sqrt(np.mean(share @ numbers**2)))
        return numbers / spread if spread > 0 else numbers  # a sample may miss a rare class

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        return X, y, self._check_weights(sample_weight, X)

    def _check_targets(self, y: Any) -> Array:
        classes = column_or_1d(y)
        if classes.dtype.kind == "O" and any(c is None or c != c for c in classes):
            raise ValueError("Input y contains missing classes (None or NaN).")
        return classes
