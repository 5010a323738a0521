"""The card counts what it says, and two ways of counting are told apart."""

import json
from dataclasses import asdict, fields, replace

import numpy as np
import pytest

from twoview.data.log import Log
from twoview.data.split import everything, leave_one_out
from twoview.error import ProtocolError
from twoview.evaluate.protocol import CONVENTIONS, Card, card, refuse_mixed, repeats

HISTORIES = [[0, 1, 0], [1, 2, 1, 2, 1], [0, 1, 2, 3], [4, 4], [1]]
OTHER = {
    "protocol": "temporal",
    "split": "valid",
    "candidates": 9,
    "seen": "kept",
    "ties": "first",
    "convention": "recbole",
    "users": 9,
    "cases": 9,
    "repeated": 0.9,
    "untrained": 0.9,
    "left_out": {},
}


def log() -> Log:
    return Log(
        offsets=np.cumsum([0, *map(len, HISTORIES)]),
        items=np.array([item for history in HISTORIES for item in history], dtype=np.int32),
        times=None,
        user_ids=list("abcde"),
        item_ids=list("vwxyz"),
    )


def this_card() -> Card:
    return card(leave_one_out(log()), "test", seen="removed", seeds=[0, 1])


def test_the_card_counts_cases_targets_and_what_was_left_out() -> None:
    assert asdict(this_card()) == {
        "protocol": "leave-one-out",
        "split": "test",
        "candidates": 5,
        "seen": "removed",
        "ties": "shared",
        "convention": "ours",
        "users": 3,
        "cases": 3,
        "repeated": 2 / 3,
        "untrained": 1 / 3,
        "left_out": {"users with fewer than three events": 2},
        "seeds": [0, 1],
    }


def test_a_repeat_is_an_item_its_own_user_met_before() -> None:
    parts = leave_one_out(log())
    assert repeats(parts.test).tolist() == [True, True, False]
    assert repeats(parts.valid).tolist() == [False, True, False]


def test_the_printed_card_says_all_that_it_holds() -> None:
    text = "\n".join(this_card().lines())
    for each in (
        "leave-one-out, test",
        "all 5 items",
        "removed",
        "shared",
        "3 users, 3 cases",
        "66.67%",
        "33.33%",
    ):
        assert each in text
    assert "2 users with fewer than three events" in text
    assert "seeds       0, 1" in text


def test_nothing_left_out_is_said_in_a_word() -> None:
    assert "left out    nothing" in replace(this_card(), left_out={"later events": 0}).lines()


def test_a_card_of_another_convention_says_whose_it_is_and_what_that_does() -> None:
    for name, told in CONVENTIONS.items():
        text = "\n".join(replace(this_card(), convention=name).lines())
        assert (f"counted as  {name}, never beside ours: {told}" in text) == (name != "ours")


def test_a_card_survives_json() -> None:
    assert Card(**json.loads(json.dumps(asdict(this_card())))) == this_card()


def test_seeds_do_not_make_another_protocol() -> None:
    refuse_mixed({"a": this_card(), "b": replace(this_card(), seeds=[7])})
    assert this_card() == replace(this_card(), seeds=[7])


@pytest.mark.parametrize("name", [each.name for each in fields(Card) if each.name != "seeds"])
def test_cards_that_count_differently_are_refused_a_common_table(name: str) -> None:
    other = replace(this_card(), **{name: OTHER[name]})
    assert other != this_card()
    with pytest.raises(ProtocolError, match=rf"{name} is .* in ours and .* in theirs"):
        refuse_mixed({"ours": this_card(), "again": this_card(), "theirs": other})


def test_a_split_that_asks_nothing_has_no_card() -> None:
    with pytest.raises(ProtocolError, match="all asks nothing in test"):
        card(everything(log()), "test", seen="removed", seeds=[0])


def test_a_misspelt_split_is_told_which_exist() -> None:
    with pytest.raises(ProtocolError, match="no split 'tset'; there are valid, test"):
        card(leave_one_out(log()), "tset", seen="removed", seeds=[0])
