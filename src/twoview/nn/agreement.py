"""Two views of every history must agree: an objective over one latent each, or nothing for one view."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..objectives import objective
from ..types import History, Objective, Terms
from .kl import Named

Summary = Callable[[Tensor, History], Tensor]  # latents [R, W, D] -> one for each history [B, D]


class Alone(nn.Module):
    """One view: nothing to agree with."""

    def forward(self, latents: Tensor, history: History) -> Terms:
        return {}


class Agreement(nn.Module):
    """The weighted objective over the latents of both views, which lie one below the other."""

    weight: Tensor  # []

    def __init__(self, objective: Objective, summary: Summary, weight: float) -> None:
        super().__init__()
        self.objective, self.summary = objective, summary
        self.register_buffer("weight", torch.tensor(weight))

    def forward(self, latents: Tensor, history: History) -> Terms:
        """[R, W, D], History of 2B -> {"contrast": []}"""
        a, b = self.summary(latents, history).chunk(2)
        return {"contrast": self.weight * self.objective(a, b)}


class ContrastConfig(Named):
    """An objective by name, with its settings."""

    kind: str = "nt_xent"

    def build(self, dim: int) -> Objective:
        return objective(self.kind, dim=dim, **self.settings)
