"""The planner keeps its word, is not wasteful, and follows the paper's rates."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.theory import (
    Target,
    excess_risk_bound,
    guarantee,
    largest_width,
    plan,
    sample_complexity,
)

TARGET = Target(1.0, 1.0, 4.0, 1.2)
BOTH = pytest.mark.parametrize("constants", ["paper", "sharp"])


@given(
    epsilon=st.floats(0.01, 50),
    delta=st.floats(1e-4, 0.49),
    rho=st.floats(0.1, 10),
    constants=st.sampled_from(["paper", "sharp"]),
)
@settings(max_examples=80, deadline=None)
def test_plan_reaches_epsilon(epsilon, delta, rho, constants):
    sizes = plan(epsilon, delta, target=TARGET, loss_lipschitz=rho, constants=constants)
    assert sizes.total <= epsilon * (1 + 1e-9)
    back = guarantee(
        sizes.n, sizes.M, sizes.N, sizes.h, delta,
        target=TARGET, loss_lipschitz=rho, constants=constants,
    )  # fmt: skip
    assert back.total <= epsilon * (1 + 1e-6)


@BOTH
def test_plan_is_not_wasteful(constants):
    sizes = plan(0.3, 0.1, target=TARGET, constants=constants)
    fewer = excess_risk_bound(
        sizes.n - 1 - sizes.n // 10**6, sizes.M - 1, sizes.h, 0.1, 0.1, TARGET, constants=constants
    )
    assert fewer.samples > 0.1
    assert fewer.features > 0.1


def test_rates_of_the_sample_complexity():
    """n as ε^-4, M and N as ε^-2, so that M goes as √n; the sharp constants have no logarithm."""
    epsilons = np.array([1e-3, 3e-4, 1e-4])
    plans = [plan(e, 0.1, target=TARGET, constants="sharp") for e in epsilons]
    for name, rate in (("n", -4), ("M", -2), ("N", -2), ("h", 1)):
        values = np.array([float(getattr(p, name)) for p in plans])
        assert np.polyfit(np.log(epsilons), np.log(values), 1)[0] == pytest.approx(rate, abs=0.02)
    printed = [plan(e, 0.1, target=TARGET) for e in epsilons]
    for p, e in zip(printed, epsilons, strict=True):
        # the printed widths carry one root of a logarithm
        assert p.h * np.sqrt(log(16 * 1.2 / (e / 3))) / e == pytest.approx(
            printed[0].h * np.sqrt(log(16 * 1.2 / (epsilons[0] / 3))) / epsilons[0]
        )


def test_constraints_are_at_half_of_delta():
    sizes = plan(0.5, 0.2, target=TARGET)
    assert sizes.constraints.v_radius == pytest.approx(7 * 1.2 * np.sqrt(sizes.M * log(2 / 0.1)))


def test_guarantee_is_trivial_for_a_coarse_grid():
    assert guarantee(100, 100, 2, 0.5, 0.1, target=TARGET).grid == pytest.approx(1.2)


def test_printed_form():
    lines = str(plan(0.5, 0.1, target=TARGET)).splitlines()
    assert lines[0] == "excess risk <= 0.5 with probability 0.9"
    assert [line.split()[0] for line in lines[1:]] == ["samples", "features", "Gaussians"]
    assert "h = " in lines[3]


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"),
    [(-0.1, 0.1, "epsilon"), (0.0, 0.1, "epsilon"), (0.1, 0.5, "delta"), (0.1, -1, "delta")],
)
def test_bad_input_is_named(epsilon, delta, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of plan"):
        plan(epsilon, delta, target=TARGET)


def test_target_has_to_be_one():
    with pytest.raises(ValueError, match="'target' parameter of plan"):
        plan(0.1, 0.1, target=1.0)


@BOTH
def test_sample_complexity_keeps_every_part_below_epsilon(constants):
    h = 0.7 * largest_width(0.2, TARGET, constants=constants)
    n, M, N = sample_complexity(0.2, h, 0.1, target=TARGET, constants=constants)
    proved = guarantee(n, M, N, h, 0.1, target=TARGET, constants=constants)
    assert max(proved.samples, proved.features, proved.grid) <= 0.2 * (1 + 1e-9)
    with pytest.raises(ValueError, match="'width' parameter of sample_complexity"):
        sample_complexity(0.2, 2 * h, 0.1, target=TARGET, constants=constants)


def test_sample_complexity_is_not_wasteful():
    h = 0.7 * largest_width(0.2, TARGET)
    n, M, N = sample_complexity(0.2, h, 0.1, target=TARGET)
    assert guarantee(n, M, int(0.99 * N), h, 0.1, target=TARGET).grid > 0.2
    assert guarantee(int(0.99 * n), M, N, h, 0.1, target=TARGET).samples > 0.2
