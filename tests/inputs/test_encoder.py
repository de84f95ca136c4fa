"""ColumnEncoder: what becomes of columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from rflaf.inputs import ColumnEncoder
from rflaf.inputs.opening import opened
from tests.inputs.conftest import mixed_frame, spoilt_rows


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def test_scikit_learn_contract():
    check_estimator(ColumnEncoder(), on_skip=None)


def test_numbers_and_booleans():
    frame = pd.DataFrame({"a": [1.0, None, 4.0, 2.0], "b": [True, None, False, True], "c": 5})
    encoder = ColumnEncoder().fit(frame)
    assert names(encoder) == ["a", "b", "c", "a_missing", "b_missing"]
    expected = [[1, 1, 5, 0, 0], [2, 1, 5, 1, 1], [4, 0, 5, 0, 0], [2, 1, 5, 0, 0]]
    np.testing.assert_array_equal(encoder.transform(frame), expected)
    # a gap in a column that had none: the median, and no column to say so
    late = pd.DataFrame({"a": [3.0], "b": [True], "c": [np.nan]})
    np.testing.assert_array_equal(encoder.transform(late), [[3, 1, 5, 0, 0]])


def test_levels_rare_ones_and_unknown_ones():
    values = ["a"] * 300 + ["b"] * 200 + ["c"] * 2 + ["d"] + [None] * 10
    frame = pd.DataFrame({"k": values})
    encoder = ColumnEncoder().fit(frame)
    assert names(encoder) == ["k_a", "k_b", "k_missing", "k_rare"]
    made = encoder.transform(pd.DataFrame({"k": ["a", "b", "c", "never seen", None, ""]}))
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]]
    np.testing.assert_array_equal(made, expected)
    # without rare levels there is nothing that an unknown one could be
    plain = ColumnEncoder().fit(frame[:500])
    np.testing.assert_array_equal(
        plain.transform(pd.DataFrame({"k": ["zz", None, "a"]}))[:2], np.zeros((2, 2))
    )


def test_the_order_of_rows_does_not_matter():
    frame, _ = mixed_frame()
    shuffled = frame.sample(frac=1, random_state=1)
    one, other = ColumnEncoder().fit(frame), ColumnEncoder().fit(shuffled)
    assert names(one) == names(other)
    np.testing.assert_array_equal(one.transform(frame), other.transform(frame))


@pytest.mark.parametrize("kind", ["numbers", "two classes", "classes", "many targets"])
def test_no_row_sees_its_own_target(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.choice([f"l{k}" for k in range(60)], 400)})
    y = {
        "numbers": rng.normal(size=400),
        "two classes": rng.integers(0, 2, 400),
        "classes": rng.choice(["x", "y", "z"], 400),
        "many targets": rng.normal(size=(400, 2)),
    }[kind]
    encoder = ColumnEncoder(random_state=0)
    before = encoder.fit_transform(frame, y)
    assert before.shape[1] == {"classes": 3, "many targets": 2}.get(kind, 1)
    for row in (0, 17, 399):
        spoilt = y.copy()
        if kind == "classes":
            spoilt[row] = "x" if y[row] != "x" else "y"
        else:
            spoilt[row] = 1 - y[row] if kind == "two classes" else 1e9
        after = encoder.fit_transform(frame, spoilt)
        np.testing.assert_array_equal(after[row], before[row])
        assert not np.array_equal(after, before)  # others have seen it


def test_means_by_level_generalise():
    """Those of all rows would tell the target of pure noise; those of other rows do not."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"k": rng.choice([f"l{k}" for k in range(200)], 1000)})
    noise = rng.normal(size=1000)
    unseen = ColumnEncoder(random_state=0).fit_transform(frame, noise)[:, 0]
    assert abs(np.corrcoef(unseen, noise)[0, 1]) < 0.15
    effect = frame["k"].str[1:].astype(int).to_numpy() / 50.0
    found = ColumnEncoder(random_state=0).fit(frame, effect + 0.1 * noise)
    assert np.corrcoef(found.transform(frame)[:, 0], effect)[0, 1] > 0.99
    # an unknown level, and a missing one of which the fit had none, have the mean of all
    rows = pd.DataFrame({"k": ["never seen", None, "l0"]})
    np.testing.assert_allclose(found.transform(rows)[:2, 0], np.mean(effect + 0.1 * noise))


