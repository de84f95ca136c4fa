"""The kernel of infinitely many random features, as a scikit-learn kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel
from sklearn.utils._param_validation import StrOptions

from rflaf.activation import Activation
from rflaf.bases import FIXED_ACTIVATIONS, RBF, Fixed
from rflaf.bases.base import check_parameters
from rflaf.theory._checks import COUNT, POSITIVE, FloatArray, check_points
from rflaf.theory.infinite_width import ArcCosine, ClosedForm, Cosine, GaussianMixture
from rflaf.theory.quadrature import HermiteSeries

Bounds = tuple[float, float] | str


class ActivationKernel(Kernel):
    """K(x, x') = E[sigma(s w·x) sigma(s w·x')] for standard normal w: the limit M -> infinity.

    What a random feature model with the activation sigma and M features computes, Phi Phi'/M,
    tends to K as M grows. Gaussian bases, ReLU, cos and the Gaussian have closed forms; others use
    Gauss-Hermite quadrature. The hyperparameters are the coefficients themselves, which may be
    negative, and the logarithm of the input scale s.

    Parameters
    ----------
    activation : Activation or str
        The activation, or the name of a fixed one.
    input_scale : float
        s > 0.
    coefficients_bounds : (float, float) or "fixed"
        Range of every coefficient when a Gaussian process optimises them. The coefficient of a
        fixed activation is optimised as well, unless this is "fixed".
    input_scale_bounds : (float, float) or "fixed"
        Range of s, positive.
    n_hermite : int
        Terms of the series for bases without a closed form. Inputs that are large compared with the
        details of the activation need more; a ConvergenceWarning is given if there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from rflaf import Activation
    >>> from rflaf.bases import RBF
    >>> from rflaf.kernels import ActivationKernel
    >>> basis = RBF(9)
    >>> kernel = ActivationKernel(Activation(basis, basis.fit(np.tanh)))
    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> kernel(X).shape
    (30, 30)
    >>> model = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-6).fit(X, X[:, 0])
    >>> bool(abs(model.predict(X) - X[:, 0]).max() < 1e-2)
    True
    """

    def __init__(
        self,
        activation: Activation | str,
        input_scale: float = 1.0,
        coefficients_bounds: Bounds = (-100.0, 100.0),
        input_scale_bounds: Bounds = (1e-3, 1e3),
        n_hermite: int = 512,
    ) -> None:
        self.activation = activation
        self.input_scale = input_scale
        self.coefficients_bounds = coefficients_bounds
        self.input_scale_bounds = input_scale_bounds
        self.n_hermite = n_hermite

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the activation."""
        return self._sigma().coefficients

    @property
    def hyperparameter_coefficients(self) -> Hyperparameter:
        """One number for every basis function."""
        n = self._sigma().basis.n
        return Hyperparameter("coefficients", "numeric", self.coefficients_bounds, n)

    @property
    def hyperparameter_input_scale(self) -> Hyperparameter:
        """The scale s of the inputs."""
        return Hyperparameter("input_scale", "numeric", self.input_scale_bounds)

    @property
    def _free(self) -> slice:
        """Which of the coefficients and log s are hyperparameters that can change."""
        n = self._sigma().basis.n
        first = n if self.hyperparameter_coefficients.fixed else 0
        return slice(first, n if self.hyperparameter_input_scale.fixed else n + 1)

    @property
    def theta(self) -> FloatArray:
        """The free hyperparameters: the coefficients, then log s."""
        return np.append(self.coefficients, np.log([self.input_scale]))[self._free]

    @theta.setter
    def theta(self, theta: ArrayLike) -> None:
        values = np.asarray(theta, dtype=np.float64)
        expected = self.theta.size
        if values.shape != (expected,):
            raise ValueError(f"'theta' must have {expected} entries. Got shape {values.shape}.")
        if not self.hyperparameter_coefficients.fixed:
            basis = self._sigma().basis
            self.activation = Activation(basis, values[: basis.n])
        if not self.hyperparameter_input_scale.fixed:
            self.input_scale = float(np.exp(values[-1]))

    @property
    def bounds(self) -> FloatArray:
        """The bounds of theta, one row per entry."""
        parts = []
        if not self.hyperparameter_coefficients.fixed:
            parts.append(self.hyperparameter_coefficients.bounds)
        if not self.hyperparameter_input_scale.fixed:
            parts.append(np.log(self.hyperparameter_input_scale.bounds))
        return np.vstack(parts) if parts else np.array([])

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """The kernel matrix, and with `eval_gradient` its derivative for theta.

        Parameters
        ----------
        X, Y : arrays of shape (n, d) and (n', d)
            Points. Y is X by default; `eval_gradient=True` requires Y=None.

        Returns
        -------
        array of shape (n, n'), and of shape (n, n, len(theta)) with `eval_gradient`.
        """
        if Y is not None and eval_gradient:
            raise ValueError("eval_gradient=True requires Y=None.")
        form = self._form()
        A, B = check_points(X, Y)
        A = self.input_scale * A
        K = form.matrix(A, A if Y is None else self.input_scale * B)
        return (K, form.derivatives(A)[:, :, self._free]) if eval_gradient else K

    def diag(self, X: ArrayLike) -> FloatArray:
        """K(x, x) for every row of X, without the matrix."""
        return self._form().diagonal(self.input_scale * check_points(X, None)[0])

    def is_stationary(self) -> bool:
        """False: K depends on where the points are, not on their difference alone."""
        return False

    def __repr__(self) -> str:
        return f"ActivationKernel({self.activation!r}, input_scale={self.input_scale:.3g})"

    def _sigma(self) -> Activation:
        if isinstance(self.activation, str):
            return Activation(self.activation)
        return self.activation

    def _form(self) -> ClosedForm | HermiteSeries:
        """The closed form if there is one, otherwise a series of `n_hermite` terms."""
        sigma = [Activation, StrOptions(set(FIXED_ACTIVATIONS))]
        constraints = {"activation": sigma, "input_scale": POSITIVE, "n_hermite": COUNT}
        check_parameters("ActivationKernel", constraints, vars(self))
        activation = self._sigma()
        basis, a = activation.basis, activation.coefficients
        if isinstance(basis, RBF):
            return GaussianMixture(basis.centers, np.broadcast_to(basis.width, basis.n), a)
        name = basis.name if isinstance(basis, Fixed) and not basis.phase else None
        if name == "gaussian":
            return GaussianMixture(np.zeros(1), np.ones(1), a)
        if name in ("relu", "cos"):
            return (ArcCosine if name == "relu" else Cosine)(float(a[0]))
        return HermiteSeries(activation, self.n_hermite)
