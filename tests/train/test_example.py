"""Examples are what the model would show: best first, nothing seen, what came next beside it."""

from functools import partial

import pytest
import torch
from torch import Tensor

from twoview.data.log import Log
from twoview.data.split import split
from twoview.evaluate.ranks import Questions, kept, removed
from twoview.train.example import BEST, LATELY, USERS, examples
from twoview.types import History

N_ITEMS = 12
TITLES = [f"title {item}" for item in range(N_ITEMS)]


class Last:
    """Scores an item by its number: the last item is always best."""

    def __init__(self, n_items: int = N_ITEMS) -> None:
        self.n_items = n_items

    def score(self, history: History, /) -> Tensor:
        return torch.arange(self.n_items, dtype=torch.float32).repeat(len(history.newest), 1)


@pytest.fixture(scope="module")
def log() -> Log:
    """Twenty users who chose seven items in a row, each one further on."""
    users = [user for user in range(20) for _ in range(7)]
    items = [(user + step) % N_ITEMS for user in range(20) for step in range(7)]
    named = Log.from_columns(users, [f"i{item:02}" for item in items])
    titles = [TITLES[int(id[1:])] for id in named.item_ids]
    return Log(
        offsets=named.offsets, items=named.items, times=None, user_ids=named.user_ids,
        item_ids=named.item_ids, titles=titles,
    )  # fmt: skip


def test_a_user_s_example_is_their_validation_case(log: Log) -> None:
    found = examples(Last(), split(log, "leave-one-out").valid, partial(Questions, max_len=5))
    assert [each["user"] for each in found] == ["0", "3", "7", "11", "15", "19"] and len(found) == USERS
    for each in found:
        first = int(each["user"])
        chose = [f"title {(first + step) % N_ITEMS}" for step in range(5)]
        assert [item["title"] for item in each["history"]] == chose[-LATELY:]
        assert each["target"]["title"] == f"title {(first + 5) % N_ITEMS}"


@pytest.mark.parametrize("seen", [removed, kept])
def test_the_best_come_first_and_nothing_that_was_seen(log: Log, seen) -> None:
    found = examples(Last(), split(log, "leave-one-out").valid, partial(Questions, max_len=5, seen=seen))
    for each in found:
        barred = {item["id"] for item in each["history"]} if seen is removed else set()
        wanted = [id for id in reversed(log.item_ids) if id not in barred][:BEST]
        assert [item["id"] for item in each["recommended"]] == wanted
        scores = [item["score"] for item in each["recommended"]]
        assert scores == sorted(scores, reverse=True)


def test_few_cases_are_each_an_example_once(log: Log) -> None:
    small = Log.from_columns([1, 1, 1, 2, 2, 2], list("abcabc"))
    found = examples(Last(3), split(small, "leave-one-out").valid, partial(Questions, max_len=5))
    assert [each["user"] for each in found] == ["1", "2"]
    assert all(item["title"] == "" for each in found for item in each["history"])
