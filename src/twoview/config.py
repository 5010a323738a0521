"""What a thing can be told: typed, frozen settings, refused by name where they do not exist.

toml                     settings                          part
contrast = "flat_nce"    {"contrast": {"kind": ...}}       Config(contrast=FlatNce(temperature=0.5))
dropout = "none"         {"dropout": None}                 Config(dropout=None)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from .error import RecipeError

NONE = "none"  # how toml spells None

P = TypeVar("P", bound="Part")


class Part(BaseModel):
    """Frozen settings of one thing, beside it; misspelt keys and wrong types are refused.

    A field that takes one of several parts is `Annotated[A | B, Field(discriminator="kind")]`, and each
    of them has its own `kind: Literal["a"] = "a"`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass(frozen=True)
class Place:
    """Whose settings they are and where in a recipe they stand, for errors."""

    owner: str  # the model's name
    table: tuple[str, ...] = ()  # () is the model's own
    beside: Mapping[str, str] = field(default_factory=dict)  # names found elsewhere in the recipe, dotted


def checked(form: type[P], settings: Mapping[str, Any], place: Place) -> P:
    """The part that settings make, or one line that says what was wanted, what came and what exists."""
    try:
        return form.model_validate(spelt_out(form, settings))
    except ValidationError as refusal:
        raise RecipeError(_line(form, refusal.errors(include_url=False), place)) from None


