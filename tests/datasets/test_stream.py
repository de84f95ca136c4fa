"""PyTorch's random numbers, against PyTorch, and against numbers written down from it."""

import numpy as np
import pytest

from rflaf.datasets.stream import Stream


@pytest.mark.parametrize(
    ("n", "seed"),
    [(0, 0), (1, 0), (2, 0), (17, 20250101), (32_561, 0), (45_730, 0), (53_500, 1), (515_345, 0)],
)
def test_permutation_is_that_of_torch(n, seed):
    torch = pytest.importorskip("torch")
    expected = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()
    np.testing.assert_array_equal(Stream(seed).permutation(n), expected)


def test_permutation_without_torch():
    assert Stream(0).permutation(10).tolist() == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]


def test_normal_numbers_are_those_of_torch_also_one_after_another():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(125)
    stream = Stream(125)
    for shape in ((1600, 2), (2, 16), (160,)):
        expected = torch.randn(shape, generator=generator).numpy()
        found = stream.normal(*shape)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_normal_refuses_what_torch_draws_in_another_way():
    with pytest.raises(ValueError, match="multiple of 16"):
        Stream(0).normal(10)
