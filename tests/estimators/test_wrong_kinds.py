"""Text and dates where numbers are wanted: the error says what to do."""

import datetime

import numpy as np
import pandas as pd
import pytest

from rflaf import RFLAFRegressor

X = np.random.default_rng(0).standard_normal((60, 3))
TEXT = ["a", "b"] * 30
DAYS = pd.date_range("2020-01-01", periods=60)


def fit(X, y, **options):
    return RFLAFRegressor(n_components=20, n_members=1, **options).fit(X, y)


@pytest.mark.parametrize(
    "y",
    [np.array(TEXT), np.array(TEXT, object), pd.Series(TEXT), pd.Series(TEXT, dtype="category")],
    ids=["str", "object", "series", "category"],
)
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_text_as_target_asks_for_the_classifier(y, loss):
    with pytest.raises(ValueError, match=r"the text 'a'.*: use RFLAFClassifier"):
        fit(X, y, loss=loss)


@pytest.mark.parametrize(
    "y",
    [DAYS, pd.Series(DAYS), list(DAYS.date), np.arange(60).astype("timedelta64[s]")],
    ids=["index", "series", "objects", "durations"],
)
def test_dates_as_target_are_refused(y):
    with pytest.raises(ValueError, match="'y' must be numbers"):
        fit(X, y)


def test_text_that_is_a_number_and_truth_values_are_numbers():
    assert np.isfinite(fit(X, np.array(["1.5", "2"] * 30)).oof_score_)
    assert np.isfinite(fit(X, np.array([True, False] * 30)).oof_score_)


@pytest.mark.parametrize("column", [TEXT, [datetime.date(2020, 1, 1)] * 60], ids=["text", "dates"])
def test_an_array_with_text_asks_for_the_frame(column):
    given = np.column_stack([X.astype(object), np.array(column, object)])
    with pytest.raises(ValueError, match=r"text or dates in column 3: pass the frame"):
        fit(given, X[:, 0])
