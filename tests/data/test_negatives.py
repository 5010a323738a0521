"""A negative is never chosen by its user in training, and any other item is as likely as the next."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.data.log import Log
from twoview.data.negatives import Negatives
from twoview.data.split import leave_one_out
from twoview.error import DataError

N_ITEMS = 7
some_users = st.lists(st.lists(st.integers(0, N_ITEMS - 2), max_size=8), min_size=1, max_size=5)


def log_of(histories: Sequence[Sequence[int]], n_items: int = N_ITEMS) -> Log:
    return Log(
        offsets=np.cumsum([0, *map(len, histories)]),
        items=np.array([item for history in histories for item in history], dtype=np.int32),
        times=None,
        user_ids=[f"u{user}" for user in range(len(histories))],
        item_ids=[f"i{item}" for item in range(n_items)],
    )


def negatives_of(train: Log) -> Negatives:
    negatives = Negatives(train.n_users, train.n_items, train.n_events)
    negatives.prepare(train)
    return negatives


@settings(max_examples=50, deadline=None)
@given(some_users)
def test_every_item_that_a_user_never_chose_is_drawn_and_no_other(histories) -> None:
    torch.manual_seed(0)
    drawn = negatives_of(log_of(histories)).draw(torch.arange(len(histories)), 400)
    for user, history in enumerate(histories):
        assert set(drawn[user].tolist()) == set(range(N_ITEMS)) - set(history)


def test_all_others_are_drawn_alike() -> None:
    torch.manual_seed(0)
    chosen = [0, 3, 4, 9, 19]
    negatives = negatives_of(log_of([[5], chosen, [1, 2]], n_items=20))
    drawn = negatives.draw(torch.tensor(1), 15_000)
    counts = drawn.bincount(minlength=20)
    assert counts[chosen].sum() == 0
    others = counts[counts > 0].double()
    assert len(others) == 15
    chi_square = ((others - 1000) ** 2 / 1000).sum().item()
    assert chi_square < 36.1  # 14 degrees of freedom: exceeded once in a thousand seeds


def test_held_out_items_are_drawn_like_any_other() -> None:
    parts = leave_one_out(log_of([[0, 1, 2, 3, 4]]))
    torch.manual_seed(0)
    drawn = negatives_of(parts.train).draw(torch.zeros(2000, dtype=torch.int64), 1)
    shares = drawn.flatten().bincount(minlength=N_ITEMS) / 2000
    assert shares[:3].sum() == 0
    assert shares[3:].tolist() == pytest.approx([0.25] * 4, abs=0.04)


def test_every_user_place_and_draw_has_its_own() -> None:
    torch.manual_seed(0)
    negatives = negatives_of(log_of([[0], [1], [2]], n_items=1000))
    drawn = negatives.draw(torch.tensor([[0, 1], [2, 0]]), 3)
    assert drawn.shape == (2, 2, 3)
    assert len(drawn.unique()) > 9


def test_one_item_that_was_never_chosen_is_always_the_negative() -> None:
    negatives = negatives_of(log_of([[0, 1, 2, 4, 5, 6], [3]]))
    assert set(negatives.draw(torch.tensor([0]), 50).flatten().tolist()) == {3}


def test_a_user_who_chose_everything_is_refused_by_name() -> None:
    train = log_of([[0], [2, 1, 0, 1]], n_items=3)
    with pytest.raises(DataError, match="user u1 chose all 3"):
        negatives_of(train)


def test_preparing_again_forgets_what_was_there_before() -> None:
    negatives = Negatives(1, N_ITEMS, 6)
    negatives.prepare(log_of([[0, 1, 2, 3, 4, 5]]))
    negatives.prepare(log_of([[6]]))
    torch.manual_seed(0)
    assert set(negatives.draw(torch.tensor([0]), 200).flatten().tolist()) == set(range(6))


def test_the_same_seed_draws_the_same() -> None:
    negatives = negatives_of(log_of([[0], [1]], n_items=50))
    users = torch.tensor([0, 1])
    torch.manual_seed(3)
    first = negatives.draw(users, 20)
    torch.manual_seed(3)
    assert torch.equal(first, negatives.draw(users, 20))


def test_drawing_needs_no_value_to_know_its_shape() -> None:
    negatives = negatives_of(log_of([[0], [1, 2]]))
    with FakeTensorMode(allow_non_fake_inputs=True):
        drawn = negatives.draw(torch.tensor([[0, 1, 1]]), 4)
    assert (drawn.shape, drawn.dtype) == ((1, 3, 4), torch.int64)
