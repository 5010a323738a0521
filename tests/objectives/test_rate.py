"""What is charged for latents: which dimensions, which places, and with which gradient."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.error import RecipeError
from twoview.objectives.rate import RATES, rate
from twoview.objectives.variational import gaussian_kl

STEP = torch.tensor(0)
EVERYWHERE = torch.ones(2, dtype=torch.bool)
# two places, four dimensions; sums 8.5 and 2.0, means by dimension 2.5 1.75 .5 .5
KL = torch.tensor([[4.0, 3.5, 0.5, 0.5], [1.0, 0.0, 0.5, 0.5]])


def charged(
    name: str, kl: Tensor = KL, real: Tensor = EVERYWHERE, step: Tensor = STEP, **how: float
) -> float:
    return rate(name, **how)(kl, real, step).item()


def slope(name: str, kl: Tensor, **how: float) -> Tensor:
    free = kl.clone().requires_grad_()
    (found,) = torch.autograd.grad(rate(name, **how)(free, EVERYWHERE, STEP), free)
    return found


def test_whole_is_the_mean_over_places_of_the_sum_over_dimensions() -> None:
    assert charged("whole") == pytest.approx(5.25)


def test_free_bits_charge_the_floor_for_what_lies_below_it() -> None:
    assert charged("free_bits", floor=1.0) == pytest.approx(2.5 + 1.75 + 1 + 1)
    assert charged("free_bits", floor=0.1) == pytest.approx(charged("whole"))


def test_at_the_prior_free_bits_cost_d_floors_and_pull_at_nothing() -> None:
    mean, log_var = torch.zeros(2, 4, requires_grad=True), torch.zeros(2, 4, requires_grad=True)
    value = rate("free_bits", floor=0.3)(gaussian_kl(mean, log_var), EVERYWHERE, STEP)
    slopes = torch.autograd.grad(value, (mean, log_var))
    assert value.item() == pytest.approx(4 * 0.3)
    assert not any(each.any() for each in slopes)


def test_place_bits_forgive_whole_places() -> None:
    assert charged("place_bits", target=3.0) == pytest.approx(8.5 / 2)
    assert slope("place_bits", KL, target=3.0).tolist() == [[0.5] * 4, [0.0] * 4]


def test_dimension_bits_forgive_single_dimensions() -> None:
    assert charged("dimension_bits", target=3.0) == pytest.approx((4 + 3.5 + 1) / 2)
    assert slope("dimension_bits", KL, target=3.0).tolist() == [[0.5, 0.5, 0, 0], [0.5, 0, 0, 0]]


def test_batch_bits_forgive_all_or_nothing() -> None:
    assert charged("batch_bits", target=3.0) == pytest.approx(5.25)
    assert charged("batch_bits", target=6.0) == 0
    assert not slope("batch_bits", KL, target=6.0).any()


@pytest.mark.parametrize("name", ["place_bits", "dimension_bits", "batch_bits"])
def test_below_their_target_the_masks_cost_nothing_where_free_bits_cost_the_floor(name: str) -> None:
    small = torch.full((2, 4), 0.01)
    assert charged(name, small, target=8.0) == 0
    assert not slope(name, small, target=8.0).any()
    assert charged("free_bits", small, floor=2.0) == pytest.approx(8.0)


def test_the_three_masks_differ_when_kl_is_uneven() -> None:
    values = {charged(name, target=4.0) for name in ("place_bits", "dimension_bits", "batch_bits")}
    assert len(values) == 3


def test_capacity_is_the_distance_from_a_climbing_target() -> None:
    at = [charged("capacity", step=torch.tensor(s), cap=25.0, total=100.0) for s in (0, 21, 100, 900)]
    assert at == pytest.approx([5.25, 0, 19.75, 19.75], abs=1e-5)


@pytest.mark.parametrize("name", RATES)
def test_empty_places_neither_cost_nor_pull(name: str) -> None:
    real = torch.tensor([[True, False, True], [False, False, True]])
    kl = 3 + 5 * torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(0))
    step = torch.tensor(50)
    poisoned = torch.where(real[..., None], kl, torch.nan).requires_grad_()
    value = rate(name)(poisoned, real, step)
    torch.testing.assert_close(value, rate(name)(kl[real], torch.ones(3, dtype=torch.bool), step))
    (found,) = torch.autograd.grad(value, poisoned)
    assert not found[~real].any()


@pytest.mark.parametrize("name", RATES)
def test_a_batch_without_places_has_a_finite_rate(name: str) -> None:
    assert rate(name)(KL, torch.zeros(2, dtype=torch.bool), STEP).isfinite()


@pytest.mark.parametrize("name", RATES)
def test_a_rate_needs_no_values_and_several_are_each_alone(name: str) -> None:
    with FakeTensorMode():
        kl = torch.rand(2, 3, 4, requires_grad=True)
        rate(name)(kl, torch.ones(2, 3, dtype=torch.bool), torch.tensor(3)).backward()
        assert kl.grad is not None
    several = 5 * torch.rand(3, 2, 4, generator=torch.Generator().manual_seed(0))
    lifted = torch.func.vmap(lambda kl: rate(name)(kl, EVERYWHERE, STEP))(several)
    torch.testing.assert_close(lifted, torch.stack([rate(name)(kl, EVERYWHERE, STEP) for kl in several]))


def test_what_a_rate_cannot_be_is_refused() -> None:
    with pytest.raises(RecipeError, match="no rate 'free'; there are batch_bits, capacity, dimension_bits"):
        rate("free")
    with pytest.raises(RecipeError, match="rate free_bits has no 'target'; it has floor"):
        rate("free_bits", target=8.0)
