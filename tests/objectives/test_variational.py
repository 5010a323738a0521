"""Closed forms against sampling, integration and published numbers."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from twoview.objectives.variational import (
    CompositePrior,
    PosteriorNorm,
    ar1_floor,
    ar1_kl,
    gaussian_kl,
    gaussian_kl_between,
    gaussian_log_density,
    mmd,
    variational_dropout_penalty,
)


def gaussians(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    mean, log_var = torch.randn(2, *shape, generator=draw, dtype=torch.float64)
    return mean, log_var


def test_the_kl_is_that_of_the_library() -> None:
    mean, log_var = gaussians(5, 3)
    other_mean, other_log_var = gaussians(5, 3, seed=1)
    here, there = Normal(mean, (log_var / 2).exp()), Normal(other_mean, (other_log_var / 2).exp())
    standard = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    torch.testing.assert_close(gaussian_kl(mean, log_var), kl_divergence(here, standard))
    between = gaussian_kl_between(mean, log_var, other_mean, other_log_var)
    torch.testing.assert_close(between, kl_divergence(here, there))
    torch.testing.assert_close(gaussian_log_density(other_mean, mean, log_var), here.log_prob(other_mean))


def test_at_the_prior_the_kl_and_its_gradient_are_zero() -> None:
    mean, log_var = torch.zeros(2, 3, requires_grad=True)
    kl = gaussian_kl(mean, log_var)
    assert kl.tolist() == [0, 0, 0]
    assert not any(each.any() for each in torch.autograd.grad(kl.sum(), (mean, log_var)))


def test_the_kl_never_falls_below_zero_near_the_prior() -> None:
    log_var = torch.linspace(-1e-3, 1e-3, 2001)
    assert (gaussian_kl(torch.zeros_like(log_var), log_var) >= 0).all()


def test_half_precision_is_counted_in_float32() -> None:
    kl = gaussian_kl(torch.zeros(1, dtype=torch.float16), torch.full((1,), 12.0, dtype=torch.float16))
    assert kl.dtype == torch.float32
    assert kl.item() == pytest.approx((math.exp(12) - 13) / 2)


def chain(n: int) -> Tensor:
    return torch.arange(n) > 0


def test_the_floor_of_delta_vae_is_the_published_one() -> None:
    assert ar1_floor(10, 1, alpha=0.9) == pytest.approx(3.203673, abs=1e-6)
    assert ar1_floor(10, 8, alpha=0.9) == pytest.approx(8 * 3.203673, abs=1e-5)
    assert ar1_floor(10, 8, alpha=0.0) == 0
    assert ar1_floor(1, 8, alpha=0.9) == 0


def test_no_posterior_gets_below_the_floor_and_the_best_one_reaches_it() -> None:
    n, alpha = 10, 0.9
    precision = torch.full((n, 1), (1 + alpha**2) / (1 - alpha**2), dtype=torch.float64)
    precision[0] = precision[-1] = 1 / (1 - alpha**2)
    best = ar1_kl(torch.zeros_like(precision), -precision.log(), chain(n), alpha=alpha).sum()
    assert best.item() == pytest.approx(ar1_floor(n, 1, alpha=alpha), abs=1e-9)
    for seed in range(20):
        mean, log_var = gaussians(n, 1, seed=seed)
        assert ar1_kl(mean / 9, log_var - 2, chain(n), alpha=alpha).sum() > best


def test_a_prior_that_forgets_is_the_standard_one() -> None:
    mean, log_var = gaussians(6, 3)
    torch.testing.assert_close(ar1_kl(mean, log_var, chain(6), alpha=0.0), gaussian_kl(mean, log_var))


def test_the_remembering_prior_agrees_with_sampling() -> None:
    mean, log_var = gaussians(4, 1)
    alpha, draw = 0.7, torch.Generator().manual_seed(0)
    z = mean + (log_var / 2).exp() * torch.randn(200_000, 4, 1, generator=draw, dtype=torch.float64)
    left = torch.cat([torch.zeros_like(z[:, :1]), alpha * z[:, :-1]], 1)
    variance = torch.full_like(mean, 1 - alpha**2)
    variance[0] = 1
    sampled = gaussian_log_density(z, mean, log_var) - gaussian_log_density(z, left, variance.log())
    exact = ar1_kl(mean, log_var, chain(4), alpha=alpha).sum()
    assert sampled.sum((1, 2)).mean().item() == pytest.approx(exact.item(), rel=0.01)


def test_histories_that_share_a_row_do_not_remember_each_other() -> None:
    mean, log_var = gaussians(1, 7, 3)
    follows = torch.tensor([[False, True, True, False, True, True, True]])
    packed = ar1_kl(mean, log_var, follows, alpha=0.9)
    for own in (slice(0, 3), slice(3, 7)):
        alone = ar1_kl(mean[0, own], log_var[0, own], chain(own.stop - own.start), alpha=0.9)
        torch.testing.assert_close(packed[0, own], alone)


def test_a_memory_that_is_no_autoregression_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha is wanted between -1 and 1; 1.0 came"):
        ar1_kl(*gaussians(3, 2), chain(3), alpha=1.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
def test_normed_posteriors_keep_their_kl_whatever_the_encoder(scale: float) -> None:
    norm = PosteriorNorm(32, gamma=0.5)
    mean = scale * torch.randn(64, 32, generator=torch.Generator().manual_seed(0)) + 3
    normed = norm(mean, torch.ones(64, dtype=torch.bool))
    kl = gaussian_kl(normed, torch.zeros_like(normed)).sum(1).mean().item()
    assert kl == pytest.approx(4.0, rel=1e-3)
    norm.bias.data.fill_(0.3)
    shifted = norm(mean, torch.ones(64, dtype=torch.bool))
    assert gaussian_kl(shifted, shifted * 0).sum(1).mean().item() == pytest.approx(
        kl + 32 * 0.09 / 2, rel=1e-4
    )


def test_the_norm_counts_real_places_alone_and_only_its_bias_learns() -> None:
    norm = PosteriorNorm(3)
    mean = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0))
    real = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    junk = torch.where(real[..., None], mean, 1e6)
    expected = PosteriorNorm(3)(mean[real], torch.ones(int(real.sum()), dtype=torch.bool))
    torch.testing.assert_close(norm(junk, real)[real], expected)
    assert [name for name, _ in norm.named_parameters()] == ["bias"]


def test_outside_training_the_norm_uses_what_it_remembers() -> None:
    norm = PosteriorNorm(2, momentum=1.0)
    mean = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    trained = norm(mean, torch.ones(9, dtype=torch.bool))
    torch.testing.assert_close(norm.eval()(mean[:1], torch.ones(1, dtype=torch.bool)), trained[:1])


def test_equal_samples_have_no_discrepancy_and_order_does_not_matter() -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 50, 8, generator=draw)
    assert mmd(x, x) == 0
    torch.testing.assert_close(mmd(x, y), mmd(y, x))


def test_the_wide_kernel_gives_the_published_numbers_and_overlooks_a_point() -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 1000, 8, generator=draw, dtype=torch.float64)
    wide = (math.sqrt(8 / 2),)  # exp(-|x - y|^2 / D^2)
    assert mmd(x, y + 2, sigmas=wide).item() == pytest.approx(0.613, abs=0.03)
    assert mmd(x, y, sigmas=wide).item() < 0.003
    point = torch.zeros_like(x)
    assert mmd(x, point, sigmas=wide).item() == pytest.approx(0.015, abs=0.003)
    assert mmd(x, point) > 10 * mmd(x, point, sigmas=wide)


def test_samples_of_another_width_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"samples \[N, D\] and \[M, D\] are wanted; \[3, 2\] and \[3, 4\] came"
    ):
        mmd(torch.ones(3, 2), torch.ones(3, 4))


def test_a_composite_of_the_standard_normal_alone_is_the_standard_normal() -> None:
    z, (mean, log_var) = gaussians(6, 3, seed=2)[0], gaussians(6, 3)
    expected = gaussian_log_density(z, torch.zeros_like(z), torch.zeros_like(z)).sum(-1)
    for whole in (False, True):
        prior = CompositePrior(weights=(1.0, 0.0, 0.0), whole=whole)
        torch.testing.assert_close(prior.log_density(z, mean, log_var), expected)


def test_a_composite_of_what_was_said_before_costs_nothing_to_say_again() -> None:
    mean, log_var = gaussians(6, 3)
    z = mean + (log_var / 2).exp()
    old = CompositePrior(weights=(0.0, 1.0, 0.0)).log_density(z, mean, log_var)
    torch.testing.assert_close(gaussian_log_density(z, mean, log_var).sum(-1), old)


def test_a_composite_is_above_each_of_its_parts() -> None:
    z, (mean, log_var) = gaussians(6, 3, seed=2)[0], gaussians(6, 3)
    prior = CompositePrior().log_density(z, mean, log_var)
    zero = torch.zeros_like(mean)
    parts = ((0.15, zero, zero), (0.75, mean, log_var), (0.1, zero, zero + 10))
    for weight, centre, spread in parts:
        below = (math.log(weight) + gaussian_log_density(z, centre, spread)).sum(-1)
        assert (prior > below).all()


@pytest.mark.parametrize("whole", [False, True])
def test_a_composite_is_a_density(whole: bool) -> None:
    line = torch.linspace(-600, 600, 600_001, dtype=torch.float64)[:, None]
    mean, log_var = torch.full_like(line, 1.5), torch.full_like(line, -1.0)
    prior = CompositePrior(whole=whole)
    total = prior.log_density(line, mean, log_var).exp().sum() * (1200 / 600_000)
    assert total.item() == pytest.approx(1, abs=1e-4)


def test_mixing_dimensions_is_not_mixing_vectors() -> None:
    z = torch.tensor([[3.0, 0.0]])
    mean, log_var = torch.tensor([[3.0, 3.0]]), torch.tensor([[-4.0, -4.0]])
    by_dimension = CompositePrior().log_density(z, mean, log_var)
    by_vector = CompositePrior(whole=True).log_density(z, mean, log_var)
    assert by_dimension > by_vector + 1


def test_weights_that_are_no_shares_are_refused() -> None:
    with pytest.raises(ValueError, match="weights want a sum of 1"):
        CompositePrior(weights=(0.5, 0.1, 0.1))


def test_the_sampled_kl_of_a_composite_averages_to_the_closed_form() -> None:
    mean, log_var = torch.tensor([0.5, -0.3]), torch.tensor([-1.0, 0.2])
    z = mean + (log_var / 2).exp() * torch.randn(100_000, 2, generator=torch.Generator().manual_seed(0))
    prior = CompositePrior(weights=(1.0, 0.0, 0.0))
    said = gaussian_log_density(z, mean, log_var).sum(-1) - prior.log_density(z, z * 0, z * 0)
    assert said.mean().item() == pytest.approx(gaussian_kl(mean, log_var).sum().item(), rel=0.02)


def test_the_dropout_penalty_has_the_released_values_and_falls_to_one() -> None:
    alpha = torch.tensor([0.1, 0.5, 1.0], dtype=torch.float64)
    expected = [1.049582, 0.068071, -0.245709]
    assert variational_dropout_penalty(alpha).tolist() == pytest.approx(expected, abs=1e-6)
    line = variational_dropout_penalty(torch.linspace(0.01, 1, 500))
    assert (line.diff() < 0).all()


def test_the_dropout_penalty_pulls_its_logit_as_released() -> None:
    logit = torch.zeros((), requires_grad=True)
    (slope,) = torch.autograd.grad(variational_dropout_penalty(logit.sigmoid()), logit)
    assert slope.item() == pytest.approx(-0.274784, abs=1e-6)
