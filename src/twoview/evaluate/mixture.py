"""Recommenders made of recommenders: each knows `score` and nothing else; what is open, validation chooses.

Remembering   log p(model) + weight log(p(memory) + FLOOR)      up to a constant of each history
Ensemble      log of the mean of the models' p

p(model)  = softmax(scores / temperature), with the temperature under which validation targets are likeliest,
            so that cosines, dot products and counts weigh alike
p(memory) = counts over their sum
Both sums run over all items: which of them are candidates is the protocol's affair, and the ranks'.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from ..data.column import Ints
from ..types import History, Recommender
from .ranks import Questions, counts

FLOOR = 1e-4  # what an item that the memory does not know counts for
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0)
CHUNKS = 3  # of questions that a temperature is fitted on, evenly spread
SHARPEST = 100.0  # deviations of the scores, and one over it the flattest
HALVINGS = 16


class Remembering:
    """A model beside a memory whose scores are counts, never negative; weight 0 changes no rank."""

    def __init__(
        self, model: Recommender, memory: Recommender, weight: float, *, temperature: float = 1.0
    ) -> None:
        self.model, self.memory, self.weight, self.temperature = model, memory, weight, temperature

    def score(self, history: History, /) -> Tensor:
        scores = self.model.score(history).float()
        return _beside(scores, recalled(self.memory, history), self.weight * self.temperature)


class Ensemble:
    """Several models asked as one, each as likely to be right as any other."""

    def __init__(self, models: Sequence[Recommender], temperatures: Sequence[float] | None = None) -> None:
        self.models = models
        self.temperatures = temperatures or [1.0] * len(models)

    def score(self, history: History, /) -> Tensor:
        first, *others = zip(self.models, self.temperatures, strict=True)
        scores = _log_shares(*first, history)
        for other in others:
            scores = torch.logaddexp(scores, _log_shares(*other, history))
        return scores - math.log(len(self.models))


def _log_shares(model: Recommender, temperature: float, history: History) -> Tensor:
    return torch.log_softmax(model.score(history).float() / temperature, dim=1)


def recalled(memory: Recommender, history: History) -> Tensor:
    """The logarithm of what a memory makes of each item, FLOOR added; flat where it knows nothing: [B, I]"""
    found = memory.score(history).float()
    total = found.sum(1, keepdim=True)
    return (found / total.where(total > 0, 1.0)).add_(FLOOR).log_()


def _beside(scores: Tensor, told: Tensor, weight: float) -> Tensor:
    # the memory is scaled to the model and not the other way round, so that weight 0 keeps every bit
    return torch.add(scores, told, alpha=weight)


@torch.no_grad()
def fitted_temperature(model: Recommender, questions: Questions) -> float:
    """What a model's scores are divided by for their softmax to make the targets likeliest; three digits."""
    n_chunks = -(-len(questions.cases) // questions.n_at_once)
    some = list(islice(questions, 0, None, -(-n_chunks // CHUNKS)))
    scores = [model.score(chunk.history).float() for chunk in some]
    n_cases = sum(map(len, scores))
    own = (
        sum(float(s.gather(1, chunk.targets).sum()) for s, chunk in zip(scores, some, strict=True)) / n_cases
    )
    spread = math.sqrt(sum(float(s.var(1, correction=0).sum()) for s in scores) / n_cases)
    if spread == 0:
        return 1.0
    low, high = -math.log(SHARPEST), math.log(SHARPEST)
    for _ in range(HALVINGS):  # the slope of the likelihood falls with the sharpness
        middle = (low + high) / 2
        sharpness = math.exp(middle) / spread
        expected = sum(float((torch.softmax(s * sharpness, dim=1) * s).sum()) for s in scores) / n_cases
        low, high = (middle, high) if expected < own else (low, middle)
    return float(f"{spread / math.exp((low + high) / 2):.3g}")


@torch.no_grad()
def chosen(
    model: Recommender,
    memories: Sequence[Recommender],
    questions: Questions,
    worth: Callable[[Ints], float],
    *,
    weights: Sequence[float] = WEIGHTS,
    temperature: float = 1.0,
) -> tuple[int, float]:
    """Which memory with which weight ranks best, the first of equals; everybody is asked once."""
    found: dict[tuple[int, float], list[Tensor]] = {
        (which, weight): [] for which in range(len(memories)) for weight in weights
    }
    for chunk in questions:
        scores = model.score(chunk.history).float()
        told = [recalled(memory, chunk.history) for memory in memories]
        for (which, weight), ranks in found.items():
            ranks.append(counts(_beside(scores, told[which], weight * temperature), chunk))
    return max(found, key=lambda each: worth(torch.cat(found[each]).cpu().numpy().astype(np.int64)))
