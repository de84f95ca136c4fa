"""Rows of any kind, and effects of their columns."""

import datetime
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from rflaf import RFLAFRegressor
from rflaf.report import write_report
from rflaf.report.baselines import fit_baselines
from rflaf.report.effects import effects_of
from rflaf.report.evidence import Evidence, TrainingRows, on_test_rows
from rflaf.report.given_rows import GivenRows, as_column
from rflaf.report.scores import log_loss, r_squared
from rflaf.report.subject import Subject
from tests.report.made_models import FEW, frame, numbers

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def mixed_frame(n=120):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    return pd.DataFrame({
        "size": rng.normal(size=n),
        "town": pd.Categorical(rng.choice(["Bern", "Uri", "Zug"], n)),
        "day": days,
        "rooms": pd.array(rng.integers(1, 9, n), "Int64"),
        "new": rng.random(n) < 0.5,
    })  # fmt: skip


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12.0).reshape(4, 3),
        sparse.csr_matrix(np.arange(12.0).reshape(4, 3)),
        pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "c"], index=[3, 3, 1, 0]),
        pd.DataFrame(np.arange(12.0).reshape(4, 3), index=[3, 3, 1, 0]),
        polars.DataFrame(np.arange(12.0).reshape(4, 3), schema=["a", "b", "c"]),
        pyarrow.table(dict(zip("abc", np.arange(12.0).reshape(4, 3).T))),
    ],
    ids=["array", "sparse", "pandas", "numbered pandas", "polars", "arrow"],
)
def test_rows_and_columns_by_position(X):
    rows = GivenRows(X, "X_test")
    assert (rows.count, rows.width, len(rows.labels)) == (4, 3, 4)
    found = rows.mixed(np.array([0, 0, 3]), 1, np.array([2, 1, 0]))
    assert type(found) is type(X)
    found = found.toarray() if sparse.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(found, [[0, 7, 2], [0, 4, 2], [9, 1, 11]])
    np.testing.assert_array_equal(rows.column(2, "c").values, [2, 5, 8, 11])
    np.testing.assert_array_equal(np.asarray(rows.X.toarray() if sparse.issparse(X) else X)[0],
                                  [0, 1, 2])  # fmt: skip  # what was given stays as it was


def test_what_columns_hold():
    X = mixed_frame()
    X.loc[:9, ["size", "town", "day", "rooms"]] = None
    rows = GivenRows(X, "X_test")
    columns = [rows.column(j, name) for j, name in enumerate(X)]
    assert [c.kind for c in columns] == ["number", "category", "date", "number", "category"]
    assert [int(c.present.sum()) for c in columns] == [110, 110, 110, 110, 120]
    assert columns[4].levels[0].tolist() == ["False", "True"]
    there = columns[2].values[columns[2].present]
    assert 2019.9 < there.min() < there.max() < 2022.6
    types = rows.mixed(np.arange(20), 1, np.arange(20, 40)).dtypes
    assert (types == X.dtypes).all(), "columns keep their types"
    for other in (polars.from_pandas(X), pyarrow.Table.from_pandas(X)):
        same = GivenRows(other, "X_test")
        assert same.labels[:2] == ["0", "1"]
        for j, column in enumerate(columns):
            found = same.column(j, column.name)
            assert found.kind == column.kind
            np.testing.assert_array_equal(found.values, column.values)
        changed = same.mixed(np.arange(20), 1, np.arange(20, 40))
        assert type(changed) is type(other)
        assert changed.schema == other.schema


def test_odd_objects():
    assert as_column(np.array([pd.NA, 1, 2.5, None], object), "a").kind == "number"
    mixed = as_column(np.array([1, "b", pd.NaT, datetime.date(2020, 1, 2)], object), "a")
    assert mixed.values.tolist() == ["1", "b", None, "2020-01-02"]
    assert not as_column(np.array([None, None], object), "a").present.any()
    spans = as_column(np.array([datetime.timedelta(hours=12), None], object), "a")
    assert spans.values[0] == 0.5, "days"
    assert as_column(np.array([{1}, {2}], object), "a").values.tolist() == ["{1}", "{2}"]


class Known:
    """A model whose effects are known: 2 a, plus 5 where b is "x"."""

    feature_importances_ = np.array([0.5, 0.5])

    def predict(self, X):
        return 2.0 * X["a"].to_numpy() + 5.0 * (X["b"] == "x").to_numpy()


def test_effects_are_those_of_the_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.choice(["x", "y"], 150)})
    model = Known()
    subject = Subject(model)
    evidence = on_test_rows(subject, X, model.predict(X))
    slope, step = effects_of(subject, evidence, [0, 1], ["a", "b"])
    assert len(slope.at) == 25
    np.testing.assert_allclose(np.diff(slope.mean[:, 0]), 2 * np.diff(slope.at))
    assert slope.mean.mean() == pytest.approx(
        2 * slope.at.mean() + 5 * (X["b"] == "x").mean(), abs=1e-9
    )
    assert step.at.tolist() == ["x", "y"]
    assert step.counts.tolist() == X["b"].value_counts()[["x", "y"]].tolist()
    assert step.mean[0, 0] - step.mean[1, 0] == pytest.approx(5)
    assert slope.spread is None  # it has no members
    same = X.assign(b="x")
    rows = GivenRows(same, "X"), np.arange(150)
    evidence = Evidence("rows", *rows, evidence.y, evidence.predicted)
    assert effects_of(subject, evidence, [1], ["a", "b"]) == []


