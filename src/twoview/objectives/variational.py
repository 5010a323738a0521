"""Posteriors, priors and what keeps them from collapsing: closed forms, by dimension, at least float32."""

import math
from collections.abc import Sequence
from typing import Annotated, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ..config import Part
from .margin import precise, products

Share = Annotated[float, Field(ge=0, le=1)]


def gaussian_kl(mean: Tensor, log_var: Tensor) -> Tensor:
    """KL of N(mean, e^log_var) from N(0, 1), 0 exactly at the prior: [..., D], [..., D] -> [..., D]"""
    mean, log_var = precise(mean), precise(log_var)
    return 0.5 * (mean.square() + torch.expm1(log_var) - log_var)


def gaussian_kl_between(mean: Tensor, log_var: Tensor, other_mean: Tensor, other_log_var: Tensor) -> Tensor:
    """KL of the first Gaussian from the other: four of [..., D] -> [..., D]"""
    apart = (precise(mean) - precise(other_mean)) * torch.exp(-0.5 * precise(other_log_var))
    return gaussian_kl(apart, precise(log_var) - precise(other_log_var))


def gaussian_log_density(z: Tensor, mean: Tensor, log_var: Tensor) -> Tensor:
    """log N(z; mean, e^log_var): three of [..., D] -> [..., D]"""
    z, mean, log_var = precise(z), precise(mean), precise(log_var)
    return -0.5 * (math.log(2 * math.pi) + log_var + (z - mean).square() * torch.exp(-log_var))


def ar1_kl(mean: Tensor, log_var: Tensor, follows: Tensor, *, alpha: float) -> Tensor:
    """KL of independent Gaussians from a prior that remembers: two of [..., W, D], [..., W] -> [..., W, D]

    z_t = alpha z_(t-1) + noise of variance 1 - alpha^2, so each z_t is N(0, 1)
    Razavi, van den Oord, Poole, Vinyals, ICLR 2019 (delta-VAE), arXiv 1901.03416

    `follows` marks places whose left neighbour is of the same history. No posterior gets below `ar1_floor`.
    """
    if not abs(alpha) < 1:
        raise ValueError(f"an alpha is wanted between -1 and 1; {alpha} came")
    mean, log_var = precise(mean), precise(log_var)
    left = alpha * mean.roll(1, dims=-2)
    variances = log_var.exp() + alpha**2 * log_var.exp().roll(1, dims=-2)
    innovation = 1 - alpha**2
    remembered = ((mean - left).square() + variances) / innovation - 1 - log_var + math.log(innovation)
    return torch.where(follows[..., None], 0.5 * remembered, gaussian_kl(mean, log_var))


def ar1_floor(n: int, dim: int, *, alpha: float) -> float:
    """The least `ar1_kl` of a history of n places, in nats, whatever the posterior."""
    if n < 2:
        return 0.0
    return dim / 2 * ((n - 2) * math.log1p(alpha**2) - math.log1p(-(alpha**2)))


