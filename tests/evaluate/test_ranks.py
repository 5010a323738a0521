"""Ranks are a Python sort's, whatever the chunks; what is seen, tied or not finite."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from twoview.data.log import Log
from twoview.data.split import Cases, leave_one_out, temporal
from twoview.error import ProtocolError, ScoreError
from twoview.evaluate.ranks import SEEN, Questions, cases_table, kept, ranks
from twoview.types import History

N_ITEMS = 9


@dataclass
class Told:
    """Scores each user as it was told to."""

    scores: Tensor  # [U, I]

    def score(self, history: History, /) -> Tensor:
        return self.scores[history.users]


class Reader:
    """Whole-number scores that depend on every item, its position and the room behind it."""

    def score(self, history: History, /) -> Tensor:
        own = torch.where(history.hidden, 5, history.items + 3) * (history.position + 1) * history.real
        sums = torch.zeros(history.n_histories, dtype=torch.int64)
        sums.index_add_(0, history.owner.clamp(min=0).flatten(), own.flatten())
        newest = history.items.flatten()[history.newest]
        return ((sums * 7 + newest)[:, None] * (torch.arange(N_ITEMS) + 2) % 5).float()


def log_of(histories: Sequence[Sequence[int]], times: Sequence[int] | None = None) -> Log:
    return Log(
        offsets=np.cumsum([0, *map(len, histories)]),
        items=np.array([item for history in histories for item in history], dtype=np.int32),
        times=None if times is None else np.array(times),
        user_ids=[f"u{user}" for user in range(len(histories))],
        item_ids=[f"i{item}" for item in range(N_ITEMS)],
    )


def asked_of(*histories: Sequence[int]) -> Cases:
    return leave_one_out(log_of(histories)).test


def sorted_ranks(cases: Cases, scores: Tensor, seen: str) -> list[list[int]]:
    """The same by sorting the candidates of one case after another."""
    found = []
    for user, place, target in zip(cases.users, cases.places, cases.targets, strict=True):
        met = set(cases.log.items[cases.log.offsets[user] : place].tolist()) if seen == "removed" else set()
        candidates = [item for item in range(N_ITEMS) if item not in met or item == target]
        order = sorted((float(scores[user, item]) for item in candidates), reverse=True)
        own = float(scores[user, target])
        found.append([order.index(own), order.count(own) - 1])
    return found


histories_in_some_log = st.lists(
    st.lists(st.integers(0, N_ITEMS - 1), min_size=3, max_size=12), min_size=1, max_size=7
)


@given(
    histories_in_some_log,
    st.sampled_from(list(SEEN)),
    st.integers(0, 2**31),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_ranks_are_those_of_a_python_sort(histories, seen, seed, budget_bytes) -> None:
    cases = asked_of(*histories)
    scores = torch.randint(
        -2, 3, (len(histories), N_ITEMS), generator=torch.Generator().manual_seed(seed)
    ).float()
    questions = Questions(cases, max_len=4, seen=SEEN[seen], budget_bytes=budget_bytes)
    assert ranks(Told(scores), questions).tolist() == sorted_ranks(cases, scores, seen)


@given(histories_in_some_log, st.integers(1, 5), st.integers(0, 2))
def test_one_user_at_a_time_is_all_at_once(histories, max_len, room) -> None:
    cases = asked_of(*histories)
    alone = Questions(cases, max_len=max_len, room=room, budget_bytes=1)
    together = Questions(cases, max_len=max_len, room=room)
    assert len(list(alone)) == len(cases)
    assert len(list(together)) == 1
    assert ranks(Reader(), alone).tolist() == ranks(Reader(), together).tolist()


def test_asking_again_gives_the_same_whether_chunks_are_held_or_made_anew() -> None:
    cases = asked_of([1, 2, 3, 4], [5, 6, 7], [0, 1, 2, 3, 8])
    for budget_bytes in (1, 1 << 20):
        questions = Questions(cases, max_len=3, budget_bytes=budget_bytes)
        assert ranks(Reader(), questions).tolist() == ranks(Reader(), questions).tolist()


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_model_gets_the_room_it_asks_for_behind_the_newest_events(room: int) -> None:
    (chunk,) = Questions(asked_of([0, 1, 2, 3, 4], [5, 6, 7]), max_len=3, room=room)
    for case, shown in enumerate([[1, 2, 3], [5, 6]]):
        own = chunk.history.owner == case
        assert chunk.history.hidden[own].tolist() == [False] * len(shown) + [True] * room
        assert chunk.history.items[own & ~chunk.history.hidden].tolist() == shown


def test_scores_stay_within_the_budget() -> None:
    cases = asked_of(*[[0, 1, 2]] * 50)
    sizes = [len(chunk.targets) for chunk in Questions(cases, max_len=3, budget_bytes=6 * N_ITEMS * 8)]
    assert sizes == [8] * 6 + [2]


def test_seen_items_cannot_appear_however_long_ago_and_however_high() -> None:
    scores = torch.tensor([[9.0, 8.0, 7.0, 6.0, 5.0, 1.0, 0.0, 0.0, 0.0]])
    cases = asked_of([0, 1, 2, 3, 4, 0, 1, 5])
    assert ranks(Told(scores), Questions(cases, max_len=2)).tolist() == [[0, 0]]
    assert ranks(Told(scores), Questions(cases, max_len=2, seen=kept)).tolist() == [[5, 0]]


def test_a_target_that_was_seen_before_is_still_asked_for() -> None:
    scores = torch.tensor([[0.0, 9.0, 3.0, 4.0, 3.0, 0.0, 0.0, 0.0, 0.0]])
    cases = asked_of([2, 1, 1, 2])
    assert ranks(Told(scores), Questions(cases, max_len=9)).tolist() == [
        [1, 1]
    ]  # the 4 above, the other 3 level


def test_constant_scores_tie_with_every_other_candidate() -> None:
    cases = asked_of([0, 0, 1, 2], [3, 4, 5])
    questions = Questions(cases, max_len=9)
    assert ranks(Told(torch.ones(2, N_ITEMS)), questions).tolist() == [[0, N_ITEMS - 3], [0, N_ITEMS - 3]]


def test_a_score_table_that_all_share_is_left_as_it_was() -> None:
    class Shared:
        table = torch.arange(N_ITEMS).float()

        def score(self, history: History, /) -> Tensor:
            return self.table.expand(history.n_histories, -1)

    assert ranks(Shared(), Questions(asked_of([8, 7, 5], [8, 0, 1]), max_len=9)).tolist() == [[1, 0], [6, 0]]
    assert Shared.table.tolist() == list(range(N_ITEMS))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("budget_bytes", [1, 1 << 20])
def test_scores_that_are_not_finite_are_refused_and_counted(bad: float, budget_bytes: int) -> None:
    cases = asked_of([0, 1, 2], [3, 4, 5])
    questions = Questions(cases, max_len=9, budget_bytes=budget_bytes)
    for row, item in ((0, 0), (1, 5), (1, 8)):  # seen, the target, another
        scores = torch.zeros(2, N_ITEMS)
        scores[row, item] = bad
        with pytest.raises(ScoreError, match="Told wants finite scores; 1 of 18 are NaN or infinite"):
            ranks(Told(scores), questions)


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ScoreError, match=r"Told wants to score \[1, 9\]; it scored \[1, 10\]"):
        ranks(Told(torch.zeros(1, N_ITEMS + 1)), Questions(asked_of([0, 1, 2]), max_len=9))


def test_nothing_to_ask_is_refused() -> None:
    with pytest.raises(ProtocolError, match="none came"):
        Questions(asked_of([0, 1]), max_len=9)


def test_users_without_training_events_are_strangers() -> None:
    users: list[int] = []

    class Listening(Reader):
        def score(self, history: History, /) -> Tensor:
            users.extend(history.users.tolist())
            return super().score(history)

    log = log_of([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1], [3, 4]], times=[0, 1, 2, 3, 4, 5, 6, 20, 7, 18, 19, 21])
    ranks(Listening(), Questions(temporal(log).test, max_len=9))
    assert users == [0, -1]


def test_the_cases_table_says_user_target_shown_and_training_events() -> None:
    parts = leave_one_out(log_of([[1, 2, 3, 4], [0, 1], [2, 2, 2, 5, 2]]))
    assert cases_table(parts.test, parts.train).tolist() == [[0, 4, 3, 0], [2, 2, 4, 4]]
    assert cases_table(parts.valid, parts.train).tolist() == [[0, 3, 2, 0], [2, 5, 3, 0]]
