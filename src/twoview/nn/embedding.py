"""From a history to a vector per place: what was chosen, how long ago, and a vector for what is hidden."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..types import History
from .dropout import Dropout


class EmbeddingConfig(Part):
    """How item and position become one vector."""

    dropout: float = 0.5
    norm: Literal["layer", "none"] = "layer"
    scale: bool = False  # item vectors times the square root of their width
    spread: Annotated[float, Field(gt=0)] | None = (
        None  # deviation they begin with; none: as other weights do
    )
    norm_eps: float = 1e-12


class Embedding(nn.Module):
    """Item plus position, normalised, with dropout: History -> [R, W, D]"""

    def __init__(self, n_items: int, n_positions: int, dim: int, config: EmbeddingConfig) -> None:
        super().__init__()
        self.items = nn.Embedding(n_items, dim)
        self.positions = nn.Embedding(n_positions, dim)
        self.hidden = nn.Parameter(torch.randn(dim) * 0.02)  # stands where an item may not be looked at
        self.norm = nn.LayerNorm(dim, eps=config.norm_eps) if config.norm == "layer" else nn.Identity()
        self.drop = Dropout(config.dropout)
        self.scale = dim**0.5 if config.scale else 1.0
        self.spread = config.spread

    def begin(self) -> None:
        """Draws the tables anew, as wide as the recipe wants them: under cosines a wide one turns slowly."""
        if self.spread is not None:
            for table in (self.items.weight, self.positions.weight, self.hidden):
                nn.init.normal_(table, std=self.spread)

    def forward(self, history: History) -> Tensor:
        chosen = torch.where(history.hidden[..., None], self.hidden, self.items(history.items))
        return self.drop(self.norm(chosen * self.scale + self.positions(history.position)))
