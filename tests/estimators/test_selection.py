"""Tools of others that choose or explain columns work by `feature_importances_`."""

import numpy as np
import pytest
from sklearn.feature_selection import RFE, SelectFromModel

from rflaf import RFLAFClassifier, RFLAFRegressor

SMALL = {"n_components": 5, "n_members": 1, "random_state": 0}  # as many features as columns


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 5))
    return x, np.sin(2 * x[:, 3]) + x[:, 3]


def test_select_from_model_keeps_the_column_that_matters(rows):
    found = SelectFromModel(RFLAFRegressor(**SMALL), max_features=1).fit(*rows)
    assert found.get_support().tolist() == [False, False, False, True, False]


def test_recursive_elimination_ends_at_the_column_that_matters(rows):
    x, y = rows
    found = RFE(RFLAFClassifier(**SMALL), n_features_to_select=1, step=2).fit(x, y > 0)
    assert found.ranking_[3] == 1


def test_shap_takes_it_for_a_function(rows):
    shap = pytest.importorskip("shap")
    x, y = rows
    model = RFLAFRegressor(**SMALL).fit(x, y)
    found = shap.Explainer(model.predict, x[:20])(x[:3])
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict(x[:3]), atol=1e-6)
    assert np.abs(found.values).sum(axis=0).argmax() == 3


def test_no_attribute_is_mistaken_for_a_weight_per_column(rows):
    assert not hasattr(RFLAFRegressor(**SMALL).fit(*rows), "coef_")
