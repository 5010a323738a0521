"""Columns of any kind as numbers: ids by first appearance, times with their unit; the rest is refused."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..error import DataError

Ints = NDArray[np.int64]

ALIASES = {  # spelt without case, blanks, dashes and underscores; the earlier name wins
    "user": "userid user uid queryid customerid reviewerid visitorid accountid clientid sessionid session",
    "item": "itemid item iid parentasin asin movieid productid articleid trackid songid bookid businessid",
    "time": "timestamp time datetime date unixreviewtime ts unixtime eventtime createdat tdat timestampms",
    "rating": "rating ratings stars overall score weight",
}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNITS = {1: "seconds", 10**3: "milliseconds", 10**6: "microseconds", 10**9: "nanoseconds"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def near(name: str, known: Iterable[str]) -> str:
    """A closing question that names the likeliest spelling, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def plain(name: str) -> str:
    """A column's name without case, blanks, dashes, underscores and RecBole's type."""
    return "".join(letter for letter in name.split(":")[0].lower() if letter.isalnum())


def roles(columns: Sequence[str], named: Mapping[str, str | None], where: str) -> dict[str, str]:
    """The columns that are user, item, time, rating: those named, else those called so."""
    called = {plain(name): name for name in reversed(columns)}
    found = {}
    for role, aliases in ALIASES.items():
        name = named.get(role)
        if name is not None and name not in columns:
            raise DataError(
                f"{where} has no column {name!r}; it has {', '.join(columns)}{near(name, columns)}"
            )
        name = name or next((called[alias] for alias in aliases.split() if alias in called), None)
        if name is not None:
            found[role] = name
    for role in ("user", "item"):
        if role not in found:
            raise DataError(f"{where} wants its {role} column named (--{role}); it has {', '.join(columns)}")
    return found


def numbered(values: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[np.int32], list[str]]:
    """Each value's number by first appearance, -1 where it is missing, and the ids: [E] -> [E], [n]"""
    column = np.asarray(values)
    if column.dtype.kind == "f":
        return numbered_floats(column)
    if column.dtype.kind in "iu":
        found, first, codes = np.unique(column, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        return number[codes], [str(value) for value in found[order].tolist()]
    seen: dict[str, int] = {}
    texts = map(text_of, column.tolist() if isinstance(values, np.ndarray) else values)
    numbers = np.fromiter(
        (-1 if t is None else seen.setdefault(t, len(seen)) for t in texts), np.int32, len(column)
    )
    return numbers, list(seen)


def renumbered(
    codes: NDArray[np.int32], ids: Sequence[str], there: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], list[str]]:
    """The numbers of the events that are there, by first appearance among them, and their ids."""
    fewer, kept = numbered(codes[there])
    return fewer, [ids[int(code)] for code in kept]


def numbered_floats(column: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int32], list[str]]:
    """Whole numbers that became floats beside missing values, as the whole numbers they were."""
    there = ~np.isnan(column)
    whole = column[there]
    if np.any(whole != np.floor(whole)) or np.any(np.abs(whole) >= 2**53):
        raise DataError(
            "ids want text or whole numbers below 2^53; fractions or larger floats came: pass them as text"
        )
    codes = np.full(len(column), -1, dtype=np.int32)
    found, ids = numbered(whole.astype(np.int64))
    codes[there] = found
    return codes, ids


def text_of(value: Any) -> str | None:
    """An id as text; None for what is missing: nothing, empty text, NaN, pandas' NA."""
    if isinstance(value, str):
        return value or None
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def clocked(values: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Times as numbers at their full resolution, and how many of them make a second."""
    column = np.asarray(values)
    if column.dtype.kind == "M":
        unit = np.datetime_data(column.dtype)[0]
        if np.isnat(column).any():
            raise bad_time(int(np.isnat(column).argmax()), None)
        column = column if unit in PER_SECOND else column.astype("datetime64[s]")
        return column.astype(np.int64), PER_SECOND.get(unit, 1)
    if column.dtype.kind not in "iuf":
        return read_times(column.tolist())
    return column, per_second(column)


def read_times(values: list[Any]) -> tuple[NDArray[Any], int]:
    """Times from texts and date objects: all whole numbers, else all numbers, else all dates."""
    for number in (whole_number, float):
        with suppress(TypeError, ValueError, OverflowError):
            numbers = np.array(
                [number(value) for value in values], dtype=None if number is float else np.int64
            )
            return numbers, per_second(numbers)
    return np.array([microseconds(value, i) for i, value in enumerate(values)], dtype=np.int64), 10**6


def whole_number(value: Any) -> int:
    """An integer or the text of one; nothing is rounded."""
    return int(value) if isinstance(value, str) else index(value)


def microseconds(value: Any, event: int) -> int:
    """Microseconds since 1970 of a date object or an ISO date; without a zone it is UTC."""
    try:
        moment = value if isinstance(value, date) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise bad_time(event, value) from None
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def per_second(times: NDArray[Any]) -> int:
    """How many of these make a second, told from their size: today is 1.8e9 s, 1.8e12 ms, 1.8e15 us."""
    if not len(times):
        return 1
    if times.dtype.kind == "f" and not np.isfinite(times).all():
        raise bad_time(int((~np.isfinite(times)).argmax()), None)
    size = float(np.median(np.abs(times[:: max(1, len(times) // 100_000)])))
    return next(
        unit for unit, limit in ((1, 1e11), (10**3, 1e14), (10**6, 1e17), (10**9, np.inf)) if size < limit
    )


def bad_time(event: int, value: Any) -> DataError:
    """The error for an event whose time is missing or unreadable."""
    came = "nothing" if value is None else repr(value)
    return DataError(
        f"a time wants a number or an ISO date such as 2024-05-31 08:30:00; event {event + 1} has {came}"
    )


def rated(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Ratings as numbers, NaN where there is none: [E] -> [E]"""
    try:
        return np.array(
            [np.nan if v is None or v == "" else v for v in np.asarray(values).tolist()], np.float64
        )
    except (TypeError, ValueError) as error:
        raise DataError(f"a rating wants to be a number: {error}") from error
