"""What is minimised: contrastive objectives by name and as functions, of use without the other rooms."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..error import RecipeError
from ..types import Objective
from .contrastive import dcl, dclw, debiased, flat_nce, hard_negative, info_nce, nt_xent, sup_con
from .decorrelation import barlow_twins, vicreg
from .hypersphere import align_uniform, alignment, direct_au, uniformity
from .margin import Contrast, among, crowd, facing
from .queue import MoCo, follow

__all__ = [
    "OBJECTIVES",
    "Contrast",
    "MoCo",
    "align_uniform",
    "alignment",
    "among",
    "barlow_twins",
    "crowd",
    "dcl",
    "dclw",
    "debiased",
    "describe",
    "direct_au",
    "facing",
    "flat_nce",
    "follow",
    "hard_negative",
    "info_nce",
    "nt_xent",
    "objective",
    "sup_con",
    "uniformity",
    "vicreg",
]

OBJECTIVES: dict[str, Callable[..., Any]] = {
    "align_uniform": align_uniform,
    "barlow_twins": barlow_twins,
    "dcl": dcl,
    "dclw": dclw,
    "debiased": debiased,
    "direct_au": direct_au,
    "flat_nce": flat_nce,
    "hard_negative": hard_negative,
    "info_nce": info_nce,
    "moco": MoCo,
    "nt_xent": nt_xent,
    "sup_con": sup_con,
    "vicreg": vicreg,
}
OF_THE_BATCH = {"akin", "labels"}  # arguments that come with each call


@dataclass(frozen=True)
class Bound:
    """A function with its settings; `akin` reaches it if it has negatives to leave out."""

    function: Callable[..., Tensor]
    settings: dict[str, Any]
    heeds_akin: bool

    def __call__(self, a: Tensor, b: Tensor, /, *, akin: Tensor | None = None) -> Tensor:
        batch = {"akin": akin} if self.heeds_akin else {}
        return self.function(a, b, **batch, **self.settings)


def objective(name: str, /, *, dim: int | None = None, **settings: Any) -> Objective:
    """The objective of that name with its settings; `dim` is the rows' width, which a memory must know."""
    if name not in OBJECTIVES:
        raise RecipeError(f"no objective {name!r}; there are {', '.join(OBJECTIVES)}")
    part, known = OBJECTIVES[name], defaults(OBJECTIVES[name])
    if unknown := sorted(settings.keys() - known.keys()):
        raise RecipeError(f"objective {name} has no {', '.join(unknown)}; it has {', '.join(known)}")
    for key, value in settings.items():
        refuse_another_kind(f"objective {name} wants {key}", known[key], value)
    try:
        return remembering(part, dim, settings) if isinstance(part, type) else bound(part, settings)
    except (ValueError, TypeError) as error:
        raise RecipeError(f"objective {name}: {error}") from error


def refuse_another_kind(wish: str, default: Any, value: Any) -> None:
    """Words, numbers and truths stay what the default is."""
    kinds = {bool: "true or false", str: "a word", int: "a whole number", float: "a number"}
    if type(value) is not type(default) and not (type(value) is int and type(default) is float):
        raise RecipeError(f"{wish} to be {kinds[type(default)]}; {value!r} came")


def remembering(part: Callable[..., Objective], dim: int | None, settings: dict[str, Any]) -> Objective:
    """An objective that is a Module because it has a memory."""
    if dim is None:
        raise ValueError("a memory wants dim, the width of its rows; none came")
    return part(dim, **settings)


def bound(function: Callable[..., Tensor], settings: dict[str, Any]) -> Objective:
    """A function with its settings, tried once so that a wrong one is refused here and not in training."""
    objective = Bound(function, settings, "akin" in inspect.signature(function).parameters)
    objective(torch.eye(2), torch.eye(2))
    return objective


def defaults(part: Callable[..., Any]) -> dict[str, Any]:
    """What a recipe may set, with what holds when it does not; `**scoring` stands for what `crowd` takes."""
    parameters = list(inspect.signature(part).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        parameters += inspect.signature(crowd).parameters.values()
    named = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return {name: default for name, default in named.items() if name not in OF_THE_BATCH}


def describe() -> list[dict[str, Any]]:
    """Every objective's name, result, formula, source and settings, from its own docstring and signature."""
    rows = []
    for name, part in OBJECTIVES.items():
        result, formula, source = (inspect.getdoc(part) or "").replace("\n\n", "\n").splitlines()[:3]
        row = {"name": name, "result": result, "formula": formula, "source": source}
        rows.append({**row, "settings": defaults(part)})
    return rows
