"""What may be learned from so many rows."""

from rflaf.fitting.choosing import metric_kinds


def test_kinds_by_the_number_of_rows():
    assert metric_kinds("diagonal", 10, 10) == ["diagonal"]
    assert metric_kinds("auto", 49, 10) == ["none"]
    assert metric_kinds("auto", 50, 10) == ["none", "diagonal"]
    assert metric_kinds("auto", 100, 10) == ["none", "diagonal", "full"]
    assert metric_kinds("auto", 10**6, 128) == ["none", "diagonal", "full"]
    assert metric_kinds("auto", 10**6, 129) == ["none", "diagonal"]
    assert metric_kinds("auto", 10**6, 513) == ["none"]
