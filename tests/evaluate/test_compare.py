"""Seeds of a setting stand together, intervals say what they are over, and nothing is mixed."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from twoview.error import ProtocolError
from twoview.evaluate.compare import Entry, comparison, settings, t_interval
from twoview.evaluate.metrics import metrics
from twoview.evaluate.protocol import Card
from twoview.evaluate.wording import chance, lines, says

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


def printed(compared: dict) -> str:
    page = Console(file=io.StringIO(), width=180)
    for line in lines(compared):
        page.print(line, soft_wrap=isinstance(line, str))
    return page.file.getvalue()


def test_what_is_printed_has_every_setting_every_pair_and_the_protocol() -> None:
    shown = printed(comparison([entry("one"), entry("two", 0), entry("two", 1)]))
    for each in (
        "one",
        "two",
        "ndcg@20",
        "±",
        "t over 2 seeds",
        "bootstrap over 60 users",
        "leave-one-out, test",
        "4 questions: 1 pairs, 4 metrics",
        "10,000 flips of sign",
    ):
        assert each in shown


def test_a_pair_is_asked_about_in_every_metric_shown() -> None:
    questions = comparison([entry("good", worst=5), entry("bad", worst=90)])["questions"]
    assert [each["metric"] for each in questions] == ["recall@20", "ndcg@20", "recall@40", "ndcg@40"]
    assert {(each["a"], each["b"]) for each in questions} == {("good", "bad")}


def test_a_difference_is_that_of_the_means_and_its_interval_lies_around_it() -> None:
    for runs in (
        [entry("a", worst=9), entry("b", 1)],
        [entry(name, seed, worst=w) for name, w in (("a", 9), ("b", 40)) for seed in (0, 1, 2)],
    ):
        compared = comparison(runs)
        means = [row["metrics"]["ndcg@20"]["mean"] for row in compared["rows"]]
        asked = next(each for each in compared["questions"] if each["metric"] == "ndcg@20")
        assert asked["difference"] == pytest.approx(means[0] - means[1])
        assert asked["relative"] == pytest.approx(means[0] / means[1] - 1)
        assert asked["low"] < asked["difference"] < asked["high"]


def test_seeds_count_only_where_both_settings_have_several() -> None:
    several = [entry("a", seed) for seed in (0, 1)]
    (alone, *_) = comparison([*several, entry("b")])["questions"]
    assert (alone["over"], alone["seeds"], alone["both"]) == ("users", None, None)
    assert alone["p"] == alone["users"]["p"]
    (paired, *_) = comparison([*several, entry("b"), entry("b", 1)])["questions"]
    assert (paired["over"], paired["seeds"]["how"]) == ("users and seeds", "paired t")
    assert paired["p"] == paired["both"]["p"]
    (apart, *_) = comparison([*several, entry("b", 5), entry("b", 6), entry("b", 7)])["questions"]
    assert apart["seeds"]["how"] == "Welch"
    assert apart["seeds"]["exact_p"] >= 1 / 10  # ten ways to deal two of five runs


def test_who_picks_the_best_has_looked_at_every_pair() -> None:
    compared = comparison([entry(name, worst=w) for name, w in zip("abcde", (3, 9, 27, 50, 90), strict=True)])
    assert {each["a"] for each in compared["questions"]} == {"a"}
    assert len(compared["questions"]) == 4 * 4
    assert compared["family"] == {
        "pairs": 10,
        "metrics": ["recall@20", "ndcg@20", "recall@40", "ndcg@40"],
        "questions": 40,
    }
    least = min(each["p"] for each in compared["questions"])
    assert min(each["holm"] for each in compared["questions"]) == pytest.approx(min(1, 40 * least))


def test_three_settings_are_compared_pair_by_pair() -> None:
    compared = comparison([entry(name, worst=w) for name, w in zip("abc", (3, 9, 27), strict=True)])
    pairs = {(each["a"], each["b"]) for each in compared["questions"]}
    assert pairs == {("a", "b"), ("a", "c"), ("b", "c")}
    assert compared["family"]["questions"] == 12


def test_a_setting_named_beforehand_is_compared_with_the_others_alone() -> None:
    runs = [entry(name, worst=w) for name, w in zip("abcd", (3, 9, 27, 90), strict=True)]
    compared = comparison(runs, "c")
    assert [each["a"] for each in compared["questions"][::4]] == ["a", "b", "d"]
    assert {each["b"] for each in compared["questions"]} == {"c"}
    assert compared["family"]["questions"] == 12
    with pytest.raises(ProtocolError, match="no setting 'e' to compare against; there are a, b, c, d"):
        comparison(runs, "e")


def test_a_setting_is_level_with_itself_and_nothing_is_shown() -> None:
    for seeds in ((0,), (0, 1, 2)):
        runs = [entry("a", seed) for seed in seeds]
        compared = comparison([*runs, *(replace(run, name="b") for run in runs)])
        for each in compared["questions"]:
            assert (each["difference"], each["d_z"], each["p"], each["holm"]) == (0, 0, 1, 1)
            assert not each["shown"]
            assert says(each).startswith("a level with b in ")


def test_what_is_far_apart_is_shown_and_what_is_near_is_not() -> None:
    far = comparison(
        [entry("a", s, worst=3) for s in range(4)] + [entry("b", s, worst=400) for s in range(4)]
    )
    assert all(each["shown"] for each in far["questions"])
    near = comparison([entry("a", s) for s in range(4)] + [entry("b", s) for s in range(4, 8)])
    assert not any(each["shown"] for each in near["questions"])


def test_the_smallest_difference_is_one_that_is_shown_four_times_in_five() -> None:
    draw, n_shown, n = np.random.default_rng(0), 0, 150
    (asked, *_) = comparison([entry("a"), entry("b", 1)])["questions"]
    error = asked["smallest"] / 2.849  # Student's .975 and .8 quantiles with 59 degrees, summed
    for _ in range(n):
        differences = draw.normal(asked["smallest"], error * np.sqrt(N_USERS), (N_USERS, 1))
        t = differences.mean() / (differences.std(ddof=1) / np.sqrt(N_USERS))
        n_shown += abs(t) > 2.001
    assert 0.7 < n_shown / n < 0.9


def test_a_comparison_holds_no_number_that_json_does_not_know() -> None:
    nothing = entry("a", worst=1)
    lost = replace(entry("b"), ranks=nothing.ranks + np.array([90, 0]))
    compared = comparison([nothing, lost])
    assert json.loads(json.dumps(compared, allow_nan=False)) == compared
    assert {each["relative"] for each in compared["questions"]} == {None}
    assert "a above b from nothing in ndcg@20" in printed(compared)


def test_one_user_is_too_few_for_a_test() -> None:
    runs = [replace(entry(name), ranks=entry(name).ranks[:1], cases=CASES[:1]) for name in "ab"]
    with pytest.raises(ProtocolError, match="a test wants two users or more; 1 came"):
        comparison(runs)


@pytest.mark.parametrize(
    ("p", "wanted"),
    [(1.0, "1.00"), (0.034, ".03"), (0.0099, ".010"), (0.00023, ".0002"), (1e-5, "<.0001"), (None, "-")],
)
def test_a_chance_is_two_digits_and_never_nought(p, wanted: str) -> None:
    assert chance(p) == wanted


def test_the_sentence_says_who_by_how_much_how_sure_and_whether_it_is_shown() -> None:
    each = {
        "a": "contrastvae", "b": "sasrec", "metric": "ndcg@20", "difference": 0.001, "relative": 0.012,
        "p": 0.03, "holm": 0.09, "over": "users and seeds", "shown": False,
    }  # fmt: skip
    said = "contrastvae above sasrec by 1.2% in ndcg@20 (p = .03 over users and seeds, Holm .09): not shown"
    assert says(each) == said
    assert says(each | {"relative": 46.9}).startswith("contrastvae above sasrec 47.9-fold in ndcg@20")
    below = says(each | {"difference": -0.001, "relative": -0.012, "over": "users", "shown": True})
    assert below.startswith("contrastvae below sasrec by 1.2%") and "shown for these very runs" in below


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
