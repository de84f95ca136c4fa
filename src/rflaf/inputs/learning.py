"""The parts of an encoder, learned from columns and targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.inputs.column import DAY, Column
from rflaf.inputs.dates import parse_dates
from rflaf.inputs.kinds import as_levels, as_numbers, as_times
from rflaf.inputs.parts import (
    CIRCLES,
    DatePart,
    LevelPart,
    NumberPart,
    columns_with_gaps,
    phase,
)

Array = NDArray[Any]

FOLDS = 5
_MOST_MEASURED = 10_000  # rows that a median is taken of
_LEAST_ROWS = 5  # that a level needs for a column of its own; fewer where the rows are few
_MOST_LOST = 0.2  # of the rows in rare levels, where means by level are possible
_MONTHS = 3  # that dates must spread over for a place in the year to tell more than the days do


def learn_numbers(x: Array, at: Array, lenient: Array) -> NumberPart:
    """Medians and indicators of the columns `at`, which are those of the matrix x."""
    medians = np.zeros(x.shape[1])
    gaps = columns_with_gaps(x)
    whole = np.setdiff1d(np.arange(x.shape[1]), gaps)
    some = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_MEASURED)).astype(np.intp))]
    medians[whole] = np.median(some[:, whole], axis=0)
    for k in gaps:
        there = x[~np.isnan(x[:, k]), k]
        medians[k] = np.median(there[:: max(1, len(there) // _MOST_MEASURED)])
    return NumberPart(at, medians, gaps, lenient)


def number_part(columns: list[Column], at: list[int], lenient: list[int]) -> NumberPart:
    """The same for columns."""
    x = np.column_stack([as_numbers(columns[k], k in lenient) for k in at])
    return learn_numbers(x, np.array(at), np.array(lenient, np.intp))


def date_parts(columns: list[Column], at: list[int]) -> list[DatePart]:
    """A part for each column of dates; those after the first also have their distance to it."""
    day_first = {k: _day_first(columns[k]) for k in at}
    times = [as_times(columns[k], day_first[k]) for k in at]
    found = []
    for column, moments in zip(at, times):
        there = moments[~np.isnan(moments)]
        first = float(there.min())
        part = DatePart(
            column,
            first,
            median=float(np.median((there - first) / DAY)),
            circles=tuple(circle for circle in CIRCLES if _varies(there, circle)),
            flagged=len(there) < len(moments),
            day_first=day_first[column],
        )
        apart = (moments - times[0]) / DAY
        apart = apart[~np.isnan(apart)]
        if column != at[0] and len(np.unique(apart)) > 1:
            part = replace(
                part,
                since=at[0],
                since_median=float(np.median(apart)),
                since_day_first=day_first[at[0]],
            )
        found.append(part)
    return found


def _day_first(column: Column) -> bool:
    """How the column's dates are written, if they are text."""
    if column.codes is None:
        return False
    used = np.unique(column.codes[column.codes >= 0])
    parsed = parse_dates([column.levels[k] for k in used])
    return parsed is not None and parsed[1]


def _varies(times: Array, circle: str) -> bool:
    if circle == "year":
        moments = (times * 1e6).astype("datetime64[us]")
        return len(np.unique(moments.astype("datetime64[M]"))) >= _MONTHS
    return bool(np.ptp(phase(times, circle)) > 0)


