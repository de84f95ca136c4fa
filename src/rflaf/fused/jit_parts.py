"""The loops of `part_models`, in numba. Nothing is checked here.

A row goes down a partition from the first cut. Sides of cuts that have a share of it wait on a
stack. Arrays are flat, and what predictions need calls nothing: all else takes longer to compile.
"""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled, inlined
from rflaf.fused.jit_memory import dot_run, zeros
from rflaf.fused.jit_vectors import continue_tails, evaluate_run, locate_run, slope_run, unpacked

_WAITING = 64  # sides at most, one for each cut on the way down
_SHORT = 1e-6  # of a hand-over: shorter steps have the slope at their start


@compiled
def score_rows(z, phi, m, cuts, widths, nodes, coef, outputs, out, n):
    """Add the scores of rows to `out`, n × C, for z and phi of n × T × m."""
    trees = cuts.size // nodes
    waiting = zeros(_WAITING, np.intp)
    shares = zeros(_WAITING, np.float64)
    for i in range(n * trees):
        tree = i % trees
        waiting[0] = 0
        shares[0] = 1.0
        count = 1
        while count:
            count -= 1
            node = waiting[count]
            share = shares[count]
            if node >= nodes:
                for c in range(outputs):
                    v = ((tree * (nodes + 1) + node - nodes) * outputs + c) * (m + 1)
                    score = dot_run(phi, i * m, coef, v, m) + coef[v + m]
                    out[i // trees * outputs + c] += share * score
                continue
            level = 0
            while (2 << level) <= node + 1:
                level += 1
            cut = tree * nodes + node
            at = (z[i * m + level] - cuts[cut]) / widths[cut] * 0.5 + 0.5
            if not at > 0:
                at = 0.0 if at <= 0 else 0.5
            if at > 1:
                at = 1.0
            upper = at * at * (3 - 2 * at)
            waiting[count] = 2 * node + 2
            shares[count] = share * upper
            count += upper > 0
            waiting[count] = 2 * node + 1
            shares[count] = share * (1 - upper)
            count += upper < 1


@inlined
def _place(z, cut, width):
    """Where z lies in the hand-over, from 0 to 1."""
    at = (z - cut) / width * 0.5 + 0.5
    return min(max(at, 0.0), 1.0) if at == at else 0.5


@inlined
def _upper(at):
    """The share of the upper side."""
    return at * at * (3 - 2 * at)


@compiled
def slope_rows(z, step, phi, steep, steps, table, m, cuts, widths, nodes, coef, outputs, out, n):
    """Add the derivative of the scores in z to `out`, n × C × T × m, for each of the steps from z.

    Without a `table`, cells and frame, `phi` and its slope `steep` are given for the one step.
    """
    trees = cuts.size // nodes
    waiting, levels = zeros(_WAITING, np.intp), zeros(_WAITING, np.intp)
    shares, turns = zeros(_WAITING, np.float64), zeros(_WAITING, np.float64)
    turned = zeros(_WAITING, np.float64)  # by each cut on the way, relative to the share
    at, ones, rows = zeros(m, z.dtype), zeros(m, z.dtype), zeros(m, np.int32)
    t, values, slopes = zeros(m, z.dtype), zeros(m, z.dtype), zeros(m, z.dtype)
    for k in range(m):
        ones[k] = 1
    for i in range(n * trees * steps):
        tree, row = i // steps % trees, i // steps * m
        start, way, done = z[row:], step[row:], z.dtype.type(i % steps + 0.5)
        for k in range(m):
            at[k] = start[k] + done * way[k]
        if table is None:
            for k in range(m):
                values[k], slopes[k] = phi[row + k], steep[row + k]
        else:
            f = unpacked(table[1])
            locate_run(at, 0, m, f, None, 0, rows, t)
            evaluate_run(rows, t, m, table[0], values, 0, None, 0)
            continue_tails(at, 0, m, f, values, 0)
            slope_run(at, 0, rows, t, m, table[0], f, ones, slopes, 0)
        waiting[0], levels[0], shares[0], count = 0, 0, 1.0, 1
        while count:
            count -= 1
            node, level, share = waiting[count], levels[count], shares[count]
            if level:
                turned[level - 1] = turns[count]
            if node >= nodes:
                mine = z.dtype.type(share)
                for c in range(outputs):
                    v = coef[((tree * (nodes + 1) + node - nodes) * outputs + c) * (m + 1) :]
                    target = out[((row // m // trees * outputs + c) * trees + tree) * m :]
                    score = share * (dot_run(values, 0, v, 0, m) + v[m])
                    for k in range(m):
                        target[k] += mine * slopes[k] * v[k]
                    for k in range(level):
                        target[k] += turned[k] * score
                continue
            cut, width = cuts[tree * nodes + node], widths[tree * nodes + node]
            half = 0.5 * way[level]
            place = _place(at[level] - half, cut, width)
            upper, slope = _upper(place), 3 * place * (1 - place) / width
            if abs(half) > _SHORT * width:
                end = _upper(_place(at[level] + half, cut, width))
                upper, slope = (upper + end) / 2, (end - upper) / (2 * half)
            for side in range(2):
                part = upper if side else 1 - upper
                if part > 0:
                    waiting[count], levels[count] = 2 * node + 1 + side, level + 1
                    shares[count] = share * part
                    turns[count] = (slope if side else -slope) / part
                    count += 1
