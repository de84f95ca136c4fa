"""RFLAFClassifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.bases import Basis
from rflaf.estimators.base import BaseRFLAF
from rflaf.estimators.validation import spread_rows
from rflaf.fitting import Fit
from rflaf.losses import Logistic, Loss


class RFLAFClassifier(ClassifierMixin, BaseRFLAF):
    """Random feature classification that learns its activation function. No tuning needed.

    Activation, metric and output weights of each member minimise the cross-entropy. Held-out rows
    choose the form of the inputs, the penalty, the weights of the members, and the temperature by
    which scores are divided. The scores are the weighted mean over members.

    Parameters
    ----------
    n_components, activation, n_basis, grid, metric, input_form, n_members, fit_intercept,
    validation_fraction, tol, l1, smoothness, projection, max_bytes, warm_start, n_jobs,
    random_state, verbose, categorical_features, effort, time_limit,
    local_models
        As for RFLAFRegressor.
    monotonic_cst : array-like of d, dict or None
        As for RFLAFRegressor, for two classes: 1 for columns in which the probability of the
        second must never fall.
    max_iter : int
        As for RFLAFRegressor. With 1,000 rows per member or more, these are preceded by as many
        steps on small sketches.
    alpha : "auto" or float
        Penalty: mean cross-entropy plus alpha |v|².
    class_weight : dict, "balanced" or None
        Weights of the classes, times `sample_weight`.

    Attributes
    ----------
    classes_ : array
    members_, activation_, output_weights_, intercept_, metric_, metric_kind_, input_form_,
    components_, alpha_, alpha_path_, form_path_, history_, n_iter_, n_samples_fit_, grid_coverage_,
    feature_importances_, feature_importances_std_, background_, effort_, left_out_
        As for RFLAFRegressor. With two classes there is one output, the log-odds of the second.
    oof_prediction_ : array, n × C, or None
        Calibrated out-of-fold probabilities. NaN for rows that all members were trained on, and
        for rows without weight. None if there are too many rows to keep.
    oof_score_ : float
        Accuracy of `oof_prediction_`, with the sample weights.
    oof_metrics_ : dict
        Log-loss, ROC AUC, average precision and accuracy of `oof_prediction_`: for each the value
        of this model, and of one that always predicts the class frequencies.
    temperature_ : float
        Factor by which scores are divided; it minimises the out-of-fold cross-entropy.

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
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        activation: str | Basis | Activation = "rbf",
        n_basis: int = 32,
        grid: tuple[float, float] = (-2.0, 2.0),
        metric: str = "auto",
        input_form: str = "auto",
        n_members: int | str = "auto",
        alpha: float | str = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        validation_fraction: float = 0.1,
        max_iter: int = 240,
        tol: float = 0.02,
        l1: float = 0.0,
        smoothness: float = 0.0,
        projection: str = "gaussian",
        max_bytes: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        effort: str = "default",
        time_limit: float | None = None,
        local_models: bool = True,
    ) -> None:
        self._keep(locals())

    def _loss(self) -> Loss:
        return Logistic(self.class_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add rows to the model.

        The first call is a fit, so give it a few thousand rows that contain all classes:
        activation, metric, class weights, temperature, weights of members, `oof_score_` and
        importances come from it and do not change. Later calls update the output weights, which
        are close to those of a fit to all rows: earlier rows are represented by a quadratic model
        of their loss. The penalty of the summed loss is kept, so that `alpha_`, which refers to the
        mean, falls as rows are added. A call that fails or is interrupted uses none of its rows.

        Parameters
        ----------
        X : array or sparse matrix, n × d
        y : array of n
            Classes; later calls may not add new ones.
        classes : array, optional
            All classes, as a check: they must be those of y in the first call.
        sample_weight : array of n, optional

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from rflaf import RFLAFClassifier
        >>> X, y = make_moons(1000, noise=0.2, random_state=0)
        >>> model = RFLAFClassifier(n_components=100, random_state=0)
        >>> for start in range(0, 800, 200):
        ...     rows = slice(start, start + 200)
        ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> bool(model.score(X[800:], y[800:]) > 0.93)
        True
        """
        return self._more_rows(X, y, sample_weight, classes)

    def _check_first(self, y: Array, classes: Any) -> None:
        check_classes(classes, np.unique(y))

    def _check_more(self, before: Fit, y: Array, classes: Any) -> None:
        super()._check_more(before, y, classes)
        check_classes(classes, self.classes_)
        known = set(self.classes_.tolist())
        strange = [label for label in np.unique(y).tolist() if label not in known]
        if strange:
            raise ValueError(
                f"'y' may only have classes of the first partial_fit, {_listed(known)}. Got "
                f"{strange[0]!r}."
            )

    def _attributes(self, fitted: Fit) -> dict[str, Any]:
        loss = fitted.loss
        assert isinstance(loss, Logistic)
        scores = spread_rows(fitted.oof_scores, fitted.sample_numbers, fitted.rows_seen)
        return {
            "classes_": loss.classes,
            "temperature_": fitted.temperature,
            "oof_prediction_": None if scores is None else loss.probabilities(scores),
        }

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, n × C, or with two classes the log-odds of the second, n."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, n × C."""
        scores = self._scores(X)  # raises if nothing is fitted
        return self.loss_.probabilities(scores)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        scores = self._scores(X)
        return self.loss_.predict(scores)


def check_classes(classes: Any, found: Array) -> None:
    """Raise if partial_fit got `classes` other than those of its first rows."""
    if classes is None:
        return
    given, there = set(np.unique(classes).tolist()), set(found.tolist())
    if given != there:
        raise ValueError(
            "'classes' must be the classes in the rows of the first partial_fit, "
            f"{_listed(there)}. Got {_listed(given)}."
        )


def _listed(names: set[Any]) -> str:
    shown = [repr(name) for name in sorted(names, key=repr)]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
