"""Effects of all columns from one projection, against predictions of all changed rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.report.effects import effects_of
from rflaf.report.evidence import on_test_rows
from rflaf.report.given_rows import GivenRows
from rflaf.report.subject import Subject

FEW = {"n_components": 40, "n_members": 2, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """Numbers with gaps, categories of few and of many levels, two dates."""
    rng = np.random.default_rng(0)
    n = 900
    a, b = rng.uniform(-1, 1, (2, n))
    town = rng.integers(0, 50, n)
    first = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    X = pd.DataFrame({
        "a": a,
        "b": np.where(rng.random(n) < 0.02, np.nan, b),
        "kind": pd.Categorical(rng.choice(["x", "y"], n)),
        "town": pd.Categorical([f"t{k}" for k in town]),
        "start": first,
        "end": first + pd.to_timedelta(rng.integers(1, 400, n), "D"),
    })  # fmt: skip
    y = np.sign(np.sin(9 * a) * np.sin(7 * b)) + 0.5 * (X["kind"] == "x") + 0.1 * np.sin(town)
    return X, y.to_numpy()


def compare(model, rows, tol=2e-5):
    """Effects and those of each member, with what the definition gives."""
    subject, rows, some = Subject(model), GivenRows(rows, "X"), np.arange(30)
    donors = {j: np.array([50, 61, 72]) for j in range(rows.width)}
    for j, mean, by_member in subject.effects(rows, some, donors):
        changed = rows.mixed(np.tile(some, 3), j, np.repeat(donors[j], len(some)))
        found = [subject.outputs(changed), *subject.member_outputs(changed)]
        expected = np.array(found).reshape(len(found), 3, len(some), -1).mean(axis=2)
        assert by_member.shape == expected[1:].shape
        unit = np.abs(expected).max()
        np.testing.assert_allclose(mean, expected[0], atol=tol * unit, err_msg=str(j))
        np.testing.assert_allclose(by_member, expected[1:], atol=tol * unit, err_msg=str(j))


def test_numbers_categories_and_local_models(table):
    pytest.importorskip("sklearn", minversion="1.7")
    X, y = table[0].iloc[:, :4], table[1]
    model = RFLAFRegressor(**FEW, input_form="raw").fit(X, y)
    assert all(member.local for member in model.members_)
    rows = X.dropna()[:150]
    subject = Subject(model)
    effects = effects_of(subject, on_test_rows(subject, rows, y[:150]), [0, 1, 2, 3], list(X))
    assert [len(effect.at) for effect in effects] == [25, 25, 2, 12]
    for effect in effects:
        name = effect.column.name
        expected = partial_dependence(
            model, rows, [name], method="brute", custom_values={name: effect.at},
            categorical_features=["kind", "town"],
        )  # fmt: skip
        np.testing.assert_allclose(effect.mean[:, 0], expected["average"][0], atol=2e-5)
        assert (effect.spread is None) == (effect.column.kind == "category")
    compare(model, X)


def test_columns_with_an_input_in_common(table):
    """Days between two dates belong to both."""
    X, _ = table
    y = (X["end"] - X["start"]).dt.days / 400 + X["a"]
    model = RFLAFRegressor(**FEW, max_iter=10).fit(X, y)
    assert model.encoder_.tied == {4, 5}
    compare(model, X)


@pytest.mark.parametrize("form", ["raw", "both", "ranks", "bins"])
def test_every_form_and_rows_beyond_the_fit(form):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    y = np.column_stack([X[:, 0] * X[:, 1] + X[:, 2], X[:, 3]])
    model = RFLAFRegressor(**FEW, input_form=form, max_iter=10).fit(X, y)
    compare(model, X)
    with pytest.warns(UserWarning, match="outside the range"):
        compare(model, 3 * X)


def test_classes_links_and_constraints():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    y = X[:, 0] + X[:, 1] ** 2
    compare(RFLAFClassifier(**FEW, max_iter=10).fit(X, np.digitize(y, [0, 0.5])), X)
    compare(RFLAFRegressor(**FEW, max_iter=10, loss="gamma").fit(X, np.exp(y)), X)
    compare(RFLAFRegressor(**FEW, max_iter=10, monotonic_cst=[1, 0, 0]).fit(X, y), X)
