"""Tables from records, in four formats."""

import csv
import io

import pytest

from rflaf.paper.formats import FORMATS
from rflaf.paper.printed import Number
from rflaf.paper.protocols import SEEDS
from rflaf.paper.specs import Spec
from rflaf.paper.tables import difference, make_table, summarise


def record(dataset, model, protocol, seed, loss, **more):
    spec = Spec.of(dataset, model, protocol, seed)
    return {
        "key": spec.key,
        "kind": "training" if spec.epochs else "estimator",
        "spec": spec.to_dict(),
        "status": "finished" if loss is not None else "diverged",
        "test_loss": loss,
        "test_accuracy": None,
        "history": {},
        **more,
    }


@pytest.fixture
def records():
    made = [
        record("protein", "rflaf-rbf-16", "published", seed, loss)
        for seed, loss in zip(SEEDS, (0.203, 0.206, 0.209))
    ]
    made += [record("protein", "rflaf-pl-16", "published", SEEDS[0], None)]
    made += [record("protein", "estimator", "corrected", SEEDS[0], 0.153)]
    made += [record("protein", "rfmlp-relu", "corrected", SEEDS[0], 0.25)]
    return made


def rows(table, dataset, quantity="test_loss"):
    subtable = next(b for b in table.subtables if (b.dataset, b.quantity) == (dataset, quantity))
    return {row.model: row for row in subtable.rows}


def test_means_and_spreads_over_seeds(records):
    found = rows(make_table("table1", records), "protein")
    ours = found["rflaf-rbf-16"].numbers["published"]
    assert ours.mean == pytest.approx(0.206)
    assert ours.std == pytest.approx(0.0024495, rel=1e-3)  # of the population
    assert ours.seeds == 3
    assert found["rflaf-pl-16"].numbers["published"] == Number(None, None, 1, 1)
    assert "published" not in found["estimator"].numbers
    assert found["rfmlp-tanh"].numbers.keys() == {"paper"}


def test_the_difference_is_in_standard_errors(records):
    row = rows(make_table("table1", records), "protein")["rflaf-rbf-16"]
    # paper 0.204 ± 0.003 with ten seeds, ours 0.206 ± 0.00245 with three
    expected = 0.002 / (0.003**2 / 9 + 0.0024495**2 / 2) ** 0.5
    assert row.difference == pytest.approx(expected, rel=1e-3)
    assert difference(Number(None, None, 1, 1), Number(0.2, 0.1), "rfmlp-relu") is None
    assert difference(Number(0.3, 0.0, 1), Number(0.2, None), "rfmlp-relu") is None
    one_seed = difference(Number(0.3, 0.0, 1), Number(0.2, 0.1), "rfmlp-relu")
    assert one_seed == pytest.approx(0.1 / (0.01 + 0.01 / 9) ** 0.5)


def test_data_sets_without_records_say_so(records):
    table = make_table("table1", records)
    assert next(b for b in table.subtables if b.dataset == "ct").rows == ()
    for style in ("text", "markdown", "latex"):
        assert "data not available here" in FORMATS[style](table)


def test_the_best_of_each_column(records):
    subtable = next(b for b in make_table("table1", records).subtables if b.dataset == "protein")
    assert subtable.best()["paper"] == {"rflaf-bs-16"}
    assert subtable.best()["corrected"] == {"estimator"}
    assert subtable.best()["published"] == {"rflaf-rbf-16"}


def test_quick_runs_are_no_figures(records):
    spec = Spec.of("protein", "rfmlp-relu", "published", SEEDS[0]).quick()
    quick = {**records[0], "spec": spec.to_dict(), "key": spec.key, "test_loss": 9.0}
    assert rows(make_table("table1", [*records, quick]), "protein")[
        "rfmlp-relu"
    ].numbers.keys() == {"paper", "corrected"}


def test_epoch_of_the_lowest_mean_loss():
    losses = {"published": "test_loss", "corrected": "validation_loss"}
    made = [
        record("mnist", "rflaf-rbf-8", protocol, seed, 0.1, history={part: history})
        for protocol, part in losses.items()
        for seed, history in zip(SEEDS, ([3.0, 1.0, 1.1], [3.0, 2.0, 1.0]))
    ]
    found = rows(make_table("table3", made), "mnist", "epochs_to_best")["rflaf-rbf-8"]
    assert found.numbers["published"].mean == 3
    assert found.numbers["corrected"].mean == 3
    assert summarise([], "epochs_to_best") is None


def test_accuracies_are_percent_and_times_come_from_timings():
    made = [record("mnist", "rfmlp-relu", "published", SEEDS[0], 0.1, test_accuracy=0.95)]
    timing = {**made[0], "kind": "timing", "key": "timing/x", "train_time_ratio": 1.5}
    found = rows(make_table("table6", [*made, timing]), "mnist", "test_accuracy_pct")
    assert found["rfmlp-relu"].numbers["published"].mean == pytest.approx(95)
    times = rows(make_table("table9", [*made, timing]), "mnist", "train_time_ratio")
    assert times["rfmlp-relu"].numbers["published"].mean == 1.5


def test_formats(records):
    table = make_table("table1", records)
    assert "0.2060 ± 0.0024" in FORMATS["text"](table)
    for style in ("text", "markdown", "latex"):
        assert "the difference is that of the published protocol" in FORMATS[style](table), style
    assert "| rflaf-rbf-16 | 0.204 ± 0.003 | **0.2060 ± 0.0024** |" in FORMATS["markdown"](table)
    latex = FORMATS["latex"](table)
    assert r"0.204 $\pm$ 0.003" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](table))))
    line = next(r for r in lines if r["model"] == "rflaf-rbf-16")
    assert float(line["published_mean"]) == pytest.approx(0.206)
    assert line["published_seeds"] == "3"
    assert next(r for r in lines if r["model"] == "rflaf-pl-16")["published_mean"] == "diverged"


def test_a_figure_is_no_table(records):
    with pytest.raises(ValueError, match="figure1"):
        make_table("figure1", records)


def test_zeros_at_the_end_of_a_printed_number_are_digits():
    # 0.220 ± 0.002 has three places, though its float says 0.22
    ours, paper = Number(0.224, 0.0, 1), Number(0.22, 0.002)
    expected = 0.004 / (0.002**2 + 0.002**2 / 9) ** 0.5
    assert difference(ours, paper, "rfmlp-relu") == pytest.approx(expected)


def test_missing_runs_are_not_missing_data(records):
    subtables = {subtable.dataset: subtable for subtable in make_table("table9", records).subtables}
    assert subtables["protein"].reason == "no runs for this yet"
    assert subtables["ct"].reason == "data not available here"
    for style in ("text", "markdown", "latex"):
        assert "no runs for this yet" in FORMATS[style](make_table("table9", records))
