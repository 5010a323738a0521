"""One paper per file: a model is a file with one Model and one Config, in this folder or beside the user."""

import ast
import hashlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from ..config import Part
from ..error import RecipeError
from .base import Model

HERE = Path(__file__).parent
RECIPES = HERE.parent / "recipes"


@dataclass(frozen=True)
class ModelFile:
    """A model as it lies on disk."""

    name: str
    path: Path
    form: type[Part]  # its Config
    model: type[Model]

    @property
    def md5(self) -> str:
        return hashlib.md5(self.path.read_bytes(), usedforsecurity=False).hexdigest()

    @property
    def own(self) -> bool:
        """Whether it came with the package."""
        return self.path.parent == HERE

    @property
    def recipes(self) -> Path:
        """The folder of its recipes: in the package, or beside a user's file; it need not exist."""
        return RECIPES / self.name if self.own else self.path.parent / "recipes" / self.name


def names() -> list[str]:
    """The models that come with the package."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in {"__init__", "base"})


def summaries() -> list[dict[str, str]]:
    """Each model's name and its idea in one line, read without importing any."""
    rows = []
    for name in names():
        text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or ""
        found = sorted(path.stem for path in (RECIPES / name).glob("*.toml"))
        idea = text.partition("\n")[0].partition(": ")[2]
        rows.append({"name": name, "idea": idea, "recipes": ", ".join(sorted({"best", *found}))})
    return rows


def model_file(name: str) -> ModelFile:
    """A model by its name in the package, or by the path of a python file."""
    if name.endswith(".py"):
        return _read(Path(name).resolve())
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise RecipeError(f"no model '{name}'; there are {', '.join(names())}, or a file ending in .py{hint}")
    return _found(importlib.import_module(f"{__name__}.{name}"), HERE / f"{name}.py")


def _read(path: Path) -> ModelFile:
    if not path.is_file():
        raise RecipeError(f"a model file was wanted at {path}; there is none")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RecipeError(f"a python file was wanted; {path.name} came")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise RecipeError(
            f"{path.name} cannot be read as python: {type(error).__name__}: {error}{line}"
        ) from error
    return _found(module, path)


def _found(module: ModuleType, path: Path) -> ModelFile:
    own = [
        each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__
    ]
    models = [each for each in own if issubclass(each, Model)]
    form = getattr(module, "Config", None)
    if len(models) != 1 or not (isinstance(form, type) and issubclass(form, Part)):
        came = f"{len(models)} models" + ("" if form else " and no Config")
        raise RecipeError(f"one Model and one Config (a Part) are wanted in {path.name}; {came} came")
    return ModelFile(path.stem, path, form, models[0])
