"""What each sampler draws, and what each reading reads."""

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from twoview.nn.samplers import (
    AverageConfig,
    DropoutConfig,
    GaussianConfig,
    MeanConfig,
    MeanPlusSigmaConfig,
    NoiseFreeConfig,
    Samplers,
    VariationalDropoutConfig,
)

MEAN = torch.linspace(-1, 1, 12).view(1, 3, 4)
SIGMA = torch.linspace(0.5, 2, 12).view(1, 3, 4)


def noise() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(1, 3, 4)


def drawn(sampler: torch.nn.Module) -> Tensor:
    torch.manual_seed(0)
    return sampler(MEAN, SIGMA)


def test_gaussian_adds_noise_of_the_posterior_s_size() -> None:
    torch.testing.assert_close(drawn(GaussianConfig().build()), MEAN + SIGMA * noise())


def test_noise_free_adds_one_standard_deviation() -> None:
    assert torch.equal(NoiseFreeConfig().build()(MEAN, SIGMA), MEAN + SIGMA)


def test_dropout_leaves_a_share_of_sigma_out_and_scales_the_rest() -> None:
    sampler = DropoutConfig(share=0.25).build()
    torch.manual_seed(0)
    mean, sigma = torch.zeros(100, 100), torch.ones(100, 100)
    latents = sampler(mean, sigma)
    assert latents.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (latents == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert torch.equal(sampler.eval()(mean, sigma), sigma)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_variational_dropout_scales_the_noise_by_its_alpha(alpha) -> None:
    sampler = VariationalDropoutConfig(alpha=alpha).build()
    torch.testing.assert_close(drawn(sampler), MEAN + alpha * SIGMA * noise())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_alpha_learns_and_stays_between_0_and_1(sign) -> None:
    sampler = VariationalDropoutConfig().build()
    optimiser = torch.optim.Adam(sampler.parameters(), lr=0.3)
    for _ in range(40):
        optimiser.zero_grad()
        (sign * sampler(torch.zeros(50), torch.ones(50)).square().mean()).backward()
        optimiser.step()
    alpha = sampler.logit.sigmoid().item()
    assert 0 < alpha < 0.1 if sign > 0 else 0.9 < alpha < 1


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.5, 2.0])
def test_an_alpha_outside_of_0_and_1_is_refused(alpha) -> None:
    with pytest.raises(ValidationError, match="alpha"):
        VariationalDropoutConfig(alpha=alpha)


def test_only_variational_dropout_pays_for_itself() -> None:
    branches = Samplers(GaussianConfig().build(), VariationalDropoutConfig().build())
    assert set(branches.terms()) == {"dropout rate"}
    assert Samplers(GaussianConfig().build(), DropoutConfig().build()).terms() == {}
    (slope,) = torch.autograd.grad(branches.terms()["dropout rate"], list(branches.parameters()))
    assert slope != 0


def test_each_branch_has_the_sampler_of_its_own_half() -> None:
    branches = Samplers(NoiseFreeConfig().build(), GaussianConfig().build())
    mean, sigma = torch.cat([MEAN, -MEAN]), torch.cat([SIGMA, 2 * SIGMA])
    torch.manual_seed(0)
    latents = branches(mean, sigma)
    assert torch.equal(latents[:1], MEAN + SIGMA)
    torch.testing.assert_close(latents[1:], -MEAN + 2 * SIGMA * noise())
    assert len(branches) == 2


def newest(latents: Tensor) -> Tensor:
    return latents[:, -1] @ torch.eye(4)


def test_the_mean_is_read_as_it_is_and_with_sigma_where_asked() -> None:
    assert torch.equal(MeanConfig().build(4)(MEAN, SIGMA, newest), MEAN[:, -1])
    plus = MeanPlusSigmaConfig().build(4)
    assert torch.equal(plus(MEAN, SIGMA, newest), (MEAN + SIGMA)[:, -1])
    assert torch.equal(plus.point(MEAN, SIGMA), MEAN + SIGMA)


def test_the_average_is_of_probabilities_over_noise_shared_by_all_histories() -> None:
    reading = AverageConfig(samples=5, seed=3).build(4)
    mean, sigma = MEAN.expand(2, 3, 4), SIGMA.expand(2, 3, 4)
    scores = reading(mean, sigma, newest)
    assert torch.equal(scores[0], scores[1])
    chances = torch.stack([newest(MEAN + SIGMA * one).softmax(-1) for one in reading.noise]).mean(0)
    torch.testing.assert_close(scores[:1].softmax(-1), chances)


def test_the_average_reads_the_same_twice_and_its_seed_decides() -> None:
    torch.manual_seed(0)
    reading = AverageConfig(seed=1).build(4)
    first = reading(MEAN, SIGMA, newest)
    torch.rand(3)
    assert torch.equal(first, reading(MEAN, SIGMA, newest))
    assert torch.equal(first, AverageConfig(seed=1).build(4)(MEAN, SIGMA, newest))
    assert not torch.equal(first, AverageConfig(seed=2).build(4)(MEAN, SIGMA, newest))
    assert "noise" in reading.state_dict()
