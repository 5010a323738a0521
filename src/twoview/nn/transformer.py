"""Transformer blocks over packed rows: attention is one relation, everything else is pointwise."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ..config import Part
from ..types import History
from .dropout import Dropout

Relation = Callable[[History], Tensor]


def both_ways(history: History) -> Tensor:
    """Which place sees which: all of its own history; an empty place itself alone: [R, W, W]"""
    owner = history.owner
    alike = (owner[:, :, None] == owner[:, None, :]) & history.real[:, :, None]
    return alike | torch.eye(owner.shape[1], dtype=torch.bool, device=owner.device)


def causal(history: History) -> Tensor:
    """Which place sees which: its own history up to itself: [R, W, W]"""
    width = history.owner.shape[1]
    earlier = torch.ones(width, width, dtype=torch.bool, device=history.owner.device).tril()
    return both_ways(history) & earlier


class TransformerConfig(Part):
    """A stack of blocks."""

    layers: int = 1
    heads: int = 2
    norm: Literal["post", "pre", "query"] = (
        "post"  # query: SASRec's own, queries and residuals are normalised
    )
    activation: Literal["gelu", "relu"] = "gelu"
    widening: int = 4  # of the feed-forward layer
    dropout: float = 0.5
    attention_dropout: float = 0.5  # of the attention weights
    norm_eps: float = 1e-12


class Attention(nn.Module):
    """Multi-head attention within a relation."""

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        if dim % config.heads:
            raise ValueError(f"the width wants to be a multiple of the heads; {dim} and {config.heads} came")
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        self.heads, self.drop = config.heads, Dropout(config.attention_dropout)

    def forward(self, queries: Tensor, others: Tensor, sees: Tensor) -> Tensor:
        """[R, W, D], [R, W, D], [R, W, W] -> [R, W, D]"""
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [R, H, W, D / H]
            for part, x in ((self.query, queries), (self.key, others), (self.value, others))
        )
        near = query @ key.transpose(2, 3) * (1 / math.sqrt(query.shape[-1]))  # [R, H, W, W]
        weights = near.masked_fill(~sees[:, None], -torch.inf).softmax(-1)
        mixed = self.drop(weights) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    """Two pointwise layers."""

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        activation = {"gelu": nn.GELU, "relu": nn.ReLU}[config.activation]()
        super().__init__(
            nn.Linear(dim, config.widening * dim), activation, nn.Linear(config.widening * dim, dim)
        )


class PostNorm(nn.Module):
    """BERT's block: normalise after each residual."""

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        self.attention, self.feed = Attention(dim, config), FeedForward(dim, config)
        self.norms = nn.ModuleList(nn.LayerNorm(dim, eps=config.norm_eps) for _ in range(2))
        self.drop = Dropout(config.dropout)

    def forward(self, x: Tensor, sees: Tensor) -> Tensor:
        x = self.norms[0](x + self.drop(self.attention(x, x, sees)))
        return self.norms[1](x + self.drop(self.feed(x)))


class PreNorm(PostNorm):
    """Normalise before each part; the residual stream stays as it is."""

    def forward(self, x: Tensor, sees: Tensor) -> Tensor:
        normed = self.norms[0](x)
        x = x + self.drop(self.attention(normed, normed, sees))
        return x + self.drop(self.feed(self.norms[1](x)))


class QueryNorm(PostNorm):
    """SASRec's block: queries and residuals are normalised, keys and values are not."""

    def forward(self, x: Tensor, sees: Tensor) -> Tensor:
        queries = self.norms[0](x)
        x = self.norms[1](queries + self.drop(self.attention(queries, x, sees)))
        return x + self.drop(self.feed(x))


BLOCKS: dict[str, type[PostNorm]] = {"post": PostNorm, "pre": PreNorm, "query": QueryNorm}


class Transformer(nn.Module):
    """Blocks under one relation: [R, W, D], History -> [R, W, D]"""

    def __init__(self, dim: int, config: TransformerConfig, relation: Relation) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(BLOCKS[config.norm](dim, config) for _ in range(config.layers))
        self.last = nn.Identity() if config.norm == "post" else nn.LayerNorm(dim, eps=config.norm_eps)
        self.relation = relation

    def forward(self, x: Tensor, history: History) -> Tensor:
        sees = self.relation(history)
        for block in self.blocks:
            x = block(x, sees)
        return self.last(x)


def small_normal(module: nn.Module, std: float = 0.02) -> None:
    """BERT's beginning: weights and tables N(0, std), biases 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def glorot(module: nn.Module) -> None:
    """Glorot's beginning: uniform weights and tables, biases 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        bound = math.sqrt(6 / sum(module.weight.shape))
        nn.init.uniform_(module.weight, -bound, bound)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
