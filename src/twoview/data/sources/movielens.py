"""MovieLens as it is shipped: ratings.dat, ratings.csv or u.data, with the file of movies beside them."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from .base import Table, Wanted, delimited, events_of, lines_of, one_line

INSIDE: tuple[str, ...] = ("ratings.dat", "u.data", "ratings.csv")
COLUMNS = ["user", "item", "rating", "time"]
GENRES = [
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
]


def sniff(path: Path, head: Sequence[str]) -> bool:
    """Whether cells are parted by `::`, or the name and header are MovieLens's own."""
    first = head[0] if head else ""
    return first.count("::") == 3 or first.startswith("userId,movieId,rating") or path.name == "u.data"


def read(path: Path, wanted: Wanted) -> Table:
    """The ratings, with titles and genres from the file of movies beside them."""
    events = rows_of(path)
    found = events_of(events, wanted, path)
    movies = {row[0]: row for row in movies_beside(path) if len(row) > 2}
    return Table(
        kind=f"MovieLens {path.name}",
        events=events,
        roles=found,
        files=[path],
        titles={key: one_line(row[1]) for key, row in movies.items()},
        attributes={key: genres_of(row) for key, row in movies.items()},
    )


def rows_of(path: Path) -> pl.LazyFrame:
    """The ratings' columns, by the header or by GroupLens's order."""
    if path.name == "u.data":
        return delimited(path, "\t", COLUMNS)
    if ".csv" in path.suffixes:
        return delimited(path, ",")
    cells = pl.col("line").str.split_exact("::", len(COLUMNS) - 1).struct.rename_fields(COLUMNS)
    return lines_of(path).select(cells).unnest("line")


def movies_beside(path: Path) -> Iterator[Sequence[str]]:
    """Rows of id, title, ... from the file of movies in the same folder; none without one."""
    folder = path.parent
    if path.name == "u.data" and (folder / "u.item").is_file():
        yield from cut((folder / "u.item").read_text("latin-1"), "|")
    elif path.suffix == ".dat" and (folder / "movies.dat").is_file():
        yield from cut((folder / "movies.dat").read_text("latin-1"), "::")
    elif ".csv" in path.suffixes and (folder / "movies.csv").is_file():
        with (folder / "movies.csv").open(encoding="utf-8", newline="") as file:
            yield from csv.reader(file)


def cut(text: str, separator: str) -> Iterable[Sequence[str]]:
    """Lines as cells."""
    return (line.split(separator) for line in text.split("\n") if line)


def genres_of(row: Sequence[str]) -> Sequence[str]:
    """The genres of a movie, written out, or as flags in the last columns of u.item."""
    if len(row) >= 5 + len(GENRES):
        return [genre for genre, flag in zip(GENRES, row[-len(GENRES) :], strict=True) if flag.strip() == "1"]
    return [genre for genre in row[-1].strip().split("|") if not genre.startswith("(")]
