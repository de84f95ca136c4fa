"""`monotonic_cst`: no pair of rows is in the wrong order, wherever they are."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save
from rflaf.fitting.monotone import isotonic
from rflaf.rows import Arrays

SMALL = {"n_components": 60, "n_members": 2, "max_iter": 10, "random_state": 0}
SIGNS = np.array([1, -1, 0, 1, 0])


def table(n=400, seed=0):
    """Targets that rise in column 0 and fall in column 1; column 3 goes against its constraint."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    y = np.exp(X[:, 0]) * (2 - X[:, 1]) + np.sin(4 * X[:, 2]) - X[:, 3] + X[:, 4] ** 2
    return X, y + 0.5 * rng.standard_normal(n)


def worst(score, X, signs, count=10_000, seed=1):
    """How far scores go the wrong way at most, in pairs inside the range of X."""
    rng = np.random.default_rng(seed)
    found = []
    columns = np.flatnonzero(signs)
    for j in columns:
        low = rng.uniform(X.min(axis=0), X.max(axis=0), (count // len(columns) + 1, X.shape[1]))
        high = low.copy()
        low[:, j], high[:, j] = np.sort([low[:, j], rng.permutation(low[:, j])], axis=0)
        found.append((signs[j] * (score(low) - score(high))).max())
    return max(found)


@pytest.fixture(scope="module")
def model():
    return RFLAFRegressor(**SMALL, monotonic_cst=SIGNS).fit(*table())


def test_isotonic_regression_is_that_of_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal((7, 12)), rng.uniform(0.1, 1, 12)
    for sign in (1, -1):
        theirs = IsotonicRegression(increasing=sign > 0)
        expected = [
            theirs.fit_transform(np.arange(12), row, sample_weight=weights) for row in values
        ]
        np.testing.assert_allclose(isotonic(values, weights, 1, sign), expected, atol=1e-12)


def test_no_pair_goes_the_wrong_way(model):
    X, y = table()
    plain = RFLAFRegressor(**SMALL).fit(X, y)
    assert worst(plain.predict, X, SIGNS) > 0.1  # so that there is something to do
    assert worst(model.predict, X, SIGNS) < 1e-5


@pytest.mark.parametrize("form", ["raw", "both", "bins"])
def test_no_pair_goes_the_wrong_way_in_any_form(form):
    X, y = table()
    signs = [0, -1, 0, 0, 0]
    model = RFLAFRegressor(**SMALL, input_form=form, monotonic_cst=signs).fit(X, y)
    assert worst(model.predict, X, np.array(signs), 2000) < 1e-5


def test_eight_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 8))
    model = RFLAFRegressor(**SMALL, monotonic_cst=[1] * 8).fit(X, X.sum(axis=1))
    assert worst(model.predict, X, np.ones(8), 2000) < 1e-5
    assert model.oof_score_ > 0.9


def test_a_monotone_truth_loses_nothing():
    X, y = table(1500)
    signs, test = [1, -1, 0, 0, 0], slice(900, None)
    errors = []
    for cst in (None, signs):
        model = RFLAFRegressor(**SMALL, monotonic_cst=cst).fit(X[:900], y[:900])
        errors.append(np.mean((model.predict(X[test]) - y[test]) ** 2) ** 0.5)
    assert errors[1] < 1.03 * errors[0]


def test_out_of_fold_predictions_obey_too(model):
    """Errors, and so intervals, are those of the constrained model."""
    X, y = table()
    plain = RFLAFRegressor(**SMALL).fit(X, y)
    assert model.oof_score_ < plain.oof_score_ - 0.01  # column 3 goes the other way
    low, high = model.predict_interval(X)
    assert 0.85 < np.mean((low < y) & (y < high)) <= 1


def test_classes_of_a_frame_by_names_with_weights_and_missing_values():
    X, y = table(600)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(f=np.where(X[:, 2] > 0, "x", "y"))
    frame.loc[::7, "a"] = np.nan
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    model = RFLAFClassifier(**SMALL, monotonic_cst={"a": -1, "d": 1})
    model.fit(frame, np.where(y > np.median(y), "yes", "no"), sample_weight=weights)
    text = np.where(np.arange(2001) % 3, "x", "y")

    def score(rows):
        part = pd.DataFrame(rows, columns=list("abcde"))
        return model.decision_function(part.assign(f=text[: len(rows)]))

    assert worst(score, X, np.array([-1, 0, 0, 1, 0]), 4000) < 1e-5


