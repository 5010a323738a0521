"""Packed rows: nobody crosses a row, nobody overlaps, and what is read back is what was put in."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.data.layout import (
    Columns,
    first_fit,
    joined,
    laid_out,
    newest_of,
    pack,
    pooled,
    shown,
    unpacked,
    width_of,
)
from twoview.types import Batch, History

CPU = torch.device("cpu")
quickly = settings(max_examples=50, deadline=None)
some_lengths = st.lists(st.integers(1, 20), min_size=1, max_size=12)


def history_of(lengths: Sequence[int], *, max_len: int = 20, room: int = 0) -> History:
    """Histories whose k-th event has the item and the time k of one flat log."""
    n_events, end = sum(lengths), np.cumsum(lengths)
    columns = Columns(np.arange(n_events, dtype=np.int32), np.arange(n_events), CPU)
    users = np.arange(len(lengths))
    return shown(columns, end - np.array(lengths), end, users, max_len=max_len, room=room)


def places_of(history: History, one: int) -> list[int]:
    """The flat places of one history, by loop."""
    return [place for place, owner in enumerate(history.owner.flatten().tolist()) if owner == one]


@quickly
@given(some_lengths, st.integers(0, 2))
def test_each_history_lies_in_adjacent_columns_of_one_row_oldest_first(lengths, room) -> None:
    history = history_of(lengths, room=room)
    width, first = history.owner.shape[1], 0
    for one, n in enumerate(lengths):
        places = places_of(history, one)
        assert places == list(range(places[0], places[0] + n + room))
        assert places[0] // width == places[-1] // width
        own = list(range(first, first + n))
        assert history.items.flatten()[places[:n]].tolist() == own
        assert history.times.flatten()[places[:n]].tolist() == own
        first += n


@quickly
@given(some_lengths, st.integers(0, 2))
def test_position_counts_back_from_the_newest_place_and_room_is_hidden_behind(lengths, room) -> None:
    history = history_of(lengths, room=room)
    for one, n in enumerate(lengths):
        places = places_of(history, one)
        assert history.newest[one] == places[-1]
        assert history.position.flatten()[places].tolist() == list(range(n + room))[::-1]
        assert history.hidden.flatten()[places].tolist() == [False] * n + [True] * room
    assert int(history.real.sum()) == sum(lengths) + room * len(lengths)
    assert not history.hidden[~history.real].any()


def test_a_history_shows_its_newest_max_len_events_alone() -> None:
    history = history_of([7, 2], max_len=3)
    assert history.items.flatten()[places_of(history, 0)].tolist() == [4, 5, 6]
    assert history.items.flatten()[places_of(history, 1)].tolist() == [7, 8]
    assert history.users.tolist() == [0, 1]


@quickly
@given(st.lists(some_lengths, min_size=1, max_size=4))
def test_batches_that_are_laid_out_together_lie_as_each_alone(batches) -> None:
    n = min(map(len, batches))
    lengths = np.array([batch[:n] for batch in batches])
    begin = np.cumsum(lengths).reshape(lengths.shape) - lengths
    together = laid_out(begin, lengths, width=24)
    for k in range(len(batches)):
        alone = laid_out(begin[k : k + 1], lengths[k : k + 1], width=24)
        used = int(alone.n_rows[0])
        assert used == together.n_rows[k]
        for name in ("source", "owner", "position"):
            assert np.array_equal(getattr(together, name)[k, :used], getattr(alone, name)[0])
        assert (together.owner[k, used:] == -1).all()
        assert np.array_equal(together.newest[k], alone.newest[0])


ADVERSARIAL = {
    "just over half a row": [33] * 9,
    "whole rows": [64] * 9,
    "single events": [1] * 200,
    "two thirds and thirds": [43] * 5 + [21] * 5,
    "a third and a bit": [22] * 12,
}


def greedy(lengths: Sequence[int], width: int) -> int:
    """Rows that the slow spelling of first fit, longest first, needs."""
    free: list[int] = []
    for n in sorted(lengths, reverse=True):
        row = next((k for k, space in enumerate(free) if space >= n), len(free))
        free[row:] = [*([width] if row == len(free) else [free[row]]), *free[row + 1 :]]
        free[row] -= n
    return len(free)


@pytest.mark.parametrize("lengths", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_adversarial_lengths_take_the_rows_that_first_fit_takes(lengths) -> None:
    assert first_fit(np.array([lengths]), 64)[2].tolist() == [greedy(lengths, 64)]


@quickly
@given(st.lists(st.integers(1, 64), min_size=1, max_size=40))
def test_first_fit_stays_within_a_row_and_its_bound_and_nobody_overlaps(lengths) -> None:
    row, column, used = first_fit(np.array([lengths]), 64)
    taken = np.zeros((int(used[0]), 64), dtype=int)
    for r, c, n in zip(row[0], column[0], lengths, strict=True):
        assert c + n <= 64
        taken[r, c : c + n] += 1
    assert taken.max() == 1 and taken.any(axis=1).all()
    assert used[0] == greedy(lengths, 64) <= 2 * sum(lengths) / 64 + 1


@quickly
@given(st.integers(1, 300), st.integers(0, 2))
def test_a_row_is_wide_enough_for_any_history_and_a_multiple_of_eight(max_len, room) -> None:
    width = width_of(max_len, room)
    assert width >= max_len + room and width % 8 == 0 and width >= 64
    assert width == 64 or width < max_len + room + 8


@quickly
@given(some_lengths)
def test_pack_makes_one_row_for_each_history(lengths) -> None:
    items = torch.arange(len(lengths) * 20).view(-1, 20)
    history = pack(items, torch.tensor(lengths))
    for one, n in enumerate(lengths):
        places = places_of(history, one)
        assert places == list(range(one * 20, one * 20 + n))
        assert history.items.flatten()[places].tolist() == items[one, :n].tolist()
        assert history.position.flatten()[places].tolist() == list(range(n))[::-1]
        assert history.newest[one] == places[-1]
    assert not history.hidden.any()
    assert history.users.tolist() == history.event.tolist() == [-1] * len(lengths)


@quickly
@given(some_lengths, st.integers(1, 25), st.integers(0, 1))
def test_unpacked_finds_the_newest_places_of_each_history(lengths, max_len, room) -> None:
    history = history_of(lengths, room=room)
    place, exists = unpacked(history, max_len)
    assert place.shape == exists.shape == (len(lengths), max_len)
    for one in range(len(lengths)):
        wanted = places_of(history, one)[-max_len:]
        assert place[one][exists[one]].tolist() == wanted
        assert exists[one].tolist() == [False] * (max_len - len(wanted)) + [True] * len(wanted)


@quickly
@given(some_lengths)
def test_sums_and_newest_states_agree_with_loops(lengths) -> None:
    history = history_of(lengths)
    states = torch.randn(*history.owner.shape, 3, generator=torch.Generator().manual_seed(0))
    sums, newest = pooled(states, history), newest_of(states, history)
    for one in range(len(lengths)):
        own = states.flatten(0, 1)[places_of(history, one)]
        torch.testing.assert_close(sums[one], own.sum(0))
        assert torch.equal(newest[one], own[-1])


@quickly
@given(some_lengths)
def test_joined_batches_keep_each_its_histories(lengths) -> None:
    history = history_of(lengths)
    first = Batch(history=history, targets=history.items)
    second = Batch(history=history, targets=-history.items)
    both, n, n_places = joined(first, second), len(lengths), history.owner.numel()
    assert both.history.n_histories == 2 * n
    for one in range(n):
        places = places_of(history, one)
        assert places_of(both.history, one) == places
        assert places_of(both.history, n + one) == [n_places + place for place in places]
        assert both.history.newest[[one, n + one]].tolist() == [places[-1], n_places + places[-1]]
    assert torch.equal(both.targets, torch.cat([first.targets, second.targets]))
    assert both.history.users.tolist() == 2 * history.users.tolist()


def test_columns_that_lie_read_only_on_disk_are_read_and_nothing_is_written_there() -> None:
    times = np.arange(3) * 10
    times.flags.writeable = False
    columns = Columns(np.arange(3, dtype=np.int32), times, CPU)
    assert columns.times.tolist() == [0, 10, 20]


def test_nobody_at_all_makes_no_row() -> None:
    columns = Columns(np.arange(3, dtype=np.int32), None, CPU)
    none = np.zeros(0, dtype=np.int64)
    history = shown(columns, none, none, none, max_len=5)
    assert history.n_histories == 0 and history.owner.shape == (0, 64)
