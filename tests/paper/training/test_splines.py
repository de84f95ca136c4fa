"""The bases of the published experiments, with their defect and without."""

import numpy as np
import pytest

from rflaf.paper.training import DefectiveBSpline, published_basis


def test_published_bases():
    assert published_basis("rbf", 16).centers.shape == (17,)
    assert published_basis("rbf", 16).width == 0.25
    assert published_basis("pl", 4).n == 5
    right = published_basis("bs", 16, corrected=True)
    wrong = published_basis("bs", 16)
    assert isinstance(wrong, DefectiveBSpline)
    z = np.linspace(-3, 3, 601)
    # the outer pieces are those of a B-spline, 4/3 as high; the middle one is not
    for i, c in enumerate(np.linspace(-2, 2, 17)):
        outer = ((z > c - 0.25) & (z < c)) | ((z > c + 0.25) & (z < c + 0.5))
        np.testing.assert_allclose(wrong(z)[outer, i], right(z)[outer, i] * 4 / 3, atol=1e-12)
    assert np.abs(wrong(2.1)[-1] - right(2.1)[-1]) > 10
    with pytest.raises(ValueError, match="'kind' parameter of published_basis"):
        published_basis("sine", 4)
