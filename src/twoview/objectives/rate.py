"""What a model pays for its latents: the KL of all places and dimensions as nats, real places alone."""

from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from ..config import Part
from .schedule import configured

Nats = Annotated[float, Field(ge=0)]


def average(values: Tensor, real: Tensor) -> Tensor:
    """The mean over real places, 0 when there are none: [...], [...] -> []"""
    return torch.where(real, values, 0.0).sum() / real.sum().clamp_min(1)


class Whole(Part):
    """The KL as it is, a beta-VAE's once a schedule weighs it (Higgins et al. 2017)."""

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        """KL per place and dimension, which places are real, the step: [..., D], [...], [] -> []"""
        return average(kl.sum(-1), real)


class FreeBits(Whole):
    """sum_d max(floor, mean kl_d): below the floor a dimension has no gradient (Kingma et al. 2016)."""

    floor: Nats = 0.25  # per dimension

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        per_dimension = torch.where(real[..., None], kl, 0.0).flatten(0, -2).sum(0)  # [D]
        return (per_dimension / real.sum().clamp_min(1)).clamp_min(self.floor).sum()


class PlaceBits(Whole):
    """A place is charged only where its whole KL is above the target (fb1 of Li et al. 2019)."""

    target: Nats = 8.0

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        totals = kl.sum(-1)  # [...]
        return average(torch.where(totals > self.target, totals, 0.0), real)


class DimensionBits(Whole):
    """A dimension of a place is charged only above its even share of the target (fb2 of Li et al. 2019)."""

    target: Nats = 8.0

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        charged = kl > self.target / kl.shape[-1]
        return average(torch.where(charged, kl, 0.0).sum(-1), real)


class BatchBits(Whole):
    """The batch is charged only while its mean KL is above the target (fb3 of Li et al. 2019)."""

    target: Nats = 8.0

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        whole = average(kl.sum(-1), real)
        return torch.where(whole > self.target, whole, 0.0)


class Capacity(Whole):
    """|KL - C|, C climbing from 0 to cap in total steps; a constant schedule is gamma (Burgess 2018)."""

    cap: Nats = 25.0
    total: Annotated[float, Field(gt=0)] = 10_000.0

    def __call__(self, kl: Tensor, real: Tensor, step: Tensor) -> Tensor:
        capacity = self.cap * (step.float() / self.total).clamp(max=1)
        return (average(kl.sum(-1), real) - capacity).abs()


RATES: dict[str, type[Whole]] = {
    "batch_bits": BatchBits,
    "capacity": Capacity,
    "dimension_bits": DimensionBits,
    "free_bits": FreeBits,
    "place_bits": PlaceBits,
    "whole": Whole,
}


def rate(name: str, /, **settings: Any) -> Whole:
    """The rate of that name with its settings."""
    return configured("rate", RATES, name, settings)
