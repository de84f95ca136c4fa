"""Small models, and rows that come in blocks."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.rows import Blocks
from tests.tables import weighted_rows

N, SAMPLED = 1300, 1000
SEED = check_random_state(0).randint(np.iinfo(np.int32).max)  # that of random_state=0
SMALL = {"n_components": 25, "max_iter": 3, "n_members": 2, "random_state": 0}


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


@pytest.fixture(autouse=True)
def short_sample(monkeypatch):
    """Fewer rows than the tests have, so that there is a second pass."""
    monkeypatch.setattr(rules, "SAMPLE_ROWS", SAMPLED)


@pytest.fixture(scope="module")
def rows():
    return weighted_rows(N)


def cut(size, *parts):
    """A source with blocks of `size` rows and empty ones between them."""

    def read():
        for start in range(0, len(parts[0]), size):
            block = tuple(part[start : start + size] for part in parts)
            yield block if len(block) > 1 else block[0]
            if start == 0 or size > 1:
                yield tuple(part[:0] for part in parts)

    return Blocks(read)
