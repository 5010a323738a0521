"""What may lie beside a file of events, by item id: titles in two columns, attributes in json."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...error import DataError
from .base import lines_of, one_line

ATTRIBUTES = "_item2attributes.json"


def titles_file(path: Path) -> dict[str, str]:
    """Titles by item id from two columns: after the first tab, comma or blank of a line stands its title."""
    lines = lines_of(path).collect()["line"].to_list()
    if ".csv" in path.suffixes:
        rows = [row for row in csv.reader(lines) if row]
    else:
        tabbed = any("\t" in line for line in lines)
        rows = [line.split("\t" if tabbed else None, 1) for line in lines]
    if not any(len(row) > 1 for row in rows):
        raise DataError(f"{path} wants two columns, an item's id and its title; one came")
    return {row[0].strip(): one_line(row[1]) for row in rows if len(row) > 1}


def attributes_beside(path: Path) -> Path | None:
    """`Beauty_item2attributes.json` for `Beauty.txt`, if it is there."""
    likely = path.with_name(path.name.partition(".")[0] + ATTRIBUTES)
    return likely if likely.is_file() else None


def attributes_file(path: Path) -> Mapping[str, Sequence[str]]:
    """Attributes by item id from `{"item": [attribute, ...], ...}`."""
    try:
        found = json.loads(path.read_text("utf-8"))
        return {str(item): [str(one) for one in list_of(attributes)] for item, attributes in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise DataError(
            f'{path} wants json of the form {{"item": [attribute, ...], ...}}: {error}'
        ) from error


def list_of(attributes: object) -> list[object]:
    """The list itself, or an error."""
    if not isinstance(attributes, list):
        raise TypeError(f"{attributes!r} is no list")
    return attributes
