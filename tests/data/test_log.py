"""A log holds what came in, sorted stably, and comes back from disk as it was, or not at all."""

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.data import store
from twoview.data.log import Log
from twoview.error import DataError

EVENTS = st.lists(st.tuples(st.sampled_from("bca"), st.sampled_from("zxy"), st.integers(0, 3)), max_size=12)


def small(**known) -> Log:
    return Log.from_columns(["b", "a", "b", "a"], ["x", "y", "x", "z"], [4, 2, 3, 2], **known)


def told(log: Log) -> list[tuple[str, str]]:
    pairs = zip(log.owners.tolist(), log.items.tolist(), strict=True)
    return [(log.user_ids[u], log.item_ids[i]) for u, i in pairs]


@settings(deadline=None)
@given(EVENTS)
def test_events_are_grouped_by_user_and_sorted_by_time_and_ties_keep_the_order_of_the_file(events):
    users, items, times = ([event[k] for event in events] for k in range(3))
    log = Log.from_columns(users, items, times)
    seen = list(dict.fromkeys(users))
    wanted = sorted(events, key=lambda event: (seen.index(event[0]), event[2]))
    assert told(log) == [event[:2] for event in wanted]
    assert log.times is not None and log.times.tolist() == [event[2] for event in wanted]
    assert list(log.user_ids) == seen and list(log.item_ids) == list(dict.fromkeys(items))


@settings(deadline=None)
@given(EVENTS)
def test_without_times_the_order_is_the_file_s(events):
    log = Log.from_columns([e[0] for e in events], [e[1] for e in events])
    seen = list(dict.fromkeys(e[0] for e in events))
    assert log.times is None
    assert told(log) == [e[:2] for e in sorted(events, key=lambda event: seen.index(event[0]))]


def test_order_is_decided_at_full_resolution_before_times_become_seconds():
    log = Log.from_columns(
        ["u", "u", "u"], ["late", "early", "mid"], [1.9e12 + 900, 1.9e12 + 100, 1.9e12 + 500]
    )
    assert told(log) == [("u", "early"), ("u", "mid"), ("u", "late")]
    assert log.times is not None and log.times.tolist() == [1_900_000_000] * 3


@pytest.mark.parametrize(
    "times",
    [
        [1_401_525_000, 1_401_525_001],
        ["1401525000", "1401525001"],
        ["1401525000.0", "1401525001.9"],
        [1_401_525_000_000, 1_401_525_001_000],
        [1_401_525_000_000_000, 1_401_525_001_000_000],
        [1_401_525_000_000_000_000, 1_401_525_001_000_000_000],
        ["2014-05-31 08:30:00", "2014-05-31T10:30:01+02:00"],
        [datetime(2014, 5, 31, 8, 30), datetime(2014, 5, 31, 8, 30, 1, tzinfo=UTC)],
        np.array(["2014-05-31T08:30:00", "2014-05-31T08:30:01"], dtype="datetime64[ns]"),
        np.array(["2014-05-31T08:30:00", "2014-05-31T08:30:01"], dtype="datetime64[s]"),
    ],
)
def test_every_spelling_of_a_time_is_the_same_second(times):
    log = Log.from_columns(["u", "u"], ["x", "y"], times)
    assert log.times is not None and log.times.tolist() == [1_401_525_000, 1_401_525_001]


def test_a_day_is_its_midnight():
    log = Log.from_columns(["u"], ["x"], [date(2014, 5, 31)])
    days = Log.from_columns(["u"], ["x"], np.array(["2014-05-31"], dtype="datetime64[D]"))
    assert log.times is not None and days.times is not None
    assert log.times.tolist() == days.times.tolist() == [1_401_494_400]


@pytest.mark.parametrize(
    "times",
    [
        ["soon", "2014-05-31"],
        [None, 3],
        [float("nan"), 1.0],
        np.array(["NaT", "2014"], dtype="datetime64[s]"),
    ],
)
def test_what_is_no_time_is_refused_with_its_place(times):
    with pytest.raises(DataError, match=r"number or an ISO date.*event 1 has"):
        Log.from_columns(["u", "u"], ["x", "y"], times)


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([1, 2, 1], ["1", "2"]),
        (np.array([1.0, 2.0, 1.0]), ["1", "2"]),
        (["1.0", "01", "1.0"], ["1.0", "01"]),
        ([b"a", "é", b"a"], ["a", "é"]),
        (np.array([2**62, -5, 2**62]), [str(2**62), "-5"]),
    ],
)
def test_ids_stay_what_they_were(ids, wanted):
    assert list(Log.from_columns(ids, ["x", "y", "z"]).user_ids) == wanted


