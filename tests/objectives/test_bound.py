"""The bound of two views, term by term, where the evidence is known in closed form.

z, z' ~ N(0, 1) with correlation r,   x = w z + noise,   x' = w z' + noise,   q(z, z') = q(z) q(z')

log p(x, x') = E log p(x|z) - KL(q(z)) + E log p(x'|z') - KL(q(z')) + E log p(z, z') / (p(z) p(z'))
               + KL(q(z) q(z') from p(z, z' | x, x'))
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from twoview.objectives import among
from twoview.objectives.health import information
from twoview.objectives.variational import gaussian_kl, gaussian_log_density

NODES, WEIGHTS = (torch.from_numpy(np.array(each)) for each in np.polynomial.hermite_e.hermegauss(12))
SHARES = WEIGHTS / WEIGHTS.sum()


def double(numbers: float | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


STANDARD = MultivariateNormal(double([0, 0]), double([[1, 0], [0, 1]]))


class TwoViews(NamedTuple):
    """The model, its data, and a posterior for each view, right or wrong."""

    correlation: float
    loading: float
    noise: float  # log variance
    seen: tuple[float, float]
    mean: tuple[float, float]
    log_var: tuple[float, float]

    @property
    def prior(self) -> MultivariateNormal:
        r = self.correlation
        return MultivariateNormal(double([0, 0]), double([[1, r], [r, 1]]))

    @property
    def evidence(self) -> Tensor:
        spread = self.loading**2 * self.prior.covariance_matrix + math.exp(self.noise) * torch.eye(
            2, dtype=torch.float64
        )
        return MultivariateNormal(double([0, 0]), spread).log_prob(double(self.seen))

    @property
    def answer(self) -> MultivariateNormal:
        """p(z, z' | x, x')"""
        precision = torch.linalg.inv(self.prior.covariance_matrix)
        precision = precision + self.loading**2 / math.exp(self.noise) * torch.eye(2, dtype=torch.float64)
        spread = torch.linalg.inv(precision)
        centre = spread @ (self.loading / math.exp(self.noise) * double(self.seen))
        return MultivariateNormal(centre, spread)

    @property
    def posterior(self) -> MultivariateNormal:
        return MultivariateNormal(double(self.mean), double(self.log_var).exp().diag())

    def latents(self, view: int) -> Tensor:
        """Where a quadrature of q looks: [12]"""
        return self.mean[view] + math.exp(self.log_var[view] / 2) * NODES

    def reconstruction(self, view: int) -> Tensor:
        """E log p(x | z)"""
        centre = self.loading * self.latents(view)
        said = gaussian_log_density(double(self.seen[view]), centre, double(self.noise).expand_as(centre))
        return (SHARES * said).sum()

    def kl(self, view: int) -> Tensor:
        return gaussian_kl(double(self.mean[view]), double(self.log_var[view]))

    @property
    def contrast(self) -> Tensor:
        """E log p(z, z') / (p(z) p(z')) over q(z) q(z')"""
        z, other = torch.meshgrid(self.latents(0), self.latents(1), indexing="ij")
        return (SHARES[:, None] * SHARES * shared_information(z, other, self.correlation)).sum()

    @property
    def bound(self) -> Tensor:
        elbos = [self.reconstruction(view) - self.kl(view) for view in (0, 1)]
        return elbos[0] + elbos[1] + self.contrast


def shared_information(z: Tensor, other: Tensor, r: float) -> Tensor:
    """Pointwise mutual information of two standard normals of correlation r: [...], [...] -> [...]"""
    joint = gaussian_log_density(other, r * z, torch.full_like(z, math.log(1 - r**2)))
    return joint - gaussian_log_density(other, torch.zeros_like(z), torch.zeros_like(z))


small = st.floats(-1.5, 1.5)
worlds = st.builds(
    TwoViews,
    correlation=st.floats(-0.95, 0.95),
    loading=st.floats(0.2, 2.0),
    noise=st.floats(-2.0, 1.0),
    seen=st.tuples(small, small),
    mean=st.tuples(small, small),
    log_var=st.tuples(st.floats(-3.0, 0.5), st.floats(-3.0, 0.5)),
)
checked = settings(max_examples=25, deadline=None)


@given(world=worlds)
@checked
def test_the_bound_of_two_views_holds_and_its_gap_is_a_divergence(world: TwoViews) -> None:
    gap = kl_divergence(world.posterior, world.answer)
    assert world.bound <= world.evidence + 1e-9
    torch.testing.assert_close(world.evidence - world.bound, gap, rtol=1e-7, atol=1e-9)


@given(world=worlds)
@checked
def test_each_term_is_its_closed_form(world: TwoViews) -> None:
    r, (m, n), (v, u) = world.correlation, world.mean, (math.exp(each) for each in world.log_var)
    for view, (centre, spread) in enumerate(((m, v), (n, u))):
        squares = (world.seen[view] - world.loading * centre) ** 2 + world.loading**2 * spread
        expected = -0.5 * (math.log(2 * math.pi) + world.noise + squares / math.exp(world.noise))
        assert world.reconstruction(view).item() == pytest.approx(expected)
        assert world.kl(view).item() == pytest.approx((centre**2 + spread - 1 - math.log(spread)) / 2)
    first, second = m * m + v, n * n + u
    quadratic = r * r * (first + second) - 2 * r * m * n
    expected = -0.5 * math.log(1 - r * r) - quadratic / (2 * (1 - r * r))
    assert world.contrast.item() == pytest.approx(expected)


@given(world=worlds)
@checked
def test_without_correlation_the_bound_is_two_elbos_and_tight_at_the_answer(world: TwoViews) -> None:
    apart = world._replace(correlation=0.0)
    centre, spread = apart.answer.mean, apart.answer.covariance_matrix.diagonal().log()
    exact = apart._replace(mean=tuple(centre.tolist()), log_var=tuple(spread.tolist()))
    assert apart.contrast.item() == pytest.approx(0, abs=1e-12)
    assert exact.bound.item() == pytest.approx(exact.evidence.item())


@given(world=worlds)
@checked
def test_the_contrast_term_of_two_points_is_their_pointwise_mutual_information(world: TwoViews) -> None:
    points = world._replace(log_var=(-40.0, -40.0))
    z = double(world.mean)
    expected = world.prior.log_prob(z) - STANDARD.log_prob(z)
    torch.testing.assert_close(points.contrast, expected)


@pytest.mark.parametrize("r", [0.3, -0.6, 0.9])
def test_over_the_prior_the_contrast_term_is_the_mutual_information(r: float) -> None:
    z, noise = torch.meshgrid(NODES, NODES, indexing="ij")
    other = r * z + math.sqrt(1 - r * r) * noise
    expected = (SHARES[:, None] * SHARES * shared_information(z, other, r)).sum()
    assert expected.item() == pytest.approx(-0.5 * math.log(1 - r * r))


@pytest.mark.parametrize("r", [0.3, 0.6, 0.9])
def test_info_nce_with_the_pointwise_mutual_information_for_scores_estimates_it(r: float) -> None:
    z, noise = torch.randn(2, 8, 1000, generator=torch.Generator().manual_seed(1))
    other = r * z + math.sqrt(1 - r * r) * noise
    everyone = torch.broadcast_tensors(z[:, :, None], other[:, None, :])  # 8 sets of [1000, 1000]
    scores = shared_information(*everyone, r)
    estimate = torch.stack([information(among(each)) for each in scores]).mean().item()
    assert estimate == pytest.approx(-0.5 * math.log(1 - r * r), abs=0.02)


def test_left_out_the_contrast_term_breaks_the_bound_of_views_that_disagree() -> None:
    spread = -math.log(1 + 4 * math.exp(2))  # log variance of p(z | x)
    centre = 2 * math.exp(2 + spread) * 1.5
    opposed = TwoViews(0.95, 2.0, -2.0, seen=(1.5, -1.5), mean=(centre, -centre), log_var=(spread, spread))
    assert opposed.bound - opposed.contrast > opposed.evidence
    assert opposed.bound <= opposed.evidence
