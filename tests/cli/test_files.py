"""The files that commands write: full disks, links, and text that a spreadsheet would run."""

import os

import numpy as np
import pandas as pd
import pytest

import rflaf
from rflaf.paper import Spec, Store
from tests.cli.conftest import run
from tests.tabular.test_model import table

SMALL = ("fit", "train.csv", "--target", "y", "--components", 20)


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        ([*SMALL, "--out", "new.skops"], "new.skops"),
        ([*SMALL, "--report", "new.html"], "new.html"),
        (["predict", "model.skops", "train.csv", "--out", "new.csv"], "new.csv"),
        (["predict", "model.skops", "train.csv", "--out", "new.parquet"], "new.parquet"),
        (["inspect", "model.skops", "--png", "new.png"], "new.png"),
        (["tables", "results", "--tables", "table1", "--out", "new.txt"], "new.txt"),
        (["report", "results", "--out", "new.html"], "new.html"),
        (["compare", "train.csv", "-t", "y", "--components", 20, "--folds", 2, "--out", "new.csv"],
         "new.csv"),
    ],
)  # fmt: skip
def test_a_full_disk_is_an_error_with_the_path(arguments, out, here, request):
    spec = Spec.of("protein", "rfmlp-relu", "published", 402025)
    record = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
    Store("results").append({**record, "kind": "training", "test_loss": 0.24})
    run(*SMALL)
    before = set(here.iterdir())
    request.getfixturevalue("full_disk")
    said = run(*arguments, code=1).stderr
    assert f"Error: '{out}': No space left on device." in said.splitlines()
    assert set(here.iterdir()) == before


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_as_output_stays_a_link(here):
    (here / "models").mkdir()
    (here / "models" / "first.skops").write_bytes(b"before")
    (here / "latest.skops").symlink_to("models/first.skops")
    run(*SMALL, "--out", "latest.skops")
    assert (here / "latest.skops").is_symlink()
    assert os.listdir(here / "models") == ["first.skops"]
    assert rflaf.load("models/first.skops").target == "y"
    (here / "lost.skops").symlink_to("missing/model.skops")
    said = run(*SMALL, "--out", "lost.skops", code=1).stderr
    assert f"There is no folder '{here}/missing' to write 'lost.skops' to." in said


# ---- spreadsheets


def hostile():
    frame = table(80)
    frame["=id"] = ["-12", "+1.5e3", "-1,5", "@SUM(A1)"] * 20
    frame["note"] = ["\t=1+1", "-2+3", "plain", None] * 20
    frame["paid"] = np.where(frame["x"] > 0, "=HYPERLINK(A1)", "+no")
    return frame.drop(columns="y")


def predictions(*more, ending="csv"):
    hostile().to_csv("hostile.csv", index=False)
    run("fit", "hostile.csv", "-t", "paid", "--components", 20, "--drop", "=id", "--drop", "note")
    run("predict", "model.skops", "hostile.csv", "--keep", "=id", "--keep", "note",
        "--probabilities", "--out", f"p.{ending}", *more)  # fmt: skip
    if ending == "parquet":
        return pd.read_parquet("p.parquet")
    return pd.read_csv("p.csv", dtype={"=id": str, "'=id": str})


def test_text_that_a_spreadsheet_would_run_is_quoted(here):
    found = predictions()
    assert list(found) == ["'=id", "note", "prediction", "p(+no)", "p(=HYPERLINK(A1))"]
    assert found["'=id"].tolist()[:4] == ["-12", "+1.5e3", "-1,5", "'@SUM(A1)"]
    assert found["note"].tolist()[:3] == ["'\t=1+1", "'-2+3", "plain"]
    assert found["note"].isna().sum() == 20
    assert set(found["prediction"]) == {"'=HYPERLINK(A1)", "'+no"}


@pytest.mark.parametrize(("more", "ending"), [(["--raw-text"], "csv"), ([], "parquet")])
def test_text_is_left_as_it_is_where_that_is_asked_for(more, ending, here):
    found = predictions(*more, ending=ending)
    assert set(found["prediction"]) == {"=HYPERLINK(A1)", "+no"}
    assert found["=id"].tolist()[:4] == ["-12", "+1.5e3", "-1,5", "@SUM(A1)"]


def test_negative_numbers_stay_numbers(here):
    run(*SMALL)
    run("predict", "model.skops", "train.csv")
    found = pd.read_csv("predictions.csv")["prediction"]
    assert found.dtype == float
    assert (found < 0).any()
