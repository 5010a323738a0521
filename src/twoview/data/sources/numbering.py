"""From a table in a file to a Log: missing ids left out and counted, ids numbered, times understood."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...error import DataError
from ..column import PER_SECOND, UNITS, Ints, numbered, per_second
from ..log import Log
from .base import Table


def log_of(table: Table, min_rating: float | None) -> tuple[Log, str]:
    """The log of a table's events and a line on how it was read; events rated too low are left out."""
    where = table.files[0].name
    frame, notes = kept(table, min_rating)
    if frame.is_empty():
        raise DataError(f"{where} has no events{': ' + notes[0] if notes else ''}")
    users, user_ids = codes_of(frame["user"])
    items, item_ids = codes_of(frame["item"])
    times, unit, said = (None, 1, "") if "time" not in frame.columns else times_of(frame["time"], where)
    titles = [table.titles.get(key, "") for key in item_ids]
    attributes, attribute_ids = attributes_of(item_ids, table.attributes)
    log = Log.from_codes(
        users,
        items,
        times,
        user_ids,
        item_ids,
        per_second=unit,
        titles=titles if any(titles) else None,
        attributes=attributes,
        attribute_ids=attribute_ids,
        source_md5=md5_of(table.files),
        notes=tuple(notes),
    )
    return log, verdict(table, said)


def verdict(table: Table, unit: str) -> str:
    """How the source was read, on one line."""
    placed = all(role == column for role, column in table.roles.items()) and not unit
    named = "" if placed else "; " + " ".join(f"{role}={column}" for role, column in table.roles.items())
    return f"{table.kind}{named}" + (f" ({unit})" if unit else "; no times, the order is the file's")


def kept(table: Table, min_rating: float | None) -> tuple[pl.DataFrame, list[str]]:
    """The columns with a role, without events that lack an id or are rated too low, and notes on these."""
    asked = [role for role in table.roles if role != "rating" or min_rating is not None]
    frame = table.events.select(pl.col(table.roles[role]).alias(role) for role in asked).collect()
    notes = []
    there = frame.filter(*(is_there(frame.schema[role], role) for role in ("user", "item")))
    if len(there) < len(frame):
        notes.append(f"{len(frame) - len(there):,} events without a user or an item were left out")
    if min_rating is not None:
        there, before = rated(there, table, min_rating), len(there)
        notes.append(f"{before - len(there):,} events rated below {min_rating:g} were left out")
    return there, notes


def is_there(kind: pl.DataType, role: str) -> pl.Expr:
    """Where an id is not missing."""
    return (
        pl.col(role).is_not_null() & (pl.col(role) != "") if kind == pl.String else pl.col(role).is_not_null()
    )


def rated(frame: pl.DataFrame, table: Table, min_rating: float) -> pl.DataFrame:
    """The events rated at least so high."""
    if "rating" not in frame.columns:
        has = ", ".join(table.events.collect_schema().names())
        raise DataError(f"--min-rating wants a rating column (--rating); {table.files[0].name} has {has}")
    numbers = frame["rating"].cast(pl.Float64, strict=False)
    if numbers.null_count() > frame["rating"].null_count():
        bad = frame["rating"].filter(numbers.is_null() & frame["rating"].is_not_null())[0]
        raise DataError(f"a rating wants to be a number; {table.files[0].name} has {bad!r}")
    return frame.filter((numbers >= min_rating).fill_null(value=False)).drop("rating")


def codes_of(ids: pl.Series) -> tuple[NDArray[np.int32], list[str]]:
    """Ids by first appearance, without a Python object per event: [E] -> [E], [n]"""
    if ids.dtype.is_numeric() and not ids.dtype.is_decimal():
        return numbered(ids.to_numpy())
    texts = ids.cast(pl.String)
    known = texts.unique(maintain_order=True)
    codes = texts.cast(pl.Enum(known)).to_physical()
    return codes.to_numpy().astype(np.int32), known.to_list()


def times_of(column: pl.Series, where: str) -> tuple[NDArray[Any], int, str]:
    """Times at full resolution, how many make a second, and the name of that unit."""
    if column.dtype == pl.String:
        column = parsed(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("ms"))
    if not (isinstance(column.dtype, pl.Datetime) or column.dtype.is_numeric()) or column.null_count():
        event = 0 if not column.null_count() else int(column.is_null().arg_max() or 0)
        raise DataError(
            f"{where} wants a number or an ISO date as the time of event {event + 1}; it has none"
        )
    if isinstance(column.dtype, pl.Datetime):
        return column.to_physical().to_numpy(), PER_SECOND[column.dtype.time_unit], "dates"
    numbers = column.to_numpy()
    unit = per_second(numbers)
    return numbers, unit, UNITS[unit]


def parsed(texts: pl.Series) -> pl.Series:
    """Texts as whole numbers, else numbers, else dates; null where one is nothing of what the most are."""
    readings = [texts.cast(pl.Int64, strict=False), texts.cast(pl.Float64, strict=False)]
    with suppress(pl.exceptions.ComputeError):  # raised when not one of them looks like a date
        readings.append(texts.str.to_datetime(strict=False, time_unit="us"))
    return min(readings, key=lambda reading: reading.null_count())


def attributes_of(
    item_ids: Sequence[str], known: Mapping[str, Sequence[str]]
) -> tuple[tuple[Ints, NDArray[np.int32]] | None, list[str]]:
    """Each item's attributes as offsets and numbers, and what the numbers stand for, by first appearance."""
    lists = [list(dict.fromkeys(known.get(key, ()))) for key in item_ids]
    if not any(lists):
        return None, []
    numbers: dict[str, int] = {}
    flat = [numbers.setdefault(one, len(numbers)) for attributes in lists for one in attributes]
    offsets = np.concatenate([[0], np.cumsum([len(attributes) for attributes in lists])])
    return (offsets, np.array(flat, dtype=np.int32)), list(numbers)


def md5_of(files: Iterable[Path]) -> str:
    """The md5 of a file; of several, that of their md5s in order."""
    found = []
    for path in files:
        with path.open("rb") as file:
            found.append(hashlib.file_digest(file, "md5").hexdigest())
    return (
        found[0]
        if len(found) == 1
        else hashlib.md5("".join(found).encode(), usedforsecurity=False).hexdigest()
    )
