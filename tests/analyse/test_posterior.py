"""Posteriors heard while a model answers, at Gaussians whose KL is known."""

import math

import pytest
import torch
from torch import Tensor, nn

from twoview.analyse.heard import draws, heard
from twoview.analyse.posterior import Posteriors, active_units
from twoview.data.layout import pack
from twoview.nn.samplers import Dropout, Gaussian, NoiseFree, Samplers
from twoview.types import History


class Known(nn.Module):
    """The posterior N(item, 1) in the first dimension, the prior in the second."""

    def forward(self, x: Tensor, history: History) -> tuple[Tensor, Tensor]:
        mean = torch.stack([history.items.float(), torch.zeros_like(history.items).float()], dim=-1)
        return mean, torch.zeros_like(mean)


def told(*items: list[int]) -> Posteriors:
    """What is heard of histories, one call each."""
    posterior, posteriors = Known(), Posteriors()
    with heard(posterior, posteriors.hear):
        for each in items:
            history = pack(torch.tensor([each]), torch.tensor([len(each)]))
            posterior(torch.zeros(1, len(each), 2), history)
    return posteriors


def test_the_kl_of_known_gaussians_comes_by_place_dimension_and_position() -> None:
    found = told([1, 2], [3]).kl()  # KL of N(m, 1) from N(0, 1) is m^2 / 2
    assert found["total"] == pytest.approx((0.5 + 2 + 4.5) / 3)
    assert found["per_dimension"] == pytest.approx([(0.5 + 2 + 4.5) / 3, 0])
    assert found["per_position"] == pytest.approx([(2 + 4.5) / 2, 0.5])  # from the newest back
    assert found["newest"] == pytest.approx((2 + 4.5) / 2)


def test_places_that_do_not_exist_cost_nothing() -> None:
    posterior, posteriors = Known(), Posteriors()
    with heard(posterior, posteriors.hear):
        posterior(torch.zeros(1, 4, 2), pack(torch.tensor([[2, 9, 9, 9]]), torch.tensor([1])))
    assert posteriors.kl()["total"] == pytest.approx(2)
    assert len(posteriors.kl()["per_position"]) == 1


def test_the_newest_place_of_every_history_is_kept_in_order() -> None:
    mean, log_var = told([1, 2], [3], [5, 4]).newest
    assert mean[:, 0].tolist() == [2, 3, 4] and log_var.abs().sum() == 0


def test_a_part_is_no_longer_heard_afterwards() -> None:
    posterior, posteriors = Known(), Posteriors()
    with heard(posterior, posteriors.hear):
        pass
    posterior(torch.zeros(1, 1, 2), pack(torch.tensor([[2]]), torch.tensor([1])))
    assert len(posteriors.places) == 0


@pytest.mark.parametrize(("deviation", "active"), [(0.0, 0), (0.05, 0), (0.2, 6)])
def test_units_are_active_where_their_means_vary_by_more_than_a_hundredth(
    deviation: float, active: int
) -> None:
    draw = torch.Generator().manual_seed(0)
    mean = 3 + deviation * torch.randn(2000, 6, generator=draw)
    assert int(active_units(mean).sum()) == active


def test_each_unit_is_judged_alone() -> None:
    sure = math.sqrt(0.02) * torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert active_units(sure).tolist() == [True, False]


@pytest.mark.parametrize(
    ("samplers", "drawn"),
    [
        ([Gaussian()], True),
        ([NoiseFree()], False),
        ([NoiseFree(), NoiseFree()], False),
        ([Gaussian(), NoiseFree()], True),
        ([Dropout(0.5)], True),
    ],
)
def test_samplers_without_noise_draw_nothing(samplers: list[Gaussian], drawn: bool) -> None:
    model = nn.Module()
    model.samplers = Samplers(*samplers)
    assert draws(model.eval()) == drawn  # type: ignore[arg-type]
