"""The laws of every split: what is held out never trains, and all that is left out is counted."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from twoview.data.log import Log
from twoview.data.split import Cases, Split, everything, leave_one_out, split, temporal
from twoview.error import ProtocolError

Events = Sequence[tuple[int, int]]  # time, item

some_events = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=0, max_size=8)
some_users = st.lists(some_events, min_size=1, max_size=8).filter(lambda users: any(users))


def log_of(users: Sequence[Events], *, clock: bool = True, names: Sequence[str] = ()) -> Log:
    ordered = [sorted(events, key=lambda event: event[0]) for events in users]
    flat = np.array([event for events in ordered for event in events], dtype=np.int64).reshape(-1, 2)
    return Log(
        offsets=np.cumsum([0, *map(len, ordered)]),
        items=flat[:, 1].astype(np.int32),
        times=flat[:, 0] if clock else None,
        user_ids=names or [f"u{user}" for user in range(len(users))],
        item_ids=list("abcdef"),
    )


def history(log: Log, user: int) -> list[int]:
    return log.items[log.offsets[user] : log.offsets[user + 1]].tolist()


def asked(cases: Cases) -> set[tuple[str, tuple[int, ...], int]]:
    """Who is asked for what after having been shown what."""
    flat = zip(cases.users, cases.begin, cases.places, cases.targets, strict=True)
    items = cases.log.items
    return {
        (cases.log.user_ids[user], tuple(items[begin:place]), target) for user, begin, place, target in flat
    }


@given(some_users)
def test_leave_one_out_holds_out_the_last_two_events_and_trains_on_the_rest(users) -> None:
    log = log_of(users, clock=False)
    parts = leave_one_out(log)
    valid, test = (
        dict(zip(cases.users.tolist(), cases.places, strict=True)) for cases in (parts.valid, parts.test)
    )
    for user, events in enumerate(users):
        whole, end = history(log, user), log.offsets[user + 1]
        if len(events) >= 3:
            assert history(parts.train, user) == whole[:-2]
            assert (valid[user], test[user]) == (end - 2, end - 1)
        else:
            assert history(parts.train, user) == whole
            assert user not in valid | test
    assert parts.left_out == {"users with fewer than three events": sum(len(events) < 3 for events in users)}


def test_the_validation_item_is_shown_when_the_last_is_asked() -> None:
    parts = leave_one_out(log_of([[(0, 4), (1, 2), (2, 5), (3, 1)]]))
    assert asked(parts.valid) == {("u0", (4, 2), 5)}
    assert asked(parts.test) == {("u0", (4, 2, 5), 1)}


@given(some_users)
def test_nothing_later_than_the_cut_trains(users) -> None:
    log = log_of(users)
    parts = temporal(log)
    cuts = np.quantile(log.times, [0.8, 0.9], method="higher")
    assert (parts.train.times < cuts[0]).all()
    assert parts.train.n_events == (log.times < cuts[0]).sum()
    assert ((log.times[parts.valid.places] >= cuts[0]) & (log.times[parts.valid.places] < cuts[1])).all()
    assert (log.times[parts.test.places] >= cuts[1]).all()


@given(some_users)
def test_every_event_trains_or_is_asked_or_is_counted_as_left_out(users) -> None:
    log = log_of(users)
    parts = temporal(log)
    held_out = np.concatenate([parts.valid.places, parts.test.places])
    assert len(np.unique(held_out)) == len(held_out)
    (left_out,) = parts.left_out.values()
    assert parts.train.n_events + len(held_out) + left_out == log.n_events
    assert (parts.valid.shown > 0).all()
    assert (parts.test.shown > 0).all()


@given(some_users)
def test_the_training_log_is_what_came_before_the_first_case_of_each_user(users) -> None:
    for parts in (leave_one_out(log_of(users)), temporal(log_of(users))):
        for cases in (parts.valid, parts.test):
            for user, place in zip(cases.users, cases.places, strict=True):
                trained = history(parts.train, user)
                assert trained == history(cases.log, user)[: len(trained)]
                assert parts.train.lengths[user] <= place - cases.log.offsets[user]


@given(some_users)
def test_users_without_training_events_are_strangers(users) -> None:
    parts = temporal(log_of(users))
    for cases in (parts.valid, parts.test):
        assert cases.known.tolist() == [bool(history(parts.train, user)) for user in cases.users]


@given(some_users)
def test_the_first_variant_asks_each_user_once_for_the_oldest_case(users) -> None:
    every, first = temporal(log_of(users)), temporal(log_of(users), first=True)
    for some, one in ((every.valid, first.valid), (every.test, first.test)):
        oldest = {user: min(some.places[some.users == user]) for user in some.users.tolist()}
        assert dict(zip(one.users.tolist(), one.places, strict=True)) == oldest
    assert first.train.items.tolist() == every.train.items.tolist()


def test_later_events_with_nothing_to_show_are_counted() -> None:
    early = [(time, 1) for time in range(8)]
    parts = temporal(log_of([early, [(8, 2), (9, 3)]]))
    assert asked(parts.valid) | asked(parts.test) == {("u1", (2,), 3)}
    assert parts.left_out == {"later events with nothing to show": 1}


@pytest.mark.parametrize("protocol", [leave_one_out, temporal, lambda log: temporal(log, first=True)])
@given(users=some_users, random=st.randoms(use_true_random=False))
def test_the_order_of_users_changes_nothing(protocol, users, random) -> None:
    order = list(range(len(users)))
    random.shuffle(order)
    one = protocol(log_of(users))
    other = protocol(log_of([users[user] for user in order], names=[f"u{user}" for user in order]))
    assert (asked(one.valid), asked(one.test)) == (asked(other.valid), asked(other.test))
    assert one.left_out == other.left_out
    assert [history(one.train, user) for user in order] == [
        history(other.train, at) for at in range(len(order))
    ]


@given(some_users)
def test_all_trains_on_everything_and_asks_nothing(users) -> None:
    parts = everything(log_of(users))
    assert parts.train.items.tolist() == log_of(users).items.tolist()
    assert (len(parts.valid), len(parts.test)) == (0, 0)


@given(some_users, st.sampled_from(["leave-one-out", "temporal", "temporal-first"]))
def test_a_split_by_name_has_something_to_train_on_and_to_ask(users, protocol: str) -> None:
    try:
        parts = split(log_of(users), protocol)
    except ProtocolError as refusal:
        assert protocol in str(refusal)
        assume(False)
    assert isinstance(parts, Split)
    assert min(parts.train.n_events, len(parts.valid), len(parts.test)) > 0


@pytest.mark.parametrize(
    ("users", "protocol", "line"),
    [
        ([[(0, 1), (1, 2)]] * 5, "leave-one-out", "at least three events; of 5 users nobody has them"),
        ([[(3, 1), (3, 2), (3, 3)]], "temporal", "leaves nothing to train on"),
        ([[(time, 1)] for time in range(10)], "temporal", "0 validate and 0 test"),
        (
            [[(0, 1), (1, 2), (2, 3)]],
            "loo",
            "no protocol 'loo'; there are leave-one-out, temporal, temporal-first, all",
        ),
    ],
)
def test_a_split_that_leaves_nothing_is_refused(users, protocol: str, line: str) -> None:
    with pytest.raises(ProtocolError, match=line):
        split(log_of(users), protocol)


def test_a_cut_in_time_wants_times() -> None:
    with pytest.raises(ProtocolError, match="wants a log with times"):
        split(log_of([[(0, 1), (1, 2), (2, 3)]], clock=False), "temporal")
