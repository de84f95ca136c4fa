"""RandomFeatures: the features themselves, for pipelines."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.base import _fit_context as fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import FIXED_ACTIVATIONS, Fixed
from rflaf.fitting.budget import check_projection
from rflaf.inputs.opening import FLOATS, checked, column_names
from rflaf.inputs.scaling import column_moments, standardise, warn_of_tiny
from rflaf.projection import PROJECTIONS, draw


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """sigma(X W) for a fixed or an already learned activation, as a transformer.

    Parameters
    ----------
    n_components : int
        Number of random features, M.
    activation : str or Activation
        The name of a fixed activation, or a learned one (`model.activation_`). The names "cos" and
        "gaussian" include a phase, because even activations cannot represent odd functions;
        `Activation("cos")` has none.
    scale : float
        Standard deviation of Z for standardised inputs.
    standardise : bool
        Whether to standardise the columns first.
    projection : {"gaussian", "orthogonal"}
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : array, d × M
    activation_ : Activation

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf import RandomFeatures
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> RandomFeatures(20, activation="tanh", random_state=0).fit_transform(X).shape
    (50, 20)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(FIXED_ACTIVATIONS)), Activation],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "standardise": ["boolean"],
        "projection": [StrOptions(set(PROJECTIONS))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 1000,
        *,
        activation: str | Activation = "relu",
        scale: float = 1.0,
        standardise: bool = True,
        projection: str = "gaussian",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.scale = scale
        self.standardise = standardise
        self.projection = projection
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Compute means and scales of the columns, and draw W."""
        found = RandomFeatures()  # nothing is set on self before all is known
        X = checked(found, X, True, accept_sparse="csr", dtype=FLOATS)
        d = X.shape[1]
        found.mean_, found.scale_ = np.zeros(d), np.ones(d)
        if self.standardise:
            found.mean_, found.scale_ = column_moments(X, np.ones(X.shape[0]))
            warn_of_tiny(X, lambda: column_names(found))
        check_projection(d, self.n_components)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        w = draw(self.projection, d, self.n_components, np.random.default_rng(seed), X.dtype)
        found.components_ = w * X.dtype.type(self.scale / np.sqrt(d))
        given = self.activation
        if isinstance(given, str):
            given = Activation(Fixed.with_phase(given))
        found.activation_ = given
        self.__dict__ = {
            **{name: value for name, value in vars(self).items() if not name.endswith("_")},
            **{name: value for name, value in vars(found).items() if name.endswith("_")},
        }
        return self

    def transform(self, X: Any) -> Any:
        """The features, n × M, in the precision of X."""
        check_is_fitted(self)
        X = checked(self, X, False, accept_sparse="csr", dtype=FLOATS)
        x = standardise(X, self.mean_, self.scale_, X.dtype)
        z = np.asarray(x @ self.components_.astype(X.dtype))
        return fused.apply(self.activation_.table(), z, out=z)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
