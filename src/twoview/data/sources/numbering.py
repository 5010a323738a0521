"""From a table in a file to a Log: missing ids left out and counted, ids numbered, times understood."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...error import DataError
from ..column import PER_SECOND, UNITS, Ints, microseconds, numbered, per_second
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
    times = parsed(column) if column.dtype == pl.String else column
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("ms"))
    if times.null_count() or not (isinstance(times.dtype, pl.Datetime) or times.dtype.is_numeric()):
        event = int(times.is_null().arg_max() or 0)
        came = "nothing" if column[event] is None else repr(column[event])
        raise DataError(f"{where} wants a number or an ISO date as a time; event {event + 1} has {came}")
    if isinstance(times.dtype, pl.Datetime):
        return times.to_physical().to_numpy(), PER_SECOND[times.dtype.time_unit], "dates"
    numbers = times.to_numpy()
    unit = per_second(numbers)
    return numbers, unit, UNITS[unit]


def parsed(texts: pl.Series) -> pl.Series:
    """Texts as whole numbers, else numbers, else dates, whichever most of them are; null where one is not."""
    readings = []
    for reading in (as_integers, as_floats, as_dates):
        readings.append(reading(texts))
        if readings[-1].null_count() == texts.null_count():
            return readings[-1]
    return min(readings, key=pl.Series.null_count)


def as_integers(texts: pl.Series) -> pl.Series:
    return texts.cast(pl.Int64, strict=False)


def as_floats(texts: pl.Series) -> pl.Series:
    return texts.cast(pl.Float64, strict=False)


def as_dates(texts: pl.Series) -> pl.Series:
    """ISO dates, read at once where they are spelt alike, else one spelling after the other."""
    try:
        dates = texts.str.to_datetime(strict=False, time_unit="us").dt.replace_time_zone(None)
    except pl.exceptions.ComputeError:  # not one of them looks like a date
        return pl.Series([None], dtype=pl.Datetime("us")).new_from_index(0, len(texts))
    if dates.null_count() == texts.null_count():
        return dates
    spellings = texts.filter(dates.is_null()).unique().drop_nulls()
    readings = pl.Series([date_of(text) for text in spellings], dtype=pl.Int64).cast(pl.Datetime("us"))
    return dates.fill_null(texts.replace_strict(spellings, readings, default=None))


def date_of(text: str) -> int | None:
    """Microseconds since 1970 of one ISO date, None when it is none."""
    try:
        return microseconds(text, 0)
    except DataError:
        return None


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