def test_rows_of_weight_zero_do_not_count():
    frame, y = mixed_frame()
    weights = np.ones(len(y))
    weights[::3] = 0
    odd = frame.assign(zone=np.where(weights > 0, frame["zone"], "elsewhere"))
    odd.loc[weights == 0, ["size", "town", "day"]] = [99.0, "Atlantis", pd.Timestamp("1980-01-01")]
    one = ColumnEncoder().fit(odd, y, sample_weight=weights)
    other = ColumnEncoder().fit(frame[weights > 0], y[weights > 0])
    assert names(one) == names(other)
    np.testing.assert_allclose(one.transform(frame), other.transform(frame), rtol=1e-12)
    X = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 1.0], [np.nan, np.nan]])
    made = ColumnEncoder().fit(X, sample_weight=[0, 2, 2, 0])
    assert names(made) == ["x0", "x1"]
    np.testing.assert_array_equal(made.transform(X)[[0, 3]], [[1, 2], [3, 2]])
    with pytest.raises(ValueError, match="zero"):
        ColumnEncoder().fit(X, sample_weight=np.zeros(4))


def test_codes_in_place_of_targets():
    frame, y = mixed_frame()
    encoder = ColumnEncoder()
    inputs = opened(encoder, frame, reset=True)
    x = encoder.learn_columns(encoder, inputs, np.ones(len(y)))
    (at,) = encoder.coded.columns
    assert names(encoder)[at] == "zone_level"
    levels = sorted(frame["zone"].unique())
    assert encoder.coded.sizes == (len(levels) + 2,)
    assert [levels[int(code)] for code in x[:, at]] == frame["zone"].tolist()
    rows = encoder.encode(opened(encoder, spoilt_rows(frame), reset=False, numeric=False))
    assert rows[[3, 1], at].tolist() == [len(levels), len(levels) + 1]  # missing, unknown
    assert encoder.means_ is None
    # the public transformer has means in their place, after all others
    public = ColumnEncoder(random_state=0).fit(frame, y)
    assert public.coded is None
    assert names(public) == [*(n for n in names(encoder) if n != "zone_level"), "zone_mean"]
    assert public.origin_.tolist() == [*np.delete(encoder.origin_, at), encoder.origin_[at]]
    assert public.means_.of_fold == {}
    np.testing.assert_array_equal(
        public.transform(frame)[:, -1], public.means_.tables[0][x[:, at].astype(int), 0]
    )
    few = ColumnEncoder().fit(frame[["size", "town"]], y)
    assert few.means_ is None
    assert few.coded is None
    blind = ColumnEncoder().fit(frame)
    assert blind.means_ is None
    assert "zone_rare" in names(blind)  # one-hot, because there is no target


def test_dates():
    day = pd.to_datetime(["2024-01-01 00:00", "2024-01-02 06:00", "2024-07-01 12:00", None])
    frame = pd.DataFrame({"day": day})
    encoder = ColumnEncoder().fit(frame)
    expected = ["days", "week_sin", "week_cos", "day_sin", "day_cos", "missing"]
    assert names(encoder) == [f"day_{name}" for name in expected]
    made = encoder.transform(frame)
    np.testing.assert_allclose(made[:, 0], [0, 1.25, 182.5, 1.25])
    np.testing.assert_allclose(made[1, 3:5], [1, 0], atol=1e-9)  # six o'clock
    np.testing.assert_array_equal(made[3, 1:], [0, 0, 0, 0, 1])
    whole = pd.DataFrame({"day": pd.date_range("2023-01-01", periods=800).astype(str)})
    found = ColumnEncoder().fit(whole)
    assert names(found) == [
        "day_days",
        "day_year_sin",
        "day_year_cos",
        "day_week_sin",
        "day_week_cos",
    ]
    made = found.transform(whole)
    np.testing.assert_allclose(made[0, 1:3], made[365, 1:3], atol=0.02)
    np.testing.assert_allclose(made[0, 3:], made[7, 3:], atol=1e-9)


def test_two_columns_of_dates_have_their_distance():
    frame, _ = mixed_frame()
    encoder = ColumnEncoder().fit(frame[["day", "until"]])
    at = names(encoder).index("until_since_day")
    expected = (frame["until"] - frame["day"]) / pd.Timedelta("1D")
    np.testing.assert_allclose(encoder.transform(frame[["day", "until"]])[:, at], expected)


