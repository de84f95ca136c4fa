"""Blocks that fail, differ between passes or will not do: an error, and the model as it was."""

import numpy as np
import pytest

from rflaf.rows import Blocks
from tests.estimators.streaming.conftest import N, classifier, cut, regressor


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("fails_in", [1, 2])
def test_a_reader_that_fails_leaves_the_model_as_it_was(make, fails_in, rows):
    X, y, _ = rows
    model = make().fit(X, y > 0.5)
    before, expected = dict(vars(model)), model.predict(X)
    passes = []
    failure = OSError("the disk is gone")

    def read():
        passes.append(None)
        for k, block in enumerate(cut(100, X, y > 0.5)):
            if len(passes) == fails_in and k == 7:
                raise failure
            yield block

    with pytest.raises(OSError, match="the disk is gone") as caught:
        model.fit(Blocks(read))
    assert caught.value is failure
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(X), expected)


def test_a_reader_that_fails_leaves_settings_alone(rows):
    model = regressor()
    model._metadata_request = "as it was"

    def read():
        yield rows[0], rows[1]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Blocks(read))
    assert set(vars(model)) == {*model.get_params(), "_metadata_request"}


def test_missing_classes(rows):
    X, y, _ = rows
    labels = np.where(y > 0.5, "b", "a").astype(object)
    for nothing in (None, np.nan):
        labels[700] = nothing
        with pytest.raises(ValueError, match="y contains missing classes"):
            classifier().fit(cut(100, X, labels))


def test_passes_that_differ(rows):
    X, y, _ = rows

    def changing(first, later):
        passes = []

        def read():
            passes.append(None)
            return iter(first if len(passes) == 1 else later)

        return Blocks(read)

    blocks = list(cut(100, X, y))
    with pytest.raises(ValueError, match="gave 1300 rows in the first pass and 1200 in a later"):
        regressor().fit(changing(blocks, blocks[:-2]))
    narrow = [(part[:, :2], y) for part, y in blocks]
    with pytest.raises(ValueError, match="2 features, but RFLAFRegressor is expecting 3"):
        regressor().fit(changing(blocks, narrow))
    wide = [(part, np.column_stack([y, y])) for part, y in blocks]
    with pytest.raises(ValueError, match="'y' must have the shape"):
        regressor().fit(changing(blocks, wide))
    classes = [(part, (y > 0.5).astype(int)) for part, y in blocks]
    others = [(part, y + 8) for part, y in classes]
    with pytest.raises(ValueError, match=r"The class [89] did not occur in the first pass"):
        classifier().fit(changing(classes, others))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity_are_located(value, word, rows):
    pandas = pytest.importorskip("pandas")
    X, y, weights = rows
    spoilt = X.copy()
    spoilt[423, 1] = value
    place = "in row 423, column {} .*rows 400 to 499"
    with pytest.raises(ValueError, match=f"Input X contains {word} " + place.format(1)):
        regressor().fit(cut(100, spoilt, y))
    frame = pandas.DataFrame(spoilt, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=f"Input X contains {word} " + place.format("'b'")):
        regressor().fit(cut(100, frame, y))
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        model.predict(cut(100, spoilt))
    for name, parts in (("y", (X, spoilt[:, 1])), ("weight", (X, y, np.abs(spoilt[:, 1])))):
        with pytest.raises(ValueError, match=rf"Input {name} contains {word} in row 423"):
            regressor().fit(cut(100, *parts))
    with pytest.raises(ValueError, match="must not be negative"):
        regressor().fit(cut(100, X, y, weights - 1))


@pytest.mark.parametrize("make", [regressor, classifier])
def test_sources_that_will_not_do(make, rows):
    sparse = pytest.importorskip("scipy.sparse")
    X, y, _ = rows
    labels = (y > 0.5).astype(int)
    source = cut(100, X, labels)
    with pytest.raises(ValueError, match="targets and weights come from its blocks"):
        make().fit(source, y)
    with pytest.raises(ValueError, match=r"needs blocks \(X, y\)"):
        make().fit(cut(100, X))
    with pytest.raises(ValueError, match="no rows"):
        make().fit(Blocks([]))
    with pytest.raises(ValueError, match="no rows"):
        make().fit(source).predict(Blocks([X[:0]]))
    with pytest.raises(ValueError, match="tuple of 4 parts"):
        make().fit(Blocks([(X, labels, labels, labels)]))
    with pytest.raises(ValueError, match="shape"):
        make().fit(Blocks([(X, labels[:-1])]))
    with pytest.raises(TypeError, match="must be dense"):
        make().fit(Blocks([(sparse.csr_array(X), labels)]))
    with pytest.raises(ValueError, match="positive entry"):
        make().fit(cut(100, X, labels, np.zeros(N)))


def test_classes_that_are_none(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(cut(100, X, y))
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier().fit(cut(100, X, np.zeros(N)))
    with pytest.raises(TypeError, match="partial_fit takes arrays"):
        regressor().partial_fit(cut(100, X, y), None)
