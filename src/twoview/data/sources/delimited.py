"""Comma-, tab-, semicolon- or bar-separated text, plain, .gz or .zst, with a header or without."""

import csv
from collections.abc import Sequence
from pathlib import Path

from ...error import DataError
from ..column import ALIASES, plain
from .base import Table, Wanted, delimited, events_of, head_of

INSIDE: tuple[str, ...] = tuple(
    f"*.{kind}{packed}" for kind in ("csv", "tsv") for packed in ("", ".gz", ".zst")
)
SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
EARLIEST = 1e8  # seconds; a smaller number in a nameless third column is a rating


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
    """The separator that cuts every line into the same number of cells, the most of them."""
    counts = {separator: {len(row) for row in cells(head, separator)} for separator in SEPARATORS}
    even = {separator: count.pop() for separator, count in counts.items() if len(count) == 1}
    best = max(even, key=even.__getitem__, default=None)
    return best if best is not None and even[best] > 1 else None


def has_header(rows: Sequence[Sequence[str]], wanted: Wanted) -> bool:
    """Whether the first line names columns: a name the user gave, a name we know, or words above numbers."""
    first = rows[0]
    known = {alias for aliases in ALIASES.values() for alias in aliases.split()}
    if any(name in first for name in vars(wanted).values()) or any(plain(name) in known for name in first):
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
    if len(rows[0]) == 3 and (not is_number(third) or float(third) > EARLIEST):
        order = ["user", "item", "time"]
    found = {role: str(place + 1) for place, role in enumerate(order[: len(rows[0])])}
    return Wanted(**{**found, **named})


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
