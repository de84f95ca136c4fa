"""Names of models, and the runs behind tables and figures."""

import pytest

from rflaf.paper.printed import (
    FIGURES,
    TITLES,
    check_name,
    datasets_of,
    models_of,
    paper_numbers,
    quantities_of,
)
from rflaf.paper.protocols import SEEDS
from rflaf.paper.specs import ESTIMATORS, Model, Spec, matrix, parse_model, seeds_of
from rflaf.paper.worklist import work_for


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("rflaf-bs-128", Model("rflaf", "bs", 128)),
        ("lan-pl-16", Model("lan", "pl", 16)),
        ("rfmlp-cos", Model("rfmlp", "cos")),
        ("mlp-relu", Model("mlp", "relu")),
        ("kan-16", Model("kan", "", 16)),
        ("estimator", Model("estimator")),
        ("estimator-no-metric", Model("estimator", "no-metric")),
        ("recovery-smooth-v", Model("recovery", "smooth-v")),
    ],
)
def test_names_are_taken_apart(name, parts):
    assert parse_model(name) == parts


@pytest.mark.parametrize("name", ["rflaf", "rflaf-rbf-0", "rflaf-rbf-16 ", "mlp", "estimator-x"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="'model' must be one of"):
        parse_model(name)


def test_every_model_of_the_paper_has_a_name_we_know():
    for table in TITLES:
        for model in models_of(table):
            assert parse_model(model).published


def test_a_spec_goes_to_a_record_and_back():
    spec = Spec.of("mnist", "rflaf-rbf-16", "corrected", 3070)
    assert Spec(**spec.to_dict()) == spec
    assert (spec.n_components, spec.epochs) == (1000, 10)
    assert Spec.of("protein", "estimator", "corrected", 1).epochs == 0
    assert spec.quick().key != spec.key


def test_unfrozen_models_have_three_seeds_and_estimators_no_published_protocol():
    assert seeds_of("rflaf-rbf-16", 10) == SEEDS
    assert seeds_of("lan-rbf-16", 10) == SEEDS[:3]
    specs = matrix(["protein"], ["lan-rbf-16", "estimator"], n_seeds=10)
    assert sum(spec.model == "lan-rbf-16" for spec in specs) == 6
    assert {s.protocol for s in specs if s.model == "estimator"} == {"corrected"}
    assert [spec.seed for spec in specs[:3]] == [SEEDS[0]] * 3  # first seeds first


def test_the_papers_numbers():
    figures = paper_numbers()
    assert len(figures) == 653
    assert figures["table1", "test_loss", "mnist", "rflaf-rbf-16"].value == 0.126
    assert figures["table1", "test_loss", "adult", "rflaf-pl-16"].value is None
    assert quantities_of("table2") == ["train_time_ratio", "test_time_ratio"]
    assert len(models_of("table8")) == 22
    assert datasets_of("table3") == ["mnist", "cifar10", "adult"]


def test_names_of_tables():
    assert check_name("Table 1") == "table1"
    assert check_name("8") == "table8"
    with pytest.raises(ValueError, match="tables 1 to 10"):
        check_name("table11")


def test_work_is_each_run_once():
    work = work_for(["all"], n_seeds=3)
    assert len(set(work.runs)) == len(work.runs)
    assert {spec.dataset for spec in work.runs} >= {"f1", "f2", "f3", "millionsongs"}
    assert dict(work.timings)["adult"].count("rfmlp-relu") == 1
    assert not any(model in ESTIMATORS for _, models in work.timings for model in models)


def test_work_for_a_part():
    work = work_for(["table1", "table6"], datasets=["adult"], models=["rfmlp-relu"], n_seeds=2)
    assert {spec.protocol for spec in work.runs} == {"published", "corrected"}
    assert len(work.runs) == 4
    assert work.timings == ()
    times = work_for(["table9"], datasets=["adult"], models=["rflaf-rbf-8"])
    assert times.runs == ()
    assert times.timings == (("adult", ("rflaf-rbf-8",)),)
    assert {s.dataset for s in work_for(["figure2"]).runs} == {"f1"}
    assert work_for(["figure3"], datasets=["protein"]).runs == ()
    assert all(spec.rows for spec in work_for(list(FIGURES), quick=True).runs)
    with pytest.raises(ValueError, match="rflaf-rbg-8"):
        work_for(["table9"], models=["rflaf-rbg-8"])
    with pytest.raises(ValueError, match="rflaf-rbf-64, which table1 does not have: rflaf-rbf-16"):
        work_for(["table1"], models=["rfmlp-relu", "rflaf-rbf-64"])


def test_a_wrong_data_set_is_an_error_before_any_run():
    with pytest.raises(ValueError, match="protien"):
        work_for(["table1"], datasets=["protein", "protien"])
