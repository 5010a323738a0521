"""The health of a run's contrast, from the very pairs its objective met: what tells the views apart, and who.

Numbers are means over anchors, then over steps; an objective without a temperature has no negatives to weigh.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from ..error import ProtocolError
from ..objectives import Bound, crowd, dcl, dclw, defaults, facing, flat_nce, info_nce
from ..objectives.health import ess, information, log_k_saturation, one_minus_p
from ..objectives.hypersphere import alignment, uniformity
from ..objectives.margin import Contrast, products, unit
from ..objectives.queue import MoCo
from ..types import Batch, Objective
from .spread import effective_rank
from .step import Step


def contrast_of(objective: Objective, a: Tensor, b: Tensor) -> Contrast | None:
    """Anchors and negatives as an objective scores them; None where it has none: [N, D], [N, D]"""
    if isinstance(objective, MoCo):
        queries, keys = unit(a), unit(b)
        scores = products(queries, objective.keys) / objective.temperature  # [N, K]
        own = (queries * keys).sum(1) / objective.temperature
        return Contrast(own, scores, torch.ones_like(scores, dtype=torch.bool))
    if not isinstance(objective, Bound) or "temperature" not in defaults(objective.function):
        return None
    settings = defaults(objective.function) | objective.settings
    scored = facing if objective.function is info_nce else crowd
    return scored(a, b, temperature=settings["temperature"], similarity=settings["similarity"])


def fades(objective: Objective) -> bool:
    """Whether the gradient shrinks by 1 - p+ as pairs are told apart; it does not for DCL and its kin."""
    if not isinstance(objective, Bound):
        return True
    whole = objective.function is flat_nce and not objective.settings.get("with_positive", False)
    return not whole and objective.function not in (dcl, dclw)


def contrast(objective: Objective, taken: Sequence[Step]) -> dict[str, Any] | None:
    """Everything about the contrast of some steps; None where no step had one."""
    pairs = [pair for step in taken for pair in step.pairs]
    if not pairs:
        return None
    if len(pairs[0][0]) < 2:
        raise ProtocolError(f"a contrast wants two histories in a step; rows.batch is {len(pairs[0][0])}")
    scored = [contrast_of(objective, *pair) for pair in pairs]
    met = [each for each in scored if each is not None]
    return {
        "pairs": sum(len(a) for a, _ in pairs),
        "in_a_step": len(pairs[0][0]),
        "dim": pairs[0][0].shape[1],
        "alignment": fmean(float(alignment(a, b)) for a, b in pairs),
        "uniformity": fmean(float(uniformity(a) + uniformity(b)) / 2 for a, b in pairs),
        "effective_rank": effective_rank(torch.cat([a for a, _ in pairs])),
        "false_negatives": false_negatives(taken),
        "negatives": against(objective, met) if met else None,
    }


def against(objective: Objective, met: Sequence[Contrast]) -> dict[str, Any]:
    """What the negatives of each anchor weigh, together and among themselves."""
    told = {
        "ess": ess,
        "one_minus_p": one_minus_p,
        "information": information,
        "saturation": log_k_saturation,
    }
    means = {
        name: fmean(float(number(each).double().mean()) for each in met) for name, number in told.items()
    }
    each = fmean(float(one.n_rivals.mean()) for one in met)
    log_k = fmean(float(one.n_rivals.log1p().mean()) for one in met)
    return {
        "each": each,
        "effective": means["ess"] * each,
        "log_k": log_k,
        **means,
        "fades": fades(objective),
    }


def false_negatives(taken: Sequence[Step]) -> dict[str, float]:
    """The share of a step's pairs of histories that have more in common than an objective assumes."""
    alike: dict[str, Callable[[Batch], Tensor]] = {
        "same_next_item": next_items,
        "same_newest_item": newest_items,
        "same_user": lambda batch: batch.history.users,
    }
    return {name: fmean(float(shared(key(step.batch))) for step in taken) for name, key in alike.items()}


def next_items(batch: Batch) -> Tensor:
    """What followed each history, -1 where nothing is asked: [B]"""
    return batch.targets.flatten()[batch.history.newest]


def newest_items(batch: Batch) -> Tensor:
    """The newest item of each history, -1 where it is hidden: [B]"""
    in_sight = torch.where(batch.history.hidden, -1, batch.history.items)
    return in_sight.flatten()[batch.history.newest]


def shared(keys: Tensor) -> Tensor:
    """The share of pairs of different rows whose keys are equal, -1 being equal to nothing: [B] -> []"""
    equal = (keys[:, None] == keys[None, :]) & (keys >= 0)
    n = len(keys)
    return (equal.sum() - (keys >= 0).sum()).double() / (n * (n - 1))
