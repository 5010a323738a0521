"""Asking a run: for a user of its data, for any items, for everybody at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.column import Ints
from ..data.layout import Columns, shown
from ..data.log import Log
from ..error import DataError, ScoreError
from .training import data_folder

if TYPE_CHECKING:
    from .run import Run

AT_ONCE = 64 << 20  # bytes of scores


@dataclass(frozen=True)
class Recommended:
    """An item that is recommended."""

    id: str
    title: str  # "" where unknown
    score: float


class Counter:
    """Where recommendations are asked for; knows the items of a run by their own ids."""

    def __init__(self, run: "Run", *, keep_seen: bool = False) -> None:
        self.run, self.keep_seen = run, keep_seen
        self.ids = run.folder.lines("items.txt")
        self.titles = run.folder.lines("titles.txt") if run.folder.has("titles.txt") else [""] * len(self.ids)
        self.number = {item: i for i, item in enumerate(self.ids)}
        self.candidates = np.ones(len(self.ids), dtype=bool)

    def only(self, items: Sequence[str]) -> None:
        """Nothing but these is recommended."""
        wanted = np.zeros(len(self.ids), dtype=bool)
        wanted[self.numbers(items)] = True
        self.candidates &= wanted

    def excluding(self, items: Sequence[str]) -> None:
        """None of these is recommended."""
        self.candidates[self.numbers(items)] = False

    def numbers(self, items: Sequence[str]) -> Ints:
        """The numbers of items by their ids; all unknown ones are named."""
        unknown = [item for item in items if item not in self.number]
        if unknown:
            near = get_close_matches(unknown[0], self.ids[:100_000], n=3)
            hint = (
                f" (near {unknown[0]}: {', '.join(near)})"
                if near
                else f"; the first are {', '.join(self.ids[:3])}"
            )
            raise DataError(f"the run knows {len(self.ids)} items, not {', '.join(unknown[:5])}{hint}")
        return np.array([self.number[item] for item in items], dtype=np.int64)

    def for_items(self, items: Sequence[str], k: int) -> list[Recommended]:
        """The k best for a stranger who chose these items, oldest first."""
        if not items:
            raise DataError("recommendations want at least one item; none came")
        chosen = self.numbers(items).astype(np.int32)
        offsets = np.array([0, len(chosen)])
        log = Log(offsets=offsets, items=chosen, times=None, user_ids=["?"], item_ids=self.ids)
        return self._best(log, np.array([0]), np.array([-1]), k)[0]

    def named(self, items: Sequence[str]) -> list[str]:
        """The titles of items, or their ids where they have none."""
        return [self.titles[self.number[item]] or item if item in self.number else item for item in items]

    def lately(self, log: Log, user: str, n: int = 3) -> list[str]:
        """The newest things that a user of the log chose, oldest first, by title."""
        u = list(log.user_ids).index(user)
        newest = log.items[log.offsets[u] : log.offsets[u + 1]][-n:]
        return self.named([log.item_ids[i] for i in newest])

    def for_users(self, log: Log, users: Sequence[str], k: int) -> Iterator[tuple[str, list[Recommended]]]:
        """The k best for each user of a log, after all events of theirs."""
        known = self.matched(log)
        number = {user: i for i, user in enumerate(log.user_ids)}
        if unknown := [user for user in users if user not in number]:
            near = get_close_matches(unknown[0], list(log.user_ids[:100_000]), n=3) or list(log.user_ids[:3])
            raise DataError(f"the data has no user {', '.join(unknown[:5])}; it has {', '.join(near)}, ...")
        same = log.arrays_md5 == self.run.folder.card()["data"]["md5"]
        asked = np.array([number[user] for user in users])
        step = max(1, AT_ONCE // (4 * len(self.ids)))
        for first in range(0, len(asked), step):
            some = asked[first : first + step]
            names = np.where(same & (log.lengths[some] > 0), some, -1)
            yield from zip(users[first : first + step], self._best(known, some, names, k), strict=True)

    def matched(self, log: Log) -> Log:
        """The log in the run's own item numbers, without the events of items that the run does not know."""
        if list(log.item_ids) == self.ids:
            return log
        number = np.array([self.number.get(item, -1) for item in log.item_ids], dtype=np.int32)
        known = number[log.items] >= 0
        counts = np.bincount(log.owners[known], minlength=log.n_users)
        return replace(
            log,
            offsets=np.concatenate([[0], np.cumsum(counts)]),
            items=number[log.items][known],
            times=None if log.times is None else log.times[known],
            item_ids=self.ids,
            titles=None,
            attributes=None,
        )

    @torch.no_grad()
    def _best(self, log: Log, rows: Ints, users: Ints, k: int) -> list[list[Recommended]]:
        begin, end = log.offsets[rows], log.offsets[rows + 1]
        if (begin == end).any():
            raise DataError(
                f"{log.user_ids[int(rows[(begin == end).argmax()])]} chose nothing that the run knows"
            )
        max_len, room = self.run.plan.recipe.rows.max_len, self.run.model.room
        columns = Columns(log.items, log.times, torch.device("cpu"))
        scores = (
            self.run.recommender.score(shown(columns, begin, end, users, max_len=max_len, room=room))
            .float()
            .clone()
        )
        if not bool(scores.isfinite().all()):
            raise ScoreError(f"{self.run.plan.file.name} wants finite scores; some are NaN or infinite")
        scores[:, torch.from_numpy(~self.candidates)] = -torch.inf
        if not self.keep_seen:
            row = np.repeat(np.arange(len(rows)), end - begin)
            seen = np.concatenate([log.items[b:e] for b, e in zip(begin, end, strict=True)]).astype(np.int64)
            scores[torch.from_numpy(row), torch.from_numpy(seen)] = -torch.inf
        best = scores.topk(min(k, len(self.ids)), dim=1)
        return [self._named(*pair) for pair in zip(best.indices.numpy(), best.values.numpy(), strict=True)]

    def _named(self, items: NDArray[np.int64], scores: NDArray[np.float32]) -> list[Recommended]:
        pairs = zip(items.tolist(), scores.tolist(), strict=True)
        return [Recommended(self.ids[i], self.titles[i], score) for i, score in pairs if score > -np.inf]


def asked_log(run: "Run", data: Path | None) -> Log:
    """The log whose users are asked for."""
    return Log.open(data_folder(run.folder.card(), data))
