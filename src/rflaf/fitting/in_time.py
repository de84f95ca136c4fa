"""A fit that ends in time, with the best that it has by then."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

from rflaf import rules
from rflaf.fitting.fit import Fit, fit
from rflaf.fitting.settings import FitSettings
from rflaf.losses import Loss
from rflaf.rows import Rows
from rflaf.runtime.clock import Clock, OutOfTime, limited


def fit_in_time(rows: Rows, loss: Loss, settings: FitSettings) -> Fit:
    """The fit that settings ask for, or what of it was done when the time was over.

    Small fits come first, so that there is always one to give. The least has no limit: it takes a
    pass over the rows with few features. Each further one ends its learning early, so that time is
    left for solving, and is given up at the end of the time.
    """
    if settings.time_limit is None:
        return fit(rows, loss, settings)
    end = settings.started + rules.TIME_SHARE * settings.time_limit
    efforts = [*rules.EFFORTS][: [*rules.EFFORTS].index(settings.effort) + 1]
    before = monotonic()
    found = fit(rows, loss, replace(settings, effort=efforts[0]))
    for k, effort in enumerate(efforts[1:], 1):
        now = monotonic()
        left, taken, before = end - now, now - before, now
        if left < rules.HOPELESS * taken:
            return _without(found, efforts[k:])
        clock = Clock(now + rules.LEARNING_SHARE * left, end)
        try:
            with limited(clock):
                next_one = fit(rows, loss, replace(settings, effort=effort))
        except OutOfTime:
            return _without(found, efforts[k:])
        # scores are of other rows with every effort: only a fit that was cut short is compared
        if clock.cut and next_one.oof_score < found.oof_score:
            return _without(found, efforts[k:])
        left_out = [f"steps of learning with effort {effort!r}"] if clock.cut else []
        found = replace(next_one, left_out=left_out)
    return found


def _without(found: Fit, efforts: list[str]) -> Fit:
    """A fit that says which efforts it has left out."""
    return replace(found, left_out=[*found.left_out, *(f"effort {each!r}" for each in efforts)])
