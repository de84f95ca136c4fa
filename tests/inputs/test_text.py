"""Free text: what its n-grams tell of the target."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

import rflaf
from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.inputs import ColumnEncoder, text
from rflaf.rows import Blocks
from tests.inputs.conftest import SMALL

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")
WORTH = {"Zelda": 3.0, "Mario Kart": 2.0, "Chess": -1.0, "Golf Tour": -2.0}


def titles(n=200, seed=0):
    """Titles that are all different, some of them missing, and what they are worth."""
    rng = np.random.default_rng(seed)
    names = rng.choice(list(WORTH), n)
    frame = pd.DataFrame(
        {
            "title": [f"{name} {rng.integers(10**6)}" for name in names],
            "size": rng.normal(size=n),
            "wet": rng.random(n) < 0.5,
        }
    )
    y = np.array([WORTH[name] for name in names]) + frame["size"] + 0.1 * rng.normal(size=n)
    frame.loc[::11, "title"] = None
    y[::11] = frame.loc[::11, "size"] + 5
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    return RFLAFRegressor(**SMALL).fit(*titles())


def test_what_becomes_of_text():
    frame, y = titles()
    encoder = ColumnEncoder().fit(frame)
    assert encoder.kinds_ == ["text", "number", "boolean"]
    made = encoder.get_feature_names_out().tolist()
    assert made == ["size", "wet", *(f"title_text_{k}" for k in range(30)), "title_missing"]
    late = pd.DataFrame({"title": ["Zelda!", None, "", " ", "é" * 10**4, "Zelda!"]})
    late = late.assign(size=0.0, wet=True)
    found = encoder.transform(late)[:, 2:]
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, -1], [0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(found[1:4, :-1], 0)
    np.testing.assert_array_equal(found[0], found[5])
    # titles of one name are nearer to each other than to those of another
    near = late[:3].assign(title=["Mario Kart 1", "The Mario Kart", "Golf Tour 1"])
    one, same, other = encoder.transform(near)
    assert np.linalg.norm(one - same) < 0.5 * np.linalg.norm(one - other)
    # with targets: predictions of them
    encoder = ColumnEncoder(random_state=0)
    own = encoder.fit_transform(frame, y)[:, 3]
    numbers = [f"title_text_{k}" for k in range(10)]
    first = ["size", "wet", "title_missing"]
    assert encoder.get_feature_names_out().tolist() == [*first, "title_predicted", *numbers]
    assert encoder.origin_.tolist() == [1, 2, *[0] * 12]
    there = frame["title"].notna().to_numpy()
    worth = (y - frame["size"].to_numpy())[there]
    assert np.corrcoef(own[there], worth)[0, 1] > 0.9
    golf, chess, zelda = encoder.transform(near.assign(title=["My Golf Tour", "Chess 1", "Zelda!"]))
    assert max(golf[3], chess[3]) < zelda[3]
    of_classes = ColumnEncoder().fit(frame, np.digitize(y, [-1, 1]))
    predicted = [f"title_predicted_{k}" for k in range(3)]
    assert of_classes.get_feature_names_out().tolist() == [*first, *predicted, *numbers]


def test_neither_the_order_of_rows_nor_the_block_matters():
    frame, y = titles()
    at = np.random.default_rng(0).permutation(len(frame))
    one, other = ColumnEncoder().fit(frame), ColumnEncoder().fit(frame.iloc[at])
    whole = one.transform(frame)
    np.testing.assert_array_equal(whole, other.transform(frame))
    np.testing.assert_array_equal(whole[40:60], one.transform(frame[40:60]))
    # rows of weight zero have no part
    spoilt = pd.concat([frame, frame.assign(title=frame["title"] + "qqq")])
    weights = np.repeat([1.0, 0.0], len(frame))
    third = ColumnEncoder().fit(spoilt, sample_weight=weights)
    np.testing.assert_array_equal(whole, third.transform(frame))
    told = ColumnEncoder().fit(frame, y)
    np.testing.assert_array_equal(told.transform(frame)[40:60], told.transform(frame[40:60]))


@pytest.mark.parametrize("titled", ["noise", "spaces", "nearly all equal"])
def test_text_that_does_not_help_does_no_harm(titled):
    frame, y = titles()
    rng = np.random.default_rng(1)
    codes = [f"{k:012x}" for k in rng.integers(0, 2**48, len(frame))]
    frame["title"] = {
        "noise": codes,
        "spaces": [" " * k for k in range(1, len(frame) + 1)],
        "nearly all equal": ["a" * (k + 3) for k in range(len(frame))],
    }[titled]
    y = np.sin(2 * frame["size"]) + 0.1 * rng.normal(size=len(y))
    plain = RFLAFRegressor(**SMALL).fit(frame[["size", "wet"]], y)
    model = RFLAFRegressor(**SMALL).fit(frame, y)
    if titled == "spaces":  # there is not one n-gram
        np.testing.assert_array_equal(model.predict(frame), plain.predict(frame[["size", "wet"]]))
    assert model.feature_importances_[0] < 0.02
    assert model.oof_score_ == pytest.approx(plain.oof_score_, abs=0.03)


def test_text_is_refused_like_categories():
    with pytest.raises(ValueError, match="Column 'title' is a text, and 'categorical_features' is"):
        ColumnEncoder(None).fit(titles()[0])


def test_nothing_but_text():
    frame, y = titles()
    only = frame[["title"]]
    assert RFLAFRegressor(**SMALL).fit(only, y).score(only, y) > 0.5
    noise = RFLAFRegressor(**SMALL).fit(only, np.random.default_rng(0).normal(size=len(y)))
    assert noise.oof_score_ < 0.05


def test_text_that_names_the_group_is_judged_by_groups():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(40), 6)
    worth = rng.normal(size=40)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(40)]
    frame = pd.DataFrame({"title": [f"{words[k]} {i}" for i, k in enumerate(person)]})
    frame["size"] = rng.normal(size=len(frame))
    y = worth[person] + 0.1 * frame["size"]
    model = RFLAFRegressor(**SMALL)
    assert model.fit(frame, y).oof_score_ > 0.8
    assert model.fit(frame, y, groups=person).oof_score_ < 0.2


def test_much_text_has_fewer_directions(monkeypatch):
    frame, y = titles()
    model = RFLAFRegressor(**SMALL)
    assert len(model.fit(frame, y).encoder_.text) > 150
    monkeypatch.setattr(text, "_MOST_NUMBERS", 50 * len(frame))
    assert len(model.fit(frame, y).encoder_.text) == 50 + 1


def test_it_learns_from_text(fitted, tmp_path):
    new, y = titles(seed=1)
    assert fitted.score(new, y) > 0.8
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert fitted.feature_importances_[0] > 0.5
    found, why = fitted.predict(new), fitted.explain(new[:8])
    assert why.values.shape == (8, 3)
    np.testing.assert_allclose(why.values.sum(axis=1) + why.base_values, found[:8], atol=1e-6)
    source = Blocks(lambda: (new[k : k + 50] for k in range(0, len(new), 50)))
    np.testing.assert_allclose(fitted.predict(source), found)
    rflaf.save(fitted, tmp_path / "model.skops")
    np.testing.assert_array_equal(rflaf.load(tmp_path / "model.skops").predict(new), found)
    np.testing.assert_array_equal(
        RFLAFRegressor(**SMALL, n_jobs=2).fit(*titles()).predict(new), found
    )


def test_classes_and_more_rows():
    (frame, y), (new, later) = titles(), titles(seed=1)
    model = RFLAFClassifier(**SMALL).fit(frame, np.where(y > 0, "good", "bad"))
    assert model.score(new, np.where(later > 0, "good", "bad")) > 0.85
    online = RFLAFRegressor(**SMALL).partial_fit(frame, y)
    before = online.score(new, later)
    assert online.partial_fit(new, later).score(new, later) > before > 0.8


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_networks_take_what_the_encoder_makes(fitted):
    import torch

    new, _ = titles(seed=1)
    made = torch.tensor(fitted.encoder_.transform(new))
    np.testing.assert_allclose(
        fitted.to_torch()(made).detach().numpy(), fitted.predict(new), atol=1e-5
    )


@pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="needs ONNX")
def test_graphs_refuse_text(fitted, tmp_path):
    from rflaf.onnx import export

    with pytest.raises(ValueError, match=r"Column 'title' is free text.*Drop the column"):
        export(fitted, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
