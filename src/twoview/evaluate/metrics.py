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
Worth = dict[str, Floats]  # [C] by the name of a metric

CUTOFFS = (1, 5, 10, 20, 40)


def recall(ranks: Ints, *, k: int) -> Floats:
    """The chance that the target is among the first k: [C, 2] -> [C]"""
    return _mean_gain(ranks, np.ones(k))


def ndcg(ranks: Ints, *, k: int) -> Floats:
    """1 / log2(1 + place) within the first k places, the best being 1: [C, 2] -> [C]"""
    return _mean_gain(ranks, 1 / np.log2(np.arange(k) + 2))


def mrr(ranks: Ints, *, k: int | None = None) -> Floats:
    """One over the place of the target, where a k is told within the first k places: [C, 2] -> [C]"""
    return _mean_gain(ranks, 1 / np.arange(1, (k or ranks.sum(1).max(initial=0) + 1) + 1))


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


def worth(ranks: Ints) -> Worth:
    """Every metric of every case: [C, 2] -> [C] by name"""
    return {name: metric(ranks) for name, metric in METRICS.items()}


def plainly(ranks: Ints, cases: Ints, candidates: int) -> Worth:
    """Every metric of every case as we count it, whatever the candidates: [C, 2], [C, 4] -> [C] by name"""
    return worth(ranks)


def by_user(values: Floats, cases: Ints) -> Floats:
    """The mean within each user, users in ascending order: [C], [C, 4] -> [users]"""
    if not len(values) or len(values) != len(cases):
        raise ProtocolError(
            f"a metric wants as many ranks as cases, and some; {len(values)} and {len(cases)} came"
        )
    _, owner, counts = np.unique(cases[:, 0], return_inverse=True, return_counts=True)
    return np.bincount(owner, weights=values).astype(np.float64) / counts


def per_user(ranks: Ints, cases: Ints, metric: str) -> Floats:
    """A metric's mean within each user, users in ascending order: [C, 2], [C, 4] -> [users]"""
    if metric not in METRICS:
        raise RecipeError(f"no metric {metric!r}; there are {', '.join(METRICS)}")
    return by_user(METRICS[metric](ranks), cases)


def metrics(ranks: Ints, cases: Ints) -> dict[str, float]:
    """Every metric, the mean over users of the mean within each: [C, 2], [C, 4]"""
    return means(worth(ranks), cases)


def means(worths: Worth, cases: Ints) -> dict[str, float]:
    """The mean over users of the mean within each, metric by metric: [C] by name, [C, 4]"""
    return {name: float(by_user(values, cases).mean()) for name, values in worths.items()}
