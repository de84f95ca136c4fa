"""RFLAFClassifier."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.estimators.base import Array, BaseRFLAF
from rflaf.estimators.validation import InputCheck
from rflaf.fitting import ClassificationFit, extend_classification, fit_classification
from rflaf.rows import ArrayRows, Source
from rflaf.runtime.callers import caller_level


class RFLAFClassifier(ClassifierMixin, BaseRFLAF):
    """Random feature classification that learns its activation function. No tuning needed.

    The activation and the metric of each member are learned on the classes as numbers, as
    RFLAFRegressor learns them; then comes multinomial logistic regression on the features. Rows
    that a member has not seen choose the penalty, the members' weights, and the temperature that
    scores are divided by. The scores are the weighted mean of the members'.

    Parameters
    ----------
    n_components, activation, n_basis, grid, metric, input_form, n_members, fit_intercept,
    validation_fraction, max_iter, tol, l1, smoothness, projection, max_bytes, warm_start, n_jobs,
    random_state, verbose, categorical_features
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
    alpha_, alpha_path_, form_path_, history_, n_iter_, n_samples_fit_, grid_coverage_,
    feature_importances_
        As for RFLAFRegressor. With two classes there is one output, the log-odds of the second.
    oof_score_ : float
        Accuracy on rows by the members that have not seen them.
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
    _fitted_state = ("_partial",)

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
        categorical_features: Any = "from_dtype",
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
            categorical_features=categorical_features,
        )
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> RFLAFClassifier:
        """Learn from rows X, n × d (dense or sparse), and their classes y.

        X may be a frame with columns of any kind, and arrays may have NaN, as for RFLAFRegressor.

        X may also be a source of `rflaf.rows`, whose blocks have the classes and weights. It is
        never held whole; where the features of all rows do not fit `max_bytes`, each step of a
        member's last fit reads it once. A fit that fails or is interrupted leaves the estimator
        as it was.

        `groups` has a label for each row, where rows belong together: a group stays in one fold,
        as for RFLAFRegressor.
        """
        settings = self._fit_settings()
        check = self._input_check(settings.seed)
        rows = check.rows(X, y, sample_weight, self.max_bytes, groups, settings.seed)
        self._publish_fit(check, fit_classification(rows, settings))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> RFLAFClassifier:
        """Add rows to the model.

        The first call is a fit, so give it a few thousand rows, some of every class: activation,
        metric, class weights, temperature and the members' parts in the prediction come
        from it and stay. For later calls the rows so far are a quadratic in the output weights,
        with the curvature of their loss (Laplace's approximation): the weights come near those of
        a fit to all rows, and no earlier row is kept. New rows may change the penalty, unless
        `alpha` is given. `oof_score_` and importances stay those of
        the first call. A call that fails or is interrupted counts none of its rows.

        Parameters
        ----------
        X : array or sparse matrix, n × d
        y : array of n
            Classes; after the first call all or some of those in it.
        classes : array, optional
            All classes. The first call finds them in y, so that this is but a check.
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
        if isinstance(X, Source):
            raise TypeError("partial_fit takes arrays. Got a source, which 'fit' reads in blocks.")
        before: ClassificationFit | None = getattr(self, "_partial", None)
        if before is None and hasattr(self, "coef_"):
            warnings.warn(
                "partial_fit begins a new model: this one comes from fit, which does not keep "
                "what more rows go on from.",
                UserWarning,
                stacklevel=caller_level(),
            )
        settings = self._fit_settings()
        check = self._input_check(settings.seed)
        if before is not None:
            check = InputCheck(type(self), classes=True, fitted=self)
        x, labels, weights = check.arrays(X, y, sample_weight)
        if before is None:
            check_classes(classes, np.unique(labels))
            rows = ArrayRows(x, labels, weights)
            fit = fit_classification(rows, settings, grows=True)
        else:
            self._check_more(before, labels, classes)
            fit = extend_classification(before, x, labels, weights, settings)
        self._publish_fit(check, fit)
        return self

    def _check_more(self, before: ClassificationFit, labels: Array, classes: Any) -> None:
        """Whether rows of these classes can be added."""
        m = len(before.members[0].coef)
        if self.n_components not in ("auto", m):
            raise ValueError(
                f"'n_components' was {m} in the first call of partial_fit, and cannot change. "
                f"Got {self.n_components}."
            )
        check_classes(classes, before.classes)
        known = set(before.classes.tolist())
        strange = [label for label in np.unique(labels).tolist() if label not in known]
        if strange:
            raise ValueError(
                f"'y' must have classes of the first call of partial_fit, {_listed(known)}. Got "
                f"{strange[0]!r}."
            )

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
            n_samples_fit_=fit.rows_seen,
            temperature_=fit.temperature,
            feature_importances_=fit.importances,
            **({} if fit.growth is None else {"_partial": fit}),
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


def check_classes(classes: Any, found: Array) -> None:
    """Whether the `classes` that partial_fit was given are those of its first rows."""
    if classes is None:
        return
    given, there = set(np.unique(classes).tolist()), set(found.tolist())
    if given != there:
        raise ValueError(
            "'classes' must be the classes of the rows in the first call of partial_fit, which "
            f"has to have some of each, {_listed(there)}. Got {_listed(given)}."
        )


def _listed(names: set[Any]) -> str:
    """Some of them, in an order."""
    shown = [repr(name) for name in sorted(names, key=repr)]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
