"""Models of tables, and comparisons."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rflaf
from rflaf.tabular import TableError, compare_models, fit_table


def table(n=60, seed=0):
    """Fewer rows than the activation is learned from, so that a fit takes no time."""
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"x": rng.normal(size=n), "noise": rng.normal(size=n)})
    made["town"] = rng.choice(["Bern", "Uri", "Zug"], n)
    made.loc[::9, "town"] = None
    made.loc[::7, "noise"] = None
    made["wet"] = rng.random(n) < 0.5
    made["y"] = 2 * made["x"] + 3.0 * (made["town"] == "Uri")
    return made


def fit(frame=None, target="y", **parameters):
    frame = table() if frame is None else frame
    return fit_table(frame, target, **{"n_components": 40, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def model():
    return fit(table(150))


def test_it_learns(model):
    assert model.task == "regression"
    assert model.columns == {"x": "number", "noise": "number", "town": "category", "wet": "boolean"}
    assert model.scores["held_out_rows"] == 30
    assert model.scores["r2"] > 0.5
    new = table(seed=1)
    assert np.corrcoef(model.predict(new), new["y"])[0, 1] > 0.8
    assert (model.predict_std(new) > 0).all()
    with pytest.raises(TableError, match="no probabilities"):
        model.predict_proba(new)


def test_the_score_is_that_of_rows_the_fit_has_not_seen():
    """Noise cannot be predicted: a score near 1 would be that of rows seen."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=list("abcy"))
    found = fit(frame)
    assert found.scores["r2"] < 0.5
    assert fit(frame, validation=0).scores == {}
    assert fit(frame[:15]).scores == {}


def test_columns_in_any_order_and_levels_nobody_has_seen(model):
    new = table(seed=2)
    mixed = new[["wet", "y", "town", "noise", "x"]].assign(more=1)
    np.testing.assert_array_equal(model.predict(mixed), model.predict(new))
    with pytest.warns(UserWarning, match="unknown to the fit in column 'town' .such as 'Atlantis'"):
        far = model.predict(new.assign(town="Atlantis"))
    assert np.isfinite(far).all()


def test_names_that_are_numbers_and_lazy_tables():
    frame = table().set_axis([*range(4), "y"], axis=1)
    found = fit(frame, "y")
    np.testing.assert_array_equal(found.predict(frame[[3, 2, 1, 0]]), found.predict(frame))
    with pytest.raises(TypeError, match="collect it first"):
        found.predict(pl.from_pandas(table()).lazy())


def test_a_file_holds_all_of_it(model, tmp_path):
    rflaf.save(model, tmp_path / "m.skops")
    same = rflaf.load(tmp_path / "m.skops")
    new = table(seed=3)
    np.testing.assert_array_equal(same.predict(new), model.predict(new))
    assert (same.columns, same.scores, same.fitted) == (model.columns, model.scores, model.fitted)


@pytest.mark.parametrize(
    "classes", [["no", "yes"], [0, 7], [False, True], ["<b>", "a,b"], ["é", "None "]]
)
def test_classes_come_back_as_they_were(classes, tmp_path):
    frame = table()
    frame["kind"] = np.where(frame["y"] > 1, classes[1], classes[0])
    found = fit(frame.drop(columns="y"), "kind")
    assert found.task == "classification"
    rflaf.save(found, tmp_path / "m.skops")
    found = rflaf.load(tmp_path / "m.skops")
    assert sorted(found.classes.tolist()) == sorted(classes)
    assert set(found.predict(frame).tolist()) == set(classes)
    np.testing.assert_allclose(found.predict_proba(frame).sum(axis=1), 1, rtol=1e-6)
    with pytest.raises(TableError, match="no standard deviation"):
        found.predict_std(frame)


def test_rows_without_a_target_are_left_out():
    frame = table()
    frame.loc[:9, "y"] = None
    assert fit(frame).fitted["rows"] == 50
    with pytest.raises(TableError, match="missing in all rows"):
        fit(frame.assign(y=None))


def test_importances_are_those_of_the_columns(model):
    shares = model.importances()
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert set(shares) == {"x", "noise", "town", "wet"}
    assert set(map(str, model.estimator.feature_names_in_)) == set(shares)


