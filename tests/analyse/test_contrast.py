"""The contrast of known pairs, scored as the objective of a run scores them."""

import math

import pytest
import torch
from torch import Tensor

from twoview.analyse.contrast import contrast, contrast_of, fades, newest_items, next_items, shared
from twoview.analyse.step import Step, pull, pulling
from twoview.data.layout import pack
from twoview.error import ProtocolError
from twoview.objectives import objective
from twoview.types import Batch

ITEMS = torch.tensor([[1, 2], [5, 2], [3, 0], [4, 2]])
NEXT = torch.tensor([7, 8, 7, -1])


def batch() -> Batch:
    """Four histories; the newest item of three is 2, two are followed by a 7."""
    history = pack(ITEMS, torch.tensor([2, 2, 1, 2]))
    targets = torch.full((4, 2), -1).flatten().index_put((history.newest,), NEXT).view(4, 2)
    return Batch(history=history, targets=targets)


def taken(a: Tensor, b: Tensor) -> Step:
    return Step(batch(), {}, {}, [(a, b)])


def pairs(n: int = 6, dim: int = 4) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(n, dim, generator=draw), torch.randn(n, dim, generator=draw)


@pytest.mark.parametrize("name", ["nt_xent", "dcl", "info_nce"])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_scores_are_those_the_objective_used(name: str, similarity: str) -> None:
    a, b = pairs()
    own = objective(name, temperature=0.3, similarity=similarity)
    scored = contrast_of(own, a, b)
    assert scored is not None
    value = scored.margin if name == "dcl" else torch.nn.functional.softplus(scored.margin)
    assert float(value.mean()) == pytest.approx(float(own(a, b)), rel=1e-5)


def test_a_queue_is_scored_as_it_stands() -> None:
    a, b = pairs()
    own = objective("moco", dim=4, n_keys=16)
    scored = contrast_of(own, a, b)
    assert scored is not None and scored.scores.shape == (6, 16)
    value = torch.nn.functional.softplus(scored.margin).mean()
    assert float(value) == pytest.approx(float(own(a, b)), rel=1e-5)


@pytest.mark.parametrize("name", ["vicreg", "barlow_twins", "align_uniform", "direct_au"])
def test_objectives_without_a_temperature_have_no_negatives_to_weigh(name: str) -> None:
    found = contrast(objective(name), [taken(*pairs())])
    assert found is not None and found["negatives"] is None and found["alignment"] > 0


@pytest.mark.parametrize(
    ("name", "settings", "faded"),
    [
        ("nt_xent", {}, True),
        ("info_nce", {}, True),
        ("dcl", {}, False),
        ("dclw", {}, False),
        ("flat_nce", {}, False),
        ("flat_nce", {"with_positive": True}, True),
        ("moco", {}, True),
    ],
)
def test_a_gradient_fades_unless_it_is_that_of_the_margin(name: str, settings: dict, faded: bool) -> None:
    assert fades(objective(name, dim=4, **settings)) == faded


def test_equal_rows_tell_nothing_and_weigh_the_same() -> None:
    found = contrast(objective("nt_xent"), [taken(torch.ones(4, 3), torch.ones(4, 3))])
    assert found is not None
    negatives = found["negatives"]
    assert negatives["each"] == 6 == pytest.approx(negatives["effective"])
    assert negatives["ess"] == pytest.approx(1)
    assert negatives["one_minus_p"] == pytest.approx(6 / 7)
    assert negatives["saturation"] == pytest.approx(0, abs=1e-6)
    assert found["alignment"] == 0 and found["uniformity"] == pytest.approx(0, abs=1e-6)
    assert found["effective_rank"] == pytest.approx(1, abs=1e-6)


def test_orthogonal_pairs_at_a_low_temperature_use_log_k_up() -> None:
    found = contrast(objective("nt_xent", temperature=0.01), [taken(torch.eye(4), torch.eye(4))])
    assert found is not None
    assert found["negatives"]["saturation"] == pytest.approx(1)
    assert found["negatives"]["information"] == pytest.approx(math.log(7))
    assert found["negatives"]["one_minus_p"] == pytest.approx(0, abs=1e-6)
    assert found["uniformity"] == pytest.approx(-4) and found["effective_rank"] == pytest.approx(4)


def test_pairs_that_share_an_item_are_counted_as_false_negatives() -> None:
    found = contrast(objective("nt_xent"), [taken(*pairs(4))])
    assert found is not None
    assert found["false_negatives"]["same_next_item"] == pytest.approx(1 / 6)  # the two 7s
    assert found["false_negatives"]["same_newest_item"] == pytest.approx(3 / 6)  # the three 2s
    assert found["false_negatives"]["same_user"] == 0  # strangers are nobody


def test_the_newest_place_is_where_items_are_read() -> None:
    assert newest_items(batch()).tolist() == [2, 2, 3, 2] and next_items(batch()).tolist() == NEXT.tolist()


def test_what_is_not_known_equals_nothing() -> None:
    assert float(shared(torch.tensor([-1, -1, -1]))) == 0 and float(shared(torch.tensor([4, 4, 4]))) == 1


def test_a_run_without_pairs_has_no_contrast_and_one_pair_is_refused() -> None:
    assert contrast(objective("nt_xent"), []) is None
    with pytest.raises(ProtocolError, match="two histories in a step"):
        contrast(objective("nt_xent"), [taken(torch.ones(1, 3), torch.ones(1, 3))])


def test_a_pull_is_the_norm_of_a_terms_own_gradient() -> None:
    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    other = torch.nn.Parameter(torch.tensor(1.0))
    assert pull(weight.square().sum(), [weight, other]) == pytest.approx(10)
    assert pull(torch.tensor(1.0), [weight]) == 0


def test_shares_of_the_gradient_sum_to_one() -> None:
    both = [
        Step(batch(), {"likelihood": 2.0, "kl": 1.0}, {"likelihood": 3.0, "kl": 1.0}, []),
        Step(batch(), {"likelihood": 4.0, "kl": 0.0}, {"likelihood": 3.0, "kl": 1.0}, []),
    ]
    found = pulling(both)
    assert found["likelihood"] == {"value": 3.0, "gradient_share": 0.75}
    assert found["kl"] == {"value": 0.5, "gradient_share": 0.25}
    assert pulling([]) == {}
