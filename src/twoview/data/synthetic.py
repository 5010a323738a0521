"""Logs made from a rule of known strength: a small shop a person can recognise, and bare chains to test on.

an event of the shop = any item at all                       with probability `noise`, otherwise
                       the next item of the same aisle       with probability `predictability`, otherwise
                       an item of one of the user's aisles   popular ones more often
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..error import DataError
from .column import Ints
from .log import Log
from .shelf import AISLES, NAMES, slug, titles_of

DAY = 86_400
OPENED = 1_704_067_200  # 2024-01-01, the shop's first day
FRESH = 8  # purchases that a user still remembers
SHELF = sum(len(titles) for titles in AISLES.values())


@dataclass(frozen=True, kw_only=True)
class Dials:
    """How large the shop is, and how much of what happens in it can be foreseen."""

    users: int = 2_000
    items: int = SHELF
    mean_length: float = 12.0  # events per user; at least 3 each, at most ten times the mean
    predictability: float = 0.6  # how often the rule decides
    interests: int = 3  # aisles a user returns to
    skew: float = 0.7  # Zipf exponent of popularity within an aisle; 0 makes all items alike
    noise: float = 0.05  # how often anything at all is bought
    seed: int = 0

    def __post_init__(self) -> None:
        wanted = {
            "at least one user": self.users > 0,
            f"at least {len(AISLES)} items, one for each aisle": self.items >= len(AISLES),
            "a mean_length of at least 3": self.mean_length >= 3,
            f"interests from 1 to {len(AISLES)}": 1 <= self.interests <= len(AISLES),
            "predictability and noise from 0 to 1": 0 <= self.predictability <= 1 and 0 <= self.noise <= 1,
            "a skew of at least 0": self.skew >= 0,
        }
        for want, holds in wanted.items():
            if not holds:
                raise DataError(f"a synthetic shop wants {want}; {self} came")


DEFAULT = Dials()


def shop(dials: Dials = DEFAULT) -> Log:
    """The log of a shop with readable titles: equal dials give equal logs."""
    rng = np.random.default_rng(dials.seed)
    spread = rng.gamma(2.0, (dials.mean_length - 3) / 2, dials.users)
    lengths = np.minimum(3 + rng.poisson(spread), int(10 * dials.mean_length))  # [U]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    titles = titles_of(dials.items)
    return Log(
        offsets=offsets,
        items=bought(dials, lengths, offsets, rng),
        times=visits(lengths, offsets, rng),
        user_ids=[f"{NAMES[u % len(NAMES)]}-{u // len(NAMES) + 1}" for u in range(dials.users)],
        item_ids=[slug(title) for title in titles],
        titles=titles,
        attributes=(np.arange(dials.items + 1), (np.arange(dials.items) % len(AISLES)).astype(np.int32)),
        attribute_ids=list(AISLES),
        notes=(f"a synthetic shop: {dials}",),
    )


def bought(dials: Dials, lengths: Ints, offsets: Ints, rng: np.random.Generator) -> NDArray[np.int32]:
    """What everybody buys, one step of all users at a time: [U], [U + 1] -> [E]"""
    aisles = rng.random((dials.users, len(AISLES))).argsort(axis=1)[:, : dials.interests]  # [U, interests]
    n_places = -(-dials.items // len(AISLES))
    popularity = np.cumsum(np.arange(1, n_places + 1, dtype=float) ** -dials.skew)
    popularity /= popularity[-1]
    items = np.empty(int(offsets[-1]), dtype=np.int32)
    last = np.full(dials.users, -1)
    for step in range(int(lengths.max())):
        users = np.flatnonzero(lengths > step)
        aisle = aisles[users, rng.integers(dials.interests, size=len(users))]
        place = np.searchsorted(popularity, rng.random(len(users)))
        own = aisle + place * len(AISLES)
        follows = (rng.random(len(users)) < dials.predictability) & (last[users] >= 0)
        item = on_shelf(np.where(follows, last[users] + len(AISLES), own), dials.items)
        for back in range(
            1, min(step, FRESH) + 1
        ):  # nobody buys again at once: the next on the shelf will do
            had = items[offsets[users] + step - back] == item
            item[had] = on_shelf(item[had] + len(AISLES), dials.items)
        anything = rng.random(len(users)) < dials.noise
        item[anything] = rng.integers(dials.items, size=np.count_nonzero(anything))
        items[offsets[users] + step] = last[users] = item
    return items


def on_shelf(items: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Items, where past an aisle's end comes its first: neighbours are `len(AISLES)` apart."""
    return np.where(items < n_items, items, items % len(AISLES))


def visits(lengths: Ints, offsets: Ints, rng: np.random.Generator) -> Ints:
    """Times in seconds, days apart, from eight in the morning to eight at night: [U], [U + 1] -> [E]"""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    gaps = rng.exponential(size=len(owners)) * np.minimum(6.0, 700 / lengths)[owners]
    days = np.cumsum(gaps)
    days += (rng.random(len(lengths)) * 300 - days[offsets[:-1]])[owners]
    whole = np.floor(days)
    return OPENED + (whole * DAY + DAY / 3 + (days - whole) * DAY / 2).astype(np.int64)


def markov(n_users: int, n_items: int, length: int, predictability: float, seed: int) -> Log:
    """Chains on one cycle through all items: the next is the cycle's, or any one with probability 1 - p."""
    rng = np.random.default_rng(seed)
    cycle = rng.permutation(n_items)
    successor = np.empty(n_items, dtype=np.int64)
    successor[cycle] = np.roll(cycle, -1)
    steps = np.empty((n_users, length), dtype=np.int32)
    steps[:, 0] = rng.integers(n_items, size=n_users)
    for step in range(1, length):
        anything = rng.integers(n_items, size=n_users)
        follows = rng.random(n_users) < predictability
        steps[:, step] = np.where(follows, successor[steps[:, step - 1]], anything)
    return Log(
        offsets=np.arange(n_users + 1) * length,
        items=steps.reshape(-1),
        times=np.tile(OPENED + np.arange(length) * DAY, n_users),
        user_ids=[f"user-{u}" for u in range(n_users)],
        item_ids=[f"item-{i}" for i in range(n_items)],
    )


def best_hit(n_items: int, predictability: float) -> float:
    """The hit@1 that no model of a `markov` log exceeds in the mean: naming the successor every time."""
    return predictability + (1 - predictability) / n_items


def random(n_users: int, n_items: int, length: int, seed: int) -> Log:
    """Chains without a rule, every item as likely as any other: hit@1 is 1 / n_items for everybody."""
    return markov(n_users, n_items, length, 0.0, seed)
