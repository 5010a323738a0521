"""A part of a model heard at work: whatever the model does with it, no model has to help."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..models.base import Model
from ..nn.agreement import Agreement
from ..nn.samplers import Samplers

Hear = Callable[[tuple[Any, ...], Any], Any]  # what went in, what came out -> what goes on, None: as it was


@contextmanager
def heard(part: nn.Module, hear: Hear) -> Iterator[None]:
    """As long as it is open, all that passes through a part is heard, and may be changed."""
    handle = part.register_forward_hook(lambda _, given, came: hear(given, came))
    try:
        yield
    finally:
        handle.remove()


def posterior_of(model: Model) -> nn.Module | None:
    """The part that makes a Gaussian for every place: vectors, History -> mean, log variance [R, W, D].

    A model with such latents calls the part `posterior`; that is all it has to do to be diagnosed.
    """
    part = getattr(model, "posterior", None)
    return part if isinstance(part, nn.Module) else None


def agreement_of(model: Model) -> Agreement | None:
    """The part in which two views meet, wherever in the model it is."""
    return next((part for part in model.modules() if isinstance(part, Agreement)), None)


def draws(model: Model) -> bool:
    """Whether training draws its latents; with noise-free samplers alone it never does."""
    found = next((part for part in model.modules() if isinstance(part, Samplers)), None)
    if found is None:
        return True
    samplers = copy.deepcopy(found).train()
    one = torch.ones(len(samplers), 1, 64)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        first, second = (samplers(one, one) for _ in range(2))
    return not torch.equal(first, second)
