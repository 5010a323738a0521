"""Public sets by name, from catalogue.toml: looked for on this machine first, else fetched and checked."""

import http.client
import os
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import Any

from ..error import DataError
from .column import near
from .store import whole

SYNTHETIC = "synthetic"
LICENCES = {
    "amazon": "Amazon reviews: research use",
    "grouplens": "GroupLens: research use, no redistribution",
    "ours": "made by twoview, no conditions",
}
UNREACHABLE = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)


@dataclass(frozen=True, kw_only=True)
class Remote:
    """One file at a public address."""

    path: str  # its name in the folder of its set
    address: str
    size: int | None = None  # bytes; None where it is not known
    md5: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One public set: what it is, where it comes from, which of its files is read."""

    name: str
    what: str
    licence: str
    files: tuple[Remote, ...]  # the first is the source, or the archive that holds it
    opens: str = ""  # the source inside the archive
    local: tuple[str, ...] = ()  # ends of paths that are it too; by the first file's name when there is none
    counts: tuple[int, int, int] | None = None  # users, items, events

    @property
    def source(self) -> str:
        return self.opens or self.files[0].path


@cache
def entries() -> Mapping[str, Entry]:
    """The catalogue by name."""
    text = Path(__file__).with_name("catalogue.toml").read_text("utf-8")
    return {name: entry_of(name, facts) for name, facts in tomllib.loads(text).items()}


def entry_of(name: str, facts: dict[str, Any]) -> Entry:
    """One table of the catalogue's file as an entry."""
    counts = facts.get("counts")
    return Entry(
        name=name,
        what=facts["what"],
        licence=LICENCES[facts["licence"]],
        files=tuple(Remote(**file) for file in facts["files"]),
        opens=facts.get("opens", ""),
        local=tuple(facts.get("local", ())),
        counts=tuple(counts) if counts else None,
    )


def names() -> list[str]:
    """All that `prepare` knows by name."""
    return [SYNTHETIC, *entries()]


def describe() -> list[dict[str, Any]]:
    """What there is, ready for json."""
    shop = {
        "name": SYNTHETIC,
        "what": "a small shop made from a rule",
        "licence": LICENCES["ours"],
        "files": [],
    }
    return [shop] + [
        {
            "name": entry.name,
            "what": entry.what,
            "licence": entry.licence,
            "counts": dict(zip(("users", "items", "events"), entry.counts, strict=True))
            if entry.counts
            else None,
            "files": [{"address": file.address, "size": file.size, "md5": file.md5} for file in entry.files],
        }
        for entry in entries().values()
    ]


def find(name: str) -> Path:
    """Where the source of a set lies: below $TWOVIEW_DATA, else in the cache, fetched if it must be."""
    entry = entries().get(name)
    if entry is None:
        known = names()
        there_are = f"{', '.join(known)}{near(name, known)}"
        raise DataError(f"{name!r} is no file, no folder and no set of the catalogue: {there_are}")
    here = found_below(entry)
    if here is not None:
        return here
    kept = cache_folder() / entry.name
    if not (kept / entry.source).is_file():
        with whole(kept, entry.source, force=True) as part:
            fetch(entry, part)
    return kept / entry.source


def cache_folder() -> Path:
    """Where fetched sets are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twoview"


def found_below(entry: Entry) -> Path | None:
    """The set's source below $TWOVIEW_DATA: of its name and, where one is known, of its md5."""
    root = os.environ.get("TWOVIEW_DATA")
    md5 = None if entry.opens else entry.files[0].md5
    for end in entry.local or (entry.source,):
        for path in sorted(Path(root).rglob(Path(end).name)) if root else ():
            fits = path.is_file() and path.parts[-len(Path(end).parts) :] == Path(end).parts
            if fits and (md5 is None or md5_of(path) == md5):
                return path
    return None


def fetch(entry: Entry, folder: Path) -> None:
    """All files of a set, checked, its archive unpacked."""
    for file in entry.files:
        with (
            progress(f"{entry.name}: {file.path}", file.size) as advance,
            (folder / file.path).open("wb") as kept,
        ):
            for chunk in chunks(file, entry):
                kept.write(chunk)
                advance(len(chunk))
        refuse_other(folder / file.path, file)
    if entry.opens:
        archive = folder / entry.files[0].path
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        archive.unlink()


def chunks(file: Remote, entry: Entry) -> Iterator[bytes]:
    """The bytes at an address as they come."""
    try:
        with urllib.request.urlopen(file.address, timeout=30) as answer:
            while chunk := answer.read(1 << 18):
                yield chunk
    except UNREACHABLE as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"{entry.name} is neither below $TWOVIEW_DATA nor in {cache_folder()}, "
            f"and {file.address} could not be reached: {reason}"
        ) from error


def refuse_other(path: Path, file: Remote) -> None:
    """Nothing when what came is what the catalogue knows."""
    size, md5 = path.stat().st_size, md5_of(path)
    if file.size not in (None, size) or file.md5 not in (None, md5):
        came = f"{size} bytes of md5 {md5} came and were dropped"
        raise DataError(f"{file.address} wants {file.size} bytes of md5 {file.md5}; {came}")


def md5_of(path: Path) -> str:
    """The md5 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "md5").hexdigest()


@contextmanager
def progress(what: str, size: int | None) -> Iterator[Callable[[float], None]]:
    """A bar of bytes on a terminal, one plain line elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"fetching {what}", highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=size)
        yield lambda count: bar.advance(task, count)
