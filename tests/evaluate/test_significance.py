"""Every test against its own theory: all signs, all deals, known tables, and how often it is wrong."""

from dataclasses import astuple
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from twoview.evaluate.compare import tail
from twoview.evaluate.significance import (
    Estimate,
    bootstrap,
    crossed,
    effect,
    flipped,
    holm,
    paired,
    relabelled,
    welch,
)

#                seeds of one setting by users
TABLE = np.array([[5, 3, 8, 1, 7, 4], [7, 4, 9, 4, 6, 6], [4, 1, 6, 0, 5, 3], [6, 6, 7, 2, 9, 4]]) / 10
OTHER = np.array([[3, 3, 6, 1, 4, 2], [5, 2, 7, 3, 5, 5], [2, 2, 5, 0, 4, 1]]) / 10


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_few_differences_try_every_sign() -> None:
    moves = [3.0, -1.0, 2.0, 2.0, 0.0, 0.0]
    sums = [abs(np.dot(signs, moves)) for signs in product((1, -1), repeat=6)]
    assert flipped(column(*moves)) == pytest.approx([np.mean(np.array(sums) >= 6)])
    assert flipped(column(1.0, 1.0, 1.0, 1.0, 1.0)) == pytest.approx([2 / 32])


def test_nobody_who_moves_is_no_evidence() -> None:
    assert flipped(np.zeros((50, 2))).tolist() == [1, 1]


def test_many_flips_agree_with_the_normal_law() -> None:
    draw = np.random.default_rng(0)
    differences = draw.normal([0.0, 0.03, 0.06, 0.3], 1.0, (900, 4))
    z = differences.sum(0) / np.sqrt((differences**2).sum(0))
    assert flipped(differences) == pytest.approx(2 * stats.norm.sf(np.abs(z)), abs=0.015)
    assert flipped(differences)[3] == 1 / 10_001  # the observed signs are among those tried


def test_the_sums_of_whole_numbers_tie_with_the_observed_one() -> None:
    ones = np.concatenate([np.ones((60, 1)), -np.ones((40, 1))])
    wanted = stats.binomtest(60, 100).pvalue
    assert flipped(ones * 0.1) == pytest.approx([wanted], abs=0.01)


def test_equal_settings_are_called_different_one_time_in_twenty() -> None:
    differences = np.random.default_rng(1).normal(size=(40, 600))
    assert np.mean(flipped(differences) < 0.05) == pytest.approx(0.05, abs=0.02)


def test_tests_are_the_same_every_time_and_for_every_other_question_asked() -> None:
    differences = np.random.default_rng(2).normal(size=(300, 3))
    assert flipped(differences).tolist() == flipped(differences).tolist()
    assert flipped(differences)[0] == flipped(differences[:, :1])[0]
    assert np.array_equal(bootstrap(differences, 0.95), bootstrap(differences, 0.95))


def test_few_runs_are_dealt_in_every_way() -> None:
    a, b = [5.0, 6.0, 8.0], [1.0, 2.0, 7.0, 3.0]
    gaps = [
        abs(np.mean([(a + b)[i] for i in hand]) - np.mean([(a + b)[i] for i in range(7) if i not in hand]))
        for hand in combinations(range(7), 3)
    ]
    wanted = np.mean(np.array(gaps) >= np.mean(a) - np.mean(b) - 1e-12)
    assert relabelled(column(*a), column(*b)) == pytest.approx([wanted])


def test_many_runs_are_dealt_at_random() -> None:
    draw = np.random.default_rng(3)
    a, b = draw.normal(0.6, 1, (12, 1)), draw.normal(0, 1, (12, 1))
    wanted = stats.ttest_ind(a, b).pvalue
    assert relabelled(a, b) == pytest.approx(wanted, abs=0.02)


