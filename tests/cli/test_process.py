"""The command line in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rflaf

SOURCE = str(Path(rflaf.__file__).parent.parent)


def start(*arguments, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "rflaf", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments, folder):
    process = start(*arguments, folder=folder)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_exit_codes_and_streams(tmp_path):
    code, out, err = run("--version", folder=tmp_path)
    assert (code, out, err) == (0, f"rflaf {rflaf.__version__}\n", "")
    code, out, err = run("fit", "none.csv", "--target", "y", folder=tmp_path)
    assert (code, out) == (1, "")
    assert err == "Error: There is no file 'none.csv'.\n"
    code, _, err = run("fit", folder=tmp_path)
    assert code == 2
    assert "Traceback" not in err
    code, _, err = run("--debug", "fit", "none.csv", "--target", "y", folder=tmp_path)
    assert code == 1
    assert "Traceback" in err


def test_a_terminal_without_some_characters(tmp_path, monkeypatch):
    """The model was written, and "R²" made the command fail."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "y"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii:strict")
    code, out, err = run("fit", "t.csv", "-t", "y", "--components", "20", folder=tmp_path)
    assert code == 0, err
    assert "held-out rows: R? " in out


def test_help_imports_nothing_heavy():
    script = (
        "import sys\nfrom rflaf.cli import load_app\nload_app()\n"
        "print([m for m in ('numpy', 'sklearn', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_errors_import_nothing_heavy(tmp_path):
    """Their time is that of imports: scikit-learn, numba and skops are for what is to be done."""
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom rflaf.cli import load_app\n"
        "for line in sys.argv[1:]:\n"
        "    assert CliRunner().invoke(load_app(), line.split()).exit_code == 1, line\n"
        "print([m for m in ('sklearn', 'numba', 'skops', 'matplotlib') if m in sys.modules])"
    )
    lines = [
        "fit none.csv -t y",
        "fit t.csv -t z",
        "compare t.csv -t z",
        "predict none.skops t.csv",
    ]
    lines += ["predict t.csv t.csv", "inspect none.skops", "inspect t.csv", "plan --epsilon -1"]
    done = subprocess.run(
        [sys.executable, "-c", script, *lines],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_without_typer_the_extra_is_named():
    script = "import sys\nsys.modules['typer'] = None\nfrom rflaf.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "pip install 'rflaf[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_during_a_fit_leaves_no_file(tmp_path):
    # the command says when it has begun to fit, which without a terminal it does not
    script = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored
from rflaf import tabular
fit_table = tabular.fit_table
def announced(*given, **named):
    print("fitting", flush=True)
    return fit_table(*given, **named)
tabular.fit_table = announced
from rflaf.cli import main
sys.argv = ["rflaf", "fit", "t.csv", "--target", "y", "--components", "3000"]
main()
"""
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(20_000, 5)), columns=list("abcdy")).to_csv(
        tmp_path / "t.csv", index=False
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "fitting\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
