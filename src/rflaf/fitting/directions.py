"""Which directions a partition is cut along: those whose cuts explain most of what is left.

For each level a few candidates are drawn: features' own directions, and single columns. Along each
of them all parts of the level are cut in two at their medians. The candidate is taken whose halves
differ most in what the member leaves of the targets. Candidates are compared on some of the rows,
with values in cells, so that this costs little beside the weights of the parts.
"""

from __future__ import annotations

import numpy as np

from rflaf import rules
from rflaf.arrays import Array
from rflaf.inputs.forms.base import Places

_CELLS = 64  # that values of a candidate are told apart by
_SEEN = 512  # rows that these cells are taken from


def draw_candidates(
    rng: np.random.Generator, depth: int, features: Places, width: int, scales: Array
) -> Places:
    """Numbers of directions, depth × candidates: some of the `features`, and of the columns.

    Numbers of columns follow those of all features, of which there are `width`. Columns are drawn
    in proportion to their `scales`: noise would make use of others.
    """
    count = min(rules.LOCAL_AXES, int(np.count_nonzero(scales)))
    share = scales / max(float(scales.sum()), 1e-300)
    levels = []
    for _ in range(depth):
        columns = rng.choice(len(share), count, replace=False, p=share) if count else features[:0]
        some = rng.permutation(features)[: rules.LOCAL_TRIED - count]
        levels.append(np.concatenate([some, width + columns]))
    return np.stack(levels)


def most_telling(
    codes: Array, left: Array, weights: Array, own_weights: Array, depth: int
) -> Places:
    """The number of the best candidate of each level, for the cells of rows, candidates × n.

    `left` is what is to be explained, n × C, `weights` how much rows count for in that, and
    `own_weights` decide on medians.
    """
    each, node = len(codes) // depth, np.zeros(codes.shape[1], np.intp)
    at = np.arange(each)[:, None]
    own, spread = np.tile(own_weights, each), np.tile(weights, each)
    sums = (left * weights[:, None]).T
    best = np.zeros(depth, np.intp)
    for level in range(depth):
        code, nodes = codes[level * each : (level + 1) * each], 2**level
        place = at * nodes + node
        counts = np.bincount(
            (place * (_CELLS + 1) + code).ravel(), own, each * nodes * (_CELLS + 1)
        )
        cut = _middle_cells(counts.reshape(each, nodes, _CELLS + 1))
        child = 2 * place + (code > np.take_along_axis(cut, node[None], axis=1))
        among = child.ravel(), 2 * nodes * each
        weight = np.maximum(np.bincount(among[0], spread, among[1]), 1e-300)
        gains = sum(
            np.bincount(among[0], np.tile(part, each), among[1]) ** 2 / weight for part in sums
        )
        chosen = int(np.argmax(np.reshape(gains, (each, -1)).sum(axis=1)))
        best[level], node = level * each + chosen, child[chosen] - 2 * nodes * chosen
    return best


def in_cells(values: Array) -> Array:
    """The number of the cell that each value lies in; equal values are in one."""
    edges = np.unique(values[:: -(-len(values) // _SEEN)])
    if len(edges) > _CELLS:
        edges = edges[np.linspace(0, len(edges) - 1, _CELLS).astype(np.intp)]
    return np.searchsorted(edges, values).astype(np.uint8)


def _middle_cells(counts: Array) -> Places:
    """The cell of the median, but before the last cell that has rows: both halves need some."""
    rising = counts.cumsum(axis=-1)
    middle = (rising < rising[..., -1:] / 2).sum(axis=-1)
    last = counts.shape[-1] - 1 - np.argmax(counts[..., ::-1] > 0, axis=-1)
    return np.minimum(middle, last - 1)
