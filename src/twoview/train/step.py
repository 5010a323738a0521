"""One step of training: a batch, its terms, their gradient, the optimiser; eager, every device."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..models.base import Optimiser, Phase
from ..types import Batch
from .average import Last

Precision = Callable[[], AbstractContextManager[object]]
KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


class StepConfig(Part):
    """How a step moves the parameters."""

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    lr: Annotated[float, Field(gt=0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip: Annotated[float, Field(gt=0)] | None = 5.0  # of the gradient's norm
    precision: Literal["auto", "float32", "bfloat16"] = (
        "auto"  # of products; auto: bfloat16 where it is faster
    )


def precision_of(config: StepConfig, device: torch.device) -> Precision:
    """The context in which a loss is computed."""
    lower = config.precision == "bfloat16" or (config.precision == "auto" and faster_lower(device))
    return lambda: torch.autocast(device.type, dtype=torch.bfloat16, enabled=lower)


def faster_lower(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 faster than float32."""
    return (
        device.type == "cuda" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    )


def optimiser_of(
    kind: str, parameters: list[nn.Parameter], lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """A fused optimiser by name."""
    return KINDS[kind](parameters, lr=lr, weight_decay=weight_decay, fused=True)  # type: ignore[call-arg]


class Eager:
    """A phase's step, run as it is written; its terms are summed where they lie and read when asked."""

    def __init__(self, phase: Phase, config: StepConfig, averages: Last, precision: Precision) -> None:
        self.phase, self.averages, self.precision, self.clip = phase, averages, precision, config.clip
        own = Optimiser(kind=config.optimiser, lr=config.lr, weight_decay=config.weight_decay)
        given: Mapping[Optimiser | None, object] = phase.moves
        self.optimisers = [
            optimiser_of(
                (told or own).kind, list(phase.moves[told]), (told or own).lr, (told or own).weight_decay
            )
            for told in given
            if phase.moves[told]
        ]
        self.parameters = [p for group in phase.moves.values() for p in group]
        self.sums: dict[str, Tensor] = {}
        self.n_steps = 0

    def __call__(self, batch: Batch, step: Tensor) -> None:
        with self.precision():
            terms = self.phase.loss(batch, step)
        total = torch.stack([term.float() for term in terms.values()]).sum()
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        for optimiser in self.optimisers:
            optimiser.step()
        self.averages.follow()
        for name, term in terms.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(term)) + term.detach()
        self.n_steps += 1

    def means(self) -> dict[str, float]:
        """The mean of each term since the last time it was asked."""
        means = {name: float(value) / self.n_steps for name, value in self.sums.items()}
        self.sums, self.n_steps = {}, 0
        return means

    def state(self) -> dict[str, Tensor]:
        """The optimisers' moments, by place."""
        return {
            f"{k}.{i}.{name}": value
            for k, optimiser in enumerate(self.optimisers)
            for i, moments in optimiser.state_dict()["state"].items()
            for name, value in moments.items()
            if isinstance(value, Tensor)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        for k, optimiser in enumerate(self.optimisers):
            whole = optimiser.state_dict()
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in state.items():
                which, i, name = key.split(".", 2)
                if which == str(k):
                    moments.setdefault(int(i), {})[name] = value
            optimiser.load_state_dict({**whole, "state": moments})
