"""The pieces of a folder on disk, checked: lines, arrays, and a folder that is whole or not there at all."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..error import DataError

FILES = ("offsets.npy", "items.npy", "users.txt", "items.txt", "card.json")  # what every prepared log has
MAPPED = 64 << 20  # arrays larger than this many bytes stay on disk and are read as they are asked for


def refuse_existing(folder: Path, mark: str, *, force: bool) -> None:
    """Nothing when the folder may be written: it is not there, or is ours (has `mark`) and force says so."""
    if not os.path.lexists(folder):
        return
    if not force:
        raise DataError(f"{folder} exists; choose another folder or replace it with --force")
    ours = folder.is_dir() and ((folder / mark).is_file() or not any(folder.iterdir()))
    if not ours:
        raise DataError(f"{folder} is not replaced even with --force: it exists and holds no {mark}")


@contextmanager
def whole(folder: Path, mark: str, *, force: bool) -> Iterator[Path]:
    """An empty folder to fill, renamed to `folder` at the end; if anything fails, what was there stays."""
    refuse_existing(folder, mark, force=force)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        yield part
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
    except BaseException as error:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(
                f"{folder} could not be written: {error.strerror or error}; nothing is left of it"
            ) from error
        raise
    finally:
        with suppress(OSError):
            shutil.rmtree(old)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """A file of one line each, UTF-8, ended by a line feed."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def lines_of(path: Path) -> list[str]:
    """The lines that `write_lines` wrote, and no others: only a line feed ends one."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} wants UTF-8; byte {error.start} is none") from error
    if text and not text.endswith("\n"):
        raise DataError(f"{path} was cut short: its last line has no end")
    return text.split("\n")[:-1]


def array_of(path: Path, kind: type[np.generic]) -> NDArray[Any]:
    """The one-dimensional array in a .npy file, mapped when it is large."""
    try:
        mapped = path.stat().st_size > MAPPED
        found: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path} is no whole array: {' '.join(str(error).split())}") from error
    if found.ndim != 1 or found.dtype != np.dtype(kind):
        raise DataError(
            f"{path} wants one column of {np.dtype(kind)}; it has shape {found.shape} of {found.dtype}"
        )
    return found


def facts_of(folder: Path) -> dict[str, Any]:
    """The data card of a prepared folder, or why it is none."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{folder} is no prepared log: it lacks {', '.join(missing)}; `twoview prepare` makes one"
        )
    try:
        facts: dict[str, Any] = json.loads((folder / "card.json").read_text("utf-8"))
        wanted = {"users", "items", "events", "columns", "source_md5", "notes"} - facts.keys()
    except (ValueError, AttributeError) as error:
        raise DataError(f"{folder / 'card.json'} is no data card: {error}") from error
    if wanted:
        raise DataError(f"{folder / 'card.json'} is no data card: it lacks {', '.join(sorted(wanted))}")
    return facts


def refuse_line_breaks(what: str, texts: Sequence[str]) -> None:
    """Nothing when every text fits on one line of a file."""
    together = "".join(texts)
    if "\n" in together or "\r" in together:
        bad = next(text for text in texts if "\n" in text or "\r" in text)
        raise DataError(f"a {what} wants to be one line; {bad!r} has a line break")


def refuse_twice(what: str, ids: Sequence[str]) -> None:
    """Nothing when every id stands for one thing."""
    if len(set(ids)) < len(ids):
        bad = next(one for one, count in Counter(ids).items() if count > 1)
        raise DataError(f"a {what} wants to stand once; {bad!r} stands twice")
