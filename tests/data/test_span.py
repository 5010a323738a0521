"""Each way to cut a log into histories asks for what it promises, and for nothing twice."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.data.log import Log
from twoview.data.span import HISTORIES, Spans, last, prefixes, whole, windows

quickly = settings(max_examples=50, deadline=None)
some_lengths = st.lists(st.integers(0, 9), min_size=1, max_size=6)
some_max_len = st.integers(1, 5)


def log_of(lengths: Sequence[int]) -> Log:
    n_events = sum(lengths)
    return Log(
        offsets=np.cumsum([0, *lengths]),
        items=np.arange(n_events, dtype=np.int32),
        times=None,
        user_ids=[f"u{user}" for user in range(len(lengths))],
        item_ids=[f"i{item}" for item in range(n_events)],
    )


def cut(spans: Spans) -> list[list[int]]:
    """The flat places of every history, in order."""
    return [
        list(range(begin, begin + n)) for begin, n in zip(spans.begin.tolist(), spans.lengths, strict=True)
    ]


def asked(spans: Spans) -> list[int]:
    """The flat places at which a target is asked, sorted."""
    places = zip(cut(spans), spans.lengths, strict=True)
    return sorted(
        place
        for history, n in places
        for place, wanted in zip(history, spans.asked(np.arange(n)[::-1]), strict=True)
        if wanted
    )


def transitions(log: Log) -> list[int]:
    """The flat places that something of the same user followed."""
    ends = set((log.offsets[1:] - 1).tolist())
    return [place for place in range(log.n_events) if place not in ends]


def test_the_drawn_example_is_cut_as_drawn() -> None:
    log = log_of([7])
    assert cut(last(log, 3)) == [[3, 4, 5]]
    assert sorted(cut(windows(log, 3))) == [[0, 1, 2], [3, 4, 5]]
    assert cut(prefixes(log, 3)) == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert cut(whole(log, 3)) == [[4, 5, 6]]


def test_where_targets_are_asked_is_as_drawn() -> None:
    log = log_of([7])
    assert asked(last(log, 3)) == [3, 4, 5]
    assert asked(windows(log, 3)) == [0, 1, 2, 3, 4, 5]
    assert asked(prefixes(log, 3)) == [0, 1, 2, 3, 4, 5]
    assert asked(whole(log, 3)) == []


@quickly
@given(some_lengths, some_max_len)
def test_windows_cover_every_transition_once_from_the_newest_end(lengths, max_len) -> None:
    log = log_of(lengths)
    spans = windows(log, max_len)
    assert sorted(place for history in cut(spans) for place in history) == transitions(log)
    assert asked(spans) == transitions(log)
    oldest = {int(begin): n for begin, n in zip(spans.begin, spans.lengths, strict=True)}
    for begin, n in oldest.items():
        assert n == max_len or begin in log.offsets[:-1]


@quickly
@given(some_lengths, some_max_len)
def test_prefixes_ask_once_for_each_transition_at_their_newest_place(lengths, max_len) -> None:
    log = log_of(lengths)
    spans = prefixes(log, max_len)
    newest = [history[-1] for history in cut(spans)]
    assert sorted(newest) == asked(spans) == transitions(log)
    for user, place, n in zip(spans.users, newest, spans.lengths, strict=True):
        assert n == min(place - log.offsets[user] + 1, max_len)


@quickly
@given(some_lengths, some_max_len)
def test_last_is_one_history_for_each_user_whom_something_followed(lengths, max_len) -> None:
    log = log_of(lengths)
    spans = last(log, max_len)
    assert spans.users.tolist() == [user for user, n in enumerate(lengths) if n > 1]
    for user, history in zip(spans.users, cut(spans), strict=True):
        own = range(log.offsets[user], log.offsets[user + 1] - 1)
        assert history == list(own[-max_len:])


@quickly
@given(some_lengths, some_max_len)
def test_whole_keeps_every_user_of_one_event_and_asks_for_nothing(lengths, max_len) -> None:
    log = log_of(lengths)
    spans = whole(log, max_len)
    assert spans.users.tolist() == [user for user, n in enumerate(lengths) if n > 0]
    for user, history in zip(spans.users, cut(spans), strict=True):
        assert history == list(range(log.offsets[user], log.offsets[user + 1]))[-max_len:]
    assert asked(spans) == []


@pytest.mark.parametrize("kind", HISTORIES)
@quickly
@given(lengths=some_lengths, max_len=some_max_len)
def test_a_history_is_one_user_s_and_neither_empty_nor_too_long(kind, lengths, max_len) -> None:
    log = log_of(lengths)
    spans = HISTORIES[kind](log, max_len)
    assert len(spans) == len(spans.users) == len(spans.lengths)
    for user, history in zip(spans.users, cut(spans), strict=True):
        assert 1 <= len(history) <= max_len
        assert set(log.owners[history].tolist()) == {user}
