"""What ranks are worth: every metric is its mean over random tie-breaking, in closed form.

A target with `above` items over it and `tied` others beside it takes each place above .. above + tied
with the same probability, so a metric is the sum of its gains over these places, divided by their number.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.column import Ints
from ..error import ProtocolError, RecipeError

Floats = NDArray[np.float64]

CUTOFFS = (1, 5, 10, 20, 40)


def recall(ranks: Ints, *, k: int) -> Floats:
    """The chance that the target is among the first k: [C, 2] -> [C]"""
    return _mean_gain(ranks, np.ones(k))


def ndcg(ranks: Ints, *, k: int) -> Floats:
    """1 / log2(1 + place) within the first k places, the best being 1: [C, 2] -> [C]"""
    return _mean_gain(ranks, 1 / np.log2(np.arange(k) + 2))


def mrr(ranks: Ints) -> Floats:
    """One over the place of the target: [C, 2] -> [C]"""
    return _mean_gain(ranks, 1 / np.arange(1, ranks.sum(1).max(initial=0) + 2))


METRICS: dict[str, Callable[[Ints], Floats]] = {
    **{f"recall@{k}": partial(recall, k=k) for k in CUTOFFS},
    **{f"ndcg@{k}": partial(ndcg, k=k) for k in CUTOFFS},
    "mrr": mrr,
}


def _mean_gain(ranks: Ints, gains: Floats) -> Floats:
    """The mean of what the places of each tie gain; later places gain nothing: [C, 2], [k] -> [C]"""
    above, tied = ranks.T
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    first, end = (np.minimum(place, len(gains)) for place in (above, above + tied + 1))
    mean: Floats = (sums[end] - sums[first]) / (tied + 1)
    return mean


def per_user(ranks: Ints, cases: Ints, metric: str) -> Floats:
    """A metric's mean within each user, users in ascending order: [C, 2], [C, 4] -> [users]"""
    if metric not in METRICS:
        raise RecipeError(f"no metric {metric!r}; there are {', '.join(METRICS)}")
    if not len(ranks) or len(ranks) != len(cases):
        raise ProtocolError(
            f"{metric} wants as many ranks as cases, and some; {len(ranks)} and {len(cases)} came"
        )
    _, owner, counts = np.unique(cases[:, 0], return_inverse=True, return_counts=True)
    return np.bincount(owner, weights=METRICS[metric](ranks)).astype(np.float64) / counts


def metrics(ranks: Ints, cases: Ints) -> dict[str, float]:
    """Every metric, the mean over users of the mean within each: [C, 2], [C, 4]"""
    return {name: float(per_user(ranks, cases, name).mean()) for name in METRICS}
