"""The health of a contrast at scores whose answer is known."""

import math

import pytest
import torch
from torch import Tensor

from twoview.objectives import Contrast, facing
from twoview.objectives.health import ess, information, log_k_saturation, one_minus_p


def scored(own: float, others: list[float]) -> Contrast:
    scores = torch.tensor([others])
    return Contrast(torch.tensor([own]), scores, torch.ones_like(scores, dtype=torch.bool))


def test_equal_negatives_are_all_effective_and_one_hard_one_stands_alone() -> None:
    assert ess(scored(0.0, [3.0] * 8)).item() == pytest.approx(1)
    assert ess(scored(0.0, [500.0] + [0.0] * 7)).item() == pytest.approx(1 / 8)


def test_the_effective_number_is_the_inverse_of_squared_weights() -> None:
    others = torch.randn(7, generator=torch.Generator().manual_seed(0))
    weights = torch.softmax(others, 0)
    expected = 1 / weights.square().sum() / 7
    assert ess(scored(0.0, others.tolist())).item() == pytest.approx(expected.item(), rel=1e-5)


def test_one_minus_p_is_what_the_negatives_hold_of_the_softmax() -> None:
    p = torch.softmax(torch.tensor([1.0, 0.5, -0.3]), 0)
    assert one_minus_p(scored(1.0, [0.5, -0.3])).item() == pytest.approx(1 - p[0].item())


def test_saturation_runs_from_nothing_to_one_and_never_beyond() -> None:
    assert log_k_saturation(scored(0.0, [0.0] * 15)).item() == pytest.approx(0, abs=1e-6)
    assert log_k_saturation(scored(90.0, [0.0] * 15)).item() == pytest.approx(1)
    assert information(scored(90.0, [0.0] * 15)).item() == pytest.approx(math.log(16))
    draw = torch.Generator().manual_seed(0)
    some = facing(torch.randn(50, 4, generator=draw), torch.randn(50, 4, generator=draw), temperature=0.01)
    assert (log_k_saturation(some) <= 1).all()


@pytest.mark.parametrize("number", [ess, one_minus_p, information, log_k_saturation])
def test_an_anchor_without_negatives_counts_nothing(number: object) -> None:
    assert callable(number)
    alone: Tensor = number(facing(torch.ones(1, 3), torch.ones(1, 3)))
    assert alone.tolist() == [0.0]


@pytest.mark.parametrize("own", [-1e4, -20.0, 0.0, 20.0, 1e4])
def test_no_score_is_too_extreme_for_a_number(own: float) -> None:
    contrast = scored(own, [1e4, -1e4, 0.0])
    numbers = torch.stack([ess(contrast), one_minus_p(contrast), information(contrast)])
    assert numbers.isfinite().all()
