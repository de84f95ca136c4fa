"""What the regressor and the classifier share: parameters, publishing, predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from time import monotonic
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.bases import FIXED_ACTIVATIONS, LEARNABLE_BASES, Basis, Fixed, get_basis
from rflaf.estimators import validation
from rflaf.estimators.inspection import InspectionMixin, warn_of_coverage
from rflaf.estimators.partial import PartialState
from rflaf.estimators.validation import FLOATS, InputCheck, dense_for, is_streamed
from rflaf.fitting import Choice, Fit, FitSettings, Start, extend, fit_in_time
from rflaf.fitting.budget import block_rows, check_basis
from rflaf.inputs.forms import FORMS
from rflaf.inputs.opening import checked, count_rows, opened
from rflaf.inputs.unknown import UnknownLevels
from rflaf.losses import Loss
from rflaf.projection import PROJECTIONS
from rflaf.rows import ArrayRows, Arrays, Source, SourceRows
from rflaf.rows.sample import check_heaviest
from rflaf.runtime.callers import warn
from rflaf.solvers import Learned

# Parameters that a fit takes unchanged
_AS_THEY_ARE = (
    *("metric", "solver", "fit_intercept", "validation_fraction", "max_iter", "tol"),
    *("l1", "smoothness", "projection", "max_bytes", "n_jobs", "verbose", "effort", "time_limit"),
    "local_models",
)


_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
_FAR_SHARE = 0.05  # of rows far outside the training range: a warning is given
_FEW_NUMBERS = 1024  # in a small X, which is predicted without further checks
# Rows of a first call of partial_fit, on which activation, metric and standardisation depend alone:
# with fewer than the first number there is a warning, which recommends the second.
_TOO_FEW, _ROWS_TO_BEGIN = 100, 1000


class BaseRFLAF(InspectionMixin):
    """Common part of RFLAFRegressor and RFLAFClassifier."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({*LEARNABLE_BASES, *FIXED_ACTIVATIONS}), Basis, Activation],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "grid": [tuple, list],
        "metric": [StrOptions({"auto", "full", "diagonal", "none"})],
        "input_form": [StrOptions({"auto", *FORMS}), callable],
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
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "monotonic_cst": ["array-like", dict, None],
        "effort": [StrOptions({"fast", "default", "best"})],
        "local_models": ["boolean"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Give each estimator its own `__init__`: errors name the class that was called."""
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):
            given: Any = cls.__init__
            own = FunctionType(
                given.__code__, given.__globals__, "__init__", given.__defaults__, given.__closure__
            )
            own.__kwdefaults__, own.__annotations__ = given.__kwdefaults__, given.__annotations__
            own.__module__, own.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
            cls.__init__ = own  # type: ignore[method-assign]

    def _keep(self, given: dict[str, Any]) -> None:
        """Set the constructor's arguments as attributes, which is all that it may do."""
        self.__dict__.update((name, value) for name, value in given.items() if name != "self")

    def _loss(self) -> Loss:
        """What a fit minimises."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn from rows X, n × d (dense, sparse or a frame), and their targets or classes y.

        X may also be a source of `rflaf.rows`, whose blocks have the targets and weights. `groups`
        has a label for each row, where rows belong together: a group stays in one fold. See
        `RFLAFRegressor.fit`. A fit that fails or is interrupted leaves the estimator as it was.
        """
        settings, loss = self._fit_settings(), self._loss()
        check = InputCheck(type(self), loss, None, self.categorical_features)
        rows = check.rows(X, y, sample_weight, self.max_bytes, groups, settings.seed)
        self._publish(check, fit_in_time(rows, loss, check.settled(settings, self)))
        return self

    def _more_rows(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Any:
        """`partial_fit`: the first call is a fit that keeps sums, later ones add to them."""
        if isinstance(X, Source):
            raise TypeError("partial_fit takes arrays. Got a source, which 'fit' reads in blocks.")
        if self.time_limit is not None:
            raise ValueError(f"partial_fit takes no 'time_limit'. Got {self.time_limit!r}.")
        before: PartialState | None = getattr(self, "_partial", None)
        if before is None and "members_" in vars(self):
            warn(
                "partial_fit starts a new model, because this one was fitted by 'fit', which keeps "
                "no sums over rows."
            )
        settings = replace(self._fit_settings(), online=True)
        if before is None:
            loss = self._loss()
            check = InputCheck(type(self), loss, None, self.categorical_features)
            arrays = check.arrays(X, y, sample_weight)
            self._check_first(arrays[1], classes)
            rows = check.keyed(*arrays, seed=settings.seed)
            fitted = fit_in_time(rows, loss, check.settled(settings, self))
            assert fitted.online is not None
            count = fitted.online.first_rows
            if count < _TOO_FEW:
                warn(
                    f"partial_fit started with {count} rows of positive weight. Standardisation, "
                    "activation and metric are learned from these alone: pass "
                    f"{_ROWS_TO_BEGIN:,} rows or more in the first call."
                )
        else:
            before.check(self)
            settings = replace(settings, seed=before.seed)
            check = InputCheck(type(self), before.fit.loss, fitted=self)
            arrays = check.arrays(X, y, sample_weight)
            self._check_more(before.fit, arrays[1], classes)
            check_heaviest(float(arrays[2].max()))
            fitted = extend(before.fit, ArrayRows(*arrays, first=before.fit.rows_seen), settings)
        self._publish(check, fitted, PartialState.of(self, fitted, settings.seed))
        return self

    def _check_first(self, y: Array, classes: Any) -> None:
        """Check the targets of a first call of partial_fit."""

    def _check_more(self, before: Fit, y: Array, classes: Any) -> None:
        """Check that rows with these targets can be added."""
        m = len(before.members[0].coef)
        if self.n_components not in ("auto", m):
            raise ValueError(
                f"'n_components' was {m} in the first call of partial_fit, and cannot change. "
                f"Got {self.n_components}."
            )

    def _fit_settings(self) -> FitSettings:
        basis, coefficients = self._resolve_basis()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        given: dict[str, Any] = {
            name: getattr(self, name) for name in _AS_THEY_ARE if hasattr(self, name)
        }
        for name in ("n_components", "n_members", "alpha", "input_form"):
            value = getattr(self, name)
            given[name] = None if isinstance(value, str) and value == "auto" else value
        given["input_form"] = validation.form_of(given["input_form"])
        start = self._start() if self.warm_start else None
        given |= {"coefficients": coefficients, "start": start, "started": monotonic()}
        return FitSettings(basis=basis, seed=seed, **given)

    def _resolve_basis(self) -> tuple[Basis, Array | None]:
        """The basis, and its coefficients if they are given rather than learned."""
        if isinstance(self.activation, Activation):
            return self.activation.basis, self.activation.coefficients
        if len(self.grid) != 2:
            raise ValueError(f"'grid' must be (low, high). Got {self.grid!r}.")
        if isinstance(self.activation, str) and self.activation in FIXED_ACTIVATIONS:
            return Fixed.with_phase(self.activation, *self.grid), np.ones(1)
        if isinstance(self.activation, str):
            check_basis(self.activation, self.n_basis)
        basis = get_basis(self.activation, self.n_basis, (self.grid[0], self.grid[1]))
        return basis, None if basis.learnable else np.ones(1)

    def _start(self) -> Start | None:
        """What the last fit learned, if there was one."""
        if not getattr(self, "history_", None):
            return None
        teams: dict[int, list[Any]] = {}
        for member in self.members_:
            teams.setdefault(member.layer.team, []).append(member.layer)
        choices = [Choice(type(team[0].form), team[0].kind) for team in teams.values()]
        learned = [
            [Learned(each.activation.coefficients, each.metric, each.alpha) for each in team]
            for team in teams.values()
        ]
        return Start(self.activation_.basis, learned, choices)

    def _publish(self, check: InputCheck, fitted: Fit, partial: PartialState | None = None) -> None:
        """Replace all fitted attributes in one step: they never mix two fits."""
        first, members = fitted.members[0], fitted.members
        layer = first.layer
        warn_of_coverage(min(m.layer.coverage for m in members), layer.activation.basis)
        # what others have set stays: scikit-learn's settings and callbacks, a Dask client
        state = {
            name: value
            for name, value in vars(self).items()
            if not name.endswith("_") and name != "_partial"
        }
        shares = [fitted.importances, *fitted.importance_deviations]
        if check.encoder is not None:
            shares = [check.encoder.summed(each) for each in shares]
        state |= check.columns()
        state |= {
            "members_": members,
            "loss_": fitted.loss,
            "mean_": layer.form.mean,
            "scale_": layer.form.scale,
            "input_form_": layer.form.name,
            "components_": layer.components,
            "activation_": layer.activation,
            "metric_": layer.metric,
            "metric_kind_": layer.kind,
            "output_weights_": first.coef,
            "intercept_": first.intercept,
            "alpha_": first.alpha,
            "alpha_path_": fitted.alpha_path,
            "form_path_": fitted.form_path,
            "history_": layer.history,
            "n_iter_": max(len(layer.history), 1),  # the last solve counts if nothing is learned
            "n_samples_fit_": fitted.rows_seen,
            "grid_coverage_": layer.coverage,
            "z_sample_": layer.z_sample,
            "feature_importances_": shares[0],
            "feature_importances_std_": np.linalg.norm(shares[1:], axis=0),
            "background_": fitted.background,
            "oof_score_": fitted.oof_score,
            "oof_metrics_": fitted.oof_metrics,
            "outside_": fitted.outside,
            "effort_": fitted.effort,
            "left_out_": fitted.left_out,
            "dtype_": check.dtype,
        }
        if partial is not None:
            state["_partial"] = partial
        self.__dict__ = state | self._attributes(fitted)

    def _attributes(self, fitted: Fit) -> dict[str, Any]:
        """Further attributes that this estimator publishes."""
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        """The scores of the model, n × C, in float64."""
        blocks = [X] if self._needs_no_checks(X) else self._input_blocks(X)
        return np.concatenate(list(self._scored_blocks(blocks)))

    def _scored_blocks(self, blocks: Iterable[Any]) -> Iterator[Array]:
        """The scores of blocks; warns at the end if many rows lie far outside."""
        far, count = np.zeros(1, np.intp), 0
        for x in blocks:
            far, count = far + self.outside_.far(x), count + x.shape[0]
            yield self._block_scores(x)
        if far[-1] and far[-1] >= _FAR_SHARE * count:
            column = self._origin[np.argmax(far[:-1])]
            names = getattr(self, "feature_names_in_", None)
            name = f"column {column}" if names is None else f"column {names[column]!r}"
            spread = getattr(self, "spread_", None)  # of regressors
            widens = ", and predict_interval widens with the distance" if spread else ""
            warn(
                f"{far[-1]} of {count} rows lie more than a standard deviation outside the range "
                f"of the training rows, most of them in {name}. Predictions there continue the "
                f"trend at the edge, or stay constant{widens}."
            )

    def _needs_no_checks(self, X: Any) -> bool:
        """Whether checks, which take longer than predicting a few rows, would leave X as it is."""
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
        scores = self.outside_.scores(self.members_, X)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"The activation {self.activation_.basis!r} overflows on some rows of X, which lie "
                "too far from the training rows. Use another 'activation', such as 'chebyshev'."
            )
        return scores

    def _input_blocks(self, X: Any) -> Iterator[Any]:
        """The rows of arrays or of a source, checked, in blocks."""
        check_is_fitted(self)
        d, m = self.components_.shape
        if is_streamed(X):
            source = X if isinstance(X, Source) else Arrays(X)
            check = InputCheck(type(self), self.loss_, fitted=self)
            streamed = SourceRows(source, check, labelled=False)
            for block in streamed.blocks(block_rows(m, d, self.max_bytes)):
                yield block.x
            if not streamed.count:
                raise ValueError("Found no rows: a minimum of 1 is required.")
            check.unknown.warn()
            return
        thin = sparse.issparse(X) and self.members_[0].layer.form.stays_sparse
        size = block_rows(m, 1 if thin else d, self.max_bytes)
        yield from self._encoded_blocks(X, size)

    def _encoded_blocks(self, X: Any, size: int) -> Iterator[Any]:
        X = dense_for(self.encoder_, X)
        encoder = None if sparse.issparse(X) else self.encoder_
        if encoder is None:
            X = checked(self, X, False, accept_sparse="csr", dtype=FLOATS)
        else:
            X = opened(self, X, reset=False, numeric=encoder.is_numeric)
        if encoder is not None and isinstance(X, list):
            unknown = UnknownLevels(encoder.parts_)
            unknown.look(X)
            unknown.warn()
            for start in range(0, count_rows(X), size):
                rows = slice(start, start + size)
                yield encoder.encode([column.take(rows) for column in X])
            return
        nothing = np.zeros(X.shape[0])
        for block in ArrayRows(X, nothing, nothing).blocks(size):
            yield block.x if encoder is None else encoder.encode(block.x)

    def predict_blocks(self, X: Any) -> Iterator[Array]:
        """Yield the predictions for a source or an array, a block of rows at a time.

        Use it if the predictions of all rows do not fit into memory. Blocks may differ from those
        of the source; concatenated, they are what `predict` returns.
        """
        for scores in self._scored_blocks(self._input_blocks(X)):
            yield self._predicted(scores)

    def _predicted(self, scores: Array) -> Array:
        """Predictions from scores."""
        return self.loss_.predict(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags
