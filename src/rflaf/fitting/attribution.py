"""Why a row has its score: attributions to columns that add up to it, and its gradient.

Along the straight line from a background row b to a row x, in the space of a layer's inputs h, the
integral of the gradient has a closed form. Input i gets

    (h_i(x) - h_i(b)) sum_m v_m w_im (sigma(z_m) - sigma(z_m^b)) / (z_m - z_m^b).

Local models have none. They are followed along the line from one background row, that whose local
score is nearest to the mean, in steps. What they add in all is known, and the mean gradient divides
it between the inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf import fused
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.members import InputsOnce, Member
from rflaf.fitting.outside import Outside, held_between
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import as_array, project

Array = NDArray[Any]
Places = NDArray[np.intp]

_MOST_ROWS, _MOST_NUMBERS = 64, 1 << 18  # of the background that is kept with a model
_NEAR = 2e-4  # of the grid: closer numbers have the slope between them, and no quotient
_BLOCK = 1 << 16  # elements of Z at once, which stay in the cache
_LINES = 128  # rows at once that local models are followed to
_ROOM = 1 << 23  # numbers that the parts of columns in Z may take, for some background rows


def background_rows(x: Any, rng: np.random.Generator) -> Array:
    """Some rows to compare others with: at most 64, and fewer where they have many columns."""
    count = min(x.shape[0], _MOST_ROWS, max(2, _MOST_NUMBERS // max(x.shape[1], 1)))
    return as_array(x[np.sort(rng.choice(x.shape[0], count, replace=False))])


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

    Parameters
    ----------
    x, background : array
        Rows and those that they are compared with, as the members take them.
    wanted : array, n × C
        The scores of x less the mean score of the background.
    columns : array of int
        The column, of `width`, that each input belongs to.

    Notes
    -----
    Straight lines beyond the ends belong to their columns. Where bounds hold the score, the row's
    attributions are scaled down to it. What rounding leaves is spread in proportion to them.
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
        found[beyond] *= _share(wanted[beyond], found[beyond].sum(axis=1))[:, None]
    return _completed(found, wanted)


def _share(wanted: Array, total: Array) -> Array:
    """How much of a sum bounds have left, from 0 to 1."""
    return np.clip(np.divide(wanted, total, out=np.ones_like(total), where=total != 0), 0, 1)


def _completed(found: Array, wanted: Array) -> Array:
    """Attributions that add up, n × d × C: the rest is spread in proportion to them."""
    size = np.abs(found)
    total = size.sum(axis=1, keepdims=True)
    even = np.full_like(found, 1 / found.shape[1])
    size = np.divide(size, total, out=even, where=total > 0)
    return found + size * (wanted - found.sum(axis=1))[:, None]


class _Activated(NamedTuple):
    """Inputs of a layer, their Z, and sigma and its slope there."""

    inputs: Array
    z: Array
    values: Array
    slopes: Array


def _activated(layer: FittedLayer, inputs: Any, middle: Any = 0) -> _Activated:
    """The same for rows in the layer's form; inputs are counted from `middle`."""
    z = project(inputs, layer.components)
    ones = np.ones((len(z), 1), z.dtype), np.ones((z.shape[1], 1), z.dtype)
    slopes = fused.slope(layer.sigma, z, ones)
    return _Activated(as_array(inputs) - middle, z, fused.apply(layer.sigma, z), slopes)


