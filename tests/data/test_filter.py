"""What a filter leaves is what a slow loop leaves, in the same order, under the same ids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.data.filter import core, where
from twoview.data.log import Log
from twoview.error import DataError

Pairs = list[tuple[str, str]]
PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), min_size=1, max_size=25)


def told(log: Log) -> Pairs:
    pairs = zip(log.owners.tolist(), log.items.tolist(), strict=True)
    return [(log.user_ids[u], log.item_ids[i]) for u, i in pairs]


def slow_core(pairs: Pairs, k: int) -> Pairs:
    """The k-core by striking events until none is left to strike."""
    while True:
        users, items = [u for u, _ in pairs], [i for _, i in pairs]
        left = [(u, i) for u, i in pairs if users.count(u) >= k and items.count(i) >= k]
        if left == pairs:
            return pairs
        pairs = left


@settings(deadline=None)
@given(PAIRS, st.integers(1, 4))
def test_the_core_is_the_one_found_by_striking_again_and_again(pairs, k):
    log = Log.from_columns([u for u, _ in pairs], [i for _, i in pairs])
    wanted = slow_core(told(log), k)
    if not wanted:
        with pytest.raises(DataError, match=f"--min-count {k} leaves none of {len(pairs)} events"):
            core(log, k)
        return
    small = core(log, k)
    assert told(small) == wanted
    assert small.lengths.min() >= k and np.bincount(small.items).min() >= k


def test_a_core_says_what_went():
    log = Log.from_columns(list("aab"), list("xyx"))
    assert core(log, 1).notes == ("1-core: 2 of 2 users, 2 of 2 items, 3 of 3 events",)


@settings(deadline=None)
@given(st.data())
def test_titles_times_and_attributes_stay_with_their_items(data):
    pairs = data.draw(PAIRS)
    users, items = [u for u, _ in pairs], [i for _, i in pairs]
    ids = list(dict.fromkeys(items))
    sizes = [ord(i) % 3 for i in ids]  # w, x, y, z have 2, 0, 1, 2 attributes, numbered after the item
    log = Log.from_columns(
        users,
        items,
        list(range(len(pairs))),
        titles=[i.upper() for i in ids],
        attributes=(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.repeat([ord(i) for i in ids], sizes).astype(np.int32),
        ),
    )
    stays = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))))
    small = where(log, stays)
    assert told(small) == [pair for pair, stay in zip(told(log), stays, strict=True) if stay]
    assert small.times is not None and log.times is not None
    assert small.times.tolist() == log.times[stays].tolist()
    assert small.titles == [i.upper() for i in small.item_ids]
    assert small.attributes is not None
    offsets, numbers = small.attributes
    assert numbers.tolist() == [ord(i) for i in small.item_ids for _ in range(ord(i) % 3)]
    assert np.diff(offsets).tolist() == [ord(i) % 3 for i in small.item_ids]
