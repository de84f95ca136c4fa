"""Commands other than fit, predict and inspect, and the help of all."""

import re
import warnings
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

import rflaf
from rflaf.cli import COMMANDS
from rflaf.cli.console import in_options, plain, warnings_as_notes
from rflaf.fitting import leading_team
from tests.cli.conftest import run
from tests.tabular.test_model import table

ROOT = Path(__file__).parent.parent.parent


def test_compare_writes_its_table(here):
    said = run("compare", "train.csv", "-t", "y", "--components", 20, "--folds", 2,
               "--out", "scores.csv").output  # fmt: skip
    assert "gradient boosting" in said
    assert re.search(r"-?\d\.\d{4} ± \d\.\d{4}", said)
    written = pd.read_csv("scores.csv")
    assert list(written) == ["model", "score", "mean", "sd", "fit_seconds", "predict_seconds"]
    assert len(written) == 5
    assert set(written["score"]) == {"r2"}


def test_compare_takes_codes_as_categories(here):
    code = np.arange(120) * 7 % 12
    pd.DataFrame({"code": code, "y": code % 3 + 0.01 * code}).to_csv("train.csv", index=False)
    given = ("compare", "train.csv", "-t", "y", "--components", 20, "--folds", 2)
    linear = []
    for more in ((), ("--categorical", "code")):
        run(*given, "--task", "regression", *more, "--out", "scores.csv")
        linear.append(pd.read_csv("scores.csv").set_index("model")["mean"]["linear"])
    assert linear[0] < 0.2
    assert linear[1] > 0.9


def test_notes_name_options_and_are_said_once():
    text = in_options("activation='polynomial' with n_basis=12. Use activation='chebyshev'.")
    assert text == (
        "--activation polynomial with --basis-functions 12. Use --activation chebyshev."
    )
    with redirect_stderr(StringIO()) as said, warnings_as_notes():
        for text in ("Column 'x 1' has 2 gaps", "Column 'x 1' has 3 gaps", "Column 'x 2' has 3"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert said.getvalue().splitlines() == [
        "Note: Column 'x 1' has 3 gaps",
        "Note: Column 'x 2' has 3",
    ]


def test_without_components_their_number_follows_from_the_rows(here):
    assert "by the number of rows" in re.sub(r"[\s│]+", " ", run("fit", "--help").output)
    table(300).to_csv("train.csv", index=False)
    run("fit", "train.csv", "--target", "y", "--validation", 0)
    estimator = rflaf.load("model.skops").estimator
    assert estimator.n_components == "auto"
    assert estimator.components_.shape[1] == 500
    assert len(leading_team(estimator.members_)) == 5
    said = run("inspect", "model.skops").output
    assert "500 per member" in said
    assert re.search(r"5 models on (standardised|binned) columns", said)


def test_plan_both_ways():
    said = run("plan", "--epsilon", 0.5, "--constants", "sharp").output
    assert "excess risk <= 0.5 with probability 0.9" in said
    sizes = ["-n", 10_000, "-M", 1000, "-N", 128, "--width", 0.3]
    assert "13.84" in run("plan", *sizes, "--constants", "sharp").output


def test_data(monkeypatch, tmp_path):
    monkeypatch.setenv("RFLAF_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "iris" in run("data", "list").output
    assert "needs no file" in run("data", "get", "iris").output
    assert "4 inputs, classification" in run("data", "check", "iris").output


def test_version_and_help():
    assert run("--version").output == f"rflaf {rflaf.__version__}\n"
    said = run("--help").output
    assert all(name.replace("_", "-") in said for name in COMMANDS)


def test_a_terminal_is_not_steered():
    assert plain("a\x1b[31mb\r") == "a\\x1b[31mb\\r"
    assert plain("[bold]x[/bold]") == "[bold]x[/bold]"


# ---- the document


def test_every_command_is_in_the_document():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\$ rflaf ([a-z-]+)", text, re.MULTILINE))
    assert shown >= {name.replace("_", "-") for name in COMMANDS}
