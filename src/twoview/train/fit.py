"""The one loop: epochs of steps, a number to choose by, patience. Knows no model, no metric and no file.

epoch   prepare -> steps -> validate -> better? keep : wait
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from ..data.log import Log
from ..data.rows import Rows
from ..error import TrainingError
from ..models.base import Model
from ..types import Recommender
from .average import Averaged, Last
from .step import Eager, StepConfig, precision_of

Validate = Callable[[Recommender], float]
Count = Annotated[int, Field(ge=1)]
Told = Callable[[int, int, dict[str, float]], None]  # steps done, steps in the epoch, terms of the last epoch


def nobody(done: int, of: int, terms: dict[str, float]) -> None:
    """Is told and says nothing."""


class FitConfig(StepConfig):
    """How long to train and what to keep."""

    epochs: Count = 400  # at most
    patience: Count = 20  # validations in a row without a better one
    validate_every: Count = 1  # epochs
    average: Annotated[float, Field(gt=0, lt=1)] | None = (
        None  # decay of the weights' mean; none: as they are
    )


@dataclass
class Progress:
    """How far a training has come."""

    epoch: int = 0  # epochs done
    step: int = 0  # optimiser steps done
    waited: int = 0  # validations since the best
    best: float = -math.inf
    best_epoch: int = 0


class Fit:
    """A training under way: everything it depends on can be saved at the end of an epoch and restored."""

    def __init__(
        self, model: Model, rows: Rows, train: Log, config: FitConfig, validate: Validate | None
    ) -> None:
        self.model, self.rows, self.train, self.config, self.validate = model, rows, train, config, validate
        self.device = rows.columns.items.device
        learns = any(p.requires_grad for p in model.parameters())
        self.averages = Averaged(model, config.average) if learns and config.average else Last(model)
        precision = precision_of(config, self.device)
        self.steps = (
            [Eager(phase, config, self.averages, precision) for phase in model.phases] if learns else []
        )
        self.turns = [step for step in self.steps for _ in range(step.phase.steps)]  # one cycle
        self.n_epochs = config.epochs if learns else 1
        self.progress = Progress()
        self.selected: dict[str, Tensor] = {}

    def epochs(self, told: Told = nobody) -> Iterator[dict[str, float]]:
        """Trains, and tells of each epoch when it is done."""
        progress, terms = self.progress, dict[str, float]()
        while progress.epoch < self.n_epochs and progress.waited < self.config.patience:
            started = time.perf_counter()
            self.model.prepare(self.train, progress.epoch)
            terms = self._trained(told, terms)
            progress.epoch += 1
            trained = time.perf_counter()
            record = {
                "epoch": progress.epoch,
                "step": progress.step,
                **terms,
                "train seconds": trained - started,
            }
            yield record | self._validated() | {"validation seconds": time.perf_counter() - trained}

    def _trained(self, told: Told, terms: dict[str, float]) -> dict[str, float]:
        if not self.steps:
            return {}
        self.model.train()
        for done, batch in enumerate(self.rows.epoch(), start=1):
            self._turn()(batch, torch.tensor(float(self.progress.step), device=self.device))
            self.progress.step += 1
            told(done, self.rows.n_steps, terms)
        terms = {name: mean for step in self.steps for name, mean in step.means().items()}
        if bad := [name for name, mean in terms.items() if not math.isfinite(mean)]:
            raise TrainingError(
                f"a finite loss was wanted; {', '.join(bad)} became {terms[bad[0]]} in epoch "
                f"{self.progress.epoch + 1}; a lower fit.lr or fit.clip may help"
            )
        return terms

    def _turn(self) -> Eager:
        """Whose step it is: phases are cycled by the steps done, whatever an epoch's length."""
        place = self.progress.step % len(self.turns)
        turn = self.turns[place]
        comes = self.progress.step == 0 or turn is not self.turns[place - 1]
        if comes and turn.phase.before:
            turn.phase.before()
        return turn

    def _validated(self) -> dict[str, float]:
        """The number to choose by, where there is one and its turn has come; the best weights are kept."""
        progress = self.progress
        last = progress.epoch == self.n_epochs
        if self.validate is None:
            if last:
                self._keep(progress.epoch, math.nan)
            return {}
        if progress.epoch % self.config.validate_every and not last:
            return {}
        value = self.validate(self.averages.selected())  # type: ignore[arg-type]
        if value > progress.best:
            self._keep(progress.epoch, value)
        else:
            progress.waited += 1
        return {"validation": value}

    def _keep(self, epoch: int, value: float) -> None:
        weights = self.averages.selected().state_dict()
        self.selected = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        self.progress.best, self.progress.best_epoch, self.progress.waited = value, epoch, 0

    def state(self) -> dict[str, Tensor]:
        """Every tensor that the next epoch depends on, by name."""
        groups = {
            "weights": dict(self.model.state_dict()),
            "selected": self.selected,
            "averages": self.averages.state(),
            "rows": self.rows.state(),
            "device": {"generator": generator_state(self.device)},
            **{f"step-{k}": step.state() for k, step in enumerate(self.steps)},
        }
        return {
            f"{group}/{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()
        }

    def restore(self, state: dict[str, Tensor], progress: Progress) -> None:
        """Goes on where a saved state was."""
        groups: dict[str, dict[str, Tensor]] = {}
        for key, tensor in state.items():
            group, name = key.split("/", 1)
            groups.setdefault(group, {})[name] = tensor
        self.model.load_state_dict(groups.get("weights", {}))
        self.selected = groups.get("selected", {})
        self.averages.restore(groups.get("averages", {}))
        self.rows.restore(groups["rows"])
        for k, step in enumerate(self.steps):
            step.restore(groups.get(f"step-{k}", {}))
        set_generator_state(self.device, groups["device"]["generator"])
        self.progress = progress


def generator_state(device: torch.device) -> Tensor:
    """Where the device's default generator stands."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_generator_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
