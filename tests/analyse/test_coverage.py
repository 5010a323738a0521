"""Coverage, Gini and novelty by hand, and of what a run really puts first."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from twoview.analyse.coverage import best, coverage, spread
from twoview.analyse.held import Held
from twoview.data.split import leave_one_out
from twoview.data.synthetic import markov
from twoview.error import ProtocolError, ScoreError
from twoview.evaluate.ranks import SEEN, Questions
from twoview.types import History

N_ITEMS = 12


class Told:
    """The same scores for everybody."""

    room = 0

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def score(self, history: History, /) -> Tensor:
        return self.scores.repeat(history.n_histories, 1)


def asked(model: Told, seen: str = "removed") -> Held:
    """A run as far as it is asked here."""
    recipe = SimpleNamespace(rows=SimpleNamespace(max_len=4))
    plan = SimpleNamespace(recipe=recipe, how=SimpleNamespace(seen=seen))
    parts = leave_one_out(markov(30, N_ITEMS, 6, 0.3, 0))
    return Held(SimpleNamespace(model=model, recommender=model, plan=plan), "test", parts.test, parts.train)


def test_one_item_for_all_covers_one_and_is_as_uneven_as_can_be() -> None:
    found = spread(np.array([9, 0, 0, 0]), np.array([2, 4, 1, 1]))
    assert found == {"coverage": 0.25, "gini": 0.75, "novelty": 2, "training_events": 2, "cold": 0}


def test_all_items_alike_are_even_and_as_novel_as_the_mean_item() -> None:
    found = spread(np.array([3, 3]), np.array([1, 3]))
    assert (found["coverage"], found["gini"]) == (1, 0)
    assert found["novelty"] == pytest.approx((2 + np.log2(4 / 3)) / 2)
    assert found["training_events"] == 2


def test_gini_is_half_the_mean_difference_of_any_two_items() -> None:
    times = np.random.default_rng(0).integers(50, size=40)
    apart = np.abs(times[:, None] - times).mean() / (2 * times.mean())
    assert spread(times, times)["gini"] == pytest.approx(apart)


def test_an_item_without_training_events_is_as_novel_as_one_with_one() -> None:
    found = spread(np.array([1, 0]), np.array([0, 8]))
    assert (found["novelty"], found["cold"], found["training_events"]) == (3, 1, 0)


def test_nothing_shown_is_nothing_covered() -> None:
    assert spread(np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)) == {
        "coverage": 0, "gini": 0, "novelty": 0, "training_events": 0, "cold": 0,
    }  # fmt: skip


@pytest.mark.parametrize("seen", list(SEEN))
def test_what_is_shown_is_what_a_sort_puts_first(seen: str) -> None:
    model = Told(torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(0)).float())
    found, wanted = coverage(asked(model, seen), (2, 5)), {2: np.zeros(N_ITEMS), 5: np.zeros(N_ITEMS)}
    cases = asked(model).cases
    for user, place, target in zip(cases.users, cases.places, cases.targets, strict=True):
        met = set(cases.log.items[cases.log.offsets[user] : place].tolist()) if seen == "removed" else set()
        open_ = [item for item in range(N_ITEMS) if item not in met - {int(target)}]
        order = sorted(open_, key=lambda item: -float(model.scores[item]))
        for k, times in wanted.items():
            times[order[:k]] += 1
    trained = np.bincount(asked(model).train.items, minlength=N_ITEMS)
    assert found["at"] == {str(k): spread(times.astype(np.int64), trained) for k, times in wanted.items()}
    assert (found["cases"], found["items"]) == (30, N_ITEMS)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_targets_themselves_stand_beside_what_is_shown() -> None:
    found = asked(Told(torch.arange(N_ITEMS).float()))
    targets = np.bincount(found.cases.targets, minlength=N_ITEMS)
    assert coverage(found, (1,))["targets"]["coverage"] == (targets > 0).mean()


def test_who_has_seen_nearly_all_is_shown_what_is_left() -> None:
    cases = leave_one_out(markov(1, 4, 40, 0.0, 0)).test
    (shown,) = best(Told(torch.arange(4).float()), Questions(cases, max_len=4), 4)
    assert shown.tolist() == [[int(cases.targets[0]), -1, -1, -1]]


def test_what_cannot_be_covered_is_refused() -> None:
    for cutoffs in ((0, 5), (13,)):
        with pytest.raises(ProtocolError, match="coverage wants cut-offs from 1 to 12"):
            coverage(asked(Told(torch.zeros(N_ITEMS))), cutoffs)
    with pytest.raises(ScoreError, match="Told wants finite scores"):
        coverage(asked(Told(torch.full((N_ITEMS,), torch.nan))), (2,))
