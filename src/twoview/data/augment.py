"""Views: a batch seen otherwise, on the device, never in place; each view is a History of its own.

kept      1 2 3 4 5 6 7       targets 2 3 4 5 6 7 8
crop      . . 3 4 5 6 .       a stretch stays; kept places keep their targets
mask      1 _ 3 4 _ 6 7       some items are hidden; places keep their targets
reorder   1 2 6 4 3 5 7       a stretch is shuffled; targets are read from the new order, the last keeps
"""

from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..types import Batch, History

Share = Annotated[float, Field(gt=0, lt=1)]


def lengths_of(history: History) -> Tensor:
    """How many places each history has: [B]"""
    place = history.owner.flatten() + 1
    return torch.zeros(history.n_histories + 1, dtype=place.dtype, device=place.device).index_add(
        0, place, torch.ones_like(place)
    )[1:]


def _drawn(history: History) -> Tensor:
    return torch.rand(history.n_histories, device=history.owner.device)


class Stretch(NamedTuple):
    """A stretch of floor(share * n) places, at least one, somewhere in each history."""

    first: Tensor  # [B] its oldest place, counted from the history's oldest
    end: Tensor  # [B] the place after its newest
    length: Tensor  # [B] of the history
    age: Tensor  # [R, W] a place counted from its history's oldest; -1 where there is none
    inside: Tensor  # [R, W]


def stretch(history: History, share: float) -> Stretch:
    """A random stretch of each history."""
    length, owner = lengths_of(history), history.owner.clamp(min=0)
    size = (length * share).long().clamp(min=1)
    first = (_drawn(history) * (length - size + 1)).long().minimum(length - size)
    age = torch.where(history.real, length[owner] - 1 - history.position, -1)
    inside = history.real & (age >= first[owner]) & (age < (first + size)[owner])
    return Stretch(first, first + size, length, age, inside)


def _rank(history: History, among: Tensor) -> Tensor:
    """How many marked places of its own history drew a smaller number: [R, W], [R, W] -> [R, W]"""
    number = torch.rand(history.owner.shape, device=history.owner.device).argsort(1)  # no two alike in a row
    together = (history.owner[:, :, None] == history.owner[:, None, :]) & among[:, None, :]
    return (together & (number[:, None, :] < number[:, :, None])).sum(-1)


class Keep(nn.Module):
    """The history as it is."""

    def forward(self, batch: Batch) -> Batch:
        return batch


class Crop(nn.Module):
    """A random stretch of each history stays."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, batch: Batch) -> Batch:
        history = batch.history
        kept = stretch(history, self.share)
        end = kept.end[history.owner.clamp(min=0)]
        cut = replace(
            history,
            owner=torch.where(kept.inside, history.owner, -1),
            hidden=history.hidden & kept.inside,
            position=torch.where(kept.inside, end - 1 - kept.age, 0),
            newest=history.newest - (kept.length - kept.end),
        )
        return Batch(history=cut, targets=torch.where(kept.inside, batch.targets, -1))


class Mask(nn.Module):
    """A share of each history's items is hidden, rounded up or down at random; one stays in sight."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, batch: Batch) -> Batch:
        history = batch.history
        length = lengths_of(history)
        count = torch.floor(length * self.share + _drawn(history)).long().minimum(length - 1)
        chosen = _rank(history, history.real) < count[history.owner.clamp(min=0)]
        return replace(batch, history=replace(history, hidden=history.hidden | (chosen & history.real)))


class Reorder(nn.Module):
    """A random stretch of each history is shuffled."""

    def __init__(self, share: float, asks: Literal["new", "kept"] = "new") -> None:
        super().__init__()
        self.share = share
        self.targets = {"new": self._next_in_row, "kept": self._as_they_were}[asks]

    def forward(self, batch: Batch) -> Batch:
        history = batch.history
        mixed = stretch(history, self.share)
        first = mixed.first[history.owner.clamp(min=0)]
        moved = torch.where(mixed.inside, first + _rank(history, mixed.inside) - mixed.age, 0)
        place = torch.arange(moved.numel(), device=moved.device).view_as(moved) + moved
        shuffled = replace(
            history,
            items=_sent(history.items, place),
            hidden=_sent(history.hidden, place),
        )
        return Batch(history=shuffled, targets=self.targets(batch, shuffled.items))

    def _next_in_row(self, batch: Batch, items: Tensor) -> Tensor:
        follows = (batch.history.position > 0) & (batch.targets >= 0)
        return torch.where(follows, items.roll(-1, dims=1), batch.targets)

    def _as_they_were(self, batch: Batch, items: Tensor) -> Tensor:
        return batch.targets


def _sent(values: Tensor, place: Tensor) -> Tensor:
    return torch.zeros_like(values).flatten().scatter(0, place.flatten(), values.flatten()).view_as(values)


class AnyOf(nn.Module):
    """One of several views for each history, at random."""

    def __init__(self, *views: nn.Module) -> None:
        super().__init__()
        self.views = nn.ModuleList(views)

    def forward(self, batch: Batch) -> Batch:
        choice = (_drawn(batch.history) * len(self.views)).long().clamp(max=len(self.views) - 1)
        seen = self.views[0](batch)
        for k, view in enumerate(self.views[1:], start=1):
            seen = _where(choice == k, view(batch), seen, batch.history.owner)
        return seen


def _where(chosen: Tensor, a: Batch, b: Batch, owner: Tensor) -> Batch:
    """a for the chosen histories, b for the others, place by place: [B], Batch, Batch, [R, W] -> Batch"""
    here = chosen[owner.clamp(min=0)]
    per_place = {
        name: torch.where(here, getattr(a.history, name), getattr(b.history, name))
        for name in ("items", "owner", "hidden", "position", "times")
    }
    newest = torch.where(chosen, a.history.newest, b.history.newest)
    return Batch(
        history=replace(b.history, newest=newest, **per_place),
        targets=torch.where(here, a.targets, b.targets),
    )


class KeepConfig(Part):
    kind: Literal["keep"] = "keep"

    def build(self) -> nn.Module:
        return Keep()


class CropConfig(Part):
    kind: Literal["crop"] = "crop"
    share: Share = 0.6  # of a history that stays

    def build(self) -> nn.Module:
        return Crop(self.share)


class MaskConfig(Part):
    kind: Literal["mask"] = "mask"
    share: Share = 0.3  # of a history that is hidden

    def build(self) -> nn.Module:
        return Mask(self.share)


class ReorderConfig(Part):
    kind: Literal["reorder"] = "reorder"
    share: Share = 0.6  # of a history that is shuffled
    asks: Literal["new", "kept"] = "new"  # kept: the released code's targets, some of them already shown

    def build(self) -> nn.Module:
        return Reorder(self.share, self.asks)


class AnyConfig(Part):
    kind: Literal["any"] = "any"
    crop: CropConfig = CropConfig()
    mask: MaskConfig = MaskConfig()
    reorder: ReorderConfig = ReorderConfig()

    def build(self) -> nn.Module:
        return AnyOf(self.crop.build(), self.mask.build(), self.reorder.build())


ViewConfig = Annotated[
    KeepConfig | CropConfig | MaskConfig | ReorderConfig | AnyConfig, Field(discriminator="kind")
]