@pytest.mark.parametrize("ids", [np.array([1.5, 2.0]), np.array([2.0**53, 1.0])])
def test_floats_that_cannot_be_told_apart_as_ids_are_refused(ids):
    with pytest.raises(DataError, match="pass them as text"):
        Log.from_columns(ids, ["x", "y"])


def test_events_without_an_id_are_left_out_and_counted():
    log = Log.from_columns(["a", None, "b", ""], ["x", "y", float("nan"), "z"], [4, 3, 2, 1])
    assert told(log) == [("a", "x")]
    assert log.user_ids == ["a"] and log.item_ids == ["x"]
    assert log.notes == ("3 events without a user or an item were left out",)


def test_what_pandas_calls_missing_is_missing():
    class NAType:
        def __eq__(self, other):
            raise TypeError("boolean value of NA is ambiguous")

        __ne__ = __eq__
        __hash__ = None

    log = Log.from_columns(np.array(["a", NAType()], dtype=object), ["x", "y"])
    assert told(log) == [("a", "x")]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="one length; 2, 1, 3 came"):
        Log.from_columns(["a", "b"], ["x"], [1, 2, 3])


def test_codes_outside_their_ids_are_refused():
    codes = np.array([0, 1])
    with pytest.raises(DataError, match="user numbers 0 to 0"):
        Log.from_codes(codes, codes, None, ["a"], ["x", "y"])
    with pytest.raises(DataError, match="item numbers 0 to 0"):
        Log.from_codes(codes, codes, None, ["a", "b"], ["x"])


@pytest.mark.parametrize("bad", ["a\nb", "a\rb"])
@pytest.mark.parametrize("what", ["user_ids", "item_ids", "titles"])
def test_an_id_or_title_with_a_line_break_is_refused(bad, what):
    known = {"user_ids": ["u"], "item_ids": ["x"], "titles": ["X"], what: [bad]}
    with pytest.raises(DataError, match="line break"):
        Log(offsets=np.array([0, 1]), items=np.zeros(1, np.int32), times=None, **known)


def test_a_log_that_contradicts_itself_is_refused():
    parts = {
        "offsets": np.array([0, 2]),
        "items": np.zeros(2, np.int32),
        "user_ids": ["u"],
        "item_ids": ["x"],
    }
    for wrong, said in (
        ({"offsets": np.array([0, 1])}, "offsets"),
        ({"offsets": np.array([0, 3, 2]), "user_ids": ["u", "v"]}, "offsets"),
        ({"times": np.array([2, 1])}, "do not decrease"),
        ({"times": np.array([1])}, "a time for each"),
        ({"item_ids": ["x", "y", "x"]}, "'x' stands twice"),
        ({"titles": ["X", "Y"]}, "a title for each"),
        ({"attributes": (np.array([0, 1]), np.array([], np.int32))}, "attribute offsets"),
    ):
        with pytest.raises(DataError, match=said):
            Log(**{"times": None, **parts, **wrong})


def test_any_frame_will_do():
    columns = {
        "userId": [7, 7, 8],
        "Item ID": ["x", "y", "x"],
        "timestamp": [3, 1, 2],
        "rating": [5.0, 1.0, None],
    }
    frame = pl.DataFrame(columns)
    wanted = Log.from_columns(columns["userId"], columns["Item ID"], columns["timestamp"]).arrays_md5
    assert Log.from_frame(frame).arrays_md5 == Log.from_frame(columns).arrays_md5 == wanted
    assert told(Log.from_frame(frame, min_rating=3)) == [("7", "x")]
    assert told(Log.from_frame(frame, user="Item ID", item="userId")) == [("x", "8"), ("x", "7"), ("y", "7")]


def test_a_frame_s_missing_column_is_named_beside_those_there_are():
    frame = pl.DataFrame({"user": ["a"], "thing": ["x"]})
    with pytest.raises(DataError, match=r"item column named.*user, thing"):
        Log.from_frame(frame)
    with pytest.raises(DataError, match=r"no column 'thin'; it has user, thing \(did you mean thing\?\)"):
        Log.from_frame(frame, item="thin")
    with pytest.raises(DataError, match="min_rating wants a rating column"):
        Log.from_frame(frame, item="thing", min_rating=1)
    with pytest.raises(DataError, match="rating wants to be a number"):
        Log.from_frame(frame, item="thing", rating="user", min_rating=1)


