"""Random first layers: W, d × M, drawn once and never trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def gaussian(d: int, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """W of d × m independent standard normal entries, as in the paper."""
    return rng.standard_normal((d, m))


def orthogonal(d: int, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """W of d × m in blocks of d orthogonal columns with the lengths of Gaussian vectors.

    Every column is a standard normal vector. The columns of a block are orthogonal, which spreads
    the directions more evenly.
    """
    blocks = []
    for _ in range(-(-m // max(d, 1))):
        directions, r = np.linalg.qr(rng.standard_normal((d, d)))
        directions *= np.sign(np.diag(r))  # uniform over all rotations
        blocks.append(directions * np.sqrt(rng.chisquare(d, d)))
    return np.hstack(blocks)[:, :m]


PROJECTIONS = {"gaussian": gaussian, "orthogonal": orthogonal}


def draw(kind: str, d: int, m: int, rng: np.random.Generator, dtype: Any) -> NDArray[Any]:
    """W of d × m, of a `kind` in PROJECTIONS."""
    return PROJECTIONS[kind](d, m, rng).astype(dtype)


def places(rows: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.intp]:
    """Which row of W each column of some inputs gets: that of its rank among all columns.

    Columns are compared by means of a function of their values and of the targets, so that neither
    their order nor that of the rows matters to a model, and a row of weight 2 is two rows. Columns
    that are equal may change places.
    """
    heavy = weights * (2 + np.tanh(np.asarray(targets, np.float64).sum(axis=1)))
    means = heavy / heavy.sum() @ np.sin(2 * np.asarray(rows, np.float64) + 1)
    return np.argsort(np.argsort(means, kind="stable"), kind="stable")