def test_effects_have_a_band_between_members():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 2))
    model = RFLAFRegressor(30, n_members=3, input_form="raw", max_iter=3, random_state=0)
    subject = Subject(model.fit(X, X[:, 0] ** 2))
    evidence = on_test_rows(subject, X, X[:, 0] ** 2)
    (effect,) = effects_of(subject, evidence, [0], ["a", "b"])
    alone = np.stack(subject.member_outputs(X))
    weights = [member.weight for member in model.members_]
    np.testing.assert_allclose(np.average(alone, axis=0, weights=weights)[:, 0], model.predict(X))
    assert len(model.members_) == 3
    assert effect.spread.shape == effect.mean.shape
    assert 0 < effect.spread.max() < 0.5 * np.ptp(effect.mean)
    model.members_ = [replace(member, layer=model.members_[0].layer, coef=model.members_[0].coef,
                              local=()) for member in model.members_]  # fmt: skip
    (effect,) = effects_of(subject, evidence, [0], ["a", "b"])
    assert effect.spread.max() < 1e-9  # intercepts do not count


@pytest.mark.parametrize("classes", [None, 2])
def test_the_linear_model_takes_columns_of_any_kind(classes):
    X = mixed_frame()
    names = [str(name) for name in X]
    y = (X["size"].fillna(0) * 2 + (X["town"] == "Uri") * 4.0).to_numpy()[:, None]
    y = y if classes is None else (y[:, 0] > np.median(y)).astype(int)
    predicted = np.zeros((120, classes or 1))
    evidence = Evidence("test rows", GivenRows(X, "X"), np.arange(120), y, predicted)
    training = TrainingRows(GivenRows(X.assign(town=X["town"].astype(str)), "X"), y)
    for rows in (training, None):
        found = fit_baselines(evidence, rows, names, classes).predictions
        if classes is None:
            assert r_squared(y, found["linear"]) > 0.9 > 0.1 > r_squared(y, found["constant"])
        else:
            assert log_loss(y, found["linear"]) < 0.5 * log_loss(y, found["constant"])


def test_a_pipeline_with_columns_of_any_kind(tmp_path):
    X = mixed_frame()
    y = X["size"] * 2 + (X["town"] == "Uri") * 4.0

    def years(days):
        return days.apply(lambda day: day.dt.year + day.dt.day_of_year / 366)

    parts = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]),
        (FunctionTransformer(years, feature_names_out="one-to-one"), ["day"]),
        remainder="passthrough",
    )
    model = make_pipeline(parts, RFLAFRegressor(**FEW)).fit(X[:90], y[:90])
    rows = {"X_train": X[:90], "y_train": y[:90]}
    text = write_report(model, tmp_path / "a.html", X[90:], y[90:], target="price", **rows)
    text = text.read_text(encoding="utf-8")
    assert "<td>dates</td>" in text
    worst = text.split('id="rows"')[1].split("</section>")[0]
    assert re.search(r'<td class="number " data-value="202\d\.\d+">202\d-\d\d-\d\d</td>', worst)
    assert "town: price" in text
    shares = Subject(model).importances(GivenRows(X[90:], "X_test"))
    assert np.argsort(-shares)[:2].tolist() in ([0, 1], [1, 0])
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["polars", "arrow", "sparse", "array"])
def test_other_forms_of_rows_give_a_page(tmp_path, kind):
    X = frame(110)
    y = numbers(X).to_numpy()
    X.columns = list("abcd")
    kinds = {"polars": polars.from_pandas, "arrow": pyarrow.Table.from_pandas}
    given = {**kinds, "sparse": sparse.csr_matrix, "array": np.asarray}[kind](X)
    model = RFLAFRegressor(**FEW).fit(given, y)
    text = model.report(tmp_path / "a.html", given, y).read_text(encoding="utf-8")
    assert ("<figcaption>a</figcaption>" if kind in kinds else "<figcaption>x0") in text
    assert "Largest residuals" in text


def test_text_dates_are_dates_and_missing_values_have_a_bar(tmp_path):
    """A CSV file has text where a frame has dates."""
    X = mixed_frame(300)
    X["day"] = X["day"].dt.strftime("%d/%m/%Y")
    X.loc[::3, "town"] = None
    X.loc[:4, "day"] = None
    y = X["size"] + 2 * X["town"].isna() + pd.to_datetime(X["day"], dayfirst=True).dt.month / 6
    model = RFLAFRegressor(40, n_members=1, random_state=0).fit(X, y.fillna(0))
    page = tmp_path / "page.html"
    write_report(model, page, X, y.fillna(0))
    subject = Subject(model)
    early = X[X["day"].str[:2].fillna("31").astype(int) <= 12]  # days that could be months
    for rows in (X, early):
        expected = pd.to_datetime(rows["day"], format="%d/%m/%Y") - pd.Timestamp("1970-01-01")
        dated = GivenRows(rows, "X_test", subject.dates).column(2, "day")
        assert dated.kind == "date"
        assert (dated.present == expected.notna()).all()
        days = 365.2425 * (dated.values[dated.present] - 1970)
        np.testing.assert_allclose(days, expected.dropna().dt.days, atol=0.01)
    town, day = effects_of(subject, on_test_rows(subject, X, y.fillna(0)), [1, 2], list(X))
    assert town.at.tolist() == ["Bern", "Uri", "Zug", None]
    assert town.counts.sum() == 300
    assert (town.mean[-1] > town.mean[:-1] + 1).all()
    assert day.counts is None
    assert re.search(r"missing.{0,400}33%", page.read_text(), re.DOTALL)


def test_a_model_of_equal_targets_gives_a_page(tmp_path):
    """Its distributions have no width, and therefore no density."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = RFLAFRegressor(10, max_iter=2, random_state=0).fit(X, np.ones(60))
    for y in (np.ones(60), X[:, 0]):
        page = model.report(tmp_path / "equal.html", X, y).read_text(encoding="utf-8")
        assert "Prediction intervals" in page
        assert "PIT histogram" not in page
