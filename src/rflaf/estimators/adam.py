"""solver="adam": the paper's own training, by way of rflaf.nn."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.bases import Basis

Array = NDArray[Any]

MOST_EPOCHS = 30  # as many as the paper takes for its tables


def train_with_adam(
    x: Any,
    y: Array,
    components: Array,
    basis: Basis,
    *,
    task: str,
    weights: Array,
    epochs: int,
    validation_fraction: float,
    seed: int,
    verbose: int,
) -> tuple[Array, Array, list[dict[str, Any]]]:
    """Coefficients, output weights (M × C) and the record of each epoch."""
    try:
        from rflaf.nn import fit_adam
    except ImportError as error:
        raise ImportError("solver='adam' needs PyTorch: pip install 'rflaf[torch]'.") from error
    if sparse.issparse(x):
        raise ValueError("solver='adam' takes dense X only. Got a sparse matrix.")
    if np.ptp(weights) > 0:
        raise ValueError("solver='adam' takes no 'sample_weight' or 'class_weight'.")
    found = fit_adam(
        x,
        y,
        components,
        basis,
        task=task,
        epochs=min(max(epochs, 1), MOST_EPOCHS),
        validation_fraction=validation_fraction,
        random_state=seed,
        progress=bool(verbose),
    )
    if found.status != "finished":
        raise ValueError(
            f"Training {basis!r} with solver='adam' diverged in epoch {len(found.history)}. "
            "High powers do; take another 'activation', or the default 'solver'."
        )
    v = np.asarray(found.V, np.float64).reshape(components.shape[1], -1)
    history = [{"loss": asdict(e)["train_loss"], **asdict(e)} for e in found.history]
    return found.coefficients, v, history
