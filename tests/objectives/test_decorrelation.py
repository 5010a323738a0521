"""VICReg and Barlow Twins where their values are known."""

import pytest
import torch
from torch import Tensor

from twoview.objectives import barlow_twins, vicreg
from twoview.objectives.decorrelation import hinge, redundancy


def white(n: int = 64, dim: int = 6) -> Tensor:
    """Rows whose columns are centred, of deviation 1 and uncorrelated."""
    rows = torch.randn(n, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.linalg.qr(rows - rows.mean(0)).Q * (n - 1) ** 0.5


def test_collapsed_rows_cost_vicreg_its_whole_hinge() -> None:
    rows = torch.ones(8, 6)
    assert vicreg(rows, rows).item() == pytest.approx(24.75, abs=1e-5)


def test_collapsed_rows_cost_barlow_twins_their_width() -> None:
    rows = torch.ones(8, 6)
    assert barlow_twins(rows, rows).item() == pytest.approx(6)


def test_equal_white_views_cost_next_to_nothing() -> None:
    assert vicreg(white(), white()).item() == pytest.approx(0, abs=1e-9)
    assert barlow_twins(white(), white()).item() == pytest.approx(0, abs=1e-8)


def test_each_weight_weighs_its_own_term() -> None:
    a, b = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0))
    nothing = {"invariance": 0.0, "variance": 0.0, "covariance": 0.0}
    torch.testing.assert_close(vicreg(a, b, **{**nothing, "invariance": 2.0}), 2 * (a - b).square().mean())
    hinges = (hinge(a) + hinge(b)) / 2
    torch.testing.assert_close(vicreg(a, b, **{**nothing, "variance": 3.0}), 3 * hinges)
    torch.testing.assert_close(vicreg(a, b, **{**nothing, "covariance": 1.0}), redundancy(a) + redundancy(b))


def test_spread_dimensions_feel_no_hinge() -> None:
    wide = (2 * white()).requires_grad_()
    (slope,) = torch.autograd.grad(hinge(wide), wide)
    assert not slope.any()


def test_the_gradient_of_redundancy_is_known() -> None:
    rows = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(redundancy(rows), rows)
    centred = (rows - rows.mean(0)).detach()
    off_diagonal = torch.cov(rows.detach().T).fill_diagonal_(0)
    torch.testing.assert_close(slope, 4 / (4 * 6) * centred @ off_diagonal)


def test_barlow_twins_does_not_see_shifts_and_scales() -> None:
    a, b = torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(barlow_twins(5 * a + 3, b), barlow_twins(a, b), rtol=1e-4, atol=1e-4)
