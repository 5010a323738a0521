"""Losses over a few scores equal a loop, count asked places alone, and stay finite at any margin."""

import math

import pytest
import torch
from torch import Tensor

from twoview.objectives.ranking import binary, generalised_binary, sampled_softmax

CHOSEN = torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, -2.0]])
REJECTED = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
ASKED = torch.tensor([[True, False, True], [True, True, False]])


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def asked() -> list[tuple[float, list[float]]]:
    """The chosen score and the rejected ones of every place asked."""
    return [(CHOSEN[k].item(), REJECTED[k].tolist()) for k in map(tuple, ASKED.nonzero().tolist())]


def one_each(chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
    return binary(chosen, rejected[..., 0], asked)


def calibrated(chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
    return generalised_binary(chosen, rejected, asked, beta=0.4)


every_loss = pytest.mark.parametrize("loss", [one_each, calibrated, sampled_softmax])


def test_binary_is_the_mean_of_both_sides() -> None:
    losses = [softplus(-own) + softplus(others[0]) for own, others in asked()]
    assert one_each(CHOSEN, REJECTED, ASKED).item() == pytest.approx(sum(losses) / 4, rel=1e-6)


def test_generalised_binary_weighs_the_positive_by_beta_and_shares_among_n_plus_1() -> None:
    losses = [(0.4 * softplus(-own) + sum(map(softplus, others))) / 5 for own, others in asked()]
    assert calibrated(CHOSEN, REJECTED, ASKED).item() == pytest.approx(sum(losses) / 4, rel=1e-6)


def test_sampled_softmax_is_cross_entropy_among_the_target_and_the_others() -> None:
    losses = [-torch.tensor([own, *others]).log_softmax(0)[0].item() for own, others in asked()]
    assert sampled_softmax(CHOSEN, REJECTED, ASKED).item() == pytest.approx(sum(losses) / 4, rel=1e-6)


def test_with_one_negative_and_beta_1_it_is_half_of_binary() -> None:
    half = generalised_binary(CHOSEN, REJECTED[..., :1], ASKED, beta=1.0)
    torch.testing.assert_close(2 * half, binary(CHOSEN, REJECTED[..., 0], ASKED))


@every_loss
def test_places_not_asked_have_no_gradient_even_where_they_are_no_numbers(loss) -> None:
    chosen, rejected = CHOSEN.clone(), REJECTED.clone()
    chosen[~ASKED], rejected[~ASKED] = 1e30, -1e30
    chosen.requires_grad_(), rejected.requires_grad_()
    value = loss(chosen, rejected, ASKED)
    value.backward()
    assert value.item() == pytest.approx(loss(CHOSEN, REJECTED, ASKED).item(), rel=1e-6)
    assert chosen.grad is not None and rejected.grad is not None
    assert torch.equal(chosen.grad != 0, ASKED)
    assert not rejected.grad[~ASKED].any()


@every_loss
def test_nothing_asked_costs_nothing(loss) -> None:
    chosen = CHOSEN.clone().requires_grad_()
    value = loss(chosen, REJECTED, torch.zeros_like(ASKED))
    value.backward()
    assert value == 0
    assert chosen.grad is not None and not chosen.grad.any()


@every_loss
@pytest.mark.parametrize("margin", [-2e4, 2e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_large_margins_stay_finite_and_pull_the_right_way(loss, margin, dtype) -> None:
    chosen = torch.full((1,), margin, dtype=dtype, requires_grad=True)
    value = loss(chosen, torch.zeros(1, 4, dtype=dtype), torch.tensor([True]))
    value.backward()
    assert value.isfinite() and value.dtype == torch.float32
    assert chosen.grad is not None and chosen.grad.isfinite().all()
    assert (chosen.grad < 0).item() == (margin < 0)
