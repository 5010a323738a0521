"""What a run makes of order, and whether anything leaks: the same cases asked again, a little otherwise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.column import Ints
from ..data.split import Cases
from ..evaluate.compare import CONFIDENCE, SHOWN
from ..evaluate.convention import Seen, met
from ..evaluate.metrics import CUTOFFS, METRICS, Floats, metrics, per_user
from ..evaluate.ranks import Pairs, kept, ranks
from ..evaluate.significance import bootstrap, flipped
from ..types import History, Recommender
from .held import Held

DRAWS = 3  # shufflings of every history
LAST = (1, 2, 3, 5, 10)  # events left of every history
FAR = 4.0  # deviations from chance that chance does not explain

Change = Callable[[History], History]


@dataclass(frozen=True)
class Changed:
    """A recommender that is shown something else than what happened."""

    model: Recommender
    change: Change

    def score(self, history: History, /) -> Tensor:
        return self.model.score(self.change(history))


def shuffled(history: History, *, generator: torch.Generator) -> History:
    """The items of each history in another order, anything else where it was."""
    there = history.real & ~history.hidden
    owner, items = history.owner[there], history.items[there]
    drawn = torch.rand(owner.shape, generator=generator, dtype=torch.float64).argsort().to(owner.device)
    mixed = torch.empty_like(items)
    mixed[owner.argsort(stable=True)] = items[drawn[owner[drawn].argsort(stable=True)]]
    return replace(history, items=history.items.masked_scatter(there, mixed))


def last(history: History, *, k: int) -> History:
    """The newest k events of each history, and the room behind them."""
    room = history.hidden & history.real
    n_room = torch.zeros(history.n_histories, dtype=torch.int64, device=history.owner.device)
    n_room.index_add_(0, history.owner.clamp(min=0).flatten(), room.flatten().long())
    stays = history.real & (history.position < k + n_room[history.owner.clamp(min=0)])
    return replace(history, owner=torch.where(stays, history.owner, -1), hidden=room & stays)


def order_test(found: Held, *, seed: int = 0) -> dict[str, Any]:
    """How much of a run's metrics is left when histories are shuffled or cut to their last k events.

    What is shuffled is what the model reads, its newest `max_len` events; what was seen stays removed.
    """
    questions, cases, model = found.questions(), found.table, found.model
    own = _values([ranks(model, questions)], cases)
    draw = torch.Generator().manual_seed(seed)
    mixed = Changed(model, partial(shuffled, generator=draw))
    rows = [_row("shuffled", own, _values([ranks(mixed, questions) for _ in range(DRAWS)], cases))]
    for k in LAST:
        cut = Changed(model, partial(last, k=k))
        rows.append(_row(f"last {k}", own, _values([ranks(cut, questions)], cases)))
    as_it_is = {metric: float(values.mean()) for metric, values in zip(SHOWN, own.T, strict=True)}
    return {"split": found.split, "draws": DRAWS, "metrics": as_it_is, "rows": rows}


def _values(every: list[Ints], cases: Ints) -> Floats:
    """The mean over draws of every metric shown, of each user: [users, M]"""
    draws = [[per_user(each, cases, metric) for metric in SHOWN] for each in every]
    return np.array(draws).mean(0).T


def _row(what: str, own: Floats, other: Floats) -> dict[str, Any]:
    """A change, and what every metric becomes under it."""
    moved = other - own
    low, high = bootstrap(moved, CONFIDENCE)
    columns = zip(SHOWN, own.mean(0), other.mean(0), low, high, flipped(moved), strict=True)
    return {
        "shown": what,
        "metrics": {
            metric: {
                "mean": float(after),
                "relative": float(after / before - 1) if before else None,
                "difference": float(after - before),
                "low": float(low),
                "high": float(high),
                "p": float(p),
            }
            for metric, before, after, low, high, p in columns
        },
    }


def chance_test(found: Held, *, seed: int = 0) -> dict[str, Any]:
    """Whether targets put in at random are found as often as chance finds them: recall at every cut-off.

    Each user's last target becomes any candidate at all, in the log itself, so a history that reaches one
    event too far would give it away.
    """
    rule = met if found.seen == "removed" else kept
    asked = at_random(found.cases, barred=rule, seed=seed)
    candidates = asked.log.n_items - counted(rule(asked), asked)
    hits = ranks(found.model, found.questions(asked))
    rows = {}
    for k in CUTOFFS:
        hit = np.minimum(1.0, k / candidates)
        spread = float(np.sqrt((hit * (1 - hit)).sum())) / len(hit)
        recall, chance = float(METRICS[f"recall@{k}"](hits).mean()), float(hit.mean())
        away = (recall - chance) / spread if spread else 0.0
        rows[f"recall@{k}"] = {"found": recall, "chance": chance, "deviations": away}
    leaks = any(abs(each["deviations"]) > FAR for each in rows.values())
    return {"cases": len(asked), "metrics": rows, "verdict": "leak" if leaks else "chance"}


def at_random(cases: Cases, *, barred: Seen, seed: int = 0) -> Cases:
    """Each user's last case, its target any item not barred; users with none left are left out."""
    n_items = cases.log.n_items
    asked = np.append(cases.users[1:] != cases.users[:-1], True)
    asked &= counted(barred(cases), cases) < n_items
    some = replace(cases, users=cases.users[asked], places=cases.places[asked], known=cases.known[asked])
    rows, items = barred(some)
    taken = rows * n_items + items
    generator, drawn, again = np.random.default_rng(seed), np.zeros_like(some.places), np.arange(len(some))
    while len(again):
        drawn[again] = generator.integers(n_items, size=len(again))
        again = again[np.isin(again * n_items + drawn[again], taken)]
    changed = cases.log.items.copy()
    changed[some.places] = drawn
    return replace(some, log=replace(cases.log, items=changed))


def counted(pairs: Pairs, cases: Cases) -> Ints:
    """How many items each case is paired with: [C]"""
    return np.bincount(pairs[0], minlength=len(cases))


def tie_share(found: Ints, cases: Ints) -> Mapping[str, Any]:
    """How many targets tie with others, and what the metrics would be if they won or lost their ties."""
    above, tied = found.T
    ends = {"won": above, "shared": None, "lost": above + tied}
    settled = {
        name: found if place is None else np.stack([place, np.zeros_like(place)], axis=1)
        for name, place in ends.items()
    }
    values = {name: metrics(each, cases) for name, each in settled.items()}
    return {
        "share": float((tied > 0).mean()),
        "mean_tied": float(tied.mean()),
        "most_tied": int(tied.max()),
        "metrics": {
            metric: {name: each[metric] for name, each in values.items()} for metric in values["shared"]
        },
    }
