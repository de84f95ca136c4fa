"""A fit that fails or is interrupted, wherever that is, leaves the estimator as it was."""

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rflaf
from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.rows import Blocks

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the projected inputs:UserWarning",
    # a generator that is closed is called too, and what it raises then goes nowhere
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

PACKAGE = str(Path(rflaf.__file__).parent)
SMALL = {
    "n_components": 12,
    "max_iter": 2,
    "n_basis": 8,
    "metric": "diagonal",
    "random_state": 0,
    "n_members": 2,
    "input_form": "raw",
    "n_jobs": 1,  # calls are counted in this thread only
}
_rng = np.random.default_rng(8)
X = _rng.standard_normal((260, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
OTHER = 3 * X[::-1] + 1  # what the second fit sees: nothing of the first may be left in it


class Failure(Exception):
    pass


class Interrupt:
    """Counts calls of Python functions of the package, and raises at one of them."""

    def __init__(self, at=None, error=Failure):
        self.at, self.error, self.count = at, error, 0

    def __call__(self, frame, event, _argument):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_flags & inspect.CO_GENERATOR:  # Python ignores errors where it closes one
            return
        self.count += 1
        if self.count == self.at:
            sys.setprofile(None)  # once
            self.place = frame.f_code.co_qualname
            raise self.error(f"call {self.at}: {frame.f_code.co_qualname}")

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


def blocks(x, y):
    return Blocks([(x[k : k + 90], y[k : k + 90]) for k in range(0, len(y), 90)])


# what is fitted first, and what is interrupted then
CASES = {
    "regressor": (
        lambda: RFLAFRegressor(**SMALL).fit(X, Y),
        lambda model: model.fit(OTHER, 5 * Y),
    ),
    "regressor, cg": (
        lambda: RFLAFRegressor(**{**SMALL, "n_members": 1}, solver="cg", alpha=0.1).fit(X, Y),
        lambda model: model.fit(OTHER, np.column_stack([Y, -Y])),
    ),
    "regressor, few rows": (
        lambda: RFLAFRegressor(**SMALL).fit(X, Y),
        lambda model: model.fit(OTHER[:40], Y[:40]),
    ),
    "regressor, a source": (
        lambda: RFLAFRegressor(**SMALL, warm_start=True).fit(blocks(X, Y)),
        lambda model: model.fit(blocks(OTHER, 5 * Y)),
    ),
    "classifier": (
        lambda: RFLAFClassifier(**SMALL).fit(X, LABELS),
        lambda model: model.fit(OTHER, LABELS == "a"),
    ),
    "classifier, few rows": (
        lambda: RFLAFClassifier(**SMALL).fit(X, LABELS),
        lambda model: model.fit(OTHER[:50], LABELS[:50]),
    ),
    "classifier, a source": (
        lambda: RFLAFClassifier(**SMALL).fit(blocks(X, LABELS)),
        lambda model: model.fit(blocks(OTHER, LABELS)),
    ),
    "features": (
        lambda: RandomFeatures(12, activation="tanh", random_state=0).fit(X),
        lambda model: model.fit(OTHER[:, :2]),
    ),
    "more rows": (
        lambda: RFLAFRegressor(**SMALL).partial_fit(X, Y),
        lambda model: model.partial_fit(OTHER[:110], Y[:110]),
    ),
    "more rows with classes": (
        lambda: RFLAFClassifier(**SMALL).partial_fit(X, LABELS),
        lambda model: model.partial_fit(OTHER[:110], LABELS[:110]),
    ),
    "a fit after more rows": (
        lambda: RFLAFRegressor(**SMALL).partial_fit(X, Y),
        lambda model: model.fit(OTHER, Y),
    ),
}
ERRORS = [Failure, KeyboardInterrupt, MemoryError]
each_case = pytest.mark.parametrize("case", CASES)


def output(model, x=X):
    return (model.transform if isinstance(model, RandomFeatures) else model.predict)(x)


class Before:
    """An estimator as it was: its attributes, their bytes, and what it makes of rows."""

    def __init__(self, model):
        self.attributes = dict(vars(model))
        self.bits = pickle.dumps(vars(model))
        self.output = output(model)

    def check(self, model, where):
        assert vars(model).keys() == self.attributes.keys(), where
        for name, value in self.attributes.items():
            assert vars(model)[name] is value, f"{where}: {name}"
        assert pickle.dumps(vars(model)) == self.bits, where

    def check_output(self, model, where):
        np.testing.assert_array_equal(output(model), self.output, err_msg=str(where))


def places(count, every=24, spread=26):
    """The first calls, the last ones, and some between them."""
    if count <= every + spread:
        return list(range(1, count + 1))
    first, last = every // 2, every - every // 2
    between = np.linspace(first + 1, count - last, spread).astype(int).tolist()
    return [*range(1, first + 1), *between, *range(count - last + 1, count + 1)]


def count_calls(case, fitted=True):
    make, again = CASES[case]
    begin = make if fitted else lambda: clone(make())
    again(begin())  # what is compiled or looked up once is so by now
    model = begin()
    if fitted:
        output(model)  # as below: what a model prepares for its predictions is there
    with Interrupt() as calls:
        again(model)
    return calls.count


@each_case
def test_an_error_at_any_call_leaves_a_fitted_model_as_it_was(case):
    make, again = CASES[case]
    count = count_calls(case)
    assert count > 10
    model = make()
    before = Before(model)
    failed = 0
    for k in places(count):
        error = ERRORS[k % 3]
        try:
            with Interrupt(k, error):
                again(model)
        except error as raised:
            failed += str(raised).startswith(f"call {k}:")
            before.check(model, raised)
            if k % 7 == 0 or k > count - 10:
                before.check_output(model, raised)
        else:
            # it was lost in a generator that was closed: the fit is whole
            model = make()
            before = Before(model)
    assert failed > 0.9 * len(places(count))
    again(model)  # and nothing keeps it from being fitted
    rows = OTHER[:, : model.n_features_in_]
    expected = again(make())
    np.testing.assert_array_equal(output(model, rows), output(expected, rows))


@pytest.mark.filterwarnings("ignore:partial_fit started with:UserWarning")
@pytest.mark.parametrize("case", ["regressor", "classifier", "features", "more rows"])
def test_an_error_at_any_call_leaves_a_model_that_was_not_fitted_so(case):
    make, again = CASES[case]
    unfitted = clone(make())
    interrupted, tried = 0, places(count_calls(case, fitted=False), 20, 20)
    for k in tried:
        model = clone(unfitted)
        before = dict(vars(model))
        calls = Interrupt(k)
        try:
            with calls:
                again(model)
        except Failure:
            interrupted += 1
        else:  # collected garbage makes a call more or less: the end came before this one
            assert calls.count < k, calls.place
            continue
        assert vars(model) == before
        with pytest.raises(NotFittedError):
            output(model)
    assert interrupted >= len(tried) - 3


@pytest.mark.parametrize(
    "make", [RFLAFRegressor, pytest.param(RFLAFClassifier, marks=pytest.mark.slow)]
)
def test_an_error_on_the_way_out_is_one_after_the_fit(make):
    """The end of a fit is one step: before it the model is the old one, after it the new one."""
    fitted = make(**SMALL).fit(X, LABELS == "a")
    again = make(**SMALL).fit(OTHER, LABELS == "b")
    old, new = output(fitted), output(again)
    assert not np.array_equal(old, new)
    model = make(**SMALL)
    seen = set()
    with _LineInterrupt() as lines:
        model.fit(X, LABELS == "a")
    assert lines.count > 5
    for k in range(1, lines.count + 1):
        model.fit(X, LABELS == "a")
        tracer = _LineInterrupt(k)
        try:
            with tracer:
                model.fit(OTHER, LABELS == "b")
        except Failure:
            pass
        kinds = [name for name, each in (("old", old), ("new", new))
                 if np.array_equal(output(model), each)]  # fmt: skip
        assert len(kinds) == 1, k
        seen.update(kinds)
        reference = fitted if kinds == ["old"] else again
        assert _bytes(model) == _bytes(reference)
    assert seen == {"old", "new"}


def _bytes(model):
    return {name: pickle.dumps(value) for name, value in vars(model).items()}


class _LineInterrupt:
    """Raises at the k-th line that the estimator itself runs: of `fit` and of publishing."""

    def __init__(self, at=None):
        self.at, self.count = at, 0

    def _lines(self, frame, event, _argument):
        if event == "line":
            self.count += 1
            if self.count == self.at:
                sys.settrace(None)
                raise Failure(f"line {self.at}")
        return self._lines

    def _calls(self, frame, event, _argument):
        inside = frame.f_code.co_filename.startswith(str(Path(PACKAGE) / "estimators"))
        wanted = frame.f_code.co_name in ("fit", "_publish", "_publish_fit")
        return self._lines if inside and wanted else None

    def __enter__(self):
        sys.settrace(self._calls)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


# ---- partial_fit


@pytest.mark.parametrize("error", ERRORS)
def test_rows_that_are_added_again_after_an_interruption_count_once(error):
    """Each chunk is interrupted a few times, at other places each time, and tried again."""
    chunks = [(X, Y), (OTHER[:70], Y[:70]), (X[:1], Y[:1]), (OTHER[70:], 2 * Y[70:])]
    steady = RFLAFRegressor(**SMALL)
    shaken = RFLAFRegressor(**SMALL)
    rng = np.random.default_rng(3)
    interruptions = 0
    steady.partial_fit(X, Y).partial_fit(X, Y)  # what is compiled or looked up once
    steady = RFLAFRegressor(**SMALL)
    for x, y in chunks:
        with Interrupt() as calls:
            steady.partial_fit(x, y)
        # a model that has been interrupted has less to prepare
        for k in rng.integers(1, round(0.9 * calls.count), 12):
            with pytest.raises(error), Interrupt(int(k), error):
                shaken.partial_fit(x, y)
            interruptions += 1
        shaken.partial_fit(x, y)
        np.testing.assert_array_equal(shaken.predict(X), steady.predict(X))
        assert shaken._partial.fit.rows_seen == steady._partial.fit.rows_seen
        for mine, its in zip(sums(shaken), sums(steady), strict=True):
            np.testing.assert_array_equal(mine.gram, its.gram)
            assert mine.rows == its.rows
    assert interruptions == 48
    assert shaken._partial.fit.rows_seen == sum(len(y) for _, y in chunks)


def sums(model):
    """Over the rows that each member may see, and over those of its fold."""
    return [part for pair in model._partial.fit.online.sums for part in pair]


# ---- the keyboard

CHILD = """
import os, pickle, signal, sys, threading, time
import numpy as np
from rflaf import RFLAFClassifier, RFLAFRegressor, RandomFeatures

seed = int(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever has started this
rng = np.random.default_rng(seed)
X = rng.standard_normal((300, 3))
tables = [(X, X[:, 0] > 0), (2 * X + 1, X[:, 1] > 0)]
options = dict(n_components=12, max_iter=2, n_basis=8, n_members=2, metric="diagonal",
               input_form="raw", random_state=0)
models = [RFLAFRegressor(**options), RFLAFClassifier(**options),
          RandomFeatures(9000, activation="tanh", projection="orthogonal", random_state=0)]
sys.setswitchinterval(1e-4)


def state(model):
    return {name: pickle.dumps(value) for name, value in sorted(vars(model).items())}


whole = [[state(model.fit(*table)) for table in tables] for model in models]  # the two it may have
assert all(one != other for one, other in whole)
durations = []
for model in models:
    start = time.perf_counter()
    for _ in range(5):
        model.fit(*tables[0])
    durations.append((time.perf_counter() - start) / 5)
ready, moment = threading.Event(), [0.0]


def strike():
    while True:
        ready.wait()
        ready.clear()
        time.sleep(moment[0])
        os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=strike, daemon=True).start()
hit, old = [0, 0, 0], [0, 0, 0]  # interruptions, and those that came before the end of the fit
turn = 0
while min(hit) < 20 or min(old) < 3:
    which = turn % 3
    turn += 1
    model = models[which].fit(*tables[0])
    moment[0] = float(rng.uniform(0, 1.1)) * durations[which]
    struck = False
    try:
        ready.set()
        model.fit(*tables[1])
        for _ in range(200):  # it came too late: wait for it, unless a finaliser has swallowed it
            time.sleep(0.01)
    except KeyboardInterrupt:
        struck = True
    found = state(model)
    if found not in whole[which]:
        names = [n for n in found if found[n] != whole[which][0].get(n)]
        sys.exit(f"{type(model).__name__} has parts of both fits: {names}")
    hit[which] += struck
    old[which] += found == whole[which][0]
"""


@pytest.mark.parametrize("seed", [0, 1])
def test_sigint_at_random_moments(seed):
    """A child refits and is interrupted many times, and looks at its models."""
    result = subprocess.run(
        [sys.executable, "-c", CHILD, str(seed)],
        env={**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
