"""Metrics by hand, by the law of ties, and by an outside oracle."""

from itertools import chain

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twoview.error import ProtocolError, RecipeError
from twoview.evaluate.metrics import CUTOFFS, METRICS, means, metrics, mrr, per_user, plainly, worth

#                  first   fifth   first or second   beyond    9th to 12th   a user of two cases
SIX = np.array([[0, 0], [4, 0], [0, 1], [40, 0], [8, 3], [0, 0], [19, 0]])
USERS = np.array([0, 1, 2, 3, 4, 5, 5])
CASES = np.stack([USERS, *np.zeros((3, 7), dtype=np.int64)], axis=1)

some_ranks = st.lists(
    st.tuples(st.integers(0, 44), st.integers(0, 44)).filter(lambda r: sum(r) < 45), min_size=1
)


def one_each(n_cases: int) -> np.ndarray:
    return np.stack([np.arange(n_cases)] * 4, axis=1)


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        ("recall@1", [1, 0, 0.5, 0, 0, 0.5]),
        ("recall@5", [1, 1, 1, 0, 0, 0.5]),
        ("recall@10", [1, 1, 1, 0, 0.5, 0.5]),
        ("recall@20", [1, 1, 1, 0, 1, 1]),
        ("recall@40", [1, 1, 1, 0, 1, 1]),
        ("ndcg@1", [1, 0, 0.5, 0, 0, 0.5]),
        ("ndcg@5", [1, 0.386853, 0.815465, 0, 0, 0.5]),
        ("ndcg@10", [1, 0.386853, 0.815465, 0, 0.147524, 0.5]),
        ("ndcg@20", [1, 0.386853, 0.815465, 0, 0.284818, 0.613835]),
        ("ndcg@40", [1, 0.386853, 0.815465, 0, 0.284818, 0.613835]),
        ("mrr", [1, 0.2, 0.75, 0.024390, 0.096338, 0.525]),
    ],
)
def test_six_users_by_hand(metric: str, wanted: list[float]) -> None:
    assert per_user(SIX, CASES, metric) == pytest.approx(wanted, abs=1e-6)
    assert metrics(SIX, CASES)[metric] == pytest.approx(sum(wanted) / 6, abs=1e-6)


def test_there_is_recall_and_ndcg_at_five_cutoffs_and_mrr() -> None:
    wanted = {f"{name}@{k}" for name in ("recall", "ndcg") for k in (1, 5, 10, 20, 40)} | {"mrr"}
    assert set(metrics(SIX, CASES)) == wanted


@given(some_ranks)
def test_a_tied_target_gains_the_mean_of_its_places(found) -> None:
    ranks = np.array(found)
    for values in METRICS.values():
        broken = [values(np.array([[above + i, 0] for i in range(tied + 1)])).mean() for above, tied in found]
        assert values(ranks) == pytest.approx(broken, abs=1e-12)


@pytest.mark.parametrize("candidates", [1, 7, 40, 12101])
def test_constant_scores_recall_k_of_all_candidates(candidates: int) -> None:
    level = np.array([[0, candidates - 1]])
    for k in CUTOFFS:
        assert metrics(level, one_each(1))[f"recall@{k}"] == min(k, candidates) / candidates


@settings(max_examples=15)
@given(some_ranks)
def test_an_outside_oracle_agrees_on_every_breaking_of_a_tie(found) -> None:
    n_items = 45
    places = [(case, above + i) for case, (above, tied) in enumerate(found) for i in range(tied + 1)]
    targets = [ir_measures.Qrel(f"{case} {place}", f"d{place}", 1) for case, place in places]
    lists = chain.from_iterable(
        (ir_measures.ScoredDoc(f"{case} {place}", f"d{i}", float(-i)) for i in range(n_items))
        for case, place in places
    )
    theirs = {f"recall@{k}": ir_measures.R @ k for k in CUTOFFS}
    theirs |= {f"ndcg@{k}": ir_measures.nDCG @ k for k in CUTOFFS} | {"mrr": ir_measures.RR}
    values: dict[tuple[str, int], list[float]] = {}
    for each in ir_measures.iter_calc(list(theirs.values()), targets, list(lists)):
        values.setdefault((str(each.measure), int(each.query_id.split()[0])), []).append(each.value)
    for name, measure in theirs.items():
        wanted = [np.mean(values[str(measure), case]) for case in range(len(found))]
        assert METRICS[name](np.array(found)) == pytest.approx(wanted, abs=1e-9)


@given(some_ranks, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(found, random) -> None:
    order = list(range(len(found)))
    random.shuffle(order)
    ranks, cases = np.array(found), one_each(len(found)) // 2
    assert metrics(ranks[order], cases[order]) == pytest.approx(metrics(ranks, cases), abs=1e-12)


def test_a_user_of_many_cases_counts_as_one() -> None:
    ranks = np.array([[0, 0]] * 9 + [[99, 0]])
    cases = one_each(10)
    cases[:9, 0] = 5
    assert metrics(ranks, cases)["recall@20"] == 0.5


def test_a_reciprocal_place_can_be_cut_off() -> None:
    assert mrr(SIX, k=10) == pytest.approx([1, 0.2, 0.75, 0, (1 / 9 + 1 / 10) / 4, 1, 0])
    assert mrr(SIX, k=1) == pytest.approx(METRICS["recall@1"](SIX))


def test_metrics_are_the_means_of_what_each_case_is_worth() -> None:
    assert means(worth(SIX), CASES) == metrics(SIX, CASES)
    assert plainly(SIX, CASES, 50).keys() == METRICS.keys()


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(ProtocolError, match="0 and 0 came"):
        metrics(np.zeros((0, 2), dtype=np.int64), np.zeros((0, 4), dtype=np.int64))


def test_ranks_of_other_cases_are_refused() -> None:
    with pytest.raises(ProtocolError, match="7 and 3 came"):
        metrics(SIX, CASES[:3])


def test_an_unknown_metric_is_told_which_exist() -> None:
    with pytest.raises(RecipeError, match=r"no metric 'hit@20'; there are recall@1, .*, mrr"):
        per_user(SIX, CASES, "hit@20")
