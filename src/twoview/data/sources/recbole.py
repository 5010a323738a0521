"""RecBole's atomic files: tabs, a header of `field:type`, titles and attributes in `.item` beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from .base import Table, Wanted, delimited, events_of, one_line

INSIDE: tuple[str, ...] = ("*.inter",)
TYPES = {"token", "token_seq", "float", "float_seq"}


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether every name of the header carries one of RecBole's types."""
    names = head[0].split("\t") if head else []
    return bool(names) and all(name.rpartition(":")[2] in TYPES for name in names)


def read(path: Path, wanted: Wanted) -> Table:
    """The interactions, with what the `.item` file of the same name says about items."""
    events = delimited(path, "\t")
    bare = {name.partition(":")[0]: name for name in events.collect_schema().names()}
    typed = Wanted(**{role: bare.get(name, name) for role, name in vars(wanted).items() if name})
    found = events_of(events, typed, path)
    beside = path.with_suffix(".item")
    items = delimited(beside, "\t").collect() if beside.is_file() else pl.DataFrame({"item_id": []})
    return Table(
        kind="RecBole atomic files",
        events=events,
        roles=found,
        files=[path],
        titles=titles_of(items),
        attributes=attributes_of(items),
    )


def title_column(items: pl.DataFrame) -> str | None:
    """The column of readable names, if there is one."""
    likely = [name for name in items.columns[1:] if any(word in name.lower() for word in ("title", "name"))]
    return likely[0] if likely else None


def titles_of(items: pl.DataFrame) -> Mapping[str, str]:
    """A title by item id."""
    column = title_column(items)
    if column is None:
        return {}
    return {key: one_line(title) for key, title in zip(items[:, 0], items[column], strict=True) if key}


def attributes_of(items: pl.DataFrame) -> Mapping[str, Sequence[str]]:
    """Every token of an item as `field=token`."""
    title = title_column(items)
    fields = [n for n in items.columns[1:] if n != title and n.rpartition(":")[2] in ("token", "token_seq")]
    found: dict[str, list[str]] = {key: [] for key in items[:, 0] if key}
    for name in fields:
        field, _, kind = name.rpartition(":")
        for key, cell in zip(items[:, 0], items[name], strict=True):
            tokens = [] if cell is None else cell.split(" ") if kind == "token_seq" else [cell]
            found[key] += [f"{field}={one_line(token)}" for token in tokens if token]
    return found if fields else {}
