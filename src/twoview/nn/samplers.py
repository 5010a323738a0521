"""From a posterior to a latent: what is drawn in training, and what is read when scores are asked."""

from collections.abc import Callable
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..objectives.variational import variational_dropout_penalty
from ..types import Terms
from . import dropout


class Gaussian(nn.Module):
    """mean + sigma * noise."""

    def forward(self, mean: Tensor, sigma: Tensor) -> Tensor:
        """[..., D], [..., D] -> [..., D]"""
        return mean + sigma * torch.randn_like(sigma)

    def terms(self) -> Terms:
        """What the sampler itself adds to a loss."""
        return {}


class NoiseFree(Gaussian):
    """mean + sigma, nothing drawn."""

    def forward(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return mean + sigma


class Dropout(Gaussian):
    """mean + sigma with some of its dimensions dropped and the others scaled up."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.drop = dropout.Dropout(share)

    def forward(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return mean + self.drop(sigma)


class VariationalDropout(Gaussian):
    """mean + alpha * sigma * noise, alpha learnt between 0 and 1."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(alpha).logit())

    def forward(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return mean + self.logit.sigmoid() * sigma * torch.randn_like(sigma)

    def terms(self) -> Terms:
        return {"dropout rate": variational_dropout_penalty(self.logit.sigmoid())}


class Samplers(nn.Module):
    """One sampler for each branch; the branches' posteriors lie one below the other."""

    def __init__(self, *samplers: Gaussian) -> None:
        super().__init__()
        self.of_branch = samplers
        self.parts = nn.ModuleList(samplers)

    def __len__(self) -> int:
        return len(self.of_branch)

    def forward(self, mean: Tensor, sigma: Tensor) -> Tensor:
        """[R, W, D], [R, W, D] -> [R, W, D]"""
        branches = zip(self.of_branch, mean.chunk(len(self)), sigma.chunk(len(self)), strict=True)
        return torch.cat([sampler(*posterior) for sampler, *posterior in branches])

    def terms(self) -> Terms:
        """What the samplers themselves add to a loss."""
        return {name: term for sampler in self.of_branch for name, term in sampler.terms().items()}


class GaussianConfig(Part):
    kind: Literal["gaussian"] = "gaussian"

    def build(self) -> Gaussian:
        return Gaussian()


class NoiseFreeConfig(Part):
    kind: Literal["noise-free"] = "noise-free"

    def build(self) -> Gaussian:
        return NoiseFree()


class DropoutConfig(Part):
    kind: Literal["dropout"] = "dropout"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.2  # of sigma's dimensions that are dropped

    def build(self) -> Gaussian:
        return Dropout(self.share)


class VariationalDropoutConfig(Part):
    kind: Literal["variational-dropout"] = "variational-dropout"
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.5  # where it begins

    def build(self) -> Gaussian:
        return VariationalDropout(self.alpha)


SamplerConfig = Annotated[
    GaussianConfig | NoiseFreeConfig | DropoutConfig | VariationalDropoutConfig, Field(discriminator="kind")
]
Scored = Callable[[Tensor], Tensor]  # latents [R, W, D] -> scores [B, I]


class Mean(nn.Module):
    """Scores are read from the posterior's mean."""

    def point(self, mean: Tensor, sigma: Tensor) -> Tensor:
        """The one latent that stands for a posterior: [..., D], [..., D] -> [..., D]"""
        return mean

    def forward(self, mean: Tensor, sigma: Tensor, scored: Scored) -> Tensor:
        """[R, W, D], [R, W, D] -> [B, I]"""
        return scored(self.point(mean, sigma))


class MeanPlusSigma(Mean):
    """Scores are read one standard deviation above the mean, as the released code does."""

    def point(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return mean + sigma


class Average(Mean):
    """Probabilities are averaged over K latents; their noise is fixed and shared by all histories."""

    noise: Tensor  # [K, D]

    def __init__(self, n: int, dim: int, seed: int) -> None:
        super().__init__()
        self.register_buffer("noise", torch.randn(n, dim, generator=torch.Generator().manual_seed(seed)))

    def forward(self, mean: Tensor, sigma: Tensor, scored: Scored) -> Tensor:
        drawn = [F.log_softmax(scored(mean + sigma * noise), dim=-1) for noise in self.noise]
        return torch.stack(drawn).logsumexp(0)


class MeanConfig(Part):
    kind: Literal["mean"] = "mean"

    def build(self, dim: int) -> Mean:
        return Mean()


class MeanPlusSigmaConfig(Part):
    kind: Literal["mean-plus-sigma"] = "mean-plus-sigma"

    def build(self, dim: int) -> Mean:
        return MeanPlusSigma()


class AverageConfig(Part):
    kind: Literal["average"] = "average"
    samples: Annotated[int, Field(ge=1)] = 8
    seed: int = 0

    def build(self, dim: int) -> Mean:
        return Average(self.samples, dim, self.seed)


ReadingConfig = Annotated[MeanConfig | MeanPlusSigmaConfig | AverageConfig, Field(discriminator="kind")]
