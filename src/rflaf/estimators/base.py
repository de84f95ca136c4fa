"""What the regressor and the classifier share: parameters, publishing, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from rflaf._version import DOCUMENTS
from rflaf.activation import Activation
from rflaf.bases import FIXED_ACTIVATIONS, LEARNABLE_BASES, Basis, Fixed, get_basis
from rflaf.estimators.inspection import InspectionMixin, warn_of_coverage
from rflaf.estimators.validation import FLOATS, InputCheck, dense_for, is_streamed
from rflaf.fitting import Choice, FitSettings, Member, Start
from rflaf.fitting.budget import block_rows, check_basis
from rflaf.fitting.members import mixed_scores
from rflaf.inputs.form import FORMS
from rflaf.inputs.opening import count_rows, opened, some_rows
from rflaf.projection import PROJECTIONS
from rflaf.rows import ArrayRows, Arrays, Source, SourceRows
from rflaf.solvers import Learned

Array = NDArray[Any]

# Parameters that a fit takes as they are
_AS_THEY_ARE = (
    *("metric", "input_form", "solver", "fit_intercept", "validation_fraction", "max_iter", "tol"),
    *("l1", "smoothness", "projection", "max_bytes", "n_jobs", "verbose", "class_weight"),
)


_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
_FEW_NUMBERS = 1024  # in rows that are predicted at once, without further ado


class BaseRFLAF(InspectionMixin, BaseEstimator):
    """Common part of RFLAFRegressor and RFLAFClassifier."""

    # where the question mark in scikit-learn's HTML representation leads
    _doc_link_module = "rflaf"
    _doc_link_template = f"{DOCUMENTS}api/estimators.html#{{estimator_module}}.{{estimator_name}}"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({*LEARNABLE_BASES, *FIXED_ACTIVATIONS}), Basis, Activation],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "grid": [tuple, list],
        "metric": [StrOptions({"auto", "full", "diagonal", "none"})],
        "input_form": [StrOptions({"auto", *FORMS})],
        "n_members": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "projection": [StrOptions(set(PROJECTIONS))],
        "max_bytes": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
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
        self.n_components = n_components
        self.activation = activation
        self.n_basis = n_basis
        self.grid = grid
        self.metric = metric
        self.input_form = input_form
        self.n_members = n_members
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.l1 = l1
        self.smoothness = smoothness
        self.projection = projection
        self.max_bytes = max_bytes
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features

    def __init_subclass__(cls, **options: Any) -> None:
        """Give each estimator its own `__init__`, so that errors name the class that was called."""
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):
            given: Any = cls.__init__
            own = FunctionType(
                given.__code__, given.__globals__, "__init__", given.__defaults__, given.__closure__
            )
            own.__kwdefaults__, own.__annotations__ = given.__kwdefaults__, given.__annotations__
            own.__module__, own.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
            cls.__init__ = own  # type: ignore[method-assign]

    _fitted_state: tuple[str, ...] = ()  # what a fit sets besides names that end in _

    def _fit_settings(self) -> FitSettings:
        """The parameters as a fit takes them."""
        basis, coefficients = self._resolve_basis()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        given: dict[str, Any] = {
            name: getattr(self, name) for name in _AS_THEY_ARE if hasattr(self, name)
        }
        for name in ("n_components", "n_members", "alpha"):
            value = getattr(self, name)
            given[name] = None if value == "auto" else value
        start = self._start() if self.warm_start else None
        return FitSettings(basis=basis, seed=seed, coefficients=coefficients, start=start, **given)

    def _input_check(self, seed: int) -> InputCheck:
        """What checks the rows of a first fit."""
        return InputCheck(type(self), is_classifier(self), None, self.categorical_features, seed)

    def _resolve_basis(self) -> tuple[Basis, Array | None]:
        """The basis, and coefficients where they are given and not to be learned."""
        if isinstance(self.activation, Activation):
            return self.activation.basis, self.activation.coefficients
        if len(self.grid) != 2:
            raise ValueError(f"'grid' must be (low, high). Got {self.grid!r}.")
        if isinstance(self.activation, str) and self.activation in FIXED_ACTIVATIONS:
            return Fixed.with_phase(self.activation, *self.grid), np.ones(1)
        if isinstance(self.activation, str):
            check_basis(self.n_basis)
        basis = get_basis(self.activation, self.n_basis, (self.grid[0], self.grid[1]))
        return basis, None if basis.learnable else np.ones(1)

    def _start(self) -> Start | None:
        """What the last fit has learned, if it has."""
        if not getattr(self, "history_", None):
            return None
        layers = [member.layer for member in self.members_ if not member.layer.linear]
        choices = list(dict.fromkeys(Choice(each.form.name, each.kind) for each in layers))
        learned = [
            [
                Learned(each.activation.coefficients, each.metric, each.alpha)
                for each in layers
                if Choice(each.form.name, each.kind) == choice
            ]
            for choice in choices
        ]
        ranked = tuple(layers[0].form.ranked.tolist())
        return Start(self.activation_.basis, learned, choices, len(self.mean_), ranked)

    def _publish(self, columns: dict[str, Any], members: list[Member], **attributes: Any) -> None:
        """Replace all fitted attributes in one step: there is no moment with some of each fit."""
        first = members[0]
        layer = first.layer
        warn_of_coverage(min(m.layer.coverage for m in members), layer.activation.basis)
        # what others have set stays: scikit-learn's settings and callbacks, a Dask client
        state = {
            name: value
            for name, value in vars(self).items()
            if not name.endswith("_") and name not in self._fitted_state
        }
        state |= columns
        if columns["encoder_"] is not None:
            shares = attributes["feature_importances_"]
            attributes["feature_importances_"] = columns["encoder_"].summed(shares)
        state |= {
            "members_": members,
            "mean_": layer.form.mean,
            "scale_": layer.form.scale,
            "input_form_": layer.form.name,
            "components_": layer.components,
            "activation_": layer.activation,
            "metric_": layer.metric,
            "metric_kind_": layer.kind,
            "alpha_": first.alpha,
            "history_": layer.history,
            "n_iter_": max(len(layer.history), 1),  # the last solve counts if nothing is learned
            "grid_coverage_": layer.coverage,
            "z_sample_": layer.z_sample,
        }
        self.__dict__ = state | attributes

    def _scores(self, X: Any) -> Array:
        """The weighted mean of the members' scores, n × C, in the precision of X."""
        if self._needs_no_checks(X):
            return self._block_scores(X)
        return np.concatenate([self._block_scores(x) for x in self._input_blocks(X)])

    def _needs_no_checks(self, X: Any) -> bool:
        """Whether X is a small array that all checks would leave as it is.

        For a few rows scikit-learn's checks take longer than the prediction.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in _PLAIN
            and X.ndim == 2
            and 0 < X.size <= _FEW_NUMBERS
            and "members_" in vars(self)
            and "feature_names_in_" not in vars(self)
            and X.shape[1] == self.n_features_in_
            and (self.encoder_ is None or self.encoder_.is_identity)
            and bool(np.isfinite(X).all())
        )

    def _block_scores(self, X: Any) -> Array:
        scores = mixed_scores(self.members_, X)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"The activation {self.activation_.basis!r} overflows on some rows of X, which lie "
                "too far from those of the fit. Take another 'activation', such as 'chebyshev'."
            )
        return np.asarray(scores).astype(X.dtype, copy=False)

    def _input_blocks(self, X: Any) -> Iterator[Any]:
        """The rows of arrays or of a source, checked, in blocks."""
        check_is_fitted(self)
        d, m = self.components_.shape
        if is_streamed(X):
            source = X if isinstance(X, Source) else Arrays(X)
            check = InputCheck(type(self), False, fitted=self)
            streamed = SourceRows(source, check, labelled=False)
            for block in streamed.blocks(block_rows(m, d, self.max_bytes)):
                yield block.x
            if not streamed.count:
                raise ValueError("Found no rows: a minimum of 1 is required.")
            return
        thin = sparse.issparse(X) and self.members_[0].layer.form.stays_sparse
        size = block_rows(m, 1 if thin else d, self.max_bytes)
        yield from self._encoded_blocks(X, size)

    def _encoded_blocks(self, X: Any, size: int) -> Iterator[Any]:
        """The rows of an array or a frame, as numbers."""
        X = dense_for(self.encoder_, X)
        encoder = None if sparse.issparse(X) else self.encoder_
        if encoder is None:
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        else:
            X = opened(self, X, reset=False, numeric=encoder.is_numeric)
        if encoder is not None and isinstance(X, list):
            for start in range(0, count_rows(X), size):
                yield encoder.encode(some_rows(X, start, start + size))
            return
        nothing = np.zeros(X.shape[0])
        for block in ArrayRows(X, nothing, nothing).blocks(size):
            yield block.x if encoder is None else encoder.encode(block.x)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags


def spread_rows(found: Array, numbers: Array, count: int) -> Array | None:
    """What was found for some rows among all; None where these are not the rows of arrays."""
    if not len(numbers) or numbers[-1] >= count or len(numbers) < 0.5 * count:
        return None
    out = np.full((count, *found.shape[1:]), np.nan)
    out[numbers] = found
    return out