def _add_member(member: Member, x: Any, background: Any, owners: Places, out: Array) -> None:
    """Add the attributions of a member, for rows in the form of its layer.

    The inputs of a column go into Z together. Their part in Z is known once for each background
    row, so that a pair of rows costs a product with as many numbers as there are columns.
    """
    layer, width = member.layer, out.shape[1]
    w, n = layer.components, x.shape[0]
    unit, v = _output_weights(member)
    group = _group(owners, width)
    middle = as_array(background).mean(axis=0, dtype=np.float64).astype(w.dtype)
    others = _activated(layer, background, middle)
    count = len(others.z)
    near = _NEAR * float(np.ptp(layer.activation.basis.grid))
    size, together = _block_rows(w), max(1, _ROOM // (w.shape[1] * width))
    for first in range(0, count, together):
        chosen = range(first, min(first + together, count))
        parts = [np.ascontiguousarray((others.inputs[k] * w.T) @ group) for k in chosen]

        def task(block: int, chosen: Any = chosen, parts: Any = parts) -> None:
            rows = slice(block * size, (block + 1) * size)
            here = _activated(layer, x[rows], middle)
            summed, found = np.zeros_like(here.z), np.zeros((v.shape[1], len(here.z), width))
            for k, part in zip(chosen, parts):
                ratio = _quotients(here, others, k, near)
                summed += ratio
                for c in range(v.shape[1]):
                    found[c] -= (ratio * v[:, c]) @ part
            for c in range(v.shape[1]):
                found[c] += (here.inputs * ((summed * v[:, c]) @ w.T)) @ group
            out[rows] += np.moveaxis(found, 0, 2) * (unit * member.weight / count)

        parallel(task, -(-n // size))
    if member.local:
        _add_local(member, x, background, owners, out)


def _add_local(member: Member, x: Any, background: Any, owners: Places, out: Array) -> None:
    """Add the attributions of a member's local models."""
    layer, others = member.layer, as_array(background)
    scores = member.local_scores(others)
    nearest = [int(np.argmin(np.abs(scores - scores.mean(axis=0)).sum(axis=1)))]
    start, size = others[nearest], min(_LINES, max(1, _ROOM // (x.shape[1] * scores.shape[1])))

    def task(block: int) -> None:
        rows = slice(block * size, (block + 1) * size)
        slopes: Any = 0.0
        for local, own in zip(member.local, member.projectors):
            slopes = slopes + local.mean_slopes(layer, own(start), own(x[rows])) @ own.w.T
        line = (as_array(x[rows]) - start)[:, :, None]
        parts = _by_owner(line * np.moveaxis(slopes, 1, 2), owners, out.shape[1])
        wanted = member.local_scores(x[rows]) - scores[nearest]
        out[rows] += member.weight * _completed(parts, wanted)

    parallel(task, -(-x.shape[0] // size))


def _quotients(here: _Activated, others: _Activated, k: int, near: float) -> Array:
    """Differences of sigma over those of z, from background row k, n × M."""
    apart, ratio = here.z - others.z[k], here.values - others.values[k]
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(ratio, apart, out=ratio)
    close = np.flatnonzero((apart < near) & (apart > -near))  # flat: ten times as fast
    slopes = others.slopes[k, close % ratio.shape[1]]
    ratio.ravel()[close] = (here.slopes.ravel()[close] + slopes) / 2
    return ratio


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
    found[(below > 0) | (above > 0)] = 0
    pairs = zip((below, above), outside.reach)
    down, up = ((apart > 0) & (apart < reach) for apart, reach in pairs)
    low, high = outside.slopes / outside.unit[:, None]
    found += up[:, :, None] * high - down[:, :, None] * low
    free = outside.inner_scores(members, inner) + outside.lines(x, inner).sum(axis=1)
    held = (free < outside.bounds[0]) | (free > outside.bounds[1])
    held &= (below + above).any(axis=1, keepdims=True)
    return np.where(held[:, None], 0.0, found)


def mixed_slopes(members: list[Member], x: Array) -> Array:
    """The derivative of the members' mixed scores in each input, n × d × C."""
    found = np.zeros((*x.shape, members[0].coef.shape[1]))
    for member in members:
        layer = member.layer
        unit, v = _output_weights(member)
        group, size = _group(layer.origin, x.shape[1]), _block_rows(layer.components)
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            some = x[rows] if layer.means is None else layer.means(x[rows])
            inputs = layer.inputs(x[rows])
            slopes, steps = _activated(layer, inputs).slopes, layer.form.derivative(some)
            inward = unit * np.stack([(slopes * each) @ layer.components.T for each in v.T], axis=2)
            for local, own in zip(member.local, member.projectors):
                inward += np.moveaxis(local.slopes(layer, own(inputs)) @ own.w.T, 1, 2)
            for c in range(len(unit)):
                found[rows, :, c] += member.weight * ((inward[:, :, c] * steps) @ group)
    return found


def _output_weights(member: Member) -> tuple[Array, Array]:
    """Units of the outputs, and weights of at most 1 in the layer's precision, M × C."""
    largest = np.abs(member.coef).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    return unit, (member.coef / unit).astype(member.layer.components.dtype)


def _block_rows(components: Array) -> int:
    return max(1, _BLOCK // components.shape[1])


def _group(owners: Places, width: int) -> sparse.csr_array:
    """The matrix that adds up what belongs to one owner, len(owners) × width."""
    ones = np.ones(len(owners), np.float32)
    return sparse.csr_array((ones, owners, np.arange(len(owners) + 1)), (len(owners), width))


def _by_owner(values: Array, owners: Places, width: int) -> Array:
    """Values n × d × C added up, n × width × C."""
    group = _group(owners, width)
    return np.stack([values[:, :, c] @ group for c in range(values.shape[2])], axis=2)
