"""Commands run in this process, in a folder with tables.

One thread: the data is tiny, and handing work around would take most of the time.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from rflaf.cli import load_app
from tests.tabular.test_model import table


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


app = load_app()


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = table()
    frame.to_csv("train.csv", index=False)
    frame.assign(paid=np.where(frame["y"] > 1, "yes", "no")).drop(columns="y").to_parquet(
        "classes.parquet"
    )
    return tmp_path
