"""Small models with names that would break a page if they were not kept as text."""

import numpy as np
import pandas as pd

from rflaf import RFLAFClassifier, RFLAFRegressor

HOSTILE = (
    "<script>window.hostile = 1</script>",
    '"><img src=x onerror="window.hostile = 2">',
    "</title></svg><svg onload=window.hostile=3>",
    "{{ 7 * 7 }} & 'quoted'",
)
CLASSES = ("<b onclick=window.hostile=4>yes</b>", "</td></table>no", "{% raw %}maybe")
FEW = {"n_components": 40, "n_members": 1, "max_iter": 4, "random_state": 0}


def frame(n=150, seed=0):
    """Four columns: a line, a curve, a few values, noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list(HOSTILE))
    X.iloc[:, 2] = rng.integers(0, 3, n).astype(float)
    return X


def numbers(X, seed=1):
    """Mostly the first column, then the third."""
    noise = 0.1 * np.random.default_rng(seed).normal(size=len(X))
    first, second, third, _ = X.to_numpy().T
    y = 3 * first + np.sin(2 * second) + third + noise
    return pd.Series(y, X.index, name="<i>price</i>")


def classes(X):
    """Three classes by the first column."""
    return np.array(CLASSES)[np.digitize(X.iloc[:, 0], [-0.5, 0.5])]


def regressor():
    """A fitted model, and its rows: training, test."""
    X, T = frame(), frame(60, 5)
    model = RFLAFRegressor(**FEW).fit(X, numbers(X))
    return model, (X, numbers(X)), (T, numbers(T, 6))


def classifier():
    """The same for three classes."""
    X, T = frame(), frame(60, 5)
    model = RFLAFClassifier(**FEW).fit(X, classes(X))
    return model, (X, classes(X)), (T, classes(T))
