"""The card counts what could mislead an evaluation; each count is checked on a log counted by hand."""

import json

import numpy as np
import pytest

from twoview.data.card import card, lines
from twoview.data.log import Log
from twoview.data.synthetic import shop

DAY = 86_400
NOW = 1_700_000_000


def of(*events: tuple[str, str, int]) -> dict:
    return card(Log.from_columns(*(list(column) for column in zip(*events, strict=True))))


def warned(facts: dict, words: str) -> bool:
    return any(words in line for line in facts["warnings"])


def test_a_clean_log_has_counts_and_no_warnings():
    facts = of(*((u, i, NOW + DAY * t) for u in "abc" for t, i in enumerate("xyz")))
    assert (facts["users"], facts["items"], facts["events"]) == (3, 3, 9)
    assert facts["length"] == dict.fromkeys(("min", "q25", "median", "q75", "q95", "q99", "max"), 3) | {
        "mean": 3.0
    }
    assert facts["length_histogram"] == [{"from": 3, "to": 4, "users": 3}]
    assert (facts["first"], facts["last"]) == ("2023-11-14 22:13:20", "2023-11-16 22:13:20")
    assert facts["warnings"] == [
        "100.0% of the leave-one-out test targets are items never trained on",
    ]


def test_the_histogram_counts_every_user_once():
    facts = card(shop())
    assert sum(row["users"] for row in facts["length_histogram"]) == facts["users"]


def test_duplicates_are_counted_once_for_each_copy_beyond_the_first():
    facts = of(("a", "x", NOW), ("a", "x", NOW), ("a", "x", NOW), ("b", "x", NOW), ("a", "x", NOW + 1))
    assert (facts["duplicate_events"], facts["repeated_items"], facts["repeated_share"]) == (2, 3, 0.6)
    assert warned(facts, "2 events are exact duplicates") and warned(facts, "--seen kept")


def test_without_times_a_duplicate_is_only_a_repeat():
    facts = card(Log.from_columns(["a", "a"], ["x", "x"]))
    assert (facts["duplicate_events"], facts["repeated_items"], facts["tied_share"]) == (None, 1, None)
    assert "times: none, only an order" in lines(facts)


def test_a_tie_is_between_events_of_one_user():
    facts = of(("a", "x", NOW), ("a", "y", NOW), ("a", "z", NOW + 1), ("b", "x", NOW + 1))
    assert facts["tied_share"] == 0.5
    assert warned(facts, "50.0% of the events have the time of another")


def test_users_under_three_events_are_counted_and_a_log_of_them_alone_is_no_error():
    some = of(("a", "x", NOW), ("a", "y", NOW + 1), ("b", "x", NOW), ("b", "y", NOW + 1), ("b", "z", NOW + 2))
    assert some["users_under_three"] == 1 and warned(some, "1 of 2 users have fewer than three")
    none = of(("a", "x", NOW), ("b", "y", NOW))
    assert none["cold_test_share"] is None and warned(none, "nobody has three events")


def test_a_test_target_is_cold_when_no_training_event_names_it():
    facts = of(
        *(("a", i, NOW + t) for t, i in enumerate("xyz")),  # z is only ever a target
        *(("b", i, NOW + t) for t, i in enumerate("yzx")),  # x trains with a
        ("c", "w", NOW),
    )
    assert facts["cold_test_share"] == 0.5


def test_the_training_events_of_untested_users_warm_an_item():
    facts = of(*(("a", i, NOW + t) for t, i in enumerate("xyz")), ("b", "z", NOW))
    assert facts["cold_test_share"] == 0.0


@pytest.mark.parametrize(("year", "outside"), [(1969, 1), (1970, 0), (2100, 0), (2101, 1)])
def test_years_outside_1970_to_2100_are_a_warning(year, outside):
    seconds = int(np.datetime64(f"{year}-06-01", "s").astype(int))
    facts = of(("a", "x", seconds), ("a", "y", NOW), ("a", "z", NOW))
    assert facts["outside_years"] == outside
    assert warned(facts, "outside the years 1970 to 2100") == bool(outside)


def test_times_that_are_an_order_are_noticed():
    assert warned(of(("a", "x", 1), ("a", "y", 2), ("a", "z", 3)), "look like an order")


def test_a_year_no_calendar_has_is_shown_in_seconds():
    log = Log.from_columns(["a"], ["x"], np.array([10**15]))
    assert log.times is not None and log.times.tolist() == [10**9]
    far = Log(
        offsets=np.array([0, 1]),
        items=np.zeros(1, np.int32),
        times=np.array([10**15]),
        user_ids="a",
        item_ids="x",
    )
    assert card(far)["last"] == f"{10**15} s"


def test_an_empty_log_has_a_card():
    facts = card(Log.from_columns([], []))
    assert (facts["events"], facts["repeated_share"], facts["length"]) == (0, 0.0, {})
    assert lines(facts)[0] == "0 users, 0 items, 0 events"


def test_a_card_is_json_and_its_lines_end_with_the_warnings():
    facts = card(shop())
    assert json.loads(json.dumps(facts)) == facts
    told = lines({**facts, "notes": ["something was left out"], "warnings": ["beware"]})
    assert told[0] == "2,000 users, 192 items, 24,134 events"
    assert told[-2:] == ["note: something was left out", "warning: beware"]
