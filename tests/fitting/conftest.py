"""What tests of fits share: rows on the way to members, and members to compare."""

import numpy as np

from rflaf.fitting.fit import encode_sample
from rflaf.fitting.folds import plan_folds, resolve
from rflaf.fitting.task import Task
from rflaf.losses import SquaredError
from rflaf.rows import ArrayRows


def rows_of(x, y, weights=None, keys=None):
    return ArrayRows(x, y, np.ones(len(y)) if weights is None else weights, keys=keys)


def sample_of(x, y, seed):
    return rows_of(x, y).sample(lambda _: 10**6, seed)


def task_of(rows, settings, loss=None, like=None):
    """The task of a fit. A loss that is open already, such as that of other targets, stays."""
    loss = SquaredError() if loss is None else loss
    sample = rows.sample(lambda _: 10**6, settings.seed, loss.tally)
    loss = loss.opened(sample, settings.fit_intercept) if like is None else like
    _, sample = encode_sample(sample, loss)
    settings = resolve(settings, sample, loss)
    folds = plan_folds(sample, settings, loss)
    return Task(sample, folds(sample.keys), folds, loss, settings)


def same_layer(one, other):
    """They are the same to the bit."""
    assert one.form.name == other.form.name
    assert one.components.tobytes() == other.components.tobytes()
    assert one.activation.coefficients.tobytes() == other.activation.coefficients.tobytes()
    assert one.alpha == other.alpha
    assert one.history == other.history
    tables = [
        () if each is None else [*each.tables, *(text.weights for text in each.texts)]
        for each in (one.means, other.means)
    ]
    for mine, its in zip(*tables, strict=True):
        assert mine.tobytes() == its.tobytes()


def bits_of(members):
    """All that members predict with, as bytes."""
    return b"".join(
        part.tobytes()
        for member in members
        for part in (member.layer.components, member.coef, member.intercept)
    )
