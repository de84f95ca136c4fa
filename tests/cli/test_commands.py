"""The command line, run in this process."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rflaf
from rflaf.cli.console import plain
from tests.cli.conftest import run
from tests.tabular.test_model import table

ROOT = Path(__file__).parent.parent.parent


def fit_small(*more, code=0, source="train.csv", target="y"):
    return run("fit", source, "--target", target, "--components", 30, *more, code=code)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sep", "||"], "(--sep) must be a single ASCII character"),
        (["--sep", ""], "(--sep) must be a single ASCII character"),
        (["--components", 10**9], "--components 1000000000"),
        (["--basis-functions", 10**7], "--basis-functions 10000000 needs"),
    ],
)
def test_absurd_options_have_messages_of_ours(more, message, here):
    said = run("fit", "train.csv", "--target", "y", *more, code=1).output
    assert message in " ".join(said.split())
    assert not list(here.glob("*.skops"))


@pytest.mark.parametrize("value", ["1e308", "-1.7e308"])
def test_a_target_beyond_all_others_writes_no_model(value, here):
    frame = pd.read_csv("train.csv")
    frame["y"] = frame["y"].astype(str)
    frame.loc[3, "y"] = value
    frame.to_csv("far.csv", index=False)
    said = fit_small(source="far.csv", code=1).output
    assert "'y' must lie between" in " ".join(said.split())
    assert not list(here.glob("*.skops"))


def test_fit_predict_inspect(here):
    said = fit_small().output
    assert "Regression, because 'y' contains non-integers" in said
    assert "held-out rows: R²" in said
    more = ["--std", "--quantiles", "0.05,0.5,0.5000001,0.95", "--interval", "0.9"]
    more += ["--keep", "x"]
    run("predict", "model.skops", "train.csv", *more)
    found = pd.read_csv("predictions.csv")
    quantiles = ["q0.05", "q0.5", "q0.5000001", "q0.95"]
    assert list(found) == ["x", "prediction", "std", *quantiles, "low", "high"]
    assert (found["q0.05"] < found["q0.5"]).all()
    np.testing.assert_allclose(found[["low", "high"]], found[["q0.05", "q0.95"]])
    for option, value in (("--quantiles", "0.5,2"), ("--quantiles", "a"), ("--interval", "1")):
        said = run("predict", "model.skops", "train.csv", option, value, code=1).stderr
        assert f"{option} must" in " ".join(said.split())
    model = rflaf.load("model.skops")
    np.testing.assert_allclose(found["prediction"], model.predict(pd.read_csv("train.csv")))
    said = run("inspect", "model.skops", "--png", "a.png").output
    for part in ("Regression of 'y'", "R²", "town", "category", "σ(z)", "RFLAFRegressor"):
        assert part in said
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")
    assert not list(here.glob(".*"))  # nothing temporary is left


def test_explain(here):
    fit_small()
    said = run("explain", "model.skops", "train.csv", "--out", "why.csv").output
    assert "Attributions of" in said
    found, rows = pd.read_csv("why.csv"), pd.read_csv("train.csv")
    model = rflaf.load("model.skops")
    assert list(found) == ["base", *model.columns]
    np.testing.assert_allclose(found.sum(axis=1), model.predict(rows), rtol=1e-6)
    err = run("explain", "model.skops", "train.csv", "--out", "train.csv", code=1).stderr
    assert "is also the input" in err


def test_explain_of_numbers_takes_a_column_named_class(here):
    frame = pd.read_csv("train.csv").rename(columns={"x": "class"})
    frame.to_csv("named.csv", index=False)
    fit_small(source="named.csv")
    run("explain", "model.skops", "named.csv", "--out", "why.csv")
    assert "class" in pd.read_csv("why.csv")


def test_explain_has_a_row_per_class(here):
    frame = pd.read_csv("train.csv")
    frame["y"] = np.array(["a", "b", "c"])[pd.qcut(frame["y"], 3, labels=False)]
    frame.to_csv("three.csv", index=False)
    fit_small(source="three.csv")
    run("explain", "model.skops", "three.csv")
    found = pd.read_csv("why.csv")
    assert len(found) == 3 * len(frame)
    scores = found.drop(columns="class").sum(axis=1).to_numpy().reshape(-1, 3)
    model = rflaf.load("model.skops")
    expected = model.estimator.decision_function(model.frame(frame))
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert found["class"][:3].tolist() == ["a", "b", "c"]


def test_the_sign_for_missing_values_is_kept_with_the_model(here):
    frame = pd.read_csv("train.csv")
    frame["x"] = frame["x"].astype(object)
    frame.loc[::7, "x"] = "(none)"
    frame.to_csv("train.csv", index=False)
    fit_small("--missing", "(none)")
    run("predict", "model.skops", "train.csv", "--out", "kept.csv")
    run("predict", "model.skops", "train.csv", "--out", "given.csv", "--missing", "(none)")
    pd.testing.assert_frame_equal(pd.read_csv("kept.csv"), pd.read_csv("given.csv"))


def test_classes_with_probabilities(here):
    said = fit_small("--out", "c.skops", source="classes.parquet", target="paid").output
    assert "Classification, because 'paid' contains strings" in said
    assert "accuracy" in said
    run("predict", "c.skops", "classes.parquet", "--probabilities", "--out", "p.parquet")
    found = pd.read_parquet("p.parquet")
    assert list(found) == ["prediction", "p(no)", "p(yes)"]
    assert set(found["prediction"]) == {"no", "yes"}
    assert "no, yes" in run("inspect", "c.skops").output


def test_columns_are_matched_by_name(here):
    fit_small()
    run("predict", "model.skops", "train.csv", "--out", "one.csv")
    frame = pd.read_csv("train.csv")
    frame[["town", "wet", "x", "noise"]].assign(extra=1).to_csv("mixed.csv", index=False)
    result = run("predict", "model.skops", "mixed.csv", "--out", "two.csv")
    assert "'extra'" in result.stderr
    assert Path("one.csv").read_text(encoding="utf-8") == Path("two.csv").read_text(
        encoding="utf-8"
    )
    frame.drop(columns="town").to_csv("less.csv", index=False)
    assert "lacks column 'town'" in run("predict", "model.skops", "less.csv", code=1).stderr


def test_codes_keep_their_zeros(here):
    frame = table()
    frame["town"] = np.where(frame["wet"], "01", "x")
    frame["y"] = 3.0 * frame["wet"] + 0.1 * frame["x"]
    frame[["town", "x", "y"]].to_csv("codes.csv", index=False)
    fit_small(source="codes.csv")
    frame = frame[frame["wet"]]  # all codes look like numbers now
    frame[["town", "x"]].to_csv("new.csv", index=False)
    run("predict", "model.skops", "new.csv")
    assert pd.read_csv("predictions.csv")["prediction"].mean() > 2.5


def test_notes_about_what_was_left_out(here):
    frame = table().assign(nothing=None)
    frame.loc[:4, "y"] = None
    frame.to_csv("train.csv", index=False)
    err = fit_small().stderr
    assert "5 rows with missing 'y'" in err
    assert "'nothing'" in err


def test_dates_and_ids_need_no_flag(here):
    frame = table().assign(**{"full name": [f"n{k}" for k in range(60)], "row_id": range(60)})
    frame["day"] = pd.date_range("2024-01-01", periods=60).astype(str)
    frame.to_csv("people.csv", index=False)
    err = fit_small(source="people.csv").stderr
    assert err.count("\n") == 1
    assert "'row_id' looks like an identifier (60 distinct values in 60 rows). It is" in err
    assert err.count("name it with --categorical") == 1
    run("predict", "model.skops", "people.csv")
    said = run("inspect", "model.skops").output
    assert re.search(r"day +date", said)
    assert re.search(r"full name +text", said)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (lambda k: f"{1000 + 37 * k:,}", "numbers"),
        (lambda k: f"{k / 7:.2f} %", "numbers"),
        (lambda k: f"${k / 7:.2f}", "numbers"),
        (lambda k: f"{k / 7:.2f} kg", "numbers"),
        (lambda k: f"{k / 7:.3f}".replace(".", ","), "numbers"),
        (
            lambda k: (pd.Timestamp("2024-01-01") + pd.Timedelta(k, "D")).strftime("%b %d, %Y"),
            "dates",
        ),
        (lambda k: f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" if k else "unknown", "dates"),
        (lambda k: f"{1 + k % 28} Jan {1960 + k}", "dates"),
        (lambda k: f"flat {k} in march street", None),
        (lambda k: f"12-inch pipe, batch {k}", None),
        (lambda k: f"3 men and {k} dogs", None),
    ],
)
def test_text_that_looks_like_numbers_or_dates_is_noted(form, kind, here):
    table().assign(odd=[form(k) for k in range(60)]).to_csv("odd.csv", index=False)
    said = " ".join(fit_small(source="odd.csv").stderr.split())
    if kind is None:
        assert "looks like" not in said
    else:
        assert f"column 'odd' looks like {kind}, but is read as free text" in said


def test_categories_named_by_an_option(here):
    frame = table().assign(code=[k % 3 for k in range(60)])
    frame.to_csv("codes.csv", index=False)
    fit_small("--categorical", "code", source="codes.csv")
    said = run("inspect", "model.skops").output
    assert re.search(r"code +category", said)
    assert re.search(r"σ\(z\), \d+ members", said)
    err = fit_small("--categorical", "nothing", source="codes.csv", code=1).stderr
    assert "--categorical must be columns of X. Got 'nothing'" in " ".join(err.split())


def test_dates_that_may_be_read_in_two_ways_are_refused(here):
    frame = table()
    frame["day"] = pd.date_range("2022-03-04", periods=len(frame)).astype(str)
    frame.to_csv("days.csv", index=False)
    run("fit", "days.csv", "-t", "y", "--components", 40, "--out", "d.skops")
    frame.assign(day="04.03.2022").to_csv("dots.csv", index=False)
    result = run("predict", "d.skops", "dots.csv", "--out", "p.csv", code=1)
    assert "Column 'day'" in result.stderr
    assert "'04.03.2022', which may be 2022-03-04 or 2022-04-03" in " ".join(result.stderr.split())
    assert "--debug" not in result.stderr
    assert not Path("p.csv").exists()
    frame.assign(day="25.03.2022").to_csv("dots.csv", index=False)
    run("predict", "d.skops", "dots.csv", "--out", "p.csv")


def test_errors_are_one_line_and_name_the_way_out(here):
    frame = table().assign(**{"full name": [f"n{k}" for k in range(60)], "day": "2024-02-03"})
    frame.to_csv("people.csv", index=False)
    err = fit_small("--strict", source="people.csv", code=1).stderr
    assert "'full name' is free text (60 distinct values in 60 rows)" in err
    assert "--drop 'full name' --drop day" in err
    assert err.count("\n") == 1
    fit_small("--strict", "--drop", "full name", "--drop", "day", source="people.csv")


def test_semicolons_are_noticed(here):
    table().to_csv("semi.csv", index=False, sep=";", decimal=",")
    assert "Regression" in fit_small(source="semi.csv").output
    run("predict", "model.skops", "semi.csv", "--out", "a.csv")
    run("predict", "model.skops", "train.csv", "--out", "b.csv")
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), pd.read_csv("b.csv"))


def test_the_input_is_not_overwritten_unless_forced(here):
    fit_small()
    before = Path("train.csv").read_bytes()
    err = run("predict", "model.skops", "train.csv", "--out", "./train.csv", code=1).stderr
    assert "--force" in err
    assert Path("train.csv").read_bytes() == before
    run("predict", "model.skops", "train.csv", "--out", "./train.csv", "--force")
    assert list(pd.read_csv("train.csv")) == ["prediction"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "none.csv", "-t", "y"], 1, "no file 'none.csv'"),
        (["fit", "train.csv", "-t", "z"], 1, "no column 'z'"),
        (["fit", "train.csv", "-t", "y", "--out", "m.pkl"], 1, ".skops"),
        (["fit", "train.csv", "-t", "y", "--out", "no/m.skops"], 1, "no folder"),
        (["fit", "train.csv", "-t", "y", "--task", "classification"], 1, "non-integers"),
        (["fit", "train.csv", "-t", "y", "--activation", "magic"], 1, "--activation must"),
        (["fit", "train.csv"], 2, "--target"),
        (["fit", "train.csv", "-t", "y", "--task", "both"], 2, "both"),
        (["fit", "train.csv", "-t", "y", "--components", "0"], 2, "components"),
        (["fit", "train.csv", "-t", "y", "--quantile", "0.9"], 2, "--loss quantile"),
        (["fit", "train.csv", "-t", "y", "--power", "1.2"], 2, "--loss tweedie"),
        (["predict", "none.skops", "train.csv"], 1, "no file 'none.skops'"),
        (["predict", "train.csv", "train.csv"], 1, "not an rflaf model file"),
        (["predict", "plain.skops", "train.csv"], 1, "RandomFeatures"),
        (["inspect", "plain.skops"], 1, "without a fitted activation"),
        (["compare", "train.csv", "-t", "y", "--folds", "99"], 1, "'folds'"),
        (["plan"], 2, "--epsilon"),
        (["plan", "-n", "5"], 2, "--epsilon"),
        (["plan", "--epsilon", "-1"], 1, "epsilon"),
        (["data", "get", "nothing"], 1, "nothing"),
        (["unknown"], 2, "unknown"),
    ],
)
def test_exit_codes(arguments, code, message, here):
    rflaf.save(rflaf.RandomFeatures(5), "plain.skops")
    before = set(here.iterdir())
    assert message in run(*arguments, code=code).stderr
    assert set(here.iterdir()) == before


def test_debug_raises(here):
    result = run("--debug", "fit", "none.csv", "-t", "y", code=1)
    assert isinstance(result.exception, ValueError)


def test_an_unforeseen_error_says_its_kind(here, monkeypatch):
    def broken(*_, **__):
        raise KeyError("inner")

    monkeypatch.setattr("rflaf.tabular.read_table", broken)
    assert "KeyError: 'inner' (--debug shows where)" in fit_small(code=1).stderr


def test_ctrl_c(here, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rflaf.tabular.fit_table", interrupted)
    before = set(here.iterdir())
    assert "Interrupted" in fit_small(code=130).stderr
    assert set(here.iterdir()) == before


def test_missing_extras_are_named(here, monkeypatch):
    fit_small()
    for module, extra, arguments in (
        ("pyarrow", "parquet", ["fit", "classes.parquet", "-t", "paid"]),
        ("skops.io", "io", ["inspect", "model.skops"]),
        ("skops.io", "io", ["fit", "train.csv", "-t", "y"]),
        ("jinja2", "report", ["demo", "--out", "d"]),
        ("jinja2", "report", ["fit", "train.csv", "-t", "y", "--report", "p.html"]),
        ("pandas", "cli", ["fit", "train.csv", "-t", "y"]),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert f"rflaf[{extra}]" in run(*arguments, code=1).stderr


def test_a_page_about_the_model(here):
    said = fit_small("--report", "model.html").output
    assert "Report: model.html" in said
    page = (here / "model.html").read_text(encoding="utf-8")
    for part in ("<h1>Model of y</h1>", "town", "Prediction intervals", "Largest residuals"):
        assert part in page
    score = re.search(r"R² ([\d.]+)", said)[1]
    assert f"R², this model</span><strong>{float(score):.3f}" in page, "the held-out rows"
    fit_small("--report", "model.txt", code=1)
    fit_small("--report", "late.html", "--validation", 0, source="classes.parquet", target="paid")
    assert "What is missing" in (here / "late.html").read_text(encoding="utf-8")


# ---- hostile names and values

words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(list(",\"'\n<>&[]{}=\t;")),
    min_size=1,
    max_size=12,
).filter(lambda text: text.strip() and not text.startswith("\ufeff"))
NA = pd._libs.parsers.STR_NA_VALUES


@settings(max_examples=12)
@given(
    names=st.lists(words, min_size=3, max_size=3, unique=True),
    levels=st.lists(words.filter(lambda text: text not in NA), min_size=2, max_size=2, unique=True),
)
def test_any_names_and_values_make_the_round_trip(names, levels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    number, category, target = names
    first = rng.random(40) < 0.5
    frame = pd.DataFrame({number: rng.normal(size=40), category: np.where(first, *levels)})
    frame[target] = 5.0 * first + 0.1 * frame[number]
    frame.to_csv(folder / "t.csv", index=False)
    model, out = folder / "m.skops", folder / "p.csv"
    run("fit", folder / "t.csv", f"--target={target}", "--components", 20, "--out", model)
    run("predict", model, folder / "t.csv", "--out", out)
    assert np.corrcoef(pd.read_csv(out)["prediction"], frame[target])[0, 1] > 0.9
    said = run("inspect", model).output
    assert plain(number.split("\n")[0])[:3].strip() in said


def test_effort_and_time_limit(here):
    said = fit_small("--effort", "fast", "--time-limit", 1e-3).output
    assert "Skipped, because time was short: effort 'fast'." in said
    assert rflaf.load("model.skops").estimator.effort == "fast"
    assert "effort" in fit_small("--effort", "slow", code=2).output


def test_codes_with_zeros_in_front_are_read_alike(here):
    """The same file gives the same codes to `fit --categorical` and to `predict`."""
    rng = np.random.default_rng(0)
    code, x = rng.choice(["007", "045", "120"], 240), rng.standard_normal(240)
    y = x + np.select([code == "007", code == "045"], [10, -10], 0)
    pd.DataFrame({"region": code, "x": x, "y": y}).to_csv("codes.csv", index=False)
    fit_small("--categorical", "region", "--out", "codes.skops", source="codes.csv")
    run("predict", "codes.skops", "codes.csv")
    found = pd.read_csv("predictions.csv")["prediction"]
    assert np.mean((found - y) ** 2) < 0.05 * np.var(y)
