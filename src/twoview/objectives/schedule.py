"""Weights that change over training: frozen parts called with the step, a tensor whose value nobody asks."""

from typing import Annotated, Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from ..config import Part, Place, checked
from ..error import RecipeError

P = TypeVar("P", bound=Part)
Positive = Annotated[float, Field(gt=0)]


class Schedule(Part):
    """A number for every optimiser step: [] -> []"""

    cap: float = 1.0

    def __call__(self, step: Tensor) -> Tensor:
        return self.cap * torch.ones_like(step, dtype=torch.float32)


class Constant(Schedule):
    """cap at every step; another cap than 1 is the beta of a beta-VAE."""


class Linear(Schedule):
    """min(cap, step / total): the slope is 1 / total, cap comes at step cap * total (Liang et al. 2018)."""

    total: Positive = 10_000.0

    def __call__(self, step: Tensor) -> Tensor:
        return (step.float() / self.total).clamp(max=self.cap)


class Sigmoid(Schedule):
    """cap / (1 + exp(-slope (step - middle))) (Bowman et al. 2016)."""

    slope: Positive = 0.0025
    middle: float = 2500.0

    def __call__(self, step: Tensor) -> Tensor:
        return self.cap * torch.sigmoid(self.slope * (step.float() - self.middle))


class Cyclical(Schedule):
    """Cycles that climb from start to cap and stay there, at cap for good after total steps (Fu et al. 2019).

    cap      ____     ____     ______
            /    |   /    |   /
    start  /     |  /     |  /
           |- rise -|               total
    """

    total: Positive = 10_000.0
    cycles: Annotated[int, Field(ge=1)] = 4
    rise: Annotated[float, Field(gt=0, le=1)] = 0.5  # the share of a cycle that climbs
    start: float = 0.0

    def __call__(self, step: Tensor) -> Tensor:
        step = step.float()
        period = self.total / self.cycles
        climbed = (torch.remainder(step, period) / (period * self.rise)).clamp(max=1)
        return self.start + (self.cap - self.start) * torch.where(step < self.total, climbed, 1.0)


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "cyclical": Cyclical,
    "linear": Linear,
    "sigmoid": Sigmoid,
}


def schedule(name: str, /, **settings: Any) -> Schedule:
    """The schedule of that name with its settings."""
    return configured("schedule", SCHEDULES, name, settings)


def configured(kind: str, parts: dict[str, type[P]], name: str, settings: dict[str, Any]) -> P:
    """The part of that name with its settings, an error that lists the right ones otherwise."""
    if name not in parts:
        raise RecipeError(f"no {kind} {name!r}; there are {', '.join(parts)}")
    return checked(parts[name], settings, Place(f"{kind} {name}"))
