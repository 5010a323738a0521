"""Items a user never chose in training, drawn evenly on the device without rejecting any draw.

A user who chose the sorted items s_0 < s_1 < ... has I - m others. The r-th of them (from 0) is r plus the
number of j with s_j - j <= r: one search in one flat sorted array for all users, whose keys are kept apart by
user * (I + 1).
"""

import weakref

import numpy as np
import torch
from torch import Tensor, nn

from ..error import DataError
from .log import Log


class Negatives(nn.Module):
    """Draws for known users; knows the training log alone, so held-out items are drawn like any other."""

    keys: Tensor  # [E] user * (I + 1) + s_j - j, sorted; filled up with the largest number
    first: Tensor  # [U + 1] where each user's keys begin

    def __init__(self, n_users: int, n_items: int, n_events: int) -> None:
        super().__init__()
        self.n_items = n_items
        self.remembered: weakref.ref[Log] | None = None
        self.register_buffer("keys", torch.full((n_events,), torch.iinfo(torch.int64).max), persistent=False)
        self.register_buffer("first", torch.zeros(n_users + 1, dtype=torch.int64), persistent=False)

    def prepare(self, train: Log) -> None:
        """Remembers what each user chose; the same log again costs nothing."""
        if self.remembered is not None and self.remembered() is train:
            return
        self.remembered = weakref.ref(train)
        pairs = np.unique(train.owners * train.n_items + train.items)
        users, items = pairs // train.n_items, pairs % train.n_items
        first = np.searchsorted(users, np.arange(train.n_users + 1))
        if np.diff(first).max(initial=0) >= train.n_items:
            full = train.user_ids[int(np.diff(first).argmax())]
            raise DataError(
                f"a negative is an item the user never chose; user {full} chose all {train.n_items}"
            )
        keys = users * (train.n_items + 1) + items - (np.arange(len(pairs)) - first[users])
        self.keys[: len(keys)] = torch.from_numpy(keys).to(self.keys.device)
        self.keys[len(keys) :] = torch.iinfo(torch.int64).max
        self.first.copy_(torch.from_numpy(first))

    def draw(self, users: Tensor, n: int) -> Tensor:
        """n items for each user, none of them chosen by the user in training: [...] -> [..., n]"""
        user = users.clamp(min=0)[..., None].expand(*users.shape, n)
        free = self.n_items - (self.first[user + 1] - self.first[user])
        draws = torch.rand(user.shape, device=users.device, dtype=torch.float64)
        rank = torch.minimum((draws * free).long(), free - 1)
        passed = (
            torch.searchsorted(self.keys, user * (self.n_items + 1) + rank, right=True) - self.first[user]
        )
        return rank + passed
