"""The paper's method with arrays in and arrays out, for the estimators."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from rflaf.bases import Basis, Fixed, get_basis
from rflaf.bases.base import checked
from rflaf.nn.initial import Init
from rflaf.nn.learnable import LearnableActivation
from rflaf.nn.networks import RFLAF, RFMLP, TwoLayerNetwork
from rflaf.paper.protocols import Protocol
from rflaf.paper.training.history import EpochRecord
from rflaf.paper.training.loop import train
from rflaf.paper.training.subsets import Data


@dataclass(frozen=True)
class AdamFit:
    """What `fit_adam` found.

    Attributes
    ----------
    coefficients : array of N
        a; 1 for a fixed activation.
    V : array of M, or M × C
        The second layer.
    history : tuple of EpochRecord
        Losses and seconds of the epochs.
    status : {"finished", "diverged"}
        If diverged, the arrays are those of the last step and may not be finite.
    best_epoch : int, optional
        The epoch that the arrays are from; None if diverged.
    """

    coefficients: NDArray[np.float64]
    V: NDArray[Any]
    history: tuple[EpochRecord, ...]
    status: str
    best_epoch: int | None


@checked(task=[StrOptions({"regression", "classification"})])
def fit_adam(
    X: ArrayLike,
    y: ArrayLike,
    W: ArrayLike,
    basis: str | Basis = "rbf",
    *,
    task: str = "regression",
    n_basis: int = 17,
    grid: tuple[float, float] = (-2.0, 2.0),
    init: Init = "random",
    protocol: Protocol | str = "corrected",
    epochs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    dtype: str | torch.dtype = torch.float32,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> AdamFit:
    """Learn a and V of sigma(X W) V with Adam on mini-batches.

    Parameters
    ----------
    X : array, n × d
        Inputs, scaled so that X W fills the grid.
    y : array of n, or n × C
        Targets; for "classification" the classes 0, ..., C - 1.
    W : array, d × M
        The first layer, which stays as it is.
    basis, n_basis, grid, init
        As for `LearnableActivation`; a fixed activation leaves V alone to learn.
    task : {"regression", "classification"}
        Squared error, or cross-entropy.
    random_state : int, RandomState or None
        For a, V, the shuffles and the validation part.
    dtype : torch.dtype or str
        In which to train.
    protocol, epochs, checkpoint, progress
        As for `train`; the protocol must be one that needs no test data.

    Returns
    -------
    AdamFit

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.nn import fit_adam
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(500, 2)), rng.normal(size=(2, 100))
    >>> fit = fit_adam(X, np.sin(2 * X[:, 0]), W, epochs=2, random_state=0)
    >>> fit.coefficients.shape, fit.V.shape
    ((17,), (100,))
    """
    rng = check_random_state(random_state)
    model_seed, seed = (int(s) for s in rng.randint(2**31 - 1, size=2))
    number = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    targets = np.asarray(y, np.int64 if task == "classification" else np.float64)
    w = torch.as_tensor(np.asarray(W), dtype=number)
    outputs = int(targets.max()) + 1 if task == "classification" else None
    if task == "regression" and targets.ndim == 2:
        outputs = targets.shape[1]
    model = _network(w, outputs, get_basis(basis, n_basis, grid), init, model_seed, number)
    data = Data(np.asarray(X), targets)
    result = train(
        model, data, protocol, epochs=epochs, seed=seed, checkpoint=checkpoint, progress=progress
    )
    a = np.ones(1)
    if isinstance(model.activation, LearnableActivation):
        a = model.activation.coefficients.detach().double().numpy()
    V = model.V.detach().numpy()
    return AdamFit(a, V, result.history, result.status, result.best_epoch)


def _network(
    w: torch.Tensor,
    n_outputs: int | None,
    basis: Basis,
    init: Init,
    seed: int,
    dtype: torch.dtype,
) -> TwoLayerNetwork:
    d, m = w.shape
    model: TwoLayerNetwork
    if isinstance(basis, Fixed):
        if basis.phase:
            raise ValueError(f"RFMLP has activations without a phase. Got {basis!r}.")
        model = RFMLP(d, m, n_outputs, activation=basis.name, seed=seed, dtype=dtype)
    else:
        model = RFLAF(
            d, m, n_outputs, basis=basis, init=init, input_scale=None, seed=seed, dtype=dtype
        )
    model.W = w
    return model
