"""item_knn: what stood near the items of a history in the histories of others.

Deshpande, Karypis, Item-Based Top-N Recommendation Algorithms, TOIS 2004, https://doi.org/10.1145/963770.963776
Items are near when many users had both, few events apart, though neither is simply popular. Each keeps its
nearest ones, and all items of a history ask theirs, the newest loudest.

    near(a, b) = sum over pairs  worth(steps from a to b)  /  (popularity(a)^alpha popularity(b)^beta)
    score(b)   = sum over the history's items a  decay^(steps back) near(a, b)      no loss: nothing is learnt

Where we differ: a pair is worth less the farther it is and the other way round, and a history forgets.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..config import Part
from ..data.column import Ints
from ..data.log import Log
from ..types import History
from .base import Claims, Facts, Model

Floats = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 22
NEIGHBOURS_AT_ONCE = 32


class Config(Part):
    """What makes two items near, and how a history asks."""

    window: int = Field(20, ge=2)  # newest training events of a user that are counted
    forward: float = Field(1.0, ge=0)  # worth of a pair whose second item came later
    backward: float = Field(0.3, ge=0)  # and earlier
    distance: float = Field(0.6, ge=0)  # power of the distance that divides it
    transition: float = Field(0.0, ge=0)  # added when the second came directly after
    alpha: float = Field(0.3, ge=0)  # power of the asking item's popularity
    beta: float = Field(0.05, ge=0)  # power of the answer's
    decay: float = Field(0.65, ge=0, le=1)  # per step back in the history that asks
    neighbours: int = Field(200, ge=1)  # kept of each item


class ItemKnn(Model):
    """Scores an item by how near it is to the items of a history."""

    claims = Claims(ordered=True, learns=False)
    neighbours: Tensor  # [I, K]
    nearness: Tensor  # [I, K] zero where an item has fewer

    def __init__(self, config: Config, facts: Facts) -> None:
        super().__init__(config, facts)
        self.config = config
        shape = (facts.n_items, min(config.neighbours, facts.n_items))
        self.register_buffer("neighbours", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("nearness", torch.zeros(shape))

    def prepare(self, train: Log, epoch: int) -> None:
        shape = self.nearness.shape
        neighbours, nearness = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        for a, b, near in pairs(train, self.config):
            order = np.lexsort((b, -near, a))
            a, b, near = a[order], b[order], near[order]
            place = np.arange(len(a)) - np.searchsorted(a, a)
            first = place < shape[1]
            neighbours[a[first], place[first]], nearness[a[first], place[first]] = b[first], near[first]
        self.neighbours.copy_(torch.from_numpy(neighbours))
        self.nearness.copy_(torch.from_numpy(nearness))

    def score(self, history: History, /) -> Tensor:
        asked = (history.real & ~history.hidden).flatten()
        items, owner = history.items.flatten().where(asked, 0), history.owner.flatten().clamp(min=0)  # [P]
        weight = asked * torch.pow(self.config.decay, history.position.flatten().float())
        n_items = self.facts.n_items
        scores = self.nearness.new_zeros(history.n_histories * n_items)
        for first in range(0, self.neighbours.shape[1], NEIGHBOURS_AT_ONCE):
            some = slice(first, first + NEIGHBOURS_AT_ONCE)
            place = owner[:, None] * n_items + self.neighbours[:, some][items]
            near = weight[:, None] * self.nearness[:, some][items]
            scores.index_add_(0, place.flatten(), near.flatten())
        return scores.view(history.n_histories, n_items)


def pairs(train: Log, config: Config) -> Iterator[tuple[Ints, Ints, Floats]]:
    """All pairs of items and how near they are, some first items at a time: [N], [N], [N]"""
    recent = np.arange(train.n_events) >= (train.offsets[1:] - config.window)[train.owners]
    items, owners = train.items[recent].astype(np.int64), train.owners[recent]
    begin, end = (np.searchsorted(owners, owners, side=side) for side in ("left", "right"))
    popularity = np.maximum(np.bincount(train.items, minlength=train.n_items), 1).astype(np.float64)
    worth = worths(config)
    by_item = np.argsort(items, kind="stable")
    edges = np.searchsorted(items[by_item], np.arange(train.n_items + 1))
    n_pairs = np.concatenate([[0], np.cumsum((end - begin)[by_item])])[edges]
    for some in np.split(by_item, edges[np.flatnonzero(np.diff(n_pairs // PAIRS_AT_ONCE)) + 1]):
        counts = (end - begin)[some]
        own = np.repeat(some, counts)
        other = np.arange(len(own)) + np.repeat(begin[some] - (np.cumsum(counts) - counts), counts)
        keys, which = np.unique(items[own] * train.n_items + items[other], return_inverse=True)
        near = np.bincount(which, weights=worth[other - own])
        a, b = np.divmod(keys, train.n_items)
        yield a, b, near / (popularity[a] ** config.alpha * popularity[b] ** config.beta)


def worths(config: Config) -> Floats:
    """What a pair is worth by how much later its second item came, earlier from the end: [2 window - 1]"""
    distance = np.arange(1, config.window)
    later, earlier = (worth / distance**config.distance for worth in (config.forward, config.backward))
    later[0] += config.transition
    return np.concatenate([[0.0], later, earlier[::-1]])
