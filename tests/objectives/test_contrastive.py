"""The identities between contrastive objectives, their known values, and what half precision leaves."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from twoview.objectives import (
    Contrast,
    among,
    crowd,
    dcl,
    dclw,
    debiased,
    facing,
    flat_nce,
    hard_negative,
    info_nce,
    nt_xent,
    sup_con,
)
from twoview.objectives.contrastive import corrected
from twoview.objectives.health import information, one_minus_p

EVERYBODY = (info_nce, nt_xent, dcl, dclw, flat_nce, debiased, hard_negative, sup_con)


def pairs(n: int = 7, dim: int = 4, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    a = torch.randn(n, dim, generator=draw, dtype=torch.float64)
    return a, a + 0.5 * torch.randn(n, dim, generator=draw, dtype=torch.float64)


def slope(function: Callable[..., Tensor], *inputs: Tensor, **how: Any) -> tuple[Tensor, ...]:
    inputs = tuple(each.clone().requires_grad_() for each in inputs)
    return torch.autograd.grad(function(*inputs, **how), inputs)


def same(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-12)


def scored(own: Tensor, others: Tensor) -> Contrast:
    """A contrast out of bare scores: [A], [A, M]"""
    return Contrast(own, others, torch.ones_like(others, dtype=torch.bool))


@given(n=st.integers(2, 9), seed=st.integers(0, 10_000), temperature=st.floats(0.05, 2.0))
@settings(max_examples=25, deadline=None)
def test_the_gradient_of_flat_nce_is_that_of_dcl(n: int, seed: int, temperature: float) -> None:
    views = pairs(n, seed=seed)
    same(slope(flat_nce, *views, temperature=temperature), slope(dcl, *views, temperature=temperature))


@given(n=st.integers(2, 9), seed=st.integers(0, 10_000), temperature=st.floats(0.05, 2.0))
@settings(max_examples=25, deadline=None)
def test_the_gradient_of_flat_nce_with_the_positive_is_that_of_nt_xent(
    n: int, seed: int, temperature: float
) -> None:
    views = pairs(n, seed=seed)
    same(
        slope(flat_nce, *views, temperature=temperature, with_positive=True),
        slope(nt_xent, *views, temperature=temperature),
    )


def test_info_nce_shrinks_each_anchors_gradient_by_one_minus_p() -> None:
    draw = torch.Generator().manual_seed(0)
    own, others = torch.randn(5, generator=draw), torch.randn(5, 9, generator=draw)
    shrunk = one_minus_p(scored(own, others))
    d_own, d_others = slope(lambda s, r: F.softplus(scored(s, r).margin).sum(), own, others)
    flat_own, flat_others = slope(
        lambda s, r: torch.exp(scored(s, r).margin - scored(s, r).margin.detach()).sum(), own, others
    )
    torch.testing.assert_close(d_own, shrunk * flat_own)
    torch.testing.assert_close(d_others, shrunk[:, None] * flat_others)
    p = torch.softmax(torch.cat([own[:, None], others], 1), 1)
    torch.testing.assert_close(shrunk, 1 - p[:, 0])
    torch.testing.assert_close(d_others, p[:, 1:])


def test_the_gradient_of_dcl_is_a_weighted_mean_of_contrasts() -> None:
    draw = torch.Generator().manual_seed(1)
    own, others = torch.randn(5, generator=draw), torch.randn(5, 9, generator=draw)
    d_own, d_others = slope(lambda s, r: scored(s, r).margin.sum(), own, others)
    torch.testing.assert_close(d_own, -torch.ones(5))
    torch.testing.assert_close(d_others, torch.softmax(others, 1))


@given(n=st.integers(2, 40), seed=st.integers(0, 1000), temperature=st.sampled_from([0.01, 0.07, 0.5, 5.0]))
@settings(max_examples=40, deadline=None)
def test_flat_nce_is_exactly_one(n: int, seed: int, temperature: float) -> None:
    a, b = pairs(n, seed=seed)
    for positive in (False, True):
        value = flat_nce(a.float(), b.float(), temperature=temperature, with_positive=positive)
        assert value.item() == 1.0


def test_dcl_under_a_softplus_is_info_nce() -> None:
    contrast = crowd(*pairs())
    assert nt_xent(*pairs()) == pytest.approx(F.softplus(contrast.margin).mean().item())
    assert dcl(*pairs()) == pytest.approx(contrast.margin.mean().item())


def test_equal_scores_give_log_k_and_no_information() -> None:
    for n in (2, 8, 64):
        same_rows = torch.ones(n, 3)
        assert info_nce(same_rows, same_rows).item() == pytest.approx(math.log(n), abs=1e-6)
        assert info_nce(same_rows, same_rows, two_way=True).item() == pytest.approx(math.log(n), abs=1e-6)
        assert nt_xent(same_rows, same_rows).item() == pytest.approx(math.log(2 * n - 1), abs=1e-6)
        assert sup_con(same_rows, same_rows).item() == pytest.approx(math.log(2 * n - 1), abs=1e-6)
        assert information(facing(same_rows, same_rows)).abs().max() < 1e-5


def test_nt_xent_of_256_equal_rows_is_the_published_number() -> None:
    rows = torch.ones(256, 8)
    assert nt_xent(rows, rows).item() == pytest.approx(6.23637, abs=1e-5)


@pytest.mark.parametrize(
    ("temperature", "n", "value"),
    [(0.5, 2, 0.239545), (0.5, 4, 0.594438), (0.5, 256, 4.248795), (1.0, 256, 5.239727)],
)
def test_nt_xent_of_orthogonal_pairs_is_known(temperature: float, n: int, value: float) -> None:
    rows = torch.eye(n)
    assert nt_xent(rows, rows, temperature=temperature).item() == pytest.approx(value, abs=2e-6)


def test_nt_xent_is_cross_entropy_over_all_others() -> None:
    a, b = pairs(6)
    rows = F.normalize(torch.cat([a, b]), dim=1)
    logits = (rows @ rows.T / 0.3).masked_fill(torch.eye(12, dtype=torch.bool), -torch.inf)
    expected = F.cross_entropy(logits, torch.arange(12).roll(6))
    torch.testing.assert_close(nt_xent(a, b, temperature=0.3), expected)


def test_info_nce_of_both_ways_is_the_mean_of_each() -> None:
    a, b = pairs()
    both = (info_nce(a, b) + info_nce(b, a)) / 2
    torch.testing.assert_close(info_nce(a, b, two_way=True), both)
    assert abs(info_nce(a, b) - info_nce(b, a)) > 1e-4


def test_a_constant_added_to_all_scores_changes_nothing_and_slopes_sum_to_zero() -> None:
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(among(scores + 1e3).margin, among(scores).margin)
    (d_scores,) = slope(lambda s: F.softplus(among(s).margin).mean(), scores)
    torch.testing.assert_close(d_scores.sum(1), torch.zeros(6, dtype=torch.float64))
    expected = (torch.softmax(scores, 1) - torch.eye(6)) / 6
    torch.testing.assert_close(d_scores, expected.double())


def test_the_estimate_of_information_reaches_log_k_from_below() -> None:
    others = torch.zeros(1, 15)
    estimates = [information(scored(torch.tensor([s]), others)).item() for s in (0.0, 2.0, 5.0, 10.0, 60.0)]
    assert estimates == sorted(estimates)
    assert estimates[3] < math.log(16)
    assert estimates[-1] == pytest.approx(math.log(16))


@given(seed=st.integers(0, 1000), temperature=st.floats(0.1, 2.0), hardness=st.floats(0.0, 3.0))
@settings(max_examples=25, deadline=None)
def test_without_prior_and_hardness_the_corrected_ones_are_nt_xent(
    seed: int, temperature: float, hardness: float
) -> None:
    views = pairs(seed=seed)
    plain = slope(nt_xent, *views, temperature=temperature)
    same(slope(debiased, *views, temperature=temperature, prior=0.0), plain)
    same(slope(hard_negative, *views, temperature=temperature, prior=0.0, hardness=0.0), plain)
    same(
        slope(hard_negative, *views, temperature=temperature, hardness=0.0),
        slope(debiased, *views, temperature=temperature),
    )
    harder = hard_negative(*views, temperature=temperature, hardness=hardness)
    assert harder >= debiased(*views, temperature=temperature) - 1e-12


def test_on_its_floor_the_debiased_objective_leaves_negatives_alone() -> None:
    own = torch.tensor([4.0], dtype=torch.float64)
    others = torch.tensor([[-3.9, -4.0, -3.8]], dtype=torch.float64)

    def loss(s: Tensor, r: Tensor) -> Tensor:
        contrast = scored(s, r)
        return F.softplus(corrected(contrast, contrast.log_sum(), 0.1, floor=-4.0) - s).sum()

    d_own, d_others = slope(loss, own, others)
    assert not d_others.any()
    assert d_own < 0
    assert loss(own, others).item() == pytest.approx(math.log1p(3 * math.exp(-8.0)))


def test_a_sum_that_the_prior_uses_up_exactly_has_a_gradient() -> None:
    own, others = torch.zeros(1, dtype=torch.float64), torch.full((1, 1), math.log(0.5), dtype=torch.float64)

    def log_negatives(s: Tensor, r: Tensor) -> Tensor:
        return corrected(scored(s, r), scored(s, r).log_sum(), 0.5, floor=-2.0).sum()

    assert log_negatives(own, others) == -2
    assert all(each.isfinite().all() for each in slope(log_negatives, own, others))


def test_endless_hardness_leaves_the_hardest_negative() -> None:
    a, b = pairs(5)
    contrast = crowd(a, b)
    hardest = torch.where(contrast.rivals, contrast.scores, -torch.inf).amax(1)
    expected = F.softplus(math.log(8) + hardest - contrast.own).mean()
    torch.testing.assert_close(hard_negative(a, b, hardness=1e4, prior=0.0), expected, rtol=1e-3, atol=1e-3)


def test_sup_con_without_labels_or_with_labels_of_one_is_nt_xent() -> None:
    a, b = pairs()
    same(slope(sup_con, a, b), slope(nt_xent, a, b))
    same(slope(sup_con, a, b, labels=torch.arange(7)), slope(nt_xent, a, b))


def test_sup_con_is_the_mean_over_positives_outside_the_logarithm() -> None:
    a, b = pairs(5)
    labels = torch.tensor([0, 1, 0, 2, 1])
    rows, twice = F.normalize(torch.cat([a, b]), dim=1), torch.cat([labels, labels])
    losses = []
    for i in range(10):
        scores = [float(rows[i] @ rows[j] / 0.5) for j in range(10)]
        total = math.log(sum(math.exp(s) for j, s in enumerate(scores) if j != i))
        positives = [s for j, s in enumerate(scores) if j != i and twice[j] == twice[i]]
        losses.append(total - sum(positives) / len(positives))
    assert sup_con(a, b, labels=labels).item() == pytest.approx(sum(losses) / 10)


def test_akin_leaves_out_what_labels_do_not_draw_together() -> None:
    a, b = pairs(4)
    akin = torch.zeros(4, 4, dtype=torch.bool)
    akin[0, 1] = akin[1, 0] = True
    labels = torch.tensor([0, 0, 1, 2])
    torch.testing.assert_close(sup_con(a, b, labels=labels, akin=akin), sup_con(a, b, labels=labels))
    torch.testing.assert_close(sup_con(a, b, akin=akin), nt_xent(a, b, akin=akin))


def test_sup_con_of_tight_classes_ends_at_the_logarithm_of_their_size() -> None:
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    value = sup_con(rows, rows, labels=torch.tensor([0, 0, 1, 1]), temperature=0.05)
    assert value.item() == pytest.approx(math.log(3), abs=1e-5)


def test_rows_that_all_share_a_label_have_nothing_to_be_told_from() -> None:
    a, b = pairs(4)
    assert sup_con(a, b, labels=torch.zeros(4)) == 0
    one_class = torch.tensor([0, 0, 0, 1])
    everyone_else = torch.ones(4, 4, dtype=torch.bool)
    assert sup_con(a, b, labels=one_class, akin=everyone_else) == 0


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels want \[7\], one for each pair; \[6\] came"):
        sup_con(*pairs(), labels=torch.zeros(6))


def test_the_weights_of_dclw_average_to_one_and_pull_most_where_partners_agree_least() -> None:
    a, b = pairs(6)
    contrast = crowd(a, b)
    weights = 2 - 6 * torch.softmax(F.cosine_similarity(a, b) / 0.5, 0)
    torch.testing.assert_close(weights.mean(), torch.ones((), dtype=torch.float64))
    expected = (contrast.log_sum() - weights.tile(2) * contrast.own).mean()
    torch.testing.assert_close(dclw(a, b), expected)
    assert weights.argmax() == F.cosine_similarity(a, b).argmin()


def test_with_one_negative_flat_nce_never_lets_go() -> None:
    own, others = torch.tensor([30.0]), torch.tensor([[-30.0]])
    d_own, d_others = slope(lambda s, r: scored(s, r).margin.sum(), own, others)
    assert (d_own.item(), d_others.item()) == (-1.0, 1.0)


def naive(a: Tensor, b: Tensor) -> Tensor:
    """NT-Xent as it is usually written, in the precision that came."""
    rows = torch.cat([a, b])
    logits = (rows @ rows.T).masked_fill(torch.eye(len(rows), dtype=torch.bool), -torch.inf)
    return F.cross_entropy(logits, torch.arange(len(rows)).roll(len(a)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_keeps_a_gradient_at_margin_minus_16_where_the_naive_form_has_none(
    dtype: torch.dtype,
) -> None:
    a = 4 * torch.eye(2, dtype=dtype)  # a score of 16 with the partner, of 0 with all others
    assert crowd(a, a, similarity="dot", temperature=1.0).margin.tolist() == pytest.approx(
        [math.log(2) - 16] * 4
    )
    towards_partner = slope(naive, a, a)[0].diagonal()
    assert towards_partner.tolist() == [0, 0]
    for objective in (flat_nce, dcl, nt_xent):
        kept = slope(objective, a, a, similarity="dot", temperature=1.0)[0].diagonal()
        assert (kept < 0).all()
    flat = slope(flat_nce, a, a, similarity="dot", temperature=1.0)[0].diagonal()
    torch.testing.assert_close(flat, torch.full((2,), -2.0, dtype=dtype))


def test_float32_keeps_the_value_of_info_nce_far_beyond_where_one_plus_xi_is_one() -> None:
    a = 5 * torch.eye(2)
    assert naive(a, a) == 0
    assert nt_xent(a, a, similarity="dot", temperature=1.0).item() == pytest.approx(2 * math.exp(-25.0))


def test_the_limit_of_many_negatives_is_alignment_plus_uniformity() -> None:
    angles = torch.arange(200_000, dtype=torch.float64) * (2 * math.pi / 200_000)
    contrast = scored(torch.tensor([2.0], dtype=torch.float64), 2 * angles.cos()[None])
    loss = F.softplus(contrast.margin).item()
    assert loss - math.log(200_000) == pytest.approx(-1.176, abs=1e-3)
    assert loss - math.log(200_000) == pytest.approx(-2 + torch.i0(torch.tensor(2.0)).log().item(), abs=1e-4)


def test_cosine_forgets_lengths_and_dot_does_not() -> None:
    a, b = pairs()
    for objective in EVERYBODY:
        torch.testing.assert_close(objective(3 * a, b), objective(a, b))
    assert abs(nt_xent(3 * a, b, similarity="dot") - nt_xent(a, b, similarity="dot")) > 0.1


@pytest.mark.parametrize("objective", EVERYBODY)
def test_its_gradient_is_that_of_finite_differences(objective: Callable[..., Tensor]) -> None:
    a, b = (view.requires_grad_() for view in pairs(4))
    if objective is flat_nce:  # a constant whose gradient is meant
        objective = dcl
    assert torch.autograd.gradcheck(objective, (a, b))
