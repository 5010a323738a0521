"""A part of a model heard at work: whatever the model does with it, no model has to help."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from ..models.base import Model
from ..nn.agreement import Agreement

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
