"""Graphs of models that were fitted on frames: an input per column."""

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.inputs import ColumnEncoder
from rflaf.onnx import export, inputs
from tests.inputs.conftest import mixed_frame, spoilt_rows
from tests.onnx.conftest import DTYPES, SMALL, assert_close, session


def results(path, given):
    graph = session(path.read_bytes())
    names = [output.name for output in graph.get_outputs()]
    return dict(zip(names, graph.run(names, given), strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_categories_gaps_and_dates(dtype, tmp_path):
    frame, y = mixed_frame()
    model, path = RFLAFRegressor(**SMALL).fit(frame, y), tmp_path / "model.onnx"
    export(model, path, dtype=dtype, check=frame)
    described = {i.name: (i.type, i.shape) for i in session(path.read_bytes()).get_inputs()}
    number = "tensor(float)" if dtype == "float32" else "tensor(double)"
    assert described == {
        "size": (number, ["n", 1]),
        "wet": (number, ["n", 1]),
        "town": ("tensor(string)", ["n", 1]),
        "zone": ("tensor(string)", ["n", 1]),
        "day": ("tensor(double)", ["n", 1]),
        "until": ("tensor(double)", ["n", 1]),
    }
    rows = spoilt_rows(frame)  # unknown levels, and gaps where the fit had none
    got = results(path, inputs(model, rows, dtype=dtype))["prediction"]
    assert_close(got, model.predict(rows))
    other = results(path, inputs(model, pl.from_pandas(frame[:9]), dtype=dtype))["prediction"]
    assert_close(other, model.predict(frame[:9]))


def many_levels(n=600):
    """A column of 80 levels with gaps, one of 40 without, and a number; targets and classes."""
    rng = np.random.default_rng(2)
    street, town = rng.integers(0, 80, n), rng.integers(0, 40, n)
    frame = pd.DataFrame(
        {
            "street": np.where(rng.random(n) < 0.05, None, [f"Straße {k}" for k in street]),
            "size": rng.normal(size=n).astype(np.float32),
            "town": [f"t{k}" for k in town],
        }
    )
    y = np.sin(street) + np.cos(town) * frame["size"].to_numpy()
    return frame, np.column_stack([y, 100 * np.cos(street) - 50]), np.digitize(y, [-0.5, 0.5])


def strange_levels(frame):
    """Rows with levels that the fit has not seen, and none, in either column or both."""
    rows = frame[:60].copy()
    for k, (street, town) in enumerate([("?", "t1"), ("Straße 1", "?"), (None, None), ("?", "?")]):
        rows.loc[k, ["street", "town"]] = street, town
    return rows


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-9)])
@pytest.mark.parametrize("form", ["auto", "ranks", "bins"])
def test_means_of_many_levels(dtype, tolerance, form, tmp_path, monkeypatch):
    """Each member has its own: codes go in, and as many tables as members."""
    if dtype == "float64":  # layers in float64 too, or predict itself would be no more exact
        monkeypatch.setattr(rules, "LEARNABLE_ROWS", np.inf)
    frame, targets, classes = many_levels()
    rows, path = strange_levels(frame), tmp_path / "model.onnx"
    given = {**SMALL, "n_members": 3, "input_form": form}
    model = RFLAFRegressor(**given).fit(frame, targets)
    first, second, _ = (member.layer.means.tables[0] for member in model.members_)
    assert first.shape == (82, 2)
    assert not np.array_equal(first, second)
    export(model, path, dtype=dtype, check=rows)
    got = results(path, inputs(model, rows, dtype=dtype))["prediction"]
    for mine, expected in zip(got.T, model.predict(rows).T, strict=True):
        assert np.abs(mine - expected).max() <= tolerance * np.abs(expected).max()
    assert model.predict(rows).std(axis=0).min() > 0.1
    for labels in (classes, classes > 0):
        model = RFLAFClassifier(**given).fit(frame, labels)
        export(model, path, dtype=dtype, check=rows)
        got = results(path, inputs(model, rows, dtype=dtype))["probabilities"]
        assert np.abs(got - model.predict_proba(rows)).max() <= tolerance


