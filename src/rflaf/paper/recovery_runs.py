"""How well sigma is recovered from f1, f2 and f3: figures 2 and 3 of the paper, with a measure.

Three ways: the paper's training, up to the epoch whose curve was published; the estimators' solver;
and `rflaf.paper.recovery.recover_activation`, which takes v to be smooth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.bases import RBF
from rflaf.bases.base import checked
from rflaf.datasets.synthetic import TARGETS
from rflaf.paper.recovery import best_factors, recover_activation, recovery_error
from rflaf.paper.splits import load_split

Curve = Callable[[Array], Array]

METHODS = ("paper", "estimator", "smooth-v")
GRID = np.linspace(-2.0, 2.0, 201)
SHARE_OF_ROWS = 0.8
N_COMPONENTS = 1000
PUBLISHED_CURVES = {"f1": (0.02, 25), "f2": (0.01, 12), "f3": (0.02, 45)}  # width, epoch
QUICK_ROWS, QUICK_EPOCHS, QUICK_STEPS = 1500, 1, 20


@checked(dataset=[StrOptions(set(PUBLISHED_CURVES))], method=[StrOptions(set(METHODS))])
def run_recovery(dataset: str, method: str, seed: int, *, quick: bool = False) -> dict[str, Any]:
    """Recover sigma from one of the synthetic targets in one way: what its record has.

    The paper's training has its published split. The other two methods learn from four fifths of
    the rows, drawn by the seed. `error` is that of `recovery_error`; `sigma` is given at the points
    `z`, after the best factor for its even and its odd part.
    """
    truth = TARGETS[dataset].sigma
    train, test = _rows(dataset, seed if method != "paper" else 0)
    if quick:
        train, test = ((x[:QUICK_ROWS], y[:QUICK_ROWS]) for x, y in (train, test))
    start = time.perf_counter()
    if method == "paper":
        curve, extras = _by_training(dataset, train, test, seed, quick)
    elif method == "estimator":
        curve, extras = _by_estimator(train, test, seed, quick)
    else:
        curve, extras = _by_smooth_v(train, test, seed)
    seconds = time.perf_counter() - start
    return {
        "status": "finished",
        "error": recovery_error(curve, truth),
        "seconds": seconds,
        "z": GRID.tolist(),
        "sigma": best_factors(np.asarray(curve(GRID)), truth(GRID)).tolist(),
        "truth": truth(GRID).tolist(),
        "extras": extras,
    }


XY = tuple[Array, Array]


def _rows(dataset: str, split: int) -> tuple[XY, XY]:
    """Rows to learn from, and the others; split 0 is the published one."""
    data = load_split(dataset, "published")
    if split == 0:
        return (data.X_train, data.y_train), (data.X_test, data.y_test)
    x = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    order = np.random.default_rng(split).permutation(len(x))
    end = round(SHARE_OF_ROWS * len(x))
    return (x[order[:end]], y[order[:end]]), (x[order[end:]], y[order[end:]])


def _by_training(
    dataset: str, rows: XY, test: XY, seed: int, quick: bool
) -> tuple[Curve, dict[str, Any]]:
    from rflaf.nn import RFLAF
    from rflaf.paper.training import Data, train

    width, epochs = PUBLISHED_CURVES[dataset]
    model = RFLAF(2, N_COMPONENTS, basis=RBF(401, width=width), input_scale=None, seed=seed)
    data = Data(*rows, *test)
    result = train(model, data, "published", epochs=QUICK_EPOCHS if quick else epochs, seed=seed)
    activation: Activation = model.activation.to_activation()  # type: ignore[operator]
    extras = {"status": result.status, "test_loss": result.history[-1].test_loss, "epochs": epochs}
    return activation, extras


def _by_estimator(train: XY, test: XY, seed: int, quick: bool) -> tuple[Curve, dict[str, Any]]:
    from rflaf.estimators import RFLAFRegressor

    model = RFLAFRegressor(
        N_COMPONENTS,
        n_basis=61,
        metric="none",
        input_form="raw",
        n_members=1,
        fit_intercept=False,
        max_iter=QUICK_STEPS if quick else 140,
        random_state=seed % 2**32,
    ).fit(*train)
    # sigma(w·x) = activation(factor w·x), for the inputs were divided by their spread
    factor = float(np.mean(model.metric_ / model.scale_))
    activation: Activation = model.activation_
    loss = float(np.mean((model.predict(test[0]) - test[1]) ** 2))
    return lambda z: activation(factor * z), {"test_loss": loss, "factor": factor}


def _by_smooth_v(train: XY, test: XY, seed: int) -> tuple[Curve, dict[str, Any]]:
    found = recover_activation(*train, random_state=seed % 2**32)
    loss = float(np.mean((found.predict(test[0]) - test[1]) ** 2))
    extras = {"test_loss": loss, "penalty": found.penalty, "shares": list(found.shares)}
    return found.activation, extras
