"""What a posterior pays, by hand."""

import pytest
import torch
from torch.autograd import grad

from twoview.data.layout import pack
from twoview.error import RecipeError
from twoview.nn.gaussian import StacksConfig, TrunkConfig, sigma_of
from twoview.nn.kl import KLConfig, Named
from twoview.nn.transformer import TransformerConfig

HISTORY = pack(torch.zeros(2, 4, dtype=torch.int64), torch.tensor([3, 1]))
MEAN = torch.zeros(2, 4, 2)
MEAN[0, 0], MEAN[1, 0], MEAN[1, 3] = torch.tensor([2.0, 0.0]), torch.tensor([1.0, 1.0]), 100.0
LOG_VAR = torch.zeros(2, 4, 2)
WHOLE = Named.of("constant", cap=0.5)


def test_over_places_the_mean_is_over_real_places_alone() -> None:
    charge = KLConfig(schedule=WHOLE).build(10)(MEAN, LOG_VAR, HISTORY, torch.tensor(0.0))
    assert charge.item() == pytest.approx(0.5 * (2.0 + 0.0 + 0.0 + 1.0) / 4)


def test_over_slots_the_mean_is_over_max_len_for_each_history() -> None:
    charge = KLConfig(schedule=WHOLE, over="slots").build(10)(MEAN, LOG_VAR, HISTORY, torch.tensor(0.0))
    assert float(charge) == pytest.approx(0.5 * 3.0 / (2 * 10))


def test_the_weight_follows_the_step() -> None:
    kl = KLConfig(schedule=Named.of("linear", cap=0.2, total=100.0)).build(10)
    charges = [float(kl(MEAN, LOG_VAR, HISTORY, torch.tensor(step))) for step in (0.0, 10.0, 20.0, 90.0)]
    assert charges == pytest.approx([0, 0.1 * 0.75, 0.2 * 0.75, 0.2 * 0.75])


def test_a_rate_decides_what_is_charged() -> None:
    config = KLConfig(schedule=WHOLE, rate=Named.of("place_bits", target=1.5))
    charge = config.build(10)(MEAN, LOG_VAR, HISTORY, torch.tensor(0.0))
    assert charge.item() == pytest.approx(0.5 * 2.0 / 4)


def test_an_unknown_schedule_or_rate_lists_those_there_are() -> None:
    with pytest.raises(RecipeError, match="no schedule 'linaer'; there are constant"):
        KLConfig(schedule=Named.of("linaer")).build(10)
    with pytest.raises(RecipeError, match="no rate 'free-bits'; there are batch_bits"):
        KLConfig(rate=Named.of("free-bits")).build(10)


def test_sigma_is_the_root_of_the_variance() -> None:
    assert sigma_of(torch.tensor([0.25, 1.0, 9.0]).log()).tolist() == pytest.approx([0.5, 1.0, 3.0])


def test_two_stacks_share_nothing_and_a_trunk_shares_its_body() -> None:
    x = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    for config, shared in ((StacksConfig(), False), (TrunkConfig(), True)):
        part = config.model_copy(update={"transformer": TransformerConfig(dropout=0.0)}).build(8).eval()
        parameters = list(part.parameters())
        mean, log_var = part(x, HISTORY)
        assert mean.shape == log_var.shape == x.shape and not torch.equal(mean, log_var)
        reached = grad(mean.square().sum(), parameters, retain_graph=True, allow_unused=True)
        also = grad(log_var.square().sum(), parameters, allow_unused=True)
        both = [a is not None and b is not None for a, b in zip(reached, also, strict=True)]
        assert any(both) == shared and not all(both)
