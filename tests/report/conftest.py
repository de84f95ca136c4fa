"""Models and pages that several tests look at, made once."""

import pytest

from tests.report.made_models import classifier, regressor


@pytest.fixture(scope="session")
def numbers_model():
    return regressor()


@pytest.fixture(scope="session")
def classes_model():
    return classifier()


@pytest.fixture(scope="session")
def pages(tmp_path_factory, numbers_model, classes_model):
    """Paths of pages of both models, with all rows at hand."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, (model, train, test) in (("numbers", numbers_model), ("classes", classes_model)):
        rows = {"X_train": train[0], "y_train": train[1]}
        made[name] = model.report(folder / f"{name}.html", *test, **rows)
    return made