def full() -> Log:
    return small(
        titles=["Ein Käse", "", "Z  z"],
        attributes=(np.array([0, 2, 2, 3]), np.array([1, 0, 1], np.int32)),
        attribute_ids=["red", "blue, or so"],
        source_md5="0" * 32,
        notes=("one", "two"),
    )


def test_a_saved_log_opens_as_it_was(tmp_path):
    log = full()
    again = Log.open(log.save(tmp_path / "log"))
    assert again.arrays_md5 == log.arrays_md5
    assert (again.titles, again.attribute_ids) == (log.titles, log.attribute_ids)
    assert (again.source_md5, again.notes) == (log.source_md5, log.notes)
    assert again.attributes is not None and log.attributes is not None
    assert all(np.array_equal(a, b) for a, b in zip(again.attributes, log.attributes, strict=True))


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1), unique=True
    )
)
def test_any_id_without_a_line_break_survives_the_disk(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("ids") / "log"
    assert Log.open(Log.from_columns(ids, ids).save(folder)).user_ids == ids


def test_equal_logs_are_equal_files(tmp_path):
    one, two = small().save(tmp_path / "one"), small().save(tmp_path / "two")
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)


def test_large_columns_stay_on_disk(tmp_path, monkeypatch):
    folder = small().save(tmp_path / "log")
    assert not isinstance(Log.open(folder).items, np.memmap)
    monkeypatch.setattr(store, "MAPPED", 0)
    log = Log.open(folder)
    assert isinstance(log.items, np.memmap) and log.arrays_md5 == small().arrays_md5


def test_an_existing_folder_is_refused_and_force_replaces_only_a_log(tmp_path):
    folder = small().save(tmp_path / "log")
    with pytest.raises(DataError, match=r"exists.*--force"):
        small().save(folder)
    assert full().save(folder, force=True) == folder
    assert Log.open(folder).titles == full().titles
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mother.txt").write_text("Dear")
    with pytest.raises(DataError, match="not replaced even with --force"):
        small().save(tmp_path / "letters", force=True)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["letters", "log"]


@contextmanager
def tiny_disk() -> Iterator[None]:
    """No file grows beyond 600 bytes; around the call that fails alone, since pytest may write to a file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_what_was_there(tmp_path):
    folder = tmp_path / "log"
    large = Log.from_columns(np.zeros(5000, int), np.arange(5000))
    with pytest.raises(DataError, match="could not be written"), tiny_disk():
        large.save(folder)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_what_was_there(tmp_path):
    folder = small().save(tmp_path / "log")
    with pytest.raises(KeyboardInterrupt), store.whole(folder, "card.json", force=True) as part:
        (part / "card.json").write_text("{}")
        raise KeyboardInterrupt
    assert Log.open(folder).n_events == 4
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def edit(path: Path, **facts: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


@pytest.mark.parametrize(
    ("name", "harm", "said"),
    [
        ("items.npy", Path.unlink, "lacks items.npy"),
        ("items.npy", cut, "no whole array"),
        ("offsets.npy", lambda path: np.save(path, np.zeros(3)), "wants one column of int64"),
        ("items.npy", lambda path: np.save(path, np.array([{}]), allow_pickle=True), "no whole array"),
        ("users.txt", cut, "cut short"),
        ("users.txt", lambda path: path.write_bytes(b"\xff\n"), "UTF-8"),
        ("items.txt", lambda path: path.write_text("x\n"), "item numbers"),
        ("card.json", lambda path: path.write_text("{"), "no data card"),
        ("card.json", lambda path: path.write_text("{}"), "lacks columns"),
        ("card.json", lambda path: edit(path, events=9), "disagrees.*9 events there, 4 here"),
        ("times.npy", Path.unlink, "no whole array"),
    ],
)
def test_a_harmed_folder_is_refused(name, harm, said, tmp_path):
    folder = small().save(tmp_path / "log")
    harm(folder / name)
    with pytest.raises(DataError, match=said):
        Log.open(folder)


def test_a_folder_that_is_no_log_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"is no prepared log: it lacks offsets\.npy"):
        Log.open(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        Log.open(tmp_path / "nowhere")
    shutil.rmtree(tmp_path)
