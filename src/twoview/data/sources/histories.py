"""One history per line, `user item item ...`, oldest first, as S3-Rec keeps them; ids may start at 0."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from .base import Table, Wanted, is_moment, lines_of, refuse_named

INSIDE: tuple[str, ...] = ("*.txt", "*.txt.gz", "*.txt.zst")


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether no user has two lines, and they are not all alike and end in a time."""
    rows = [line.split() for line in head]
    users = {row[0] for row in rows}
    if len({len(row) for row in rows}) == 1 and all(is_moment(row[-1]) for row in rows[1:] or rows):
        return False
    text = ".txt" in path.suffixes and not any(separator in line for line in head for separator in ",;|:")
    return text and len(users) == len(rows) > 0 and max(map(len, rows)) > 2


def read(path: Path, wanted: Wanted) -> Table:
    """Every line as its user's events, in the order they stand there."""
    refuse_named(wanted, "a file of one history per line")
    words = lines_of(path).select(words=pl.col("line").str.extract_all(r"\S+"))
    events = words.select(user=pl.col("words").list.first(), item=pl.col("words").list.slice(1)).explode(
        "item"
    )
    return Table(
        kind="one history per line",
        events=events,
        roles={"user": "user", "item": "item"},
        files=[path],
    )