def test_dates_are_read_as_in_the_fit():
    frame = pd.DataFrame({"day": [f"{k}/3/2024" for k in range(1, 29)]})
    encoder = ColumnEncoder().fit(frame)
    made = encoder.transform(pd.DataFrame({"day": ["5/3/2024", "2024-03-06"]}))
    np.testing.assert_allclose(made[:, 0], [4, 5])
    with pytest.raises(ValueError, match=r"'day' held dates in the fit\..* Got 'soon'"):
        encoder.transform(pd.DataFrame({"day": ["5/3/2024", "soon"]}))


def test_one_warning_names_what_is_left_out():
    frame = pd.DataFrame({"x": range(50), "row_id": range(50), "lists": [[k] for k in range(50)]})
    frame["power"] = [str(k) if k else "?" for k in range(50)]
    with pytest.warns(UserWarning, match="ignored") as caught:
        encoder = ColumnEncoder().fit(frame)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    for part in (
        "'row_id' looks like an identifier",
        "'lists' contains values of type list",
        "categorical_features",
        "'?'",
    ):
        assert part in str(caught[0].message)
    assert names(encoder) == ["x", "power", "power_missing"]
    kept = ColumnEncoder(["row_id", "power"]).fit(frame.drop(columns="lists"))
    assert kept.kinds_ == ["number", "category", "category"]


def test_nothing_to_learn_from():
    with (
        pytest.warns(UserWarning, match="ignored"),
        pytest.raises(ValueError, match="no usable column"),
    ):
        ColumnEncoder().fit(pd.DataFrame({"row_id": range(50)}))
    with pytest.raises(ValueError, match="no usable column"):
        ColumnEncoder().fit(np.full((5, 2), np.nan))


def test_which_columns_are_categories():
    X = np.array([[1.0, 10.0], [2.0, 20.0], [1.0, np.nan], [2.0, 40.0]])
    for given in ([0], [True, False]):
        assert names(ColumnEncoder(given).fit(X)) == ["x1", "x1_missing", "x0_1", "x0_2"]
    frame = pd.DataFrame(X, columns=["a", "b"])
    encoder = ColumnEncoder(["a"]).fit(frame)
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"a": ["1", "2"], "b": [1, 2]}))[:, 2:], np.eye(2)
    )
    for given, message in (
        (["z"], "must be columns of X. Got 'z'"),
        ([7], "between 0 and 1"),
        ([True], "a mask of 2"),
    ):
        with pytest.raises(ValueError, match=message):
            ColumnEncoder(given).fit(frame)
    with pytest.raises(ValueError, match="'k' is a category, and 'categorical_features' is None"):
        ColumnEncoder(None).fit(pd.DataFrame({"k": list("abab")}))


def test_what_does_not_fit_the_fit_is_named():
    frame, _ = mixed_frame()
    encoder = ColumnEncoder().fit(frame)
    for change, message in (
        ({"size": "big"}, "'size' was numeric in the fit. Got 'big'"),
        ({"day": 3}, "'day' held dates in the fit. Got numbers"),
        ({"size": np.inf}, "infinity, or a number too large for a float, in column 'size'"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder.transform(frame[:2].assign(**change))
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(frame[["wet", "size", "town", "zone", "day", "until"]])


def test_polars_pandas_and_arrays_of_objects_agree():
    frame, y = mixed_frame()
    encoder = ColumnEncoder(random_state=0)
    made = encoder.fit_transform(frame, y)
    assert np.isfinite(made).all()
    other = clone(encoder)
    np.testing.assert_array_equal(other.fit_transform(pl.from_pandas(frame), y), made)
    rows = spoilt_rows(frame)
    np.testing.assert_array_equal(other.transform(pl.from_pandas(rows)), encoder.transform(rows))
    with pytest.warns(UserWarning, match="valid feature names"):
        found = encoder.transform(rows.to_numpy(dtype=object))
    np.testing.assert_array_equal(found, encoder.transform(rows))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_as_a_frame(library):
    frame, y = mixed_frame()
    encoder = ColumnEncoder(random_state=0).set_output(transform=library)
    made = encoder.fit_transform(frame, y)
    assert list(made.columns) == names(encoder)


def test_a_matrix_without_gaps_is_handed_on():
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    encoder = ColumnEncoder().fit(X)
    assert encoder.is_identity
    assert encoder.transform(X) is X
    X[3, 1] = np.nan
    assert encoder.transform(X).dtype == np.float32
    assert ColumnEncoder().fit(X).transform(X).shape == (30, 4)