def test_inputs_by_hand(tmp_path):
    frame, y = mixed_frame()
    model, path = RFLAFRegressor(**SMALL).fit(frame, y), tmp_path / "model.onnx"
    export(model, path)
    seconds = (frame[["day", "until"]] - pd.Timestamp("1970-01-01")) / pd.Timedelta("1s")
    given = {
        "size": frame[["size"]].to_numpy("float32"),
        "wet": frame[["wet"]].to_numpy("float32"),
        "town": frame[["town"]].fillna("").to_numpy(object),
        "zone": frame[["zone"]].to_numpy(object),
        "day": seconds[["day"]].to_numpy(),
        "until": seconds[["until"]].to_numpy(),
    }
    assert_close(results(path, given)["prediction"], model.predict(frame))
    given["size"] = np.where(np.arange(len(frame))[:, None] == 3, np.float32(np.inf), given["size"])
    assert np.isnan(results(path, given)["prediction"]).nonzero()[0].tolist() == [3]


def test_classes_and_pipelines(tmp_path):
    frame, y = mixed_frame()
    labels = np.where(y > np.median(y), "more", "less")
    path = tmp_path / "model.onnx"
    last = RFLAFClassifier(**SMALL)
    for model in (last, make_pipeline(ColumnEncoder(random_state=0), StandardScaler(), last)):
        model.fit(frame, labels)
        export(model, path, check=frame)
        found = results(path, inputs(model, frame))
        assert_close(found["probabilities"], model.predict_proba(frame))
        assert set(found["label"]) == {"more", "less"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranks_of_points_on_circles(dtype, tmp_path):
    """Six o'clock in two ways: sines that differ in their last digit have one rank."""
    frame, y = mixed_frame()
    model = RFLAFRegressor(**SMALL, input_form="both").fit(frame[["day", "until"]], y)
    export(model, tmp_path / "model.onnx", dtype=dtype, check=frame[["day", "until"]])


def test_names_that_clash(tmp_path):
    frame, y = mixed_frame()
    model = RFLAFRegressor(**SMALL).fit(frame.rename(columns={"size": "prediction"}), y)
    with pytest.raises(ValueError, match="'prediction' cannot be an input"):
        export(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_only_strings_need_another_domain(tmp_path):
    frame, y = mixed_frame()
    for columns, domains in ((["size"], {""}), (["size", "town"], {"", "ai.onnx.ml"})):
        export(RFLAFRegressor(**SMALL).fit(frame[columns], y), tmp_path / "model.onnx")
        proto = onnx.load(tmp_path / "model.onnx")
        assert {o.domain for o in proto.opset_import} == domains


def test_truth_values_large_integers_durations_and_zones(tmp_path):
    n, rng = 120, np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "flag": pd.Categorical(rng.random(n) < 0.5),
            "code": 2**60 + rng.integers(0, 3, n),
            "long": pd.to_timedelta(rng.integers(1, 9, n), unit="s"),
            "text": pd.date_range("2022-01-01", periods=n).strftime("%d.%m.%Y"),
            "zone": pd.date_range("2022-01-01", periods=n, freq="7h", tz="Europe/Berlin"),
        }
    )
    y = frame["code"] % 7 + 2.0 * (frame["flag"] == True)  # noqa: E712
    model = RFLAFRegressor(**SMALL, categorical_features=["code"]).fit(frame, y.to_numpy(float))
    path = tmp_path / "model.onnx"
    export(model, path)
    late = frame.assign(flag=frame["flag"].astype(int), zone=frame["zone"].dt.tz_convert("UTC"))
    given = inputs(model, late)
    assert_close(results(path, given)["prediction"], model.predict(frame))
    given["flag"] = frame[["flag"]].astype(str).to_numpy(object)  # True and False, by hand
    assert_close(results(path, given)["prediction"], model.predict(frame))
