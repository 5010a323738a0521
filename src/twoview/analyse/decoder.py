"""Whether a decoder listens to its latents: other histories' latents, or none, and the ranks asked again."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..data.augment import lengths_of
from ..data.column import Ints
from ..evaluate.metrics import metrics
from ..evaluate.ranks import ranks
from ..models.base import Model
from ..types import History
from .heard import heard
from .sample import Sample

TOLD = ("recall@20", "ndcg@20")
Posterior = tuple[Tensor, Tensor]  # mean, log variance [R, W, D]
Change = Callable[[Posterior, History], Posterior]


def without(posterior: Posterior, history: History) -> Posterior:
    """Every latent is zero, without a doubt."""
    mean, log_var = posterior
    return torch.zeros_like(mean), torch.full_like(log_var, -torch.inf)


class Shuffled:
    """Every history has the latents of another."""

    def __init__(self, seed: int = 0) -> None:
        self.draw = torch.Generator().manual_seed(seed)

    def __call__(self, posterior: Posterior, history: History) -> Posterior:
        mean, log_var = posterior
        place = lent(history, self.draw)
        return mean.flatten(0, 1)[place], log_var.flatten(0, 1)[place]


def lent(history: History, draw: torch.Generator) -> Tensor:
    """The flat place of another history that stands in for each place, newest for newest: [R, W]

    A history that is too long for the other one begins again at the other's newest place.
    """
    order = torch.randperm(history.n_histories, generator=draw)
    other = torch.empty_like(order)
    other[order] = order.roll(1)  # one ring: nobody keeps their own
    lender = other[history.owner.clamp(min=0)]  # [R, W]
    return history.newest[lender] - history.position % lengths_of(history)[lender]


def asked_again(model: Model, posterior: nn.Module, sample: Sample, change: Change) -> dict[str, float]:
    """What the ranks are worth when the posterior says something else."""
    with heard(posterior, lambda given, came: change(came, given[-1])):
        return worth(ranks(model, sample.questions), sample)


def worth(found: Ints, sample: Sample) -> dict[str, float]:
    """The metrics that are told."""
    every = metrics(found, sample.cases)
    return {name: every[name] for name in TOLD}


def listening(model: Model, posterior: nn.Module, sample: Sample, as_is: Ints) -> dict[str, Any]:
    """Metrics as they are, with latents shuffled among histories, without any; and the share that stays."""
    own, shuffled = worth(as_is, sample), asked_again(model, posterior, sample, Shuffled())
    return {
        "as_is": own,
        "shuffled": shuffled,
        "zeroed": asked_again(model, posterior, sample, without),
        # where nothing is ever found, nothing was lost
        "kept": shuffled["ndcg@20"] / own["ndcg@20"] if own["ndcg@20"] > 0 else 1.0,
    }
