"""Some training steps of a finished run, taken again and undone: terms, gradients, what the contrast saw."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from ..data.log import Log
from ..data.rows import Rows
from ..models.base import Model
from ..nn.agreement import Agreement
from ..train.run import Run
from ..types import Batch, Terms
from .heard import agreement_of, heard

HISTORIES, STEPS = 1024, 16  # taken again, about


@dataclass(frozen=True)
class Step:
    """One step: what each term was, how hard it pulled, the rows that met in the contrast."""

    batch: Batch
    terms: dict[str, float]
    pulls: dict[str, float]  # the norm of each term's own gradient
    pairs: list[tuple[Tensor, Tensor]]  # [B, D] and [B, D] for each time the contrast was asked


def steps(run: Run, train: Log, *, seed: int = 0) -> Iterator[Step]:
    """Steps under the run's own recipe and selected weights; the run itself stays as it is."""
    recipe, model = run.plan.recipe, copy.deepcopy(run.model).cpu()
    epoch, step = selected(run)
    draw = torch.Generator().manual_seed(seed)
    rows = Rows(train, recipe.rows, generator=draw, device=torch.device("cpu"), room=model.room)
    agreement = agreement_of(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.prepare(train, epoch)
        model.train()
        if agreement and isinstance(agreement.objective, nn.Module):
            agreement.objective.eval()  # a memory stays what training left
        n_steps = min(STEPS, max(1, HISTORIES // max(1, rows.n_histories)))
        for batch in islice(rows.epoch(), n_steps):
            yield taken(model, agreement, batch, torch.tensor(float(step)))


def selected(run: Run) -> tuple[int, int]:
    """The epoch and the optimiser step whose weights were selected."""
    best = int(run.folder.card()["best_epoch"])
    told = {record["epoch"]: record["step"] for record in run.folder.story()}
    return max(0, best - 1), int(told.get(best, 0))


def taken(model: Model, agreement: Agreement | None, batch: Batch, step: Tensor) -> Step:
    """One batch through every phase, heard."""
    pairs: list[tuple[Tensor, Tensor]] = []

    def hear(given: tuple[Any, ...], came: Terms) -> None:
        assert agreement is not None
        a, b = agreement.summary(*given).detach().chunk(2)
        pairs.append((a, b))

    terms: dict[str, float] = {}
    pulls: dict[str, float] = {}
    for phase in model.phases:
        with heard(agreement or nn.Identity(), hear):
            found = phase.loss(batch, step)
        parameters = [parameter for group in phase.moves.values() for parameter in group]
        terms |= {name: float(term.detach()) for name, term in found.items()}
        pulls |= {name: pull(term, parameters) for name, term in found.items()}
    return Step(batch, terms, pulls, pairs)


def pull(term: Tensor, parameters: list[nn.Parameter]) -> float:
    """The norm of a term's gradient, 0 for one that nothing moves."""
    if not term.requires_grad:
        return 0.0
    slopes = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
    norms = [slope.double().norm() for slope in slopes if slope is not None]
    return float(torch.stack(norms).norm()) if norms else 0.0


def pulling(taken: list[Step]) -> dict[str, dict[str, float]]:
    """The mean of each term and its share of the summed norms of all terms' gradients."""
    names = list(taken[0].terms) if taken else []
    total = sum(sum(step.pulls.values()) for step in taken)
    return {
        name: {
            "value": sum(step.terms[name] for step in taken) / len(taken),
            "gradient_share": sum(step.pulls[name] for step in taken) / total if total else 0.0,
        }
        for name in names
    }
