"""Averaged weights: what is validated and kept may be the running mean of what is trained."""

import copy

import torch
from torch import Tensor, nn


class Last:
    """The weights as they are."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def follow(self) -> None:
        """Takes one step of training in."""

    def selected(self) -> nn.Module:
        """The module to validate, ready to be asked."""
        return self.model.eval()

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Nothing of its own to restore."""


class Averaged(Last):
    """An exponential running mean of the weights, which forgets its beginning faster than its end."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model)
        self.decay = decay
        self.mean = copy.deepcopy(model).requires_grad_(False)
        self.steps = torch.zeros((), device=next(model.parameters()).device)
        self.pairs = list(zip(self.mean.parameters(), model.parameters(), strict=True))

    @torch.no_grad()
    def follow(self) -> None:
        self.steps += 1
        keep = torch.clamp((1 + self.steps) / (10 + self.steps), max=self.decay)
        for mean, weight in self.pairs:
            mean.lerp_(weight, 1 - keep)

    def selected(self) -> nn.Module:
        for mine, theirs in zip(self.mean.buffers(), self.model.buffers(), strict=True):
            mine.copy_(theirs)
        return self.mean.eval()

    def state(self) -> dict[str, Tensor]:
        return {"steps": self.steps} | {f"mean.{name}": p for name, p in self.mean.named_parameters()}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        self.steps.copy_(state["steps"])
        for name, p in self.mean.named_parameters():
            p.copy_(state[f"mean.{name}"])