def written(value: Any) -> Any:
    """A setting as toml holds it: a part is a table, None is "none"."""
    if isinstance(value, Part):
        names = [*type(value).model_fields, *(value.model_extra or {})]
        return {name: written(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [written(each) for each in value]
    return NONE if value is None else value


def spelt_out(annotation: Any, value: Any) -> Any:
    """A setting in full: a word for a part is its kind, "none" is None, a lone part fills a list."""
    choices = list(_choices(annotation))
    if value == NONE and NoneType in choices and NONE not in _kinds(annotation):
        return None
    parts = _parts(annotation)
    if isinstance(value, str) and str not in choices and any("kind" in part.model_fields for part in parts):
        value = {"kind": value}
    if isinstance(value, Mapping) and parts:
        part = _part_of_kind(parts, value.get("kind"))
        known = part.model_fields if part else {}
        return {key: spelt_out(known[key].annotation, v) if key in known else v for key, v in value.items()}
    for choice in choices:
        if get_origin(choice) in (list, tuple):
            return _each_spelt_out(choice, value)
    return value


def _each_spelt_out(sequence: Any, value: Any) -> Any:
    """The same for `list[X]`, `tuple[X, ...]` and `tuple[X, Y]`; a lone part stands for each place."""
    fixed = get_origin(sequence) is tuple and Ellipsis not in get_args(sequence)
    if isinstance(value, str | Mapping) and _parts(_element(sequence, 0)):
        value = [value] * (len(get_args(sequence)) if fixed else 1)
    if not isinstance(value, list | tuple):
        return value
    return get_origin(sequence)(spelt_out(_element(sequence, i), each) for i, each in enumerate(value))


def _choices(annotation: Any) -> Iterator[Any]:
    """The types that a field may take, without the alias, optional, union and annotated around them."""
    annotation = getattr(annotation, "__value__", annotation)
    if get_origin(annotation) is Annotated:
        yield from _choices(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _choices(each)
    else:
        yield annotation


def _parts(annotation: Any) -> list[type[Part]]:
    return [each for each in _choices(annotation) if isinstance(each, type) and issubclass(each, Part)]


def _kinds(annotation: Any) -> list[str]:
    """The kinds of the parts that a field may take."""
    kinds = [part.model_fields["kind"] for part in _parts(annotation) if "kind" in part.model_fields]
    return sorted(str(name) for kind in kinds for name in get_args(kind.annotation))


def _part_of_kind(parts: Sequence[type[Part]], kind: Any) -> type[Part] | None:
    return parts[0] if len(parts) == 1 else next((part for part in parts if kind in _kinds(part)), None)


def _element(annotation: Any, place: int) -> Any:
    """The type of one place of a list or tuple."""
    for choice in _choices(annotation):
        kinds = get_args(choice)
        if get_origin(choice) in (list, tuple) and kinds:
            return kinds[place] if place < len(kinds) and Ellipsis not in kinds else kinds[0]
    return Any


@dataclass(frozen=True)
class _Spot:
    """What a complaint is about: its keys, the part that holds them, the type that was wanted there."""

    keys: tuple[str, ...]
    holder: type[Part]
    kind: str  # of the holder, "" where it has none
    wanted: Any


def _spot(form: type[Part], steps: Sequence[int | str]) -> _Spot:
    """Follows pydantic's steps, in which the kind of a part looks like a key, through the types."""
    spot = _Spot((), form, "", form)
    for step in steps:
        parts = _parts(spot.wanted)
        if isinstance(step, int):
            spot = _Spot((*spot.keys, str(step)), spot.holder, spot.kind, _element(spot.wanted, step))
        elif len(parts) > 1 and (part := _part_of_kind(parts, step)):
            spot = _Spot(spot.keys, part, step, part)
        elif len(parts) == 1:
            kind = spot.kind if spot.holder is parts[0] else "".join(_kinds(parts[0]))
            known = parts[0].model_fields.get(step)
            spot = _Spot((*spot.keys, step), parts[0], kind, known.annotation if known else Any)
    return spot


def _line(form: type[Part], complaints: Sequence[ErrorDetails], place: Place) -> str:
    """The first complaint as one line."""
    first = complaints[0]
    spot = _spot(form, first["loc"])
    dotted = ".".join((*place.table, *spot.keys))
    if first["type"] == "extra_forbidden":
        return _unknown(spot, place)
    if first["type"] == "union_tag_invalid":
        tag, kinds = str(first["ctx"]["tag"]), _kinds(spot.wanted)
        return f"{place.owner} has no {dotted} '{tag}'; there are {', '.join(kinds)}{_hint(tag, kinds)}"
    if first["type"] == "union_tag_not_found":
        return f"{place.owner} wants {dotted}.kind; there are {', '.join(_kinds(spot.wanted))}"
    if first["type"] == "missing":
        return f"{place.owner} wants {dotted}; nothing came"
    if first["type"] in ("value_error", "assertion_error"):
        return f"{place.owner}: {dotted and dotted + ': '}{first['msg'].partition(', ')[2]}"
    rivals = [each["msg"] for each in complaints if _spot(form, each["loc"]).keys == spot.keys]
    wanted = " or ".join(message.removeprefix("Input should be ") for message in rivals)
    wanted = "a table" if first["type"].startswith("model_") else wanted
    return f"{place.owner} wants {dotted} to be {wanted}; {written(first['input'])!r} came"


def _unknown(spot: _Spot, place: Place) -> str:
    """A key that does not exist, and those that do."""
    *above, key = (*place.table, *spot.keys)
    here = ".".join(above)
    known = {name: ".".join((*above, name)) for name in spot.holder.model_fields}
    elsewhere = {} if spot.keys[1:] else {name: at for name, at in place.beside.items() if name not in known}
    listed = [*known, *(name for name, at in elsewhere.items() if name == at)]
    whole = f"{here} ({spot.kind})" if spot.kind else here or "it"
    hint = _hint(key, {**elsewhere, **known})
    return f"{place.owner} has no '{'.'.join((*above, key))}'; {whole} has {', '.join(listed)}{hint}"


def _hint(word: str, known: Sequence[str] | Mapping[str, str]) -> str:
    """What the word may have been meant to be, in brackets."""
    near = get_close_matches(word, list(known), n=1)
    if not near:
        return ""
    return f" (did you mean {known[near[0]] if isinstance(known, Mapping) else near[0]}?)"
