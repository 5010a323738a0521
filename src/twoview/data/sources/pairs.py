"""`user item` per line, oldest first, no header, as SASRec keeps them: the order of the lines is the time."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from .base import Table, Wanted, lines_of, names_columns, refuse_named

INSIDE: tuple[str, ...] = ("*.txt", "*.txt.gz", "*.txt.zst")


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether every line is two words, the first no names of columns."""
    paired = bool(head) and all(len(line.split()) == 2 for line in head)
    return ".txt" in path.suffixes and paired and not names_columns(head[0].split())


def read(path: Path, wanted: Wanted) -> Table:
    """Every line as one event."""
    refuse_named(wanted, "a file of user item pairs")
    words = lines_of(path).select(words=pl.col("line").str.extract_all(r"\S+"))
    events = words.select(
        user=pl.col("words").list.get(0), item=pl.col("words").list.get(1, null_on_oob=True)
    )
    return Table(kind="user item pairs", events=events, roles={"user": "user", "item": "item"}, files=[path])
