"""How others rank and count, exactly where it can be rebuilt: numbers beside theirs, never beside ours."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.column import Ints
from ..data.split import Cases
from ..error import ProtocolError, RecipeError, ScoreError
from ..types import Recommender
from .metrics import CUTOFFS, Floats, Worth, mrr, plainly, worth
from .protocol import CONVENTIONS, Card
from .ranks import Pairs, Questions, kept, ranks

Seen = Callable[[Cases], Pairs]
Asking = Callable[[Seen], Questions]  # the cases of a run, under a rule for items seen before
CUT = 40  # places that the released code looks at
SAMPLED = 100  # items that the target competes with
AT_ONCE = 4096  # cases


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How a number is made elsewhere."""

    name: str
    seen: str  # what happens to items a user met before
    ranks: Callable[[Recommender, Asking], Ints] | None  # None: those that a run saved will do
    worth: Callable[[Ints, Ints, int], Worth]  # ranks, cases, candidates

    @property
    def says(self) -> str:
        return CONVENTIONS[self.name]

    def card(self, ours: Card) -> Card:
        """Our card with what is done otherwise."""
        if self.ranks is None and ours.seen != "removed":
            raise ProtocolError(
                f"{self.name} draws from items not shown before and wants ranks without them; "
                f"in these, seen items are {ours.seen}"
            )
        return replace(ours, convention=self.name, seen=self.seen)


def convention(name: str) -> Convention:
    """A convention by name."""
    if name not in OTHERS:
        raise RecipeError(f"no convention {name!r} to count as; there are {', '.join(OTHERS)}")
    return OTHERS[name]


def cut(found: Ints, cases: Ints, candidates: int) -> Worth:
    """Every metric of every case where nothing past place 40 counts: the reciprocal place alone changes."""
    values = worth(found)
    del values["mrr"]
    return values | {f"mrr@{CUT}": mrr(found, k=CUT)}


def met(cases: Cases) -> Pairs:
    """All items that a case's user met before, once each, its target too if it is one of them."""
    n_items = cases.log.n_items
    rows = np.repeat(np.arange(len(cases)), cases.shown)
    before = np.cumsum(cases.shown) - cases.shown
    items = cases.log.items[np.arange(len(rows)) + (cases.begin - before)[rows]]
    return np.divmod(np.unique(rows * n_items + items), n_items)


@torch.no_grad()
def zeroed(model: Recommender, asking: Asking) -> Ints:
    """Ranks when every item met before scores 0, which is above all that score less: [C, 2]"""
    found = []
    for chunk in asking(met):
        scores = model.score(chunk.history).float()
        if not bool(scores.isfinite().all()):
            raise ScoreError(f"{type(model).__name__} wants finite scores; some are NaN or infinite")
        scores = scores.index_put((chunk.cases, chunk.items), scores.new_zeros(()))
        own = scores.gather(1, chunk.targets)
        found.append(torch.stack([(scores > own).sum(1), (scores == own).sum(1) - 1], dim=1))
    return torch.cat(found).cpu().numpy().astype(np.int64)


def among_drawn(found: Ints, cases: Ints, candidates: int) -> Worth:
    """Every metric of every case in the mean over all draws of 100 others: [C, 2], [C, 4] -> [C] by name

    The saved cases count events: where people repeat items, the pool drawn from is too small by the repeats.
    """
    others = np.maximum(candidates - 1 - cases[:, 2], found.sum(1))
    places = np.arange(1, SAMPLED + 2)
    gains: Worth = {f"recall@{k}": (places <= k).astype(np.float64) for k in CUTOFFS}
    gains |= {f"ndcg@{k}": (places <= k) / np.log2(1 + places) for k in CUTOFFS}
    gains["mrr"] = 1 / places
    values = expected_gains(found, others, np.stack(list(gains.values()), axis=1))
    return dict(zip(gains, values.T, strict=True))


def expected_gains(found: Ints, others: Ints, gains: Floats) -> Floats:
    """The mean gain of a target's place among n others, drawn from more: [C, 2], [C], [n + 1, M] -> [C, M]

    Of P others a stand above the target, so Hypergeometric(P, a, n) of those drawn do. A tie is broken at
    random before the draw: a is each of above .. above + tied alike, and the sum over a has a closed form,
        sum over a <= m of E gain(H_a) = (P + 1) / (n + 1) E[gain(0) + ... + gain(X - 1)],
        X ~ Hypergeometric(P + 1, m + 1, n + 1),
    for the h-th of n + 1 places chosen from P + 1 is the target's, and it lies at m or before if X >= h.
    """
    sums = np.concatenate([np.zeros((1, gains.shape[1])), np.cumsum(gains, axis=0)])  # [n + 2, M]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, others.max() + 2, dtype=np.longdouble)))])
    values = []
    for first in range(0, len(found), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        (above, tied), pool = found[some].T, others[some]
        drawn = np.minimum(pool, len(gains) - 1)
        at, goods = np.arange(len(sums)), (above + tied + 1, above)
        end, begin = (hypergeometric(at, pool + 1, good, drawn + 1, logs) @ sums for good in goods)
        values.append((end - begin) * ((pool + 1) / (drawn + 1) / (tied + 1))[:, None])
    return np.concatenate(values).astype(np.float64)


def hypergeometric(
    x: Ints, total: Ints, good: Ints, drawn: Ints, logs: NDArray[np.longdouble]
) -> NDArray[np.longdouble]:
    """P(x of those drawn are good): [X], three [C] -> [C, X]"""
    total, good, drawn = total[:, None], good[:, None], drawn[:, None]
    least = np.maximum(0, drawn - (total - good))
    can = (x >= least) & (x <= np.minimum(good, drawn))
    x = np.where(can, x, least)  # any x that can be, to be thrown away

    def choices(n: Ints, k: Ints) -> NDArray[np.longdouble]:
        return logs[n] - logs[k] - logs[n - k]

    log_p = choices(good, x) + choices(total - good, drawn - x) - choices(total, drawn)
    return np.where(can, np.exp(log_p), 0)


OTHERS = {
    each.name: each
    for each in (
        Convention(
            name="recbole", seen="kept", ranks=lambda m, asking: ranks(m, asking(kept)), worth=plainly
        ),
        Convention(name="released", seen="set to score 0", ranks=zeroed, worth=cut),
        Convention(name="sampled-100", seen="never drawn", ranks=None, worth=among_drawn),
    )
}
