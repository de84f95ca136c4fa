"""Kernels are compiled once: before the first fit where asked, and kept where that can be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rflaf

SOURCE = Path(rflaf.__file__).parent

MODELS = """
import sys
import numpy as np
from rflaf.warm_up import warm_up
warm_up()
from numba.core.dispatcher import Dispatcher

def kernels():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("rflaf.fused.jit"):
            for kernel in vars(module).values():
                if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("nogil"):
                    found[name, kernel.__name__] = len(kernel.signatures)
    return found

before = kernels()
from rflaf import RFLAFClassifier, RFLAFRegressor
rng = np.random.default_rng(1)
x = rng.standard_normal((200, 6))
y = x[:, 0] ** 2 + x[:, 1]
weights = rng.uniform(0.5, 1.5, 200)
RFLAFRegressor(n_components=40, random_state=0).fit(x, y, sample_weight=weights).predict(x[:1])
RFLAFClassifier(n_components=40, random_state=0).fit(x, y > 1).predict_proba(x)
RFLAFRegressor(n_components=40, loss="poisson", random_state=0).fit(x, np.round(y**2)).predict(x)
x = rng.uniform(-1, 1, (600, 2))
y = np.sign(np.sin(9 * x[:, 0]) * np.sin(7 * x[:, 1]))
model = RFLAFRegressor(n_components=40, input_form="raw", n_members=2, random_state=0).fit(x, y)
assert model.members_[0].local
model.predict(x[:1]), model.gradient(x[:1]), model.explain(x[:1])
print({kernel: n for kernel, n in kernels().items() if n > before.get(kernel, 0)})
"""


def run(code, **environment):
    paths = {"PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **paths, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_nothing_is_left_to_compile_after_a_warm_up():
    assert run(MODELS).stdout.strip() == "{}"


APPLY = """
import warnings
import numpy as np
from rflaf import Activation, fused
from rflaf.bases import RBF
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fused.apply(Activation(RBF(5), np.ones(5)).table(), np.zeros((2, 3)))
from rflaf.fused import jit
stats = jit.apply_rows.stats
print(sum(stats.cache_hits.values()), [str(w.message) for w in caught])
"""
# As on a disk that can only be read; the permissions of a folder would not stop root.
READ_ONLY = """
import tempfile
def refused(*args, **kwargs):
    raise OSError(30, "Read-only file system")
tempfile.TemporaryFile = refused
"""


def test_kernels_are_read_from_a_folder_that_cannot_be_written(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "XDG_CACHE_HOME": str(tmp_path / "none")}
    first = run(APPLY, **place)
    assert first.stdout.strip() == "0 []"
    assert first.stderr == "rflaf: compiling kernels, once (some seconds)\n"
    second = run(READ_ONLY + APPLY, **place)
    assert second.stdout.strip() == "1 []"
    assert second.stderr == ""


def test_that_nothing_can_be_kept_is_said_once(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "none"), "XDG_CACHE_HOME": str(tmp_path / "none")}
    hide = "from pathlib import Path\nPath.glob = lambda *args: iter(())\n"  # nothing was kept
    done = run(READ_ONLY + hide + APPLY, **place)
    assert done.stdout.startswith("0 [")
    assert done.stdout.count("Compiled kernels cannot be cached") == 1
    assert done.stderr.count("compiling kernels, once") == 1
    assert "python -m rflaf.fused" in done.stdout


@pytest.mark.parametrize("words", [("-m", "rflaf.fused"), ("-m", "rflaf", "warm-up")])
def test_commands_name_the_folder(words):
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    folder = done.stdout.strip().split("are in ")[-1]
    assert list(Path(folder).glob("jit.apply_rows*.nbi"))