def test_streams_files_and_more_rows(tmp_path):
    X, y = table()
    model = RFLAFRegressor(**SMALL, monotonic_cst=SIGNS)
    streamed = model.fit(Arrays(X, y)).predict(X[:50])
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X[:50]), streamed)
    model = RFLAFRegressor(**SMALL, monotonic_cst=SIGNS)
    model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert worst(model.predict, X, SIGNS, 1500) < 1e-5


def test_counts_through_a_link():
    X, y = table()
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y))
    model = RFLAFRegressor(**SMALL, loss="poisson", monotonic_cst=SIGNS).fit(X, counts)
    assert worst(model.predict, X, SIGNS, 1500) < 1e-5 * counts.max()


def test_sparse_rows_are_predicted_as_dense_ones(model):
    X, _ = table()
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X[:20])), model.predict(X[:20]))


def test_one_row_at_a_time_is_the_same(model):
    X, _ = table()
    single = np.concatenate([model.predict(row[None]) for row in X[:5]])
    np.testing.assert_allclose(single, model.predict(X[:5]), rtol=1e-5)


def test_attributions_add_up(model):
    X, _ = table()
    why = model.explain(X[:5])
    np.testing.assert_allclose(why.values.sum(axis=1) + why.base_values, model.predict(X[:5]))


def test_onnx(tmp_path):
    pytest.importorskip("onnxruntime")
    from rflaf.onnx import export

    X, y = table()
    for cst in ([1, 0, 0, 0, 0], SIGNS):
        model = RFLAFRegressor(**SMALL, monotonic_cst=cst).fit(X, y)
        for dtype in ("float32", "float64"):
            export(model, tmp_path / "model.onnx", dtype=dtype, check=X.astype(np.float32))


def test_gradients_are_those_of_the_constrained_scores(model):
    X, _ = table(200, seed=5)
    X[:40, 0] *= 1.5  # some of them outside the training range
    gradient, step = model.gradient(X), 3e-4
    here, tol = model.predict(X), 2e-3 * np.abs(gradient).max()
    assert (SIGNS * gradient >= 0).all()
    assert (gradient[:, 3] == 0).any()  # where the constraint holds the score
    for j in range(5):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        sides = np.array([model.predict(up) - here, here - model.predict(down)]) / step
        least, most = sides.min(axis=0) - tol, sides.max(axis=0) + tol
        assert ((least <= gradient[:, j]) & (gradient[:, j] <= most)).all()
        assert np.mean(most - least > 3 * tol) < 0.1  # rows at a kink


def test_gradients_of_classes_and_of_a_module():
    torch = pytest.importorskip("torch")
    X, y = table()
    model = RFLAFClassifier(**SMALL, monotonic_cst=SIGNS).fit(X, y > 2)
    x = torch.tensor(X[:50], requires_grad=True)
    model.to_torch().scores(x).sum().backward()
    gradient = model.gradient(X[:50])
    apart = np.abs(x.grad.numpy() - gradient).max(axis=1) / np.abs(gradient).max()
    assert np.mean(apart > 1e-3) < 0.1


def test_what_cannot_be_combined():
    X, y = table()
    with pytest.raises(ValueError, match="at most 8"):
        RFLAFRegressor(**SMALL, monotonic_cst=[1] * 10).fit(np.hstack([X, X]), y)
    with pytest.raises(ValueError, match=r"two classes\. Got 3"):
        RFLAFClassifier(**SMALL, monotonic_cst=SIGNS).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="sparse"):
        RFLAFRegressor(**SMALL, monotonic_cst=SIGNS).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="has shape"):
        RFLAFRegressor(**SMALL, monotonic_cst=[1, 0]).fit(X, y)
    frame = pd.DataFrame({"a": X[:, 0], "town": np.where(X[:, 1] > 0, "Bern", "Uri")})
    with pytest.raises(ValueError, match="column 'town', a category"):
        RFLAFRegressor(**SMALL, monotonic_cst={"town": 1}).fit(frame, y)
