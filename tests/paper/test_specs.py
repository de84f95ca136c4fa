"""Names of models, and what a run is."""

import pytest

from rflaf.paper.printed import TITLES, models_of
from rflaf.paper.protocols import SEEDS
from rflaf.paper.specs import Model, Spec, matrix, parse_model, seeds_of


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
