"""Recipes: files of amendments that add up from left to right until nothing is left open.

the defaults  <-  best.toml  <-  office.toml     <-  --set contrast.temperature=.5
dim = 64          dim = 256      rows.max_len=100     right wins; a new kind drops the old one's settings
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from .config import NONE, P, Part, Place, checked, spelt_out, written
from .error import RecipeError

Amendment = dict[str, Any]  # what a toml table holds
HOUSE = ("md5", "start_from", "variant")  # what a recipe says at its top beside the model's settings
COMPLETED = ("paper", "released")  # these look for the variant and the set that belong to the log


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything a run was told, with nothing left open."""

    model: Any  # the model's own Config
    sections: Mapping[str, Part]  # the tables of the house
    start_from: str | None = None  # what is trained first: a run, or a recipe of the same model

    @property
    def rows(self) -> Any:
        """The RowsConfig."""
        return self.sections["rows"]

    @property
    def fit(self) -> Any:
        """The FitConfig."""
        return self.sections["fit"]

    def to_toml(self) -> str:
        """Every setting with its value, as an amendment that resolves to this recipe."""
        tables = {name: written(part) for name, part in self.sections.items()}
        return tomli_w.dumps({"start_from": self.start_from or NONE, **written(self.model), **tables})


class Setting(NamedTuple):
    """One point of a sweep."""

    name: str  # what was swept, "dim=64,lr=.01"; "" where nothing was
    amendment: Amendment


def resolved(form: type[Part], sections: Mapping[str, type[Part]], *given: Amendment) -> Recipe:
    """The recipe that the defaults of a model and of the house become under amendments, right over left."""
    owner = form.__module__.rpartition(".")[2]
    if taken := sorted({*sections, *HOUSE} & set(form.model_fields)):
        raise RecipeError(
            f"a Config of {owner} wants other names than {', '.join(taken)}: those are the recipe's"
        )
    starts = [each["start_from"] for each in given if "start_from" in each]
    if starts and not isinstance(starts[-1], str):
        raise RecipeError(
            f"{owner} wants start_from to be the name of a run or a recipe; {starts[-1]!r} came"
        )
    beside = {name: f"{table}.{name}" for table, part in sections.items() for name in part.model_fields}
    beside |= {name: name for name in ("start_from", *sections)}
    own = [{key: value for key, value in each.items() if key not in (*HOUSE, *sections)} for each in given]
    tables = {
        table: _settled(part, [each[table] for each in given if table in each], Place(owner, (table,)))
        for table, part in sections.items()
    }
    model = _settled(form, own, Place(owner, beside=beside))
    return Recipe(
        model=model, sections=tables, start_from=None if starts[-1:] in ([], [NONE]) else starts[-1]
    )


def _settled(form: type[P], given: Sequence[Any], place: Place) -> P:
    """One table: its defaults, amended and checked."""
    fields = form.model_fields.items()
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in fields
        if not field.is_required()
    }
    settings = spelt_out(form, written(defaults))
    for amendment in given:
        if not isinstance(amendment, dict):
            raise RecipeError(
                f"{place.owner} wants {'.'.join(place.table)} to be a table; {amendment!r} came"
            )
        settings = spelt_out(form, amended(settings, amendment))
    return checked(form, settings, place)


def amended(base: Amendment, amendment: Amendment) -> Amendment:
    """Both merged in depth, right over left; a table whose kind changes keeps nothing else from the left."""
    other_kind = "kind" in base and amendment.get("kind", base["kind"]) != base["kind"]
    kept = {} if other_kind else base
    return {**kept, **{key: _over(kept.get(key), value) for key, value in amendment.items()}}


def _over(left: Any, right: Any) -> Any:
    """What two values of one key become: a word over a table is its kind, over a list it is each one's."""
    names_kind = isinstance(right, str) and right != NONE
    tables = isinstance(left, list | tuple) and len(left) > 0 and all(isinstance(each, dict) for each in left)
    if tables and (isinstance(right, dict) or (names_kind and all("kind" in each for each in left))):
        return [_over(each, right) for each in left]
    if isinstance(left, str) and left != NONE and isinstance(right, dict):
        left = {"kind": left}
    if isinstance(left, dict) and "kind" in left and names_kind:
        right = {"kind": right}
    return amended(left, right) if isinstance(left, dict) and isinstance(right, dict) else right


