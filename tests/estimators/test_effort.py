"""`effort` and `time_limit`."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.fitting import in_time
from rflaf.runtime.clock import Clock, OutOfTime, check_time, limited, may_learn
from rflaf.runtime.threads import parallel, use_threads

X, y = make_friedman1(300, noise=1.0, random_state=0)


def test_the_default_is_every_rule_as_it_is():
    assert rules.EFFORTS["default"] == rules.Effort()
    one, other = (
        RFLAFRegressor(random_state=0, **given).fit(X[:60], y[:60]).predict(X)
        for given in ({}, {"effort": "default"})
    )
    np.testing.assert_array_equal(one, other)


def test_efforts_differ_in_size():
    sizes = {}
    for effort in ("fast", "default", "best"):
        model = RFLAFRegressor(effort=effort, max_iter=1, random_state=0).fit(X[:60], y[:60])
        assert model.effort_ == effort
        assert f"effort         {effort}" in model.summary()
        sizes[effort] = max(len(model.members_), 1) * model.components_.shape[1]
    assert sizes["fast"] < sizes["default"] < sizes["best"]


def test_given_numbers_are_kept():
    model = RFLAFRegressor(30, n_members=2, effort="best", max_iter=1, random_state=0).fit(X, y)
    assert model.components_.shape[1] == 30
    assert len(model.members_) == 2


@pytest.mark.parametrize("estimator", [RFLAFRegressor, RFLAFClassifier])
def test_a_fast_model_has_learned(estimator):
    target = y if estimator is RFLAFRegressor else y > np.median(y)
    assert estimator(effort="fast", random_state=0).fit(X, target).oof_score_ > 0.8


def test_time_for_all():
    model = RFLAFRegressor(20, effort="fast", time_limit=600, random_state=0).fit(X, y)
    same = RFLAFRegressor(20, effort="fast", random_state=0).fit(X, y)
    assert model.left_out_ == []
    if model.effort_ == "fast":  # and not the least one, which is kept if it is better
        np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_no_time_leaves_the_least_effort():
    model = RFLAFRegressor(time_limit=1e-3, random_state=0).fit(X, y)
    assert model.effort_ == "least"
    assert model.left_out_ == ["effort 'fast'", "effort 'default'"]
    assert "skipped        effort 'fast' (time limit)" in model.summary()
    assert model.oof_score_ > 0.5


def test_a_fit_that_is_out_of_time_is_given_up(monkeypatch):
    """Whatever the machine does: the second fit finds the end in the past."""
    fits, fit = [], in_time.fit

    def slow(rows, loss, settings):
        fits.append(settings.effort)
        if settings.effort == "default":
            check_time()
            time.sleep(0.3)
        return fit(rows, loss, settings)

    monkeypatch.setattr(in_time, "fit", slow)
    monkeypatch.setattr(in_time, "rules", _Always(rules))
    began = time.monotonic()
    model = RFLAFRegressor(30, time_limit=2, random_state=0)
    monkeypatch.setattr(in_time, "monotonic", lambda: began + 1.7)  # 0.2 s before the end
    monkeypatch.setattr("rflaf.estimators.base.monotonic", lambda: began)
    monkeypatch.setattr("rflaf.runtime.clock.monotonic", _Later(fits, began))
    model.fit(X, y)
    assert fits == ["least", "fast", "default"]
    assert model.left_out_ == ["effort 'default'"]


class _Always:
    """The rules, where no fit is hopeless."""

    def __init__(self, given):
        self._given = given

    def __getattr__(self, name):
        return 0.0 if name == "HOPELESS" else getattr(self._given, name)


class _Later:
    """A time before the end, until the default fit has begun its work."""

    def __init__(self, fits, began):
        self._fits, self._began, self._asked = fits, began, 0

    def __call__(self):
        self._asked += self._fits[-1] == "default"
        return self._began + (1.7 if self._asked < 20 else 3.0)


def test_the_clock_is_seen_by_threads_that_help():
    past = Clock(time.monotonic() - 1, time.monotonic() - 1)
    with use_threads(2), limited(past):
        assert not may_learn()
        assert past.cut
        with pytest.raises(OutOfTime):
            parallel(lambda k: time.sleep(0.01), 4)
    assert may_learn()
    parallel(lambda k: None, 4)


def test_what_cannot_be_combined():
    with pytest.raises(ValueError, match="'time_limit'"):
        RFLAFRegressor(time_limit=5).partial_fit(X, y)
    with pytest.raises(ValueError, match="effort"):
        RFLAFRegressor(effort="slow").fit(X, y)
    with pytest.raises(ValueError, match="time_limit"):
        RFLAFRegressor(time_limit=0).fit(X, y)
