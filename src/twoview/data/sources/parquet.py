"""Parquet: a file, a folder of them, or a glob; scanned lazily, only columns that play a role are read."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from .base import Table, Wanted, events_of, is_parquet

INSIDE: tuple[str, ...] = ("*.parquet", "*.pq")


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether the file's name or first bytes say parquet."""
    return is_parquet(path)


def read(path: Path, wanted: Wanted) -> Table:
    """One file's events."""
    return read_all([path], wanted)


def read_all(paths: Sequence[Path], wanted: Wanted) -> Table:
    """The events of files that share their columns, one file after the other."""
    events = pl.scan_parquet(list(paths), hive_partitioning=False, glob=False)
    kind = "parquet" if len(paths) == 1 else f"parquet in {len(paths)} files"
    return Table(kind=kind, events=events, roles=events_of(events, wanted, paths[0]), files=paths)
