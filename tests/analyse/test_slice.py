"""Groups hold whom they say, their means are those of their users, and a gain is counted by user."""

import json

import numpy as np
import pytest

from twoview.analyse.slice import QUANTILES, SLICINGS, gains, slices, target_count
from twoview.data.log import Log
from twoview.data.split import leave_one_out
from twoview.error import ProtocolError, RecipeError
from twoview.evaluate.compare import SHOWN
from twoview.evaluate.metrics import per_user
from twoview.evaluate.ranks import cases_table

#                 user, target, shown, training events
CASES = np.array([[0, 7, 3, 0], [1, 7, 12, 0], [2, 8, 10, 4], [3, 9, 45, 60], [4, 7, 9, 0]])
RANKS = np.array([[0, 0], [30, 0], [0, 1], [99, 0], [4, 0]])


def sizes(cases: np.ndarray, by: str) -> dict[str, int]:
    found = slices([np.zeros((len(cases), 2), dtype=np.int64)], cases, by)
    return {group["group"]: group["users"] for group in found["groups"]}


def test_a_target_is_as_frequent_as_users_who_have_it_held_out() -> None:
    assert target_count(CASES).tolist() == [3, 3, 1, 1, 3]
    again = np.concatenate([CASES, CASES[:1]])  # the same user asked for the same target twice
    assert target_count(again).tolist() == [3, 3, 1, 1, 3, 3]


def test_groups_of_the_papers_frequency_begin_at_tens_and_the_last_is_open() -> None:
    copies = (9, 10, 19, 40)
    targets = np.repeat(np.arange(4), copies)
    cases = np.stack([np.arange(len(targets)), targets, targets, targets], axis=1)
    wanted = {"[0, 10)": 9, "[10, 20)": 29, "[20, 30)": 0, "[30, 40)": 0, "[40, inf)": 40}
    assert sizes(cases, "target frequency") == wanted


def test_slices_count_users_of_a_log_split_by_hand() -> None:
    """Three users end on 0; one ends on 1, which nobody has in training; one has too few events."""
    histories = [[2, 3, 2, 0], [3, 2, 0], [2, 2, 3, 3, 0], [2, 4, 1], [0, 1]]
    log = Log(
        offsets=np.cumsum([0, *map(len, histories)]),
        items=np.array([item for history in histories for item in history], dtype=np.int32),
        times=None,
        user_ids=list("abcde"),
        item_ids=list("vwxyz"),
    )
    parts = leave_one_out(log)
    cases = cases_table(parts.test, parts.train)
    assert target_count(cases).tolist() == [3, 3, 3, 1]
    assert sizes(cases, "cold") == {"[0, 1)": 0, "[1, inf)": 4}  # the fifth user trains on 0 and 1
    assert sizes(cases, "history length") == {
        "[0, 10)": 4, "[10, 20)": 0, "[20, 30)": 0, "[30, 40)": 0, "[40, inf)": 0,
    }  # fmt: skip


def test_each_case_is_in_one_group_of_every_slicing() -> None:
    assert all(sum(sizes(CASES, by).values()) == 5 for by in SLICINGS)
    assert sizes(CASES, "cold") == {"[0, 1)": 3, "[1, inf)": 2}
    assert sizes(CASES, "training frequency")["[50, 100)"] == 1
    assert sizes(CASES, "history length") == {
        "[0, 10)": 2, "[10, 20)": 2, "[20, 30)": 0, "[30, 40)": 0, "[40, inf)": 1,
    }  # fmt: skip


def test_the_mean_of_a_group_is_that_of_its_users_and_the_seeds() -> None:
    other = RANKS + np.array([20, 0])
    cold = slices([RANKS, other], CASES, "cold")["groups"][0]
    own = CASES[:, 3] == 0
    for metric in SHOWN:
        seeds = [per_user(each[own], CASES[own], metric).mean() for each in (RANKS, other)]
        number = cold["metrics"][metric]
        assert number["mean"] == pytest.approx(np.mean(seeds))
        assert number["low"] <= number["mean"] <= number["high"]


def test_groups_weighted_by_their_size_give_the_whole_back() -> None:
    for by in SLICINGS:
        groups = [group for group in slices([RANKS], CASES, by)["groups"] if group["users"]]
        mean = sum(group["users"] * group["metrics"]["ndcg@20"]["mean"] for group in groups) / 5
        assert mean == pytest.approx(per_user(RANKS, CASES, "ndcg@20").mean())


def test_a_group_of_nobody_has_a_size_and_no_numbers() -> None:
    found = slices([RANKS], CASES, "history length")
    assert found["groups"][2] == {
        "group": "[20, 30)", "begin": 20, "end": 30, "users": 0, "cases": 0, "metrics": None,
    }  # fmt: skip
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_user_of_several_cases_counts_once_in_each_group() -> None:
    cases = np.array([[0, 1, 3, 5], [0, 2, 4, 5], [0, 3, 15, 5]])
    found = slices([np.array([[0, 0], [99, 0], [0, 0]])], cases, "history length")["groups"]
    assert [(each["users"], each["cases"]) for each in found[:2]] == [(1, 2), (1, 1)]
    assert found[0]["metrics"]["recall@20"]["mean"] == 0.5


def test_a_gain_is_the_difference_of_each_user() -> None:
    better = np.array([[0, 0], [5, 0], [0, 1], [99, 0], [25, 0]])
    found = gains([better], [RANKS], CASES)
    moved = found["metrics"]["recall@20"]
    assert (moved["improved"], moved["harmed"]) == (0.2, 0.2)
    assert (moved["mean"], moved["mean_improvement"], moved["mean_harm"]) == (0, 1, -1)
    assert list(moved["quantiles"]) == [str(q) for q in QUANTILES]
    assert moved["quantiles"]["0.5"] == 0
    own = per_user(better, CASES, "ndcg@20") - per_user(RANKS, CASES, "ndcg@20")
    number = found["metrics"]["ndcg@20"]
    assert number["mean"] == pytest.approx(own.mean())
    assert number["low"] <= number["mean"] <= number["high"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_nobody_gains_over_himself() -> None:
    found = gains([RANKS, RANKS + 1], [RANKS + 1, RANKS], CASES)["metrics"]
    assert all(
        each["mean"] == each["improved"] == each["harmed"] == each["high"] == 0 for each in found.values()
    )


def test_what_cannot_be_sliced_is_refused() -> None:
    with pytest.raises(RecipeError, match="no slices by 'length'; there are target frequency"):
        slices([RANKS], CASES, "length")
    with pytest.raises(ProtocolError, match="each of 5 cases, and some; 5, 4 came"):
        slices([RANKS, RANKS[:4]], CASES, "cold")
    with pytest.raises(ProtocolError, match="each of 0 cases"):
        slices([RANKS[:0]], CASES[:0], "cold")
