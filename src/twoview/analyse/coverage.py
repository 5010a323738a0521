"""What a run would show to everybody: how much of the catalogue, how evenly, how far from the best known."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ..data.column import Ints
from ..error import ProtocolError, ScoreError
from ..evaluate.metrics import Floats
from ..evaluate.ranks import Questions
from ..types import Recommender
from .held import Held

CUTOFFS = (10, 20)


@torch.no_grad()
def best(model: Recommender, questions: Questions, k: int) -> Iterator[Ints]:
    """The k best candidates of every case, chunk by chunk, -1 where there are fewer: [B, k]

    Equal scores are in the order that topk leaves them in, the same every time on one machine.
    """
    for chunk in questions:
        scores = model.score(chunk.history).float()
        if not bool(scores.isfinite().all()):
            raise ScoreError(f"{type(model).__name__} wants finite scores; some are NaN or infinite")
        candidates = scores.index_put((chunk.cases, chunk.items), scores.new_tensor(-torch.inf))
        found = candidates.topk(k, dim=1)
        yield torch.where(found.values > -torch.inf, found.indices, -1).cpu().numpy()


def coverage(found: Held, cutoffs: Sequence[int] = CUTOFFS) -> dict[str, Any]:
    """Coverage, Gini and novelty of the first k for every held-out case, and of the targets themselves."""
    n_items, most = found.cases.log.n_items, max(cutoffs)
    if min(cutoffs) < 1 or most > n_items:
        raise ProtocolError(f"coverage wants cut-offs from 1 to {n_items}; {list(cutoffs)} came")
    trained = np.bincount(found.train.items, minlength=n_items)
    shown = {k: np.zeros(n_items, dtype=np.int64) for k in cutoffs}
    for chunk in best(found.model, found.questions(), most):
        for k, times in shown.items():
            first = chunk[:, :k]
            times += np.bincount(first[first >= 0], minlength=n_items)
    targets = np.bincount(found.cases.targets, minlength=n_items)
    return {
        "split": found.split,
        "cases": len(found.cases),
        "items": n_items,
        "targets": spread(targets, trained),
        "at": {str(k): spread(times, trained) for k, times in shown.items()},
    }


def spread(times: Ints, trained: Ints) -> dict[str, float]:
    """How recommendations lie over items, by how often each is shown and was trained on: [I], [I]

    coverage   the share of items shown at all
    gini       0 where all items are shown alike, 1 - 1 / I where one takes all
    novelty    the mean bits of an item's share of training events, -log2; no event counts as one
    """
    share: Floats = np.maximum(trained, 1) / max(1, trained.sum())
    weights: Floats = times / max(1, times.sum())
    place = np.arange(1, len(times) + 1)
    return {
        "coverage": float((times > 0).mean()),
        "gini": float(((2 * place - len(times) - 1) * np.sort(weights)).sum() / len(times)),
        "novelty": float(-(weights * np.log2(share)).sum()),
        "training_events": float(weights @ trained),
        "cold": float(weights[trained == 0].sum()),
    }
