"""RFLAFClassifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.estimators.base import FEW_ROWS, Array, BaseRFLAF, check_memory, quiet_blas
from rflaf.solvers.result import Solution
from rflaf.solvers.softmax import Rows, fit_few, fit_softmax
from rflaf.solvers.varpro import features


class RFLAFClassifier(ClassifierMixin, BaseRFLAF):
    """Random feature classification that learns its activation function. No tuning needed.

    The activation and the metric are learned on the classes as numbers, as RFLAFRegressor learns
    them; then comes multinomial logistic regression on the features, with the penalty chosen on
    held-out rows, and a refinement of activation and weights together.

    Parameters
    ----------
    n_components, activation, n_basis, grid, metric, fit_intercept, validation_fraction, max_iter,
    tol, l1, smoothness, projection, warm_start, random_state, verbose
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
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RFLAFClassifier:
        """Learn from rows X, n × d (dense or sparse), and their classes y."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weights = self._check_weights(sample_weight, X)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError(
                "RFLAFClassifier needs samples of at least 2 classes. "
                f"Got one class: {self.classes_[0]!r}."
            )
        target = encoder.transform(y)
        check_memory(self.n_components)
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            if np.min(by_class) < 0:
                raise ValueError(f"'class_weight' must not be negative. Got {by_class.min()}.")
            weights = weights * by_class[target]
        if not (weights > 0).any() or np.ptp(target[weights > 0]) == 0:
            raise ValueError(
                "RFLAFClassifier needs at least 2 classes with a positive weight. Got fewer."
            )
        if self.solver == "adam":
            v = self._train_with_adam(X, target, weights, "classification")
            self.coef_ = v[:, 1:] - v[:, :1] if len(self.classes_) == 2 else v
            self.intercept_ = np.zeros(self.coef_.shape[1])
            return self
        with quiet_blas(X.shape[0], self.n_components):
            self._fit_classes(X, target, weights)
        return self

    def _fit_classes(self, X: Any, target: Array, weights: Array) -> None:
        x, rng = self._learn(X, self._as_numbers(target, weights), weights)
        used = np.flatnonzero(weights > 0)
        if len(used) < FEW_ROWS:
            _, phi = features(self._sigma(), x[used], self.components_)
            alpha = 1e-3 if self.alpha == "auto" else float(self.alpha)
            solution = fit_few(
                phi[:, :-1],
                target[used],
                weights[used],
                len(self.classes_),
                alpha,
                self.fit_intercept,
            )
        else:
            solution = self._fit_softmax(x, target, weights, used, rng)
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.alpha_, self.alpha_path_ = solution.alpha, solution.path

    def _fit_softmax(
        self, x: Any, target: Array, weights: Array, used: Array, rng: np.random.Generator
    ) -> Solution:
        """Weights for the classes, and the activation refined with them."""
        held = np.zeros(len(used), bool)
        if self.alpha == "auto":
            held = rng.permutation(len(used)) < max(1, round(self.validation_fraction * len(used)))
        every, fit, held_rows = (
            Rows(x[at], self.components_, target[at], weights[at])
            for at in (used, used[~held], used[held])
        )
        solution, sigma = fit_softmax(
            self._sigma(),
            every,
            fit,
            held_rows,
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
        scores = self._scores(X)
        chosen = scores[:, 0] > 0 if len(self.classes_) == 2 else scores.argmax(axis=1)
        return self.classes_[chosen.astype(int)]

    def _as_numbers(self, target: Array, weights: Array) -> Array:
        """One column a class (one for two), centred and of unit variance on the whole."""
        numbers = np.eye(len(self.classes_))[target]
        if numbers.shape[1] == 2:
            numbers = numbers[:, 1:]
        share = weights / weights.sum()
        numbers -= share @ numbers
        return numbers / np.sqrt(np.mean(share @ numbers**2))
