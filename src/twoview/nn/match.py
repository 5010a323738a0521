"""How a state meets the table of items: always a dot product, after what is done to either side."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Part


class Match(nn.Module):
    """The plain dot product; its kin change the two sides first."""

    def states(self, states: Tensor) -> Tensor:
        """[..., D] -> [..., D]"""
        return states

    def table(self, table: Tensor) -> Tensor:
        """[I, D] -> [I, D]"""
        return table

    def scores(self, states: Tensor, table: Tensor) -> Tensor:
        """[B, D], [I, D] -> [B, I] float32"""
        return (self.states(states) @ self.table(table).T).float()


class Cosine(Match):
    """The angle alone, sharpened by a temperature: popularity cannot hide in a norm."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def states(self, states: Tensor) -> Tensor:
        return F.normalize(states, dim=-1) / self.temperature

    def table(self, table: Tensor) -> Tensor:
        return F.normalize(table, dim=-1)


class DotConfig(Part):
    kind: Literal["dot"] = "dot"

    def build(self) -> Match:
        return Match()


class CosineConfig(Part):
    kind: Literal["cosine"] = "cosine"
    temperature: float = 0.07

    def build(self) -> Match:
        return Cosine(self.temperature)


MatchConfig = DotConfig | CosineConfig
