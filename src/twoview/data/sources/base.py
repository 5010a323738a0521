"""What the formats share: a look at a head, the columns a user named, the table that comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from ...error import DataError
from ..column import ALIASES, plain, roles

HEAD = 200  # lines looked at before a format is chosen
EARLIEST = 1e8  # seconds; a smaller number in a nameless column is no time


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The columns a user named; None where the source is to find one."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Events as they lie in a file, one row each, in its order; nothing is numbered or left out yet."""

    kind: str  # how the verdict calls the format
    events: pl.LazyFrame
    roles: Mapping[str, str]  # user, item and perhaps time and rating: the columns that are them
    files: Sequence[Path]  # what makes up the md5 of the source
    titles: Mapping[str, str] = field(default_factory=dict)  # of items, by id
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of items, by id


class Source(Protocol):
    """One format: a module with these names."""

    INSIDE: tuple[str, ...]  # what its files are called in a folder, likeliest first

    def sniff(self, path: Path, head: Sequence[str]) -> bool:
        """Whether the file is of this format, told from its name and first lines."""
        ...

    def read(self, path: Path, wanted: Wanted) -> Table:
        """The file's events."""
        ...


def head_of(path: Path) -> list[str]:
    """The first lines of a text file, plain, .gz or .zst, without their ends; none for a parquet file."""
    if is_parquet(path):
        return []
    return lines_of(path).head(HEAD).collect()["line"].to_list()


def is_parquet(path: Path) -> bool:
    """Whether the file says so, by its name or its first bytes."""
    if path.suffix in (".parquet", ".pq"):
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def lines_of(path: Path) -> pl.LazyFrame:
    """A text file as one column `line`, without line ends, byte-order mark and empty lines."""
    bare = pl.col("line").str.strip_prefix("\ufeff").str.strip_chars_end("\r")
    return pl.scan_lines(path).select(bare).filter(pl.col("line").str.contains(r"\S"))


def delimited(path: Path, separator: str, names: Sequence[str] | None = None) -> pl.LazyFrame:
    """A separated file with every cell as text; its first line is the header unless names are given."""
    cells = pl.scan_csv(
        path,
        separator=separator,
        has_header=names is None,
        new_columns=list(names) if names is not None else None,
        infer_schema=False,
        quote_char=None if separator == "\t" else '"',
    )
    blank = pl.all_horizontal(pl.all().is_null())  # asks for every column: a line too long shows only then
    return cells.filter(~blank)


def events_of(frame: pl.LazyFrame, wanted: Wanted, path: Path) -> dict[str, str]:
    """The roles of a frame's columns, or an error that lists them."""
    return roles(frame.collect_schema().names(), vars(wanted), path.name)


def refuse_named(wanted: Wanted, kind: str) -> None:
    """Nothing unless columns were named for a format that has none."""
    given = ", ".join(f"--{role} {name}" for role, name in vars(wanted).items() if name)
    if given:
        raise DataError(f"{kind} has no columns to name; {given} came")


def one_line(text: str | None) -> str:
    """A title on one line, "" where there is none."""
    return " ".join((text or "").split())


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_moment(cell: str) -> bool:
    """Whether a cell reads as a number that is large enough for a time."""
    return is_number(cell) and float(cell) > EARLIEST


def names_columns(cells: Sequence[str]) -> bool:
    """Whether a line is a header: one of its cells is a name we know."""
    known = {alias for aliases in ALIASES.values() for alias in aliases.split()}
    return any(plain(cell) in known for cell in cells)
