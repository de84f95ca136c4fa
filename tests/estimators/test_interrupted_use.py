"""Predictions, reports and files that are interrupted: nothing half-written, a model as before."""

import os
import pickle

import numpy as np
import pytest

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.io import save
from rflaf.report import write_report
from rflaf.runtime import threads
from tests.estimators.test_all_or_nothing import ERRORS, LABELS, SMALL, Interrupt, X, Y, places

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # as there
)
SMALL = {**SMALL, "input_form": "auto"}


def number_outputs(model):
    return [model.predict(X), model.predict(X[:1]), *model.predict(X, return_std=True)]


def class_outputs(model):
    return [model.predict_proba(X), model.predict_proba(X[:1]), model.decision_function(X)]


MODELS = {
    "regressor": (lambda: RFLAFRegressor(**SMALL).fit(X, Y), Y, number_outputs),
    "classifier": (lambda: RFLAFClassifier(**SMALL).fit(X, LABELS), LABELS, class_outputs),
}


def predict(model, y, outputs, path):
    outputs(model)


def report(model, y, outputs, path):
    write_report(model, path, X[:60], y[:60], X_train=X, y_train=y)


def store(model, y, outputs, path):
    save(model, path)


@pytest.mark.parametrize("use", [predict, report, store])
@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_use_leaves_no_trace(name, use, tmp_path):
    """A copy that has never predicted is used each time: it has what it prepares still to make."""
    make, y, outputs = MODELS[name]
    fitted = pickle.dumps(make())
    path = tmp_path / "made"
    expected = outputs(pickle.loads(fitted))
    one_thread = threads.at_most(1)  # calls are counted in this one only
    with one_thread, Interrupt():  # what is compiled or looked up once is so by now
        use(pickle.loads(fitted), y, outputs, path)
    if use is not predict:
        path.write_bytes(b"before")
    there = os.listdir(tmp_path)
    with one_thread, Interrupt() as calls:
        use(pickle.loads(fitted), y, outputs, tmp_path.with_name("whole"))
    failed, tried = 0, places(calls.count, 20, 20)
    for k in tried:
        model, error = pickle.loads(fitted), ERRORS[k % 3]
        try:
            with one_thread, Interrupt(k, error):
                use(model, y, outputs, path)
        except error:
            failed += 1
            assert os.listdir(tmp_path) == there, k
            assert not there or path.read_bytes() == b"before", k
        else:  # it was lost in a generator that was closed, or came too late
            if there:
                path.write_bytes(b"before")
        assert not threads._inside
        for found, wanted in zip(outputs(model), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"after call {k}")
    assert failed > 0.8 * len(tried)
