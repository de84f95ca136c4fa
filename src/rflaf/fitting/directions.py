"""Which directions a partition is cut along: those whose cuts tell most of what is left.

For each level a few candidates are drawn: features' own directions, and single columns. All parts
of the level are cut in two at their medians along each of them, and the one whose halves differ
most in what the member leaves of the targets is taken. Candidates are compared on some of the rows,
with values in cells, so that this costs little beside the weights of the parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import rules

Array = NDArray[Any]
Places = NDArray[np.intp]

_CELLS = 64  # that values of a candidate are told apart by
_SEEN = 512  # rows that these cells are taken from


def draw_candidates(
    rng: np.random.Generator, depth: int, width: int, scales: Array
) -> NDArray[np.intp]:
    """Numbers of directions, depth × candidates: of `width` features first, then of columns.

    Columns are drawn in proportion to their `scales`: noise would make use of others.
    """
    count = min(rules.LOCAL_AXES, int(np.count_nonzero(scales)))
    from_features = min(rules.LOCAL_TRIED - count, max(width // depth, 1))
    features = rng.permutation(width)[: depth * from_features].reshape(depth, -1)
    if not count:
        return features
    columns, share = np.empty((depth, count), np.intp), scales / scales.sum()
    for level in range(depth):
        columns[level] = width + rng.choice(len(share), count, replace=False, p=share)
    return np.hstack([features, columns])


def most_telling(z: Array, left: Array, weights: Array, own_weights: Array, depth: int) -> Places:
    """The number of the best candidate of each level, for their z, n × depth candidates.

    `left` is what is to be explained, n × C, `weights` how much rows count for in that, and
    `own_weights` decide on medians.
    """
    codes = np.stack([_in_cells(column) for column in z.T])
    each, node = len(codes) // depth, np.zeros(len(z), np.intp)
    targets = (left * weights[:, None]).T
    best = np.zeros(depth, np.intp)
    for level in range(depth):
        gains, sides = [], []
        for code in codes[level * each : (level + 1) * each]:
            child = 2 * node + _upper_half(code, node, own_weights, 2**level)
            weight = np.bincount(child, weights, 2 ** (level + 1))
            sums = np.stack([np.bincount(child, t, 2 ** (level + 1)) for t in targets])
            gains.append(np.sum(sums**2 / np.maximum(weight, 1e-300)))
            sides.append(child)
        chosen = int(np.argmax(gains))
        best[level], node = level * each + chosen, sides[chosen]
    return best


def _in_cells(values: Array) -> Array:
    """The number of the cell that each value lies in; equal values are in one."""
    edges = np.unique(values[:: -(-len(values) // _SEEN)])
    if len(edges) > _CELLS:
        edges = edges[np.linspace(0, len(edges) - 1, _CELLS).astype(np.intp)]
    return np.searchsorted(edges, values)


def _upper_half(code: Array, node: Array, weights: Array, nodes: int) -> Array:
    """Whether rows lie above the median cell of their node, or above all others if that is last."""
    cells = _CELLS + 1
    counts = np.bincount(node * cells + code, weights, nodes * cells).reshape(nodes, cells)
    rising = counts.cumsum(axis=1)
    middle = (rising < rising[:, -1:] / 2).sum(axis=1)
    last = cells - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
    return code > np.minimum(middle, last - 1)[node]
