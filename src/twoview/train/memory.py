"""The memory beside a trained model: training events alone count, validation weighs, test is asked once."""

import time
from collections.abc import Callable
from typing import Any

import torch

from ..config import Place, checked, written
from ..data.column import Ints
from ..data.log import Log
from ..data.split import Cases, Split
from ..evaluate.metrics import per_user
from ..evaluate.mixture import Remembering, chosen, fitted_temperature
from ..evaluate.ranks import Questions, cases_table, ranks
from ..models import model_file
from ..models.base import Facts, Model
from ..recipe import Amendment, amendments, recipe_file, resolved
from ..types import Recommender
from .folder import MEMORY, Folder
from .plan import SECTIONS, SELECTED_BY

COUNTS = "item_knn"  # the model that counts, by its recipe `memory` and one of these
SETTINGS: tuple[Amendment, ...] = tuple(
    {"backward": backward, "decay": decay} for backward in (0.3, 0.6) for decay in (0.6, 0.75, 0.9)
)  # how much the order of a pair means, and how far back a history asks: what differs most between data sets
COARSE = (0.2, 0.5, 1.0)  # weights at which settings are compared

Ask = Callable[[Cases], Questions]


def remembered(folder: Folder, model: Recommender, parts: Split, ask: Ask) -> dict[str, Any]:
    """A memory beside a model, written and measured; what the card says of it."""
    started = time.perf_counter()
    questions, worth = ask(parts.valid), worth_of(parts)
    temperature = fitted_temperature(model, questions)
    made = [counted(parts.train, settings, questions.device) for settings in SETTINGS]
    memories = [memory for memory, _ in made]
    best, _ = chosen(model, memories, questions, worth, weights=COARSE, temperature=temperature)
    memory, settings = made[best]
    _, weight = chosen(model, [memory], questions, worth, temperature=temperature)
    folder.write_tensors(MEMORY, memory.state_dict())
    remembering = Remembering(model, memory, weight, temperature=temperature)
    for name, cases in parts.held.items():
        folder.write_array(f"ranks_memory_{name}.npy", ranks(remembering, ask(cases)))
    seconds = time.perf_counter() - started
    return {"weight": weight, "temperature": temperature, "settings": settings, "seconds": seconds}


def counted(train: Log, settings: Amendment, device: torch.device) -> tuple[Model, dict[str, Any]]:
    """What stood near what in the training events, and all settings it was counted with."""
    file = model_file(COUNTS)
    recipe = amendments(recipe_file(file.recipes, COUNTS, "memory"))
    config = resolved(file.form, SECTIONS, recipe, settings).model
    memory = file.model(config, Facts.of(train, config.window))
    memory.prepare(train, 0)
    return memory.to(device).eval(), written(config)


def worth_of(parts: Split) -> Callable[[Ints], float]:
    """What validation ranks are worth, by the metric that chooses everything."""
    table = cases_table(parts.valid, parts.train)
    return lambda found: float(per_user(found, table, SELECTED_BY).mean())


def reopened(folder: Folder, facts: Facts) -> Model:
    """The memory that a run keeps, as it was counted."""
    file = model_file(COUNTS)
    settings = folder.card()["memory"]["settings"]
    memory = file.model(checked(file.form, settings, Place(COUNTS)), facts)
    memory.load_state_dict(folder.tensors(MEMORY)[0])
    return memory.eval()
