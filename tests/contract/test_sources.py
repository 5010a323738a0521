"""The laws every source obeys: one small log, written in every format, comes out as the same log."""

import gzip
import hashlib
import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from twoview.data import sources
from twoview.data.log import Log
from twoview.error import DataError

USERS = ("A1RSDE90N6RSZF", "A3IKBHODOTYYHM", "AO94DHGC771SJ")
ITEMS = ("B0000000A1", "B0000000B2", "0123456789", "B0000000D4", "000012345X")
START, DAY = 1_400_000_000, 86_400
VISITS = ((0, (2, 0, 1)), (1, (1, 3)), (2, (0, 2, 4, 2)))
EVENTS = [
    (USERS[user], ITEMS[item], START + DAY * (10 * user + step))
    for user, items in VISITS
    for step, item in enumerate(items)
]
Writer = Callable[[Path], Path]


def text(name: str, row: Callable[[str, str, int], str], header: str = "") -> Writer:
    """A writer of one line per event."""

    def write(folder: Path) -> Path:
        path = folder / name
        lines = [header] * bool(header) + [row(*event) for event in EVENTS]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


def histories(folder: Path) -> Path:
    path = folder / "shop.txt"
    rows = [" ".join([USERS[user], *(ITEMS[item] for item in items)]) for user, items in VISITS]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def parquet(folder: Path) -> Path:
    path = folder / "shop.parquet"
    pl.DataFrame(EVENTS, schema=["user_id", "item_id", "timestamp"], orient="row").write_parquet(path)
    return path


WRITERS: dict[str, dict[str, Writer]] = {
    "parquet": {"file": parquet},
    "recbole": {
        "inter": text(
            "shop.inter",
            lambda u, i, t: f"{u}\t{i}\t5\t{t}",
            "user_id:token\titem_id:token\trating:float\ttimestamp:float",
        )
    },
    "movielens": {
        "dat": text("ratings.dat", lambda u, i, t: f"{u}::{i}::5::{t}"),
        "csv": text("ratings.csv", lambda u, i, t: f"{u},{i},4.5,{t}", "userId,movieId,rating,timestamp"),
        "u.data": text("u.data", lambda u, i, t: f"{u}\t{i}\t5\t{t}"),
    },
    "amazon": {
        "2014": text("ratings_Shop.csv", lambda u, i, t: f"{u},{i},5.0,{t}"),
        "2018": text("Shop.csv", lambda u, i, t: f"{i},{u},5.0,{t}"),
        "2023": text(
            "Shop.csv", lambda u, i, t: f"{u},{i},5.0,{t}123", "user_id,parent_asin,rating,timestamp"
        ),
    },
    "pairs": {"txt": text("shop.txt", lambda u, i, t: f"{u} {i}")},
    "histories": {"txt": histories},
    "delimited": {
        "tsv": text("shop.tsv", lambda u, i, t: f"{u}\t{i}\t{t}", "user_id\titem_id\ttime"),
        "csv": text("shop.csv", lambda u, i, t: f'"{u}",{t},{i},x y', "User ID,date,ItemId,note"),
        "semicolons": text("shop.csv", lambda u, i, t: f"{u};{i};{t}", "user;item;timestamp"),
        "no header": text("shop.csv", lambda u, i, t: f"{u}/,{i}/,{t}"),
    },
}
CASES = [(name, label) for name, writers in WRITERS.items() for label in writers]
TIMELESS = {"pairs", "histories"}
NEVER_PACKED = {"file", "inter", "u.data"}  # parquet packs itself; the others are told by their whole name


def told(log: Log) -> list[tuple[str, str, int | None]]:
    """A log as its events, user by user."""
    times: Sequence[int | None] = [None] * log.n_events if log.times is None else log.times.tolist()
    owners, items = log.owners.tolist(), log.items.tolist()
    rows = zip(owners, items, times, strict=True)
    return [(log.user_ids[u].rstrip("/"), log.item_ids[i].rstrip("/"), t) for u, i, t in rows]


def test_every_module_of_the_folder_is_a_source_with_a_writer_here():
    folder = {found.name for found in pkgutil.iter_modules(sources.__path__)}
    formats = {name for name in folder if hasattr(import_module(f"{sources.__name__}.{name}"), "sniff")}
    assert formats == set(sources.SOURCES) == set(WRITERS)


@pytest.mark.parametrize(("name", "label"), CASES)
def test_a_file_is_recognised_and_its_events_come_out_as_they_went_in(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    log, verdict = sources.read(path)
    assert sources.sniffed(path) is sources.SOURCES[name]
    assert told(log) == [(u, i, None if name in TIMELESS else t) for u, i, t in EVENTS]
    assert verdict and "\n" not in verdict


@pytest.mark.parametrize(("name", "label"), CASES)
def test_a_format_that_is_named_reads_what_sniffing_reads(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    assert sources.read(path, format=name)[0].arrays_md5 == sources.read(path)[0].arrays_md5


@pytest.mark.parametrize(("name", "label"), CASES)
def test_a_folder_with_one_such_file_is_that_file(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    assert sources.read(tmp_path)[0].arrays_md5 == sources.read(path)[0].arrays_md5


@pytest.mark.parametrize(("name", "label"), CASES)
def test_the_source_md5_is_that_of_the_file(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    assert sources.read(path)[0].source_md5 == hashlib.md5(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(("name", "label"), [case for case in CASES if case[1] not in NEVER_PACKED])
@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_packed_text_reads_like_plain_text(name, label, packed, tmp_path):
    path = WRITERS[name][label](tmp_path)
    wanted = told(sources.read(path)[0])
    assert told(sources.read(pack(path, packed))[0]) == wanted


@pytest.mark.parametrize(("name", "label"), CASES)
def test_bytes_that_are_no_utf8_are_refused(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    if name == "parquet":
        broken = path.read_bytes().replace(USERS[0].encode(), b"\xff\xfe" + USERS[0][2:].encode())
        path.write_bytes(broken)
    else:
        path.write_bytes(path.read_bytes().replace(USERS[2].encode(), "Zoë".encode("latin-1")))
    with pytest.raises(DataError):
        sources.read(path, format=name)


@pytest.mark.parametrize(("name", "label"), CASES)
def test_an_empty_file_is_refused(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"empty|cut short"):
        sources.read(path)


@pytest.mark.parametrize(("name", "label"), CASES)
def test_columns_that_are_not_there_are_refused(name, label, tmp_path):
    path = WRITERS[name][label](tmp_path)
    with pytest.raises(DataError, match=r"no column 'usr'|no columns to name"):
        sources.read(path, wanted=sources.Wanted(user="usr"))


def pack(path: Path, packed: str) -> Path:
    """The file beside itself, packed."""
    target = path.with_name(path.name + packed)
    if packed == ".gz":
        target.write_bytes(gzip.compress(path.read_bytes()))
    else:
        lines = path.read_text(encoding="utf-8")
        pl.DataFrame({"line": lines.splitlines()}).write_csv(
            target, include_header=False, quote_style="never", compression="zstd", check_extension=False
        )
    path.unlink()
    return target
