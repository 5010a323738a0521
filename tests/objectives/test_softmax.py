"""The softmax over all items is cross-entropy, in value and gradient, however its memory is spent."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.objectives.softmax import softmax

T, N_ITEMS, D = 13, 29, 8
BUDGETS = {"all at once": 1 << 20, "in halves": T * 15 * 4, "by eights": T * 8 * 4, "one by one": 1}
every_budget = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)


def parts(scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    own = torch.Generator().manual_seed(0)
    states, table = torch.randn(T, D, generator=own) * scale, torch.randn(N_ITEMS, D, generator=own)
    targets = torch.randint(N_ITEMS, (T,), generator=own)
    targets[::4] = -1
    return states.requires_grad_(), table.requires_grad_(), targets


def exact(scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """The value and both gradients in double precision."""
    states, table, targets = parts(scale)
    states, table = (side.detach().double().requires_grad_() for side in (states, table))
    loss = F.cross_entropy(states @ table.T, targets, ignore_index=-1)
    return loss.detach(), *torch.autograd.grad(loss, [states, table])


def ours(budget: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    states, table, targets = parts(scale)
    loss = softmax(states, table, targets, budget=budget)
    return loss.detach(), *torch.autograd.grad(loss, [states, table])


@every_budget
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_value_and_gradient_are_those_of_cross_entropy(budget, scale) -> None:
    for came, wanted in zip(ours(budget, scale), exact(scale), strict=True):
        assert came.dtype == torch.float32
        torch.testing.assert_close(came.double(), wanted, rtol=1e-5, atol=1e-6 * max(1, scale))


@every_budget
def test_lower_precision_is_within_its_rounding(budget) -> None:
    """bfloat16 has 8 bits: scores up to 8 are off by up to 1/32, and so are chances and gradients."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (loss, *slopes) = ours(budget)
    wanted, *wanted_slopes = exact()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(wanted.item(), abs=0.03)
    for came, slope in zip(slopes, wanted_slopes, strict=True):
        assert came.dtype == torch.float32
        assert (came - slope).norm() < 0.03 * slope.norm()
    assert not torch.equal(slopes[0], ours(budget)[1])


@every_budget
@pytest.mark.parametrize("scale", [40.0, 400.0])
def test_large_margins_keep_their_value(budget, scale) -> None:
    for came, wanted in zip(ours(budget, scale), exact(scale), strict=True):
        assert came.isfinite().all()
        torch.testing.assert_close(came.double(), wanted, rtol=1e-4, atol=1e-3)
    assert exact(scale)[0] > 100


@every_budget
def test_a_target_far_behind_is_still_pulled(budget) -> None:
    states = torch.tensor([[300.0]], requires_grad=True)
    table = torch.tensor([[1.0], [0.0], [-1.0]], requires_grad=True)
    loss = softmax(states, table, torch.tensor([2]), budget=budget)
    loss.backward()
    assert loss.item() == pytest.approx(600.0)
    assert states.grad is not None and states.grad.item() == pytest.approx(2.0)
    assert table.grad is not None and table.grad.flatten().tolist() == pytest.approx([300.0, 0.0, -300.0])


@every_budget
def test_nothing_asked_costs_nothing(budget) -> None:
    states, table, targets = parts()
    loss = softmax(states, table, torch.full_like(targets, -1), budget=budget)
    loss.backward()
    assert loss == 0
    assert states.grad is not None and not states.grad.any()
    assert table.grad is not None and not table.grad.any()


@every_budget
def test_places_not_asked_have_no_gradient(budget) -> None:
    _, slope, _ = ours(budget)
    assert torch.equal(slope.any(1), parts()[2] >= 0)


@every_budget
def test_the_weight_of_a_term_scales_its_gradient(budget) -> None:
    states, table, targets = parts()
    slopes = torch.autograd.grad(0.25 * softmax(states, table, targets, budget=budget), [states, table])
    for slope, whole in zip(slopes, ours(budget)[1:], strict=True):
        torch.testing.assert_close(4 * slope, whole)


@every_budget
def test_no_value_is_needed_to_know_the_shapes(budget) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        _, *slopes = ours(budget)
    assert [slope.shape for slope in slopes] == [(T, D), (N_ITEMS, D)]


@every_budget
def test_an_accelerator_that_raises_softmax_to_float32_changes_nothing(budget, monkeypatch) -> None:
    """On CUDA autocast does so unless told the type: played here on the CPU, which does not."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = ours(budget)
        plain = torch.softmax

        def raised(scores: Tensor, dim: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return plain(scores, dim, dtype=dtype)

        monkeypatch.setattr(torch, "softmax", raised)
        came = ours(budget)
    assert all(torch.equal(a, b) for a, b in zip(came, wanted, strict=True))
