"""From a source to a prepared log: found, read, filtered only if asked, written whole or not at all."""

from dataclasses import dataclass
from pathlib import Path

from ..error import DataError
from . import catalogue
from .filter import core
from .log import Log
from .store import refuse_existing
from .synthetic import DEFAULT as DIALS
from .synthetic import Dials, shop


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a source is to be read and what of it is kept; nothing is filtered unless asked."""

    format: str | None = None  # None sniffs it
    user: str | None = None  # a column's name, or its number in a file without header
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    attributes: Path | None = None  # *_item2attributes.json; None looks beside the source
    titles: Path | None = None  # two columns, an item's id and its title
    min_count: int = 0  # k of the k-core
    min_rating: float | None = None  # events rated lower are left out
    dials: Dials = DIALS  # of the source `synthetic`
    force: bool = False  # a prepared log that is there is replaced


DEFAULT = Options()


def prepare(source: str | Path, out: str | Path, *, options: Options = DEFAULT) -> tuple[Log, str]:
    """The log that now lies in `out`, and one line on how the source was read."""
    refuse_existing(Path(out), "card.json", force=options.force)
    log, verdict = read(source, options)
    if options.min_count > 1:
        log = core(log, options.min_count)
    log.save(out, force=options.force)
    return log, verdict


def read(source: str | Path, options: Options = DEFAULT) -> tuple[Log, str]:
    """The log of a file, a folder, a glob or a name of the catalogue, and one line on how it was read."""
    if str(source) == catalogue.SYNTHETIC:
        refuse_columns(options)
        return shop(options.dials), f"a synthetic shop; {options.dials}"
    from . import sources  # polars is needed only to read files

    wanted = sources.Wanted(user=options.user, item=options.item, time=options.time, rating=options.rating)
    return sources.read(
        place_of(source),
        format=options.format,
        wanted=wanted,
        min_rating=options.min_rating,
        titles=options.titles,
        attributes=options.attributes,
    )


def place_of(source: str | Path) -> Path:
    """The path itself if there is something, else where the catalogue's set of that name lies."""
    path = Path(source).expanduser()
    if path.exists() or path.name != str(source) or any(letter in path.name for letter in "*?[."):
        return path
    return catalogue.find(str(source))


def refuse_columns(options: Options) -> None:
    """Nothing unless options for files are given for the synthetic shop, which has none."""
    given = [
        name
        for name in ("format", "user", "item", "time", "rating", "attributes", "titles", "min_rating")
        if getattr(options, name) is not None
    ]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise DataError(f"the synthetic shop is read from no file; {flags} came, only --min-count applies")
