"""RFLAFClassifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.estimators.base import Array, BaseRFLAF
from rflaf.estimators.validation import InputCheck
from rflaf.fitting.classification import ClassificationFit, fit_classification


class RFLAFClassifier(ClassifierMixin, BaseRFLAF):
    """Random feature classification that learns its activation function. No tuning needed.

    The activation and the metric of each member are learned on the classes as numbers, as
    RFLAFRegressor learns them; then comes multinomial logistic regression on the features. Rows
    that a member has not seen choose the penalty, and the temperature that scores are divided by.

    Parameters
    ----------
    n_components, activation, n_basis, grid, metric, input_form, n_members, fit_intercept,
    validation_fraction, max_iter, tol, l1, smoothness, projection, max_bytes, warm_start, n_jobs,
    random_state, verbose
        As for RFLAFRegressor.
    alpha : "auto" or float
        Penalty: mean cross-entropy plus alpha |v|².
    solver : {"auto", "softmax"}
        Both: as above. The paper's own training by Adam is `rflaf.nn.train`.
    class_weight : dict, "balanced" or None
        Weights of the classes, times `sample_weight`.

    Attributes
    ----------
    classes_ : array
    members_, activation_, coef_, intercept_, metric_, metric_kind_, input_form_, components_,
    alpha_, alpha_path_, form_path_, history_, n_iter_, grid_coverage_, feature_importances_
        As for RFLAFRegressor. With two classes there is one output, the log-odds of the second.
    oof_score_ : float
        Accuracy on rows that a member has not seen.
    temperature_ : float
        What scores were divided by, for the cross-entropy of these rows.

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
        "solver": [StrOptions({"auto", "softmax"})],
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
        solver: str = "auto",
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
    ) -> None:
        super().__init__(
            n_components,
            activation=activation,
            n_basis=n_basis,
            grid=grid,
            metric=metric,
            input_form=input_form,
            n_members=n_members,
            alpha=alpha,
            solver=solver,
            fit_intercept=fit_intercept,
            validation_fraction=validation_fraction,
            max_iter=max_iter,
            tol=tol,
            l1=l1,
            smoothness=smoothness,
            projection=projection,
            max_bytes=max_bytes,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> RFLAFClassifier:
        """Learn from rows X, n × d (dense or sparse), and their classes y.

        X may also be a source of `rflaf.rows`, whose blocks have the classes and weights. It is
        never held whole; where the features of all rows do not fit `max_bytes`, each step of a
        member's last fit reads it once. A fit that fails or is interrupted leaves the estimator
        as it was.

        `groups` has a label for each row, where rows belong together: a group stays in one fold,
        as for RFLAFRegressor.
        """
        check = InputCheck(type(self), classes=True)
        settings = self._fit_settings()
        rows = check.rows(X, y, sample_weight, self.max_bytes, groups, settings.seed)
        self._publish_fit(check, fit_classification(rows, settings))
        return self

    def _publish_fit(self, check: InputCheck, fit: ClassificationFit) -> None:
        first = fit.members[0]
        self._publish(
            check.columns(),
            fit.members,
            classes_=fit.classes,
            coef_=first.coef,
            intercept_=first.intercept,
            alpha_path_=fit.alpha_path,
            form_path_=fit.form_path,
            oof_score_=fit.oof_score,
            temperature_=fit.temperature,
            feature_importances_=fit.importances,
        )

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