class PosteriorNorm(nn.Module):
    """Posterior means with a fixed spread over the batch, so that their KL has a floor in training.

    gamma (mean - average) / deviation + bias, gamma frozen: E KL >= D (gamma^2 + bias^2) / 2
    Zhu et al., ACL 2020 (BN-VAE), arXiv 2004.12585

    Statistics are over real places; outside training running ones are used and the floor holds roughly.
    The variance is guarded by 1e-10; by the release's 1e-5 a shrinking encoder escapes the floor.
    """

    average: Tensor  # [D]
    variance: Tensor  # [D]

    def __init__(self, dim: int, *, gamma: float = 0.5, momentum: float = 0.1) -> None:
        super().__init__()
        self.gamma, self.momentum = gamma, momentum
        self.bias = nn.Parameter(torch.zeros(dim))
        self.register_buffer("average", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    def forward(self, mean: Tensor, real: Tensor) -> Tensor:
        """[..., D], [...] -> [..., D]"""
        mean = precise(mean)
        average, variance = self.observed(mean, real) if self.training else (self.average, self.variance)
        return self.gamma * (mean - average) * torch.rsqrt(variance + 1e-10) + self.bias

    def observed(self, mean: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Average and variance over real places, remembered for later: [..., D], [...] -> [D], [D]"""
        count, real = real.sum().clamp_min(1), real[..., None]
        average = torch.where(real, mean, 0.0).flatten(0, -2).sum(0) / count
        variance = torch.where(real, mean - average, 0.0).square().flatten(0, -2).sum(0) / count
        with torch.no_grad():
            self.average.lerp_(average.to(self.average.dtype), self.momentum)
            self.variance.lerp_(variance.to(self.variance.dtype), self.momentum)
        return average, variance


def mmd(x: Tensor, y: Tensor, /, *, sigmas: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0)) -> Tensor:
    """Squared maximum mean discrepancy, 0 for equal samples: [N, D], [M, D] -> []

    mean k(x, x') + mean k(y, y') - 2 mean k(x, y), k = mean over sigmas of exp(-|x - y|^2 / (2 sigma^2 D))
    Gretton et al. 2012; Zhao, Song, Ermon 2017 (InfoVAE), arXiv 1706.02262

    One wide kernel hardly sees a collapse to a point; that is why there are several.
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or 0 in (*x.shape, *y.shape):
        raise ValueError(f"samples [N, D] and [M, D] are wanted; {list(x.shape)} and {list(y.shape)} came")
    x, y = precise(x), precise(y)
    return kernel(x, x, sigmas) + kernel(y, y, sigmas) - 2 * kernel(x, y, sigmas)


def kernel(x: Tensor, y: Tensor, sigmas: Sequence[float]) -> Tensor:
    """The mean of Gaussian kernels over all pairs and widths: [N, D], [M, D] -> []"""
    squares = x.square().sum(1)[:, None] + y.square().sum(1)[None, :] - 2 * products(x, y)  # [N, M]
    kernels = [torch.exp(-squares / (2 * sigma**2 * x.shape[1])).mean() for sigma in sigmas]
    return torch.stack(kernels).mean()


class CompositePrior(Part):
    """A standard normal, what the encoder said an epoch ago, and a wide normal, mixed.

    log p(z) = sum_d log(w0 N(z_d; 0, 1) + w1 N(z_d; old) + w2 N(z_d; 0, e^wide_log_var))
    Shenbin et al., WSDM 2020 (RecVAE), arXiv 1912.11160

    The release mixes each dimension for itself, which is 3^D components; `whole` mixes whole vectors, 3.
    """

    weights: tuple[Share, Share, Share] = (0.15, 0.75, 0.10)  # standard, old, wide
    wide_log_var: float = 10.0
    whole: bool = False

    @model_validator(mode="after")
    def sums_to_one(self) -> Self:
        if not math.isclose(sum(self.weights), 1, abs_tol=1e-6):
            raise ValueError(f"weights want a sum of 1; {self.weights} came")
        return self

    def log_density(self, z: Tensor, old_mean: Tensor, old_log_var: Tensor) -> Tensor:
        """log p(z): three of [..., D] -> [...]"""
        origin = torch.zeros_like(old_mean)
        densities = [
            gaussian_log_density(z, origin, origin),
            gaussian_log_density(z, old_mean, old_log_var),
            gaussian_log_density(z, origin, torch.full_like(origin, self.wide_log_var)),
        ]  # three of [..., D]
        if self.whole:
            return self.mixed([density.sum(-1) for density in densities])
        return self.mixed(densities).sum(-1)

    def mixed(self, densities: list[Tensor]) -> Tensor:
        """The log of the weighted sum of densities: three of [...] -> [...]"""
        log_weights = [math.log(weight) if weight else -math.inf for weight in self.weights]
        weighted = [log_weight + density for log_weight, density in zip(log_weights, densities, strict=True)]
        return torch.logsumexp(torch.stack(weighted), 0)


def variational_dropout_penalty(alpha: Tensor) -> Tensor:
    """What noise of the given rate costs, least at 1, so it asks for more noise: [] -> []

    -(log(alpha) / 2 + 1.16145 alpha - 1.50204 alpha^2 + 0.58630 alpha^3)
    Kingma, Salimans, Welling, NeurIPS 2015, arXiv 1506.02557

    The sign is the released ContrastVAE's, whose alpha multiplies a deviation; the source's is a variance.
    """
    alpha = precise(alpha)
    cubic = 1.161451241083230 * alpha - 1.502041176441722 * alpha**2 + 0.586299206427007 * alpha**3
    return -(0.5 * torch.log(alpha) + cubic)
