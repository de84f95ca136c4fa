"""RFLAFRegressor."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.distributions import Distribution
from rflaf.estimators.base import Array, BaseRFLAF
from rflaf.estimators.validation import spread_rows
from rflaf.fitting import Fit
from rflaf.fitting.spread import Spread
from rflaf.losses import LOSSES, Loss


class RFLAFRegressor(MultiOutputMixin, RegressorMixin, BaseRFLAF):
    """Random feature regression that learns its activation function. No tuning needed.

    f(x) = sum_m v_m sigma(w_m · L x) + intercept. The w_m are drawn at random and stay as they are.
    sigma, a linear map L of the inputs and the penalty are learned by the held-out error of the
    ridge solution v, which is exact. Rows are split into folds before anything is learned. Several
    members each learn on the rows outside a fold; their errors on the folds choose the forms of the
    inputs, the kind of L, the penalty and the members' weights. The prediction is the weighted mean
    of the members.

    Parameters
    ----------
    n_components : "auto" or int
        Random features, M, of each member. "auto": 500 up to 2,000 rows, 1,000 up to 10,000, 2,000
        up to 30,000, then 3,000.
    loss : str or Loss
        What is minimised. "squared_error" predicts means; "huber" means that outliers hardly move;
        "absolute_error" medians; "quantile" those of `quantile`; "poisson", "tweedie" and "gamma"
        means of targets that are not negative (gamma: positive), as exponentials of the model.
        A loss of one's own is described in `rflaf.losses`.
    quantile : float or list of floats
        With loss="quantile", which ones to predict, between 0 and 1. An increasing list gives a
        column for each, and these never cross.
    power : float
        With loss="tweedie", the variance is proportional to the mean to this power: 1 is Poisson, 2
        gamma.
    activation : str, Basis or Activation
        A basis to learn in ("rbf", "bspline", "chebyshev", "polynomial", or a Basis), a fixed
        activation ("relu", "cos", "tanh", ...), or an Activation to use as it is. Even ones ("cos",
        "gaussian") are given a phase by their name, without which a model is even in X W and learns
        nothing of odd functions; `rflaf.bases.Fixed("cos")` has none.
    n_basis : int
        Basis functions, N, where `activation` is a name. The cost does not depend on it.
    grid : (float, float)
        Where the basis lives. Projected inputs start with nearly all of them inside [-2, 2].
    metric : {"auto", "full", "diagonal", "none"}
        The map L. "full" finds directions, "diagonal" gives each input a scale, "none" leaves the
        standardised inputs unchanged. "auto": whichever predicts held-out rows best.
    input_form : {"auto", "raw", "both", "ranks", "bins"} or a subclass of Form
        The inputs that L maps: standardised columns ("raw"), these and their ranks side by side,
        ranks where a column has several values, or such columns cut into bins at their quantiles,
        where functions may change fast. "auto": "raw", "both" or "bins", chosen with the metric;
        with n_members="auto" too, members in the better of the first two and members in bins are
        mixed. A class of one's own is described in `rflaf.inputs.forms`.
    n_members : "auto" or int
        Models that each learn on the rows outside a fold, in each form of the inputs that is used.
        "auto": 5 up to 5,000 rows, 3 up to 10,000, then 1. A number keeps to one form of the
        inputs. A single member is the plain model: some rows are kept aside to choose by, and the
        final v uses all rows.
    alpha : "auto" or float
        Penalty: the mean loss plus alpha |v|², for squared error of targets in units of their
        variance.
    solver : {"auto", "ridge", "cg"}
        "ridge": as above, v exactly, by normal equations, which take M² numbers. "cg": v by
        preconditioned conjugate gradients with features computed on the fly, for M of 10,000 and
        more; held-out rows decide when to stop. It has one member and no `partial_fit`.
        "auto": "ridge" up to 5,000 features, beyond that whichever is cheaper and fits the memory.
        The paper's own training by Adam is `rflaf.nn.train`.
    fit_intercept : bool
        Whether the model has an intercept.
    validation_fraction : float
        With one member, the share of rows kept aside to choose by; at least a hundred rows, or a
        third of all.
    max_iter, tol : int, float
        Largest number of steps for learning sigma and L (0: none); n rows get at most 8 + n / 50,
        with several members 8 + n / 100. Most steps use small sketches of the rows and features,
        the last ones larger ones. Those of one size end when 32 of them gain less than `tol`,
        relatively.
    l1, smoothness : float
        Penalties on sigma's coefficients: their mean |a|, and their mean squared second difference.
    projection : {"gaussian", "orthogonal"}
        How the w_m are drawn.
    max_bytes : int or None
        Bytes that a fit may take for what it chooses to hold: the sample that the activation is
        learned on, blocks of rows, features between passes. None: as many rows as are worth it
        (200,000 at most), and a quarter of what is free.
    warm_start : bool
        Start learning from the sigma, L and alpha of the last fit. Out-of-fold figures are honest
        then only if rows and seed are those of that fit.
    n_jobs : int or None
        Threads. None: what joblib's context says, or all processors. BLAS keeps to one thread
        during a fit, and has its setting back afterwards.
    random_state : int, RandomState or None
        The same seed gives the same model on the same machine, whatever the number of threads.
    verbose : int
        1 shows a progress bar.
    categorical_features : "from_dtype", array-like or None
        Which columns of a frame are categories. "from_dtype": those of a type for categories, and
        strings that repeat. Names, numbers or a mask of columns: these as well, whatever they
        hold. None: no column; strings that are no dates are refused.
    monotonic_cst : array-like of d, dict or None
        1 for columns in which predictions never fall, -1 for those in which they never rise, 0 for
        others; or a dict of such numbers by column names. At most eight columns of numbers. It
        holds between any two rows that differ in such a column alone, inside the range of the
        training rows; `docs/algorithm.md` says how. A prediction takes 16 to 512 times as long.
    effort : {"fast", "default", "best"}
        How much work a fit does. "fast": one member per form, with at most 800 features, and short
        learning and trials. "best": twice as many members, and twice as many features. Numbers that
        are given (`n_components`, `n_members`, `max_iter`) are kept.
    time_limit : float or None
        Seconds after which `fit` ends with the best that it has; the smallest fit is always made.
        It fits with little effort first, and with more while there is time, up to `effort`. What
        it left out is in `left_out_`. The result depends on the machine and what else runs there.
    local_models : bool
        Whether small parts of the rows may have output weights of their own, on top of those for
        all rows. Rows that they have not seen decide how much, or that nothing is gained. False:
        the model of the paper alone, one sum of features for all rows.

    Attributes
    ----------
    members_ : list
        The members: each has `layer` (its `form` of the inputs, `activation`, `metric`,
        `components`, `history`), `coef`, `intercept`, `weight` and `local` models. The weights sum
        to one, and the form with the largest part comes first. The attributes below are those of
        the first member unless they say otherwise.
    activation_ : Activation
        The learned sigma: call it, plot it, compile it.
    output_weights_ : array, M or M × C
    intercept_ : float or array of C
    metric_ : array, d' × d' or d'
        L, for inputs in their form.
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
        Steps of learning, and rows that were read.
    grid_coverage_ : float
        Share of the projected inputs inside the grid; L is kept small enough for most of them.
    oof_prediction_ : array, n or n × C, or None
        For each row the weighted prediction of those members that have not seen it (NaN: all
        have). None where the rows are too many to keep.
    oof_score_ : float
        Their score: R² for squared error, D², the share of the constant's loss that is gone, for
        others. These rows have chosen the form of the inputs, the penalty and the weights of the
        teams, and nothing else of what predicts them.
    feature_importances_ : array of d
        How far predictions move when an input is shuffled, summing to one; for a column that became
        several inputs, their sum.
    feature_importances_std_ : array of d
        Standard deviation of the importances between members, of which two per team are asked; 0
        with one member.
    background_ : array or None
        At most 64 rows of the fit, encoded, that `explain` compares others with. Set it to None
        before saving to leave them out of the file.
    effort_, left_out_ : str, list of str
        The effort that the model comes from, and what there was no time for with `time_limit`.
    encoder_ : ColumnEncoder or None
        What became of the columns: see `rflaf.inputs`. None for sparse matrices and sources.
    noise_ : float or array of C
        Standard deviation of the target about predictions of rows that were not learned from; None
        for several quantiles.
    spread_ : Spread or None
        The distribution of errors and its scale as a function of the inputs, for `predict_dist`.

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

        X may be a frame of pandas, polars, pyarrow or another library that narwhals knows, with
        numbers, booleans, categories, strings, dates and missing values; see `ColumnEncoder` for
        what becomes of them. Arrays may have NaN.

        X may also be a source of `rflaf.rows`, whose blocks have the targets and weights; it is
        read twice, and never held whole. A fit that fails or is interrupted leaves the estimator
        as it was.

        `groups` has a label for each row, where rows belong together, as those of one patient do:
        a group stays in one fold. What is chosen suits new groups then, and `oof_score_`, noise
        and intervals are those of rows of new groups. It takes two groups, and X in memory. Below
        20 rows nothing is held out, and groups change nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from rflaf import RFLAFRegressor
        >>> rng = np.random.default_rng(0)
        >>> patient = np.repeat(np.arange(40), 10)
        >>> X = rng.standard_normal((40, 3))[patient]  # nearly the same in all rows of a patient
        >>> X += 0.01 * rng.standard_normal(X.shape)
        >>> y = rng.standard_normal(40)[patient] + 0.1 * rng.standard_normal(400)
        >>> model = RFLAFRegressor(50, random_state=0)
        >>> bool(model.fit(X, y).oof_score_ > 0.5)  # patients that it knows
        True
        >>> bool(model.fit(X, y, groups=patient).oof_score_ > 0.1)  # there is nothing to learn
        False
        """
        return super().fit(X, y, sample_weight, groups)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add rows to the model.

        The first call is a fit: standardisation, activation and metric come from its rows and stay
        from then on, as does what becomes of the columns of a frame, so give it a few thousand
        (below 100 there is a warning). Later calls add their rows to the sums, and the output
        weights are those of all rows so far. Weights of members, out-of-fold predictions and
        importances stay those of the first call; there is no linear member. A call that fails or
        is interrupted counts none of its rows.
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
        prediction = self._predicted(self._scores(X))  # it says so where nothing is fitted
        return (prediction, self.predict_std(X)) if return_std else prediction

    def _predicted(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):
            return self.loss_.predict(scores).astype(self.dtype_, copy=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; with loss="quantile" D², the mean over the quantiles.

        D² is the share of the pinball loss of the best constant that is gone.
        """
        return self.loss_.quality(np.asarray(y), self.predict(X), sample_weight)

    def predict_dist(self, X: Any) -> Distribution:
        """The distribution of a new observation at each row of X.

        It comes from errors on rows that were not learned from, divided by a scale that depends on
        the row: skewed where errors are. Beyond the rows of the fit it widens with the distance.
        For "poisson", "gamma" and "tweedie" it is of the family that the loss implies, with the
        dispersion of such rows: a negative binomial for counts, a gamma, or zeros and positive
        numbers. There is none for several quantiles at once.

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
                f"Got loss={self.loss_.name!r} with {self.loss_.outputs} predictions: take these."
            )
        blocks = [self._located(self.spread_, x) for x in self._input_blocks(X)]
        prediction, std = (np.concatenate(parts) for parts in zip(*blocks))
        return self.loss_.distribution(prediction, std, self.spread_.shapes)

    def _located(self, spread: Spread, x: Any) -> tuple[Array, Array]:
        """Predictions and standard deviations of some rows, n × C."""
        scores = self._block_scores(x)
        prediction = np.asarray(self.loss_.predict(scores)).reshape(len(scores), -1)
        std = spread.std(self.loss_, prediction, self.outside_.nearest(x))
        doubt = self.outside_.doubt(self.members_, x)
        if doubt is not None:
            std = np.hypot(std, self.loss_.moved(scores, doubt))
        return prediction, std

    def predict_std(self, X: Any) -> Array:
        """The standard deviation of a new observation at each row of X: that of `predict_dist`."""
        return self.predict_dist(X).std.astype(self.dtype_)

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of a new observation at each row of X, in a last dimension; they never cross.

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
        """The ends of intervals that hold a share `coverage` of new observations.

        They are quantiles of `predict_dist`, with as much probability below as above.

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
