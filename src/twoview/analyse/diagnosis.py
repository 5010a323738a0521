"""A run looked into: its states, its latents, its contrast, and a verdict; tables that JSON can hold.

run -> sample of validation cases -> ranks, posteriors, states  -> latent, states
    -> some training steps again  -> terms, gradients, pairs    -> contrast, terms     -> verdict
"""

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.layout import newest_of
from ..data.log import Log
from ..error import ScoreError
from ..evaluate.ranks import ranks
from ..models.base import Model, SequenceModel
from ..nn.gaussian import sigma_of
from ..objectives.variational import gaussian_kl
from ..train.folder import folders
from ..train.run import Run
from .contrast import contrast
from .decoder import listening
from .group import grouped, keys
from .heard import agreement_of, draws, heard, posterior_of
from .information import discrepancy, information
from .posterior import Posteriors, active_units
from .sample import Sample, sample
from .spread import spread
from .step import pulling, steps
from .verdict import verdict


def diagnoses(path: Path, *, data: Path | None = None, model: str | None = None) -> list[dict[str, Any]]:
    """Every run at or below a path, diagnosed."""
    return [diagnosis(Run.open(folder.path, model=model), data) for folder in folders(path)]


def diagnosis(run: Run, data: Path | Log | None = None) -> dict[str, Any]:
    """What a run's states, latents and contrast look like, and what that means."""
    looked_at, model = sample(run, data), copy.deepcopy(run.model).cpu().eval()
    agreement = agreement_of(model)
    taken = [] if looked_at.train is None else list(steps(run, looked_at.train))
    found: dict[str, Any] = {
        "run": str(run.path),
        "model": run.plan.file.name,
        "latent": latent(model, looked_at),
        "contrast": contrast(agreement.objective, taken) if agreement else None,
        "states": states(model, looked_at),
        "terms": pulling(taken),
    }
    refuse_no_numbers(found)
    first = {name: found[name] for name in ("run", "model")}
    return {**first, "verdict": verdict(found), **found}


@torch.no_grad()
def latent(model: Model, looked_at: Sample) -> dict[str, Any] | None:
    """All about the posteriors of a model; None for one that has none."""
    posterior = posterior_of(model)
    if posterior is None:
        return None
    posteriors = Posteriors()
    with heard(posterior, posteriors.hear):
        as_is = ranks(model, looked_at.questions)
    mean, log_var = posteriors.newest
    refuse_no_numbers({"latent": {"mean": float(mean.sum()), "log_var": float(log_var.sum())}})
    return {
        "drawn": draws(model),
        "kl": posteriors.kl(),
        "active_units": {"active": int(active_units(mean).sum()), "of": mean.shape[1]},
        "information": information(mean, log_var),
        "prior": discrepancy(mean, log_var),
        "groups": groups(mean, log_var, looked_at),
        "decoder": listening(model, posterior, looked_at, as_is),
    }


def groups(mean: Tensor, log_var: Tensor, looked_at: Sample) -> dict[str, list[dict[str, Any]]]:
    """Deviation, variance and KL at the newest place, by length and by several frequencies."""
    columns = {
        "sigma": sigma_of(log_var).double().mean(1).numpy(),
        "variance": log_var.double().exp().mean(1).numpy(),
        "kl": gaussian_kl(mean, log_var).double().sum(1).numpy(),
    }
    return {name: grouped(counts, columns) for name, counts in keys(looked_at).items()}


@torch.no_grad()
def states(model: Model, looked_at: Sample) -> dict[str, Any]:
    """What was looked at, and how the states and items that are matched fill their space."""
    told: dict[str, Any] = {
        "split": looked_at.split,
        "cases": len(looked_at),
        "users": len(np.unique(looked_at.cases[:, 0])),
        "dropped_events": looked_at.dropped,
        "histories": None,
        "items": None,
    }
    if not isinstance(model, SequenceModel):
        return told
    chunks = (chunk.history for chunk in looked_at.questions)
    rows = [newest_of(model.encode(history), history) for history in chunks]
    return {**told, "histories": spread(torch.cat(rows)), "items": spread(model.item_table)}


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested table with its dotted name."""
    if isinstance(value, float):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from numbers(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from numbers(each, f"{name}.{place}")


def refuse_no_numbers(found: Mapping[str, Any]) -> None:
    """A diagnosis holds finite numbers or is none."""
    bad = [(name, value) for name, value in numbers(found) if not math.isfinite(value)]
    if bad:
        raise ScoreError(f"a diagnosis wants finite numbers; {len(bad)} are not, {bad[0][0]} is {bad[0][1]}")