def test_the_interval_over_users_is_as_wide_as_theirs_would_be() -> None:
    values = np.random.default_rng(1).random((900, 2))
    low, high = bootstrap(values, 0.95)
    wanted = 2 * 1.96 * values.std(0) / np.sqrt(900)
    assert high - low == pytest.approx(wanted, rel=0.12)
    assert (high + low) / 2 == pytest.approx(values.mean(0), abs=0.1 * wanted.min())


def test_students_tests_are_those_of_scipy() -> None:
    a, b = TABLE.mean(1), OTHER.mean(1)
    assert tail(paired(a - 0.4)) == pytest.approx(stats.ttest_1samp(a, 0.4).pvalue)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    ours = welch(a, b)
    assert tail(ours) == pytest.approx(theirs.pvalue)
    assert ours.freedom == pytest.approx(theirs.df)


def test_what_never_varies_is_certain_or_nothing() -> None:
    assert tail(paired(np.full(4, 0.25))) == 0
    assert tail(Estimate(0.0, 0.0, 3)) == 1


def test_users_and_seeds_at_once_are_what_restricted_likelihood_finds() -> None:
    known = crossed(TABLE.mean(0), [TABLE])
    assert known.mean == pytest.approx(0.4875)
    assert known.error == pytest.approx(0.10588581374, abs=1e-9)  # statsmodels 0.15.0, MixedLM, crossed
    assert 3 < known.freedom < 15  # between the seeds' degrees and those of the rest


def test_without_seeds_only_users_vary() -> None:
    known = crossed(TABLE[0], [])
    assert astuple(known) == pytest.approx(astuple(paired(TABLE[0])))


def test_seeds_that_differ_by_nothing_add_nothing() -> None:
    alike = np.repeat(TABLE[:1], 3, axis=0)
    known = crossed(alike.mean(0), [alike])
    assert astuple(known) == pytest.approx(astuple(paired(TABLE[0])))


def test_two_settings_with_seeds_of_their_own_add_both_spreads() -> None:
    difference = TABLE.mean(0) - OTHER.mean(0)
    alone = crossed(difference, []).error ** 2
    spreads = sum(
        crossed(table.mean(0), [table]).error ** 2 - crossed(table.mean(0), []).error ** 2
        for table in (TABLE, OTHER)
    )
    assert crossed(difference, [TABLE, OTHER]).error ** 2 == pytest.approx(alone + spreads)


@pytest.mark.parametrize("own_seeds", [False, True])
def test_users_and_seeds_at_once_are_wrong_one_time_in_twenty(own_seeds: bool) -> None:
    draw, wrong, n = np.random.default_rng(4), 0, 500
    for _ in range(n):
        users = draw.normal(0, 0.5, (1, 80))
        a, b = (draw.normal(0, 0.1, (s, 1)) + users + draw.normal(0, 0.4, (s, 80)) for s in (5, 4))
        tables = [a, b] if own_seeds else [a[:4] - b]
        difference = a.mean(0) - b.mean(0) if own_seeds else tables[0].mean(0)
        wrong += tail(crossed(difference, tables)) < 0.05
    assert 0.02 < wrong / n < 0.09
    by_users = [tail(crossed(draw.normal(0, 0.1) + draw.normal(0, 0.2, 80), [])) < 0.05 for _ in range(n)]
    assert np.mean(by_users) > 0.5  # what users alone would have said of two lucky seeds


def test_holm_raises_each_chance_by_the_questions_still_open() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.02], 2) == pytest.approx([0.4, 0.04])
    assert holm([0.9, 0.6], 2) == [1, 1]


def test_questions_that_are_not_listed_count_in_the_family() -> None:
    whole = holm([0.001, 0.02, 1, 1, 1, 1], 6)
    assert holm([0.001, 0.02], 6) == whole[:2]
    assert whole[:2] == pytest.approx([0.006, 0.1])


def test_the_size_of_an_effect_is_in_the_users_own_deviations() -> None:
    assert effect(np.array([1.0, 2.0, 3.0])) == pytest.approx(2)
    assert effect(np.zeros(3)) == 0
