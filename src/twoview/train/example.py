"""What a run would show to a few validation users, kept beside its ranks so that a reader needs no model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..data.log import Log
from ..data.split import Cases
from ..evaluate.ranks import Chunk, Questions
from ..types import Recommender

USERS, LATELY, BEST = 6, 5, 5


def examples(
    model: Recommender, cases: Cases, questions: Callable[[Cases], Questions]
) -> list[dict[str, Any]]:
    """Users from all over the cases: what they chose lately, what came next, what the model would show."""
    which = np.unique(np.linspace(0, len(cases) - 1, USERS).astype(np.int64))
    few = cases.some(which)
    best = [row for chunk in questions(few) for row in shown(model, chunk)]
    log = few.log
    return [
        {
            "user": log.user_ids[user],
            "history": [named(log, item) for item in log.items[begin:place][-LATELY:].tolist()],
            "target": named(log, target),
            "recommended": [named(log, item) | {"score": score} for item, score in items],
        }
        for user, begin, place, target, items in zip(
            few.users.tolist(),
            few.begin.tolist(),
            few.places.tolist(),
            few.targets.tolist(),
            best,
            strict=True,
        )
    ]


@torch.no_grad()
def shown(model: Recommender, chunk: Chunk) -> list[list[tuple[int, float]]]:
    """The best candidates of each case with their scores."""
    scores = model.score(chunk.history).float().clone()
    scores[chunk.cases, chunk.items] = -torch.inf
    best = scores.topk(min(BEST, scores.shape[1]), dim=1)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [[(item, score) for item, score in zip(*row, strict=True) if score > -np.inf] for row in pairs]


def named(log: Log, item: int) -> dict[str, Any]:
    """An item by its id and title, "" where it has none."""
    return {"id": log.item_ids[item], "title": log.titles[item] if log.titles else ""}
