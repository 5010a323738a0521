"""Alignment and uniformity at configurations whose value is known."""

import math

import pytest
import torch
from torch import Tensor

from twoview.objectives import align_uniform, alignment, direct_au, uniformity


def with_self(x: Tensor) -> float:
    """Uniformity with each row's pair with itself: what evenly spread points share with the whole sphere."""
    n = len(x)
    return math.log(((n - 1) * math.exp(uniformity(x).item()) + 1) / n)


def circle(n: int) -> Tensor:
    angles = torch.arange(n, dtype=torch.float64) * (2 * math.pi / n)
    return torch.stack([angles.cos(), angles.sin()], 1)


def sphere(n: int) -> Tensor:
    """A spiral of evenly spread points."""
    turns = torch.arange(n, dtype=torch.float64)
    height = 1 - (2 * turns + 1) / n
    angles, radius = turns * math.pi * (3 - math.sqrt(5)), (1 - height**2).sqrt()
    return torch.stack([radius * angles.cos(), radius * angles.sin(), height], 1)


def test_collapsed_rows_have_uniformity_zero() -> None:
    assert uniformity(torch.ones(6, 3)).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("n", [2, 5, 32])
def test_orthogonal_rows_have_uniformity_minus_four(n: int) -> None:
    assert uniformity(torch.eye(n)).item() == pytest.approx(-4, abs=1e-6)
    assert uniformity(torch.eye(n), t=3).item() == pytest.approx(-6, abs=1e-6)


def test_a_simplex_is_lower_still() -> None:
    for k in (2, 5):
        corners = torch.eye(k, dtype=torch.float64) - 1 / k
        assert uniformity(corners).item() == pytest.approx(-4 * k / (k - 1))


def test_a_square_on_the_circle_is_known() -> None:
    expected = math.log((4 * math.exp(-4) + 2 * math.exp(-8)) / 6)
    assert uniformity(circle(4)).item() == pytest.approx(expected)
    assert expected == pytest.approx(-4.39635, abs=1e-5)


def test_the_circle_and_the_sphere_are_known() -> None:
    assert uniformity(circle(1000)).item() == pytest.approx(-1.57887, abs=1e-5)
    assert with_self(circle(1000)) == pytest.approx(-1.575027, abs=1e-6)
    assert with_self(sphere(1500)) == pytest.approx(-2.079777, abs=1e-4)


def test_directions_in_64_dimensions_are_nearly_orthogonal() -> None:
    rows = torch.randn(1000, 64, generator=torch.Generator().manual_seed(0))
    assert uniformity(rows).item() == pytest.approx(-3.87524, abs=0.01)


def test_a_rotation_changes_nothing() -> None:
    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 6, 4, generator=draw, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=draw, dtype=torch.float64)).Q
    torch.testing.assert_close(uniformity(a @ turn), uniformity(a))
    torch.testing.assert_close(align_uniform(a @ turn, b @ turn), align_uniform(a, b))


def test_alignment_is_two_minus_two_cosines_and_zero_for_equal_rows() -> None:
    a, b = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(alignment(a, b), (2 - 2 * torch.cosine_similarity(a, b)).mean())
    distances = (2 - 2 * torch.cosine_similarity(a, b)).sqrt()
    torch.testing.assert_close(alignment(a, b, alpha=1), distances.mean())
    assert alignment(a, 3 * a) < 1e-30


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 3])
def test_coinciding_partners_have_a_gradient(alpha: float) -> None:
    a = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (da,) = torch.autograd.grad(alignment(a, a.detach().clone(), alpha=alpha), a)
    assert da.isfinite().all()


def test_the_gradient_of_uniformity_pushes_by_a_softmax_of_distances() -> None:
    rows = torch.nn.functional.normalize(
        torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=1
    )
    free = rows.clone().requires_grad_()
    (slope,) = torch.autograd.grad(uniformity(free), free)
    apart = rows[:, None] - rows[None]
    potentials = torch.exp(-2 * apart.square().sum(-1)).fill_diagonal_(0)
    pairs = potentials / (potentials.sum() / 2)
    expected = -4 * (pairs[..., None] * apart).sum(1)
    tangent = expected - (expected * rows).sum(1, keepdim=True) * rows
    torch.testing.assert_close(slope, tangent)


def test_direct_au_without_gamma_is_alignment_alone() -> None:
    a, b = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(direct_au(a, b, gamma=0.0), alignment(a, b))
    assert direct_au(torch.ones(4, 3), torch.ones(4, 3)).item() == pytest.approx(0, abs=1e-6)
    spread = (uniformity(a) + uniformity(b)) / 2
    torch.testing.assert_close(direct_au(a, b, gamma=0.5), alignment(a, b) + 0.5 * spread)
    torch.testing.assert_close(align_uniform(a, b, align=3.0, uniform=2.0), 3 * alignment(a, b) + 2 * spread)


def test_only_akin_pairs_leave_nothing_to_spread() -> None:
    a = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    assert uniformity(a, akin=torch.ones(3, 3, dtype=torch.bool)) == 0


def test_one_row_has_no_uniformity() -> None:
    with pytest.raises(ValueError, match="wants 2 pairs or more"):
        uniformity(torch.ones(1, 3))
