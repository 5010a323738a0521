"""The forms that pass between rooms, and the letters of their shapes.

R rows, W row width, B histories, D width of a state, I items, N vectors in a contrastive set.
Item ids are 0..I-1 and nothing else: emptiness lives in `owner`, masking in `hidden`.

    row 0   a a a a b b b . c c c c .      owner   0 0 0 0 1 1 1 -1 2 2 2 2 -1
    row 1   d d e e e e e e e . . . .      position 3 2 1 0 2 1 0  . 3 2 1 0  .
                                           newest   3 6 11 14 21     (row * W + column)
"""

from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import torch
from torch import Tensor

Terms = dict[str, Tensor]  # named, already weighted parts of a loss; the total is their sum


@dataclass(frozen=True, eq=False)
class History:
    """Histories packed into rows: many share a row, nobody crosses one, each lies in adjacent columns."""

    items: Tensor  # [R, W] 0..I-1; meaningless where owner is -1 or hidden
    owner: Tensor  # [R, W] which of the B histories a place belongs to, -1 where there is none
    hidden: Tensor  # [R, W] a place that exists but whose item may not be looked at
    position: Tensor  # [R, W] 0 at a history's newest place, counting back
    times: Tensor  # [R, W] seconds; zeros when the log has none
    newest: Tensor  # [B] flat place (row * W + column) of each history's last place
    users: Tensor  # [B] known users 0..U-1, -1 for a stranger
    event: Tensor  # [B] the newest event's place in the training log's flat arrays, -1 for a stranger

    @property
    def n_histories(self) -> int:
        return self.newest.shape[0]

    @property
    def real(self) -> Tensor:
        """Where there is a place at all: [R, W]"""
        return self.owner >= 0

    def to(self, device: torch.device) -> Self:
        moved = {f.name: getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)}
        return replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Batch:
    """Packed histories and what followed each of their places."""

    history: History
    targets: Tensor  # [R, W] the item that followed, -1 where nothing did

    def to(self, device: torch.device) -> Self:
        return replace(
            self, history=self.history.to(device), targets=self.targets.to(device, non_blocking=True)
        )


class Recommender(Protocol):
    """All that evaluation and serving know of a model."""

    def score(self, history: History, /) -> Tensor:
        """A finite float32 score for every item, higher is better: [B, I]"""
        ...


class Objective(Protocol):
    """Pulls paired rows together and pushes the others apart; a Module when it has memory."""

    def __call__(self, a: Tensor, b: Tensor, /, *, akin: Tensor | None = None) -> Tensor:
        """[N, D], [N, D] -> []; akin [N, N] marks pairs that are no negatives"""
        ...
