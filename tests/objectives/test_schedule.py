"""Schedules at the steps where their value is known."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.error import RecipeError
from twoview.objectives.schedule import SCHEDULES, schedule


def at(name: str, steps: list[int], **settings: float) -> list[float]:
    weights: list[float] = schedule(name, **settings)(torch.tensor(steps)).tolist()
    return weights


def test_linear_climbs_by_one_over_total_and_stops_at_its_cap() -> None:
    assert at("linear", [0, 1000, 2000, 50_000], cap=0.2, total=10_000) == pytest.approx([0, 0.1, 0.2, 0.2])
    assert at("linear", [1600, 2000], cap=0.4, total=5000) == pytest.approx([0.32, 0.4])


def test_cyclical_is_as_released() -> None:
    weights = at("cyclical", list(range(100)), total=100, cycles=4, rise=0.5)
    assert [weights[i] for i in (0, 1, 12, 25)] == pytest.approx([0, 0.08, 0.96, 0])
    assert weights[13:25] == [1.0] * 12
    assert sum(weights) / 100 == pytest.approx(0.7296)
    assert at("cyclical", [100, 5000], total=100) == [1.0, 1.0]


def test_cyclical_restarts_where_it_is_told_to() -> None:
    assert at("cyclical", [0, 25], total=100, start=0.1, cap=0.8) == pytest.approx([0.1, 0.1])
    assert max(at("cyclical", list(range(200)), total=100, start=0.1, cap=0.8)) == pytest.approx(0.8)


def test_sigmoid_is_half_at_its_middle() -> None:
    low, half, high = at("sigmoid", [0, 2500, 100_000], cap=0.6)
    assert (half, high) == pytest.approx((0.3, 0.6))
    assert low < 0.002


def test_constant_is_the_beta_it_is_given() -> None:
    assert at("constant", [0, 10_000], cap=4.0) == [4.0, 4.0]


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_a_float32_number_that_needs_no_value(name: str) -> None:
    weight: Tensor = schedule(name)(torch.tensor(7))
    assert (weight.dtype, weight.shape) == (torch.float32, torch.Size([]))
    with FakeTensorMode():
        assert schedule(name)(torch.tensor(7)).shape == ()


@pytest.mark.parametrize("name", SCHEDULES.keys() - {"cyclical"})
def test_a_schedule_never_falls_but_the_cyclical_one_does(name: str) -> None:
    weights = at(name, list(range(0, 30_000, 50)))
    assert weights == sorted(weights)
    cycles = at("cyclical", list(range(0, 30_000, 50)))
    assert cycles != sorted(cycles)


def test_what_a_schedule_cannot_be_is_refused() -> None:
    with pytest.raises(
        RecipeError, match="no schedule 'cosine'; there are constant, cyclical, linear, sigmoid"
    ):
        schedule("cosine")
    with pytest.raises(RecipeError, match="schedule linear has no 'steps'; it has cap, total"):
        schedule("linear", steps=3)
    with pytest.raises(RecipeError, match="schedule cyclical wants total to be greater than 0; 0 came"):
        schedule("cyclical", total=0)
