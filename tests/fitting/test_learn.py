"""What may be learned from so many rows."""

from rflaf.fitting.learn import metric_kinds


def test_kinds_by_the_number_of_rows():
    assert metric_kinds("diagonal", 10, 10) == ["diagonal"]
    assert metric_kinds("auto", 99, 10) == ["none"]
    assert metric_kinds("auto", 100, 10) == ["none", "diagonal"]
    assert metric_kinds("auto", 250, 10) == ["diagonal"]
    assert metric_kinds("auto", 400, 10) == ["diagonal", "full"]
    assert metric_kinds("auto", 2500, 10) == ["full"]
    assert metric_kinds("auto", 10**6, 100) == ["diagonal"]
    assert metric_kinds("auto", 10**6, 1000) == ["none"]
    assert metric_kinds("auto", 100, 1) == ["full"]
