"""Every convention against a slow spelling of it: sorting, forcing to 0, and drawing each sample there is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from twoview.data.log import Log
from twoview.data.split import Cases, leave_one_out
from twoview.error import ProtocolError, RecipeError, ScoreError
from twoview.evaluate.convention import OTHERS, among_drawn, convention, cut, expected_gains, met
from twoview.evaluate.metrics import METRICS
from twoview.evaluate.protocol import CONVENTIONS, Card, refuse_mixed
from twoview.evaluate.ranks import Questions
from twoview.types import History

N_ITEMS = 8
CARD = Card(
    protocol="leave-one-out", split="test", candidates=N_ITEMS, seen="removed", users=3, cases=3,
    repeated=0.0, untrained=0.0, left_out={}, seeds=[0],
)  # fmt: skip
histories = st.lists(st.lists(st.integers(0, N_ITEMS - 1), min_size=3, max_size=9), min_size=1, max_size=5)


@dataclass
class Told:
    """Scores each user as it was told to."""

    scores: Tensor  # [U, I]

    def score(self, history: History, /) -> Tensor:
        return self.scores[history.users]


def cases_of(found: Sequence[Sequence[int]]) -> Cases:
    log = Log(
        offsets=np.cumsum([0, *map(len, found)]),
        items=np.array([item for history in found for item in history], dtype=np.int32),
        times=None,
        user_ids=[f"u{user}" for user in range(len(found))],
        item_ids=[f"i{item}" for item in range(N_ITEMS)],
    )
    return leave_one_out(log).test


def ranked(name: str, scores: Tensor, found: Sequence[Sequence[int]]) -> list[list[int]]:
    how = convention(name).ranks
    assert how is not None
    cases = cases_of(found)
    return how(Told(scores), lambda seen: Questions(cases, max_len=2, seen=seen)).tolist()


def level_with(row: Sequence[float], target: int) -> list[int]:
    """How many are above a target and how many others level with it, all items being candidates."""
    return [sum(each > row[target] for each in row), list(row).count(row[target]) - 1]


def small_scores(seed: int, n_users: int) -> Tensor:
    return torch.randint(-2, 3, (n_users, N_ITEMS), generator=torch.Generator().manual_seed(seed)).float()


@given(histories, st.integers(0, 2**31))
def test_recbole_leaves_what_was_seen_among_the_candidates(found, seed: int) -> None:
    scores = small_scores(seed, len(found))
    wanted = [level_with(row.tolist(), history[-1]) for row, history in zip(scores, found, strict=True)]
    assert ranked("recbole", scores, found) == wanted


@given(histories, st.integers(0, 2**31))
def test_released_gives_what_was_seen_the_score_0_though_it_was_long_ago(found, seed: int) -> None:
    scores, wanted = small_scores(seed, len(found)), []
    for row, history in zip(scores.tolist(), found, strict=True):
        forced = [0.0 if item in history[:-1] else score for item, score in enumerate(row)]
        wanted.append(level_with(forced, history[-1]))
    assert ranked("released", scores, found) == wanted


def test_a_score_of_0_is_above_all_that_score_less() -> None:
    scores = torch.full((1, N_ITEMS), -1.0)
    scores[0, 3] = -0.5
    assert ranked("released", scores, [[0, 1, 2, 3]]) == [[3, 0]]
    assert ranked("recbole", scores, [[0, 1, 2, 3]]) == [[0, 0]]


def test_released_refuses_what_is_not_finite_and_leaves_the_models_scores_alone() -> None:
    scores = torch.ones(1, N_ITEMS)
    ranked("released", scores, [[0, 1, 2, 3]])
    assert scores.eq(1).all()
    with pytest.raises(ScoreError, match="Told wants finite scores"):
        ranked("released", torch.full((1, N_ITEMS), torch.nan), [[0, 1, 2]])


def test_what_was_met_is_met_once_and_the_target_is_no_exception() -> None:
    rows, items = met(cases_of([[4, 4, 2, 4], [0, 1, 2]]))
    assert list(zip(rows.tolist(), items.tolist(), strict=True)) == [(0, 2), (0, 4), (1, 0), (1, 1)]


def test_past_place_40_only_the_reciprocal_place_changes() -> None:
    ranks = np.array([[39, 0], [40, 0], [38, 3]])
    values = cut(ranks, ranks, N_ITEMS)
    assert values.keys() == METRICS.keys() - {"mrr"} | {"mrr@40"}
    assert values["mrr@40"] == pytest.approx([1 / 40, 0, (1 / 39 + 1 / 40) / 4])
    assert all(np.array_equal(values[name], METRICS[name](ranks)) for name in values.keys() - {"mrr@40"})


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 4), st.integers(1, 6))
def test_a_gain_among_drawn_others_is_the_mean_over_every_draw(above, tied, below, n) -> None:
    pool = above + tied + below
    gains = np.stack([1 / np.arange(1, n + 2), np.arange(n + 1) < 2], axis=1)
    hands = list(combinations(range(pool), min(n, pool)))
    wanted = np.mean(
        [
            gains[sum(other < place for other in hand)]
            for place in range(above, above + tied + 1)
            for hand in hands
        ],
        axis=0,
    )
    found = expected_gains(np.array([[above, tied]]), np.array([pool]), gains)
    assert found[0] == pytest.approx(wanted, abs=1e-12)


def test_a_hundred_of_many_thousands_are_what_drawing_them_finds() -> None:
    ranks, cases = np.array([[120, 0], [900, 40], [0, 0]]), np.array([[0, 0, 9, 0]] * 3)
    values = among_drawn(ranks, cases, 12_000)
    draw = np.random.default_rng(0)
    for case, (above, tied) in enumerate(ranks.tolist()):
        place = above + draw.integers(tied + 1, size=40_000)
        ahead = draw.hypergeometric(place, 12_000 - 10 - place, 100)
        assert values["recall@5"][case] == pytest.approx(np.mean(ahead < 5), abs=0.01)
        assert values["ndcg@10"][case] == pytest.approx(np.mean((ahead < 10) / np.log2(ahead + 2)), abs=0.01)
        assert values["mrr"][case] == pytest.approx(np.mean(1 / (ahead + 1)), abs=0.01)
    assert values.keys() == METRICS.keys()


def test_a_constant_score_is_found_among_the_drawn_as_chance_has_it() -> None:
    values = among_drawn(np.array([[0, 989]]), np.array([[0, 0, 10, 0]]), 1_000)
    for k in (1, 5, 10, 20, 40):
        assert values[f"recall@{k}"] == pytest.approx([k / 101])


def test_where_fewer_than_a_hundred_are_left_all_are_drawn() -> None:
    ranks, cases = np.array([[3, 2], [19, 0]]), np.array([[0, 0, 10, 0]] * 2)
    values = among_drawn(ranks, cases, 31)
    assert all(values[name] == pytest.approx(METRICS[name](ranks)) for name in METRICS)


def test_a_card_of_each_convention_never_shares_a_table_with_ours() -> None:
    assert OTHERS.keys() | {"ours"} == CONVENTIONS.keys()
    for name, how in OTHERS.items():
        assert how.says == CONVENTIONS[name]
        with pytest.raises(ProtocolError, match=f"convention is 'ours' in a and '{name}' in b"):
            refuse_mixed({"a": CARD, "b": replace(how.card(CARD), seen="removed")})


def test_what_cannot_be_counted_so_is_refused() -> None:
    with pytest.raises(RecipeError, match="no convention 'recbol' to count as; there are recbole, released"):
        convention("recbol")
    with pytest.raises(ProtocolError, match=r"sampled-100 draws from items not shown .* seen items are kept"):
        convention("sampled-100").card(replace(CARD, seen="kept"))
