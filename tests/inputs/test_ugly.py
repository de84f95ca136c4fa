"""200 tables as they come: each gives predictions, or one line that says what is wrong."""

import datetime

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rflaf.cli import load_app

app = load_app()
COUNT = 200
GROUPS = 10


def ugly_columns(rng, n):
    """A few columns of every sort there is, by their names."""
    day = datetime.datetime(2023, 1, 1)
    words = [f"w{k}" for k in range(500)]
    sorts = {
        "plain": lambda: rng.normal(size=n),
        "huge": lambda: rng.normal(size=n) * 1e200,
        "tiny": lambda: rng.normal(size=n) * 1e-200,
        "constant": lambda: np.full(n, 7),
        "one word": lambda: np.full(n, "same"),
        "gaps": lambda: np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)),
        "empty": lambda: np.full(n, None),
        "all but one": lambda: np.where(np.arange(n) == 0, 1.0, np.nan),
        "infinite": lambda: np.where(np.arange(n) == 0, np.inf, 1.0),
        "mixed": lambda: rng.choice(np.array([1, "a", None, 2.5, True], dtype=object), n),
        "levels": lambda: rng.choice(["a", "b", "c,d", 'e"f', "ä", ""], n),
        "500 levels": lambda: rng.choice(words, n),
        "id": lambda: np.arange(n),
        "name": lambda: [f"person {k}" for k in range(n)],
        "lines": lambda: rng.choice(["a\nb", "c\td", "=1+1", "<b>"], n),
        "day": lambda: [(day + datetime.timedelta(int(k))).date() for k in rng.integers(0, 900, n)],
        "moment": lambda: [day + datetime.timedelta(hours=int(k)) for k in rng.integers(0, 99, n)],
        "german": lambda: [f"{k % 28 + 1}.{k % 12 + 1}.{2000 + k % 20}" for k in range(n)],
        "bad date": lambda: rng.choice(["2023-02-30", "2023-01-01"], n),
        "almost": lambda: [str(k) if k % 9 else "?" for k in range(n)],
        "truth": lambda: rng.choice(["True", "False"], n),
        "truth, gaps": lambda: rng.choice(np.array([True, False, None], dtype=object), n),
        "codes": lambda: [f"{k % 4:03d}" for k in range(n)],
        "long": lambda: rng.choice(["x" * 3000, "y"], n),
        "minus zero": lambda: np.where(rng.random(n) < 0.5, -0.0, 0.0),
    }
    chosen = rng.choice(list(sorts), rng.integers(1, 7), replace=False)
    return {str(name): sorts[str(name)]() for name in chosen}


def ugly_target(rng, n):
    kind = rng.integers(0, 6)
    if kind == 0:
        return rng.choice(["yes", "no"], n)
    if kind == 1:
        return rng.integers(0, 3, n)
    if kind == 2:
        return np.full(n, 1.0)
    if kind == 3:
        return np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    return rng.normal(size=n) * 10.0 ** rng.integers(-9, 9)


def ugly_file(seed):
    """The text of a table, as bytes."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 10, 40]))
    frame = pd.DataFrame({**ugly_columns(rng, n), "target": ugly_target(rng, n)})
    form = rng.integers(0, 8)
    if form == 0:
        frame.columns = [*frame.columns[:-1], frame.columns[0]]  # a name twice, and no target
    separator = ";" if form == 1 else ","
    text = frame.to_csv(index=form == 2, sep=separator, decimal="," if form == 1 else ".")
    if form == 3:
        text = text.replace("\n", "\r\n")
    if form == 4:
        text = text[: len(text) * 2 // 3]  # cut off
    data = text.encode("latin-1", "replace") if form == 5 else text.encode()
    return b"\xef\xbb\xbf" + data if form == 6 else data


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    if result.exit_code:
        assert result.exit_code == 1
        last = result.stderr.strip().splitlines()[-1]
        assert last.startswith("Error: ")
        assert "--debug" not in last, last  # that is for errors nobody has foreseen
        assert "np.float64" not in last
    return result.exit_code == 0


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_traceback_and_no_partial_file(group, tmp_path):
    fitted = 0
    for seed in range(group * COUNT // GROUPS, (group + 1) * COUNT // GROUPS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        table, model, out = (folder / name for name in ("t.csv", "m.skops", "p.csv"))
        table.write_bytes(ugly_file(seed))
        done = run(
            "fit", table, "-t", "target", "--components", 5, "--validation", 0, "--out", model
        )
        assert {path.name for path in folder.iterdir()} == {"t.csv", *["m.skops"] * done}
        if not done:
            continue
        fitted += 1
        # rows without a target were not fitted to, and may hold what the model must refuse
        done = run("predict", model, table, "--out", out)
        assert {p.name for p in folder.iterdir()} == {"t.csv", "m.skops", *["p.csv"] * done}
        if not done:
            continue
        found = pd.read_csv(out, keep_default_na=False)["prediction"]
        assert len(found) > 0
        if found.dtype.kind == "f":
            assert np.isfinite(found).all()
    assert fitted > 0  # each group has something to learn
