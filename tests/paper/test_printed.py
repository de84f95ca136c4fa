"""The paper's own numbers, and the names of its tables."""

import pytest

from rflaf.paper.printed import check_name, datasets_of, models_of, paper_numbers, quantities_of


def test_the_papers_numbers():
    numbers = paper_numbers()
    assert len(numbers) == 653
    assert numbers["table1", "test_loss", "mnist", "rflaf-rbf-16"].mean == 0.126
    assert numbers["table1", "test_loss", "adult", "rflaf-pl-16"].mean is None
    assert quantities_of("table2") == ["train_time_ratio", "test_time_ratio"]
    assert len(models_of("table8")) == 22
    assert datasets_of("table3") == ["mnist", "cifar10", "adult"]


def test_names_of_tables():
    assert check_name("Table 1") == "table1"
    assert check_name("8") == "table8"
    with pytest.raises(ValueError, match="tables 1 to 10"):
        check_name("table11")
