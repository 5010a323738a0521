"""Seeds of a setting stand together, intervals say what they are over, and nothing is mixed."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from twoview.error import ProtocolError
from twoview.evaluate.compare import Entry, bootstrap_interval, comparison, settings, t_interval, table
from twoview.evaluate.metrics import metrics
from twoview.evaluate.protocol import Card

N_USERS = 60
CASES = np.stack([np.arange(N_USERS)] * 4, axis=1)
CARD = Card(
    protocol="leave-one-out",
    split="test",
    candidates=100,
    seen="removed",
    users=N_USERS,
    cases=N_USERS,
    repeated=0.0,
    untrained=0.0,
    left_out={},
    seeds=[0],
)


def entry(name: str, seed: int = 0, *, worst: int = 40) -> Entry:
    above = np.random.default_rng(seed).integers(worst, size=N_USERS)
    ranks = np.stack([above, np.zeros_like(above)], axis=1)
    card = replace(CARD, seeds=[seed])
    return Entry(name=name, model=name, seed=seed, card=card, data_md5="d", ranks=ranks, cases=CASES)


def test_seeds_of_a_setting_are_one_row() -> None:
    runs = [entry("a", seed) for seed in (2, 0, 1)]
    (row,) = comparison(runs)["rows"]
    own = [metrics(run.ranks, run.cases)["ndcg@20"] for run in runs]
    assert (row["name"], row["seeds"], row["interval"]) == ("a", [0, 1, 2], "t over 3 seeds")
    assert row["metrics"]["ndcg@20"]["mean"] == pytest.approx(np.mean(own))
    assert row["metrics"]["ndcg@20"]["spread"] == pytest.approx(np.std(own, ddof=1))


def test_a_single_seed_has_no_spread_and_an_interval_over_users() -> None:
    (row,) = comparison([entry("a")])["rows"]
    number = row["metrics"]["recall@20"]
    assert row["interval"] == "bootstrap over 60 users"
    assert number["spread"] is None
    assert number["low"] < number["mean"] < number["high"]


def test_the_interval_over_seeds_is_students() -> None:
    low, high = t_interval(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    assert low == pytest.approx([2 - 2.484138, 5])  # 4.302653 (the table's t for two degrees) / sqrt(3)
    assert high == pytest.approx([2 + 2.484138, 5])


def test_the_interval_over_users_is_as_wide_as_theirs_would_be() -> None:
    values = np.random.default_rng(1).random((900, 2))
    low, high = bootstrap_interval(values)
    wanted = 2 * 1.96 * values.std(0) / np.sqrt(900)
    assert high - low == pytest.approx(wanted, rel=0.12)
    assert (high + low) / 2 == pytest.approx(values.mean(0), abs=0.1 * wanted.min())


def test_the_best_comes_first() -> None:
    rows = comparison([entry("worse", worst=90), entry("best", worst=3), entry("good", worst=30)])["rows"]
    assert [row["name"] for row in rows] == ["best", "good", "worse"]


def test_two_models_of_one_name_are_two_settings() -> None:
    assert len(settings([entry("a"), replace(entry("a"), model="b")])) == 2


def test_values_stand_by_seed_and_user() -> None:
    (setting,) = settings([entry("a", 1), entry("a", 0)])
    wanted = [(entry("a", seed).ranks[:, 0] < 20).astype(float) for seed in (0, 1)]
    assert setting.values("recall@20").tolist() == np.stack(wanted).tolist()


def test_a_comparison_is_plain_json_and_the_same_every_time() -> None:
    runs = [entry("a"), entry("b", 0), entry("b", 1)]
    compared = comparison(runs)
    assert json.loads(json.dumps(compared)) == compared == comparison(runs)
    assert compared["protocol"]["seeds"] == [0, 1]


def test_the_table_shows_every_setting_with_its_interval_and_the_protocol() -> None:
    page = Console(file=io.StringIO(), width=180)
    page.print(table(comparison([entry("one"), entry("two", 0), entry("two", 1)])))
    shown = page.file.getvalue()
    for each in (
        "one",
        "two",
        "ndcg@20",
        "±",
        "t over 2 seeds",
        "bootstrap over 60 users",
        "leave-one-out, test",
    ):
        assert each in shown


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (
            {"card": replace(CARD, seen="kept")},
            r"seen is 'removed' in a \(seed 0\) and 'kept' in b \(seed 1\)",
        ),
        ({"card": replace(CARD, split="valid")}, "split is 'test' in a .* and 'valid' in b"),
        ({"data_md5": "e"}, "saw data d and .* e; one was wanted"),
        ({"cases": CASES[::-1]}, "asked different cases"),
        ({"name": "a", "model": "a", "seed": 0}, r"a \(seed 0\) came twice"),
    ],
)
def test_what_must_not_meet_is_refused(other, line: str) -> None:
    with pytest.raises(ProtocolError, match=line):
        comparison([entry("a"), replace(entry("b", 1), **other)])


def test_no_runs_are_refused() -> None:
    with pytest.raises(ProtocolError, match="compare wants runs; none came"):
        comparison([])
