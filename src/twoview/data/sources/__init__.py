"""Formats that events come in, one module each; a file's is told from its name and first lines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from ...error import DataError
from ..column import near
from ..log import Log
from . import amazon, delimited, histories, movielens, pairs, parquet, recbole
from .base import Source, Table, Wanted, head_of
from .beside import attributes_beside, attributes_file, titles_file
from .numbering import log_of

SOURCES: dict[str, Source] = {  # in the order they are asked
    "parquet": parquet,
    "recbole": recbole,
    "movielens": movielens,
    "amazon": amazon,
    "pairs": pairs,
    "histories": histories,
    "delimited": delimited,
}
ALSO_CALLED = {"csv": "delimited", "tsv": "delimited", "txt": "histories"}

__all__ = ["SOURCES", "Wanted", "read"]


def read(
    place: Path,
    *,
    format: str | None = None,
    wanted: Wanted | None = None,
    min_rating: float | None = None,
    titles: Path | None = None,
    attributes: Path | None = None,
) -> tuple[Log, str]:
    """The log in a file, a folder or a glob, and one line on how it was read."""
    paths, source = opened(place, format)
    with readable(paths[0]):
        table = table_of(paths, source, wanted or Wanted())
        beside = attributes or attributes_beside(paths[0])
    if beside is not None:
        with readable(beside):
            table = replace(table, attributes=attributes_file(beside))
    if titles is not None:
        with readable(titles):
            table = replace(table, titles=titles_file(titles))
    with readable(paths[0]):
        return log_of(table, min_rating)


def table_of(paths: Sequence[Path], source: Source, wanted: Wanted) -> Table:
    """The events of one file, or of several parquet files together."""
    return source.read(paths[0], wanted) if len(paths) == 1 else parquet.read_all(paths, wanted)


def opened(place: Path, format: str | None) -> tuple[list[Path], Source]:
    """The files a place stands for and the format they are in."""
    if format is not None and ALSO_CALLED.get(format, format) not in SOURCES:
        known = [*SOURCES, *ALSO_CALLED]
        raise DataError(f"no format {format!r}; there are {', '.join(known)}{near(format, known)}")
    paths = files_of(place)
    source = SOURCES[ALSO_CALLED.get(format, format)] if format else sniffed(paths[0])
    if len(paths) > 1 and source is not SOURCES["parquet"]:
        raise DataError(f"{place} is {len(paths)} files that could be the source; name one of {names(paths)}")
    return paths, source


def files_of(place: Path) -> list[Path]:
    """The file itself; the likeliest of a folder; what a glob matches."""
    if place.is_dir():
        return inside(place)
    if place.exists():
        return [place]
    if any(letter in str(place) for letter in "*?["):
        found = sorted(path for path in place.parent.glob(place.name) if path.is_file())
        if found:
            return found
        raise DataError(f"no file matches {place}")
    raise DataError(f"there is no file or folder {place}")


def inside(folder: Path) -> list[Path]:
    """The files of a folder that the first format to know them would read."""
    if (folder / "offsets.npy").is_file():
        raise DataError(f"{folder} is a prepared log already: give it to train")
    patterns = [pattern for source in SOURCES.values() for pattern in source.INSIDE]
    for pattern in patterns:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if found:
            return found
    raise DataError(
        f"{folder} holds no file of a format known here; it holds {names(sorted(folder.iterdir()))}"
    )


def names(paths: Sequence[Path]) -> str:
    """The first few names."""
    shown = [path.name for path in paths[:6]]
    return ", ".join([*shown, "..."] if len(paths) > len(shown) else shown) or "nothing"


def sniffed(path: Path) -> Source:
    """The first format that takes the file for one of its own."""
    with readable(path):
        head = head_of(path)
        source = next((source for source in SOURCES.values() if source.sniff(path, head)), None)
        if source is None and not head:
            raise DataError(f"{path} is empty")
        if source is None:
            raise DataError(
                f"{path} is in no format known here; name one with --format: {', '.join(SOURCES)}"
            )
        return source


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What goes wrong while reading, as one line about the file."""
    try:
        yield
    except pl.exceptions.NoDataError as error:
        raise DataError(f"{path} is empty") from error
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as error:
        said = str(error).strip().split("\n")[0]
        lower = said.lower()
        if "utf-8" in lower or "utf8" in lower:
            raise DataError(f"{path} wants UTF-8 text; it holds bytes that are none") from error
        if any(
            sign in lower for sign in ("unexpected end", "incomplete frame", "must end with par1", "12 bytes")
        ):
            raise DataError(f"{path} was cut short: {said}") from error
        raise DataError(f"{path} could not be read: {said}") from error
