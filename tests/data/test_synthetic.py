"""The synthetic logs do what their dials say: the rule is as strong as stated, and a seed is a log."""

import numpy as np
import pytest

from twoview.data.log import Log
from twoview.data.shelf import AISLES, slug
from twoview.data.synthetic import SHELF, Dials, best_hit, markov, random, shop
from twoview.error import DataError


def steps(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """Each event that has one before it, and that one: [n], [n]"""
    later = np.ones(log.n_events, dtype=bool)
    later[log.offsets[:-1]] = False
    places = np.flatnonzero(later)
    return log.items[places - 1], log.items[places]


def oracle_hit(log: Log) -> float:
    """hit@1 of the most frequent successor of each item, counted on the log itself."""
    before, after = steps(log)
    counts = np.zeros((log.n_items, log.n_items))
    np.add.at(counts, (before, after), 1)
    return float((counts.argmax(1)[before] == after).mean())


@pytest.mark.parametrize("predictability", [0.2, 0.5, 0.9, 1.0])
def test_the_best_hit_of_a_markov_log_is_the_one_stated(predictability):
    log = markov(2000, 20, 12, predictability, seed=3)
    wanted = best_hit(20, predictability)
    band = 4 * np.sqrt(wanted * (1 - wanted) / (2000 * 11))
    assert abs(oracle_hit(log) - wanted) <= band + 1e-12


def test_the_markov_rule_is_one_cycle_through_all_items():
    log = markov(1, 50, 51, 1.0, seed=0)
    assert sorted(log.items[:50].tolist()) == list(range(50)) and log.items[0] == log.items[50]


def test_a_random_log_has_no_rule():
    log = random(2000, 20, 12, seed=1)
    before, after = steps(log)
    counts = np.zeros((20, 20))
    np.add.at(counts, (before, after), 1)
    expected = counts.sum() / 400
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 399 + 4 * np.sqrt(2 * 399)


@pytest.mark.parametrize("make", [lambda s: shop(Dials(users=50, seed=s)), lambda s: markov(9, 9, 9, 0.5, s)])
def test_a_seed_is_a_log(make):
    assert make(0).arrays_md5 == make(0).arrays_md5 != make(1).arrays_md5


def share_of_rule(dials: Dials) -> float:
    before, after = steps(shop(dials))
    return float((after == (before + len(AISLES)) % SHELF).mean())


def test_predictability_is_a_dial():
    shares = [share_of_rule(Dials(users=500, predictability=p, noise=0.0)) for p in (0.0, 0.5, 0.9)]
    assert shares[0] < 0.15 and 0.4 < shares[1] < 0.65 and shares[2] > 0.8


def test_noise_reaches_beyond_a_user_s_aisles_and_without_it_nothing_does():
    for noise, most in ((0.0, 2), (0.5, len(AISLES))):
        log = shop(Dials(users=300, interests=2, noise=noise, mean_length=20))
        seen = {(u, i % len(AISLES)) for u, i in zip(log.owners.tolist(), log.items.tolist(), strict=True)}
        aisles = np.bincount([u for u, _ in seen])
        assert aisles.max() <= most and (noise == 0 or aisles.mean() > 2)


def test_skew_makes_the_first_places_of_an_aisle_popular():
    tops = []
    for skew in (0.0, 1.5):
        log = shop(Dials(users=500, skew=skew, predictability=0.0, noise=0.0))
        tops.append(float((log.items < 2 * len(AISLES)).mean()))
    assert tops[0] < 0.2 < 0.5 < tops[1]


def test_a_shop_reads_like_one():
    log = shop()
    assert log.titles is not None and log.titles[0] == "Espresso beans, dark roast"
    assert log.titles[len(AISLES)] == "Paper filters" and log.item_ids[len(AISLES)] == "paper-filters"
    assert log.user_ids[0] == "ada-1" and len(set(log.user_ids)) == log.n_users
    assert log.attribute_ids[0] == "coffee" and log.attributes is not None
    assert log.lengths.min() >= 3 and abs(log.lengths.mean() - 12) < 1


def test_a_large_shop_numbers_its_titles_and_ids_stay_apart():
    log = shop(Dials(users=5, items=3 * SHELF))
    assert log.titles is not None and log.titles[SHELF] == "Espresso beans, dark roast, no. 2"
    assert len(set(log.item_ids)) == 3 * SHELF == len(set(log.titles))
    assert slug(log.titles[SHELF]) == log.item_ids[SHELF] == "espresso-beans-dark-roast-no-2"


def test_the_shop_is_open_in_the_daytime():
    times = shop().times
    assert times is not None
    hours = times % 86_400 / 3600
    assert hours.min() >= 8 and hours.max() < 20.01


@pytest.mark.parametrize(
    ("dial", "value"),
    [("users", 0), ("items", 3), ("mean_length", 2), ("interests", 99), ("noise", 1.5), ("skew", -1.0)],
)
def test_a_dial_out_of_range_is_refused(dial, value):
    with pytest.raises(DataError, match="a synthetic shop wants"):
        Dials(**{dial: value})
