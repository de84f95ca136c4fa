"""What the regressor and the classifier share: parameters, inputs, learning, inspection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import FIXED_ACTIVATIONS, LEARNABLE_BASES, Basis, get_basis
from rflaf.estimators.adam import train_with_adam
from rflaf.estimators.inspection import InspectionMixin
from rflaf.estimators.progress import Progress
from rflaf.estimators.reading import ReadingMixin
from rflaf.estimators.scaling import column_moments, standardise
from rflaf.projection import PROJECTIONS, draw
from rflaf.solvers.starts import FILL, Learned, start_on_few_rows
from rflaf.solvers.varpro import apply_metric, choose_metric, learn_activation

Array = NDArray[Any]

FEW_ROWS = 100  # below this nothing can be held out, and the activation is not learned


class BaseRFLAF(ReadingMixin, InspectionMixin, BaseEstimator):
    """Common part of RFLAFRegressor and RFLAFClassifier."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({*LEARNABLE_BASES, *FIXED_ACTIVATIONS}), Basis, Activation],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "grid": [tuple, list],
        "metric": [StrOptions({"auto", "full", "diagonal", "none"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "projection": [StrOptions(set(PROJECTIONS))],
        "memory": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
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
        self.n_components = n_components
        self.activation = activation
        self.n_basis = n_basis
        self.grid = grid
        self.metric = metric
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.l1 = l1
        self.smoothness = smoothness
        self.projection = projection
        self.memory = memory
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    _metric_kind: Any  # of the last fit

    def _check_weights(self, sample_weight: Any, X: Any) -> Array:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if weights.sum() <= 0:
            raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")
        return weights

    def _learn(self, X: Any, targets: Array, weights: Array) -> tuple[Any, np.random.Generator]:
        """Standardise, draw W, learn activation and metric; sets the fitted attributes of these.

        Returns the standardised inputs, and the generator for what is drawn later.
        """
        few = np.count_nonzero(weights) < FEW_ROWS
        dtype = np.float64 if few and X.dtype == np.float64 else np.float32
        x, w, rng = self._prepare(X, weights, dtype)
        basis, given = self._resolve_basis()
        learned = self._learn_on(x, targets.astype(dtype), weights, w, basis, given, rng)
        self._start_alpha, self._start_rows = learned.alpha, np.count_nonzero(weights)
        self._set_learned(x, w, basis, learned.coefficients, learned.metric, learned.history, rng)
        return x, rng

    def _learn_on(
        self,
        x: Any,
        y: Array,
        weights: Array,
        projection: Array,
        basis: Basis,
        given: Array | None,
        rng: np.random.Generator,
    ) -> Learned:
        """Activation, metric and penalty, on standardised rows, by what their number allows."""
        kinds = metric_kinds(self.metric, *x.shape)
        old = self._previous(basis, given, kinds, x.shape[1]) if self.warm_start else None
        kind: Any = kinds[-1] if old is None else self._metric_kind
        self._metric_kind = kind
        if not self.max_iter:
            return self._start_without_learning(basis, given, x.shape[1])
        settings: dict[str, Any] = {
            "projection": projection,
            "weights": weights,
            "coefficients": given,
            "alpha": None if self.alpha == "auto" else float(self.alpha),
            "scales": self.scale_,
            "fit_intercept": self.fit_intercept,
        }
        if np.count_nonzero(weights) < FEW_ROWS:
            return start_on_few_rows(x, y, basis, metric=kind, **settings)
        frozen = not basis.learnable or given is not None
        if frozen and kinds == ["none"]:
            return self._start_without_learning(basis, given, x.shape[1])
        settings |= {"rng": rng, "l1": self.l1, "smoothness": self.smoothness, "tol": self.tol}
        several = old is None and len(kinds) > 1  # half of the steps then say which is best
        trial, steps = (
            ((self.max_iter + 1) // 2, self.max_iter // 2) if several else (0, self.max_iter)
        )
        total = len(kinds) * trial + steps
        with Progress("learning the activation", total, self.verbose) as progress:
            settings["callback"] = progress.step
            if several:
                kind, old = choose_metric(kinds, x, y, basis, max_iter=trial, **settings)
                self._metric_kind = kind
            settings["max_iter"] = steps
            found = learn_activation(x, y, basis, metric=kind, start=old, **settings)
        before = old.history if several and old is not None else []
        return replace(found, history=[*before, *found.history])

    def _train_with_adam(self, X: Any, y: Array, weights: Array, task: str) -> Array:
        """Activation and output weights by the paper's training; returns the weights, M × C."""
        x, w, rng = self._prepare(X, weights, np.float32)
        basis, given = self._resolve_basis()
        self._metric_kind = "none"
        start = self._start_without_learning(basis, given, X.shape[1])
        coefficients, v, history = train_with_adam(
            x,
            y,
            apply_metric(start.metric, w).astype(np.float32),
            basis,
            task=task,
            weights=weights,
            epochs=self.max_iter,
            validation_fraction=self.validation_fraction,
            seed=int(rng.integers(2**31)),
            verbose=self.verbose,
        )
        self._set_learned(x, w, basis, coefficients, start.metric, history, rng)
        self.alpha_ = 0.0
        self.alpha_path_: list[Any] = []
        return v

    def _prepare(
        self, X: Any, weights: Array, dtype: Any
    ) -> tuple[Any, Array, np.random.Generator]:
        """Standardised inputs, W, and the generator for what is drawn later."""
        rng = np.random.default_rng(self._seed)
        self.mean_, self.scale_ = column_moments(X, weights)
        x = standardise(X, self.mean_, self.scale_, dtype)
        return x, draw(self.projection, X.shape[1], self.n_components, rng, dtype), rng

    def _set_learned(
        self,
        x: Any,
        w: Array,
        basis: Basis,
        coefficients: Array,
        metric: Array,
        history: list[Any],
        rng: np.random.Generator,
    ) -> None:
        self.activation_ = Activation(basis, coefficients)
        self.metric_ = metric
        self.projection_ = w
        self.components_ = apply_metric(metric, w).astype(w.dtype)
        self.history_ = history
        self.n_iter_ = max(len(history), 1)  # the last solve counts where nothing is learned
        self._table: fused.Sigma | None = None
        self._measure_coverage(x, rng)

    def _rescale_metric(self, scale: float, x: Any) -> None:
        """Multiply the metric; `x` are standardised inputs."""
        if scale == 1:
            return
        self.metric_ = scale * self.metric_
        dtype = self.components_.dtype
        self.components_ = (scale * self.components_).astype(dtype)  # as the solver had it
        self._measure_coverage(x, np.random.default_rng(self._seed))

    def _resolve_basis(self) -> tuple[Basis, Array | None]:
        """The basis, and coefficients where they are given and not to be learned."""
        if isinstance(self.activation, Activation):
            return self.activation.basis, self.activation.coefficients
        if len(self.grid) != 2:
            raise ValueError(f"'grid' must be (low, high). Got {self.grid!r}.")
        basis = get_basis(self.activation, self.n_basis, (self.grid[0], self.grid[1]))
        return basis, None if basis.learnable else np.ones(1)

    def _start_without_learning(self, basis: Basis, given: Array | None, d: int) -> Learned:
        if given is None:
            given = basis.fit(lambda z: np.cos(2.2 * z) + np.sin(2.2 * z), ridge=1e-8)
        return Learned(given, np.full(d, FILL / np.sqrt(max(d, 1))), 1e-3)

    def _previous(
        self, basis: Basis, given: Array | None, kinds: list[Any], d: int
    ) -> Learned | None:
        """What the last fit learned, where it is of a kind that is possible now."""
        if not hasattr(self, "activation_") or self.activation_.basis != basis:
            return None
        if given is not None and not np.array_equal(given, self.activation_.coefficients):
            return None
        if not self.history_ or self._metric_kind not in kinds or len(self.metric_) != d:
            return None
        return Learned(self.activation_.coefficients, self.metric_, self.alpha_)

    def _sigma(self) -> fused.Sigma:
        """The compiled activation, made when it is first needed."""
        table: fused.Sigma | None = getattr(self, "_table", None)
        if table is None:
            table = self._table = self.activation_.table()
        return table

    def _scores(self, X: Any) -> Array:
        """Phi V + intercept, n × C, block by block, in the precision of X."""
        return np.concatenate([self._block_scores(x) for x in self._input_blocks(X)])

    def _block_scores(self, X: Any) -> Array:
        unit = getattr(self, "_y_scale", 1.0)  # float32 need not hold the target's units
        v = self.coef_.reshape(self.coef_.shape[0], -1) / unit
        with np.errstate(over="ignore", invalid="ignore"):
            out = fused.predict_inputs(self._sigma(), self._standardised(X), self.components_, v)
        if not np.isfinite(out).all():
            raise ValueError(
                f"The activation {self.activation_.basis!r} overflows on some rows of X, which lie "
                "too far from those of the fit. Take another 'activation', such as 'chebyshev'."
            )
        scores = np.asarray(out, np.float64) * unit + self.intercept_
        return scores.astype(X.dtype, copy=False)

    def predict_blocks(self, X: Any) -> Iterator[Array]:
        """The predictions for a source or an array, in order, a block of rows at a time.

        For more rows than there is room for predictions. The blocks are not those of the source;
        together they are what `predict` returns.
        """
        for x in self._input_blocks(X):
            yield self._decide(self._block_scores(x))

    def _decide(self, scores: Array) -> Array:
        """What is predicted, for the scores of some rows."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_table", None)  # compiled anew after loading
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags


def quiet_blas(n: int, m: int) -> Any:
    """One BLAS thread for small problems, where handing work around costs more than it saves."""
    return threadpool_limits(limits=1 if n * m <= 4_000_000 else None, user_api="blas")


def metric_kinds(metric: str, n: int, d: int) -> list[Any]:
    """What "auto" may mean: the kinds that n rows can tell, the one with most unknowns last.

    A full metric has d² unknowns, and is worth far more than a diagonal one where there are rows
    enough to learn it. Between too few rows and enough the rows themselves have to say.
    """
    if metric != "auto":
        return [metric]
    kinds = ["none"]
    if d <= 256 and 10 * d <= n:
        kinds = ["diagonal"] if 25 * d <= n else ["none", "diagonal"]
    if d <= 64 and 4 * d * d <= n:
        kinds = ["full"] if 25 * d * d <= n else [*kinds, "full"]
    return kinds
