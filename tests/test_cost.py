"""The model of cost finds what made the runs, and knows the constants of the package."""

import importlib
from pathlib import Path

import pytest

from rflaf import rules
from rflaf.fitting.budget import gram_bytes

TOOLS = Path(__file__).parent.parent / "tools"
READ, SUMS, SOLVE, LEARN, PER_ROW = 2e-9, 1e-11, 1e-10, 5.0, 1e-4


@pytest.fixture
def cost(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("cost")


def run(cost, n, kind="disk", d=20, m=1000, members=1, **more):
    """What a machine would measure that follows the terms, with passes that lose a tenth."""
    read = READ * 4 * n * (d + 1)
    sums = members * (SUMS * n * m * (m + d) + SOLVE * m**3)
    learn = LEARN + PER_ROW * min(n, cost.SAMPLE)
    clock = 1.1 * (read + sums) / more.get("threads", more.get("workers", 1))
    return {
        "kind": kind,
        "n": n,
        "d": d,
        "m": m,
        "members": members,
        **more,
        "read_seconds": read,
        "sum_seconds": sums,
        "pass_clock": clock,
        "learn_seconds": learn,
        "peak_bytes": 1e8,
        "seconds": clock + learn,
    }


def test_terms_are_found_and_runs_left_out_are_predicted(cost):
    rows = [run(cost, 10**k, threads=2) for k in (4, 5, 6, 7)]
    rows += [run(cost, 300_000, "passes", m=2000, threads=2)]
    rows += [run(cost, 10**6, "dask", workers=w, partition=50_000) for w in (1, 2)]
    rows += [{"kind": "derived", "what": "of another form"}]
    model, unseen = cost.fit_model(rows)
    assert model.terms["read_seconds"] == pytest.approx([READ])
    assert model.terms["sum_seconds"] == pytest.approx([SUMS, SOLVE])
    assert model.terms["learn_seconds"] == pytest.approx([LEARN, PER_ROW])
    assert model.slower == pytest.approx({"disk": 1.1, "dask": 1.1})
    assert [(each["n"], each["kind"]) for each in unseen] == [(10**7, "disk"), (10**6, "dask")]
    for each in unseen:
        assert model.of_run(each).passes == pytest.approx(each["pass_clock"])
        assert model.of_run(each).learn == pytest.approx(each["learn_seconds"])


def test_few_sizes_are_an_error(cost):
    with pytest.raises(ValueError, match="at least three sizes"):
        cost.fit_model([run(cost, 10**5, threads=1), run(cost, 10**6, threads=1)])


def test_what_is_sent(cost):
    model, _ = cost.fit_model([run(cost, 10**k, threads=1) for k in (4, 5, 6)])
    size = cost.Size(10**6)
    least = cost.SAMPLE * (4 * size.d + cost.ROW_MORE) + size.sums
    assert model(size, 1, 10**6).sent == least  # to the client alone
    assert model(size, 4).sent == 0  # threads of one machine
    sent = [model(cost.Size(10**9), 100, rows).sent for rows in (10**6, 10**5)]
    assert sent[1] / sent[0] == pytest.approx(10, rel=0.1)  # sums of ten times the partitions


def test_constants_are_those_of_the_package(cost):
    partitions = pytest.importorskip("rflaf.dask.partitions", reason="needs dask")
    assert cost.SAMPLE == rules.SAMPLE_ROWS
    assert cost.FAN_IN == partitions._FAN_IN
    assert cost.Size(1).sums + 24 * 1001**2 == gram_bytes(1000)
