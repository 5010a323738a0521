"""Whether a decoder listens: whose latents stand in for whose."""

import numpy as np
import pytest
import torch

from twoview.analyse.decoder import Shuffled, lent, without
from twoview.data.layout import Columns, shown
from twoview.types import History

LENGTHS = [3, 1, 4, 2, 5]


def histories(lengths: list[int] = LENGTHS) -> History:
    """Histories packed into shared rows, all their events numbered."""
    ends = np.cumsum(lengths)
    columns = Columns(np.arange(ends[-1], dtype=np.int32), None, torch.device("cpu"))
    return shown(columns, ends - np.array(lengths), ends, np.full(len(lengths), -1), max_len=5)


def test_every_place_has_a_latent_of_one_other_history() -> None:
    history = histories()
    place = lent(history, torch.Generator().manual_seed(3))
    lender = history.owner.flatten()[place]
    for owner in range(len(LENGTHS)):
        whose = set(lender[history.owner == owner].tolist())
        assert len(whose) == 1 and whose.isdisjoint({owner, -1})
    newest = lender.flatten()[history.newest]
    assert sorted(newest.tolist()) == list(range(len(LENGTHS)))  # each lends once


def test_the_newest_place_has_the_newest_latent_of_the_other() -> None:
    history = histories()
    place = lent(history, torch.Generator().manual_seed(0)).flatten()[history.newest]
    assert set(place.tolist()) == set(history.newest.tolist())


def test_two_histories_change_places() -> None:
    history = histories([2, 2])
    mean = history.items[..., None].float()
    shuffled, _ = Shuffled()((mean, mean), history)
    assert shuffled[history.real].flatten().tolist() == [2, 3, 0, 1]


def test_no_latent_is_zero_and_certain() -> None:
    history = histories([2])
    mean, log_var = without((torch.ones(1, 2, 3), torch.ones(1, 2, 3)), history)
    assert float(mean.abs().sum()) == 0 == float((0.5 * log_var).exp().sum())


def test_shuffling_is_the_same_for_one_seed_and_another_for_the_next() -> None:
    history = histories([1] * 20)
    places = [lent(history, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(places[0], places[1]) and not torch.equal(places[0], places[2])


@pytest.mark.parametrize("n", [2, 3, 9])
def test_nobody_keeps_their_own_latent(n: int) -> None:
    history = histories([1] * n)
    for seed in range(20):
        place = lent(history, torch.Generator().manual_seed(seed)).flatten()[history.newest]
        assert bool((place != history.newest).all())
