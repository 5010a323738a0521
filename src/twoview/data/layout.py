"""Where histories lie in packed rows, and how a History is read from a log's flat arrays.

longest first, into the first row with space; `room` hidden places are kept behind each

row 0   e e e e e b b .
row 1   a a a a c c c .
row 2   d d . . . . . .
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..types import Batch, History
from .column import Ints


@dataclass(frozen=True, eq=False)
class Layout:
    """Where histories lie in rows, for S batches of B at once."""

    source: Ints  # [S, R, W] flat place in the log, -1 where there is none
    owner: Ints  # [S, R, W]
    position: Ints  # [S, R, W]
    newest: Ints  # [S, B]
    n_rows: Ints  # [S] rows in use


def width_of(max_len: int, room: int = 0) -> int:
    """A row's width: any history fits, short ones share, and the size is a friendly one."""
    return max(64, -(-(max_len + room) // 8) * 8)


def first_fit(lengths: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """Longest first into the first row with space: lengths [S, B] -> row, column [S, B], rows in use [S]"""
    n_batches, n_histories = lengths.shape
    batches = np.arange(n_batches)
    bound = min(n_histories, int(2 * lengths.sum(1).max() // width) + 2)
    free = np.full((n_batches, bound), width)
    row, column = np.zeros_like(lengths), np.zeros_like(lengths)
    order = np.argsort(-lengths, axis=1, kind="stable")
    for k in range(n_histories):
        which = order[:, k]
        need = lengths[batches, which]
        first = (free >= need[:, None]).argmax(1)
        row[batches, which] = first
        column[batches, which] = width - free[batches, first]
        free[batches, first] -= need
    return row, column, (free < width).sum(1)


def laid_out(begin: Ints, lengths: Ints, *, width: int, room: int = 0, n_rows: int | None = None) -> Layout:
    """Spans that begin at a flat place, `room` empty places behind each, as rows: [S, B], [S, B] -> Layout"""
    n_batches, n_histories = lengths.shape
    row, column, used = first_fit(lengths + room, width)
    height = n_rows or int(used.max())
    start = (np.arange(n_batches)[:, None] * height + row) * width + column
    flat_lengths = lengths.ravel() + room
    within = np.arange(flat_lengths.sum()) - np.repeat(np.cumsum(flat_lengths) - flat_lengths, flat_lengths)
    place = np.repeat(start.ravel(), flat_lengths) + within
    shape = (n_batches, height, width)
    source, owner, position = (np.full(shape, fill, dtype=np.int64) for fill in (-1, -1, 0))
    left = np.repeat(flat_lengths, flat_lengths) - 1 - within
    source.ravel()[place] = np.where(left >= room, np.repeat(begin.ravel(), flat_lengths) + within, -1)
    owner.ravel()[place] = np.repeat(np.tile(np.arange(n_histories), n_batches), flat_lengths)
    position.ravel()[place] = left
    newest = row * width + column + lengths + room - 1
    return Layout(source=source, owner=owner, position=position, newest=newest, n_rows=used)


class Columns:
    """A log's flat arrays on the device, from which places are read."""

    def __init__(self, items: NDArray[np.int32], times: Ints | None, device: torch.device) -> None:
        self.items = torch.from_numpy(np.ascontiguousarray(items, dtype=np.int64)).to(device)
        seconds = np.zeros(len(items), dtype=np.int64) if times is None else times
        self.times = torch.from_numpy(np.require(seconds, np.int64, ["C", "W"])).to(device)

    def history(
        self, layout: Layout, batch: int, *, users: Ints, event: Ints, n_rows: int
    ) -> tuple[History, Tensor]:
        """One batch of a layout as a History, and the flat place each of its places was read from: [R, W]"""
        device = self.items.device
        source, owner, position, newest, known, events = (
            torch.from_numpy(part).to(device, non_blocking=True)
            for part in (
                layout.source[batch, :n_rows],
                layout.owner[batch, :n_rows],
                layout.position[batch, :n_rows],
                layout.newest[batch],
                users,
                event,
            )
        )
        read = source.clamp(min=0)
        history = History(
            items=self.items[read],
            owner=owner,
            hidden=(owner >= 0) & (source < 0),
            position=position,
            times=self.times[read],
            newest=newest,
            users=known,
            event=events,
        )
        return history, source


def shown(columns: Columns, begin: Ints, end: Ints, users: Ints, *, max_len: int, room: int = 0) -> History:
    """The newest max_len events of each stretch begin .. end, as one History of fresh rows: [B], [B], [B]"""
    lengths = np.minimum(end - begin, max_len)
    layout = laid_out((end - lengths)[None], lengths[None], width=width_of(max_len, room), room=room)
    stranger = np.full(len(users), -1)
    return columns.history(layout, 0, users=users, event=stranger, n_rows=int(layout.n_rows[0]))[0]


def pack(items: Tensor, lengths: Tensor) -> History:
    """Left-aligned items as a History of one row each, of fixed shape: [B, L], [B] -> R = B, W = L"""
    n_histories, width = items.shape
    column = torch.arange(width, device=items.device)
    first = torch.arange(n_histories, device=items.device)
    left = lengths[:, None] - 1 - column
    stranger = torch.full_like(lengths, -1)
    return History(
        items=items,
        owner=torch.where(left >= 0, first[:, None], -1),
        hidden=torch.zeros_like(items, dtype=torch.bool),
        position=left.clamp(min=0),
        times=torch.zeros_like(items),
        newest=first * width + lengths - 1,
        users=stranger,
        event=stranger,
    )


def unpacked(history: History, max_len: int) -> tuple[Tensor, Tensor]:
    """The flat place of each history's newest L places, oldest first, and which exist: [B, L], [B, L]"""
    back = torch.arange(max_len - 1, -1, -1, device=history.newest.device)
    place = (history.newest[:, None] - back).clamp(min=0)
    own = torch.arange(history.n_histories, device=place.device)[:, None]
    exists = (history.newest[:, None] >= back) & (history.owner.flatten()[place] == own)
    return place, exists


def joined(*batches: Batch) -> Batch:
    """Batches of equal shape as one, the rows of each below those of the one before."""
    histories = [batch.history for batch in batches]
    n_places = histories[0].owner.numel()
    n = histories[0].n_histories
    together = {
        f.name: torch.cat([getattr(history, f.name) for history in histories]) for f in fields(History)
    }
    owners = [torch.where(history.real, history.owner + k * n, -1) for k, history in enumerate(histories)]
    newest = [history.newest + k * n_places for k, history in enumerate(histories)]
    together |= {"owner": torch.cat(owners), "newest": torch.cat(newest)}
    return Batch(history=History(**together), targets=torch.cat([batch.targets for batch in batches]))


def pooled(states: Tensor, history: History) -> Tensor:
    """The sum of each history's states: [R, W, D] -> [B, D]"""
    place = history.owner.flatten() + 1
    sums = states.new_zeros(history.n_histories + 1, states.shape[-1])
    return sums.index_add(0, place, states.flatten(0, 1))[1:]


def newest_of(states: Tensor, history: History) -> Tensor:
    """Each history's state at its newest place: [R, W, D] -> [B, D]"""
    return states.flatten(0, 1)[history.newest]