def amendments(path: Path | None) -> Amendment:
    """What a recipe file says; nothing where there is no file to read."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"a recipe was wanted at {path}; {error.strerror or error}") from None
    except ValueError as error:  # no toml, or not utf-8
        raise RecipeError(f"a recipe in toml was wanted at {path}; {error}") from None


def recipe_names(text: str) -> list[str]:
    """The recipes of a sum, left to right: "paper+ma+beauty"."""
    names = text.split("+")
    if not all(names):
        raise RecipeError(f"recipes are wanted with a + between them, like paper+ma; '{text}' came")
    return names


def recipe_file(folder: Path, model: str, name: str) -> Path | None:
    """Where a model's recipe lies in its folder of recipes; None for a `best` that amends nothing."""
    files = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if name not in files and name != "best":
        raise RecipeError(f"{model} has no recipe '{name}'; it has {', '.join(sorted({'best', *files}))}")
    return files.get(name)


def completed(names: Sequence[str], md5: str, folder: Path) -> tuple[list[str], str]:
    """`paper` or `released` alone with the log's own variant and set added, and a sentence that says so."""
    sets = {path.stem: amendments(path) for path in sorted(folder.glob("*.toml"))}
    sets = {name: said for name, said in sets.items() if "md5" in said}
    if list(names) not in [[name] for name in COMPLETED] or not sets:
        return list(names), ""
    for name, said in sets.items():
        if md5 in said["md5"]:
            variant = [said["variant"]] if "variant" in said else []
            whole = [*names, *variant, name]
            return whole, f"recipe {'+'.join(whole)}: the md5 of the log's source is that of {name}"
    known = ", ".join(f"{name} ({', '.join(said['md5'])})" for name, said in sets.items())
    raise RecipeError(
        f"{names[0]} wants a log whose source is known by its md5; {md5 or 'none'} came; there are {known}"
    )


def settings(given: Sequence[str]) -> list[Setting]:
    """The grid of `key=value` words, a comma sweeps: ["dim=64,128"] -> dim=64, dim=128."""
    axes = [_axis(text) for text in given]
    for i, axis in enumerate(axes):
        if axis[0][0] in [other[0][0] for other in axes[:i]]:
            raise RecipeError(f"--set wants each key once; {axis[0][0]} came twice")
    grid = []
    for point in product(*axes):
        swept = [f"{key}={text}" for (key, text), axis in zip(point, axes, strict=True) if len(axis) > 1]
        whole: Amendment = {}
        for key, text in point:
            whole = amended(whole, _nested(key, _literal(text)))
        grid.append(Setting(",".join(swept).replace("/", "_"), whole))
    return grid


def _axis(text: str) -> list[tuple[str, str]]:
    """One key with each of its values: "dim=64,128" -> (dim, 64), (dim, 128)."""
    key, equals, values = (piece.strip() for piece in text.partition("="))
    if not equals or not all(key.split(".")):
        raise RecipeError(f"--set wants key=value; '{text}' came")
    axis = [(key, value) for value in _split(values)]
    if not all(value for _, value in axis) or len(set(axis)) < len(axis):
        raise RecipeError(f"--set {key} wants different values between commas; '{values}' came")
    return axis


def _nested(key: str, value: Any) -> Amendment:
    for name in reversed(key.split(".")):
        value = {name: value}
    return dict(value)


def _literal(text: str) -> Any:
    """A value as toml reads it, .5 and unquoted words besides."""
    if text[:1] + text[-1:] == "[]":
        return [_literal(piece) for piece in _split(text[1:-1]) if piece]
    if text[:1] + text[-1:] == "{}":
        table: Amendment = {}
        for key, _, value in (piece.partition("=") for piece in _split(text[1:-1]) if piece):
            table = amended(table, _nested(key.strip(), _literal(value.strip())))
        return table
    number = re.sub(r"^([+-]?)\.(?=\d)", r"\g<1>0.", text)
    try:
        value = tomllib.loads(f"value = {number}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _split(text: str) -> list[str]:
    """What lies between the commas that no quote, bracket or brace encloses."""
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and pieces[-1].rstrip()[-1:] in ("", *"[{,="):
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quote:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]
