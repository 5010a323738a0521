"""Logs made smaller, never silently: what is left keeps its order and its ids, and a note says what went."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..error import DataError
from .column import Ints
from .log import Log


def where(log: Log, stays: NDArray[np.bool_]) -> Log:
    """The log of the events that stay, users and items without any gone, the rest renumbered: [E] -> Log"""
    owners, items = log.owners[stays], log.items[stays]
    sizes = np.bincount(owners, minlength=log.n_users)
    users = np.flatnonzero(sizes)
    kept = np.flatnonzero(np.bincount(items, minlength=log.n_items))
    number = np.full(log.n_items, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return replace(
        log,
        offsets=np.concatenate([[0], np.cumsum(sizes[users])]),
        items=number[items],
        times=None if log.times is None else log.times[stays],
        user_ids=[log.user_ids[u] for u in users.tolist()],
        item_ids=[log.item_ids[i] for i in kept.tolist()],
        titles=None if log.titles is None else [log.titles[i] for i in kept.tolist()],
        attributes=None if log.attributes is None else taken(*log.attributes, kept),
    )


def taken(offsets: Ints, numbers: NDArray[np.int32], kept: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """The attributes of the items kept, still under their numbers: [I + 1], [n], [K] -> [K + 1], [m]"""
    sizes = np.diff(offsets)
    stays = np.zeros(len(sizes), dtype=bool)
    stays[kept] = True
    return np.concatenate([[0], np.cumsum(sizes[kept])]), numbers[np.repeat(stays, sizes)]


def core(log: Log, min_count: int) -> Log:
    """The k-core: the largest part in which every user and every item has at least `min_count` events."""
    owners, stays = log.owners, np.ones(log.n_events, dtype=bool)
    while True:
        users = np.bincount(owners[stays], minlength=log.n_users)
        items = np.bincount(log.items[stays], minlength=log.n_items)
        still = stays & (users[owners] >= min_count) & (items[log.items] >= min_count)
        if still.sum() == stays.sum():
            break
        stays = still
    if not stays.any():
        raise DataError(f"--min-count {min_count} leaves none of {log.n_events:,} events; ask for fewer")
    small = where(log, stays)
    sizes = {"users": "n_users", "items": "n_items", "events": "n_events"}
    left = (f"{getattr(small, size):,} of {getattr(log, size):,} {what}" for what, size in sizes.items())
    note = f"{min_count}-core: {', '.join(left)}"
    return replace(small, notes=(*log.notes, note))
