"""Averaged weights equal the recursion that defines them; the last weights are the model itself."""

import pytest
import torch
from torch import Tensor, nn

from twoview.train.average import Averaged, Last


class Counting(nn.Module):
    """A weight, and a count that is no parameter."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("unsaved", torch.zeros(2), persistent=False)


def walked(averages: Last, n_steps: int) -> list[Tensor]:
    """The weights after each step of a walk that the averages follow."""
    own = torch.Generator().manual_seed(0)
    seen = []
    for _ in range(n_steps):
        with torch.no_grad():
            averages.model.weight += torch.randn(2, generator=own)
            averages.model.count += 1
            averages.model.unsaved += 2
        averages.follow()
        seen.append(averages.model.weight.detach().clone())
    return seen


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_the_average_is_the_slow_recursion(decay) -> None:
    averages = Averaged(Counting(), decay)
    mean = torch.tensor([1.0, -2.0])
    for step, weight in enumerate(walked(averages, 60), start=1):
        keep = min(decay, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * weight
    torch.testing.assert_close(averages.selected().weight.detach(), mean)


def test_buffers_follow_as_they_are() -> None:
    averages = Averaged(Counting(), 0.9)
    walked(averages, 3)
    selected = averages.selected()
    assert selected.count == 3
    assert selected.unsaved.tolist() == [6, 6]


def test_averaging_changes_nothing_of_what_is_trained() -> None:
    plain, followed = Last(Counting()), Averaged(Counting(), 0.9)
    assert torch.equal(walked(plain, 20)[-1], walked(followed, 20)[-1])
    assert followed.model.training and not followed.selected().training
    assert not any(p.requires_grad for p in followed.selected().parameters())


def test_a_restored_average_goes_on_to_the_bit() -> None:
    whole = Averaged(Counting(), 0.99)
    walked(whole, 7)
    kept = {name: tensor.clone() for name, tensor in whole.state().items()}
    model = Counting()
    model.load_state_dict(whole.model.state_dict())
    again = Averaged(model, 0.99)
    again.restore(kept)
    walked(whole, 5), walked(again, 5)
    assert torch.equal(whole.selected().weight, again.selected().weight)
    assert whole.steps == again.steps == 12


def test_the_last_weights_are_the_model_itself_ready_to_be_asked() -> None:
    last = Last(Counting())
    walked(last, 2)
    assert last.selected() is last.model
    assert not last.model.training
    assert last.state() == {}
