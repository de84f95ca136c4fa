"""Which curves are picked from records, and the images made of them."""

import pytest

from rflaf.paper.curves import (
    figure1,
    figure2,
    figure3,
    learned_activations,
    loss_curves,
    recoveries,
    sort_out,
)
from rflaf.paper.figures import save_figures
from rflaf.paper.specs import RECOVERY
from tests.paper.report.made_records import HOSTILE, make_records


@pytest.fixture(scope="module")
def known():
    known, other = sort_out(make_records(("protein",), 3))
    assert not other
    return known


def named(panel, name):
    return [line for line in panel.lines if line.name == name]


def test_figure1_has_ours_beside_the_paper(known):
    published, corrected, times = figure1(known, "protein")
    (paper,) = named(published, "RBF, paper")
    (ours,) = named(published, "RBF")
    assert paper.style == "dashed"
    assert list(paper.x) == list(ours.x) == [8, 16, 32, 64, 128]
    assert list(paper.y)[1] == 0.204, "as table 8 prints it"
    assert list(ours.y) == pytest.approx(list(paper.y), rel=0.03)
    assert named(corrected, "estimator")
    assert not named(published, "estimator")
    assert list(named(times, "BS")[0].y) == pytest.approx([1.08, 1.16, 1.32, 1.64, 2.28])
    assert figure1(known, "workloads") == []


def test_figures_2_and_3_show_the_median_seed(known):
    found = recoveries(known)
    assert [(f.function, f.method) for f in found[:3]] == [("f1", name) for name in RECOVERY]
    specs = {"dataset": "f1", "model": RECOVERY[0]}
    errors = sorted(r["error"] for r in known if specs.items() <= r["spec"].items())
    assert found[0].error == found[0].typical["error"] == errors[1]
    (panel,) = figure2(known)
    assert next(line.name for line in panel.lines if line.style == "solid") == "truth"
    assert sum(line.style == "solid" for line in panel.lines) == 1 + len(RECOVERY)
    panels = figure3(known)
    assert len(panels) == 9
    assert list(panels[0].lines[-1].y) == found[0].typical["sigma"]


def test_activations_have_one_scale_and_sign(known):
    panels = {panel.title: panel for panel in learned_activations(known, "protein")}
    assert "rflaf-rbf-16" in panels
    assert "rfmlp-relu" not in panels
    lines = panels["rflaf-rbf-16"].lines
    assert all(max(map(abs, line.y)) == pytest.approx(1) for line in lines)
    first = next(line for line in lines if line.style == "solid")
    assert all(sum(a * b for a, b in zip(line.y, first.y)) >= 0 for line in lines)
    assert [line.style for line in lines] == ["faint", "faint", "solid"] * 2


def test_loss_curves_are_means_over_seeds(known):
    panels = {panel.title: panel for panel in loss_curves(known, "protein")}
    test, train = named(panels["fixed activations, published protocol"], "rfmlp-relu")
    runs = [
        r["history"]["test_loss"][0]
        for r in known
        if r["spec"]["model"] == "rfmlp-relu"
        and r["spec"]["protocol"] == "published"
        and r["kind"] == "training"
    ]
    assert len(runs) == 3
    assert test.y[0] == pytest.approx(sum(runs) / 3)
    assert (test.style, train.style) == ("solid", "dashed")
    diverged = named(panels["PL, published protocol"], "rflaf-pl-16")[0]
    assert diverged.y[2] is None


def test_images(tmp_path, known):
    hostile = [{**r, "spec": {**r["spec"], "dataset": HOSTILE[0] + "$x_"}} for r in known[:30]]
    paths = save_figures([*known, *hostile, {"key": "odd"}], tmp_path / "new")
    assert [path.name for path in paths] == ["figure1.png", "figure2.png", "figure3.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert len(list((tmp_path / "new").iterdir())) == 3
    assert save_figures([{"key": "odd"}], tmp_path, ["figure2"]) == []
    with pytest.raises(ValueError, match=r"'names'.*figure9"):
        save_figures(known, tmp_path, ["figure9"])
