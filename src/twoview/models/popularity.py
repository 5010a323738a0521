"""popularity: what most events were about, for everybody alike.

The line that any model has to clear; Cremonesi, Koren and Turrin, RecSys 2010, https://doi.org/10.1145/1864708.1864721
It counts the training events of each item, and whoever asks gets these counts.
No loss: nothing is learnt.
"""

import numpy as np
import torch
from torch import Tensor

from ..config import Part
from ..data.log import Log
from ..types import History
from .base import Claims, Facts, Model


class Config(Part):
    """Nothing to choose."""


class Popularity(Model):
    """Scores an item by its training events."""

    claims = Claims(learns=False)
    counts: Tensor  # [I]

    def __init__(self, config: Config, facts: Facts) -> None:
        super().__init__(config, facts)
        self.register_buffer("counts", torch.zeros(facts.n_items))

    def prepare(self, train: Log, epoch: int) -> None:
        self.counts.copy_(torch.from_numpy(np.bincount(train.items, minlength=train.n_items)))

    def score(self, history: History, /) -> Tensor:
        return self.counts.expand(history.n_histories, -1)
