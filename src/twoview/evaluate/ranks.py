"""Where each target stands among all items: two exact counts a case, from which every metric follows.

scores   9  7  7  5  3  2          target: the first 7
seen     x                         the 9 is no candidate
above 0, tied 1                    the other 7 ties with it
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..data.column import Ints
from ..data.layout import Columns, shown
from ..data.log import Log
from ..data.split import Cases
from ..error import ProtocolError, ScoreError
from ..types import History, Recommender

CPU = torch.device("cpu")
BUDGETS = {"cpu": 32 << 20}  # twice as fast as 64 MiB: larger blocks are mapped anew each time
BYTES_PER_SCORE = 6  # the float32 itself and two comparisons
BYTES_PER_PLACE = 64  # of a packed History, unused places included
BYTES_PER_PAIR = 16

Pairs = tuple[Ints, Ints]  # cases and items, one pair each


def removed(cases: Cases) -> Pairs:
    """All items that a case's user met before, once each, its target excepted."""
    n_items = cases.log.n_items
    rows = np.repeat(np.arange(len(cases)), cases.shown)
    before = np.cumsum(cases.shown) - cases.shown
    items = cases.log.items[np.arange(len(rows)) + (cases.begin - before)[rows]]
    others = items != cases.targets[rows]
    return np.divmod(np.unique(rows[others] * n_items + items[others]), n_items)


def kept(cases: Cases) -> Pairs:
    """No items: what was met before may be met again."""
    none = cases.places[:0]
    return none, none


SEEN: dict[str, Callable[[Cases], Pairs]] = {"removed": removed, "kept": kept}


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some cases on the device, as a model is asked them."""

    history: History
    targets: Tensor  # [B, 1]
    cases: Tensor  # [S] of the pairs that are no candidates
    items: Tensor  # [S]


class Questions:
    """Cases in chunks whose scores stay within a budget; held on the device if they fit it too."""

    def __init__(
        self,
        cases: Cases,
        *,
        max_len: int,
        room: int = 0,
        seen: Callable[[Cases], Pairs] = removed,
        device: torch.device = CPU,
        budget_bytes: int | None = None,
    ) -> None:
        if not len(cases):
            raise ProtocolError("ranks want cases to ask for; none came")
        self.cases, self.seen, self.device = cases, seen, device
        self.n_items = cases.log.n_items
        budget_bytes = budget_bytes or BUDGETS.get(device.type, 512 << 20)
        self.n_at_once = max(1, budget_bytes // (BYTES_PER_SCORE * self.n_items))
        columns = Columns(cases.log.items, cases.log.times, device)
        self._shown = partial(shown, columns, max_len=max_len, room=room)
        n_places, n_pairs = np.minimum(cases.shown, max_len).sum(), cases.shown.sum()
        n_bytes = n_places * BYTES_PER_PLACE + n_pairs * BYTES_PER_PAIR
        self._held = tuple(self._made()) if n_bytes <= budget_bytes else None

    def __iter__(self) -> Iterator[Chunk]:
        return self._made() if self._held is None else iter(self._held)

    def _made(self) -> Iterator[Chunk]:
        for first in range(0, len(self.cases), self.n_at_once):
            some = self.cases.some(slice(first, first + self.n_at_once))
            users = np.where(some.known, some.users, -1)
            history = self._shown(some.begin, some.places, users)
            parts = (some.targets[:, None], *self.seen(some))
            flat = (torch.from_numpy(part).to(self.device) for part in parts)
            yield Chunk(history, *flat)


@torch.no_grad()
def ranks(model: Recommender, questions: Questions) -> Ints:
    """How many candidates score above each case's target, and how many others tie with it: [C, 2]"""
    found, finite = [], []
    for chunk in questions:
        scores = _scores(model, chunk, questions.n_items)
        found.append(counts(scores, chunk))
        ends = torch.stack([scores.amin(), scores.amax()])  # a NaN shows in both
        finite.append(ends.isfinite().all())
    if not bool(torch.stack(finite).all()):
        _refuse(model, questions)
    return torch.cat(found).cpu().numpy().astype(np.int64)


def _scores(model: Recommender, chunk: Chunk, n_items: int) -> Tensor:
    scores = model.score(chunk.history).float()
    if scores.shape != (len(chunk.targets), n_items):
        wanted = [len(chunk.targets), n_items]
        raise ScoreError(f"{type(model).__name__} wants to score {wanted}; it scored {list(scores.shape)}")
    return scores


def counts(scores: Tensor, chunk: Chunk) -> Tensor:
    """Candidates above each target and level with it: [B, I] -> [B, 2]"""
    own = scores.gather(1, chunk.targets)
    above = (scores > own).sum(1, dtype=torch.int32)  # int32: a third of the time
    tied = (scores == own).sum(1, dtype=torch.int32) - 1
    # the pairs that are no candidates are counted out again, so the model's own tensor is never written to
    theirs, own = scores[chunk.cases, chunk.items], own[chunk.cases, 0]
    above.index_add_(0, chunk.cases, (theirs > own).int(), alpha=-1)
    tied.index_add_(0, chunk.cases, (theirs == own).int(), alpha=-1)
    return torch.stack([above, tied], dim=1)


def _refuse(model: Recommender, questions: Questions) -> None:
    every = (_scores(model, chunk, questions.n_items) for chunk in questions)
    n_bad = sum(int((~scores.isfinite()).sum()) for scores in every)
    of = len(questions.cases) * questions.n_items
    raise ScoreError(f"{type(model).__name__} wants finite scores; {n_bad} of {of} are NaN or infinite")


def cases_table(cases: Cases, train: Log) -> Ints:
    """User, target, items shown and training events of the target: [C, 4]"""
    trained = np.bincount(train.items, minlength=train.n_items)[cases.targets]
    return np.stack([cases.users, cases.targets, cases.shown, trained], axis=1)
