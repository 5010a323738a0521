"""What is to be trained: model, recipe and how it is measured, settled before anything is written."""

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from ..config import Part, Place, checked
from ..data.rows import RowsConfig
from ..error import RecipeError
from ..models import ModelFile, model_file
from ..recipe import Amendment, Recipe, amendments, completed, recipe_file, recipe_names, resolved, settings
from .fit import FitConfig

SELECTED_BY = "ndcg@20"  # of validation
SECTIONS: dict[str, type[Part]] = {"rows": RowsConfig, "fit": FitConfig}


class How(Part):
    """How a model is trained and measured, beside its recipe."""

    recipe: str = "best"
    set: tuple[str, ...] = ()  # key=value, over the recipe
    protocol: Literal["leave-one-out", "temporal", "temporal-first", "all"] = "leave-one-out"
    seen: Literal["removed", "kept"] = "removed"  # what happens to items that a user met before
    seed: int = 0
    seeds: Annotated[int, Field(ge=1)] | None = None  # so many runs, seeds seed, seed + 1, ...
    device: str = "auto"
    epochs: Annotated[int, Field(ge=1)] | None = None  # at most, over the recipe
    state_every: Annotated[float, Field(ge=0)] = 10.0  # seconds between saved states
    memory: bool = False  # whether a co-occurrence memory is put beside the trained model
    force: bool = False  # whether a run that exists is replaced


@dataclass(frozen=True)
class Plan:
    """One run to be."""

    file: ModelFile
    recipe: Recipe
    recipe_name: str
    setting: str  # what was swept, "" where nothing was
    seed: int
    how: How

    def card(self) -> dict[str, Any]:
        """What finds the plan again, beside the recipe."""
        return {
            "model": self.file.name,
            "own_model": self.file.own,
            "model_md5": self.file.md5,
            "recipe": self.recipe_name,
            "setting": self.setting,
            "seed": self.seed,
            "how": self.how.model_dump(mode="json"),
        }


def how(**told: Any) -> How:
    """How from keywords, with a line for each that does not exist."""
    return checked(How, {name: value for name, value in told.items() if value is not None}, Place("training"))


def plans(model: str, source_md5: str, told: How) -> tuple[list[tuple[str, Plan]], str]:
    """Every run asked for with its place below the folder, and what is to be said about the recipe."""
    file = model_file(model)
    names, sentence = completed(recipe_names(told.recipe), source_md5, file.recipes)
    base = [amendments(recipe_file(file.recipes, file.name, name)) for name in names]
    last: Amendment = {} if told.epochs is None else {"fit": {"epochs": told.epochs}}
    seeds = range(told.seed, told.seed + (told.seeds or 1))
    grid = settings(list(told.set))
    found = []
    for setting, seed in itertools.product(grid, seeds):
        recipe = resolved(file.form, SECTIONS, *base, setting.amendment, last)
        below = [setting.name] if setting.name else []
        below += [f"seed-{seed}"] if setting.name or told.seeds else []
        found.append(("/".join(below), Plan(file, recipe, "+".join(names), setting.name, seed, told)))
    return found, sentence


def plan_before(plan: Plan) -> Plan:
    """What is trained first where a recipe starts from another recipe of the same model."""
    names = recipe_names(str(plan.recipe.start_from))
    told = [amendments(recipe_file(plan.file.recipes, plan.file.name, name)) for name in names]
    recipe = resolved(plan.file.form, SECTIONS, *told)
    how = plan.how.model_copy(update={"memory": False})
    return Plan(plan.file, recipe, "+".join(names), "", plan.seed, how)


def planned_again(card: dict[str, Any], recipe: Amendment, model: str | None = None) -> Plan:
    """The plan of a run from its own folder; a user's model file is named again."""
    if not card["own_model"] and model is None:
        name = card["model"]
        raise RecipeError(f"{name} was a file of yours; name it again with --model {name}.py")
    file = model_file(model or card["model"])
    if file.md5 != card["model_md5"] and not file.own:
        raise RecipeError(f"{file.path.name} is not the file that was trained: its md5 is {file.md5[:8]} now")
    told = checked(How, {**card["how"], "set": tuple(card["how"]["set"])}, Place("training"))
    return Plan(
        file, resolved(file.form, SECTIONS, recipe), card["recipe"], card["setting"], card["seed"], told
    )


def device_of(name: str) -> torch.device:
    """A device by name; auto is the first CUDA device, or the CPU."""
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise RecipeError(f"no device '{name}'; there are auto, cpu, cuda") from error
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise RecipeError(f"no device '{name}' here; there is {'cuda, ' * torch.cuda.is_available()}cpu")
    return device
