"""How rows fill a space, at shapes whose answer is known."""

import math

import pytest
import torch

from twoview.analyse.spread import effective_rank, spread
from twoview.objectives import uniformity


@pytest.mark.parametrize("dim", [1, 2, 7, 64])
def test_the_identity_uses_every_direction(dim: int) -> None:
    assert effective_rank(torch.eye(dim)) == pytest.approx(dim)


def test_rows_on_one_line_use_one_direction_and_zeros_use_none() -> None:
    line = torch.randn(50, 1, generator=torch.Generator().manual_seed(0)) * torch.ones(8)
    assert effective_rank(line) == pytest.approx(1, abs=1e-6)
    assert effective_rank(torch.zeros(5, 3)) == 0


def test_two_values_give_the_exponential_of_their_entropy() -> None:
    p = torch.tensor([0.75, 0.25])
    expected = math.exp(-sum(x * math.log(x) for x in p.tolist()))
    assert effective_rank(torch.diag(3 * p)) == pytest.approx(expected)


def test_neither_the_scale_nor_a_rotation_changes_the_rank() -> None:
    draw = torch.Generator().manual_seed(0)
    rows, turn = torch.randn(40, 5, generator=draw), torch.linalg.qr(torch.randn(5, 5, generator=draw))[0]
    assert effective_rank(1e-3 * rows @ turn) == pytest.approx(effective_rank(rows), rel=1e-4)


def test_rows_that_are_no_numbers_have_no_rank() -> None:
    assert math.isnan(effective_rank(torch.full((3, 3), torch.nan)))


def test_a_spread_names_the_rank_and_wang_and_isolas_uniformity() -> None:
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    found = spread(rows)
    assert (found["rows"], found["dim"]) == (30, 4)
    assert found["uniformity"] == pytest.approx(float(uniformity(rows)), abs=1e-5)
    assert found["effective_rank"] == pytest.approx(effective_rank(rows))
    assert spread(torch.ones(1, 4))["uniformity"] == 0


def test_orthogonal_rows_are_as_uniform_as_theory_says() -> None:
    assert spread(torch.eye(16))["uniformity"] == pytest.approx(-4)
