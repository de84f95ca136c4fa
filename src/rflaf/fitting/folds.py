"""Folds: which rows each member does not see while it learns.

What chooses must not have been learned from. Rows are therefore cut into folds before anything is
learned, by keys that follow from their numbers or their groups.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rflaf import rules
from rflaf.fitting import budget
from rflaf.fitting.settings import FitSettings
from rflaf.losses import Loss
from rflaf.rows import Sample
from rflaf.rows.sample import Keys, fold_cuts, fold_numbers
from rflaf.solvers.features import as_array

_COUNTED = 100  # rows up to which equal ones count once
_COPIES = 2  # rows of a key, on average, up to which these are copies and not groups
_NOBODY = 1 << 30  # a fold that no member has
_MOST_HELD_OUT = 200_000  # rows that choose when conjugate gradients stop


@dataclass(frozen=True)
class Folds:
    """Which rows each member does not see while it learns."""

    cuts: Keys  # where the folds end in the range of keys
    of_member: list[int]  # the fold of each; -1 where there are too few rows for any
    # the fold of each interval between cuts, if not its number: each group has its own interval
    of_interval: NDArray[np.intp] | None = None
    # rows whose fold does not follow from their interval: those of rare classes and the like
    dealt_keys: Keys | None = None
    dealt: NDArray[np.intp] | None = None

    @property
    def single(self) -> bool:
        """Whether one member takes all rows in the end."""
        return len(self.of_member) == 1

    def __call__(self, keys: Keys) -> NDArray[np.intp]:
        fold = fold_numbers(self.cuts, keys)
        if self.of_interval is not None:
            fold = self.of_interval[fold]
        if self.dealt_keys is not None and self.dealt is not None:
            at = np.minimum(np.searchsorted(self.dealt_keys, keys), len(self.dealt) - 1)
            fold = np.where(self.dealt_keys[at] == keys, self.dealt[at], fold)
        return fold


def resolve(settings: FitSettings, sample: Sample, loss: Loss) -> FitSettings:
    """Settings with numbers in place of None, for the rows of a sample."""
    n, max_bytes = sample.used, settings.max_bytes
    m, members = settings.n_components, settings.n_members
    if m is None:
        m = next((count for rows, count in rules.COMPONENTS if n <= rows), rules.MOST_COMPONENTS)
        share = settings.share
        # one round of learning is not enough for a wider layer, unless the loss is quadratic
        widen = share.widen if loss.quadratic or not share.short else 1.0
        m = min(round(widen * m), share.components)
        while m > 100 and not budget.gram_fits(m, max_bytes):
            m //= 2
    if settings.solver == "cg" and not loss.quadratic:
        raise ValueError(f"solver='cg' takes a quadratic loss. Got {loss.name!r}.")
    uses_cg = loss.quadratic and not settings.online and _takes_cg(settings, n, m)
    if not uses_cg:
        budget.check_gram(m, max_bytes)
    elif settings.solver == "cg" and members not in (None, 1):
        raise ValueError(f"solver='cg' takes n_members=1. Got n_members={members}.")
    holds_out = _distinct_rows(sample) >= rules.FEWEST_FOLDED
    free = (
        settings.share.mixes
        and members is None
        and settings.input_form is None
        and settings.max_iter > 0
    )
    if uses_cg or not holds_out:
        members = 1
    elif members is None:
        members = next((count for rows, count in rules.MEMBERS if n <= rows), 1)
        members = max(1, round(settings.share.members * members))
    rows_per_step = rules.ROWS_PER_STEP if members > 1 else rules.ROWS_PER_STEP_ALONE
    steps = rules.STEPS_LEAST + n // rows_per_step
    return replace(
        settings,
        n_components=m,
        n_members=members,
        mixes=free and holds_out and not uses_cg,
        holds_out=holds_out,
        uses_cg=uses_cg,
        max_iter=min(settings.max_iter, round(settings.share.steps * steps)),
    )


def _takes_cg(settings: FitSettings, n: int, m: int) -> bool:
    several = (settings.n_members or 1) > 1 and budget.gram_fits(m, settings.max_bytes)
    if settings.solver == "auto" and several:
        return False
    return budget.takes_cg(settings.solver, n, m, settings.max_bytes)


def _distinct_rows(sample: Sample) -> int:
    """Rows; where they are few, equal ones are one: a row of weight 2 is the same as two rows."""
    n = len(sample.weights)
    if rules.FEWEST_FOLDED <= n <= _COUNTED:
        both = np.hstack([as_array(sample.x), sample.y.reshape(n, -1)])
        n = len(np.unique(both, axis=0))
    return n


def plan_folds(sample: Sample, settings: FitSettings, loss: Loss) -> Folds:
    """Folds for as many members as there are to be; rows of one key have one fold."""
    n, members = len(sample.weights), settings.members
    keys, sizes = np.unique(sample.keys, return_counts=True)
    grouped = len(keys) < n
    if grouped and len(keys) < 2:
        raise ValueError(
            f"'groups' must have at least 2 groups with positive weight. Got {len(keys)}."
        )
    if not settings.holds_out:
        return Folds(sample.keys[:0], [-1])
    if members > n // 2:
        raise ValueError(
            f"'n_members' must be at most {n // 2} for {n} rows, so that each member has held-out "
            f"rows. Got {members}."
        )
    kinds = loss.kinds(sample.y)
    if members > 1:
        shares = [1 / members] * members
        if grouped:
            of_group = even_folds(sizes, min(members, len(keys)))
            folds = Folds(keys[1:], sorted(set(of_group.tolist())), of_group)
        else:
            folds = Folds(fold_cuts(sample.keys, shares), list(range(members)))
    else:
        share = max(settings.validation_fraction, min(1 / 3, rules.HELD_OUT_ROWS / n))
        if kinds is not None:  # a few rows of the rarer kinds are needed to choose by
            rare = n - np.bincount(kinds).max()
            share = max(share, min(1 / 3, rules.HELD_OUT_RARE / max(rare, 1)))
        if settings.uses_cg:
            share = min(share, _MOST_HELD_OUT / sample.used)
        shares = [1 - share, share]
        if grouped:
            held_out = held_out_groups(sizes, share * n)
            folds = Folds(keys[1:], [1], held_out.astype(np.intp))
        else:
            folds = Folds(fold_cuts(sample.keys, shares), [1])
    if kinds is None or n > _COPIES * len(keys):
        return folds
    return _deal_rare(folds, sample.keys, kinds, shares[-1], loss.needs_all_kinds)


def _deal_rare(
    folds: Folds, keys: Keys, kinds: NDArray[np.intp], share: float, needs_all: bool
) -> Folds:
    """Folds that each have their share of the rows of rare kinds, and not by chance.

    A member without such rows learns nothing of the kind, and a fold without any cannot judge it.
    Copies of a row share a key, and count as the rarest kind among them. Large groups stay where
    they are: moving them would make folds very unequal.
    """
    counts = np.bincount(kinds)
    order = np.lexsort((counts[kinds], keys))
    rows = len(keys)
    keys, first, sizes = np.unique(keys[order], return_index=True, return_counts=True)
    of_key = kinds[order][first]
    fold, of_member = np.full(len(keys), -1), np.array(folds.of_member)
    for kind in np.flatnonzero((counts > 0) & (counts * share < rules.DEALT_ROWS)):
        own = np.flatnonzero(of_key == kind)  # keys are random, and so is their order
        only = len(own) == 1
        own = own[sizes[own] <= share * rows / 2]
        count, place = len(own), np.arange(len(own))
        if only:
            if needs_all:  # of every member: it is in no one's fold
                fold[own] = _NOBODY
        elif folds.single:
            fold[own] = place < np.clip(round(share * count), 1, count - 1)
        else:
            fold[own] = of_member[(place + kind) % len(of_member)]
    at = np.flatnonzero(fold >= 0)
    found = replace(folds, dealt_keys=keys[at], dealt=fold[at])
    return found if len(at) and np.isin(of_member, found(keys)).all() else folds


def even_folds(sizes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The fold of each group, so that folds have about as many rows.

    The largest group goes first, each to the fold with fewest rows. Groups of one size are in
    random order, that of their keys.
    """
    of_group = np.zeros(len(sizes), np.intp)
    folds = [(0, fold) for fold in range(count)]  # a heap of rows and fold
    for group in np.argsort(-sizes, kind="stable"):
        rows, fold = folds[0]
        of_group[group] = fold
        heapq.heapreplace(folds, (rows + int(sizes[group]), fold))
    return of_group


def held_out_groups(sizes: NDArray[np.intp], wanted: float) -> NDArray[np.bool_]:
    """The groups to hold out, for about `wanted` rows.

    Groups are taken in their order if they bring the number of rows nearer to it. At least one is
    held out, and never all.
    """
    held_out = np.zeros(len(sizes), bool)
    rows = 0
    for group, size in enumerate(sizes):
        if abs(rows + size - wanted) < abs(rows - wanted):
            held_out[group] = True
            rows += size
    if not held_out.any():
        held_out[np.argmin(sizes)] = True
    elif held_out.all():
        held_out[np.argmax(sizes)] = False
    return held_out
