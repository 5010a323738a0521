"""Momentum contrast: negatives from a memory that outlives the batch, keys from a slow teacher."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .margin import Contrast, check_pairs, products, unit


class MoCo(nn.Module):
    """Each query against its own key and a queue of earlier ones; in training the keys then join the queue.

    mean softplus(v) over N queries, negatives from the queue alone, keys without gradient
    He, Fan, Wu, Xie, Girshick, CVPR 2020, arXiv 1911.05722

    Rows of the batch are no negatives of each other, so `akin` has nothing to leave out.
    """

    keys: Tensor  # [K, D] unit rows, oldest overwritten first
    place: Tensor  # [] where the next key goes

    def __init__(self, dim: int, *, n_keys: int = 4096, temperature: float = 0.07, seed: int = 0) -> None:
        super().__init__()
        if not temperature > 0 or dim < 1 or n_keys < 1:
            came = f"dim {dim}, n_keys {n_keys}, temperature {temperature}"
            raise ValueError(
                f"moco wants a dim and n_keys of 1 or more and a temperature above 0; {came} came"
            )
        self.temperature = temperature
        keys = torch.randn(n_keys, dim, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("keys", F.normalize(keys, dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    def forward(self, a: Tensor, b: Tensor, /, *, akin: Tensor | None = None) -> Tensor:
        """Queries and their keys: [N, D], [N, D] -> []"""
        check_pairs(a, b, akin)
        if a.shape[1] != self.keys.shape[1]:
            raise ValueError(f"the queue holds rows of {self.keys.shape[1]}; rows of {a.shape[1]} came")
        queries, keys = unit(a), unit(b.detach())
        own = (queries * keys).sum(1) / self.temperature
        scores = products(queries, self.keys.to(queries.dtype, copy=True)) / self.temperature  # [N, K]
        loss = F.softplus(Contrast(own, scores, torch.ones_like(scores, dtype=torch.bool)).margin).mean()
        if self.training:
            self.enqueue(keys)
        return loss

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Put the keys over the oldest ones."""
        size = self.keys.shape[0]
        newest = keys[-size:].to(self.keys.dtype)
        places = (self.place + torch.arange(newest.shape[0], device=keys.device)) % size
        self.keys.copy_(self.keys.index_copy(0, places, newest))
        self.place.copy_((self.place + newest.shape[0]) % size)


@torch.no_grad()
def follow(teacher: nn.Module, student: nn.Module, momentum: float) -> None:
    """Move the teacher's parameters to the student's: momentum 1 keeps the teacher, 0 copies the student."""
    theirs, ours = list(teacher.parameters()), list(student.parameters())
    shapes = [[tuple(p.shape) for p in side] for side in (theirs, ours)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"a teacher wants the student's shapes, {shapes[1]}; it has {shapes[0]}")
    for kept, new in zip(theirs, ours, strict=True):
        kept.lerp_(new, 1 - momentum)
    for kept_buffer, new_buffer in zip(teacher.buffers(), student.buffers(), strict=True):
        kept_buffer.copy_(new_buffer)
