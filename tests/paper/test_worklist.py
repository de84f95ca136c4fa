"""The runs behind tables and figures."""

import pytest

from rflaf.paper.printed import FIGURES
from rflaf.paper.specs import ESTIMATORS
from rflaf.paper.worklist import work_for


def test_work_is_each_run_once():
    work = work_for(["all"], n_seeds=3)
    assert len(set(work.runs)) == len(work.runs)
    assert {spec.dataset for spec in work.runs} >= {"f1", "f2", "f3", "millionsongs"}
    assert work.timings["adult"].count("rfmlp-relu") == 1
    assert not any(model in ESTIMATORS for models in work.timings.values() for model in models)


def test_work_for_a_part():
    work = work_for(["table1", "table6"], datasets=["adult"], models=["rfmlp-relu"], n_seeds=2)
    assert {spec.protocol for spec in work.runs} == {"published", "corrected"}
    assert len(work.runs) == 4
    assert work.timings == {}
    times = work_for(["table9"], datasets=["adult"], models=["rflaf-rbf-8"])
    assert times.runs == []
    assert times.timings == {"adult": ["rflaf-rbf-8"]}
    assert {s.dataset for s in work_for(["figure2"]).runs} == {"f1"}
    assert work_for(["figure3"], datasets=["protein"]).runs == []
    assert all(spec.rows for spec in work_for(list(FIGURES), quick=True).runs)
    with pytest.raises(ValueError, match="rflaf-rbg-8"):
        work_for(["table9"], models=["rflaf-rbg-8"])
    with pytest.raises(ValueError, match="rflaf-rbf-64, which table1 does not have: rflaf-rbf-16"):
        work_for(["table1"], models=["rfmlp-relu", "rflaf-rbf-64"])


def test_a_wrong_data_set_is_an_error_before_any_run():
    with pytest.raises(ValueError, match="protien"):
        work_for(["table1"], datasets=["protein", "protien"])
