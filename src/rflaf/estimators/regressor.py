"""RFLAFRegressor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rflaf.data import Source
from rflaf.estimators.base import FEW_ROWS, Array, BaseRFLAF, quiet_blas
from rflaf.estimators.inspection import caller_level
from rflaf.estimators.reading import is_streamed
from rflaf.estimators.rows import ArrayRows
from rflaf.estimators.sample import Sample, fold_cuts, fold_numbers
from rflaf.estimators.wide import solve_wide, takes_cg, wide_block_rows
from rflaf.solvers.ridge import (
    NormalEquations,
    cholesky_with_floor,
    choose_alpha,
    gcv_losses,
)
from rflaf.solvers.varpro import features

FOLDED_ROWS = 3000  # up to so many rows, alpha is chosen by cross-validation,
N_FOLDS = 5  # because a tenth of them says too little
_MOST_HELD = 200_000  # rows that say when conjugate gradients stop
_EXACT = 4_000_000  # up to so many features in all, their products are taken in float64
_POSTERIOR_WIDTH = 5000  # up to so many features the posterior is kept for return_std


class RFLAFRegressor(MultiOutputMixin, RegressorMixin, BaseRFLAF):
    """Random feature regression that learns its activation function. No tuning needed.

    f(x) = sum_m v_m sigma(w_m · L x) + intercept. The w_m are random and stay as drawn; sigma, a
    linear map L of the standardised inputs and the penalty are learned through the held-out error
    of the exact ridge solution; v is solved for exactly, on all rows, at the end.

    Parameters
    ----------
    n_components : int
        Random features, M.
    activation : str, Basis or Activation
        A basis to learn in ("rbf", "bspline", "chebyshev", "polynomial", or a Basis), a fixed
        activation ("relu", "cos", "tanh", ...), or an Activation to use as it is.
    n_basis : int
        Basis functions, N, where `activation` is a name. The cost does not depend on it.
    grid : (float, float)
        Where the basis lives. Projected inputs start with nearly all of them inside [-2, 2].
    metric : {"auto", "full", "diagonal", "none"}
        The map L. "full" finds directions, "diagonal" gives each input a scale, "none" leaves the
        standardised inputs as they are. "auto" takes what the number of rows allows.
    alpha : "auto" or float
        Penalty: mean squared error of the target in units of its variance, plus alpha |v|².
    solver : {"auto", "ridge", "cg", "adam"}
        "ridge": as above, v exactly, by normal equations, which take M² numbers. "cg": v by
        preconditioned conjugate gradients with features computed on the fly, for M of 10,000 and
        more; the held-out rows say when to stop, and there is no `return_std` or `partial_fit`.
        "auto": "ridge" up to 5,000 features, beyond that whichever is cheaper and fits the memory.
        "adam": the paper's training of sigma and v on mini-batches (needs PyTorch; no weights, no
        metric, `max_iter` counts epochs, 30 at most).
    fit_intercept : bool
    validation_fraction : float
        Share of the rows that choose `alpha` for the last solve, which then uses all rows. Up to
        3,000 rows it is cross-validation that chooses (for classes: a hundred rows at least, or a
        third of all).
    max_iter, tol : int, float
        Steps for learning sigma and L (0: none), and the least relative gain of a stage of them.
    l1, smoothness : float
        Penalties on sigma's coefficients: their mean |a|, and their mean squared second difference.
    projection : {"gaussian", "orthogonal"}
        How the w_m are drawn.
    memory : int or None
        Bytes that a fit may take for what it chooses to hold: the sample that the activation is
        learned on, blocks of rows, features between passes. None: as many rows as are worth it
        (200,000 at most), and a quarter of what is free.
    warm_start : bool
        Start learning from the sigma, L and alpha of the last fit.
    random_state : int, RandomState or None
        The same seed gives the same model on the same machine with the same number of BLAS
        threads. (The kernels' own threads change nothing; those of BLAS change its rounding, which
        the steps of learning amplify.)
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    activation_ : Activation
        The learned sigma: call it, plot it, compile it.
    coef_ : array, M or M × C
    intercept_ : float or array of C
    metric_ : array, d × d or d
        L, for standardised inputs.
    alpha_ : float
    history_ : list of dict
        Held-out loss, penalty and width of the sketch at each step.
    n_iter_ : int
    grid_coverage_ : float
        Share of the projected inputs inside the grid.
    feature_importances_ : array of d
    noise_ : float or array of C
        Estimated standard deviation of the target's noise.

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
        "solver": [StrOptions({"auto", "ridge", "cg", "adam"})],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RFLAFRegressor:
        """Learn from rows X, n × d (dense or sparse), and targets y, n or n × C.

        X may also be a source of `rflaf.data`, whose blocks have the targets and weights; it is
        read twice, and never held whole.
        """
        with self._unfitted_on_error(is_streamed(X)):
            return self._fit(X, y, sample_weight, keep_sums=False)

    def _fit(self, X: Any, y: Any, sample_weight: Any, keep_sums: bool) -> RFLAFRegressor:
        self.__dict__.pop("_folds", None)  # sums of another model
        rows = self._open(X, y, sample_weight)
        self._begin(gram=keep_sums or self.solver not in ("auto", "cg"))
        sample = self._draw_sample(rows)
        if self.solver == "adam":
            assert isinstance(rows, ArrayRows)
            return self._fit_adam(rows)
        with quiet_blas(sample.used, self.n_components):
            wide = not keep_sums and takes_cg(
                self.solver, sample.used, self.n_components, self.memory
            )
            x, scaled = self._learn_from(sample, wide)
            if wide and sample.whole:
                return self._fit_wide(lambda: _slices(x, scaled, sample, len(scaled)), x)
            if wide:
                d, m = self.components_.shape
                size = wide_block_rows(m, d, self.memory)
                return self._fit_wide(
                    lambda: self._blocks_again(rows, self._scale_targets, size), x
                )
            if sample.whole:
                blocks = _slices(x, scaled, sample, self._block_rows(sample))
            else:
                blocks = self._blocks_again(rows, self._scale_targets)
            self._folds = self._sum_folds(blocks, sample.used, scaled.shape[1])
            self._solve()
        if not keep_sums:
            del self._folds
        return self

    def _fit_wide(self, blocks: Callable[[], Iterable[Any]], x: Any) -> RFLAFRegressor:
        solution = solve_wide(self, blocks, self._cuts, self._start_alpha)
        self._rescale_metric(solution.scale, x)
        self.alpha_, self.alpha_path_ = solution.alpha, solution.path
        self._posterior: Array | None = None
        best = min(solution.path, key=lambda record: float(record["loss"]))
        noise = np.sqrt(best["losses"]) * self._y_scale
        coef, intercept = solution.coef * self._y_scale, solution.intercept * self._y_scale
        intercept = intercept + self._y_mean
        self.noise_ = float(noise[0]) if self._single_target else noise
        self.coef_ = coef[:, 0] if self._single_target else coef
        self.intercept_ = float(intercept[0]) if self._single_target else intercept
        return self

    def _learn_from(self, sample: Sample, wide: bool = False) -> tuple[Any, Array]:
        """All but the output weights; returns the sample's inputs and targets, standardised."""
        self._measure_targets(sample.y.reshape(len(sample.y), -1), sample.weights)
        scaled, _ = self._scale_targets(sample.y, sample.weights)
        x, _ = self._learn(sample.x, scaled, sample.weights)
        self._rows_seen, self._cuts = sample.seen, sample.keys[:0]
        if self.alpha == "auto" and sample.used >= FEW_ROWS:
            held = self.validation_fraction
            if wide:  # conjugate gradients hold the errors of these rows in memory
                held = min(held, _MOST_HELD / sample.used)
            few = sample.used <= FOLDED_ROWS and not wide
            shares = [1 / N_FOLDS] * N_FOLDS if few else [1 - held, held]
            self._cuts = fold_cuts(sample.keys, shares)
        return x, scaled

    def _measure_targets(self, targets: Array, weights: Array) -> None:
        share = weights / weights.sum()
        self._y_mean = share @ targets
        spread = np.sqrt(share @ (targets - self._y_mean) ** 2)
        varies = np.ptp(targets, axis=0) > 0
        self._y_mean = np.where(varies, self._y_mean, targets[0])
        self._y_scale = np.where(varies & (spread > 0), spread, 1.0)
        if not self.fit_intercept:
            self._y_mean = np.zeros_like(self._y_mean)

    def _scale_targets(self, targets: Array, weights: Array) -> tuple[Array, Array]:
        return (targets.reshape(len(targets), -1) - self._y_mean) / self._y_scale, weights

    def _fit_adam(self, rows: ArrayRows) -> RFLAFRegressor:
        used = rows.weights > 0
        self._measure_targets(rows.y.reshape(rows.count, -1)[used], rows.weights[used])
        scaled, _ = self._scale_targets(rows.y, rows.weights)
        targets = scaled[:, 0] if self._single_target else scaled
        v = self._train_with_adam(rows.x, targets, rows.weights, "regression")
        self._posterior = None
        self.noise_ = float("nan")
        coef = v * self._y_scale
        self.coef_ = coef[:, 0] if self._single_target else coef
        self.intercept_ = float(self._y_mean[0]) if self._single_target else self._y_mean
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RFLAFRegressor:
        """Add rows to the model.

        The first call is a fit: standardisation, activation and metric come from its rows and stay
        from then on, so give it a few thousand. Later calls add their rows to the sums, and the
        output weights are those of all rows so far.
        """
        if self.solver in ("adam", "cg"):
            raise ValueError(f"partial_fit needs solver 'auto' or 'ridge'. Got {self.solver!r}.")
        if isinstance(X, Source):
            raise TypeError("partial_fit takes arrays. Got a source, which 'fit' reads in blocks.")
        if not hasattr(self, "_folds"):
            if hasattr(self, "coef_"):
                warnings.warn(
                    "partial_fit begins a new model: this one comes from fit, which does not keep "
                    "the sums over its rows.",
                    UserWarning,
                    stacklevel=caller_level(),
                )
            return self._fit(X, y, sample_weight, keep_sums=True)
        if self.n_components != self.components_.shape[1]:
            raise ValueError(
                f"'n_components' was {self.components_.shape[1]} in the first call of partial_fit, "
                f"and cannot change. Got {self.n_components}."
            )
        X, targets, weights = self._check_rows(X, y, sample_weight, reset=False)
        columns = targets[:1].size
        if columns != self._y_mean.size:
            raise ValueError(
                f"'y' must have {self._y_mean.size} targets, as in the first call. Got {columns}."
            )
        blocks = self._blocks_again(
            ArrayRows(X, targets, weights, self._rows_seen), self._scale_targets
        )
        new = self._sum_folds(blocks, len(targets), columns)
        self._folds = [old + more for old, more in zip(self._folds, new)]
        self._rows_seen += len(targets)
        self._solve()
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions of X's precision; with `return_std` also the standard deviation of each.

        The deviation is that of a new observation: noise, and what the weights do not know.
        """
        prediction = self._decide(self._scores(X))
        if not return_std:
            return prediction
        return prediction, self._deviation(X)

    def _deviation(self, X: Any) -> Array:
        std = self._standard_deviation(X)
        return std[:, 0] if self._single_target else std

    def _decide(self, scores: Array) -> Array:
        return scores[:, 0] if self._single_target else scores

    def _check_rows(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Array, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
        )
        if reset:
            self._single_target = y.ndim == 1
        return X, np.asarray(y, np.float64), self._check_weights(sample_weight, X)

    def _check_targets(self, y: Any) -> Array:
        targets = check_array(
            y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y"
        )
        self._single_target = targets.ndim == 1
        return targets

    def _sum_folds(
        self, blocks: Iterable[tuple[Any, Array, Array, Array]], n: int, outputs: int
    ) -> list[NormalEquations]:
        """The sums over the rows of each fold; of two, the second is the validation part."""
        m = self.n_components
        sums = [NormalEquations.empty(m, outputs) for _ in range(len(self._cuts) + 1)]
        for x, y, weights, keys in blocks:
            fold = fold_numbers(self._cuts, keys)
            for k in np.unique(fold):
                at = slice(None) if len(sums) == 1 else np.flatnonzero(fold == k)
                _, phi = features(self._sigma(), x[at], self.components_)
                if n * m <= _EXACT:
                    phi = phi.astype(np.float64)
                plain = bool((weights[at] == 1).all())
                sums[k].add(phi, y[at].astype(phi.dtype), None if plain else weights[at])
        return sums

    def _pairs(self, everything: NormalEquations) -> list[tuple[NormalEquations, NormalEquations]]:
        """Sums to fit to and to judge by: one pair, or one a fold."""
        if len(self._folds) == 2:
            pairs = [(self._folds[0], self._folds[1])]
        else:
            pairs = [(everything - held, held) for held in self._folds]
        return [(fit, held) for fit, held in pairs if fit.rows and held.rows]

    def _solve(self) -> None:
        """Choose the penalty, solve on all rows, set the fitted attributes."""
        path: list[Any] = []
        everything = sum(self._folds[1:], self._folds[0])
        if self.alpha != "auto":
            alpha = float(self.alpha)
        elif len(self._folds) > 1:
            pairs = self._pairs(everything)
            alpha, path = choose_alpha(pairs, self._start_alpha, fit_intercept=self.fit_intercept)
        elif everything.rows == self._start_rows and self.max_iter:
            alpha = self._start_alpha  # chosen with the activation, on these few rows
        else:
            size = np.trace(everything.gram) / everything.weight / self.n_components
            alphas = size * 10.0 ** np.arange(-6, 2.5, 0.5)
            losses = gcv_losses(everything, alphas, self.fit_intercept)
            alpha = float(alphas[losses.argmin()])
            path = [{"alpha": float(a), "loss": float(q)} for a, q in zip(alphas, losses)]
        weights = everything.solve(alpha, self.fit_intercept)
        coef, intercept = weights[:-1] * self._y_scale, weights[-1] * self._y_scale
        intercept = intercept + self._y_mean if self.fit_intercept else np.zeros_like(intercept)
        self.alpha_, self.alpha_path_ = alpha, path
        self.coef_ = coef[:, 0] if self._single_target else coef
        self.intercept_ = float(intercept[0]) if self._single_target else intercept
        self._set_posterior(everything, weights, alpha)

    def _set_posterior(self, sums: NormalEquations, weights: Array, alpha: float) -> None:
        """Noise by the residual over the degrees of freedom left, and the weights' covariance."""
        matrix = sums.penalised(alpha, self.fit_intercept)
        count = max(sums.weight, sums.rows)
        self._posterior = None
        degrees = min(sums.gram.shape[0], count / 2)
        if self.n_components <= _POSTERIOR_WIDTH:
            factor = cholesky_with_floor(matrix)
            inverse = linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
            # trace of (gram / weight) (gram / weight + alpha)^-1
            gram = sums.gram / sums.weight
            degrees = float(np.einsum("ij,ij->", inverse @ gram, inverse))
            self._posterior = (inverse / np.sqrt(count)).astype(np.float32)
        free = max(count - degrees, 1.0)
        noise = np.sqrt(sums.loss(weights) * count / free) * self._y_scale
        self.noise_ = float(noise[0]) if self._single_target else noise

    def _standard_deviation(self, X: Any) -> Array:
        check_is_fitted(self)
        posterior = self._posterior
        if posterior is None:
            raise ValueError(
                f"'return_std' needs n_components of at most {_POSTERIOR_WIDTH} and the exact "
                f"solver. Got n_components={self.n_components}, solver={self.solver!r}."
            )
        found = []
        noise = np.atleast_1d(self.noise_)
        for rows in self._input_blocks(X):
            _, phi = features(self._sigma(), self._standardised(rows), self.components_)
            if not self.fit_intercept:
                phi[:, -1] = 0
            # row by row |inverse factor · phi|²
            spread = np.sum((phi.astype(np.float32) @ posterior.T) ** 2, axis=1)
            found.append((np.sqrt(1 + spread)[:, None] * noise).astype(rows.dtype))
        return np.concatenate(found)


def _slices(
    x: Any, scaled: Array, sample: Sample, size: int
) -> Iterator[tuple[Any, Array, Array, Array]]:
    for start in range(0, len(scaled), size):
        at = slice(start, start + size)
        yield x[at], scaled[at], sample.weights[at], sample.keys[at]
