"""Fits keep within the memory that they may take."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rflaf
from rflaf.fitting import budget
from rflaf.rows import Block, Blocks
from rflaf.rows.sample import SampleDraw
from rflaf.rows.streamed import read_rows
from tests.estimators.streaming.conftest import classifier, cut, regressor


def test_the_parameter(rows):
    X, y, _ = rows
    for value in (0, -5, 1.5, "1GB"):
        with pytest.raises(ValueError, match="'max_bytes' parameter"):
            regressor(max_bytes=value).fit(X, y)
    for model in (regressor(solver="ridge"), classifier()):
        model.set_params(n_components=2000, max_bytes=50_000_000)
        with pytest.raises(MemoryError, match=r"n_components=2000 needs 0.16 GB .* 0.05 GB"):
            model.fit(X, y > 0)


def test_wide_rows_are_read_by_fewer():
    for allowed in (None, 10**7):
        for d in (10, 10_000):
            room = 1 << 27 if allowed is None else allowed
            assert read_rows(d, allowed) * d * 8 <= room
            assert budget.wide_block_rows(6000, d, allowed) * d * 8 <= room
    assert read_rows(10**9, 1) == budget.wide_block_rows(6000, 10**9, 1) == 1
    draw = SampleDraw(40, 0)
    for start in range(0, 1000, 10):
        draw.add(Block(start, np.zeros((10, 2)), np.zeros(10), np.ones(10)))
        assert draw.count <= 50
    assert len(draw.result().keys) == 40


def test_features_are_kept_where_there_is_room(rows):
    """What is read again changes with `max_bytes`; so do blocks, rounding and the last steps."""
    X, y, _ = rows
    counts, models = [], []
    for size in (None, 1_000_000, 160_000):
        passes = []

        def read(passes=passes):
            passes.append(None)
            yield from cut(100, X, y > 0.5)

        models.append(classifier(max_bytes=size).fit(Blocks(read)))
        counts.append(len(passes))
    assert counts[:2] == [2, 2]
    assert counts[2] > 4
    for other in models[1:]:
        assert other.activation_ == models[0].activation_
        np.testing.assert_allclose(other.predict_proba(X), models[0].predict_proba(X), atol=0.02)


CHILD = """
import resource, sys
import numpy as np
from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.rows import Blocks

rows, d, blocks = 5000, 50, 120  # 240 MB in all
rng = np.random.default_rng(0)
base = rng.normal(size=(rows, d))

def read(n=blocks):
    for k in range(n):
        X = base + k / n
        yield X, (X[:, 0] > 0.5).astype(float)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

options = dict(n_components=10, max_iter=2, metric="diagonal", random_state=0, max_bytes=60_000_000)
estimators = [RFLAFRegressor(alpha=1e-3, **options), RFLAFClassifier(alpha=0.1, **options)]
for model in estimators:
    model.fit(Blocks(lambda: read(2)))  # what libraries take when first used
before = peak()
for model in estimators:
    model.fit(Blocks(read))
    for _ in model.predict_blocks(Blocks(read)):
        pass
print(peak() - before)
"""


def test_memory_is_bounded(tmp_path):
    """A child process fits rows that take four times the bytes it may."""
    source = str(Path(rflaf.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[-1]) < 60_000_000