def test_dates_and_text_need_no_drop_unless_strict():
    frame = table().assign(
        day=pd.date_range("2024-01-01", periods=60), who=[f"n{k}" for k in range(60)]
    )
    found = fit(frame)
    assert found.columns["day"] == "date"
    assert found.columns["who"] == "text"
    assert np.isfinite(found.predict(frame.drop(columns="y"))).all()
    with pytest.raises(
        TableError, match=r"'day' contains dates. Column 'who' is free text"
    ) as caught:
        fit(frame, strict=True)
    assert caught.value.columns == ["day", "who"]


@pytest.mark.parametrize("change", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_frames_of_other_libraries(change):
    frame = table().assign(who=[f"n{k}" for k in range(60)], row_id=range(60))
    with pytest.warns(UserWarning, match="Column 'row_id' looks like an identifier"):
        found = fit(change(frame))
    expected = fit(frame.drop(columns="row_id")).predict(frame)
    np.testing.assert_array_equal(found.predict(frame), expected)
    new = frame[["who", "wet", "town", "noise", "x"]]  # without the column that is left out
    np.testing.assert_array_equal(found.predict(change(new)), expected)
    with pytest.raises(TableError, match="lacks column 'x'"):
        found.predict(change(new[["who", "wet", "town", "noise"]]))


def test_tables_of_one_kind_of_column():
    frame = table()
    assert np.isfinite(fit(frame[["x", "y"]]).predict(frame)).all()
    assert np.isfinite(fit(frame[["town", "y"]]).predict(frame)).all()


@pytest.mark.parametrize(
    ("target", "parameters", "message"),
    [
        ("nope", {}, "no column 'nope'. Its columns are 'x'"),
        ("y", {"drop": ["nope"]}, "no column 'nope'"),
        ("y", {"drop": ["y"]}, "cannot be dropped"),
        ("y", {"validation": 1.0}, "'validation' parameter"),
        ("y", {"n_components": 0}, "n_components"),
    ],
)
def test_bad_arguments(target, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(target=target, **parameters)


def test_a_loss_for_numbers_means_regression():
    """Few distinct integers are classes otherwise, and counts are just that."""
    frame = table(200)
    frame["count"] = np.random.default_rng(0).poisson(np.exp(frame["x"] / 2))
    model = fit(frame.drop(columns="y"), "count", loss="poisson", effort="fast")
    assert (model.task, model.reason) == ("regression", "loss='poisson' is for numbers")
    with pytest.raises(TableError, match="is for regression"):
        fit(frame, "count", loss="poisson", task="classification")
    with pytest.raises(TableError, match="Regression needs numbers"):
        fit(frame.dropna(), "town", loss="poisson")


def test_the_same_seed_gives_the_same_model():
    first = fit().predict(table())
    np.testing.assert_array_equal(fit().predict(table()), first)
    assert not np.array_equal(fit(random_state=1).predict(table()), first)


@pytest.mark.parametrize("target", ["y", "town"])
def test_compare(target):
    frame = table().dropna()
    lines = list(compare_models(frame, target, n_components=20, folds=2))
    assert len({line.model for line in lines}) == 5
    assert {line.score for line in lines} == {"r2" if target == "y" else "accuracy"}
    assert all(len(line.scores) == 2 and line.fit_seconds > 0 for line in lines)
    assert lines[0].sd == pytest.approx(np.std(lines[0].scores, ddof=1))


def test_compare_refuses_too_many_folds():
    frame = table(30).assign(kind=["a"] * 28 + ["b"] * 2)
    with pytest.raises(TableError, match="fewer than 3 rows"):
        next(compare_models(frame, "kind", folds=3))
    with pytest.raises(TableError, match="'folds'"):
        next(compare_models(frame, "y", folds=31))


def test_a_quantile_and_a_power_reach_the_estimator():
    frame = table().assign(y=np.arange(60.0) + 1)
    high = fit(frame, loss="quantile", quantile=0.9)
    assert high.estimator.loss_.quantile == 0.9
    assert fit(frame, loss="tweedie", power=1.2).estimator.loss_.power == 1.2
    with pytest.raises(ValueError, match="'quantile' parameter of fit_table must be"):
        fit(frame, loss="quantile", quantile=2)
