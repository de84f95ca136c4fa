"""Why a row has its score: attributions to columns that add up to it, and its gradient.

Along the straight line from a background row b to a row x, in the space of a layer's inputs h, the
integral of the gradient has a closed form. Input i gets

    (h_i(x) - h_i(b)) sum_m v_m w_im (sigma(z_m) - sigma(z_m^b)) / (z_m - z_m^b).

Local models have no closed form. Their gradient is averaged in steps along the line from one
background row: that whose local score is nearest to the mean. It divides what they add, which is
known, between the inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf import fused
from rflaf.arrays import Array
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.members import InputsOnce, Member
from rflaf.fitting.outside import Outside, held_between
from rflaf.rows.sample import some_of
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import as_array, project

Places = NDArray[np.intp]

_MOST_ROWS, _MOST_NUMBERS = 64, 1 << 18  # of the background that is kept with a model
_NEAR = 2e-4  # of the grid: closer numbers have the slope between them, and no quotient
_NODES = 8  # in the spacing of a basis: quotients are cubic between them
_JUMP = 0.2  # of a slope or a curvature between cells of a table; smooth activations have less
_NOWHERE = 1e-300  # a distance that asks for more nodes than there are rows
_BLOCK = 1 << 16  # elements of Z at once, which stay in the cache
_LINES = 128  # rows at once that local models are followed to
_ROOM = 1 << 21  # numbers at all nodes of some features


def background_rows(x: Any, rng: np.random.Generator) -> Array:
    """Some rows to compare others with: at most 64, and fewer where they have many columns."""
    most = min(_MOST_ROWS, max(2, _MOST_NUMBERS // max(x.shape[1], 1)))
    return as_array(x[some_of(x.shape[0], most, rng)])


def attributions(
    members: list[Member],
    outside: Outside,
    x: Array,
    background: Array,
    wanted: Array,
    columns: Places,
    width: int,
) -> Array:
    """What each column adds to the scores, n × width × C, on top of the background's mean scores.

    `wanted`, n × C, are the scores of x less the mean score of the background. `columns` has the
    column, of `width`, that each input belongs to. Straight lines beyond the ends belong to their
    columns. Where bounds hold the score, the row's attributions are scaled down to it. What
    rounding leaves is spread in proportion to them.
    """
    inner, inner_background = (held_between(rows, outside.ends) for rows in (x, background))
    found = np.zeros((len(x), width, wanted.shape[1]))
    rows, others = InputsOnce(inner), InputsOnce(inner_background)
    for member in members:
        owners = columns[member.layer.origin]
        _add_member(member, rows.of(member.layer), others.of(member.layer), owners, found)
    if inner is not x or inner_background is not background:
        lines = outside.lines(x, inner) - outside.lines(background, inner_background).mean(axis=0)
        found += _by_owner(lines, columns, width)
        beyond = (x != inner).any(axis=1)
        total = found[beyond].sum(axis=1)
        left = np.divide(wanted[beyond], total, out=np.ones_like(total), where=total != 0)
        found[beyond] *= np.clip(left, 0, 1)[:, None]
    return _completed(found, wanted)


def _completed(found: Array, wanted: Array) -> Array:
    """Attributions that add up, n × d × C: the rest is spread in proportion to them."""
    size = np.abs(found)
    total = size.sum(axis=1, keepdims=True)
    even = np.full_like(found, 1 / found.shape[1])
    size = np.divide(size, total, out=even, where=total > 0)
    return found + size * (wanted - found.sum(axis=1))[:, None]


class _Activated(NamedTuple):
    """Z, and sigma and its slope there."""

    z: Array
    values: Array
    slopes: Array


def _activated(layer: FittedLayer, z: Array) -> _Activated:
    ones = np.ones((len(z), 1), z.dtype), np.ones((z.shape[1], 1), z.dtype)
    return _Activated(z, fused.apply(layer.sigma, z), fused.slope(layer.sigma, z, ones))


def _add_member(member: Member, x: Any, background: Any, owners: Places, out: Array) -> None:
    """Add the attributions of a member, for rows in the form of its layer.

    The inputs of a column go into Z together. For a feature, the mean of its quotients over the
    background rows, and that of their products with the part of each column in z^b, are functions
    of z_m alone. They are known at nodes, which many rows share: a row then costs the same for any
    number of background rows.
    """
    layer, (n, width, _) = member.layer, out.shape
    unit, v = _output_weights(member)
    w, group = layer.components, _group(owners, width)
    middle = as_array(background).mean(axis=0, dtype=np.float64).astype(w.dtype)
    others = as_array(background) - middle
    z, known = (np.ascontiguousarray(project(rows, w).T) for rows in (x, background))
    padded = -(-(width + 1) // 8) * 8  # a rest would take as long as all else
    quotients, found = np.empty_like(z), np.zeros((n, v.shape[1], padded))
    apart, order = _node_distance(layer.sigma), np.argsort(np.ptp(z, axis=1), kind="stable")
    most = max(_nodes(z[order[-1:]], apart)[0].shape[1] * padded, others.size)
    size = max(1, _ROOM // most)
    for first in range(0, len(z), size):
        some = order[first : first + size]
        nodes, place = _nodes(z[some], apart)
        parts = np.zeros((len(some), len(others), padded), w.dtype)
        each = np.multiply(w[:, some, None], others.T[:, None], order="C").reshape(len(w), -1)
        parts[:, :, :width] = (group.T @ each).T.reshape(*parts.shape[:2], width)
        parts[:, :, -1] = 1
        parts /= len(others)
        tables = _sums_at(nodes, known[some], parts, layer)
        sums, quotients[some] = fused.interpolated(tables, place, v[some])
        found -= sums

    def task(rows: slice) -> None:
        inputs = as_array(x[rows]) - middle
        for c in range(v.shape[1]):
            from_row = (inputs * ((quotients[:, rows].T * v[:, c]) @ w.T)) @ group
            total = found[rows, c, :width] + from_row
            out[rows, :, c] += total * (unit[c] * member.weight)

    fused.for_each(task, fused.split_rows((n, len(w) + len(z)), _BLOCK))
    if member.local:
        _add_local(member, x, background, owners, out)


def _nodes(z: Array, apart: float) -> tuple[Array, Array]:
    """Nodes for each row of z, features × nodes, and the places of z among them.

    They are less than `apart` from each other where this takes fewer than there are numbers; else
    they are these numbers themselves.
    """
    low, high = z.min(axis=1, keepdims=True), z.max(axis=1, keepdims=True)
    count, n = float((high - low).max()) / apart + 3, z.shape[1]
    if count < n:
        steps = np.maximum((high - low) / z.dtype.type(int(count) - 1), np.finfo(z.dtype).tiny)
        nodes = low + steps * np.arange(-1, int(count) + 1, dtype=z.dtype)
        return nodes, (z - low) / steps + 1
    most = max(n, 4)
    place = np.broadcast_to(np.arange(n, dtype=z.dtype), z.shape)
    return z[:, np.minimum(np.arange(most), n - 1)], np.ascontiguousarray(place)


def _node_distance(sigma: fused.Sigma) -> float:
    """How far apart nodes may be; next to nothing where the slope or the curvature jumps."""
    if isinstance(sigma, fused.Direct):
        return _NOWHERE
    _, c1, c2, c3 = sigma.cells[:-1].T
    for end, begin in ((c1 + 2 * c2 + 3 * c3, c1), (c2 + 3 * c3, c2)):
        if np.abs(end[:-1] - begin[1:]).max(initial=0) > _JUMP * np.abs(begin).max():
            return _NOWHERE
    return min(sigma.layout.cell, sigma.basis.spacing / _NODES)


def _sums_at(nodes: Array, known: Array, parts: Array, layer: FittedLayer) -> Array:
    """Sums over the background of quotients times `parts`, features × nodes × columns.

    `known` has the background's z, features × K, and `parts` are features × K × columns.
    """
    near = _NEAR * float(np.ptp(layer.activation.basis.grid))
    here, there = _activated(layer, nodes), _activated(layer, known)
    out = np.empty((*nodes.shape, parts.shape[2]), nodes.dtype)

    def task(some: slice) -> None:
        left, right = ([each[some] for each in side] for side in (here, there))
        np.matmul(fused.quotients(left, right, near), parts[some], out=out[some])

    fused.for_each(task, fused.split_rows((len(nodes), nodes.shape[1] * known.shape[1]), _BLOCK))
    return out


def _add_local(member: Member, x: Any, background: Any, owners: Places, out: Array) -> None:
    layer, others = member.layer, as_array(background)
    scores = member.local_scores(others)
    nearest = [int(np.argmin(np.abs(scores - scores.mean(axis=0)).sum(axis=1)))]
    start, size = others[nearest], min(_LINES, max(1, _ROOM // (x.shape[1] * scores.shape[1])))

    def task(block: int) -> None:
        rows = slice(block * size, (block + 1) * size)
        slopes: Any = 0.0
        for local, own in zip(member.local, member.projectors):
            slopes = slopes + local.slopes(layer, own, x[rows], start)
        line = (as_array(x[rows]) - start)[:, :, None]
        parts = _by_owner(line * np.moveaxis(slopes, 1, 2), owners, out.shape[1])
        wanted = member.local_scores(x[rows]) - scores[nearest]
        out[rows] += member.weight * _completed(parts, wanted)

    parallel(task, -(-x.shape[0] // size))


def gradient(members: list[Member], outside: Outside, x: Array) -> Array:
    """The derivative of the scores in each input, n × d × C; 0 where bounds hold the score."""
    inner, monotone = held_between(x, outside.ends), outside.monotone
    if monotone is None:
        found = mixed_slopes(members, inner)
    else:
        found = monotone.slopes(members, inner, mixed_slopes)
    if inner is x:
        return found
    below, above = outside.beyond(x, inner)
    moved = inner != x  # also where no line is followed, and `beyond` is 0
    found[moved] = 0
    pairs = zip((below, above), outside.reach)
    down, up = ((apart > 0) & (apart < reach) for apart, reach in pairs)
    low, high = outside.slopes / outside.unit[:, None]
    found += up[:, :, None] * high - down[:, :, None] * low
    free = outside.inner_scores(members, inner) + outside.lines(x, inner).sum(axis=1)
    held = (free < outside.bounds[0]) | (free > outside.bounds[1])
    held &= moved.any(axis=1, keepdims=True)
    return np.where(held[:, None], 0.0, found)


def mixed_slopes(members: list[Member], x: Array) -> Array:
    """The derivative of the members' mixed scores in each input, n × d × C."""
    found = np.zeros((*x.shape, members[0].coef.shape[1]))
    for member in members:
        layer = member.layer
        unit, v = _output_weights(member)
        group = _group(layer.origin, x.shape[1])
        size = max(1, _BLOCK // layer.components.shape[1])
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            some = x[rows] if layer.means is None else layer.means(x[rows])
            inputs = layer.inputs(x[rows])
            slopes = _activated(layer, project(inputs, layer.components)).slopes
            steps = layer.form.derivative(some)
            inward = unit * np.stack([(slopes * each) @ layer.components.T for each in v.T], axis=2)
            for local, own in zip(member.local, member.projectors):
                inward += np.moveaxis(local.slopes(layer, own, inputs), 1, 2)
            for c in range(len(unit)):
                found[rows, :, c] += member.weight * ((inward[:, :, c] * steps) @ group)
    return found


def _output_weights(member: Member) -> tuple[Array, Array]:
    """Units of the outputs, and weights of at most 1 in the layer's precision, M × C."""
    largest = np.abs(member.coef).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    return unit, (member.coef / unit).astype(member.layer.components.dtype)


def _group(owners: Places, width: int) -> sparse.csr_array:
    """The matrix that adds up what belongs to one owner, len(owners) × width."""
    ones = np.ones(len(owners), np.float32)
    return sparse.csr_array((ones, owners, np.arange(len(owners) + 1)), (len(owners), width))


def _by_owner(values: Array, owners: Places, width: int) -> Array:
    """Values n × d × C added up, n × width × C."""
    group = _group(owners, width)
    return np.stack([values[:, :, c] @ group for c in range(values.shape[2])], axis=2)
