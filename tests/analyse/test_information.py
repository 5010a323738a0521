"""What latents know, at posteriors that know nothing, everything, or a known amount."""

import math

import pytest
import torch
from torch import Tensor

from twoview.analyse.information import discrepancy, drawn, information, log_densities
from twoview.objectives.variational import gaussian_log_density

ESTIMATES = ("entropy", "dieng", "sampled")


def normal(n: int, dim: int, seed: int = 0) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_densities_of_all_pairs_are_those_of_each_pair() -> None:
    z, mean, log_var = normal(4, 3), normal(5, 3, 1), normal(5, 3, 2)
    slow = torch.stack(
        [
            torch.stack([gaussian_log_density(a, m, v).sum() for m, v in zip(mean, log_var, strict=True)])
            for a in z
        ]
    )
    assert torch.allclose(log_densities(z, mean, log_var), slow)


def test_a_posterior_that_is_the_prior_knows_nothing() -> None:
    found = information(torch.zeros(500, 8), torch.zeros(500, 8))
    assert all(found[name] == pytest.approx(0, abs=0.3) for name in ESTIMATES)
    assert found["sampled"] == pytest.approx(0, abs=1e-9)
    assert found["aggregate_kl"] == pytest.approx(0, abs=1e-9)


def test_a_shifted_aggregate_has_a_kl_and_no_information() -> None:
    found = information(torch.full((800, 2), 2.0), torch.zeros(800, 2))
    assert found["aggregate_kl"] == pytest.approx(4, abs=0.3)  # 2 dimensions of 2^2 / 2
    assert found["sampled"] == pytest.approx(0, abs=1e-9)
    assert found["dieng"] == pytest.approx(0, abs=0.3)


def test_posteriors_far_apart_know_which_history_they_are_of() -> None:
    found = information(1000 * normal(256, 4), torch.zeros(256, 4))
    assert found["ceiling"] == pytest.approx(math.log(256))
    assert found["sampled"] == pytest.approx(math.log(256), abs=1e-9)
    assert found["entropy"] == pytest.approx(math.log(256), abs=0.5)


def test_gaussians_of_gaussian_means_know_half_a_log_of_the_signal() -> None:
    """mean ~ N(0, s^2), z ~ N(mean, 1): the information is log(1 + s^2) / 2 in each dimension."""
    signal = 1.5
    found = information(signal * normal(4000, 2, 5), torch.zeros(4000, 2), batch=4000)
    expected = 2 * 0.5 * math.log(1 + signal**2)
    assert all(found[name] == pytest.approx(expected, abs=0.1) for name in ESTIMATES)


def test_the_identity_of_hoffman_and_johnson_holds() -> None:
    mean, log_var = 0.7 * normal(600, 3), 0.2 * normal(600, 3, 1) - 1
    found = information(mean, log_var)
    kl = (0.5 * (mean.square() + log_var.exp() - log_var - 1)).sum(1).mean()
    assert found["dieng"] + found["aggregate_kl"] == pytest.approx(float(kl))


def test_the_sampled_estimate_never_leaves_the_ceiling_of_its_batches() -> None:
    found = information(50 * normal(1000, 4), torch.full((1000, 4), -3.0), batch=300)  # four batches of 250
    assert found["ceiling"] == pytest.approx(math.log(250))
    assert found["sampled"] <= found["ceiling"] + 1e-9


def test_latents_of_the_prior_lie_no_further_from_it_than_its_own_samples() -> None:
    rows = discrepancy(torch.zeros(900, 6), torch.zeros(900, 6))
    assert [row["sigma"] for row in rows] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert all(row["mmd"] == pytest.approx(row["of_the_prior"], abs=3e-3) for row in rows)


def test_a_point_is_seen_by_narrow_kernels_more_than_by_wide_ones() -> None:
    rows = discrepancy(torch.zeros(400, 8), torch.full((400, 8), -20.0))
    assert rows[0]["mmd"] > 10 * rows[-1]["mmd"] and rows[0]["mmd"] > 0.5


def test_latents_are_drawn_alike_for_one_seed_and_fit_their_posterior() -> None:
    mean, log_var = torch.full((20000, 1), 3.0), torch.full((20000, 1), math.log(4.0))
    z = drawn(mean.double(), log_var.double(), 0)
    assert torch.equal(z, drawn(mean.double(), log_var.double(), 0))
    assert float(z.mean()) == pytest.approx(3, abs=0.05) and float(z.std()) == pytest.approx(2, abs=0.05)
