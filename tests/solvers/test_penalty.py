"""The one search along a line of steps."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rflaf.solvers.penalty import Walk, walk

MANY = 10_000  # more steps than any walk below takes


@st.composite
def unimodal(draw):
    """Losses that fall to one step and rise from there, with bounds and a start between them."""
    low = draw(st.integers(-30, 20))
    high = draw(st.integers(low, low + 40))
    least = draw(st.integers(low, high))
    rises = draw(st.lists(st.floats(1e-6, 1e3), min_size=high - low + 1, max_size=high - low + 1))
    floor = draw(st.floats(-100, 100))
    losses, right, left = {least: floor}, floor, floor
    for k in range(least + 1, high + 1):
        right += rises[k - low]
        losses[k] = right
    for k in range(least - 1, low - 1, -1):
        left += rises[k - low]
        losses[k] = left
    return losses, low, high, least, draw(st.integers(low, high))


class Watched:
    """Losses by step, and which were asked for, in their order."""

    def __init__(self, losses):
        self.losses, self.asked = losses, []

    def __call__(self, steps):
        self.asked += steps
        return [self.losses[k] for k in steps]


@given(unimodal(), st.booleans(), st.integers(1, 4))
def test_the_least_is_found_whatever_the_bounds_and_the_start(case, together, ahead):
    losses, low, high, least, start = case
    watched = Watched(losses)
    walked = walk(
        watched, low=low, high=high, start=start, most=MANY, together=together, ahead=ahead
    )
    assert walked.best == least
    assert walked.least == losses[least]
    assert abs(walked.middle - least) <= 0.5
    assert len(set(watched.asked)) == len(watched.asked)  # none twice
    assert walked.losses.items() <= losses.items()


@given(unimodal(), st.integers(1, 4))
def test_what_is_asked_for_at_once_does_not_change_the_result(case, ahead):
    losses, low, high, _, start = case
    options = {"low": low, "high": high, "start": start, "most": MANY}
    plain = walk(Watched(losses), together=False, **options)
    for together in (True, False):
        other = walk(Watched(losses), together=together, ahead=ahead, **options)
        assert (other.best, other.least, other.middle) == (plain.best, plain.least, plain.middle)


@given(unimodal(), st.integers(1, 12), st.booleans(), st.integers(1, 4))
def test_no_more_steps_are_looked_at_than_there_may_be(case, most, together, ahead):
    losses, low, high, _, start = case
    watched = Watched(losses)
    walked = walk(
        watched, low=low, high=high, start=start, most=most, together=together, ahead=ahead
    )
    assert len(walked.losses) <= most
    assert walked.least == min(walked.losses.values())
    if ahead == 1:
        assert set(watched.asked) == set(walked.losses)


@given(
    at=st.floats(-6, 6),
    bend=st.floats(0.01, 100),
    skew=st.floats(-0.05, 0.05),
    start=st.integers(-8, 8),
    seed=st.integers(0, 1000),
)
def test_the_middle_moves_by_rounding_where_the_losses_do(at, bend, skew, start, seed):
    """Also where two steps are equally good, and the best moves by a whole one."""
    noise = np.random.default_rng(seed).uniform(-1e-12, 1e-12, 41)

    def curve(k):
        return bend * ((k - at) ** 2 + skew * (k - at) ** 3)

    found = []
    for size in (0.0, bend):
        losses = {k: curve(k) + size * noise[k + 20] for k in range(-12, 13)}
        found.append(walk(Watched(losses), start=start, low=-12, high=12))
    assert found[1].middle == pytest.approx(found[0].middle, abs=1e-10)
    assert found[0].middle == pytest.approx(at, abs=0.05)


@given(at=st.floats(-6, 6), bend=st.floats(0.01, 100), start=st.integers(-8, 8))
def test_the_middle_of_a_parabola_is_where_it_is_least(at, bend, start):
    walked = walk(lambda steps: [bend * (k - at) ** 2 for k in steps], start=start)
    assert walked.middle == pytest.approx(at, abs=1e-6)


def test_steps_are_asked_for_together():
    """As many at once as may be, and no more before these are used up."""
    calls = []

    def losses(steps):
        calls.append(list(steps))
        return [abs(k - 6.2) for k in steps]

    walked = walk(losses, ahead=3)
    assert calls == [[0, -1, 1], [2, 3, 4], [5, 6, 7]]
    assert sorted(walked.losses) == list(range(-1, 8))


def test_two_equal_steps_have_their_middle_between():
    """From either side."""
    losses = {-1: 3.0, 0: 1.0, 1: 1.0, 2: 3.0}
    for start in (0, 1):
        walked = walk(Watched(losses), low=-1, high=2, start=start)
        assert walked.middle == 0.5


def test_where_there_is_no_parabola_the_best_is_taken():
    assert Walk(2, {1: 5.0, 2: 4.0}).middle == 2  # at the end of the line
    assert Walk(2, {1: np.inf, 2: 4.0, 3: 5.0}).middle == 2
    assert Walk(2, {1: 4.0, 2: 4.0, 3: 4.0}).middle == 2


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("ahead", [1, 2])
def test_losses_that_are_no_numbers_are_not_walked_to(together, ahead):
    for bad in (np.inf, np.nan):
        losses = {-1: 3.0, 0: 2.0, 1: 1.0, 2: bad, 3: 0.0, 4: 0.0, 5: 0.0}
        walked = walk(Watched(losses), low=-1, high=5, together=together, ahead=ahead)
        assert walked.best == 1
    walked = walk(lambda steps: [np.inf for _ in steps], together=together, ahead=ahead)
    assert (walked.best, walked.least, walked.middle) == (0, np.inf, 0)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_gain_that_is_too_small_ends_the_walk(together, direction):
    losses = {direction * k: 0.9**k for k in range(-1, 30)}
    options = {"low": min(losses), "high": max(losses), "most": MANY, "together": together}
    assert walk(Watched(losses), gain=0.05, **options).best == direction * 29
    assert walk(Watched(losses), gain=0.15, **options).best == 0


@given(unimodal())
def test_without_a_need_the_other_side_is_not_looked_at(case):
    """Where each step is expensive."""
    losses, low, high, least, start = case
    assume(low < start)
    watched = Watched(losses)
    walk(watched, low=low, high=high, start=start, most=MANY, together=False)
    assert watched.asked[:2] == [start, start - 1]
    assert (start + 1 in watched.asked) == (least >= start and start < high)
