"""Compile the kernels ahead of time, for instance when a container image is built."""

from __future__ import annotations

import numpy as np

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import RBF, BSpline
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor


def warm_up() -> str:
    """Compile the kernels of fits and predictions, and cache them. Returns the cache folder.

    It fits small models. The kernels of `rflaf.nn` are not included.

    Examples
    --------
    >>> from rflaf.warm_up import warm_up
    >>> folder = warm_up()
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4))
    y = np.sin(2 * x[:, 0]) + np.round(x[:, 1])
    regressor = RFLAFRegressor(n_components=50, random_state=0).fit(x, y)
    regressor.predict_std(x)
    regressor.explain(x)
    for form in ("raw", "bins"):
        RFLAFRegressor(n_components=50, input_form=form, random_state=0).fit(x, y).predict(x)
    RFLAFClassifier(n_components=50, random_state=0).fit(x, np.digitize(y, [-1, 1])).predict(x)
    many = rng.standard_normal((8000, 2))  # kernels that threads share need many rows
    wide = RFLAFRegressor(n_components=400, metric="none", max_iter=1, random_state=0)
    wide.fit(many, many[:, 0])
    parts = fused.PartModels(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 2, 1, 5), np.float32))
    for dtype in (np.float32, np.float64):
        z = x.astype(dtype)
        for basis in (RBF(5), BSpline(7)):
            activation = Activation(basis, rng.standard_normal(basis.n))
            fused.apply(activation.table(), z)
            fused.part_scores(parts, activation.table(), z)
            fused.part_slopes(parts, activation.table(), z)
        RandomFeatures(n_components=50, random_state=0).fit(z, y).transform(z)
    return fused.cache_folder()
