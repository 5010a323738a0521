"""Columns as a file of the kind its name says: parquet, csv, tsv or lines of json."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ...error import DataError

WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
}


def write_table(columns: Mapping[str, Sequence[Any]], path: Path, *, force: bool) -> None:
    """The columns in a file, written beside and renamed."""
    if path.suffix not in WRITERS:
        raise DataError(f"a file ending in {', '.join(WRITERS)} was wanted; {path.name} came")
    if path.exists() and not force:
        raise DataError(f"{path} exists; choose another name or replace it with --force")
    part = path.with_name(f".{path.name}.part")
    try:
        WRITERS[path.suffix](pl.DataFrame(columns), part)
        os.replace(part, path)  # noqa: PTH105
    except OSError as error:
        raise DataError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
