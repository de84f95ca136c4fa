"""RFLAFRegressor."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.bases import Basis
from rflaf.distributions import Distribution
from rflaf.estimators.base import BaseRFLAF
from rflaf.estimators.validation import spread_rows
from rflaf.fitting import Fit
from rflaf.losses import LOSSES, Loss


class RFLAFRegressor(MultiOutputMixin, RegressorMixin, BaseRFLAF):
    """Random feature regression that learns its activation function. No tuning needed.

    f(x) = sum_m v_m sigma(w_m · L x) + intercept. The w_m are random and never trained. sigma, a
    linear map L of the inputs and the penalty are learned by minimising the held-out error of the
    exact ridge solution v. Rows are split into folds before anything is learned, and each member
    learns on the rows outside one fold. The errors on the folds choose the forms of the inputs, the
    kind of L, the penalty and the weights of the members. The prediction is their weighted mean.

    Parameters
    ----------
    n_components : "auto" or int
        Random features per member, M. "auto": 500 up to 2,000 rows, 1,000 up to 10,000, 2,000 up to
        30,000, then 3,000.
    loss : str or Loss
        Loss to minimise. "squared_error" predicts means; "huber" means, robust to outliers;
        "absolute_error" medians; "quantile" the levels in `quantile`; "poisson", "tweedie" and
        "gamma" means of non-negative targets (gamma: positive), with a log link. To write your own,
        see `rflaf.losses`.
    quantile : float or list of floats
        With loss="quantile", the level to predict, between 0 and 1. An increasing list gives one
        column per level; these never cross.
    power : float
        With loss="tweedie", the variance is proportional to the mean to this power: 1 is Poisson, 2
        gamma.
    activation : str, Basis or Activation
        Basis of the learned activation ("rbf", "bspline", "chebyshev", "polynomial", or a Basis), a
        fixed activation ("relu", "cos", "tanh", ...), or an Activation to use unchanged. The names
        "cos" and "gaussian" include a phase, because a model with an even activation cannot learn
        odd functions; `rflaf.bases.Fixed("cos")` has none.
    n_basis : int
        Number of basis functions, N, if `activation` is a name. The cost does not depend on it.
        More than 8 powers of "polynomial" are hardly ever useful, and give a warning.
    grid : (float, float)
        Interval of the basis. Before learning, nearly all projected inputs lie in [-2, 2].
    metric : {"auto", "full", "diagonal", "none"}
        The map L. "full" learns directions, "diagonal" one scale per input, "none" leaves the
        standardised inputs unchanged. "auto": the one with the lowest held-out error.
    input_form : {"auto", "raw", "both", "ranks", "bins"} or a subclass of Form
        Inputs of L: standardised columns ("raw"), these and their ranks, ranks only (for columns
        with more than two values), or columns binned at quantiles, in which functions can change
        quickly. "auto": "raw", "both" or "bins", chosen together with the metric; if n_members is
        "auto" too, members on the better of the first two and members on bins are averaged. To
        write your own, see `rflaf.inputs.forms`.
    n_members : "auto" or int
        Members per form of the inputs, each learning on the rows outside one fold. "auto": 5 up to
        5,000 rows, 3 up to 10,000, then 1. A number restricts the model to one form. A single
        member is the plain model: choices are made on held-out rows, and the final v uses all rows.
    alpha : "auto" or float
        Penalty: mean loss plus alpha |v|². For squared error the loss is divided by the variance of
        the targets.
    solver : {"auto", "ridge", "cg"}
        "ridge": normal equations, with M² numbers. "cg": preconditioned conjugate gradients that
        compute features on the fly, for M of 10,000 and more, stopped by held-out rows; one member,
        no `partial_fit`. "auto": "ridge" up to 5,000 features, beyond that the cheaper one that
        fits into memory. The paper's training by Adam is `rflaf.nn.train`.
    fit_intercept : bool
        Whether the model has an intercept.
    validation_fraction : float
        With one member, the share of held-out rows; at least a hundred rows, or a third of all.
    max_iter, tol : int, float
        Maximum number of steps for learning sigma and L (0: none); n rows get at most 8 + n / 50,
        with several members 8 + n / 100. Most steps use small sketches of rows and features, the
        last ones larger sketches. Steps of one size end when 32 of them reduce the loss by less
        than the share `tol`.
    l1, smoothness : float
        Penalties on sigma's coefficients: their mean |a|, and their mean squared second difference.
    projection : {"gaussian", "orthogonal"}
        How the w_m are drawn.
    max_bytes : int or None
        Memory limit for the sample on which the activation is learned, blocks of rows, and features
        kept between passes. None: up to 200,000 rows, and a quarter of the free memory.
    warm_start : bool
        Start from the sigma, L and alpha of the last fit. Out-of-fold results are valid only if
        rows and seed are those of that fit.
    n_jobs : int or None
        Threads. None: the setting of joblib's context, or all processors. BLAS is limited to one
        thread during a fit.
    random_state : int, RandomState or None
        The same seed gives the same model on the same machine, for any number of threads.
    verbose : int
        1 shows a progress bar.
    categorical_features : "from_dtype", array-like or None
        Categorical columns of a frame. "from_dtype": those with a categorical type, and strings
        that repeat. Names, positions or a mask: these columns as well. None: no column; strings
        other than dates raise an error.
    monotonic_cst : array-like of d, dict or None
        1 for columns in which predictions must never fall, -1 for those in which they must never
        rise, 0 for others; or a dict by column name. At most eight numeric columns. The constraint
        is met by any two rows that differ in one such column only, within the range of the training
        rows (`docs/algorithm.md`). Predictions take 16 to 512 times as long.
    effort : {"fast", "default", "best"}
        Amount of work. "fast": one member per form with at most 800 features, short learning and
        trials. "best": twice as many members and features. Parameters that you set
        (`n_components`, `n_members`, `max_iter`) are kept.
    time_limit : float or None
        Seconds after which `fit` ends with the best model so far. Fits of increasing effort are
        made, up to `effort`; the first and smallest one is always finished. `left_out_` lists what
        was skipped. The result depends on the speed and the load of the machine.
    local_models : bool
        Whether small parts of the rows may have their own output weights, in addition to those for
        all rows, if that lowers the held-out error. False: one sum of features for all rows, as in
        the paper. A given `alpha` has the same effect.

    Attributes
    ----------
    members_ : list
        The members: each has `layer` (its `form` of the inputs, `activation`, `metrics`,
        `components`, `history`), `coef`, `intercept`, `weight` and `local` models. The weights sum
        to one, and the form with the largest weight comes first. Unless stated otherwise, the
        attributes below are those of the first member.
    activation_ : Activation
        The learned sigma: call it, plot it, compile it.
    output_weights_ : array, M or M × C
    intercept_ : float or array of C
    metric_ : array, d' × d' or d'
        L, for inputs in their form. A member may have several, each for a part of its features:
        `members_[0].layer.metrics`.
    metric_kind_, input_form_ : str
        What was chosen.
    components_ : array, d' × M
        L W.
    alpha_ : float
    alpha_path_, form_path_ : list of dict
        Penalties, and forms with kinds of metric, that were tried, with their held-out losses.
    history_ : list of dict
        Held-out loss, penalty and width of the sketch at each step of learning.
    n_iter_, n_samples_fit_ : int
        Number of steps of learning, and of rows read.
    grid_coverage_ : float
        Share of projected inputs inside the grid. The fit limits L so that most of them are.
    oof_prediction_ : array, n or n × C, or None
        Out-of-fold predictions, by members that were not trained on the row; NaN if all were. None
        if there are too many rows to keep.
    oof_score_ : float
        Score of `oof_prediction_`: R² for squared error, D² for other losses (one minus the loss
        relative to the best constant). `docs/estimators.md` lists the few choices that use all
        rows, such as the penalty.
    feature_importances_ : array of d
        How much predictions change when a column is shuffled, scaled to sum to one.
    feature_importances_std_ : array of d
        Standard deviation of the importances over members (at most two per team); 0 with one.
    background_ : array or None
        At most 64 encoded training rows that `explain` compares with. Set it to None before saving
        to keep them out of the file.
    effort_, left_out_ : str, list of str
        The effort of this model, and what was skipped because of `time_limit`.
    encoder_ : ColumnEncoder or None
        Encoder of the columns: see `rflaf.inputs`. None for sparse matrices and sources.
    noise_ : float or array of C
        Standard deviation of the out-of-fold errors; None for several quantiles.
    spread_ : Spread or None
        Distribution of the errors, and their scale as a function of the inputs, for `predict_dist`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from rflaf import RFLAFRegressor
    >>> X, y = make_friedman1(n_samples=1200, noise=0.1, random_state=0)
    >>> model = RFLAFRegressor(n_components=300, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.98)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseRFLAF._parameter_constraints,
        "loss": [StrOptions(set(LOSSES)), Loss],
        "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
        "power": [Interval(Real, 1, 2, closed="both")],
        "solver": [StrOptions({"auto", "ridge", "cg"})],
    }

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        loss: str | Loss = "squared_error",
        quantile: Any = 0.5,
        power: float = 1.5,
        activation: str | Basis | Activation = "rbf",
        n_basis: int = 32,
        grid: tuple[float, float] = (-2.0, 2.0),
        metric: str = "auto",
        input_form: str = "auto",
        n_members: int | str = "auto",
        alpha: float | str = "auto",
        solver: str = "auto",
        fit_intercept: bool = True,
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
        if not isinstance(self.loss, str):
            return self.loss
        given = {"quantile": {"quantile": self.quantile}, "tweedie": {"power": self.power}}
        return LOSSES[self.loss](**given.get(self.loss, {}))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn from rows X, n × d (dense or sparse), and targets y, n or n × C.

        X may be a data frame of pandas, polars, pyarrow or another library that narwhals supports,
        with numbers, booleans, categories, strings, dates and missing values (see `ColumnEncoder`).
        Arrays may contain NaN. X may also be a source of `rflaf.rows`, whose blocks include targets
        and weights. A fit that fails or is interrupted leaves the estimator as it was.

        `groups` has a label per row if rows belong together, such as those of one patient. A group
        stays in one fold, and `oof_score_`, noise and intervals are those of new groups. It needs
        at least two groups, and X in memory. With fewer than 20 rows it has no effect.

        Examples
        --------
        >>> import numpy as np
        >>> from rflaf import RFLAFRegressor
        >>> rng = np.random.default_rng(0)
        >>> patient = np.repeat(np.arange(40), 10)
        >>> X = rng.standard_normal((40, 3))[patient]  # nearly the same for all rows of a patient
        >>> X += 0.01 * rng.standard_normal(X.shape)
        >>> y = rng.standard_normal(40)[patient] + 0.1 * rng.standard_normal(400)
        >>> model = RFLAFRegressor(50, random_state=0)
        >>> bool(model.fit(X, y).oof_score_ > 0.5)  # known patients
        True
        >>> bool(model.fit(X, y, groups=patient).oof_score_ > 0.1)  # new ones: nothing to learn
        False
        """
        return super().fit(X, y, sample_weight, groups)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add rows to the model.

        The first call is a fit, so give it a few thousand rows (it warns below 100): encoding,
        standardisation, activation, metric, weights of members, out-of-fold predictions and
        importances come from it and stay. Later calls update the output weights. A call that fails
        or is interrupted uses none of its rows.
        """
        if self.solver == "cg":
            raise ValueError(f"partial_fit takes solver 'auto' or 'ridge'. Got {self.solver!r}.")
        return self._more_rows(X, y, sample_weight)

    def _attributes(self, fitted: Fit) -> dict[str, Any]:
        first, single = fitted.members[0], fitted.loss.outputs == 1 and fitted.loss.single
        oof = spread_rows(fitted.oof_scores, fitted.sample_numbers, fitted.rows_seen)
        noise = fitted.noise
        return {
            "output_weights_": first.coef[:, 0] if single else first.coef,
            "intercept_": float(first.intercept[0]) if single else first.intercept,
            "noise_": float(noise[0]) if single and noise is not None else noise,
            "spread_": fitted.spread,
            "oof_prediction_": None if oof is None else fitted.loss.predict(oof),
        }

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions; with `return_std` also the standard deviation of a new observation.

        Both are float64, or float32 if the targets of the fit were.
        """
        prediction = self._predicted(self._scores(X))  # raises if nothing is fitted
        return (prediction, self.predict_std(X)) if return_std else prediction

    def _predicted(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):
            return self.loss_.predict(scores).astype(self.dtype_, copy=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; with loss="quantile" D², averaged over the quantiles.

        D² is one minus the pinball loss relative to that of the best constant.
        """
        return self.loss_.quality(np.asarray(y), self.predict(X), sample_weight)

    def predict_dist(self, X: Any) -> Distribution:
        """The distribution of a new observation at each row of X.

        It is built from out-of-fold errors divided by a scale that depends on the row, and is as
        skewed as they are. Outside the training range it widens with the distance. For "poisson",
        "gamma" and "tweedie" it has the family that the loss implies: a negative binomial for
        counts, a gamma, or a mixture of zeros and gamma variables. A model of several quantiles has
        none.

        Examples
        --------
        >>> import numpy as np
        >>> from rflaf import RFLAFRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, (1000, 2))
        >>> y = X[:, 0] + 0.1 * np.exp(X[:, 1]) * rng.exponential(size=1000)
        >>> dist = RFLAFRegressor(100, random_state=0).fit(X, y).predict_dist([[0, -1], [0, 1]])
        >>> dist.std.shape, bool(dist.std[1] > 3 * dist.std[0])
        ((2,), True)
        >>> low, middle, high = dist.quantile([0.05, 0.5, 0.95])[1]
        >>> bool(high - middle > 2 * (middle - low))  # as skewed as the errors
        True
        """
        check_is_fitted(self)
        if self.spread_ is None:
            raise ValueError(
                "Distributions, standard deviations and intervals need one prediction per target. "
                f"Got loss={self.loss_.name!r} with {self.loss_.outputs} predictions: use these."
            )
        predictions, deviations = [], []  # of blocks of rows, n × C
        for x in self._input_blocks(X):
            scores = self._block_scores(x)
            prediction = np.asarray(self.loss_.predict(scores)).reshape(len(scores), -1)
            std = self.spread_.std(self.loss_, prediction, self.outside_.nearest(x))
            doubt = self.outside_.doubt(self.members_, x)
            if doubt is not None:
                std = np.hypot(std, self.loss_.moved(scores, doubt))
            predictions.append(prediction)
            deviations.append(std)
        known = np.concatenate(predictions), np.concatenate(deviations)
        return self.loss_.distribution(*known, self.spread_.shapes)

    def predict_std(self, X: Any) -> Array:
        """Standard deviation of a new observation at each row of X: that of `predict_dist`."""
        return self.predict_dist(X).std.astype(self.dtype_)

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of a new observation at each row of X, in the last axis; they never cross.

        Parameters
        ----------
        X : array, frame or source, n rows
        quantiles : array of k
            Levels between 0 and 1.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from rflaf import RFLAFRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = RFLAFRegressor(50, n_members=3, random_state=0).fit(X, y)
        >>> model.predict_quantiles(X[:4], [0.1, 0.9]).shape
        (4, 2)
        """
        return self.predict_dist(X).quantile(np.atleast_1d(quantiles)).astype(self.dtype_)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Ends of intervals that contain a share `coverage` of new observations.

        They are quantiles of `predict_dist`, with equal probability below and above.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from rflaf import RFLAFRegressor
        >>> X, y = make_friedman1(1500, noise=1.0, random_state=0)
        >>> model = RFLAFRegressor(200, random_state=0).fit(X[:1000], y[:1000])
        >>> low, high = model.predict_interval(X[1000:], coverage=0.8)
        >>> bool(0.7 < ((low < y[1000:]) & (y[1000:] < high)).mean() < 0.9)
        True
        """
        low, high = self.predict_dist(X).interval(coverage)
        return low.astype(self.dtype_), high.astype(self.dtype_)
