"""Members whose learning never left its start."""

from types import SimpleNamespace

import numpy as np
import pytest

from rflaf import RFLAFRegressor
from rflaf.fitting import layers
from rflaf.fitting.layers import MemberLearner, _left_behind


def layer(team, loss):
    return SimpleNamespace(team=team, last_loss=loss)


def test_who_is_left_behind():
    team = [layer(0, 0.047), layer(0, 0.965), layer(0, 0.045), layer(1, 0.30), layer(1, 0.32)]
    choices = [SimpleNamespace(trial_loss=np.inf), SimpleNamespace(trial_loss=0.29)]
    assert _left_behind(team, choices) == [1]
    choices[1].trial_loss = 0.09  # a short trial was better than any of the team
    assert _left_behind(team, choices) == [1, 3, 4]
    almost_done = [layer(0, 1e-4), layer(0, 1e-3), layer(0, 1e-5)]
    assert _left_behind(almost_done, choices[:1]) == []
    assert _left_behind([layer(0, np.nan)], choices[:1]) == []  # no step was taken


@pytest.mark.parametrize("better", [True, False])
def test_it_is_learned_again_and_the_better_one_is_kept(monkeypatch, better):
    """The first try of one member fails; what a second one gives depends on `better`."""
    tries, plain = [], MemberLearner.layer

    def fails(self, member, form):
        found = plain(self, member, form)
        tries.append(1)
        stuck = len(tries) == 2 or (len(tries) > 3 and not better)
        return layers.replace(found, last_loss=5.0 if stuck else 0.1)

    monkeypatch.setattr(MemberLearner, "layer", fails)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (150, 3))  # too few for a fit of the scale of errors
    options = {"n_members": 3, "metric": "diagonal", "input_form": "raw", "max_iter": 5}
    model = RFLAFRegressor(30, random_state=0, n_jobs=1, **options).fit(x, x[:, 0])
    losses = [member.layer.last_loss for member in model.members_]
    assert losses == ([0.1, 0.1, 0.1] if better else [0.1, 5.0, 0.1])
    assert len(tries) == (4 if better else 5)
