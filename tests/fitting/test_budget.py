"""What bytes are spent on."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import rules
from rflaf.fitting import budget
from rflaf.runtime.memory import physical_bytes


def test_normal_equations_have_to_fit():
    fits = budget.gram_bytes(1000)
    assert budget.gram_fits(1000, fits)
    assert not budget.gram_fits(1000, fits - 1)
    budget.check_gram(1000, fits)
    with pytest.raises(MemoryError, match=r"'max_bytes' allows .* enough for n_components=(\d+)"):
        budget.check_gram(1000, fits - 1)
    with pytest.raises(MemoryError, match="This machine has") as caught:
        budget.check_gram(10**7, None)
    most = int(str(caught.value).split("n_components=")[-1].rstrip("."))
    budget.check_gram(most, None)


@pytest.mark.parametrize("d", [1, 50, 20_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sample_keeps_within_its_share(d, dtype):
    x = np.broadcast_to(np.zeros(1, dtype), (5, d))
    for allowed in (10**8, 10**9):
        rows = budget.sample_rows(x, allowed)
        assert 1000 <= rows <= rules.SAMPLE_ROWS
        if rows > 1000:
            assert 3 * rows * d * x.itemsize <= allowed / 2
    assert budget.sample_rows(x, 1) == 1000
    assert budget.sample_rows(sparse.csr_array((5, d)), 1) == rules.SAMPLE_ROWS


def test_blocks_keep_within_theirs():
    for m, d in ((10, 3), (2000, 10), (10, 50_000)):
        assert budget.block_rows(m, d, None) >= 1
        for allowed in (10**6, 10**9):
            rows = budget.block_rows(m, d, allowed)
            assert rows == 1 or 16 * rows * (m + d) <= allowed / 8
    assert budget.block_rows(10**9, 10**9, 1) == budget.wide_block_rows(10**9, 10**9, 1) == 1


def test_what_is_kept_between_passes():
    assert 0 < budget.kept_bytes(1000) <= 1000
    assert 0 <= budget.kept_bytes(None) <= physical_bytes()
