"""An epoch of packed rows: every history once, one shape for all steps, the same again after a restart."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from twoview.data import rows as module
from twoview.data.log import Log
from twoview.data.rows import Rows, RowsConfig
from twoview.data.span import HISTORIES
from twoview.types import Batch

CPU = torch.device("cpu")
KINDS = tuple(HISTORIES)


def log_of(lengths: Sequence[int]) -> Log:
    n_events = sum(lengths)
    return Log(
        offsets=np.cumsum([0, *lengths]),
        items=np.arange(n_events, dtype=np.int32),
        times=np.arange(n_events) * 7,
        user_ids=[f"u{user}" for user in range(len(lengths))],
        item_ids=[f"i{item}" for item in range(n_events)],
    )


def uneven(n_users: int, longest: int = 60) -> Log:
    return log_of(np.random.default_rng(0).integers(1, longest, n_users).tolist())


def rows_of(log: Log, *, seed: int = 0, steady: bool = False, room: int = 0, **settings) -> Rows:
    config = RowsConfig(**{"max_len": 50, "batch": 8} | settings)
    generator = torch.Generator().manual_seed(seed)
    return Rows(log, config, generator=generator, device=CPU, steady=steady, room=room)


def members(batch: Batch) -> list[int]:
    """The newest event of each history in a batch, its place in the log: what tells histories apart."""
    return batch.history.event.tolist()


def all_members(rows: Rows) -> list[int]:
    return [one for batch in rows.epoch() for one in members(batch)]


def wanted(rows: Rows) -> list[int]:
    return (rows.spans.begin + rows.spans.lengths - 1).tolist()


def same(a: Batch, b: Batch) -> bool:
    pairs = zip(vars(a.history).values(), vars(b.history).values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs) and torch.equal(a.targets, b.targets)


@pytest.mark.parametrize("kind", KINDS)
def test_every_history_comes_once_an_epoch_except_those_left_over(kind) -> None:
    rows = rows_of(uneven(45), history=kind)
    for _ in range(3):
        came = Counter(all_members(rows))
        left = Counter(np.array(wanted(rows))[rows.left_over.numpy()].tolist())
        assert came + left == Counter(wanted(rows))
        assert sum(came.values()) > 0 and sum(left.values()) < rows.n_histories


def test_what_is_left_over_comes_in_the_next_epoch_s_first_step() -> None:
    rows = rows_of(uneven(45))
    for _ in range(5):
        all_members(rows)
        waiting = np.array(wanted(rows))[rows.left_over.numpy()].tolist()
        assert waiting
        assert set(waiting) <= set(members(next(rows.epoch())))


def test_every_step_has_exactly_b_histories() -> None:
    rows = rows_of(uneven(45))
    batches = list(rows.epoch())
    assert len(batches) == rows.n_steps == len(rows.spans) // 8
    assert {batch.history.n_histories for batch in batches} == {8}
    assert all(len(set(members(batch))) == 8 for batch in batches)


def test_steady_steps_have_one_shape_in_every_epoch() -> None:
    rows = rows_of(uneven(100), steady=True)
    shapes = {batch.history.owner.shape for _ in range(5) for batch in rows.epoch()}
    assert shapes == {(rows.n_rows, 64)}
    loose = rows_of(uneven(100))
    assert all(batch.history.real.any(1).all() for batch in loose.epoch())


def test_steps_too_long_for_their_rows_are_exchanged_and_nobody_is_lost() -> None:
    rows = rows_of(log_of([41] * 12 + [3] * 36), steady=True)
    needed = rows._rows_needed(np.arange(len(rows.spans)).reshape(-1, 8))
    assert needed.max() > 2
    rows.n_rows = 2
    for _ in range(4):
        batches = list(rows.epoch())
        assert rows.n_rows == 2
        assert {batch.history.owner.shape for batch in batches} == {(2, 64)}
        assert Counter(one for batch in batches for one in members(batch)) == Counter(wanted(rows))


def test_a_history_is_never_left_over_twice_in_a_row() -> None:
    rows = rows_of(log_of([52, 52, 4]), batch=2)  # a row has room for a long one and the short one
    rows.n_rows = 1
    before = -1
    for _ in range(30):
        all_members(rows)
        (left,) = rows.left_over.tolist()
        assert left != before and rows.n_rows == 1
        before = left


def test_where_no_step_has_room_the_rows_grow_and_stay_grown() -> None:
    rows = rows_of(log_of([51] * 32), steady=True)
    rows.n_rows = 3
    assert {batch.history.owner.shape[0] for _ in range(2) for batch in rows.epoch()} == {8}
    assert rows.n_rows == 8


def test_fewer_histories_than_wanted_are_all_in_one_step() -> None:
    rows = rows_of(log_of([4, 1, 9, 2]), batch=256)
    for _ in range(2):
        (batch,) = rows.epoch()
        assert sorted(members(batch)) == wanted(rows)
        assert batch.history.n_histories == 3


def test_a_log_in_which_nothing_follows_anything_has_no_step() -> None:
    rows = rows_of(log_of([1, 0, 1]))
    assert (rows.n_steps, list(rows.epoch())) == (0, [])


@pytest.mark.parametrize("steady", [False, True])
def test_a_restored_state_goes_on_to_the_bit(steady) -> None:
    log = uneven(90)
    rows = rows_of(log, steady=steady, room=1)
    for _ in range(2):
        all_members(rows)
    kept = {name: tensor.clone() for name, tensor in rows.state().items()}
    other = rows_of(log, seed=5, steady=steady, room=1)
    other.restore(kept)
    for _ in range(2):
        assert all(same(a, b) for a, b in zip(rows.epoch(), other.epoch(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [0, 2])
def test_targets_are_the_items_that_followed(kind, room) -> None:
    log = uneven(30, longest=20)
    rows = rows_of(log, history=kind, max_len=6, room=room)
    ends = set((log.offsets[1:] - 1).tolist())
    n_asked = 0
    for batch in rows.epoch():
        history = batch.history
        n_asked += int((batch.targets >= 0).sum())
        for place, target in enumerate(batch.targets.flatten().tolist()):
            owner, back = (int(column.flatten()[place]) for column in (history.owner, history.position))
            event = int(history.event[owner]) - back + room  # items are their own places in the log
            is_event = owner >= 0 and back >= room
            asked = kind in ("last", "windows") or (kind == "prefixes" and back == room)
            if is_event:
                assert history.items.flatten()[place] == event
                assert history.times.flatten()[place] == 7 * event
                assert log.owners[event] == history.users[owner]
            assert target == (event + 1 if is_event and asked else -1)
            assert target == -1 or event not in ends
    assert (n_asked > 0) == (kind != "whole")


def test_the_order_is_new_in_each_epoch_and_the_same_for_the_same_seed() -> None:
    log = uneven(64)
    rows, again, other = rows_of(log), rows_of(log), rows_of(log, seed=1)
    first, second = all_members(rows), all_members(rows)
    assert first != second
    assert [first, second] == [all_members(again), all_members(again)]
    assert first != all_members(other)


def test_rows_are_laid_out_a_few_steps_at_a_time_and_come_out_the_same(monkeypatch) -> None:
    log = uneven(120)
    at_once = list(rows_of(log).epoch())
    monkeypatch.setattr(module, "CHUNK", 3)
    sizes: list[int] = []
    laid_out = module.laid_out

    def counted(begin, lengths, **settings):
        sizes.append(len(lengths))
        return laid_out(begin, lengths, **settings)

    monkeypatch.setattr(module, "laid_out", counted)
    steps = rows_of(log).epoch()
    first = next(steps)
    assert sum(sizes) <= 6 < len(at_once)
    assert all(same(a, b) for a, b in zip([first, *steps], at_once, strict=True))
    assert sum(sizes) == len(at_once) and max(sizes) == 3


def test_an_error_while_rows_are_prepared_ahead_reaches_the_caller(monkeypatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)
    rows, laid_out, calls = rows_of(uneven(120)), module.laid_out, []

    def failing(begin, lengths, **settings):
        calls.append(len(lengths))
        if len(calls) == 2:
            raise MemoryError("no room for rows")
        return laid_out(begin, lengths, **settings)

    monkeypatch.setattr(module, "laid_out", failing)
    came = []
    with pytest.raises(MemoryError, match="no room for rows"):
        came.extend(rows.epoch())
    assert len(came) <= 3


def test_an_epoch_that_is_left_early_leaves_nothing_running() -> None:
    rows = rows_of(uneven(60))
    steps = rows.epoch()
    next(steps)
    steps.close()
    assert len(all_members(rows)) == rows.n_steps * 8


@pytest.mark.parametrize("setting", [{"max_len": 0}, {"batch": 0}, {"history": "first"}])
def test_settings_that_make_no_rows_are_refused(setting) -> None:
    with pytest.raises(ValidationError, match=next(iter(setting))):
        RowsConfig(**setting)