def level_part(
    column: int,
    values: Column,
    targets: Array | None,
    weights: Array,
    one_hot_levels: int,
    rng: np.random.Generator,
) -> tuple[LevelPart, Array | None]:
    """A part for a category, and what it gives for the rows of the fit if that is another thing.

    One-hot columns; means of the target where there are targets and more than `one_hot_levels`
    levels that are not rare, or so many that most would be rare.
    """
    codes, levels = as_levels(values)
    codes = np.where(codes < 0, len(levels), codes)  # missing is a level of its own
    counts = np.bincount(codes, minlength=len(levels) + 1)
    least = min(_LEAST_ROWS, max(1, len(codes) // 40))
    kept = np.flatnonzero(counts >= least)
    lost = 1 - counts[kept].sum() / len(codes)  # among the rare ones
    many = len(kept) > one_hot_levels or (len(levels) > one_hot_levels and lost > _MOST_LOST)
    if many and targets is not None:
        return _means(column, codes, levels, targets, weights, rng)
    kept = kept[np.argsort(-counts[kept], kind="stable")][:one_hot_levels]
    # by name, so that the order of the rows does not matter; what is missing comes last
    kept = np.array(sorted(kept, key=lambda k: (k == len(levels), [*levels, ""][k])), np.intp)
    return _one_hot(column, kept, counts, levels), None


def _one_hot(column: int, kept: Array, counts: Array, levels: list[str]) -> LevelPart:
    """A column for each level that is kept, and one for all others if there are any."""
    missing = len(levels)
    rare = int(counts.sum() > counts[kept].sum())
    width = len(kept) + rare
    named = [k for k in kept if k != missing]
    rows = np.zeros((len(named) + 2, width))
    place = {int(k): i for i, k in enumerate(kept)}
    for row, k in enumerate(named):
        rows[row, place[int(k)]] = 1
    if rare:
        rows[-2:, -1] = 1  # unknown levels, and gaps if there are few or none, are rare ones
    if missing in place:
        rows[-2] = 0
        rows[-2, place[missing]] = 1
    made = [*("missing" if k == missing else levels[k] for k in kept), *["rare"] * rare]
    return LevelPart(column, [levels[k] for k in named], rows, tuple(made))


def _means(
    column: int,
    codes: Array,
    levels: list[str],
    targets: Array,
    weights: Array,
    rng: np.random.Generator,
) -> tuple[LevelPart, Array]:
    """Means of the targets by level, and for each row those over rows of other folds."""
    count, width = len(levels) + 1, targets.shape[1]
    fold = rng.permutation(len(codes)) % FOLDS
    sums = np.zeros((FOLDS, 3, count, width))  # weights, targets, their squares
    at = fold * count + codes
    for k in range(width):
        for j, value in enumerate((np.ones(len(codes)), targets[:, k], targets[:, k] ** 2)):
            found = np.bincount(at, weights * value, minlength=FOLDS * count)
            sums[:, j, :, k] = found.reshape(FOLDS, count)
    values, prior = smoothed_means(sums.sum(axis=0))
    unseen = np.empty_like(targets)
    for k in range(FOLDS):
        # added up without the fold, and not subtracted: no bit of a row's own target is left
        means, _ = smoothed_means(sum(sums[j] for j in range(FOLDS) if j != k))
        unseen[fold == k] = means[codes[fold == k]]
    missing = values[-1:] if (codes == len(levels)).any() else prior[None]
    rows = np.vstack([values[:-1], missing, prior])
    made = tuple(f"mean_{k}" if width > 1 else "mean" for k in range(width))
    return LevelPart(column, levels, rows, made), unseen


def smoothed_means(sums: Any) -> tuple[Array, Array]:
    """Means by level, drawn towards the mean of all as far as their number leaves them uncertain.

    `sums` are weights, targets and squared targets by level, 3 × levels × C. A level of weight w
    has its own mean with w, and the common one with m, the variance within levels over that
    between them.
    """
    weight, first, second = sums
    total = np.maximum(weight.sum(axis=0), 1e-300)
    prior = first.sum(axis=0) / total
    means = first / np.where(weight > 0, weight, 1.0)
    within = np.maximum((second - weight * means**2).sum(axis=0), 0.0) / total
    between = (weight * (means - prior) ** 2).sum(axis=0) / total
    between = between - within * np.minimum((weight > 0).sum(axis=0) / total, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.where(between > 0, within / between, np.inf)
    m = np.clip(np.nan_to_num(m, nan=1.0, posinf=np.inf), 1.0, 1000.0)
    return (first + m * prior) / (weight + m), prior


def target_matrix(y: Any, classes: bool) -> Array:
    """Targets n × C: numbers, or whether a row is of a class; of two classes one column."""
    if not classes:
        y = np.asarray(y, np.float64)
        return y[:, None] if y.ndim == 1 else y
    names, codes = np.unique(np.asarray(y), return_inverse=True)
    codes = codes.ravel()
    if len(names) <= 2:
        return (codes == len(names) - 1).astype(np.float64)[:, None]
    return np.eye(len(names))[codes]
