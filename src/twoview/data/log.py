"""Who did what when: one flat array per column, checked once on entry, the same on disk as in memory.

users    u0            u1       u2
offsets  0             4        6              9
items    7  2  7  5    1  3     2  2  8         oldest first within a user
times    .  .  .  .    .  .     .  .  .         seconds, or None
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..error import DataError
from .card import card
from .column import Ints, clocked, numbered, rated, renumbered, roles
from .store import array_of, facts_of, lines_of, refuse_line_breaks, refuse_twice, whole, write_lines


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """Events grouped by user, oldest first; events with equal times keep the order they came in."""

    offsets: Ints  # [U + 1] user u owns the flat places offsets[u] .. offsets[u + 1]
    items: NDArray[np.int32]  # [E] 0..I-1
    times: Ints | None  # [E] seconds, not decreasing within a user; None when only the order is known
    user_ids: Sequence[str]  # the ids users had in the source, any text without a line break
    item_ids: Sequence[str]
    titles: Sequence[str] | None = None  # a readable name per item, "" where unknown
    attributes: tuple[Ints, NDArray[np.int32]] | None = (
        None  # offsets [I + 1] and attribute numbers, per item
    )
    attribute_ids: Sequence[str] = ()
    source_md5: str = ""  # of the file it was read from; picks recipes
    notes: tuple[str, ...] = field(default=())  # what was noticed while reading

    def __post_init__(self) -> None:
        if not is_partition(self.offsets, self.n_users, len(self.items)):
            raise DataError(f"a log wants {self.n_users + 1} offsets rising from 0 to {len(self.items)}")
        if len(self.items) and (self.items.min() < 0 or self.items.max() >= self.n_items):
            raise DataError(f"a log of {self.n_items} items wants item numbers 0 to {self.n_items - 1}")
        if self.times is not None and len(self.times) != len(self.items):
            raise DataError(
                f"a log wants a time for each of {len(self.items)} events; {len(self.times)} came"
            )
        if self.times is not None and falls_within(self.times, self.offsets):
            raise DataError("a log wants times that do not decrease within a user; some do")
        if self.titles is not None and len(self.titles) != self.n_items:
            raise DataError(f"a log wants a title for each of {self.n_items} items; {len(self.titles)} came")
        if self.attributes is not None and not is_partition(
            self.attributes[0], self.n_items, len(self.attributes[1])
        ):
            raise DataError(
                f"a log wants {self.n_items + 1} attribute offsets rising to {len(self.attributes[1])}"
            )
        for what, ids in (("user id", self.user_ids), ("item id", self.item_ids)):
            refuse_twice(what, ids)
            refuse_line_breaks(what, ids)
        refuse_line_breaks("title", self.titles or ())

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_events(self) -> int:
        return len(self.items)

    @property
    def lengths(self) -> Ints:
        """How many events each user has: [U]"""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The user of each event: [E]"""
        return np.repeat(np.arange(self.n_users), self.lengths)

    @property
    def arrays_md5(self) -> str:
        """What the arrays and the ids are, in 32 letters: equal logs have equal ones."""
        digest = hashlib.md5(usedforsecurity=False)
        for column in (self.offsets, self.items, self.times):
            digest.update(b"" if column is None else np.ascontiguousarray(column).view(np.uint8).data)
        for ids in (self.user_ids, self.item_ids):
            digest.update("\n".join(ids).encode())
        return digest.hexdigest()

    @classmethod
    def from_codes(
        cls,
        users: NDArray[np.integer[Any]],  # [E] 0..U-1
        items: NDArray[np.integer[Any]],  # [E] 0..I-1
        times: NDArray[Any] | None,  # [E] numbers, `per_second` of which make a second
        user_ids: Sequence[str],
        item_ids: Sequence[str],
        *,
        per_second: int = 1,
        **known: Any,
    ) -> Self:
        """A log from numbered columns: sorted by user, then time, equal times as they came."""
        if len(users) and (users.min() < 0 or users.max() >= len(user_ids)):
            raise DataError(f"a log of {len(user_ids)} users wants user numbers 0 to {len(user_ids) - 1}")
        offsets = np.zeros(len(user_ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(users, minlength=len(user_ids)), out=offsets[1:])
        order = order_of(users, times)
        if order is not None:
            items, times = items[order], None if times is None else times[order]
        seconds = None if times is None else np.floor_divide(times, per_second).astype(np.int64, copy=False)
        flat = items.astype(np.int32, copy=False)
        return cls(offsets=offsets, items=flat, times=seconds, user_ids=user_ids, item_ids=item_ids, **known)

    @classmethod
    def from_columns(
        cls,
        users: Sequence[Any] | NDArray[Any],
        items: Sequence[Any] | NDArray[Any],
        times: Sequence[Any] | NDArray[Any] | None = None,
        **known: Any,
    ) -> Self:
        """A log from three columns: any ids, times as numbers or dates; events without an id are left out."""
        sizes = {len(column) for column in (users, items, times) if column is not None}
        if len(sizes) > 1:
            came = ", ".join(str(len(column)) for column in (users, items, times) if column is not None)
            raise DataError(f"a log wants columns of one length; {came} came")
        (user_codes, user_ids), (item_codes, item_ids) = numbered(users), numbered(items)
        there = (user_codes >= 0) & (item_codes >= 0)
        moments, per_second = (None, 1) if times is None else clocked(times)
        if not there.all():
            left_out = f"{np.count_nonzero(~there):,} events without a user or an item were left out"
            known["notes"] = (*known.get("notes", ()), left_out)
            user_codes, user_ids = renumbered(user_codes, user_ids, there)
            item_codes, item_ids = renumbered(item_codes, item_ids, there)
            moments = None if moments is None else moments[there]
        return cls.from_codes(
            user_codes, item_codes, moments, user_ids, item_ids, per_second=per_second, **known
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        user: str | None = None,
        item: str | None = None,
        time: str | None = None,
        rating: str | None = None,
        *,
        min_rating: float | None = None,
    ) -> Self:
        """A log from a data frame (polars, pandas, arrow, a dictionary); columns are found by name."""
        names = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", None) or frame.columns
        named = {"user": user, "item": item, "time": time, "rating": rating}
        found = roles([str(name) for name in names], named, "the frame")
        columns = {role: np.asarray(frame[name]) for role, name in found.items()}
        if min_rating is not None:
            if "rating" not in found:
                raise DataError(
                    f"min_rating wants a rating column; the frame has {', '.join(map(str, names))}"
                )
            kept = rated(columns["rating"]) >= min_rating
            columns = {role: column[kept] for role, column in columns.items()}
        return cls.from_columns(columns["user"], columns["item"], columns.get("time"))

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """The folder this log was written to, whole or not at all; one that is there gives way to force."""
        place = Path(folder)
        with whole(place, "card.json", force=force) as part:
            np.save(part / "offsets.npy", self.offsets)
            np.save(part / "items.npy", self.items)
            write_lines(part / "users.txt", self.user_ids)
            write_lines(part / "items.txt", self.item_ids)
            if self.times is not None:
                np.save(part / "times.npy", self.times)
            if self.titles is not None:
                write_lines(part / "titles.txt", self.titles)
            if self.attributes is not None:
                np.save(part / "attribute_offsets.npy", self.attributes[0])
                np.save(part / "attribute_numbers.npy", self.attributes[1])
                write_lines(part / "attributes.txt", self.attribute_ids)
            (part / "card.json").write_text(
                json.dumps(card(self), indent=1, ensure_ascii=False) + "\n", "utf-8"
            )
        return place

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The log in a prepared folder; large columns stay on disk."""
        place = Path(folder)
        if not place.is_dir():
            raise DataError(f"{place} is no folder; `twoview prepare` makes one")
        facts = facts_of(place)
        columns = facts["columns"]
        log = cls(
            offsets=array_of(place / "offsets.npy", np.int64),
            items=array_of(place / "items.npy", np.int32),
            times=array_of(place / "times.npy", np.int64) if "times" in columns else None,
            user_ids=lines_of(place / "users.txt"),
            item_ids=lines_of(place / "items.txt"),
            titles=lines_of(place / "titles.txt") if "titles" in columns else None,
            attributes=(
                array_of(place / "attribute_offsets.npy", np.int64),
                array_of(place / "attribute_numbers.npy", np.int32),
            )
            if "attributes" in columns
            else None,
            attribute_ids=lines_of(place / "attributes.txt") if "attributes" in columns else (),
            source_md5=facts["source_md5"],
            notes=tuple(facts["notes"]),
        )
        for what, count in (("users", log.n_users), ("items", log.n_items), ("events", log.n_events)):
            if facts[what] != count:
                raise DataError(
                    f"{place} disagrees with its card.json: {facts[what]} {what} there, {count} here"
                )
        return log


def order_of(users: NDArray[np.integer[Any]], times: NDArray[Any] | None) -> Ints | None:
    """The places in order of user, then time, stable; None when they already are."""
    risen = users[1:] > users[:-1]
    same = users[1:] == users[:-1]
    if np.all(risen | (same if times is None else same & (times[1:] >= times[:-1]))):
        return None
    return np.argsort(users, kind="stable") if times is None else np.lexsort((times, users))


def is_partition(offsets: Ints, n_owners: int, n_places: int) -> bool:
    """Whether the offsets cut `n_places` places among `n_owners` owners."""
    if len(offsets) != n_owners + 1 or offsets[0] != 0 or offsets[-1] != n_places:
        return False
    return bool(np.all(offsets[1:] >= offsets[:-1]))


def falls_within(times: Ints, offsets: Ints) -> bool:
    """Whether a time is smaller than the one before it of the same user."""
    falls = np.flatnonzero(times[1:] < times[:-1]) + 1
    return not np.isin(falls, offsets).all()
