"""Text parted by tabs, commas, semicolons, bars or blanks, plain, .gz or .zst, with a header or without."""

import csv
from collections.abc import Sequence
from pathlib import Path

from ...error import DataError
from .base import Table, Wanted, delimited, events_of, head_of, is_moment, is_number, names_columns

INSIDE: tuple[str, ...] = tuple(
    f"*.{kind}{packed}" for kind in ("csv", "tsv") for packed in ("", ".gz", ".zst")
)
SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", " ": "blank"}


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether one separator cuts every line into equally many cells, at least two."""
    return separator_of(head) is not None


def read(path: Path, wanted: Wanted) -> Table:
    """Columns named by the user, else by the header, else by their place."""
    head = head_of(path)
    separator = separator_of(head)
    if separator is None:
        known = " or ".join(SEPARATORS.values())
        raise DataError(f"{path.name} wants lines of equally many cells, parted by {known}")
    rows = cells(head, separator)
    headed = has_header(rows, wanted)
    names = None if headed else [str(place + 1) for place in range(len(rows[0]))]
    events = delimited(path, separator, names)
    found = events_of(events, wanted if headed else placed(rows, wanted), path)
    kind = f"{SEPARATORS[separator]}-separated text with{'' if headed else 'out'} header"
    return Table(kind=kind, events=events, roles=found, files=[path])


def cells(head: Sequence[str], separator: str) -> list[list[str]]:
    """The head cut into cells."""
    if separator == "\t":
        return [line.split("\t") for line in head]
    return list(csv.reader(head, delimiter=separator))


def separator_of(head: Sequence[str]) -> str | None:
    """The separator that cuts all lines into equally many cells, the most of them; a blank at last."""
    counts = {separator: {len(row) for row in cells(head, separator)} for separator in SEPARATORS}
    even = {separator: count.pop() for separator, count in counts.items() if len(count) == 1}
    wide = [separator for separator, count in even.items() if count > 1 and separator != " "]
    if wide:
        return max(wide, key=even.__getitem__)
    return " " if even.get(" ", 0) > 1 and is_no_prose(head) else None


def is_no_prose(head: Sequence[str]) -> bool:
    """Whether lines of words are a table: the first names columns, or the rest end in numbers."""
    rows = [line.split(" ") for line in head]
    return names_columns(rows[0]) or (len(rows) > 1 and all(is_number(row[-1]) for row in rows[1:]))


def has_header(rows: Sequence[Sequence[str]], wanted: Wanted) -> bool:
    """Whether the first line names columns: a name the user gave, a name we know, or words above numbers."""
    first = rows[0]
    if any(name in first for name in vars(wanted).values()) or names_columns(first):
        return True
    numeric = [all(is_number(row[place]) for row in rows[1:]) for place in range(len(first))]
    return len(rows) > 1 and any(numeric) and not any(is_number(name) for name in first)


def placed(rows: Sequence[Sequence[str]], wanted: Wanted) -> Wanted:
    """Nameless columns as user, item, rating, time; a third of three is a time if it is large enough."""
    named = {role: name for role, name in vars(wanted).items() if name}
    if "user" in named or "item" in named:
        return wanted
    third = rows[0][2] if len(rows[0]) > 2 else ""
    order = ["user", "item", "rating", "time"]
    if len(rows[0]) == 3 and (not is_number(third) or is_moment(third)):
        order = ["user", "item", "time"]
    found = {role: str(place + 1) for place, role in enumerate(order[: len(rows[0])])}
    return Wanted(**{**found, **named})
